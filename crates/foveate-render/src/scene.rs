//! What a picture shows: plain data, refilled before every picture.

use std::sync::Arc;

use crate::CubeMap;

/// Everything that a picture shows. Lengths are in metres, directions are unit vectors, z points up.
///
/// A scene is refilled in place: clear [`lights`](Scene::lights) and [`geoms`](Scene::geoms) and push the new ones, which allocates
/// nothing once the lists have their capacity. Changes of the world's appearance are changes of these fields: another camera pose
/// ([`Scene::set_camera`]), another [`Geom::rgba`] for all geoms of one [`Geom::material`], another [`Scene::sky`].
#[derive(Debug, Clone, Default)]
pub struct Scene {
    /// The viewer.
    pub camera: Camera,
    /// Lights, in the order in which their contributions are added.
    pub lights: Vec<Light>,
    /// Bodies, in the order of the scene. The first opaque plane with a positive [`Geom::reflectance`] is the only mirror.
    pub geoms: Vec<Geom>,
    /// The texture behind all geoms, seen from its centre; black where it is `None`.
    pub sky: Option<Arc<CubeMap>>,
    /// The part of the world in which lights cast shadows.
    pub shadow_volume: ShadowVolume,
}

impl Scene {
    /// Moves the camera, and with it all lights that are attached to it.
    pub fn set_camera(&mut self, camera: Camera) {
        self.camera = camera;
        for light in self.lights.iter_mut().filter(|light| light.headlight) {
            light.position = camera.position;
            light.direction = camera.forward;
        }
    }
}

/// A perspective camera. Its picture's horizontal direction is `forward × up`.
///
/// Of a stereo pair, as MuJoCo gives it, this is the mean of the two.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Camera {
    /// Where it is.
    pub position: [f32; 3],
    /// Where it looks.
    pub forward: [f32; 3],
    /// Which direction is up in the picture, at a right angle to `forward`.
    pub up: [f32; 3],
    /// Half the height of the field of view at distance 1: the tangent of half the vertical angle. In MuJoCo's terms,
    /// `frustum_top / frustum_near`.
    pub half_height: f32,
    /// Distance of the near clipping plane along `forward`: nearer points are not drawn.
    pub near: f32,
    /// Distance of the far clipping plane along `forward`: farther points are not drawn. It does not limit the sky.
    pub far: f32,
}

impl Default for Camera {
    /// At the origin, looking along y with a vertical angle of 45°.
    fn default() -> Self {
        Camera {
            position: [0.0; 3],
            forward: [0.0, 1.0, 0.0],
            up: [0.0, 0.0, 1.0],
            half_height: 0.414_213_57,
            near: 0.01,
            far: 100.0,
        }
    }
}

/// How a light's rays run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LightKind {
    /// Parallel rays along [`Light::direction`], without attenuation.
    #[default]
    Directional,
    /// A cone of rays from [`Light::position`] around [`Light::direction`].
    Spot,
    /// Rays from [`Light::position`] in all directions. Such a light casts no shadow.
    Point,
}

/// A light of the fixed-function pipeline of OpenGL.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Light {
    /// How its rays run.
    pub kind: LightKind,
    /// Where it is. For a directional light that casts shadows, the centre of the volume in which it does.
    pub position: [f32; 3],
    /// Direction of its rays, away from the light.
    pub direction: [f32; 3],
    /// Colour that it adds everywhere, each 0 to 1.
    pub ambient: [f32; 3],
    /// Colour of its diffuse reflection, each 0 to 1.
    pub diffuse: [f32; 3],
    /// Colour of its highlights, each 0 to 1.
    pub specular: [f32; 3],
    /// The light at distance d is divided by `a[0] + a[1] d + a[2] d²`. Not used by directional lights.
    pub attenuation: [f32; 3],
    /// Half the angle of a spot's cone, in degrees, 0 to 90.
    pub cutoff_deg: f32,
    /// A spot's light falls off with this power of the cosine of the angle to its axis, 0 to 128.
    pub exponent: f32,
    /// True if geoms cast shadows in this light.
    pub casts_shadow: bool,
    /// True if this light moves with the camera: see [`Scene::set_camera`].
    pub headlight: bool,
}

/// The part of the world in which lights cast shadows. Outside of it, everything is lit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShadowVolume {
    /// Half the side of the square, across the direction of a directional light and centred at its position, in metres. In MuJoCo's
    /// terms, `vis.map.shadowclip * stat.extent`.
    pub directional_half_side: f32,
    /// The part of a spot's cutoff angle that casts shadows, 0 to 1. In MuJoCo's terms, `vis.map.shadowscale`.
    pub spot_scale: f32,
}

impl Default for ShadowVolume {
    fn default() -> Self {
        ShadowVolume { directional_half_side: 1.0, spot_scale: 0.6 }
    }
}

/// The shape of a geom, in its own frame, centred at its origin. `s` is [`Geom::size`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Shape {
    /// The rectangle |x| ≤ `s[0]`, |y| ≤ `s[1]` at z = 0, with its front on the side of positive z. `s[2]` is the spacing of the
    /// grid at whose points OpenGL computes the light.
    Plane,
    /// The radius is `s[0]`.
    #[default]
    Sphere,
    /// Along z: radius `s[0]`, half length `s[2]` without the caps.
    Capsule,
    /// The semi-axes are `s`.
    Ellipsoid,
    /// Along z: radius `s[0]`, half length `s[2]`.
    Cylinder,
    /// The half sides are `s`.
    Box,
}

/// A body of a scene, with its material.
///
/// A geom whose size, position or rotation is not finite, or whose size is not positive where the shape needs it, is not drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Geom {
    /// Its shape.
    pub shape: Shape,
    /// Its size, as [`Shape`] says.
    pub size: [f32; 3],
    /// The origin of its frame.
    pub position: [f32; 3],
    /// The rotation from its frame to the world, `[3, 3]` row-major: the columns are the axes of its frame.
    pub rotation: [f32; 9],
    /// Colour and opacity, each 0 to 1. The colour multiplies the texture. An opacity of 0 hides the geom.
    pub rgba: [f32; 4],
    /// Part of the colour that it emits, 0 to 1.
    pub emission: f32,
    /// How much highlights add, 0 to 1.
    pub specular: f32,
    /// How small highlights are, 0 to 1: they fall off with the power `128 * shininess`.
    pub shininess: f32,
    /// How much a plane mirrors the other geoms, 0 to 1.
    pub reflectance: f32,
    /// True if a plane is drawn after all others, mixed with what is behind it. A plane with an opacity below 0.995 always is;
    /// other shapes are opaque unless hidden.
    pub transparent: bool,
    /// The texture of a plane. Other shapes are drawn without.
    pub texture: Option<Checker>,
    /// The number of its material, for changes of its colour; the renderer does not use it.
    pub material: Option<u32>,
}

impl Default for Geom {
    /// An opaque grey unit sphere at the origin.
    fn default() -> Self {
        Geom {
            shape: Shape::Sphere,
            size: [1.0; 3],
            position: [0.0; 3],
            rotation: [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
            rgba: [0.5, 0.5, 0.5, 1.0],
            emission: 0.0,
            specular: 0.5,
            shininess: 0.5,
            reflectance: 0.0,
            transparent: false,
            texture: None,
            material: None,
        }
    }
}

/// A texture of 2 × 2 fields in two alternating colours, with a border of one texel, repeated without end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Checker {
    /// Colour of the fields at the origin and diagonally opposite, in bytes.
    pub first: [u8; 3],
    /// Colour of the other two fields, in bytes.
    pub second: [u8; 3],
    /// Colour of the border around each period, in bytes; `None` for no border.
    pub border: Option<[u8; 3]>,
    /// Side of a period in texels.
    pub texels: u32,
    /// Periods along x and y: per 2 m when `uniform`, otherwise over the whole plane.
    pub repeat: [f32; 2],
    /// True if `repeat` counts per length instead of per plane.
    pub uniform: bool,
}

impl Default for Checker {
    /// The floor of the DeepMind Control suite.
    fn default() -> Self {
        Checker {
            first: [25, 51, 76],
            second: [51, 76, 102],
            border: Some([51, 76, 102]),
            texels: 300,
            repeat: [1.0; 2],
            uniform: true,
        }
    }
}
