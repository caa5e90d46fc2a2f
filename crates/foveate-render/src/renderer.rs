//! [`Renderer`]: the order in which a picture is made.

use std::sync::Arc;

use foveate_kernels::Level;

use crate::edges::{EdgeBuffers, SmoothEdges};
use crate::frame::Frame;
use crate::lanes::{LANES, V3, Wide, Words};
use crate::layer::{DrawLayer, Layer};
use crate::rows::{DrawRows, RowBuffers};
use crate::sky::DrawSky;
use crate::view::View;
use crate::{CubeMap, RenderError, Scene};

/// What pictures look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenderSettings {
    /// Width in pixels, 1 to [`Renderer::LARGEST_SIDE`].
    pub width: usize,
    /// Height in pixels, 1 to [`Renderer::LARGEST_SIDE`].
    pub height: usize,
    /// True if pixels on the edges of geoms are the mean of four samples.
    pub antialias: bool,
    /// True if lights cast shadows.
    pub shadows: bool,
    /// True if a plane with a reflectance mirrors.
    pub reflections: bool,
}

impl RenderSettings {
    /// Everything on, as OpenGL draws by default.
    pub const fn new(width: usize, height: usize) -> Self {
        RenderSettings { width, height, antialias: true, shadows: true, reflections: true }
    }
}

/// Draws scenes into pictures of one size.
///
/// It keeps what does not change from picture to picture: the sky while the camera does not turn, the planes with their light while
/// camera, lights and planes stay. That changes no bit of a picture. Its pictures are the same bits on all instruction sets, and
/// drawing allocates nothing once the largest scene was drawn.
///
/// ```
/// use foveate_render::{Camera, Geom, Light, RenderSettings, Renderer, Scene};
///
/// let mut scene = Scene::default();
/// scene.lights.push(Light { diffuse: [0.8; 3], direction: [0.0, 1.0, 0.0], ..Light::default() });
/// scene.geoms.push(Geom { position: [0.0, 5.0, 0.0], ..Geom::default() });
/// let mut renderer = Renderer::new(&RenderSettings::new(64, 48))?;
/// let mut rgb = vec![0; 64 * 48 * 3];
/// renderer.draw(&scene, &mut rgb)?;
/// assert_eq!(rgb[..3], [0; 3]); // no sky
/// let centre = &rgb[(24 * 64 + 32) * 3..][..3];
/// assert!(centre[0] > 90, "{centre:?}");
/// # Ok::<(), foveate_render::RenderError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Renderer {
    settings: RenderSettings,
    level: Level,
    /// The x of the rays through the centres of each column's pixels.
    columns: Vec<Wide>,
    sky: Sky,
    layer: Layer,
    frame: Frame,
    rows: RowBuffers,
    edges: EdgeBuffers,
}

/// The picture of the sky, kept while neither the camera's orientation nor the texture changes.
#[derive(Debug, Clone)]
struct Sky {
    picture: Vec<Words>,
    /// The texture, the camera's axes and the side of a pixel.
    of: Option<(Option<Arc<CubeMap>>, [V3; 3], f32)>,
}

impl Renderer {
    /// Longest side of a picture, in pixels.
    pub const LARGEST_SIDE: usize = 2048;
    /// Most geoms of a scene.
    pub const MOST_GEOMS: usize = 10_000;
    /// Most lights of a scene, of which at most 4 may cast shadows.
    pub const MOST_LIGHTS: usize = 100;

    /// Makes a renderer that uses the instruction set of this processor on which it is fastest.
    ///
    /// # Errors
    /// [`RenderError::PictureSize`].
    pub fn new(settings: &RenderSettings) -> Result<Renderer, RenderError> {
        // With AVX-512 most pictures take longer: divisions and roots are no faster in its wide registers.
        Self::with_level(settings, Level::named("avx2").unwrap_or_else(Level::best))
    }

    /// Makes a renderer that uses a certain instruction set.
    ///
    /// # Errors
    /// [`RenderError::PictureSize`].
    pub fn with_level(settings: &RenderSettings, level: Level) -> Result<Renderer, RenderError> {
        let RenderSettings { width, height, .. } = *settings;
        let largest = Self::LARGEST_SIDE;
        if !(1..=largest).contains(&width) || !(1..=largest).contains(&height) {
            return Err(RenderError::PictureSize { width, height, largest });
        }
        let blocks = width.div_ceil(LANES);
        Ok(Renderer {
            settings: *settings,
            level,
            columns: vec![[0.0; LANES]; blocks],
            sky: Sky { picture: vec![[0; LANES]; blocks * height], of: None },
            layer: Layer::new(blocks, height),
            frame: Frame::default(),
            rows: RowBuffers::new(blocks),
            edges: EdgeBuffers::new(blocks, height),
        })
    }

    /// Its settings.
    pub const fn settings(&self) -> &RenderSettings {
        &self.settings
    }

    /// Bytes of a picture, `[height, width, 3]`.
    pub const fn bytes(&self) -> usize {
        self.settings.width * self.settings.height * 3
    }

    /// Draws a scene.
    ///
    /// * `rgb`: `[height, width, 3]` bytes, from the top; all are overwritten
    ///
    /// # Errors
    /// [`RenderError::BufferSize`], [`RenderError::Camera`] and [`RenderError::TooMany`]. The picture is then unchanged.
    pub fn draw(&mut self, scene: &Scene, rgb: &mut [u8]) -> Result<(), RenderError> {
        let RenderSettings { width, height, .. } = self.settings;
        if rgb.len() != self.bytes() {
            return Err(RenderError::BufferSize { width, height, expected: self.bytes(), actual: rgb.len() });
        }
        let view = View::new(&scene.camera, width, height)?;
        self.frame.prepare(scene, &view, &self.settings)?;
        for (block, columns) in self.columns.iter_mut().enumerate() {
            for (i, x) in columns.iter_mut().enumerate() {
                *x = view.ray_x((block * LANES + i) as f32 + 0.5);
            }
        }
        let new_sky = self.draw_sky(scene.sky.as_ref(), &view);
        let new_layer = self.layer.is_outdated(&self.frame, &view) || new_sky;
        if new_layer {
            self.level.run_plain(DrawLayer {
                frame: &self.frame,
                view: &view,
                columns: &self.columns,
                sky: &self.sky.picture,
                layer: &mut self.layer,
            });
        }
        self.level.run_plain(DrawRows {
            frame: &self.frame,
            view: &view,
            columns: &self.columns,
            layer: &self.layer,
            rows: &mut self.rows,
            edges: self.settings.antialias.then_some(&mut self.edges),
            rgb,
        });
        if self.settings.antialias {
            self.level.run_plain(SmoothEdges {
                frame: &self.frame,
                view: &view,
                layer: &self.layer,
                edges: &mut self.edges,
                layer_stayed: !new_layer,
                rgb,
            });
        }
        Ok(())
    }

    /// Draws the sky when it is not the one that is there. Returns whether it did.
    fn draw_sky(&mut self, map: Option<&Arc<CubeMap>>, view: &View) -> bool {
        let same = self.sky.of.as_ref().is_some_and(|(old, axes, pixel)| {
            let same_map = match (old, map) {
                (Some(old), Some(map)) => Arc::ptr_eq(old, map),
                (old, map) => old.is_none() && map.is_none(),
            };
            // Without a texture, no direction matters.
            same_map && (map.is_none() || (*axes == view.axes && *pixel == view.pixel))
        });
        if same {
            return false;
        }
        match map {
            Some(map) => {
                let (columns, picture) = (&self.columns, &mut self.sky.picture);
                self.level.run_plain(DrawSky { map, view, columns, picture });
            }
            None => self.sky.picture.fill([0; LANES]),
        }
        self.sky.of = Some((map.cloned(), view.axes, view.pixel));
        true
    }
}
