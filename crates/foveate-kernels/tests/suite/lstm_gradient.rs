//! Compares the gradient of the controller to its definition in double precision, and the bits on every
//! level.

use foveate_kernels::Level;
use foveate_kernels::dense::{self, Dense};
use foveate_kernels::lstm::{CellState, CellWeights, LstmCell};
use foveate_kernels::lstm_gradient::{Gradient, Learner, Targets};
use foveate_kernels::project::Linear;

/// Inputs, hidden units, actions; steps of burn-in and steps; every n-th weight is checked.
struct Case(usize, usize, usize, usize, usize, usize);

/// Sizes below, at and above sixteen; steps below and above a chunk.
const CASES: [Case; 8] = [
    Case(1, 1, 1, 0, 1, 1),
    Case(2, 3, 2, 0, 9, 1),
    Case(20, 16, 3, 0, 12, 5),
    Case(20, 16, 3, 25, 70, 11),
    Case(15, 16, 16, 3, 33, 13),
    Case(16, 5, 2, 4, 64, 1),
    Case(5, 17, 20, 6, 8, 3),
    Case(3, 40, 17, 2, 7, 17),
];

/// Pseudo-random numbers in −1 ..= 1.
fn numbers(n: usize, salt: usize) -> Vec<f32> {
    let mut state = salt as u64;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..n).map(next).collect()
}

/// The five learned tensors and `bias_hh`, concatenated.
struct Weights {
    flat: Vec<f32>,
    ends: [usize; 6],
}

impl Weights {
    fn drawn(&Case(inputs, hidden, actions, ..): &Case, salt: usize) -> Weights {
        let lens =
            [4 * hidden * inputs, 4 * hidden * hidden, 4 * hidden, actions * hidden, actions, 4 * hidden];
        let mut end = 0;
        let ends = lens.map(|len| {
            end += len;
            end
        });
        // Weights of a usual size: sums stay where the functions are nonlinear.
        let size = 2.0 / (hidden as f32).sqrt();
        Weights { flat: numbers(end, salt).into_iter().map(|w| w * size).collect(), ends }
    }

    fn tensors<T>(flat: &[T], ends: [usize; 6]) -> [&[T]; 6] {
        let mut start = 0;
        ends.map(|end| &flat[std::mem::replace(&mut start, end)..end])
    }

    fn parts(&self) -> (CellWeights<'_>, Linear<'_>) {
        let [weight_ih, weight_hh, bias_ih, weight, bias, bias_hh] = Self::tensors(&self.flat, self.ends);
        (CellWeights { weight_ih, weight_hh, bias_ih, bias_hh }, Linear { weight, bias })
    }

    fn learner(&self, &Case(inputs, hidden, actions, ..): &Case) -> Learner {
        let mut learner = Learner::new(inputs, hidden, actions);
        let (cell, output) = self.parts();
        learner.set(cell, output);
        learner
    }

    /// Returns the squared error and adds its gradient to `flat`.
    fn study(&self, learner: &mut Learner, level: Level, x: &[f32], wanted: &[f32], flat: &mut [f32]) -> f64 {
        self.study_for(learner, level, x, Targets::Actions(wanted), flat)
    }

    /// Returns the loss and adds its gradient to `flat`.
    fn study_for(
        &self,
        learner: &mut Learner,
        level: Level,
        x: &[f32],
        targets: Targets<'_>,
        flat: &mut [f32],
    ) -> f64 {
        let [a, b, c, d, e, _] = self.ends;
        let places = [0..a, a..b, b..c, c..d, d..e];
        let [weight_ih, weight_hh, bias_ih, output_weight, output_bias] =
            flat.get_disjoint_mut(places).expect("they lie one behind the other");
        let gradient = Gradient { weight_ih, weight_hh, bias_ih, output_weight, output_bias };
        learner.study(level, x, targets, gradient)
    }
}

/// Direct implementation of the definition, in double precision.
struct Slow {
    inputs: usize,
    ends: [usize; 6],
    h: Vec<f64>,
    c: Vec<f64>,
}

impl Slow {
    /// Advances one step; returns the action.
    fn step(&mut self, flat: &[f64], x: &[f32]) -> Vec<f64> {
        let [of_x, of_h, bias_ih, of_action, bias, bias_hh] = Weights::tensors(flat, self.ends);
        let n = self.h.len();
        let dot = |w: &[f64], v: &[f64], row: usize| -> f64 {
            w[row * v.len()..].iter().zip(v).map(|(w, v)| w * v).sum()
        };
        let x: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
        let z: Vec<f64> = (0..4 * n)
            .map(|row| bias_ih[row] + bias_hh[row] + dot(of_x, &x, row) + dot(of_h, &self.h, row))
            .collect();
        let logistic = |x: f64| 1.0 / (1.0 + (-x).exp());
        for u in 0..n {
            self.c[u] = logistic(z[n + u]) * self.c[u] + logistic(z[u]) * z[2 * n + u].tanh();
            self.h[u] = logistic(z[3 * n + u]) * self.c[u].tanh();
        }
        bias.iter().enumerate().map(|(a, bias)| (bias + dot(of_action, &self.h, a)).tanh()).collect()
    }

    /// The error of a sequence that starts with this state.
    fn error(&self, flat: &[f64], x: &[f32], wanted: &[f32], actions: usize) -> f64 {
        self.loss(flat, x, wanted.chunks_exact(actions), |a, &wanted| (a - f64::from(wanted)).powi(2))
    }

    /// The sum of `loss` over actions and what each step's are judged by.
    fn loss<'a, T: 'a>(
        &self,
        flat: &[f64],
        x: &[f32],
        judged_by: impl Iterator<Item = &'a [T]>,
        loss: impl Fn(f64, &T) -> f64,
    ) -> f64 {
        let mut run = Slow { inputs: self.inputs, ends: self.ends, h: self.h.clone(), c: self.c.clone() };
        x.chunks_exact(self.inputs)
            .zip(judged_by)
            .flat_map(|(x, judged_by)| run.step(flat, x).into_iter().zip(judged_by))
            .map(|(a, judged_by)| loss(a, judged_by))
            .sum()
    }
}

#[track_caller]
fn check(index: usize, case: &Case) {
    let &Case(inputs, hidden, actions, burn_in, steps, every) = case;
    let weights = Weights::drawn(case, 7 + index);
    let mut learner = weights.learner(case);
    let (x, wanted) = (numbers((burn_in + steps) * inputs, 1), numbers(steps * actions, 2));
    let mut gradient = vec![0.0; weights.flat.len()];
    let error = weights.study(&mut learner, Level::best(), &x, &wanted, &mut gradient);

    // The state after the burn-in does not change with the weights: no gradient flows into it.
    let mut flat: Vec<f64> = weights.flat.iter().map(|&w| f64::from(w)).collect();
    let mut slow = Slow { inputs, ends: weights.ends, h: vec![0.0; hidden], c: vec![0.0; hidden] };
    let (before, x) = x.split_at(burn_in * inputs);
    before.chunks_exact(inputs).for_each(|x| drop(slow.step(&flat, x)));
    let truth = slow.error(&flat, x, &wanted, actions);
    assert!((error - truth).abs() < 1e-5 * truth, "case {index}: error {error}, by definition {truth}");

    let largest = gradient.iter().fold(0.0, |most: f64, g| most.max(f64::from(g.abs())));
    for i in (0..weights.ends[4]).step_by(every) {
        let (w, step) = (flat[i], 1e-5);
        let mut at = |w: f64| {
            flat[i] = w;
            slow.error(&flat, x, &wanted, actions)
        };
        let truth = (at(w + step) - at(w - step)) / (2.0 * step);
        at(w);
        let got = f64::from(gradient[i]);
        assert!(
            (got - truth).abs() <= 1e-4 * truth.abs() + 1e-6 * largest,
            "case {index}, weight {i}: {got}, by differences {truth}, the largest is {largest}"
        );
    }
    assert!(gradient[weights.ends[4]..].iter().all(|&g| g == 0.0), "bias_hh learns through bias_ih");
}

#[test]
fn matches_differences_of_the_definition() {
    for (index, case) in CASES.iter().enumerate() {
        check(index, case);
    }
}

#[test]
fn weights_count_every_squared_error() {
    for (index, case) in CASES.iter().enumerate() {
        let &Case(inputs, hidden, actions, burn_in, steps, every) = case;
        let drawn = Weights::drawn(case, 27 + index);
        let (x, wanted) = (numbers((burn_in + steps) * inputs, 1), numbers(steps * actions, 2));
        let weights: Vec<f32> = numbers(steps * actions, 3).iter().map(|w| w.abs()).collect();
        let mut first: Option<(u64, Vec<f32>)> = None;
        for level in Level::available() {
            let (mut learner, mut gradient) = (drawn.learner(case), vec![0.0; drawn.flat.len()]);
            let targets = Targets::Weighted(&wanted, &weights);
            let loss = drawn.study_for(&mut learner, level, &x, targets, &mut gradient);
            let bits = (loss.to_bits(), gradient);
            assert_eq!(first.get_or_insert(bits.clone()), &bits, "{level}, case {index}");
        }
        let (loss, gradient) = first.expect("there is a level");

        let mut flat: Vec<f64> = drawn.flat.iter().map(|&w| f64::from(w)).collect();
        let mut slow = Slow { inputs, ends: drawn.ends, h: vec![0.0; hidden], c: vec![0.0; hidden] };
        let (before, x) = x.split_at(burn_in * inputs);
        before.chunks_exact(inputs).for_each(|x| drop(slow.step(&flat, x)));
        let judged: Vec<(f64, f64)> =
            wanted.iter().zip(&weights).map(|(&a, &w)| (f64::from(a), f64::from(w))).collect();
        let weighted = |flat: &[f64]| {
            slow.loss(flat, x, judged.chunks_exact(actions), |a, (wanted, w)| w * (a - wanted).powi(2))
        };
        let (got, truth) = (f64::from_bits(loss), weighted(&flat));
        assert!((got - truth).abs() < 1e-5 * truth, "case {index}: {got}, by definition {truth}");
        let largest = gradient.iter().fold(0.0, |most: f64, g| most.max(f64::from(g.abs())));
        for i in (0..drawn.ends[4]).step_by(every) {
            let (w, step) = (flat[i], 1e-5);
            let mut at = |w: f64| {
                flat[i] = w;
                weighted(&flat)
            };
            let truth = (at(w + step) - at(w - step)) / (2.0 * step);
            at(w);
            let got = f64::from(gradient[i]);
            assert!(
                (got - truth).abs() <= 1e-4 * truth.abs() + 1e-6 * largest,
                "case {index}, weight {i}: {got}, by differences {truth}, the largest is {largest}"
            );
        }
    }
}

#[test]
fn the_gradient_of_the_inputs_matches_differences() {
    for (index, case) in CASES.iter().enumerate() {
        let &Case(inputs, hidden, actions, burn_in, steps, _) = case;
        let weights = Weights::drawn(case, 17 + index);
        let (mut x, wanted) = (numbers((burn_in + steps) * inputs, 1), numbers(steps * actions, 2));
        let mut first: Option<Vec<f32>> = None;
        for level in Level::available() {
            let mut learner = weights.learner(case).with_input_gradient();
            let (cell, output) = weights.parts();
            learner.set(cell, output);
            let (mut plain, mut other) = (vec![0.0; weights.flat.len()], vec![0.0; weights.flat.len()]);
            let error = weights.study(&mut learner, level, &x, &wanted, &mut other);
            assert_eq!(error, weights.study(&mut weights.learner(case), level, &x, &wanted, &mut plain));
            assert_eq!(plain, other, "the gradient of the weights is the same");
            let mut dx = vec![1.0; steps * inputs];
            learner.input_gradient(level, &mut dx);
            assert_eq!(first.get_or_insert(dx.clone()), &dx, "{level}, case {index}");
        }
        let dx = first.expect("there is a level");
        let flat: Vec<f64> = weights.flat.iter().map(|&w| f64::from(w)).collect();
        let mut slow = Slow { inputs, ends: weights.ends, h: vec![0.0; hidden], c: vec![0.0; hidden] };
        let (before, x) = x.split_at_mut(burn_in * inputs);
        before.chunks_exact(inputs).for_each(|x| drop(slow.step(&flat, x)));
        let largest = dx.iter().fold(0.0, |most: f64, g| most.max(f64::from(g.abs())));
        for i in (0..dx.len()).step_by(dx.len().div_ceil(30)) {
            let old = x[i];
            let mut at = |number: f32| {
                x[i] = number;
                (slow.error(&flat, x, &wanted, actions), f64::from(number))
            };
            let ((more, high), (less, low)) = (at(old + 1e-3), at(old - 1e-3));
            at(old);
            let (got, truth) = (f64::from(dx[i]), (more - less) / (high - low));
            assert!(
                (got - truth).abs() <= 1e-4 * truth.abs() + 1e-5 * largest,
                "case {index}, input {i}: {got}, by differences {truth}, the largest is {largest}"
            );
        }
    }
}

#[test]
fn every_level_gives_the_same_bits_and_adds_them() {
    for (index, case) in CASES.iter().enumerate() {
        let &Case(inputs, _, actions, burn_in, steps, _) = case;
        let weights = Weights::drawn(case, 3 + index);
        let (x, wanted) = (numbers((burn_in + steps) * inputs, 4), numbers(steps * actions, 5));
        let mut first: Option<(u64, Vec<u32>)> = None;
        for level in Level::available() {
            let mut learner = weights.learner(case);
            // The result must not depend on what an earlier, longer sequence left in the scratch space.
            let mut other = vec![0.0; weights.flat.len()];
            let (long, more) = (numbers((steps + 40) * inputs, 8), numbers((steps + 40) * actions, 9));
            weights.study(&mut learner, level, &long, &more, &mut other);
            let mut gradient = vec![0.0; weights.flat.len()];
            let error = weights.study(&mut learner, level, &x, &wanted, &mut gradient);
            let mut fresh = vec![1.0; weights.flat.len()];
            weights.study(&mut weights.learner(case), level, &x, &wanted, &mut fresh);
            for (i, (sum, g)) in fresh.iter().zip(&gradient).enumerate() {
                assert_eq!(*sum, 1.0 + g, "{level}, case {index}, weight {i}");
            }
            let bits = (error.to_bits(), gradient.iter().map(|g| g.to_bits()).collect());
            assert_eq!(&bits, first.get_or_insert(bits.clone()), "{level}, case {index}");
        }
    }
}

#[test]
fn goes_forward_as_the_controller_does_to_the_bit() {
    for (index, case) in CASES.iter().enumerate() {
        let &Case(inputs, hidden, actions, burn_in, steps, _) = case;
        let weights = Weights::drawn(case, 5 + index);
        let (mut cell, mut output) = (LstmCell::new(inputs, hidden), Dense::new(hidden, actions));
        let (of_cell, of_output) = weights.parts();
        cell.set(of_cell);
        output.set(of_output);
        let mut state = CellState::new(hidden);
        let x = numbers((burn_in + steps) * inputs, 6);
        let mut acted = vec![0.0; (burn_in + steps) * actions];
        for (x, a) in x.chunks_exact(inputs).zip(acted.chunks_exact_mut(actions)) {
            cell.step(Level::best(), x, &mut state);
            output.apply(Level::best(), state.h(), a);
            dense::tanh(Level::best(), a);
        }
        let mut gradient = vec![0.0; weights.flat.len()];
        let wanted = &mut acted[burn_in * actions..];
        let mut learner = weights.learner(case);
        assert_eq!(weights.study(&mut learner, Level::best(), &x, wanted, &mut gradient), 0.0);
        assert!(gradient.iter().all(|&g| g == 0.0), "nothing to learn");
        wanted[0] += 0.5;
        let error = weights.study(&mut learner, Level::best(), &x, wanted, &mut gradient);
        assert!((error - 0.25).abs() < 1e-6, "{error}");
    }
}

#[test]
fn no_steps_give_no_error() {
    let weights = Weights::drawn(&CASES[2], 1);
    let mut gradient = vec![0.0; weights.flat.len()];
    let mut learner = weights.learner(&CASES[2]);
    for steps in [0, 3] {
        let x = numbers(steps * 20, 1);
        assert_eq!(weights.study(&mut learner, Level::best(), &x, &[], &mut gradient), 0.0);
    }
    assert!(gradient.iter().all(|&g| g == 0.0));
}
