//! The gates of an LSTM, plain or convolutional.

use foveate_core::TensorShape;
use foveate_kernels::elementwise::Function;

use crate::layer::{Backward, Forward, Layer, len_of, tensor};

/// The gates of an LSTM (Hochreiter and Schmidhuber 1997; PyTorch's order).
///
/// Inputs: the sums of all gates z, `[…, 4 · units]` in the order i, f, g, o; the cell's memory c, `[…, units]`. Output:
/// `[…, 2 · units]`, h beside the new c: c' = σ(f) c + σ(i) tanh(g), h = σ(o) tanh(c').
///
/// For an LSTM, z is the sum of two linear layers, of the input and of the last h; for a `ConvLSTM` (Shi et al. 2015), of two
/// convolutions. [`Part`](crate::Part) takes h and c apart.
///
/// With [peepholes](LstmGates::with_peepholes) gates see the cell's memory, too, number by number (Shi et al. 2015, equation 3):
/// i and f the one before, o the new one. Tensor: `weight` `[3, …, units]`, of i, f and o.
#[derive(Debug, Clone, Copy, Default)]
pub struct LstmGates {
    forget_bias: f32,
    peepholes: bool,
}

impl LstmGates {
    /// Adds this to every sum of the forget gate; TensorFlow adds 1 by default, PyTorch nothing.
    #[must_use]
    pub const fn with_forget_bias(self, forget_bias: f32) -> Self {
        LstmGates { forget_bias, ..self }
    }

    /// Lets gates see the cell's memory.
    #[must_use]
    pub const fn with_peepholes(self) -> Self {
        LstmGates { peepholes: true, ..self }
    }
}

fn units(shapes: &[&[usize]]) -> usize {
    shapes[1][shapes[1].len() - 1]
}

/// Adds the cell's memory, weighted, to the sums of a gate.
fn peep(sums: &mut [f32], weights: &[f32], c: &[f32]) {
    for ((sum, weight), c) in sums.iter_mut().zip(weights).zip(c) {
        *sum += weight * c;
    }
}

impl Layer for LstmGates {
    fn output(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, String> {
        match inputs {
            [[first @ .., sums], [second @ .., units]] if first == second && *sums == 4 * units => {
                Ok([first, &[2 * units]].concat())
            }
            _ => Err(format!("it takes […, 4 · units] and [..., units], not {inputs:?}")),
        }
    }

    fn tensors(&self, inputs: &[&[usize]]) -> Vec<TensorShape> {
        if self.peepholes { vec![tensor("weight", [&[3], inputs[1]].concat())] } else { vec![] }
    }

    /// The four gates and tanh of the new c, five numbers for each unit.
    fn kept(&self, inputs: &[&[usize]]) -> usize {
        5 * inputs[1].iter().product::<usize>()
    }

    fn forward(&self, forward: Forward<'_>) {
        let Forward { level, params, inputs, output, kept, shapes, .. } = forward;
        let (n, all) = (units(shapes), len_of(shapes[1]));
        let rows =
            inputs[0].chunks_exact(4 * n).zip(inputs[1].chunks_exact(n)).zip(kept.chunks_exact_mut(5 * n));
        for (row, (((z, c), kept), y)) in rows.zip(output.chunks_exact_mut(2 * n)).enumerate() {
            let (gates, tanh_c) = kept.split_at_mut(4 * n);
            gates.copy_from_slice(z);
            gates[n..2 * n].iter_mut().for_each(|z| *z += self.forget_bias);
            // Of i, f and o, for the cells of this row.
            let peepholes = |gate: usize| &params[gate * all + row * n % all..][..n];
            if self.peepholes {
                for (gate, sums) in gates.chunks_exact_mut(n).take(2).enumerate() {
                    peep(sums, peepholes(gate), c);
                }
            }
            Function::Sigmoid.apply(level, &mut gates[..2 * n]);
            Function::Tanh.apply(level, &mut gates[2 * n..3 * n]);
            let (h, new) = y.split_at_mut(n);
            for j in 0..n {
                new[j] = gates[n + j] * c[j] + gates[j] * gates[2 * n + j];
            }
            if self.peepholes {
                peep(&mut gates[3 * n..], peepholes(2), new);
            }
            Function::Sigmoid.apply(level, &mut gates[3 * n..]);
            tanh_c.copy_from_slice(new);
            Function::Tanh.apply(level, tanh_c);
            for j in 0..n {
                h[j] = gates[3 * n + j] * tanh_c[j];
            }
        }
    }

    fn backward(&self, backward: Backward<'_>) {
        let Backward { params, inputs, kept, d_output, d_inputs, d_params, shapes, .. } = backward;
        let ([mut dz, mut dc, ..], n, all) = (d_inputs, units(shapes), len_of(shapes[1]));
        for (row, (dy, kept)) in d_output.chunks_exact(2 * n).zip(kept.chunks_exact(5 * n)).enumerate() {
            for j in 0..n {
                let [i, f, g, o, tanh_c] = std::array::from_fn(|gate| kept[gate * n + j]);
                let (c, d_o) = (inputs[1][row * n + j], dy[j] * tanh_c * (o * (1.0 - o)));
                let mut pull = dy[n + j] + dy[j] * o * (1.0 - tanh_c * tanh_c);
                let at = (row * n + j) % all;
                if self.peepholes {
                    pull += d_o * params[2 * all + at];
                }
                let (d_i, d_f) = (pull * g * (i * (1.0 - i)), pull * c * (f * (1.0 - f)));
                let mut d_c = pull * f;
                if self.peepholes {
                    d_c += d_i * params[at];
                    d_c += d_f * params[all + at];
                    d_params[at] += d_i * c;
                    d_params[all + at] += d_f * c;
                    d_params[2 * all + at] += d_o * (f * c + i * g);
                }
                if let Some(dc) = dc.as_deref_mut() {
                    dc[row * n + j] += d_c;
                }
                if let Some(dz) = dz.as_deref_mut() {
                    let dz = &mut dz[row * 4 * n..][..4 * n];
                    dz[j] += d_i;
                    dz[n + j] += d_f;
                    dz[2 * n + j] += pull * i * (1.0 - g * g);
                    dz[3 * n + j] += d_o;
                }
            }
        }
    }

    fn exact(&self, shapes: &[&[usize]], params: &[f64], inputs: &[&[f64]]) -> Vec<f64> {
        let (n, all) = (units(shapes), len_of(shapes[1]));
        let logistic = |x: f64| 1.0 / (1.0 + (-x).exp());
        let mut y = Vec::new();
        for (row, (z, c)) in inputs[0].chunks_exact(4 * n).zip(inputs[1].chunks_exact(n)).enumerate() {
            let peephole = |gate: usize, j: usize| {
                if self.peepholes { params[gate * all + row * n + j] } else { 0.0 }
            };
            let input = |j: usize| logistic(z[j] + peephole(0, j) * c[j]);
            let forget = |j: usize| logistic(z[n + j] + f64::from(self.forget_bias) + peephole(1, j) * c[j]);
            let new: Vec<f64> = (0..n).map(|j| forget(j) * c[j] + input(j) * z[2 * n + j].tanh()).collect();
            y.extend((0..n).map(|j| logistic(z[3 * n + j] + peephole(2, j) * new[j]) * new[j].tanh()));
            y.extend(new);
        }
        y
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{gradient, refused};

    #[test]
    fn the_gradient_is_that_of_the_function() {
        gradient(&LstmGates::default(), &[&[12], &[3]]);
        gradient(&LstmGates::default().with_forget_bias(1.0), &[&[2, 3, 68], &[2, 3, 17]]);
        gradient(&LstmGates::default().with_peepholes(), &[&[12], &[3]]);
        let peeping = LstmGates::default().with_forget_bias(1.0).with_peepholes();
        gradient(&peeping, &[&[2, 3, 20], &[2, 3, 5]]);
        refused(&LstmGates::default(), &[&[12], &[4]], "4 · units");
    }
}
