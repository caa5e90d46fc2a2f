//! Light and colour.

use foveate_core::{Image, Seed};

use super::operator::{Moment, Operator, Picture};

/// Adds the same amount to every byte.
#[derive(Debug, Clone)]
pub(super) struct Brightness;

impl Operator for Brightness {
    fn look(&mut self, picture: &mut Picture<'_>, now: &Moment<'_>) {
        let add = (now.amount * 255.0).round() as u8;
        for byte in &mut *picture.rgb {
            *byte = byte.saturating_add(add);
        }
    }
}

/// Scales every byte down.
#[derive(Debug, Clone)]
pub(super) struct Darkness;

impl Operator for Darkness {
    fn look(&mut self, picture: &mut Picture<'_>, now: &Moment<'_>) {
        let table = table(|byte| byte * (1.0 - now.amount));
        picture.map(&[table; 3]);
    }
}

/// Moves each channel towards its mean over the picture.
#[derive(Debug, Clone)]
pub(super) struct Contrast;

impl Operator for Contrast {
    fn look(&mut self, picture: &mut Picture<'_>, now: &Moment<'_>) {
        let mut sums = [0_u64; 3];
        for pixel in picture.rgb.chunks_exact(3) {
            for (sum, &byte) in sums.iter_mut().zip(pixel) {
                *sum += u64::from(byte);
            }
        }
        let pixels = (picture.width * picture.height).max(1) as f64;
        let means = sums.map(|sum| sum as f64 / pixels);
        picture.map(&means.map(|mean| table(|byte| mean + (byte - mean) * (1.0 - now.amount))));
    }
}

/// Rotates colours about the grey axis (Rodrigues' rotation): greys and the sum of the channels do not change.
#[derive(Debug, Clone)]
pub(super) struct Hue;

impl Operator for Hue {
    fn look(&mut self, picture: &mut Picture<'_>, now: &Moment<'_>) {
        // In 65,536ths, so that rounding is the same on every machine.
        let (sin, cos) = now.amount.to_radians().sin_cos();
        let fixed = |x: f64| (x * 65536.0).round() as i32;
        let ahead = fixed((1.0 - cos) / 3.0 - sin / 3.0_f64.sqrt());
        let behind = fixed((1.0 - cos) / 3.0 + sin / 3.0_f64.sqrt());
        let own = 65536 - ahead - behind;
        for pixel in picture.rgb.chunks_exact_mut(3) {
            let rgb = [pixel[0], pixel[1], pixel[2]].map(i32::from);
            for (c, byte) in pixel.iter_mut().enumerate() {
                let sum = own * rgb[c] + ahead * rgb[(c + 1) % 3] + behind * rgb[(c + 2) % 3];
                *byte = ((sum + 32768) >> 16).clamp(0, 255) as u8;
            }
        }
    }
}

/// Scales every channel and adds to it, by amounts that are drawn for every episode: the same for all channels, and for each.
#[derive(Debug, Clone)]
pub(super) struct Colors {
    /// A factor and a summand from -1 to 1: of all channels, then of each.
    draws: [[f64; 2]; 4],
}

impl Colors {
    pub(super) const fn new() -> Self {
        Colors { draws: [[0.0; 2]; 4] }
    }
}

impl Operator for Colors {
    fn begin(&mut self, _: Image<'_>, dice: Seed) {
        let mut rng = dice.rng();
        self.draws = self.draws.map(|draws| draws.map(|_| rng.uniform(-1.0, 1.0)));
    }

    fn look(&mut self, picture: &mut Picture<'_>, now: &Moment<'_>) {
        let [all, each @ ..] = self.draws;
        picture.map(&each.map(|each| {
            let factor = 1.0 + now.amount * (all[0] + each[0]) / 2.0;
            let summand = now.amount * (all[1] + each[1]) / 2.0 * 127.5;
            table(|byte| byte * factor + summand)
        }));
    }
}

/// What becomes of each byte.
fn table(new: impl Fn(f64) -> f64) -> [u8; 256] {
    std::array::from_fn(|byte| new(byte as f64).round().clamp(0.0, 255.0) as u8)
}
