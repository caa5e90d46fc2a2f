//! MuJoCo's scenes as the renderer's.

use foveate_render::{Checker, Geom, Light, LightKind, Scene, ShadowVolume, Shape};

use crate::data::Data;
use crate::error::MujocoError;
use crate::ffi::{RawScene, int};
use crate::model::{Camera, Model};
use crate::versions::{GeomLayout, LightLayout, SceneLayout};

/// More geoms than this are not shown.
const MOST_GEOMS: u16 = 2000;
/// Lights of an `mjvScene`.
const MOST_LIGHTS: usize = 100;

/// What a camera of a model shows, or how many contacts there are.
pub struct SceneView {
    raw: RawScene,
    shadows: ShadowVolume,
    /// The texture of each material.
    textures: Vec<Option<Checker>>,
}

impl SceneView {
    /// The view of a camera.
    ///
    /// # Errors
    /// [`MujocoError::Failed`].
    pub fn new(model: &Model, camera: Camera) -> Result<SceneView, MujocoError> {
        Self::of(model, Some(camera.0), MOST_GEOMS)
    }

    /// A view of the contact points alone, for [`SceneView::contacts`].
    ///
    /// # Errors
    /// [`MujocoError::Failed`].
    pub fn of_contacts(model: &Model) -> Result<SceneView, MujocoError> {
        Self::of(model, None, 200)
    }

    fn of(model: &Model, camera: Option<i32>, most: u16) -> Result<SceneView, MujocoError> {
        let [clip, scale, extent] = model.raw.shadows();
        let shadows =
            ShadowVolume { directional_half_side: (clip * extent) as f32, spot_scale: scale as f32 };
        let texture = |(is_there, uniform, repeat): (bool, bool, [f32; 2])| {
            is_there.then(|| Checker { repeat, uniform, ..Checker::default() })
        };
        let textures = model.raw.textures().into_iter().map(texture).collect();
        Ok(SceneView { raw: RawScene::new(&model.raw, camera, most)?, shadows, textures })
    }

    /// Number of contacts of a [view of contacts](SceneView::of_contacts), at most 200.
    ///
    /// # Errors
    /// [`MujocoError::Failed`] or [`MujocoError::Broken`].
    pub fn contacts(&mut self, data: &mut Data) -> Result<usize, MujocoError> {
        self.raw.update(&mut data.raw)?;
        Ok(self.raw.len())
    }

    /// Refills `scene` from the state of `data`, except for its sky. Returns how many things cannot be drawn, such as meshes.
    ///
    /// # Errors
    /// [`MujocoError::Failed`] or [`MujocoError::Broken`].
    pub fn fill(&mut self, data: &mut Data, scene: &mut Scene) -> Result<usize, MujocoError> {
        self.raw.update(&mut data.raw)?;
        let layout = &self.raw.library().layouts().scene;
        let header = self.raw.header();
        scene.shadow_volume = self.shadows;
        scene.lights.clear();
        let lights = usize::try_from(int(header, layout.nlight)).unwrap_or(0).min(MOST_LIGHTS);
        scene.lights.extend(
            (0..lights)
                .filter_map(|i| light(&header[layout.lights + i * layout.light_size..], &layout.light)),
        );
        scene.set_camera(camera(header, layout));
        scene.geoms.clear();
        let geoms = self.raw.geoms().chunks_exact(layout.geom_size);
        scene.geoms.extend(geoms.filter_map(|bytes| geom(bytes, &layout.geom, &self.textures)));
        let others = [layout.nflex, layout.nskin].map(|at| usize::try_from(int(header, at)).unwrap_or(0));
        Ok(self.raw.len() - scene.geoms.len() + others[0] + others[1])
    }

    /// The number of the model's geom that each geom of the last scene is, `[geoms]`; `None` for sites and decorations.
    pub fn ids(&self) -> impl Iterator<Item = Option<u32>> {
        let versions = self.raw.library().layouts();
        let layout = &versions.scene;
        let drawn = self.raw.geoms().chunks_exact(layout.geom_size);
        drawn.filter(|bytes| shape(int(bytes, layout.geom.kind)).is_some()).map(|bytes| {
            let is_geom = int(bytes, layout.geom.objtype) == versions.objects.geom;
            u32::try_from(int(bytes, layout.geom.objid)).ok().filter(|_| is_geom)
        })
    }
}

impl std::fmt::Debug for SceneView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SceneView").field("geoms", &self.raw.len()).finish_non_exhaustive()
    }
}

/// `N` floats at `offset`.
fn floats<const N: usize>(bytes: &[u8], offset: usize) -> [f32; N] {
    std::array::from_fn(|i| f32::from_bits(int(bytes, offset + 4 * i) as u32))
}

fn float(bytes: &[u8], offset: usize) -> f32 {
    floats::<1>(bytes, offset)[0]
}

fn flag(bytes: &[u8], offset: usize) -> bool {
    bytes.get(offset).is_some_and(|&byte| byte != 0)
}

/// The mean of the two cameras of a stereo pair.
fn camera(header: &[u8], layout: &SceneLayout) -> foveate_render::Camera {
    let eye = |i: usize| &header[layout.cameras + i * layout.gl_camera_size..];
    let at = &layout.gl_camera;
    let mean = |offset| {
        let [left, right] = [0, 1].map(|i| floats::<3>(eye(i), offset));
        std::array::from_fn(|i| 0.5 * (left[i] + right[i]))
    };
    let [near, far] = floats::<2>(eye(0), at.frustum_near);
    foveate_render::Camera {
        position: mean(at.pos),
        forward: mean(at.forward),
        up: mean(at.up),
        half_height: float(eye(0), at.frustum_top) / near,
        near,
        far,
    }
}

/// `None` for a light that is a picture.
fn light(bytes: &[u8], at: &LightLayout) -> Option<Light> {
    let kind = match int(bytes, at.kind) {
        0 => LightKind::Spot,
        1 => LightKind::Directional,
        2 => LightKind::Point,
        _ => return None,
    };
    Some(Light {
        kind,
        position: floats(bytes, at.pos),
        direction: floats(bytes, at.dir),
        ambient: floats(bytes, at.ambient),
        diffuse: floats(bytes, at.diffuse),
        specular: floats(bytes, at.specular),
        attenuation: floats(bytes, at.attenuation),
        cutoff_deg: float(bytes, at.cutoff),
        exponent: float(bytes, at.exponent),
        casts_shadow: flag(bytes, at.castshadow),
        headlight: flag(bytes, at.headlight),
    })
}

/// The shape of a number of `mjtGeom`; `None` for what the renderer does not draw.
fn shape(kind: i32) -> Option<Shape> {
    Some(match kind {
        0 => Shape::Plane,
        2 => Shape::Sphere,
        3 => Shape::Capsule,
        4 => Shape::Ellipsoid,
        5 => Shape::Cylinder,
        6 => Shape::Box,
        _ => return None,
    })
}

fn geom(bytes: &[u8], at: &GeomLayout, textures: &[Option<Checker>]) -> Option<Geom> {
    let shape = shape(int(bytes, at.kind))?;
    let [emission, specular, shininess, reflectance] = floats(bytes, at.emission);
    let material = usize::try_from(int(bytes, at.matid)).ok();
    let texture = material.and_then(|material| *textures.get(material)?);
    let texture = texture.filter(|_| shape == Shape::Plane);
    Some(Geom {
        shape,
        size: floats(bytes, at.size),
        position: floats(bytes, at.pos),
        rotation: floats(bytes, at.mat),
        rgba: floats(bytes, at.rgba),
        emission,
        specular,
        shininess,
        reflectance,
        transparent: flag(bytes, at.transparent),
        texture,
        material: material.and_then(|material| u32::try_from(material).ok()),
    })
}
