//! Recurrent networks: one step of a network, repeated, with its gradient through time.
//!
//! A recurrent network is a [`Network`] for one step, with some inputs that are states and the outputs that become them
//! in the next step. [`Unrolled`] keeps the tensors of every step and computes the gradient from the last step to the
//! first (Werbos 1990). At the first step of an episode the state is the initial one, and no gradient flows past it.

use foveate_kernels::Level;
use foveate_kernels::elementwise::add;

use crate::layer::Work;
use crate::network::{Activations, Network, Node};

/// A state of a recurrent network: the input that it is, and the output that replaces it. Both have one shape.
#[derive(Debug, Clone, Copy)]
pub struct StateNodes {
    /// The input, added by [`Builder::state`](crate::Builder::state).
    pub input: Node,
    /// The output.
    pub output: Node,
}

/// The tensors of some steps of a batch of sequences.
#[derive(Debug)]
pub struct Unrolled {
    states: Vec<StateNodes>,
    lens: Vec<usize>,
    batch: usize,
    steps: Vec<Activations>,
    /// `[steps, batch]`: whether a step of a sequence is the first of an episode.
    first: Vec<bool>,
    /// For each state `[batch, …]`: its input at the step.
    inputs: Vec<Vec<f32>>,
    /// Scratch space of all steps.
    work: Work,
}

impl Unrolled {
    /// Buffers for `steps` steps of `batch` sequences. The inputs of the network are its data first, then the states in
    /// this order.
    ///
    /// # Panics
    /// When input and output of a state differ in shape.
    pub fn new(net: &Network, states: &[StateNodes], steps: usize, batch: usize) -> Self {
        for state in states {
            assert_eq!(net.shape(state.input), net.shape(state.output), "shapes of a state");
        }
        let lens: Vec<usize> = states.iter().map(|state| net.shape(state.input).iter().product()).collect();
        Unrolled {
            states: states.to_vec(),
            batch,
            steps: (0..steps).map(|_| net.activations(batch)).collect(),
            first: vec![false; steps * batch],
            inputs: lens.iter().map(|len| vec![0.0; len * batch]).collect(),
            lens,
            work: Work::default(),
        }
    }

    /// The tensors of a step.
    pub fn step(&self, step: usize) -> &Activations {
        &self.steps[step]
    }

    /// The tensors of a step, to add the gradient of the loss.
    pub fn step_mut(&mut self, step: usize) -> &mut Activations {
        &mut self.steps[step]
    }

    /// Computes all steps. `data` gives the network's other inputs at a step, each `[batch, …]`; `first` is
    /// `[steps, batch]`; `begin` has the states before the first step, each `[batch, …]`, and `fresh` the state at the
    /// beginning of an episode, for each state the numbers of one sequence.
    ///
    /// # Panics
    /// When a length is wrong.
    #[allow(clippy::too_many_arguments, reason = "a network, its data and its states, each of its own kind")]
    pub fn forward<'d>(
        &mut self,
        net: &Network,
        level: Level,
        params: &[f32],
        data: impl Fn(usize) -> Vec<&'d [f32]>,
        first: &[bool],
        begin: &[&[f32]],
        fresh: &[&[f32]],
    ) {
        let Unrolled { states, lens, batch, steps, first: kept, inputs, work } = self;
        assert_eq!(first.len(), kept.len(), "first steps");
        assert!(begin.len() == states.len() && fresh.len() == states.len(), "states");
        kept.copy_from_slice(first);
        for step in 0..steps.len() {
            let (before, now) = steps.split_at_mut(step);
            for (i, input) in inputs.iter_mut().enumerate() {
                input.copy_from_slice(before.last().map_or(begin[i], |acts| acts.get(states[i].output)));
                for (sequence, &first) in first[step * *batch..][..*batch].iter().enumerate() {
                    if first {
                        input[sequence * lens[i]..][..lens[i]].copy_from_slice(fresh[i]);
                    }
                }
            }
            let mut all = data(step);
            all.extend(inputs.iter().map(|input| &input[..]));
            now[0].swap_work(work);
            net.forward(level, params, &all, *batch, &mut now[0]);
            now[0].swap_work(work);
        }
    }

    /// Sets all gradients to zero, before the caller adds that of the loss to the outputs of the steps.
    pub fn clear_gradients(&mut self) {
        self.steps.iter_mut().for_each(Activations::clear_gradients);
    }

    /// Adds the gradient with respect to the parameters to `d_params`, from the last step to the first.
    ///
    /// # Panics
    /// When a length is wrong.
    pub fn backward(&mut self, net: &Network, level: Level, params: &[f32], d_params: &mut [f32]) {
        let Unrolled { states, lens, batch, steps, first, inputs, work } = self;
        for step in (0..steps.len()).rev() {
            let (before, now) = steps.split_at_mut(step);
            now[0].swap_work(work);
            net.backward(level, params, &mut now[0], d_params);
            now[0].swap_work(work);
            let Some(previous) = before.last_mut() else { break };
            for (i, state) in states.iter().enumerate() {
                inputs[i].copy_from_slice(now[0].gradient(state.input));
                for (sequence, &first) in first[step * *batch..][..*batch].iter().enumerate() {
                    if first {
                        inputs[i][sequence * lens[i]..][..lens[i]].fill(0.0);
                    }
                }
                add(previous.gradient_mut(state.output), &inputs[i]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Add, Builder, Linear, LstmGates, Part};

    /// An LSTM of `units` units, and its states h and c.
    fn lstm(inputs: usize, units: usize) -> (Network, Vec<StateNodes>) {
        let mut net = Builder::default();
        let x = net.input("x", [inputs]);
        let h = net.state("h", [units]);
        let c = net.state("c", [units]);
        let from_x = net.layer("ih", Linear::new(4 * units), [x]);
        let from_h = net.layer("hh", Linear::new(4 * units), [h]);
        let sums = net.then(Add, [from_x, from_h]);
        let both = net.then(LstmGates::default(), [sums, c]);
        let next_h = net.then(Part { begin: 0, len: units }, [both]);
        let next_c = net.then(Part { begin: units, len: units }, [both]);
        let net = net.build(&[next_h, next_c]).expect("it fits");
        (net, vec![StateNodes { input: h, output: next_h }, StateNodes { input: c, output: next_c }])
    }

    fn numbers(n: usize, seed: u64) -> Vec<f32> {
        let mut rng = foveate_core::Seed::root(seed).rng();
        (0..n).map(|_| rng.uniform(-1.0, 1.0) as f32).collect()
    }

    #[test]
    fn the_gradient_through_time_is_that_of_the_function() {
        const STEPS: usize = 5;
        const BATCH: usize = 2;
        let (net, states) = lstm(3, 4);
        let params = numbers(net.params(), 1);
        let data = numbers(STEPS * BATCH * 3, 2);
        // The second sequence has a new episode at step 2.
        let mut first = vec![false; STEPS * BATCH];
        first[2 * BATCH + 1] = true;
        let (begin_h, begin_c) = (numbers(BATCH * 4, 3), numbers(BATCH * 4, 4));
        let pull = numbers(STEPS * BATCH * 4, 5);
        let fresh = [0.25; 4];

        let mut unrolled = Unrolled::new(&net, &states, STEPS, BATCH);
        let at = |step: usize| vec![&data[step * BATCH * 3..][..BATCH * 3]];
        unrolled.forward(&net, Level::best(), &params, at, &first, &[&begin_h, &begin_c], &[&fresh, &fresh]);
        unrolled.clear_gradients();
        for step in 0..STEPS {
            unrolled.step_mut(step).gradient_mut(states[0].output).copy_from_slice(&pull[step * 8..][..8]);
        }
        let mut gradient = vec![0.0; net.params()];
        unrolled.backward(&net, Level::best(), &params, &mut gradient);

        let wide = |xs: &[f32]| xs.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
        let loss = |params: &[f64]| -> f64 {
            let mut loss = 0.0;
            for sequence in 0..BATCH {
                let mut h = wide(&begin_h[sequence * 4..][..4]);
                let mut c = wide(&begin_c[sequence * 4..][..4]);
                for step in 0..STEPS {
                    if first[step * BATCH + sequence] {
                        (h, c) = (vec![0.25; 4], vec![0.25; 4]);
                    }
                    let x = wide(&data[(step * BATCH + sequence) * 3..][..3]);
                    let all = net.exact(params, &[&x, &h, &c]);
                    h = all[Network::index(states[0].output)].clone();
                    c = all[Network::index(states[1].output)].clone();
                    let pull = wide(&pull[(step * BATCH + sequence) * 4..][..4]);
                    loss += h.iter().zip(&pull).map(|(h, p)| h * p).sum::<f64>();
                }
            }
            loss
        };
        let mut exact = wide(&params);
        for at in 0..exact.len() {
            let x = exact[at];
            let mut side = |h: f64| {
                exact[at] = x + h;
                loss(&exact)
            };
            let expect = (side(1e-5) - side(-1e-5)) / 2e-5;
            side(0.0);
            assert!(
                (f64::from(gradient[at]) - expect).abs() < 1e-4 * (1.0 + expect.abs()),
                "{at}: {}, {expect}",
                gradient[at]
            );
        }
    }
}
