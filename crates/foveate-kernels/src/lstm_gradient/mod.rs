//! Gradient of the small controller, [`lstm`](crate::lstm) followed by [`dense`](crate::dense) and tanh, by
//! backpropagation through time (Werbos 1990).
//!
//! With a = tanh(W h + b) and the error E = Σ (a − a*)² over steps and actions, the derivatives of E with
//! respect to the sums z of the four gates are computed from the last step to the first:
//!
//! * `δh = W (2 (a − a*) (1 − a²)) + W_hh δz` of the next step;
//! * δc = δh o (1 − tanh² c) + δc f of the next step;
//! * `δz_i = δc g i (1 − i)`, `δz_f = δc c₋ f (1 − f)`, `δz_g = δc i (1 − g²)`,
//!   `δz_o = δh tanh(c) o (1 − o)`, where c₋ is the c of the step before.
//!
//! The gradient with respect to a weight is the sum over steps of δz times the input of that weight. That sum
//! is most of the work; it is a matrix product, computed over a few dozen steps at a time with the sums in
//! registers.

mod backward;

use crate::Level;
use crate::dense::Dense;
use crate::gemm::{Gemm, View};
use crate::lanes::{Block, Isa, Lanes, Task, flat, sigmoid, tanh};
use crate::lstm::{CellState, CellWeights, LstmCell};
use crate::project::Linear;

/// An LSTM followed by a linear layer and tanh, with its gradient. Contains its scratch space, which grows
/// with the longest sequence.
#[derive(Debug, Clone)]
pub struct Learner {
    inputs: usize,
    hidden: usize,
    actions: usize,
    cell: LstmCell,
    output: Dense,
    /// `[hidden / 16, hidden / 16, 4 gates, 16 units, 16]`: from the units of the second block, through z,
    /// back to the h of the first.
    back: Vec<Block>,
    /// `[actions, hidden / 16, 16]`: `output.weight`.
    output_rows: Vec<Block>,
    /// `[hidden / 16, 4 gates, 16, inputs]`: `weight_ih` in the order of δz; empty unless it is asked for.
    input_rows: Vec<f32>,
    gemm: Gemm,
    tape: Tape,
}

/// Tensors to which a gradient is added, each in the layout of PyTorch's weights.
///
/// There is no `bias_hh`: it is only ever added to `bias_ih`, so training one of them, `bias_ih`, is enough.
#[derive(Debug)]
pub struct Gradient<'a> {
    /// `[4 * hidden, inputs]`
    pub weight_ih: &'a mut [f32],
    /// `[4 * hidden, hidden]`
    pub weight_hh: &'a mut [f32],
    /// `[4 * hidden]`
    pub bias_ih: &'a mut [f32],
    /// `[actions, hidden]`
    pub output_weight: &'a mut [f32],
    /// `[actions]`
    pub output_bias: &'a mut [f32],
}

/// Intermediate results of the forward pass for the backward pass.
#[derive(Debug, Clone)]
struct Tape {
    /// The state before the first step.
    start: CellState,
    /// `[steps + 1, Learner::told, 16]`: the inputs of the cell's weights at a step, that is h of the step
    /// before in blocks, x, and 1. Of the last entry only h is used.
    told: Vec<Block>,
    /// `[steps + 1, hidden / 16]`. Of the last entry only c is used.
    kept: Vec<Kept>,
    /// `[steps, actions / 16, 16]`: derivative of the error with respect to the output of the linear layer.
    pull: Vec<Block>,
    /// `[CHUNK, hidden / 16, 4 gates, 16]`: derivative with respect to z.
    dz: Vec<Block>,
    /// `[steps, hidden / 16, 4 gates, 16]`: the same for all steps; empty unless it is asked for.
    all_dz: Vec<Block>,
    /// `[hidden / 16, 16]`: derivative with respect to h, from the next step.
    dh: Vec<Block>,
    /// `[hidden / 16, 16]`: derivative with respect to c, from the next step.
    dc: Vec<Block>,
    /// `[input of the weight, hidden / 16, 4 gates, 16]`: gradient of the cell's weights.
    cell_sums: Vec<Block>,
    /// `[actions, hidden / 16, 16]`: gradient of `output.weight`.
    output_sums: Vec<Block>,
    /// `[actions / 16, 16]`: gradient of `output.bias`.
    output_bias_sums: Vec<Block>,
}

/// Sixteen units at one step: the gates, c before the step, and tanh of c after it.
#[derive(Debug, Clone, Copy, Default)]
struct Kept {
    i: Block,
    f: Block,
    g: Block,
    o: Block,
    c: Block,
    tanh_c: Block,
}

/// Steps whose δz are collected before they are added to the gradient: as many as fit the first-level cache.
const CHUNK: usize = 32;
/// Rows of sums are padded to a multiple of this, the largest number summed together.
const MOST_ROWS: usize = 4;

impl Learner {
    /// A learner with all weights zero.
    ///
    /// # Panics
    /// When a size is 0.
    pub fn new(inputs: usize, hidden: usize, actions: usize) -> Self {
        assert!(
            inputs > 0 && hidden > 0 && actions > 0,
            "{inputs} inputs, {hidden} units, {actions} actions"
        );
        let (units, pulls) = (hidden.div_ceil(16), actions.div_ceil(16));
        let blocks = |n: usize| vec![Block::default(); n];
        let rows = |n: usize| n.next_multiple_of(MOST_ROWS);
        Learner {
            inputs,
            hidden,
            actions,
            cell: LstmCell::new(inputs, hidden),
            output: Dense::new(hidden, actions),
            back: blocks(units * units * 64),
            output_rows: blocks(actions * units),
            input_rows: vec![],
            gemm: Gemm::default(),
            tape: Tape {
                start: CellState::new(hidden),
                told: vec![],
                kept: vec![],
                pull: vec![],
                dz: blocks(CHUNK * units * 4),
                all_dz: vec![],
                dh: blocks(units),
                dc: blocks(units),
                cell_sums: blocks(rows(units * 16 + inputs + 1) * units * 4),
                output_sums: blocks(rows(actions) * units),
                output_bias_sums: blocks(pulls),
            },
        }
    }

    /// The same learner, which also computes the gradient with respect to its inputs; see
    /// [`Learner::input_gradient`].
    #[must_use]
    pub fn with_input_gradient(mut self) -> Self {
        self.input_rows = vec![0.0; self.units() * 64 * self.inputs];
        self
    }

    /// Sets the weights.
    ///
    /// # Panics
    /// When a slice has the wrong length.
    pub fn set(&mut self, cell: CellWeights<'_>, output: Linear<'_>) {
        self.cell.set(cell);
        self.output.set(output);
        let (hidden, units) = (self.hidden, self.units());
        for (row, weights) in cell.weight_hh.chunks_exact(hidden).enumerate() {
            let (gate, unit) = (row / hidden, row % hidden);
            for (block, weights) in weights.chunks(16).enumerate() {
                let to = ((block * units + unit / 16) * 4 + gate) * 16 + unit % 16;
                self.back[to].0[..weights.len()].copy_from_slice(weights);
            }
        }
        if !self.input_rows.is_empty() {
            for (row, weights) in cell.weight_ih.chunks_exact(self.inputs).enumerate() {
                let (gate, unit) = (row / hidden, row % hidden);
                let to = (unit / 16 * 64 + gate * 16 + unit % 16) * self.inputs;
                self.input_rows[to..to + self.inputs].copy_from_slice(weights);
            }
        }
        for (action, weights) in output.weight.chunks_exact(hidden).enumerate() {
            for (block, weights) in weights.chunks(16).enumerate() {
                self.output_rows[action * units + block].0[..weights.len()].copy_from_slice(weights);
            }
        }
    }

    /// Adds the gradient of the [loss](Targets) to `gradient`, and returns that loss.
    ///
    /// * `x`: `[burn_in + steps, inputs]`. The state is zero before the first step. If `x` has more steps
    ///   than `targets`, the additional steps come first and only set the state: no gradient flows into them.
    ///
    /// Allocates only if there are more steps than in every call before. All levels produce bit-identical
    /// results.
    ///
    /// # Panics
    /// When a slice has the wrong length.
    pub fn study(&mut self, level: Level, x: &[f32], targets: Targets<'_>, gradient: Gradient<'_>) -> f64 {
        assert_eq!(x.len() % self.inputs, 0, "{} inputs", self.inputs);
        let actions = match targets {
            Targets::Actions(wanted) => wanted.len(),
            Targets::Weighted(wanted, weights) => {
                assert_eq!(wanted.len(), weights.len(), "actions and their weights");
                wanted.len()
            }
        };
        assert_eq!(actions % self.actions, 0, "{} actions", self.actions);
        let (all, steps) = (x.len() / self.inputs, actions / self.actions);
        assert!(steps <= all, "{steps} steps of actions, {all} of inputs");
        let (units, pulls) = (self.units(), self.actions.div_ceil(16));
        let (told, tape) = (self.told(), &mut self.tape);
        if tape.pull.len() < steps * pulls || tape.told.is_empty() {
            tape.told.resize((steps + 1) * told, Block::default());
            tape.kept.resize((steps + 1) * units, Kept::default());
            tape.pull.resize(steps * pulls, Block::default());
        }
        if !self.input_rows.is_empty() {
            tape.all_dz.resize(steps * units * 4, Block::default());
        }
        let (burn_in, x) = x.split_at((all - steps) * self.inputs);
        let error = level.run(Study { learner: self, burn_in, x, targets, steps });
        self.add_to(gradient);
        error
    }

    /// The gradient of the last [`Learner::study`] with respect to its inputs, without those of the additional
    /// first steps: `[steps, inputs]`.
    ///
    /// # Panics
    /// When this learner is not made [`with_input_gradient`](Learner::with_input_gradient), or `dx` has
    /// another length.
    pub fn input_gradient(&mut self, level: Level, dx: &mut [f32]) {
        assert!(!self.input_rows.is_empty(), "made without gradients of inputs");
        let (wide, inputs) = (self.units() * 64, self.inputs);
        let dz = flat(&self.tape.all_dz);
        assert_eq!(dx.len(), dz.len() / wide * inputs, "inputs of {} steps", dz.len() / wide);
        let dz = View::new(dz, dz.len() / wide, wide);
        self.gemm.product(level, dz, View::new(&self.input_rows, wide, inputs), dx);
    }

    /// Number of blocks of hidden units.
    fn units(&self) -> usize {
        self.hidden.div_ceil(16)
    }

    /// Number of blocks of inputs of the cell's weights.
    fn told(&self) -> usize {
        self.units() + (self.inputs + 1).div_ceil(16)
    }

    /// Converts the sums to PyTorch's layout and adds them.
    fn add_to(&self, gradient: Gradient<'_>) {
        let (inputs, hidden, units) = (self.inputs, self.hidden, self.units());
        assert_eq!(gradient.weight_ih.len(), 4 * hidden * inputs, "weight_ih");
        assert_eq!(gradient.weight_hh.len(), 4 * hidden * hidden, "weight_hh");
        assert_eq!(gradient.bias_ih.len(), 4 * hidden, "bias_ih");
        assert_eq!(gradient.output_weight.len(), self.actions * hidden, "output_weight");
        assert_eq!(gradient.output_bias.len(), self.actions, "output_bias");
        let tape = &self.tape;
        let of_h = gradient.weight_hh.chunks_exact_mut(hidden);
        let of_x = gradient.weight_ih.chunks_exact_mut(inputs);
        for (row, ((h, x), bias)) in of_h.zip(of_x).zip(gradient.bias_ih).enumerate() {
            let (gate, unit) = (row / hidden, row % hidden);
            let mut sums =
                tape.cell_sums.chunks_exact(units * 4).map(|all| all[unit / 16 * 4 + gate].0[unit % 16]);
            h.iter_mut().zip(&mut sums).for_each(|(to, sum)| *to += sum);
            // Skips the lanes after the last unit.
            let mut sums = sums.skip(units * 16 - hidden);
            x.iter_mut().zip(&mut sums).for_each(|(to, sum)| *to += sum);
            *bias += sums.next().unwrap_or_default();
        }
        let rows = gradient.output_weight.chunks_exact_mut(hidden);
        for (to, sums) in rows.zip(tape.output_sums.chunks_exact(units)) {
            to.iter_mut().zip(flat(sums)).for_each(|(to, sum)| *to += sum);
        }
        gradient.output_bias.iter_mut().zip(flat(&tape.output_bias_sums)).for_each(|(to, sum)| *to += sum);
    }
}

/// What the actions a, each in −1 ..= 1, should be.
#[derive(Debug, Clone, Copy)]
pub enum Targets<'a> {
    /// `[steps, actions]`, in −1 ..= 1: the loss is Σ (a − wanted)².
    Actions(&'a [f32]),
    /// Wanted actions and their weights, both `[steps, actions]`: the loss is Σ weight (a − wanted)².
    Weighted(&'a [f32], &'a [f32]),
}

impl Targets<'_> {
    /// The loss of the actions that begin at `first`; replaces each action by the loss's derivative.
    fn slopes(self, first: usize, actions: &mut [f32]) -> f64 {
        let mut loss = 0.0;
        match self {
            Targets::Actions(wanted) => {
                for (a, wanted) in actions.iter_mut().zip(&wanted[first..]) {
                    let off = *a - wanted;
                    loss += f64::from(off).powi(2);
                    *a = 2.0 * off;
                }
            }
            Targets::Weighted(wanted, weights) => {
                for (a, (wanted, &weight)) in
                    actions.iter_mut().zip(wanted[first..].iter().zip(&weights[first..]))
                {
                    let off = *a - wanted;
                    loss += f64::from(weight) * f64::from(off).powi(2);
                    *a = 2.0 * weight * off;
                }
            }
        }
        loss
    }
}

struct Study<'a> {
    learner: &'a mut Learner,
    burn_in: &'a [f32],
    x: &'a [f32],
    targets: Targets<'a>,
    steps: usize,
}

impl Task for Study<'_> {
    type Out = f64;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> f64 {
        let start = &mut self.learner.tape.start;
        start.reset();
        for x in self.burn_in.chunks_exact(self.learner.inputs) {
            self.learner.cell.advance(isa, x, start);
        }
        let error = self.learner.forward(isa, self.x, self.targets);
        self.learner.backward(isa, self.steps);
        error
    }
}

impl Learner {
    /// The forward pass, from the initial state through all steps; returns the loss.
    #[inline(always)]
    fn forward<I: Isa>(&mut self, isa: I, x: &[f32], targets: Targets<'_>) -> f64 {
        let (units, pulls, told) = (self.units(), self.actions.div_ceil(16), self.told());
        let Learner { inputs, hidden, actions, cell, output, tape, .. } = self;
        let (inputs, hidden, actions) = (*inputs, *hidden, *actions);
        let Tape { start, told: all_told, kept: all_kept, pull: all_pull, .. } = tape;
        let one = isa.splat16(1.0);
        all_told[..units].copy_from_slice(&start.h);
        for (kept, c) in all_kept.iter_mut().zip(&start.c) {
            kept.c = *c;
        }
        let mut loss = 0.0;
        for (t, x) in x.chunks_exact(inputs).enumerate() {
            let (before, after) = all_told[t * told..(t + 1) * told + units].split_at_mut(told);
            let (h, rest) = before.split_at_mut(units);
            for (to, x) in rest.iter_mut().zip(x.chunks(16)) {
                to.0[..x.len()].copy_from_slice(x);
            }
            rest[inputs / 16].0[inputs % 16] = 1.0;
            let (kept, next) = all_kept[t * units..(t + 2) * units].split_at_mut(units);
            for block in 0..units {
                // As in `LstmCell::advance`, bit for bit.
                let [i, f, g, o] = cell.gates(isa, block, x, &flat(h)[..hidden]);
                let (i, f, g, o) = (sigmoid(isa, i), sigmoid(isa, f), tanh(isa, g), sigmoid(isa, o));
                let kept = &mut kept[block];
                let c = i.mul_add(g, f.mul(isa.load16(&kept.c.0)));
                let tanh_c = tanh(isa, c);
                i.store(&mut kept.i.0);
                f.store(&mut kept.f.0);
                g.store(&mut kept.g.0);
                o.store(&mut kept.o.0);
                tanh_c.store(&mut kept.tanh_c.0);
                c.store(&mut next[block].c.0);
                o.mul(tanh_c).store(&mut after[block].0);
            }
            let pull = &mut all_pull[t * pulls..(t + 1) * pulls];
            for (block, pull) in pull.iter_mut().enumerate() {
                let a = tanh(isa, output.sums(isa, block, &flat(after)[..hidden]));
                let mut slopes = Block::default();
                a.store(&mut slopes.0);
                let first = t * actions + block * 16;
                let count = (actions - block * 16).min(16);
                loss += targets.slopes(first, &mut slopes.0[..count]);
                slopes.0[count..].fill(0.0);
                let slope = one.sub(a).mul(one.add(a));
                isa.load16(&slopes.0).mul(slope).store(&mut pull.0);
            }
        }
        loss
    }
}
