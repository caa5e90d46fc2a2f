//! A camera of a model and what draws its pictures.

use std::cell::RefCell;

use foveate_core::ImageBuf;
use foveate_mujoco::{Camera, Data, Model, MujocoError, SceneView};
use foveate_render::{RenderError, RenderSettings, Renderer, Scene};

use crate::eye::sky;

/// Why an observation cannot be made.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Mujoco(#[from] MujocoError),
    #[error(transparent)]
    Render(#[from] RenderError),
    /// A copy of a world cannot be made, for another reason.
    #[error("{0}")]
    Copy(String),
}

/// A camera and what draws its pictures.
pub(crate) struct Drawing {
    view: SceneView,
    scene: Scene,
    renderer: Renderer,
}

impl Drawing {
    pub(crate) fn new(model: &Model, camera: Camera, renderer: Renderer) -> Result<Self, MujocoError> {
        let scene = Scene { sky: Some(sky()), ..Scene::default() };
        Ok(Drawing { view: SceneView::new(model, camera)?, scene, renderer })
    }

    /// Draws into `rgb`.
    pub(crate) fn draw(&mut self, data: &mut Data, rgb: &mut [u8]) -> Result<(), Failure> {
        self.view.fill(data, &mut self.scene)?;
        self.renderer.draw(&self.scene, rgb)?;
        Ok(())
    }

    /// Draws `data` into `view` with a drawing of that size, which is made when `kept` holds none.
    pub(crate) fn show(
        kept: &RefCell<Option<Drawing>>,
        camera: Camera,
        data: &Data,
        view: &mut ImageBuf,
    ) -> Result<(), Failure> {
        let size = (view.width(), view.height());
        let mut kept = kept.borrow_mut();
        let fits = |drawing: &Drawing| {
            let settings = drawing.renderer.settings();
            (settings.width, settings.height) == size
        };
        if !kept.as_ref().is_some_and(fits) {
            let renderer = Renderer::new(&RenderSettings::new(size.0, size.1))?;
            *kept = Some(Drawing::new(data.model(), camera, renderer)?);
        }
        let Some(drawing) = kept.as_mut() else { return Ok(()) };
        // Scenes are made from a simulation that may be written to.
        drawing.draw(&mut data.copied()?, view.rgb_mut())
    }

    /// Where a point of the world is in the last picture, as shares of its width and height from the upper left corner; `None` for
    /// one that is not in front of the camera.
    pub(crate) fn place(&self, point: [f64; 3]) -> Option<[f32; 2]> {
        let settings = self.renderer.settings();
        place(&self.scene, settings.width as f32 / settings.height as f32, point.map(|x| x as f32))
    }
}

/// Where a point is in the picture of a scene's camera whose width is `aspect` times its height.
pub(crate) fn place(scene: &Scene, aspect: f32, point: [f32; 3]) -> Option<[f32; 2]> {
    let camera = &scene.camera;
    let [forward, up] = [camera.forward, camera.up];
    let right: [f32; 3] = [
        forward[1] * up[2] - forward[2] * up[1],
        forward[2] * up[0] - forward[0] * up[2],
        forward[0] * up[1] - forward[1] * up[0],
    ];
    let half_width = camera.half_height * aspect;
    let apart: [f32; 3] = std::array::from_fn(|i| point[i] - camera.position[i]);
    let [x, y, depth] = [right, up, forward].map(|v| v[0] * apart[0] + v[1] * apart[1] + v[2] * apart[2]);
    (depth > camera.near)
        .then(|| [0.5 + 0.5 * x / (depth * half_width), 0.5 - 0.5 * y / (depth * camera.half_height)])
}
