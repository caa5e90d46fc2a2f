//! Random directions for the feature maps of [`foveate_kernels::kernel_vote`], drawn from a [`Seed`].
//!
//! All of it is arithmetic, square roots and the normal numbers of [`foveate_core::Rng`] (which take a logarithm): the
//! same seed gives the same directions wherever runs are the same.

use foveate_core::{Rng, Seed};
use serde::{Deserialize, Serialize};

/// How the directions of an ensemble belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ensemble {
    /// Every direction is normal by itself: equation 10 of the paper is for these.
    Independent,
    /// Blocks of as many directions as they have numbers, at right angles to each other, every rotation of a block as
    /// likely as any other; lengths as of normal directions. Less variance than independent ones, no bias.
    #[default]
    BlockOrthogonal,
    /// Blocks at right angles made of d ⌈ln d⌉ random rotations in planes of two axes, after a random order and signs of
    /// the axes: cheaper, and close to uniform.
    Givens,
}

/// How long directions are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lengths {
    /// As long as an independent normal vector: unbiased.
    #[default]
    Chi,
    /// √d, the root of the mean square: less variance, a little bias. Independent directions keep their own length.
    Constant,
}

impl Ensemble {
    /// Draws `m` directions of `d` numbers each: `[m, d]`, row-major.
    pub fn draw(self, lengths: Lengths, m: usize, d: usize, seed: Seed) -> Vec<f32> {
        if self == Ensemble::Independent {
            let mut rng = seed.child("independent directions", 0).rng();
            return (0..m * d).map(|_| rng.normal() as f32).collect();
        }
        let mut out = Vec::with_capacity(m * d);
        for block in 0..m.div_ceil(d) {
            let seed = seed.child("block", block as u64);
            let mut rng = seed.rng();
            let rows = match self {
                Ensemble::Givens => givens(d, &mut rng),
                _ => haar(d, &mut rng),
            };
            let mut rng = seed.child("lengths", 0).rng();
            for row in rows.chunks_exact(d).take(m - block * d) {
                let length = match lengths {
                    Lengths::Chi => (0..d).map(|_| rng.normal().powi(2)).sum::<f64>().sqrt(),
                    Lengths::Constant => (d as f64).sqrt(),
                };
                out.extend(row.iter().map(|x| (x * length) as f32));
            }
        }
        out
    }
}

/// `[d, d]`: an orthogonal matrix, uniformly: Gram–Schmidt on normal rows, whose "R" has a positive diagonal.
fn haar(d: usize, rng: &mut Rng) -> Vec<f64> {
    let mut rows: Vec<f64> = (0..d * d).map(|_| rng.normal()).collect();
    for i in 0..d {
        let (done, rest) = rows.split_at_mut(i * d);
        let row = &mut rest[..d];
        // Twice is enough: after the second pass nothing but rounding is left along the rows before.
        for _ in 0..2 {
            for before in done.chunks_exact(d) {
                let along = dot(row, before);
                row.iter_mut().zip(before).for_each(|(x, b)| *x -= along * b);
            }
        }
        let length = dot(row, row).sqrt();
        for x in row {
            *x /= length;
        }
    }
    rows
}

/// `[d, d]`: a random order of the axes with random signs, then d ⌈ln d⌉ rotations by random angles in planes of two random axes.
fn givens(d: usize, rng: &mut Rng) -> Vec<f64> {
    let mut rows = vec![0.0; d * d];
    let mut axes: Vec<usize> = (0..d).collect();
    for i in 0..d {
        // Few rotations leave a direction near its axis; any axis must be as likely.
        axes.swap(i, i + rng.below((d - i) as u64) as usize);
        rows[i * d + axes[i]] = if rng.below(2) == 0 { 1.0 } else { -1.0 };
    }
    for _ in 0..d * ceil_ln(d) {
        let a = rng.below(d as u64) as usize;
        let b = (a + 1 + rng.below(d as u64 - 1) as usize) % d;
        // A uniform angle without a cosine: two normal numbers, brought to length 1.
        let (x, y) = (rng.normal(), rng.normal());
        let length = (x * x + y * y).sqrt();
        let (cos, sin) = (x / length, y / length);
        for row in rows.chunks_exact_mut(d) {
            let (p, q) = (row[a], row[b]);
            row[a] = cos * p - sin * q;
            row[b] = sin * p + cos * q;
        }
    }
    rows
}

/// ⌈ln d⌉ by multiplication: a library's logarithm might differ between machines.
fn ceil_ln(d: usize) -> usize {
    let (mut power, mut n) = (1.0, 0);
    while power < d as f64 {
        power *= std::f64::consts::E;
        n += 1;
    }
    n
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Ensemble; 3] = [Ensemble::Independent, Ensemble::BlockOrthogonal, Ensemble::Givens];

    #[test]
    fn logarithms_round_up() {
        assert_eq!([1, 2, 3, 4, 7, 8, 20, 21, 54, 55].map(ceil_ln), [0, 1, 2, 2, 2, 3, 3, 4, 4, 5]);
    }

    #[test]
    fn blocks_are_orthogonal_and_as_long_as_they_should_be() {
        for ensemble in [Ensemble::BlockOrthogonal, Ensemble::Givens] {
            for (m, d) in [(1, 1), (3, 4), (4, 4), (15, 4), (40, 16), (5, 1)] {
                for lengths in [Lengths::Chi, Lengths::Constant] {
                    let all = ensemble.draw(lengths, m, d, Seed::root(3));
                    assert_eq!(all.len(), m * d);
                    let rows: Vec<Vec<f64>> =
                        all.chunks_exact(d).map(|row| row.iter().map(|&x| f64::from(x)).collect()).collect();
                    for (i, a) in rows.iter().enumerate() {
                        let length = dot(a, a).sqrt();
                        if lengths == Lengths::Constant {
                            assert!((length - (d as f64).sqrt()).abs() < 1e-6, "{ensemble:?}: {length}");
                        }
                        // Up to rounding to single precision.
                        for b in &rows[i + 1..((i / d + 1) * d).min(m)] {
                            let cos = dot(a, b) / length / dot(b, b).sqrt();
                            assert!(cos.abs() < 1e-6, "{ensemble:?}, m = {m}, d = {d}: cosine {cos}");
                        }
                    }
                }
            }
        }
    }

    /// Mean 0, covariance 1, and the mean fourth power of a normal number, direction by direction.
    #[test]
    fn directions_are_normal_one_by_one() {
        for ensemble in ALL {
            for d in [1, 2, 4, 7] {
                let draws = 20_000;
                let (mut mean, mut square, mut fourth, mut mixed) = (0.0, 0.0, 0.0, 0.0);
                for i in 0..draws {
                    let all = ensemble.draw(Lengths::Chi, d, d, Seed::root(7).child("draw", i));
                    // The last direction of a block is the one that could go wrong.
                    let row = &all[(d - 1) * d..];
                    let x = f64::from(row[0]);
                    mean += x;
                    square += x * x;
                    fourth += x.powi(4);
                    mixed += if d > 1 { x * f64::from(row[1]) } else { 0.0 };
                }
                let n = draws as f64;
                let what = format!("{ensemble:?}, d = {d}");
                assert!((mean / n).abs() < 0.035, "{what}: mean {}", mean / n);
                assert!((square / n - 1.0).abs() < 0.06, "{what}: variance {}", square / n);
                assert!((mixed / n).abs() < 0.035, "{what}: covariance {}", mixed / n);
                // Few rotations mix few axes: Givens products are not quite uniform.
                let slack = if ensemble == Ensemble::Givens { 1.2 } else { 0.4 };
                assert!((fourth / n - 3.0).abs() < slack, "{what}: fourth moment {}", fourth / n);
            }
        }
    }

    #[test]
    fn a_longer_ensemble_begins_like_a_shorter_one() {
        for ensemble in ALL {
            let long = ensemble.draw(Lengths::Chi, 11, 4, Seed::root(1));
            let short = ensemble.draw(Lengths::Chi, 6, 4, Seed::root(1));
            assert_eq!(long[..24], short);
            assert_ne!(long, ensemble.draw(Lengths::Chi, 11, 4, Seed::root(2)));
        }
    }

    /// Goldens: a change here changes every agent that was evolved with random features.
    #[test]
    fn draws_are_stable_across_versions() {
        let first = |ensemble: Ensemble| ensemble.draw(Lengths::Chi, 2, 4, Seed::root(0))[..2].to_vec();
        assert_eq!(ALL.map(first), GOLDEN);
    }
    const GOLDEN: [[f32; 2]; 3] =
        [[-2.4800122, -0.7948886], [-2.083047, -2.0029182], [-0.18663809, -2.1696346]];
}
