//! The gates of an LSTM, plain or convolutional.

use foveate_kernels::elementwise::Function;

use crate::layer::{Backward, Forward, Layer};

/// The gates of an LSTM (Hochreiter and Schmidhuber 1997; PyTorch's order).
///
/// Inputs: the sums of all gates z, `[…, 4 · units]` in the order i, f, g, o; the cell's memory c, `[…, units]`. Output:
/// `[…, 2 · units]`, h beside the new c: c' = σ(f) c + σ(i) tanh(g), h = σ(o) tanh(c').
///
/// For an LSTM, z is the sum of two linear layers, of the input and of the last h; for a `ConvLSTM` (Shi et al. 2015), of two
/// convolutions. [`Part`](crate::Part) takes h and c apart.
#[derive(Debug, Clone, Copy, Default)]
pub struct LstmGates {
    forget_bias: f32,
}

impl LstmGates {
    /// Adds this to every sum of the forget gate; TensorFlow adds 1 by default, PyTorch nothing.
    #[must_use]
    pub const fn with_forget_bias(self, forget_bias: f32) -> Self {
        LstmGates { forget_bias }
    }
}

fn units(shapes: &[&[usize]]) -> usize {
    shapes[1][shapes[1].len() - 1]
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

    /// The four gates and tanh of the new c, five numbers for each unit.
    fn kept(&self, inputs: &[&[usize]]) -> usize {
        5 * inputs[1].iter().product::<usize>()
    }

    fn forward(&self, forward: Forward<'_>) {
        let Forward { level, inputs, output, kept, shapes, .. } = forward;
        let n = units(shapes);
        let rows =
            inputs[0].chunks_exact(4 * n).zip(inputs[1].chunks_exact(n)).zip(kept.chunks_exact_mut(5 * n));
        for (((z, c), kept), y) in rows.zip(output.chunks_exact_mut(2 * n)) {
            let (gates, tanh_c) = kept.split_at_mut(4 * n);
            gates.copy_from_slice(z);
            gates[n..2 * n].iter_mut().for_each(|z| *z += self.forget_bias);
            Function::Sigmoid.apply(level, &mut gates[..2 * n]);
            Function::Tanh.apply(level, &mut gates[2 * n..3 * n]);
            Function::Sigmoid.apply(level, &mut gates[3 * n..]);
            let (h, new) = y.split_at_mut(n);
            for j in 0..n {
                new[j] = gates[n + j] * c[j] + gates[j] * gates[2 * n + j];
            }
            tanh_c.copy_from_slice(new);
            Function::Tanh.apply(level, tanh_c);
            for j in 0..n {
                h[j] = gates[3 * n + j] * tanh_c[j];
            }
        }
    }

    fn backward(&self, backward: Backward<'_>) {
        let Backward { inputs, kept, d_output, d_inputs: [mut dz, mut dc, ..], shapes, .. } = backward;
        let n = units(shapes);
        for (row, (dy, kept)) in d_output.chunks_exact(2 * n).zip(kept.chunks_exact(5 * n)).enumerate() {
            for j in 0..n {
                let [i, f, g, o, tanh_c] = std::array::from_fn(|gate| kept[gate * n + j]);
                let pull = dy[n + j] + dy[j] * o * (1.0 - tanh_c * tanh_c);
                if let Some(dc) = dc.as_deref_mut() {
                    dc[row * n + j] += pull * f;
                }
                if let Some(dz) = dz.as_deref_mut() {
                    let dz = &mut dz[row * 4 * n..][..4 * n];
                    dz[j] += pull * g * (i * (1.0 - i));
                    dz[n + j] += pull * inputs[1][row * n + j] * (f * (1.0 - f));
                    dz[2 * n + j] += pull * i * (1.0 - g * g);
                    dz[3 * n + j] += dy[j] * tanh_c * (o * (1.0 - o));
                }
            }
        }
    }

    fn exact(&self, shapes: &[&[usize]], _: &[f64], inputs: &[&[f64]]) -> Vec<f64> {
        let n = units(shapes);
        let logistic = |x: f64| 1.0 / (1.0 + (-x).exp());
        let mut y = Vec::new();
        for (z, c) in inputs[0].chunks_exact(4 * n).zip(inputs[1].chunks_exact(n)) {
            let forget = |j: usize| logistic(z[n + j] + f64::from(self.forget_bias));
            let new: Vec<f64> =
                (0..n).map(|j| forget(j) * c[j] + logistic(z[j]) * z[2 * n + j].tanh()).collect();
            y.extend((0..n).map(|j| logistic(z[3 * n + j]) * new[j].tanh()));
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
        refused(&LstmGates::default(), &[&[12], &[4]], "4 · units");
    }
}
