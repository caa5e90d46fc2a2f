//! Lost parts of the picture.

use super::operator::{Moment, Operator, Picture};

/// Drops random square patches, other ones in every frame.
#[derive(Debug, Clone)]
pub(super) struct Dropout;

impl Operator for Dropout {
    fn look(&mut self, picture: &mut Picture<'_>, now: &Moment<'_>) {
        let side = ((now.number(0, 8.0) * picture.scale()).round() as usize).max(1);
        let lost_rgb = now.color(1).unwrap_or_default();
        let mut rng = now.dice.rng();
        for top in (0..picture.height).step_by(side) {
            for left in (0..picture.width).step_by(side) {
                if rng.next_f64() >= now.amount {
                    continue;
                }
                let right = (left + side).min(picture.width);
                for row in top..(top + side).min(picture.height) {
                    let row = row * picture.width;
                    for pixel in picture.rgb[(row + left) * 3..(row + right) * 3].chunks_exact_mut(3) {
                        pixel.copy_from_slice(&lost_rgb);
                    }
                }
            }
        }
    }
}
