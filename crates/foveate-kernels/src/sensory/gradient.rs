//! Gradient of sensory neurons and of the layers that turn their message into outputs, by backpropagation through
//! time.
//!
//! The outputs a are those of layers with tanh on the message; the error is E = Σ (a − a*)² over steps and outputs.
//! The shared numbers of each step, which the neurons get besides their own, are given: when they are outputs of the
//! step before, they are those that were recorded, and no gradient flows through them.
//!
//! With `w_mi = σ(q_mi)`, `q_mi = s_m · k_i + b_m` and `m_m = tanh(Σ_i w_mi o_i)`:
//!
//! * `δq_mi = δm_m o_i σ'(q_mi)`, and for softmax `δq_mi = w_mi (δm_m o_i − Σ_j w_mj δm_m o_j)`;
//! * `δk_i = Σ_m δq_mi s_m + W_hh δz_i` of the next step, where z are the sums of the four gates; from there on as in
//!   [`lstm_gradient`](crate::lstm_gradient).

mod backward;
#[cfg(test)]
mod tests;

use super::{Activation, SensorySizes};
use crate::Level;
use crate::dense::Dense;
use crate::lanes::{Block, Eight, Isa, Lanes, Task, exp2, flat, flat_mut, sigmoid, tanh};
use crate::lstm::CellWeights;
use crate::project::Linear;

/// Four gates i, f, g, o of eight units.
type Gates = [Eight; 4];

/// What lies between the outputs of a step and the inputs of the next, for gradients that flow through both.
pub trait Between {
    /// Writes to `pull` (`[outputs]`) the derivative with respect to the outputs of step `t`. `next` holds that with
    /// respect to the inputs of step `t + 1`, `[sensors + shared]`; it is empty at the last step. Steps come in
    /// descending order. Returns whether a gradient flows from the memory of step `t + 1` into that of step `t`.
    fn pull(&mut self, t: usize, next: &[f32], pull: &mut [f32]) -> bool;

    /// Bound of the derivatives with respect to the memory, above 0, applied between steps.
    fn bound(&self) -> f32;
}

/// Where the derivatives with respect to the outputs come from.
enum Goal<'a> {
    /// The squared error to these outputs, `[steps, outputs]`.
    Wanted(&'a [f32]),
    Between(&'a mut dyn Between),
    /// The names of the sensors, see [`Learner::study_names`].
    Names,
}

/// What weights are multiplied by before their softmax, where they name the sensors: one weight of 0.8 is certain enough beside
/// many of 0, so that tanh stays steep.
const SHARPNESS: f32 = 10.0;
/// How much the square of a weight counts that a code has for another sensor: it keeps such weights near 0.
const OTHERS: f32 = 0.1;

/// Sensory neurons followed by layers, with their gradient. Contains its scratch space, which grows with the longest
/// sequence.
#[derive(Debug, Clone)]
pub struct Learner {
    sizes: SensorySizes,
    sensors: usize,
    /// `[hidden / 8, told]`: both biases are added.
    cell: Vec<Gates>,
    /// `[4 gates, hidden, hidden / 8, 8]`: from z back to the h of the step before.
    back: Vec<Eight>,
    /// `[codes / 16, hidden + 1, 16]`: the scores' weights, then their biases.
    scores: Vec<Block>,
    /// `[codes, hidden / 8, 8]`
    score_rows: Vec<Eight>,
    layers: Vec<Layer>,
    tape: Tape,
    gradient: Gradient,
}

/// The gradient of the last sequence, each part in the layout of PyTorch's weights.
///
/// There is no `bias_hh`: it is only ever added to `bias_ih`, so training one of them, `bias_ih`, is enough.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Gradient {
    /// `[4 * hidden, 1 + shared]`
    pub weight_ih: Vec<f32>,
    /// `[4 * hidden, hidden]`
    pub weight_hh: Vec<f32>,
    /// `[4 * hidden]`
    pub bias_ih: Vec<f32>,
    /// `[codes, hidden]`
    pub scores: Vec<f32>,
    /// `[codes]`
    pub score_bias: Vec<f32>,
    /// For each layer `[outputs, inputs]` and `[outputs]`.
    pub layers: Vec<(Vec<f32>, Vec<f32>)>,
}

/// A layer with tanh, the outputs that it gave, and its gradient.
#[derive(Debug, Clone)]
struct Layer {
    inputs: usize,
    outputs: usize,
    dense: Dense,
    /// `[outputs, inputs / 16, 16]`
    rows: Vec<Block>,
    /// `[steps, outputs / 16, 16]`: its outputs.
    given: Vec<Block>,
    /// `[outputs / 16, 16]`: derivative with respect to its sums.
    pull: Vec<Block>,
    /// `[inputs / 16, 16]`: derivative with respect to its inputs.
    back: Vec<Block>,
    /// `[outputs, inputs / 16, 16]`: gradient of its weights.
    sums: Vec<Block>,
    /// `[outputs / 16, 16]`: gradient of its biases.
    bias_sums: Vec<Block>,
}

/// Intermediate results of the forward pass for the backward pass.
///
/// `state` numbers of blocks hold `[sensors, hidden / 8, 8]`.
#[derive(Debug, Clone)]
struct Tape {
    /// `[steps + 1, sensors, width]`: what the cell's weights get at a step: h of the step before, 1, the sensor's
    /// number, the shared numbers, zeros. Of the last entry only h and 1 are used.
    told: Vec<f32>,
    /// `[steps + 1, state]`. Of the last entry only c is used.
    kept: Vec<Kept>,
    /// `[steps, codes / 16, sensors, 16]`
    weights: Vec<Block>,
    /// `[steps, codes / 16, 16]`: the message.
    message: Vec<Block>,
    /// `[4 gates, state]`: scratch.
    gates: [Vec<Block>; 4],
    /// `[state]`: scratch.
    h: Vec<Block>,
    /// `[CHUNK, 4 gates, state]`: derivative with respect to z.
    dz: Vec<Block>,
    /// `[CHUNK, sensors, codes / 16, 16]`: derivative with respect to the scores.
    dq: Vec<Block>,
    /// `[state]`: derivative with respect to h, from the next step.
    dh: Vec<Block>,
    /// `[state]`: derivative with respect to c, from the next step.
    dc: Vec<Block>,
    /// `[outputs / 16, 16]`: derivative with respect to the outputs of a step.
    pull: Vec<Block>,
    /// `[sensors + shared]`: derivative with respect to the inputs of a step.
    back: Vec<f32>,
    /// `[hidden / 8, width]`: gradient of the cell's weights.
    cell_sums: Vec<Gates>,
    /// `[codes / 16, (hidden + 1) / GROUP, GROUP, 16]`: gradient of the scores' weights and biases.
    score_sums: Vec<Block>,
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

/// Steps whose derivatives are collected before they are added to the gradient: as many as fit the first-level cache.
const CHUNK: usize = 16;
/// Inputs of a weight that are summed together.
const GROUP: usize = 4;

impl Learner {
    /// A learner with all weights zero, for `sensors` sensors, with layers of these numbers of units after the
    /// message.
    ///
    /// # Panics
    /// When a size is 0 or there is no layer.
    pub fn new(sizes: SensorySizes, sensors: usize, layers: &[usize]) -> Self {
        let SensorySizes { shared, hidden, codes, .. } = sizes;
        assert!(hidden > 0 && codes > 0 && sensors > 0, "hidden units, codes and sensors");
        assert!(!layers.is_empty() && layers.iter().all(|&units| units > 0), "layers");
        let (units, blocks) = (hidden.div_ceil(8), codes.div_ceil(16));
        let width = width(sizes);
        let state = (sensors * units).div_ceil(2);
        let zeros = |n: usize| vec![Block::default(); n];
        let eights = |n: usize| vec![Eight::default(); n];
        let gates = |n: usize| vec![[Eight::default(); 4]; n];
        let inputs = std::iter::once(codes).chain(layers.iter().copied());
        let layers: Vec<Layer> =
            inputs.zip(layers).map(|(inputs, &outputs)| Layer::new(inputs, outputs)).collect();
        Learner {
            sizes,
            sensors,
            cell: gates(units * width),
            back: eights(4 * hidden * units),
            scores: zeros(blocks * (hidden + 1)),
            score_rows: eights(codes * units),
            tape: Tape {
                told: vec![],
                kept: vec![],
                weights: vec![],
                message: vec![],
                gates: std::array::from_fn(|_| zeros(state)),
                h: zeros(state),
                dz: zeros(CHUNK * 4 * state),
                dq: zeros(CHUNK * sensors * blocks),
                dh: zeros(state),
                dc: zeros(state),
                pull: zeros(layers.last().map_or(0, |layer| layer.outputs.div_ceil(16))),
                back: vec![0.0; sensors + shared],
                cell_sums: gates(units * width),
                score_sums: zeros(blocks * (hidden + 1).next_multiple_of(GROUP)),
            },
            gradient: Gradient {
                weight_ih: vec![0.0; 4 * hidden * (1 + shared)],
                weight_hh: vec![0.0; 4 * hidden * hidden],
                bias_ih: vec![0.0; 4 * hidden],
                scores: vec![0.0; codes * hidden],
                score_bias: vec![0.0; codes],
                layers: layers
                    .iter()
                    .map(|layer| (vec![0.0; layer.outputs * layer.inputs], vec![0.0; layer.outputs]))
                    .collect(),
            },
            layers,
        }
    }

    /// Sets the weights of the LSTM, whose first input is the sensor's number and whose others are shared, and of the
    /// scores: `scores` is `[codes, hidden]`, `bias` is `[codes]`.
    ///
    /// # Panics
    /// When a slice has the wrong length.
    pub fn set(&mut self, cell: CellWeights<'_>, scores: &[f32], bias: &[f32]) {
        let SensorySizes { shared, hidden, codes, .. } = self.sizes;
        let (inputs, width, units) = (shared + 1, width(self.sizes), hidden.div_ceil(8));
        assert_eq!(cell.weight_ih.len(), 4 * hidden * inputs, "weight_ih");
        assert_eq!(cell.weight_hh.len(), 4 * hidden * hidden, "weight_hh");
        assert_eq!(cell.bias_ih.len(), 4 * hidden, "bias_ih");
        assert_eq!(cell.bias_hh.len(), 4 * hidden, "bias_hh");
        assert_eq!(scores.len(), codes * hidden, "scores");
        assert_eq!(bias.len(), codes, "biases of the scores");
        for gate in 0..4 {
            for unit in 0..hidden {
                let (row, block, lane) = (gate * hidden + unit, unit / 8, unit % 8);
                let to = &mut self.cell[block * width..][..width];
                let of_h = &cell.weight_hh[row * hidden..][..hidden];
                let of_x = &cell.weight_ih[row * inputs..][..inputs];
                let bias = [cell.bias_ih[row] + cell.bias_hh[row]];
                for (to, &w) in to.iter_mut().zip(of_h.iter().chain(&bias).chain(of_x)) {
                    to[gate].0[lane] = w;
                }
                for (k, &w) in of_h.iter().enumerate() {
                    self.back[row * units + k / 8].0[k % 8] = w;
                }
            }
        }
        for code in 0..codes {
            let row = &scores[code * hidden..][..hidden];
            let to = &mut self.scores[code / 16 * (hidden + 1)..][..=hidden];
            for (to, &w) in to.iter_mut().zip(row.iter().chain(&bias[code..=code])) {
                to.0[code % 16] = w;
            }
            for (k, &w) in row.iter().enumerate() {
                self.score_rows[code * units + k / 8].0[k % 8] = w;
            }
        }
    }

    /// Sets the weights of layer `index`.
    ///
    /// # Panics
    /// When there is no such layer or a slice has the wrong length.
    pub fn set_layer(&mut self, index: usize, weights: Linear<'_>) {
        let Layer { inputs, dense, rows, .. } = &mut self.layers[index];
        dense.set(weights);
        let blocks = inputs.div_ceil(16);
        for (row, weights) in weights.weight.chunks_exact(*inputs).enumerate() {
            flat_mut(&mut rows[row * blocks..][..blocks])[..*inputs].copy_from_slice(weights);
        }
    }

    /// Computes the gradient of Σ (a − `wanted`)², see [`Learner::gradient`], and returns that sum.
    ///
    /// * `inputs`: `[burn_in + steps, sensors + shared]`: the sensors' numbers, then the shared ones. The state is
    ///   zero before the first step. If there are more steps than in `wanted`, the additional steps come first and
    ///   only set the state: no gradient flows into them.
    /// * `wanted`: `[steps, outputs]`, in −1 ..= 1.
    ///
    /// Allocates only if there are more steps than in every call before. All levels produce bit-identical results.
    ///
    /// # Panics
    /// When a slice has the wrong length.
    pub fn study(&mut self, level: Level, inputs: &[f32], wanted: &[f32]) -> f64 {
        let per_step = self.sensors + self.sizes.shared;
        let outputs = self.layers.last().map_or(1, |layer| layer.outputs);
        assert_eq!(
            inputs.len() % per_step,
            0,
            "{} sensors, {} shared numbers",
            self.sensors,
            self.sizes.shared
        );
        assert_eq!(wanted.len() % outputs, 0, "{outputs} outputs");
        let (all, steps) = (inputs.len() / per_step, wanted.len() / outputs);
        assert!(steps <= all, "{steps} steps of outputs, {all} of inputs");
        self.make_room(steps);
        let (burn_in, inputs) = inputs.split_at((all - steps) * per_step);
        let error = level.run(Study { learner: self, burn_in, inputs, goal: Goal::Wanted(wanted), steps });
        self.unpack();
        error
    }

    /// Computes the gradient of Σ (−ln p(i | sensor i) + Σ w² / 10), summed over the steps and averaged over the sensors i, see
    /// [`Learner::gradient`], and returns that sum: how well the weights tell the sensors apart. p(m | i) is the softmax, over
    /// all codes m, of ten times the weights of sensor i; the squares are those of its weights for all codes but i. So each code
    /// learns to read the sensor of its number and no other. The layers have no gradient.
    ///
    /// * `inputs`: `[burn_in + steps, sensors + shared]`, as in [`Learner::backpropagate`].
    ///
    /// Allocates only if there are more steps than in every call before. All levels produce bit-identical results.
    ///
    /// # Panics
    /// When `inputs` has the wrong length, or there are fewer codes than sensors.
    pub fn study_names(&mut self, level: Level, inputs: &[f32], burn_in: usize) -> f64 {
        assert!(self.sizes.codes >= self.sensors, "{} sensors, {} codes", self.sensors, self.sizes.codes);
        self.run(level, inputs, burn_in, Goal::Names)
    }

    /// Enlarges the scratch space for so many steps.
    fn make_room(&mut self, steps: usize) {
        let (state, blocks) = (self.tape.h.len(), self.sizes.codes.div_ceil(16));
        let row = self.sensors * width(self.sizes);
        let tape = &mut self.tape;
        if tape.told.len() < (steps + 1) * row {
            tape.told.resize((steps + 1) * row, 0.0);
            tape.kept.resize((steps + 1) * state, Kept::default());
            tape.weights.resize(steps * self.sensors * blocks, Block::default());
            tape.message.resize(steps * blocks, Block::default());
            for layer in &mut self.layers {
                layer.given.resize(steps * layer.outputs.div_ceil(16), Block::default());
            }
        }
    }

    /// Computes the gradient of what `between` gives the derivatives of, see [`Learner::gradient`].
    ///
    /// * `inputs`: `[burn_in + steps, sensors + shared]`, as in [`Learner::study`]; the first `burn_in` steps only set the
    ///   state. At least one step follows.
    ///
    /// Allocates only if there are more steps than in every call before. All levels produce bit-identical results, as
    /// long as `between` does.
    ///
    /// # Panics
    /// When `inputs` has the wrong length.
    pub fn backpropagate(&mut self, level: Level, inputs: &[f32], burn_in: usize, between: &mut dyn Between) {
        self.run(level, inputs, burn_in, Goal::Between(between));
    }

    /// Computes the gradient of this goal, and returns the error.
    fn run(&mut self, level: Level, inputs: &[f32], burn_in: usize, goal: Goal<'_>) -> f64 {
        let per_step = self.sensors + self.sizes.shared;
        let all = inputs.len() / per_step;
        assert!(
            all > burn_in && inputs.len() == all * per_step,
            "{} numbers of {per_step} a step, {burn_in} steps of burn-in",
            inputs.len()
        );
        let (steps, (burn_in, inputs)) = (all - burn_in, inputs.split_at(burn_in * per_step));
        self.make_room(steps);
        let error = level.run(Study { learner: self, burn_in, inputs, goal, steps });
        self.unpack();
        error
    }

    /// The gradient of the last sequence.
    pub const fn gradient(&self) -> &Gradient {
        &self.gradient
    }

    /// Converts the sums to PyTorch's layout.
    fn unpack(&mut self) {
        let Learner { sizes, layers, tape, gradient, .. } = self;
        let SensorySizes { shared, hidden, codes, .. } = *sizes;
        let (inputs, width) = (shared + 1, width(*sizes));
        for row in 0..4 * hidden {
            let (gate, unit) = (row / hidden, row % hidden);
            let sums = &tape.cell_sums[unit / 8 * width..][..width];
            let mut sums = sums.iter().map(|gates| gates[gate].0[unit % 8]);
            for (to, sum) in gradient.weight_hh[row * hidden..][..hidden].iter_mut().zip(&mut sums) {
                *to = sum;
            }
            gradient.bias_ih[row] = sums.next().unwrap_or_default();
            for (to, sum) in gradient.weight_ih[row * inputs..][..inputs].iter_mut().zip(&mut sums) {
                *to = sum;
            }
        }
        let grouped = (hidden + 1).next_multiple_of(GROUP);
        for code in 0..codes {
            let sums = &tape.score_sums[code / 16 * grouped..][..=hidden];
            let (bias, weights) = sums.split_last().expect("at least the bias");
            for (to, sum) in gradient.scores[code * hidden..][..hidden].iter_mut().zip(weights) {
                *to = sum.0[code % 16];
            }
            gradient.score_bias[code] = bias.0[code % 16];
        }
        for (layer, (weight, bias)) in layers.iter().zip(&mut gradient.layers) {
            let rows = layer.sums.chunks_exact(layer.inputs.div_ceil(16));
            for (to, sums) in weight.chunks_exact_mut(layer.inputs).zip(rows) {
                to.copy_from_slice(&flat(sums)[..layer.inputs]);
            }
            bias.copy_from_slice(&flat(&layer.bias_sums)[..layer.outputs]);
        }
    }
}

impl Layer {
    fn new(inputs: usize, outputs: usize) -> Self {
        let zeros = |n: usize| vec![Block::default(); n];
        Layer {
            inputs,
            outputs,
            dense: Dense::new(inputs, outputs),
            rows: zeros(outputs * inputs.div_ceil(16)),
            given: vec![],
            pull: zeros(outputs.div_ceil(16)),
            back: zeros(inputs.div_ceil(16)),
            sums: zeros(outputs * inputs.div_ceil(16)),
            bias_sums: zeros(outputs.div_ceil(16)),
        }
    }
}

/// Length of a row of [`Tape::told`].
const fn width(sizes: SensorySizes) -> usize {
    (sizes.hidden + 2 + sizes.shared).next_multiple_of(GROUP)
}

struct Study<'a, 'g> {
    learner: &'a mut Learner,
    burn_in: &'a [f32],
    inputs: &'a [f32],
    goal: Goal<'g>,
    steps: usize,
}

impl Task for Study<'_, '_> {
    type Out = f64;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> f64 {
        let Study { learner, burn_in, inputs, mut goal, steps } = self;
        let per_step = learner.sensors + learner.sizes.shared;
        let row = learner.sensors * width(learner.sizes);
        let state = learner.tape.h.len();
        learner.tape.told[..(steps + 1) * row].fill(0.0);
        learner.tape.kept[..state].fill(Kept::default());
        for numbers in burn_in.chunks_exact(per_step) {
            learner.tell(0, numbers);
            learner.gate_sums(isa, 0);
            learner.advance::<I, false>(isa, 0);
            learner.remember(0);
        }
        let mut error = 0.0;
        for (t, numbers) in inputs.chunks_exact(per_step).enumerate() {
            learner.tell(t, numbers);
            learner.gate_sums(isa, t);
            learner.advance::<I, true>(isa, t);
            learner.remember(t + 1);
            learner.weigh(isa, t, numbers);
            if matches!(goal, Goal::Names) {
                continue;
            }
            learner.give(isa, t);
            if let Goal::Wanted(wanted) = goal {
                error += learner.error(t, wanted);
            }
        }
        error + learner.backward(isa, inputs, &mut goal, steps)
    }
}

impl Learner {
    /// Writes the numbers of step `t` beside h of the step before.
    #[inline(always)]
    fn tell(&mut self, t: usize, numbers: &[f32]) {
        let (width, hidden) = (width(self.sizes), self.sizes.hidden);
        let (numbers, shared) = numbers.split_at(self.sensors);
        let rows = self.tape.told[t * self.sensors * width..].chunks_exact_mut(width);
        for (row, &number) in rows.zip(numbers) {
            row[hidden] = 1.0;
            row[hidden + 1] = number;
            row[hidden + 2..][..shared.len()].copy_from_slice(shared);
        }
    }

    /// The gates of every sensor before their activation.
    #[inline(always)]
    fn gate_sums<I: Isa>(&mut self, isa: I, t: usize) {
        let (width, units) = (width(self.sizes), self.sizes.hidden.div_ceil(8));
        let used = self.sizes.hidden + 2 + self.sizes.shared;
        let Tape { told, gates, .. } = &mut self.tape;
        let gates = gates.each_mut().map(|gate| flat_mut(gate).as_chunks_mut::<8>().0);
        let rows = told[t * self.sensors * width..][..self.sensors * width].chunks_exact(width);
        for (sensor, row) in rows.enumerate() {
            for block in 0..units {
                let mut z = [isa.splat8(0.0); 4];
                for (weights, &x) in self.cell[block * width..][..used].iter().zip(row) {
                    let x = isa.splat8(x);
                    for gate in 0..4 {
                        z[gate] = isa.load8(&weights[gate].0).mul_add(x, z[gate]);
                    }
                }
                for gate in 0..4 {
                    z[gate].store(&mut gates[gate][sensor * units + block]);
                }
            }
        }
    }

    /// New states at step `t`; without `KEEP`, c replaces the c before the step.
    #[inline(always)]
    fn advance<I: Isa, const KEEP: bool>(&mut self, isa: I, t: usize) {
        let Tape { kept, gates: [i, f, g, o], h, .. } = &mut self.tape;
        let state = h.len();
        let (now, next) = kept[t * state..].split_at_mut(state);
        for block in 0..state {
            let i = sigmoid(isa, isa.load16(&i[block].0));
            let f = sigmoid(isa, isa.load16(&f[block].0));
            let g = tanh(isa, isa.load16(&g[block].0));
            let o = sigmoid(isa, isa.load16(&o[block].0));
            let kept = &mut now[block];
            let c = i.mul_add(g, f.mul(isa.load16(&kept.c.0)));
            let tanh_c = tanh(isa, c);
            if KEEP {
                i.store(&mut kept.i.0);
                f.store(&mut kept.f.0);
                g.store(&mut kept.g.0);
                o.store(&mut kept.o.0);
                tanh_c.store(&mut kept.tanh_c.0);
                c.store(&mut next[block].c.0);
            } else {
                c.store(&mut kept.c.0);
            }
            o.mul(tanh_c).store(&mut h[block].0);
        }
    }

    /// Writes h for step `t`.
    #[inline(always)]
    fn remember(&mut self, t: usize) {
        let (width, hidden) = (width(self.sizes), self.sizes.hidden);
        let padded = hidden.div_ceil(8) * 8;
        let h = flat(&self.tape.h).chunks_exact(padded);
        let rows = self.tape.told[t * self.sensors * width..][..self.sensors * width].chunks_exact_mut(width);
        for (row, h) in rows.zip(h) {
            row[..hidden].copy_from_slice(&h[..hidden]);
            row[hidden] = 1.0;
        }
    }

    /// Weights and message of step `t`.
    #[inline(always)]
    fn weigh<I: Isa>(&mut self, isa: I, t: usize, numbers: &[f32]) {
        let SensorySizes { hidden, codes, activation, squash, .. } = self.sizes;
        let (blocks, width, sensors) = (codes.div_ceil(16), width(self.sizes), self.sensors);
        let Tape { told, weights, message, .. } = &mut self.tape;
        let rows = &told[(t + 1) * sensors * width..][..sensors * width];
        let weights = &mut weights[t * blocks * sensors..][..blocks * sensors];
        for (block, weights) in weights.chunks_exact_mut(sensors).enumerate() {
            let of_block = &self.scores[block * (hidden + 1)..][..=hidden];
            let mut sum = isa.splat16(0.0);
            let mut largest = isa.splat16(f32::NEG_INFINITY);
            for ((row, weights), &number) in rows.chunks_exact(width).zip(&mut *weights).zip(numbers) {
                let mut q = isa.splat16(0.0);
                for (w, &x) in of_block.iter().zip(row) {
                    q = isa.load16(&w.0).mul_add(isa.splat16(x), q);
                }
                let w = match activation {
                    Activation::Tanh => tanh(isa, q),
                    Activation::Sigmoid => sigmoid(isa, q),
                    Activation::Softmax => {
                        largest = largest.max(q);
                        q
                    }
                };
                w.store(&mut weights.0);
                sum = w.mul_add(isa.splat16(number), sum);
            }
            if activation == Activation::Softmax {
                let log2_e = isa.splat16(std::f32::consts::LOG2_E);
                let mut total = isa.splat16(0.0);
                for w in &mut *weights {
                    let x = isa.load16(&w.0).sub(largest).mul(log2_e);
                    let share = exp2(isa, x.max(isa.splat16(-120.0)));
                    share.store(&mut w.0);
                    total = total.add(share);
                }
                sum = isa.splat16(0.0);
                for (w, &number) in weights.iter_mut().zip(numbers) {
                    let share = isa.load16(&w.0).div(total);
                    share.store(&mut w.0);
                    sum = share.mul_add(isa.splat16(number), sum);
                }
            }
            let sum = if squash { tanh(isa, sum) } else { sum };
            sum.store(&mut message[t * blocks + block].0);
        }
    }

    /// Outputs of step `t`; the derivatives with respect to the last layer's sums follow in
    /// [`backward`](self::backward).
    #[inline(always)]
    fn give<I: Isa>(&mut self, isa: I, t: usize) {
        let blocks = self.sizes.codes.div_ceil(16);
        let mut x = &self.tape.message[t * blocks..][..blocks];
        for Layer { inputs, outputs: count, dense, given, .. } in &mut self.layers {
            let blocks = count.div_ceil(16);
            let given = &mut given[t * blocks..][..blocks];
            for (block, y) in given.iter_mut().enumerate() {
                tanh(isa, dense.sums(isa, block, &flat(x)[..*inputs])).store(&mut y.0);
            }
            x = given;
        }
    }

    /// The squared error of the outputs of step `t`.
    fn error(&self, t: usize, wanted: &[f32]) -> f64 {
        let Some(Layer { outputs, given, .. }) = self.layers.last() else { return 0.0 };
        let blocks = outputs.div_ceil(16);
        let (x, outputs) = (&given[t * blocks..][..blocks], *outputs);
        let wanted = &wanted[t * outputs..][..outputs];
        flat(x).iter().zip(wanted).map(|(a, wanted)| f64::from(a - wanted).powi(2)).sum()
    }
}
