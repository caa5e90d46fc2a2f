//! The interface between world and pictures: one instant, ready to draw.
//!
//! The world fills a [`Scene`]; the pictures in [`super::picture`] and the view for people use no other data.
//! Lengths are world units, angles radians, x to the right, y up; Box2D's f32 values stay f32.

/// The state of the world at one instant, for drawing.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    /// Road tiles and kerbs in draw order, each kerb right after its tile.
    pub road: &'a [RoadQuad],
    /// A number that is unique to a reset in this process, so that a picture can keep an index of the road
    /// until it changes.
    pub track_id: u64,
    /// Time since the start of the episode in seconds, as the world counts it (0.02 after the reset).
    pub t: f64,
    /// The hull.
    pub hull: Body,
    /// Wheels: front left, front right, rear left, rear right.
    pub wheels: [Wheel; 4],
    /// Angle of the front left wheel's joint.
    pub steering_angle: f32,
    /// The score shown in the picture.
    pub score: f64,
    /// Colours of road and ground.
    pub colors: Colors,
    /// The image shown instead of the ground, if any.
    pub backdrop: Option<Backdrop<'a>>,
    /// Black bars at the left and right edge: width in thousandths of the picture's width; 0 for none.
    pub side_bars: f64,
    /// True if the indicators and the score at the bottom are shown; their dark ground always is.
    pub indicators: bool,
    /// A square fixed to the hull, in hull coordinates, drawn just before the hull's last polygon.
    pub blob: Option<Blob>,
}

/// A rigid body, with Box2D's values.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Body {
    /// Position of the body's origin.
    pub position: [f32; 2],
    /// Its angle.
    pub angle: f32,
    /// Sine of the angle, as in the body's transform.
    pub sin: f32,
    /// Cosine of the angle, as in the body's transform.
    pub cos: f32,
    /// Velocity of the centre of mass, units per second.
    pub velocity: [f32; 2],
    /// Angular velocity, radians per second.
    pub spin: f32,
}

impl Body {
    /// A point of the body in world coordinates: `b2Mul(transform, point)` in f32.
    pub fn to_world(&self, [x, y]: [f32; 2]) -> [f32; 2] {
        [self.cos * x - self.sin * y + self.position[0], self.sin * x + self.cos * y + self.position[1]]
    }
}

/// A wheel.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Wheel {
    /// Its body.
    pub body: Body,
    /// Rotation angle, radians.
    pub phase: f64,
    /// Angular velocity of the rolling wheel, radians per second.
    pub omega: f64,
}

/// A quadrilateral of the road.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoadQuad {
    /// Corners in the order of the reference: `[l1, r1, r2, l2]`.
    pub corners: [[f64; 2]; 4],
    /// Its paint.
    pub paint: Paint,
}

/// The paint of a piece of road.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// Road of stripe `i mod 3` for tile `i`; once touched, stripe 0.
    Road {
        /// 0, 1 or 2.
        stripe: u8,
    },
    /// A white kerb.
    White,
    /// A red kerb.
    Red,
    /// A custom colour (the fake lane).
    Rgb([u8; 3]),
}

/// Colours of road and ground, 0 to 255 before rounding, with the reference's values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Colors {
    /// Road, stripe 0.
    pub road: [f64; 3],
    /// Ground between the lighter squares.
    pub field: [f64; 3],
    /// The lighter squares.
    pub grass: [f64; 3],
}

impl Default for Colors {
    /// The colours of the unchanged world.
    fn default() -> Self {
        Colors { road: [102.0; 3], field: [102.0, 204.0, 102.0], grass: [102.0, 230.0, 102.0] }
    }
}

/// An image that replaces field and grass: one texel per world unit, centred on the world's origin, row 0 on
/// top (largest y).
#[derive(Debug, Clone, Copy)]
pub struct Backdrop<'a> {
    /// Width in texels.
    pub width: usize,
    /// Height in texels.
    pub height: usize,
    /// `[height, width, 3]` bytes.
    pub rgb: &'a [u8],
}

/// A square that moves with the hull.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Blob {
    /// Lower left corner in hull coordinates.
    pub corner: [f32; 2],
    /// Side in world units.
    pub side: f32,
    /// Colour.
    pub rgb: [u8; 3],
}

/// Half the side of the field: it extends from `-PLAYFIELD` to `PLAYFIELD` in x and y.
pub const PLAYFIELD: f64 = 2000.0 / 6.0;
/// Side of a square of grass.
pub const GRASS_DIM: f64 = PLAYFIELD / 20.0;
/// Half width of a wheel.
pub const WHEEL_HALF_WIDTH: f64 = 14.0 * 0.02;
/// Radius of a wheel.
pub const WHEEL_RADIUS: f64 = 27.0 * 0.02;

/// The camera: it maps the world to window coordinates of the 1000 × 800 canvas, y up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Camera {
    /// Canvas pixels per world unit.
    pub zoom: f64,
    /// Rotation of the world around the hull.
    pub angle: f64,
}

impl Camera {
    /// Zoom in canvas pixels per world unit: during the first second the camera zooms in.
    pub fn zoom_at(t: f64) -> f64 {
        0.1 * 6.0 * (1.0 - t).max(0.0) + 2.7 * 6.0 * t.min(1.0)
    }
}
