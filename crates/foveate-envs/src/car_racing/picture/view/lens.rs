//! Maps the world to a view of any size.

use crate::car_racing::scene::{Camera, Scene};

/// The camera: rotated with the hull, which appears below the centre.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lens {
    /// Pixels per world unit.
    pub(super) zoom: f64,
    sin: f64,
    cos: f64,
    position: [f64; 2],
    centre: [f64; 2],
}

impl Lens {
    /// A camera for `[width, height]` pixels, with instruments in the lowest `strip` pixels.
    pub(super) fn new(scene: &Scene<'_>, [width, height]: [f32; 2], strip: f32) -> Self {
        let [width, height] = [width, height].map(f64::from);
        // The same part of the world as in Gymnasium's 800 pixels of height, unless the image is narrow.
        let scale = (height / 800.0).min(width / 700.0);
        let (sin, cos) = (-f64::from(scene.hull.angle)).sin_cos();
        Lens {
            zoom: Camera::zoom_at(scene.t) * scale,
            sin,
            cos,
            position: scene.hull.position.map(f64::from),
            centre: [0.5 * width, 0.76 * height - 0.25 * f64::from(strip)],
        }
    }

    /// The pixel coordinates of a point of the world, y down.
    pub(super) fn pixel(&self, [x, y]: [f64; 2]) -> [f32; 2] {
        let (x, y) = (x - self.position[0], y - self.position[1]);
        [
            (self.centre[0] + (x * self.cos - y * self.sin) * self.zoom) as f32,
            (self.centre[1] - (x * self.sin + y * self.cos) * self.zoom) as f32,
        ]
    }

    /// The point of the world at pixel coordinates.
    pub(super) fn world(&self, [x, y]: [f32; 2]) -> [f64; 2] {
        let (x, y) = (f64::from(x) - self.centre[0], self.centre[1] - f64::from(y));
        let (x, y) = (x / self.zoom, y / self.zoom);
        [self.position[0] + x * self.cos + y * self.sin, self.position[1] + y * self.cos - x * self.sin]
    }
}
