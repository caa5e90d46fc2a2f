//! The gradient against finite differences of a direct implementation in double precision.

use super::*;

/// Numbers from −1 to 1.
fn numbers(n: usize, salt: usize) -> Vec<f32> {
    (0..n).map(|i| (((i + 31 * salt) * 7919 % 1009) as f32 - 504.0) / 504.0).collect()
}

/// One learner's shape, and all its weights in one vector: `weight_ih`, `weight_hh`, `bias_ih`, scores, their biases,
/// weight and bias of each layer.
#[derive(Clone)]
struct Case {
    sizes: SensorySizes,
    sensors: usize,
    layers: Vec<usize>,
    flat: Vec<f32>,
}

impl Case {
    fn new(sizes: SensorySizes, sensors: usize, layers: &[usize]) -> Self {
        let mut case = Case { sizes, sensors, layers: layers.to_vec(), flat: vec![] };
        case.flat = case.lengths().into_iter().enumerate().flat_map(|(i, n)| numbers(n, i + 3)).collect();
        case
    }

    fn lengths(&self) -> Vec<usize> {
        let SensorySizes { shared, hidden, codes, .. } = self.sizes;
        let mut all = vec![4 * hidden * (shared + 1), 4 * hidden * hidden, 4 * hidden, codes * hidden, codes];
        let mut inputs = codes;
        for &outputs in &self.layers {
            all.extend([outputs * inputs, outputs]);
            inputs = outputs;
        }
        all
    }

    fn parts<'a, T>(&self, mut flat: &'a [T]) -> Vec<&'a [T]> {
        let split = |n: usize| {
            let (part, rest) = flat.split_at(n);
            flat = rest;
            part
        };
        self.lengths().into_iter().map(split).collect()
    }

    fn learner(&self) -> Learner {
        let mut learner = Learner::new(self.sizes, self.sensors, &self.layers);
        let parts = self.parts(&self.flat);
        let half: Vec<f32> = parts[2].iter().map(|x| x / 2.0).collect();
        let cell = CellWeights { weight_ih: parts[0], weight_hh: parts[1], bias_ih: &half, bias_hh: &half };
        learner.set(cell, parts[3], parts[4]);
        for (index, layer) in parts[5..].chunks_exact(2).enumerate() {
            learner.set_layer(index, Linear { weight: layer[0], bias: layer[1] });
        }
        learner
    }

    /// The error in double precision. The state after `burn_in` steps is `start`'s where it is given, so that no
    /// derivative includes those steps.
    fn error(&self, flat: &[f64], inputs: &[f32], wanted: &[f32], start: Option<&State>) -> (f64, State) {
        let outputs = *self.layers.last().expect("one at least");
        let burn_in = inputs.len() / (self.sensors + self.sizes.shared) - wanted.len() / outputs;
        let inputs: Vec<f64> = inputs.iter().map(|&x| f64::from(x)).collect();
        let (given, before) = self.outputs(flat, &inputs, burn_in, start);
        let error = given.iter().zip(wanted).map(|(a, &w)| (a - f64::from(w)).powi(2)).sum();
        (error, before)
    }

    /// The outputs after `burn_in` steps, and the state after those steps; see [`Case::error`].
    fn outputs(
        &self,
        flat: &[f64],
        inputs: &[f64],
        burn_in: usize,
        start: Option<&State>,
    ) -> (Vec<f64>, State) {
        let SensorySizes { squash, .. } = self.sizes;
        let parts = self.parts(flat);
        let mut given = vec![];
        let before = self.run(flat, inputs, burn_in, start, |seen, scores| {
            let message = (0..self.sizes.codes).map(|code| {
                let weights = self.weights(scores, code);
                let sum: f64 = weights.iter().zip(seen).map(|(w, o)| w * o).sum();
                if squash { sum.tanh() } else { sum }
            });
            let mut x: Vec<f64> = message.collect();
            for layer in parts[5..].chunks_exact(2) {
                x = affine(layer[0], layer[1], &x).into_iter().map(f64::tanh).collect();
            }
            given.extend(x);
        });
        (given, before)
    }

    /// The weight of every sensor for a code, from `[sensors][codes]` scores.
    fn weights(&self, scores: &[Vec<f64>], code: usize) -> Vec<f64> {
        let total: f64 = scores.iter().map(|q| q[code].exp()).sum();
        let weigh = |q: f64| match self.sizes.activation {
            Activation::Tanh => q.tanh(),
            Activation::Sigmoid => logistic(q),
            Activation::Softmax => q.exp() / total,
        };
        scores.iter().map(|q| weigh(q[code])).collect()
    }

    /// The error of the names, and the state after `burn_in` steps; see [`Case::error`].
    fn names_error(
        &self,
        flat: &[f64],
        inputs: &[f32],
        burn_in: usize,
        start: Option<&State>,
    ) -> (f64, State) {
        let inputs: Vec<f64> = inputs.iter().map(|&x| f64::from(x)).collect();
        let mut error = 0.0;
        let before = self.run(flat, &inputs, burn_in, start, |_, scores| {
            let weights: Vec<Vec<f64>> =
                (0..self.sizes.codes).map(|code| self.weights(scores, code)).collect();
            for sensor in 0..self.sensors {
                let total: f64 = weights.iter().map(|w| (10.0 * w[sensor]).exp()).sum();
                let codes = (0..self.sizes.codes).filter(|&code| code != sensor);
                let others: f64 = codes.map(|code| weights[code][sensor].powi(2)).sum();
                error += (total.ln() - 10.0 * weights[sensor][sensor] + 0.1 * others) / self.sensors as f64;
            }
        });
        (error, before)
    }

    /// Calls `each` with the sensors' numbers and the scores of every sensor, `[sensors][codes]`, after every step but the
    /// first `burn_in`. Returns the state after those.
    fn run(
        &self,
        flat: &[f64],
        inputs: &[f64],
        burn_in: usize,
        start: Option<&State>,
        mut each: impl FnMut(&[f64], &[Vec<f64>]),
    ) -> State {
        let SensorySizes { shared, hidden, .. } = self.sizes;
        let parts = self.parts(flat);
        let per_step = self.sensors + shared;
        let mut state = vec![(vec![0.0; hidden], vec![0.0; hidden]); self.sensors];
        let mut before = state.clone();
        for (t, numbers) in inputs.chunks_exact(per_step).enumerate() {
            if t == burn_in {
                before = state.clone();
                if let Some(start) = start {
                    state.clone_from(start);
                }
            }
            let (seen, shared) = numbers.split_at(self.sensors);
            for (&o, (h, c)) in seen.iter().zip(&mut state) {
                let x: Vec<f64> = std::iter::once(o).chain(shared.iter().copied()).collect();
                let zeros = vec![0.0; 4 * hidden];
                let (of_x, of_h) = (affine(parts[0], parts[2], &x), affine(parts[1], &zeros, h));
                let z: Vec<f64> = of_x.iter().zip(of_h).map(|(a, b)| a + b).collect();
                for u in 0..hidden {
                    c[u] = logistic(z[hidden + u]) * c[u] + logistic(z[u]) * z[2 * hidden + u].tanh();
                    h[u] = logistic(z[3 * hidden + u]) * c[u].tanh();
                }
            }
            if t >= burn_in {
                let scores: Vec<Vec<f64>> =
                    state.iter().map(|(h, _)| affine(parts[3], parts[4], h)).collect();
                each(seen, &scores);
            }
        }
        before
    }
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// `weight · x + bias`, where `weight` is `[outputs, inputs]`.
fn affine(weight: &[f64], bias: &[f64], x: &[f64]) -> Vec<f64> {
    let rows = weight.chunks_exact(x.len()).zip(bias);
    rows.map(|(row, b)| b + row.iter().zip(x).map(|(w, x)| w * x).sum::<f64>()).collect()
}

/// h and c of every sensor.
type State = Vec<(Vec<f64>, Vec<f64>)>;

fn cases() -> Vec<Case> {
    [
        (1, 8, 16, 5, &[1][..], Activation::Tanh, true),
        (8, 8, 32, 7, &[19, 8], Activation::Tanh, true),
        (2, 3, 5, 1, &[2], Activation::Sigmoid, false),
        (3, 11, 17, 6, &[4, 5, 3], Activation::Softmax, true),
    ]
    .map(|(shared, hidden, codes, sensors, layers, activation, squash)| {
        Case::new(SensorySizes { shared, hidden, codes, activation, squash }, sensors, layers)
    })
    .to_vec()
}

/// The gradient in the order of [`Case::flat`].
fn flattened(gradient: &Gradient) -> Vec<f32> {
    let Gradient { weight_ih, weight_hh, bias_ih, scores, score_bias, layers } = gradient;
    let first = [weight_ih, weight_hh, bias_ih, scores, score_bias].into_iter();
    first.chain(layers.iter().flat_map(|(weight, bias)| [weight, bias])).flatten().copied().collect()
}

/// Compares a gradient with finite differences of the error: every parameter of small cases, some of large ones.
#[track_caller]
fn check_differences(gradient: &[f32], flat: &[f64], error: impl Fn(&[f64]) -> f64) {
    let largest = gradient.iter().fold(0.0_f32, |most, g| most.max(g.abs()));
    assert!(largest > 0.01, "{largest}");
    for i in (0..flat.len()).step_by(1 + flat.len() / 300) {
        let step = 1e-5;
        let at = |change: f64| {
            let mut moved = flat.to_vec();
            moved[i] += change;
            error(&moved)
        };
        let expect = (at(step) - at(-step)) / (2.0 * step);
        let off = (f64::from(gradient[i]) - expect).abs();
        assert!(off < 2e-5 * f64::from(1.0 + largest), "parameter {i}: {} {expect}", gradient[i]);
    }
}

#[test]
fn gradients_are_those_of_finite_differences() {
    for case in cases() {
        let Case { sizes, sensors, layers, flat } = &case;
        let outputs = *layers.last().expect("one at least");
        // More steps than a chunk.
        for (burn_in, steps) in [(0, 1), (3, CHUNK + 5)] {
            let inputs = numbers((burn_in + steps) * (sensors + sizes.shared), 50);
            let wanted = numbers(steps * outputs, 60);
            let mut learner = case.learner();
            let error = learner.study(Level::best(), &inputs, &wanted);
            let flat: Vec<f64> = flat.iter().map(|&x| f64::from(x)).collect();
            let (expect, start) = case.error(&flat, &inputs, &wanted, None);
            assert!((error - expect).abs() < 1e-5 * (1.0 + expect), "{sizes:?}: {error}, {expect}");
            let got = flattened(learner.gradient());
            assert_eq!(got.len(), flat.len());
            check_differences(&got, &flat, |moved| case.error(moved, &inputs, &wanted, Some(&start)).0);
        }
    }
}

/// As above, for the names of the sensors, on every instruction set.
#[test]
fn gradients_of_names_are_those_of_finite_differences() {
    for case in cases() {
        let Case { sizes, sensors, flat, .. } = &case;
        for (burn_in, steps) in [(0, 1), (3, CHUNK + 5)] {
            let inputs = numbers((burn_in + steps) * (sensors + sizes.shared), 50);
            let mut learner = case.learner();
            let error = learner.study_names(Level::PORTABLE, &inputs, burn_in);
            let wide: Vec<f64> = flat.iter().map(|&x| f64::from(x)).collect();
            let (expect, start) = case.names_error(&wide, &inputs, burn_in, None);
            assert!((error - expect).abs() < 1e-5 * (1.0 + expect), "{sizes:?}: {error}, {expect}");
            let got = flattened(learner.gradient());
            check_differences(&got, &wide, |moved| case.names_error(moved, &inputs, burn_in, Some(&start)).0);
            for level in Level::available() {
                let same = learner.study_names(level, &inputs, burn_in);
                assert_eq!((same.to_bits(), flattened(learner.gradient())), (error.to_bits(), got.clone()));
            }
        }
    }
}

/// A linear world: the inputs of a step are a constant and a matrix times the outputs of the step before; the objective
/// is linear in the outputs.
struct LinearWorld {
    outputs: usize,
    /// `[inputs, outputs]`
    matrix: Vec<f32>,
    /// `[steps, outputs]`
    objective: Vec<f32>,
    /// The first step of each part into which no gradient flows from the part after it; ascending.
    parts: Vec<usize>,
    bound: f32,
}

impl Between for LinearWorld {
    fn pull(&mut self, t: usize, next: &[f32], pull: &mut [f32]) -> bool {
        pull.copy_from_slice(&self.objective[t * self.outputs..][..self.outputs]);
        if self.parts.contains(&(t + 1)) {
            return false;
        }
        for (d, row) in next.iter().zip(self.matrix.chunks_exact(self.outputs)) {
            for (pull, m) in pull.iter_mut().zip(row) {
                *pull += d * m;
            }
        }
        true
    }

    fn bound(&self) -> f32 {
        self.bound
    }
}

#[test]
fn gradients_flow_through_what_lies_between() {
    for case in cases() {
        let Case { sizes, sensors, layers, flat } = &case;
        let outputs = *layers.last().expect("one at least");
        let per_step = sensors + sizes.shared;
        for (steps, parts) in [(1, vec![0]), (CHUNK + 5, vec![0]), (CHUNK + 3, vec![0, 4, CHUNK])] {
            let matrix: Vec<f32> = numbers(per_step * outputs, 90).iter().map(|x| 0.4 * x).collect();
            let mut world =
                LinearWorld { outputs, matrix, objective: numbers(steps * outputs, 91), parts, bound: 1e6 };
            let flat: Vec<f64> = flat.iter().map(|&x| f64::from(x)).collect();
            let constants: Vec<f64> = numbers(steps * per_step, 92).iter().map(|&x| f64::from(x)).collect();
            // The inputs of all steps and the objective of a part, whose first step sees `inputs`, with other weights.
            let play = |flat: &[f64], before: &[f64], to: usize| {
                let mut inputs = before.to_vec();
                for t in before.len() / per_step..to {
                    let (given, _) = case.outputs(flat, &inputs, 0, None);
                    let last = &given[given.len() - outputs..];
                    let rows = world.matrix.chunks_exact(outputs);
                    let told =
                        rows.map(|row| row.iter().zip(last).map(|(&m, a)| f64::from(m) * a).sum::<f64>());
                    inputs.extend(told.zip(&constants[t * per_step..]).map(|(a, b)| a + b));
                }
                inputs
            };
            let inputs = play(&flat, &constants[..per_step], steps);
            let single: Vec<f32> = inputs.iter().map(|&x| x as f32).collect();
            let mut expect_bits = None;
            let mut got = vec![];
            for level in Level::available() {
                let mut learner = case.learner();
                learner.backpropagate(level, &single, 0, &mut world);
                got = flattened(learner.gradient());
                let bits: Vec<u32> = got.iter().map(|x| x.to_bits()).collect();
                assert_eq!(&bits, expect_bits.get_or_insert_with(|| bits.clone()), "{level}, {sizes:?}");
            }
            let largest = got.iter().fold(0.0_f32, |most, g| most.max(g.abs()));
            assert!(largest > 0.01, "{sizes:?}: {largest}");
            // A bound that nothing passes leaves one step at a time.
            let mut bounded = case.learner();
            world.bound = f32::MIN_POSITIVE;
            bounded.backpropagate(Level::best(), &single, 0, &mut world);
            assert_eq!(steps == 1, flattened(bounded.gradient()) == got, "{steps} steps");
            let ends = world.parts.iter().skip(1).copied().chain([steps]);
            let pieces: Vec<_> = world.parts.iter().copied().zip(ends).collect();
            for i in (0..flat.len()).step_by(1 + flat.len() / 60) {
                let at = |change: f64| {
                    let mut moved = flat.clone();
                    moved[i] += change;
                    let of_part = |&(from, to): &(usize, usize)| {
                        // The state before the part is that of the weights before.
                        let (_, start) = case.outputs(&flat, &inputs, from, None);
                        let mut seen = inputs[..(from + 1) * per_step].to_vec();
                        for t in from + 1..to {
                            let (given, _) = case.outputs(&moved, &seen, from, Some(&start));
                            let last = &given[given.len() - outputs..];
                            let rows = world.matrix.chunks_exact(outputs);
                            let told = rows
                                .map(|row| row.iter().zip(last).map(|(&m, a)| f64::from(m) * a).sum::<f64>());
                            seen.extend(told.zip(&constants[t * per_step..]).map(|(a, b)| a + b));
                        }
                        let (given, _) = case.outputs(&moved, &seen, from, Some(&start));
                        let objective = &world.objective[from * outputs..];
                        given.iter().zip(objective).map(|(a, &c)| a * f64::from(c)).sum::<f64>()
                    };
                    pieces.iter().map(of_part).sum::<f64>()
                };
                let step = 1e-5;
                let expect = (at(step) - at(-step)) / (2.0 * step);
                let off = (f64::from(got[i]) - expect).abs();
                assert!(
                    off < 1e-4 * f64::from(1.0 + largest),
                    "{sizes:?}, {steps}, parameter {i}: {} {expect}",
                    got[i]
                );
            }
        }
    }
}

#[test]
fn every_level_gives_the_same_bits_and_so_does_a_used_learner() {
    for case in cases() {
        let Case { sizes, sensors, layers, .. } = &case;
        let mut used = case.learner();
        let outputs = *layers.last().expect("one at least");
        for (burn_in, steps) in [(0, 2 * CHUNK), (7, 3), (0, 0), (1, CHUNK + 1)] {
            let inputs = numbers((burn_in + steps) * (sensors + sizes.shared), 70);
            let wanted = numbers(steps * outputs, 80);
            let mut expect = None;
            for level in Level::available() {
                let mut fresh = case.learner();
                for learner in [&mut fresh, &mut used] {
                    let error = learner.study(level, &inputs, &wanted);
                    let bits: Vec<u32> = flattened(learner.gradient()).iter().map(|x| x.to_bits()).collect();
                    let all = (error.to_bits(), bits);
                    assert_eq!(
                        &all,
                        expect.get_or_insert_with(|| all.clone()),
                        "{level}, {sizes:?}, {steps}"
                    );
                }
            }
        }
    }
}

#[test]
#[should_panic(expected = "5 sensors")]
fn inputs_of_another_number_of_sensors_are_refused() {
    cases()[0].learner().study(Level::best(), &[0.0; 7], &[0.0]);
}
