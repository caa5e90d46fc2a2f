//! Camera noise.

use super::operator::{Moment, Operator, Picture};

/// Noise on every byte: the sum of four uniform bytes, scaled, which is close to a normal distribution and cheap.
#[derive(Debug, Clone)]
pub(super) struct Noise;

/// Standard deviation of the sum of four uniform bytes: √(4 · (256² − 1) / 12).
const SPREAD: f64 = 147.800_766_8;

impl Operator for Noise {
    fn look(&mut self, picture: &mut Picture<'_>, now: &Moment<'_>) {
        let factor = (now.amount * 255.0 / SPREAD * 65536.0).round() as i32;
        let mut rng = now.dice.rng();
        for pair in picture.rgb.chunks_mut(2) {
            let bits = rng.next_u64().to_le_bytes();
            for (byte, four) in pair.iter_mut().zip(bits.chunks_exact(4)) {
                let sum: i32 = four.iter().map(|&b| i32::from(b)).sum();
                let change = ((sum - 510) * factor + 32768) >> 16;
                *byte = (i32::from(*byte) + change).clamp(0, 255) as u8;
            }
        }
    }
}
