//! An image in place of field and grass.

use super::layer::BLOCKS;
use super::lens::{CELL_HEIGHT, CELL_WIDTH, Lens};
use crate::car_racing::scene::Backdrop;
use foveate_kernels::coverage::BLOCK;

/// Sample positions in the backdrop, the same number in every cell. Texel coordinates are in units of 2^-32
/// texels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sampler {
    /// The first sample.
    origin: [i64; 2],
    /// Offset to the next sample on the right.
    right: [i64; 2],
    /// Offset to the next sample below.
    down: [i64; 2],
    /// Samples per cell, in each direction.
    side: i64,
}

impl Sampler {
    pub(super) fn new(lens: &Lens, backdrop: &Backdrop<'_>) -> Self {
        // A cell is half a texel wide when the camera is close; from far away it contains many texels.
        let side = (2.0 * f64::from(CELL_WIDTH) / lens.zoom).ceil().clamp(3.0, 8.0);
        let texel = |x: f64, y: f64| {
            let [x, y] = lens.world([x * f64::from(CELL_WIDTH) / side, y * f64::from(CELL_HEIGHT) / side]);
            [x + backdrop.width as f64 * 0.5, backdrop.height as f64 * 0.5 - y]
        };
        let (origin, right, down) = (texel(0.5, 0.5), texel(1.5, 0.5), texel(0.5, 1.5));
        let fixed = |v: f64| (v * 4_294_967_296.0) as i64;
        let step = |to: [f64; 2]| [fixed(to[0] - origin[0]), fixed(to[1] - origin[1])];
        Sampler { origin: origin.map(fixed), right: step(right), down: step(down), side: side as i64 }
    }

    /// Adds row `row` of the backdrop where `over` leaves it visible; outside the backdrop is black.
    pub(super) fn lay_under(
        &self,
        row: usize,
        backdrop: &Backdrop<'_>,
        over: &mut [[[f32; 4]; BLOCK]; BLOCKS],
    ) {
        let (width, height) = (backdrop.width as i64, backdrop.height as i64);
        let share = 1.0 / (self.side * self.side) as f32;
        for (column, cell) in over.as_flattened_mut().iter_mut().enumerate() {
            let visible = (1.0 - cell[3]).max(0.0);
            if visible == 0.0 {
                continue;
            }
            let mut sum = [0u32; 3];
            for j in row as i64 * self.side..(row as i64 + 1) * self.side {
                for i in column as i64 * self.side..(column as i64 + 1) * self.side {
                    let [x, y] =
                        [0, 1].map(|k| (self.origin[k] + self.right[k] * i + self.down[k] * j) >> 32);
                    if (0..width).contains(&x) && (0..height).contains(&y) {
                        let texel = ((y * width + x) * 3) as usize;
                        for (sum, &value) in sum.iter_mut().zip(&backdrop.rgb[texel..texel + 3]) {
                            *sum += u32::from(value);
                        }
                    }
                }
            }
            for (value, sum) in cell.iter_mut().zip(sum) {
                *value += sum as f32 * share * visible;
            }
        }
    }
}
