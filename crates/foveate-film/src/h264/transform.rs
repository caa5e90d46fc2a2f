//! The 4x4 integer transform and its quantiser (ITU-T H.264, 8.5; Malvar et al. 2003).
//!
//! Blocks are row-major, and so are frequencies until [`ZIGZAG`] orders them for coding.

use super::cavlc::MAX_LEVEL;

/// Row-major index of the n-th coefficient in coding order.
pub(crate) const ZIGZAG: [usize; 16] = [0, 1, 4, 8, 5, 2, 3, 6, 9, 12, 13, 10, 7, 11, 14, 15];

/// Multipliers of the quantiser by `qp % 6`, for the three kinds of positions.
const QUANT: [[i32; 3]; 6] = [
    [13107, 5243, 8066],
    [11916, 4660, 7490],
    [10082, 4194, 6554],
    [9362, 3647, 5825],
    [8192, 3355, 5243],
    [7282, 2893, 4559],
];
/// Step sizes by `qp % 6`, for the same kinds of positions.
const DEQUANT: [[i32; 3]; 6] =
    [[10, 16, 13], [11, 18, 14], [13, 20, 16], [14, 23, 18], [16, 25, 20], [18, 29, 23]];
/// Kind of each position: both frequencies even, both odd, mixed.
const KIND: [usize; 16] = [0, 2, 0, 2, 2, 1, 2, 1, 0, 2, 0, 2, 2, 1, 2, 1];

/// Chroma quantiser parameter for luma parameters 30 to 51; below 30 the two are equal.
const CHROMA_QP: [i32; 22] =
    [29, 30, 31, 32, 32, 33, 34, 34, 35, 35, 36, 36, 37, 37, 37, 38, 38, 38, 39, 39, 39, 39];

/// The chroma quantiser parameter that belongs to a luma parameter.
pub(crate) fn chroma_qp(qp: i32) -> i32 {
    if qp < 30 { qp } else { CHROMA_QP[(qp - 30) as usize] }
}

/// A quantiser for one parameter, with intra or inter rounding.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quantiser {
    multiply: [i32; 16],
    step: [i32; 16],
    shift: i32,
    octave: i32,
    /// Added before the shift: a third of a step for intra, a sixth for inter blocks.
    round: i32,
}

impl Quantiser {
    pub(crate) fn new(qp: i32, intra: bool) -> Self {
        let (octave, tone) = (qp / 6, (qp % 6) as usize);
        let shift = 15 + octave;
        Quantiser {
            multiply: KIND.map(|kind| QUANT[tone][kind]),
            step: KIND.map(|kind| DEQUANT[tone][kind]),
            shift,
            octave,
            round: (1 << shift) / if intra { 3 } else { 6 },
        }
    }

    /// Quantises frequencies to levels in place, from index `first` on (1 omits DC); returns whether any
    /// level is nonzero.
    pub(crate) fn quantise(&self, block: &mut [i32; 16], first: usize) -> bool {
        let mut any = 0;
        for (value, multiply) in block.iter_mut().zip(&self.multiply).skip(first) {
            let level = ((value.abs() * multiply + self.round) >> self.shift).min(MAX_LEVEL);
            any |= level;
            *value = if *value < 0 { -level } else { level };
        }
        any != 0
    }

    /// Quantises DC coefficients, which their transform has scaled once more.
    pub(crate) fn quantise_means(&self, means: &mut [i32]) -> bool {
        let mut any = 0;
        for mean in means {
            let wide = i64::from(mean.abs()) * i64::from(self.multiply[0]) + 2 * i64::from(self.round);
            let level = ((wide >> (self.shift + 1)) as i32).min(MAX_LEVEL);
            any |= level;
            *mean = if *mean < 0 { -level } else { level };
        }
        any != 0
    }

    /// Converts levels back to frequencies.
    pub(crate) fn restore(&self, block: &mut [i32; 16], first: usize) {
        for (value, step) in block.iter_mut().zip(&self.step).skip(first) {
            *value = (*value * step) << self.octave;
        }
    }

    /// Converts luma DC levels back to frequencies, after [`hadamard4`].
    pub(crate) fn restore_luma_means(&self, means: &mut [i32; 16]) {
        let scale = 16 * self.step[0];
        for mean in means {
            *mean = if self.octave >= 6 {
                (*mean * scale) << (self.octave - 6)
            } else {
                (*mean * scale + (1 << (5 - self.octave))) >> (6 - self.octave)
            };
        }
    }

    /// Converts chroma DC levels back to frequencies, after [`hadamard2`].
    pub(crate) fn restore_chroma_means(&self, means: &mut [i32; 4]) {
        for mean in means {
            *mean = ((*mean * 16 * self.step[0]) << self.octave) >> 5;
        }
    }
}

/// Transforms differences to frequencies.
pub(crate) fn forward(block: &mut [i32; 16]) {
    let pass = |[a, b, c, d]: [i32; 4]| {
        let (s0, s1, d0, d1) = (a + d, b + c, a - d, b - c);
        [s0 + s1, 2 * d0 + d1, s0 - s1, d0 - 2 * d1]
    };
    rows_then_columns(block, pass);
}

/// Transforms frequencies to differences, rounded.
pub(crate) fn inverse(block: &mut [i32; 16]) {
    let pass = |[a, b, c, d]: [i32; 4]| {
        let (s, t, u, v) = (a + c, a - c, (b >> 1) - d, b + (d >> 1));
        [s + v, t + u, t - u, s - v]
    };
    rows_then_columns(block, pass);
    for value in block {
        *value = (*value + 32) >> 6;
    }
}

/// Transform of the sixteen DC coefficients of an intra macroblock; its own inverse up to a factor.
pub(crate) fn hadamard4(means: &mut [i32; 16]) {
    let pass = |[a, b, c, d]: [i32; 4]| {
        let (s0, s1, d0, d1) = (a + b, c + d, a - b, c - d);
        [s0 + s1, s0 - s1, d0 - d1, d0 + d1]
    };
    rows_then_columns(means, pass);
}

/// Transform of the four DC coefficients of a chroma macroblock; its own inverse up to a factor.
pub(crate) fn hadamard2(means: &mut [i32; 4]) {
    let [a, b, c, d] = *means;
    *means = [a + b + c + d, a - b + c - d, a + b - c - d, a - b - c + d];
}

fn rows_then_columns(block: &mut [i32; 16], pass: impl Fn([i32; 4]) -> [i32; 4]) {
    for y in 0..4 {
        let row = pass([block[4 * y], block[4 * y + 1], block[4 * y + 2], block[4 * y + 3]]);
        block[4 * y..4 * y + 4].copy_from_slice(&row);
    }
    for x in 0..4 {
        let column = pass([block[x], block[x + 4], block[x + 8], block[x + 12]]);
        for (y, value) in column.into_iter().enumerate() {
            block[4 * y + x] = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foveate_core::Seed;

    fn noise(amplitude: f64, seed: u64) -> [i32; 16] {
        let mut rng = Seed::root(seed).rng();
        std::array::from_fn(|_| rng.uniform(-amplitude, amplitude) as i32)
    }

    #[test]
    fn what_comes_back_is_within_the_quantiser_step() {
        for qp in 10..=51 {
            let quantiser = Quantiser::new(qp, true);
            // The quantiser step is 0.625 at qp 0 and doubles every six.
            let step = 0.625 * 2_f64.powf(f64::from(qp) / 6.0);
            for seed in 0..50 {
                let block = noise(255.0, seed);
                let mut back = block;
                forward(&mut back);
                quantiser.quantise(&mut back, 0);
                quantiser.restore(&mut back, 0);
                inverse(&mut back);
                let error = block.iter().zip(back).map(|(a, b)| f64::from((a - b).pow(2))).sum::<f64>();
                let rms = (error / 16.0).sqrt();
                assert!(rms <= 0.7 * step + 0.8, "qp {qp}, seed {seed}: {rms} against a step of {step}");
            }
        }
    }

    #[test]
    fn means_come_back_too() {
        for qp in 10..=51 {
            let quantiser = Quantiser::new(qp, true);
            let step = 0.625 * 2_f64.powf(f64::from(qp) / 6.0);
            for seed in 0..20 {
                let means = noise(255.0, seed).map(|m| m * 16);
                let mut back = means;
                hadamard4(&mut back);
                back = back.map(|v| (v + 1) >> 1);
                quantiser.quantise_means(&mut back);
                hadamard4(&mut back);
                quantiser.restore_luma_means(&mut back);
                // In units of a reconstructed DC coefficient; 64 of them are one level of brightness.
                for (before, after) in means.iter().zip(back) {
                    let error = f64::from(before * 4 - after).abs() / 64.0;
                    assert!(error <= step + 1.0, "qp {qp}, seed {seed}: {error} against {step}");
                }
                let mut four: [i32; 4] = std::array::from_fn(|i| means[i]);
                let before = four;
                hadamard2(&mut four);
                quantiser.quantise_means(&mut four);
                hadamard2(&mut four);
                quantiser.restore_chroma_means(&mut four);
                for (before, after) in before.iter().zip(four) {
                    let error = f64::from(before * 4 - after).abs() / 64.0;
                    assert!(error <= step + 1.0, "qp {qp}, seed {seed}: {error} against {step}");
                }
            }
        }
    }

    #[test]
    fn flat_blocks_have_one_frequency() {
        let mut block = [7; 16];
        forward(&mut block);
        assert_eq!(block[0], 7 * 16);
        assert!(block[1..].iter().all(|&v| v == 0));
        let mut block = [0; 16];
        block[0] = 64 * 5;
        inverse(&mut block);
        assert_eq!(block, [5; 16]);
    }

    #[test]
    fn the_zigzag_visits_every_place_once() {
        let mut places = ZIGZAG;
        places.sort_unstable();
        assert_eq!(places, std::array::from_fn(|i| i));
    }
}
