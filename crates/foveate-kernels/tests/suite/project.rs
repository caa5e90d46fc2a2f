//! Compares queries and keys of patches, through votes, to the definition, starting from pixels; every shape
//! and level.

use foveate_kernels::Level;
use foveate_kernels::project::{Linear, Projector, Scales};
use foveate_kernels::vote::Votes;
use proptest::prelude::*;

/// A small case: picture size, patch, stride, length of a query, and a seed for pixels and weights.
#[derive(Debug, Clone, Copy)]
struct Case {
    width: usize,
    height: usize,
    patch: usize,
    stride: usize,
    dim: usize,
    seed: u64,
}

impl Case {
    /// A stream of numbers below 2^16.
    fn numbers(self) -> impl Iterator<Item = u32> {
        let mut state = self.seed;
        std::iter::repeat_with(move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 48) as u32
        })
    }
}

/// Importance from the definition, in double precision.
fn define(case: Case, rgb: &[u8], query: Linear<'_>, key: Linear<'_>, scale: f64) -> Vec<f64> {
    let Case { width, height, patch, stride, dim, .. } = case;
    let mut rows = Vec::new();
    for top in (0..=height - patch).step_by(stride) {
        for left in (0..=width - patch).step_by(stride) {
            let mut pixels = Vec::new();
            for y in top..top + patch {
                for x in left..left + patch {
                    pixels.extend(rgb[(y * width + x) * 3..][..3].iter().map(|&b| f64::from(b) / 255.0));
                }
            }
            let linear = |layer: Linear<'_>| -> Vec<f64> {
                let row = |o: usize| layer.weight[o * pixels.len()..].iter().zip(&pixels);
                (0..dim)
                    .map(|o| f64::from(layer.bias[o]) + row(o).map(|(&w, p)| f64::from(w) * p).sum::<f64>())
                    .collect()
            };
            rows.push((linear(query), linear(key)));
        }
    }
    let mut importance = vec![0.0; rows.len()];
    for (q, _) in &rows {
        let logits: Vec<f64> =
            rows.iter().map(|(_, k)| scale * q.iter().zip(k).map(|(q, k)| q * k).sum::<f64>()).collect();
        let peak = logits.iter().copied().fold(f64::MIN, f64::max);
        let sum: f64 = logits.iter().map(|x| (x - peak).exp2()).sum();
        for (importance, x) in importance.iter_mut().zip(&logits) {
            *importance += (x - peak).exp2() / sum;
        }
    }
    importance
}

#[track_caller]
fn check(case: Case) {
    let Case { width, height, patch, stride, dim, .. } = case;
    let mut numbers = case.numbers();
    // Few different bytes, so that some patches are equal.
    let colours = 1 + numbers.next().expect("endless") as usize % 3;
    let rgb: Vec<u8> =
        numbers.by_ref().take(width * height * 3).map(|n| (n as usize % colours * 120) as u8).collect();
    let mut weights = |n: usize| -> Vec<f32> {
        numbers.by_ref().take(n).map(|n| (n as f32 / 65_536.0 - 0.5) / patch as f32).collect()
    };
    let inputs = patch * patch * 3;
    let (qw, qb, kw, kb) = (weights(dim * inputs), weights(dim), weights(dim * inputs), weights(dim));
    let (query, key) = (Linear { weight: &qw, bias: &qb }, Linear { weight: &kw, bias: &kb });
    let want = define(case, &rgb, query, key, 1.5);

    let mut projector = Projector::new(width, height, patch, stride, dim);
    projector.set(query, key, Scales { query: 0.75, key: 2.0 });
    let (mut strip, mut embedded) = (projector.strip(), projector.embedded());
    let mut votes = Votes::new(want.len(), dim);
    let mut portable: Option<Vec<f32>> = None;
    for level in Level::available() {
        let mut importance = vec![0.0; want.len()];
        projector.project(level, &rgb, &mut strip, &mut embedded);
        votes.compute(level, &embedded, &mut importance);
        for (i, (got, want)) in importance.iter().zip(&want).enumerate() {
            let error = (f64::from(*got) - want).abs();
            assert!(error < 2e-5 * want, "{case:?}, {level}: importance[{i}] is {got}, defined as {want}");
        }
        assert_eq!(&importance, portable.get_or_insert(importance.clone()), "{case:?}, {level}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_shape(
        (patch, stride, dim) in (1..=9_usize, 1..=12_usize, 1..=9_usize),
        (right, down) in (0..60_usize, 0..25_usize),
        seed in any::<u64>(),
    ) {
        check(Case { width: patch + right, height: patch + down, patch, stride, dim, seed });
    }
}

#[test]
fn shapes_at_the_edges() {
    let case = |width, height, patch, stride, dim| check(Case { width, height, patch, stride, dim, seed: 5 });
    case(1, 1, 1, 1, 1); // one patch of one pixel
    case(7, 7, 7, 4, 4); // the patch is the picture
    case(96, 7, 7, 4, 4); // one row of patches
    case(7, 96, 7, 4, 4); // one column of patches
    case(95, 31, 7, 4, 4); // 23 columns as in the published agent, none left over
    case(20, 20, 3, 9, 4); // gaps between patches
    case(40, 12, 4, 1, 17); // queries and keys over several registers
}

#[test]
fn weights_that_overflow_saturate() {
    let mut projector = Projector::new(9, 9, 3, 2, 4);
    let weight: Vec<f32> = (0..108).map(|i| if i % 2 == 0 { f32::MAX } else { f32::MIN }).collect();
    let layer = Linear { weight: &weight, bias: &[f32::MAX; 4] };
    projector.set(layer, layer, Scales { query: 1.0, key: 1.0 });
    let rgb: Vec<u8> = (0..243).map(|i| (i * 31 % 256) as u8).collect();
    let (mut strip, mut embedded) = (projector.strip(), projector.embedded());
    let mut portable: Option<Vec<f32>> = None;
    for level in Level::available() {
        let mut importance = vec![0.0; 16];
        projector.project(level, &rgb, &mut strip, &mut embedded);
        Votes::new(16, 4).compute(level, &embedded, &mut importance);
        assert!(importance.iter().all(|v| v.is_finite()), "{level}: {importance:?}");
        assert_eq!(&importance, portable.get_or_insert(importance.clone()), "{level}");
    }
}
