//! Linear layers.

use foveate_core::TensorShape;
use foveate_kernels::elementwise::add_rows;
use foveate_kernels::gemm::View;

use crate::layer::{Backward, Forward, Layer, len_of, one, tensor};

/// y = W x + b over the last axis: `[…, inputs]` to `[…, outputs]`.
///
/// Tensors: `weight` `[outputs, inputs]`, `bias` `[outputs]`.
#[derive(Debug, Clone, Copy)]
pub struct Linear {
    outputs: usize,
    bias: bool,
}

impl Linear {
    /// A layer with this many outputs, and a bias.
    pub const fn new(outputs: usize) -> Self {
        Linear { outputs, bias: true }
    }

    /// The same layer without a bias.
    #[must_use]
    pub const fn without_bias(self) -> Self {
        Linear { bias: false, ..self }
    }
}

/// Numbers in the last axis.
fn width(shapes: &[&[usize]]) -> usize {
    shapes[0].last().copied().unwrap_or(1)
}

impl Layer for Linear {
    fn output(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, String> {
        let mut shape = one(inputs)?.to_vec();
        *shape.last_mut().ok_or("it needs an input with at least one axis")? = self.outputs;
        Ok(shape)
    }

    fn tensors(&self, inputs: &[&[usize]]) -> Vec<TensorShape> {
        let weight = tensor("weight", [self.outputs, width(inputs)]);
        if self.bias { vec![weight, tensor("bias", [self.outputs])] } else { vec![weight] }
    }

    fn forward(&self, forward: Forward<'_>) {
        let Forward { level, params, inputs, output, work, shapes, .. } = forward;
        let (n, k) = (self.outputs, width(shapes));
        let (weight, bias) = params.split_at(n * k);
        let rows = output.len() / n;
        let (x, weight) = (View::new(inputs[0], rows, k), View::new(weight, n, k).transposed());
        if self.bias {
            work.gemm.product_plus(level, x, weight, bias, output);
        } else {
            work.gemm.product(level, x, weight, output);
        }
    }

    fn backward(&self, backward: Backward<'_>) {
        let Backward { level, params, inputs, d_output, d_inputs: [dx, ..], d_params, work, shapes, .. } =
            backward;
        let (n, k) = (self.outputs, width(shapes));
        let rows = d_output.len() / n;
        let dy = View::new(d_output, rows, n);
        if let Some(dx) = dx {
            work.gemm.add_product(level, dy, View::new(&params[..n * k], n, k), dx);
        }
        let (d_weight, d_bias) = d_params.split_at_mut(n * k);
        work.gemm.add_product(level, dy.transposed(), View::new(inputs[0], rows, k), d_weight);
        if self.bias {
            add_rows(d_bias, d_output);
        }
    }

    fn exact(&self, shapes: &[&[usize]], params: &[f64], inputs: &[&[f64]]) -> Vec<f64> {
        let (n, k) = (self.outputs, width(shapes));
        let rows = len_of(shapes[0]) / k;
        let mut y = vec![0.0; rows * n];
        for row in 0..rows {
            for j in 0..n {
                let bias = if self.bias { params[n * k + j] } else { 0.0 };
                y[row * n + j] =
                    bias + (0..k).map(|i| params[j * k + i] * inputs[0][row * k + i]).sum::<f64>();
            }
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
        gradient(&Linear::new(5), &[&[3]]);
        gradient(&Linear::new(1), &[&[2, 3, 4]]);
        gradient(&Linear::new(17).without_bias(), &[&[4, 20]]);
        refused(&Linear::new(3), &[&[3], &[3]], "2 were given");
    }
}
