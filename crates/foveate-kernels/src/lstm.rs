//! An LSTM cell: `z = W_ih x + b_ih + W_hh h + b_hh` in gate order i, f, g, o; c ← σ(f)·c + σ(i)·tanh(g);
//! h ← σ(o)·tanh(c) (Hochreiter and Schmidhuber 1997 with a forget gate; gate order as in PyTorch).

use crate::Level;
use crate::lanes::{Block, Isa, Lanes, Task, flat, sigmoid, tanh};

/// The packed weights of the cell.
#[derive(Debug, Clone)]
pub struct LstmCell {
    inputs: usize,
    hidden: usize,
    /// `[hidden / 16, inputs + hidden, 4 gates, 16]`
    weights: Vec<[Block; 4]>,
    /// `[hidden / 16, 4 gates, 16]`: both biases, added.
    bias: Vec<[Block; 4]>,
}

/// The cell's weights in PyTorch's layout, borrowed. Rows are gate blocks i, f, g, o of `hidden` each.
#[derive(Debug, Clone, Copy)]
pub struct CellWeights<'a> {
    /// `[4 * hidden, inputs]`
    pub weight_ih: &'a [f32],
    /// `[4 * hidden, hidden]`
    pub weight_hh: &'a [f32],
    /// `[4 * hidden]`
    pub bias_ih: &'a [f32],
    /// `[4 * hidden]`
    pub bias_hh: &'a [f32],
}

/// The cell's state.
#[derive(Debug, Clone)]
pub struct CellState {
    hidden: usize,
    pub(crate) h: Vec<Block>,
    pub(crate) c: Vec<Block>,
    next: Vec<Block>,
}

impl CellState {
    /// A state of zeros.
    pub fn new(hidden: usize) -> Self {
        let zeros = vec![Block::default(); hidden.div_ceil(16)];
        CellState { hidden, h: zeros.clone(), c: zeros.clone(), next: zeros }
    }

    /// Resets the state to zeros.
    pub fn reset(&mut self) {
        self.h.fill(Block::default());
        self.c.fill(Block::default());
    }

    /// The output h, `[hidden]`.
    pub fn h(&self) -> &[f32] {
        &flat(&self.h)[..self.hidden]
    }

    /// The memory c, `[hidden]`.
    pub fn c(&self) -> &[f32] {
        &flat(&self.c)[..self.hidden]
    }
}

impl LstmCell {
    /// A cell with all weights zero.
    pub fn new(inputs: usize, hidden: usize) -> Self {
        let blocks = hidden.div_ceil(16);
        LstmCell {
            inputs,
            hidden,
            weights: vec![[Block::default(); 4]; blocks * (inputs + hidden)],
            bias: vec![[Block::default(); 4]; blocks],
        }
    }

    /// Sets the weights.
    ///
    /// # Panics
    /// When a slice has the wrong length.
    pub fn set(&mut self, from: CellWeights<'_>) {
        let (inputs, hidden) = (self.inputs, self.hidden);
        assert_eq!(from.weight_ih.len(), 4 * hidden * inputs, "weight_ih");
        assert_eq!(from.weight_hh.len(), 4 * hidden * hidden, "weight_hh");
        assert_eq!(from.bias_ih.len(), 4 * hidden, "bias_ih");
        assert_eq!(from.bias_hh.len(), 4 * hidden, "bias_hh");
        for gate in 0..4 {
            for unit in 0..hidden {
                let (row, block, lane) = (gate * hidden + unit, unit / 16, unit % 16);
                self.bias[block][gate].0[lane] = from.bias_ih[row] + from.bias_hh[row];
                let of_x = &from.weight_ih[row * inputs..(row + 1) * inputs];
                let of_h = &from.weight_hh[row * hidden..(row + 1) * hidden];
                let to = &mut self.weights[block * (inputs + hidden)..(block + 1) * (inputs + hidden)];
                for (to, &w) in to.iter_mut().zip(of_x.iter().chain(of_h)) {
                    to[gate].0[lane] = w;
                }
            }
        }
    }

    /// Advances one step with input `x`.
    ///
    /// # Panics
    /// When `x` or `state` has the wrong size.
    pub fn step(&self, level: Level, x: &[f32], state: &mut CellState) {
        assert_eq!(x.len(), self.inputs, "inputs");
        assert_eq!(state.hidden, self.hidden, "hidden units");
        level.run(Step { cell: self, x, state });
    }

    /// Advances one step with input `x`.
    #[inline(always)]
    pub(crate) fn advance<I: Isa>(&self, isa: I, x: &[f32], state: &mut CellState) {
        for block in 0..self.bias.len() {
            let [i, f, g, o] = self.gates(isa, block, x, &flat(&state.h)[..self.hidden]);
            let kept = sigmoid(isa, f).mul(isa.load16(&state.c[block].0));
            let c = sigmoid(isa, i).mul_add(tanh(isa, g), kept);
            c.store(&mut state.c[block].0);
            sigmoid(isa, o).mul(tanh(isa, c)).store(&mut state.next[block].0);
        }
        std::mem::swap(&mut state.h, &mut state.next);
    }

    /// z of sixteen units, gates i, f, g, o: both biases, then the contributions of `x` and `h`, in order.
    #[inline(always)]
    pub(crate) fn gates<I: Isa>(&self, isa: I, block: usize, x: &[f32], h: &[f32]) -> [I::V16; 4] {
        let all = self.inputs + self.hidden;
        let [i, f, g, o] = &self.bias[block];
        let mut z = [isa.load16(&i.0), isa.load16(&f.0), isa.load16(&g.0), isa.load16(&o.0)];
        let weights = &self.weights[block * all..(block + 1) * all];
        for (weights, &v) in weights.iter().zip(x.iter().chain(h)) {
            let v = isa.splat16(v);
            for gate in 0..4 {
                z[gate] = isa.load16(&weights[gate].0).mul_add(v, z[gate]);
            }
        }
        z
    }
}

struct Step<'a> {
    cell: &'a LstmCell,
    x: &'a [f32],
    state: &'a mut CellState,
}

impl Task for Step<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        self.cell.advance(isa, self.x, self.state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Direct implementation of the definition, in double precision.
    fn slow(w: CellWeights<'_>, x: &[f64], h: &mut [f64], c: &mut [f64]) {
        let n = h.len();
        let logistic = |x: f64| 1.0 / (1.0 + (-x).exp());
        let z: Vec<f64> = (0..4 * n)
            .map(|row| {
                let dot = |w: &[f32], v: &[f64]| -> f64 {
                    w[row * v.len()..].iter().zip(v).map(|(&w, v)| f64::from(w) * v).sum()
                };
                f64::from(w.bias_ih[row])
                    + f64::from(w.bias_hh[row])
                    + dot(w.weight_ih, x)
                    + dot(w.weight_hh, h)
            })
            .collect();
        for u in 0..n {
            c[u] = logistic(z[n + u]) * c[u] + logistic(z[u]) * z[2 * n + u].tanh();
            h[u] = logistic(z[3 * n + u]) * c[u].tanh();
        }
    }

    #[test]
    fn matches_the_definition_on_every_level() {
        for (inputs, hidden) in [(1, 1), (20, 16), (5, 17), (3, 40)] {
            let numbers = |n: usize, salt: usize| -> Vec<f32> {
                (0..n).map(|i| (((i + salt) * 7919 % 1009) as f32 - 504.0) / 504.0).collect()
            };
            let (a, b) = (numbers(4 * hidden * inputs, 1), numbers(4 * hidden * hidden, 2));
            let (c, d) = (numbers(4 * hidden, 3), numbers(4 * hidden, 4));
            let weights = CellWeights { weight_ih: &a, weight_hh: &b, bias_ih: &c, bias_hh: &d };
            let mut cell = LstmCell::new(inputs, hidden);
            cell.set(weights);
            let mut first: Option<Vec<f32>> = None;
            for level in Level::available() {
                let mut state = CellState::new(hidden);
                let (mut h, mut c) = (vec![0.0; hidden], vec![0.0; hidden]);
                for t in 0..20 {
                    let x = numbers(inputs, t);
                    cell.step(level, &x, &mut state);
                    slow(weights, &x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>(), &mut h, &mut c);
                    for u in 0..hidden {
                        assert!((f64::from(state.h()[u]) - h[u]).abs() < 2e-5, "{level} h[{u}] at {t}");
                        assert!((f64::from(state.c()[u]) - c[u]).abs() < 2e-5, "{level} c[{u}] at {t}");
                    }
                }
                let end = [state.h(), state.c()].concat();
                assert_eq!(&end, first.get_or_insert(end.clone()), "{level}");
                state.reset();
                assert!(state.h().iter().chain(state.c()).all(|&v| v == 0.0));
            }
        }
    }
}
