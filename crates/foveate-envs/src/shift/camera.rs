//! A camera that moves.

use super::operator::{Moment, Operator, Picture};

/// The picture displaced at random in every frame; where nothing is known, its edge goes on.
#[derive(Debug, Clone)]
pub(super) struct Shake {
    still: Vec<u8>,
}

impl Shake {
    pub(super) fn new(width: usize, height: usize) -> Self {
        Shake { still: vec![0; width * height * 3] }
    }
}

impl Operator for Shake {
    fn moves_things(&self) -> bool {
        true
    }

    fn look(&mut self, picture: &mut Picture<'_>, now: &Moment<'_>) {
        let most = now.amount * picture.scale();
        let mut rng = now.dice.rng();
        let [dx, dy] = [(); 2].map(|()| rng.uniform(-most, most).round() as isize);
        self.still.copy_from_slice(picture.rgb);
        let (width, height) = (picture.width, picture.height);
        for (y, row) in picture.rgb.chunks_exact_mut(width * 3).enumerate() {
            let from = y.saturating_add_signed(dy).min(height - 1) * width;
            for (x, pixel) in row.chunks_exact_mut(3).enumerate() {
                let at = (from + x.saturating_add_signed(dx).min(width - 1)) * 3;
                pixel.copy_from_slice(&self.still[at..at + 3]);
            }
        }
    }
}
