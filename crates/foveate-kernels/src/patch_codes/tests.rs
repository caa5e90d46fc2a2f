use super::*;
use crate::Embedded;
use crate::project::Scales;

/// Weights that own their numbers.
struct Weights {
    shape: CodesShape,
    flatten: Flatten,
    divisor: f64,
    affine: bool,
    numbers: Vec<Vec<f32>>,
}

/// Numbers within ±`size` that look random.
fn numbers(salt: u64, len: usize, size: f32) -> Vec<f32> {
    let mut state = salt.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..len).map(|_| next() * size).collect()
}

impl Weights {
    fn new(shape: CodesShape, dim: usize, flatten: Flatten, affine: bool, size: f32) -> Self {
        let CodesShape { codes, code_dim, message, .. } = shape;
        let lens = [
            (codes * code_dim, 1.0),
            (dim * code_dim, size),
            (dim, size),
            (dim * shape.key_inputs(), size),
            (dim, size),
            (message * shape.value_inputs(), 0.3),
            (message, 0.3),
            (shape.area(), 1.5),
            (shape.area(), 0.5),
            (message, 1.5),
            (message, 0.5),
        ];
        let numbers = lens.iter().enumerate().map(|(i, &(len, size))| numbers(i as u64 + 1, len, size));
        Weights { shape, flatten, divisor: 1.7, affine, numbers: numbers.collect() }
    }

    fn borrowed(&self) -> CodesWeights<'_> {
        let n = &self.numbers;
        let affine = |i: usize| self.affine.then(|| Affine { weight: &n[i], bias: &n[i + 1] });
        CodesWeights {
            table: &n[0],
            query: Linear { weight: &n[1], bias: &n[2] },
            key: Linear { weight: &n[3], bias: &n[4] },
            value: Linear { weight: &n[5], bias: &n[6] },
            divisor: self.divisor,
            flatten: self.flatten,
            value_norm: affine(7),
            message_norm: affine(9),
        }
    }

    /// The definition in double precision: messages `[codes, message]` and importance `[patches]`.
    fn define(&self, pixels: &[u8], present: &[f32], shared: &[f32]) -> (Vec<Vec<f64>>, Vec<f64>) {
        let shape = &self.shape;
        let CodesShape { width, height, frames, patch, .. } = *shape;
        let n = &self.numbers;
        let layer = |weight: &[f32], bias: &[f32], x: &[f64]| -> Vec<f64> {
            let rows = weight.chunks_exact(x.len()).zip(bias);
            rows.map(|(w, &b)| w.iter().zip(x).map(|(&w, x)| f64::from(w) * x).sum::<f64>() + f64::from(b))
                .collect()
        };
        let normalise = |x: &mut [f64], affine: Option<(&[f32], &[f32])>| {
            let mean = x.iter().sum::<f64>() / x.len() as f64;
            let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64;
            for (i, x) in x.iter_mut().enumerate() {
                *x = (*x - mean) / (variance + 1e-5).sqrt();
                if let Some((weight, bias)) = affine {
                    *x = *x * f64::from(weight[i]) + f64::from(bias[i]);
                }
            }
        };
        let (mut keys, mut values, mut there) = (vec![], vec![], vec![]);
        for (p, _) in present.iter().enumerate().filter(|(_, is)| **is != 0.0) {
            there.push(p);
            let (top, left) = (p / (width / patch) * patch, p % (width / patch) * patch);
            let pixel = |t: usize, i: usize| {
                let (y, x) = (top + i / patch, left + i % patch);
                f64::from(pixels[(t * height + y) * width + x]) / 255.0
            };
            let (area, times) = (shape.area(), frames - 1);
            let difference = |t: usize, i: usize| pixel(t + 1, i) - pixel(t, i);
            let mut key: Vec<f64> = match self.flatten {
                Flatten::TimeFastest => (0..area * times).map(|i| difference(i % times, i / times)).collect(),
                Flatten::TimeSlowest => (0..area * times).map(|i| difference(i / area, i % area)).collect(),
            };
            key.extend(shared.iter().map(|&x| f64::from(x)));
            keys.push(layer(&n[3], &n[4], &key));
            let mut value = vec![];
            for t in 0..frames {
                let mut one: Vec<f64> = (0..area).map(|i| pixel(t, i)).collect();
                normalise(&mut one, self.affine.then_some((&n[7][..], &n[8][..])));
                value.extend(one);
            }
            values.push(layer(&n[5], &n[6], &value));
        }
        let mut importance = vec![0.0; shape.patches()];
        let mut messages = vec![];
        for row in n[0].chunks_exact(shape.code_dim) {
            let row: Vec<f64> = row.iter().map(|&x| f64::from(x)).collect();
            let query = layer(&n[1], &n[2], &row);
            let logits: Vec<f64> = keys
                .iter()
                .map(|key| query.iter().zip(key).map(|(q, k)| q * k).sum::<f64>() / self.divisor)
                .collect();
            let peak = logits.iter().copied().fold(f64::MIN, f64::max);
            let powers: Vec<f64> = logits.iter().map(|x| (x - peak).exp()).collect();
            let sum: f64 = powers.iter().sum();
            let mut message = vec![0.0; shape.message];
            for ((&p, power), value) in there.iter().zip(&powers).zip(&values) {
                importance[p] += power / sum;
                message.iter_mut().zip(value).for_each(|(m, v)| *m += power / sum * v);
            }
            message = message.into_iter().map(|m| m.max(0.0)).collect();
            normalise(&mut message, self.affine.then_some((&n[9][..], &n[10][..])));
            messages.push(message);
        }
        (messages, importance)
    }
}

/// A stack of pictures with flat areas of several colours, an edge that moves, and some noise.
fn pictures(shape: &CodesShape, salt: u64) -> Vec<u8> {
    let CodesShape { width, height, frames, .. } = *shape;
    let noise = numbers(salt, frames * height * width, 127.0);
    let mut pixels = vec![];
    for t in 0..frames {
        for y in 0..height {
            for x in 0..width {
                let flat = if 2 * x < width { 100 } else { 30 };
                let edge = x + t > width - 5;
                let noisy = 3 * y > 2 * height;
                let at = (t * height + y) * width + x;
                pixels.push(if noisy { (128.0 + noise[at]) as u8 } else { flat + u8::from(edge) * 90 });
            }
        }
    }
    pixels
}

/// `pixels` with the patch `order[i]` at place i.
fn permute(shape: &CodesShape, pixels: &[u8], order: &[usize]) -> Vec<u8> {
    let CodesShape { width, height, frames, patch, .. } = *shape;
    let columns = width / patch;
    let mut out = pixels.to_vec();
    for (to, &from) in order.iter().enumerate() {
        for t in 0..frames {
            for row in 0..patch {
                let at = |p: usize| (t * height + p / columns * patch + row) * width + p % columns * patch;
                out[at(to)..at(to) + patch].copy_from_slice(&pixels[at(from)..at(from) + patch]);
            }
        }
    }
    out
}

const SMALL: CodesShape =
    CodesShape { width: 24, height: 18, frames: 3, patch: 3, shared: 2, codes: 21, code_dim: 5, message: 7 };

/// As the published agents, with fewer patches.
const USUAL: CodesShape =
    CodesShape { width: 48, height: 36, frames: 4, patch: 6, shared: 3, codes: 64, code_dim: 8, message: 16 };

const WIDE: CodesShape = CodesShape { code_dim: 17, message: 33, codes: 16, ..SMALL };

#[track_caller]
fn check(weights: &Weights, present: Option<&[f32]>, salt: u64, tolerance: f64) {
    let shape = weights.shape;
    let mut codes = PatchCodes::new(shape);
    codes.set(weights.borrowed());
    let pixels = pictures(&shape, salt);
    let shared = numbers(salt + 1, shape.shared, 1.0);
    let all = vec![1.0; shape.patches()];
    let (messages, importance) = weights.define(&pixels, present.unwrap_or(&all), &shared);
    let mut first = None;
    for level in Level::available() {
        let mut scratch = codes.scratch();
        // Twice with the same scratch space, after other pictures.
        codes.compute(level, &pictures(&shape, salt + 9), None, &shared, &mut scratch).expect("patches");
        codes.compute(level, &pixels, present, &shared, &mut scratch).expect("patches");
        let there = present.map_or(shape.patches(), |p| p.iter().filter(|&&p| p != 0.0).count());
        assert!((1..there).contains(&scratch.distinct()), "{} of {there}", scratch.distinct());
        let pitch = scratch.pitch();
        for (code, want) in messages.iter().enumerate() {
            for (d, want) in want.iter().enumerate() {
                let got = f64::from(scratch.message()[d * pitch + code]);
                assert!((got - want).abs() < tolerance, "{level}: code {code}, number {d}: {got}, {want}");
            }
        }
        for (p, (&got, want)) in scratch.importance().iter().zip(&importance).enumerate() {
            assert!((f64::from(got) - want).abs() < tolerance, "{level}: patch {p}: {got}, {want}");
        }
        assert_eq!(scratch.wins().iter().sum::<u32>() as usize, shape.codes);
        let bits = (scratch.message().to_vec(), scratch.importance().to_vec(), scratch.wins().to_vec());
        assert_eq!(&bits, first.get_or_insert(bits.clone()), "{level}");
    }
}

#[test]
fn matches_the_definition_on_every_level() {
    for (salt, shape) in [(1, SMALL), (2, USUAL), (3, WIDE)] {
        for affine in [false, true] {
            for flatten in [Flatten::TimeFastest, Flatten::TimeSlowest] {
                check(&Weights::new(shape, 6, flatten, affine, 0.4), None, salt, 2e-4);
            }
        }
        // Logits of hundreds.
        check(&Weights::new(shape, 6, Flatten::TimeFastest, false, 8.0), None, salt, 2e-2);
        let present: Vec<f32> = (0..shape.patches()).map(|p| f32::from(u8::from(p % 3 != 0))).collect();
        check(&Weights::new(shape, 4, Flatten::TimeSlowest, true, 0.4), Some(&present), salt, 2e-4);
    }
}

#[test]
fn the_order_of_patches_changes_no_bit() {
    for shape in [SMALL, USUAL] {
        let mut codes = PatchCodes::new(shape);
        codes.set(Weights::new(shape, 6, Flatten::TimeFastest, true, 0.4).borrowed());
        let n = shape.patches();
        let pixels = pictures(&shape, 5);
        let shared = numbers(6, shape.shared, 1.0);
        let mut plain = codes.scratch();
        codes.compute(Level::best(), &pixels, None, &shared, &mut plain).expect("patches");
        for step in [5, 7, 11, 13] {
            let order: Vec<usize> = (0..n).map(|i| (i * step + 3) % n).collect();
            let mut other = codes.scratch();
            let permuted = permute(&shape, &pixels, &order);
            codes.compute(Level::best(), &permuted, None, &shared, &mut other).expect("patches");
            assert_eq!(plain.message(), other.message());
            let moved: Vec<f32> = order.iter().map(|&from| plain.importance()[from]).collect();
            assert_eq!(other.importance(), moved);
        }
    }
}

#[test]
fn parts_give_the_message_again_and_others_another() {
    for (salt, shape) in [(1, SMALL), (2, USUAL), (3, WIDE)] {
        let missing: Vec<f32> = (0..shape.patches()).map(|p| f32::from(u8::from(p % 3 != 0))).collect();
        for (size, present) in [(0.4, None), (0.4, Some(&*missing)), (8.0, None)] {
            let mut codes = PatchCodes::new(shape);
            codes.set(Weights::new(shape, 6, Flatten::TimeFastest, true, size).borrowed());
            let shared = numbers(salt + 1, shape.shared, 1.0);
            let (mut weights, mut values) =
                (vec![0.0; shape.codes * shape.patches()], vec![0.0; shape.patches() * shape.message]);
            let mut first = None;
            for level in Level::available() {
                let mut scratch = codes.scratch();
                codes
                    .compute(level, &pictures(&shape, salt), present, &shared, &mut scratch)
                    .expect("patches");
                codes.parts(level, &mut scratch, &mut weights, &mut values);
                let message = scratch.message().to_vec();
                scratch.message.fill(Block::default());
                codes.give(level, &weights, &values, &mut scratch);
                assert_eq!(scratch.message(), message, "{level}");
                // The same weights times a power of two; an importance is a sum of shares.
                let twice: Vec<f32> = weights.iter().map(|x| 2.0 * x).collect();
                codes.give(level, &twice, &values, &mut scratch);
                assert_eq!(scratch.message(), message, "{level}");
                for (patch, &importance) in scratch.importance().iter().enumerate() {
                    let rows = weights.chunks_exact(shape.patches());
                    let sum: f32 = rows.map(|row| row[patch] / row.iter().sum::<f32>()).sum();
                    assert!((sum - importance).abs() < 1e-3, "{level}, patch {patch}: {sum}, {importance}");
                }
                // A message of one patch alone; a code that takes nothing.
                let mut one = vec![0.0; weights.len()];
                one.chunks_exact_mut(shape.patches()).skip(1).for_each(|row| row[1] = 0.3);
                codes.give(level, &one, &values, &mut scratch);
                let got: Vec<f32> =
                    scratch.message().chunks_exact(scratch.pitch()).map(|row| row[1]).collect();
                let value: Vec<f32> =
                    values[shape.message..][..shape.message].iter().map(|x| x.max(0.0)).collect();
                let of_value =
                    |f: &dyn Fn(f32) -> f32| value.iter().map(|&x| f(x)).sum::<f32>() / value.len() as f32;
                let mean = of_value(&|x| x);
                let deviation = (of_value(&|x| (x - mean).powi(2)) + EPSILON as f32).sqrt();
                let weights_of = Weights::new(shape, 6, Flatten::TimeFastest, true, size);
                let affine = weights_of.numbers[9].iter().zip(&weights_of.numbers[10]);
                let want = value.iter().zip(affine).map(|(x, (w, b))| (x - mean) / deviation * w + b);
                let want: Vec<f32> = want.collect();
                assert!(got.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-3), "{got:?} {want:?}");
                let none = scratch.message().chunks_exact(scratch.pitch()).map(|row| row[0]);
                assert!(none.eq(weights_of.numbers[10].iter().copied()), "{level}");
                let bits = (weights.clone(), values.clone());
                assert_eq!(&bits, first.get_or_insert(bits.clone()), "{level}");
            }
        }
    }
}

#[test]
fn brightness_makes_no_difference_but_contrast_does() {
    let mut codes = PatchCodes::new(USUAL);
    codes.set(Weights::new(USUAL, 6, Flatten::TimeFastest, false, 0.4).borrowed());
    let mut scratch = codes.scratch();
    let mut run = |pixels: &[u8]| {
        codes.compute(Level::best(), pixels, None, &[0.0; 3], &mut scratch).expect("patches");
        (scratch.message().to_vec(), scratch.distinct(), scratch.wins().to_vec())
    };
    let len = 4 * 48 * 36;
    let (flat, one, wins) = run(&vec![7; len]);
    assert_eq!((one, wins[0]), (1, 64), "the first of equal patches wins");
    assert!(flat.chunks_exact(64).all(|row| row == [row[0]; 64]), "all codes are equal");
    // Still patches that differ have equal keys, so codes are equal, too.
    let still: Vec<u8> = numbers(8, 48 * 36, 100.0).iter().map(|x| (x + 100.0) as u8).collect();
    let (message, many, _) = run(&still.repeat(4));
    assert!(many == 48 && message != flat);
    assert!(message.chunks_exact(64).all(|row| row == [row[0]; 64]), "all codes are equal");
    // Half of the picture is brighter.
    let two = (0..len).map(|i| if i % 48 < 24 { 7 } else { 200 }).collect::<Vec<u8>>();
    let (message, one, _) = run(&two);
    assert_eq!((message, one), (flat.clone(), 1));
    // A difference of 255 is not one of -1: the left half becomes brighter, the right half darker.
    let wraps: Vec<u8> =
        (0..len).map(|i| [[0, 255], [1, 0]][usize::from(i % 48 >= 24)][i / (48 * 36) / 2]).collect();
    assert_eq!(run(&wraps).1, 2);
}

#[test]
fn nothing_present_is_an_error_and_huge_weights_stay_finite() {
    let mut weights = Weights::new(SMALL, 6, Flatten::TimeFastest, true, 0.4);
    let mut codes = PatchCodes::new(SMALL);
    let mut scratch = codes.scratch();
    let pixels = pictures(&SMALL, 3);
    let none = vec![0.0; SMALL.patches()];
    let result = codes.compute(Level::best(), &pixels, Some(&none), &[0.0; 2], &mut scratch);
    assert_eq!(result, Err(NothingPresent));
    for numbers in &mut weights.numbers[1..7] {
        for x in numbers {
            *x *= 1e38;
        }
    }
    codes.set(weights.borrowed());
    let mut first = None;
    for level in Level::available() {
        codes.compute(level, &pixels, None, &[1.0, -1.0], &mut scratch).expect("patches");
        assert!(scratch.message().iter().all(|x| x.is_finite()), "{level}");
        let message = scratch.message().to_vec();
        assert_eq!(&message, first.get_or_insert(message.clone()), "{level}");
    }
}

#[test]
fn codes_have_queries_and_keys() {
    let (codes, message, dim) = (21, 5, 3);
    let (wq, wk) = (numbers(1, dim * message, 1.0), numbers(2, dim * message, 1.0));
    let (bq, bk) = (numbers(3, dim, 1.0), numbers(4, dim, 1.0));
    let mut latent = Latent::new(codes, message, dim);
    let (query, key) = (Linear { weight: &wq, bias: &bq }, Linear { weight: &wk, bias: &bk });
    latent.set(query, key, Scales { query: 2.0, key: 0.5 });
    let columns = numbers(5, message * 32, 1.0);
    let layer = |w: &[f32], b: &[f32], scale: f32, code: usize| -> Vec<f32> {
        let row = |o: usize| (0..message).map(|d| w[o * message + d] * columns[d * 32 + code]).sum::<f32>();
        (0..dim).map(|o| (row(o) + b[o]) * scale).collect()
    };
    let mut want = Embedded::new(codes, dim);
    for code in 0..codes {
        want.set(code, &layer(&wq, &bq, 2.0, code), &layer(&wk, &bk, 0.5, code));
    }
    for level in Level::available() {
        let mut got = latent.embedded();
        latent.project(level, &columns, &mut got);
        for (got, want) in got.rows().iter().zip(want.rows()) {
            assert!(
                got.0.iter().zip(&want.0).all(|(a, b)| (a - b).abs() < 1e-5),
                "{level}: {got:?} {want:?}"
            );
        }
    }
}

/// Its gradient for `d`, `[steps, codes, message]`, on the last steps of `stacks`, one vector per tensor in the
/// order of [`Weights::numbers`] without the table; and the codes of all stacks.
fn study(
    learner: &mut CodesLearner,
    weights: &Weights,
    level: Level,
    stacks: &[Vec<u8>],
    d: &[f32],
) -> (Vec<Vec<f32>>, Vec<f32>) {
    learner.set(weights.borrowed());
    learner.clear();
    for pixels in stacks {
        learner.see(level, pixels, None);
    }
    let mut out = vec![0.0; stacks.len() * learner.outputs()];
    learner.forward(level, &mut out);
    learner.backward(level, d);
    let mut sums: Vec<Vec<f32>> = weights.numbers[1..].iter().map(|w| vec![0.0; w.len()]).collect();
    let [query_weight, query_bias, key_weight, _, value_weight, value_bias, a, b, c, e] = &mut sums[..]
    else {
        panic!("ten tensors");
    };
    let (value_norm, message_norm) = ([&mut a[..], b], [&mut c[..], e]);
    learner.add_to(CodesGradient {
        query_weight,
        query_bias,
        key_weight,
        value_weight,
        value_bias,
        value_norm,
        message_norm,
    });
    (sums, out)
}

#[test]
fn gradients_match_differences_of_the_definition() {
    let cases = [
        (SMALL, Flatten::TimeSlowest, true),
        (SMALL, Flatten::TimeFastest, false),
        (USUAL, Flatten::TimeFastest, true),
    ];
    for (case, (shape, flatten, affine)) in cases.into_iter().enumerate() {
        let mut weights = Weights::new(shape, 6, flatten, affine, 0.8);
        let mut learner = CodesLearner::new(shape, 6);
        let stacks: Vec<Vec<u8>> = (0..4).map(|i| pictures(&shape, 20 + i)).collect();
        let d = numbers(77, 3 * learner.outputs(), 1.0);
        let (gradient, out) = study(&mut learner, &weights, Level::best(), &stacks, &d);
        let all = vec![1.0; shape.patches()];
        let shared = numbers(4, shape.shared, 1.0);
        let mut codes = PatchCodes::new(shape);
        codes.set(weights.borrowed());
        let mut scratch = codes.scratch();
        for (pixels, out) in stacks.iter().zip(out.chunks_exact(learner.outputs())) {
            codes.compute(Level::best(), pixels, None, &shared, &mut scratch).expect("patches");
            for (i, x) in out.iter().enumerate() {
                let acted = scratch.message()[i % shape.message * scratch.pitch() + i / shape.message];
                assert!((x - acted).abs() < 1e-3, "case {case}, number {i}: {x}, the agent's is {acted}");
            }
        }
        let sum = |weights: &Weights| -> f64 {
            let of = |(pixels, d): (&Vec<u8>, &[f32])| -> f64 {
                let messages = weights.define(pixels, &all, &shared).0;
                messages.iter().flatten().zip(d).map(|(x, &d)| x * f64::from(d)).sum()
            };
            stacks[1..].iter().zip(d.chunks_exact(learner.outputs())).map(of).sum()
        };
        for (tensor, gradient) in gradient.iter().enumerate() {
            let largest = gradient.iter().fold(0.0_f32, |most, g| most.max(g.abs()));
            let still = tensor == 3 || (tensor >= 6 && !affine);
            assert_eq!(largest == 0.0, still, "case {case}, tensor {tensor}");
            if tensor >= 6 && !affine {
                continue;
            }
            // A prime, so that all rows and columns have their turn.
            for i in (0..gradient.len()).step_by((gradient.len() / 12).max(1) | 1) {
                let old = weights.numbers[tensor + 1][i];
                let mut at = |w: f32| {
                    weights.numbers[tensor + 1][i] = w;
                    (sum(&weights), f64::from(w))
                };
                let ((more, high), (less, low)) = (at(old + 1e-4), at(old - 1e-4));
                at(old);
                let (got, truth) = (f64::from(gradient[i]), (more - less) / (high - low));
                assert!(
                    (got - truth).abs() <= 1e-3 * truth.abs() + 2e-4 * f64::from(largest) + 1e-6,
                    "case {case}, tensor {tensor}, number {i}: {got}, by differences {truth}, the largest is {largest}"
                );
            }
        }
    }
}

#[test]
fn gradients_have_the_same_bits_on_every_level_and_in_every_order_of_patches() {
    for (shape, affine) in [(SMALL, true), (USUAL, false), (WIDE, true)] {
        let weights = Weights::new(shape, 6, Flatten::TimeFastest, affine, 0.8);
        let mut stacks: Vec<Vec<u8>> = (0..3).map(|i| pictures(&shape, 30 + i)).collect();
        let d = numbers(78, 2 * shape.codes * shape.message, 1.0);
        let mut first = None;
        let n = shape.patches();
        let order: Vec<usize> = (0..n).map(|i| (i * 5 + 3) % n).collect();
        for round in 0..2 {
            for level in Level::available() {
                let mut learner = CodesLearner::new(shape, 6);
                // More steps than later must leave nothing behind.
                let long = [&stacks[..], &stacks].concat();
                study(&mut learner, &weights, level, &long, &d.repeat(2));
                let got = study(&mut learner, &weights, level, &stacks, &d);
                assert!(first.get_or_insert(got.clone()) == &got, "{level}, round {round}");
            }
            stacks = stacks.iter().map(|pixels| permute(&shape, pixels, &order)).collect();
        }
    }
}
