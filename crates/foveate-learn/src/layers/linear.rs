//! Linear layers.

use foveate_core::TensorShape;
use foveate_kernels::Level;
use foveate_kernels::elementwise::{add_rows, all_zero};
use foveate_kernels::gemm::{Axis, View};
use foveate_kernels::rows::{self, Turned};

use crate::layer::{Backward, FEW, Forward, Layer, len_of, one, tensor};

/// y = W x + b over the last axis: `[…, inputs]` to `[…, outputs]`.
///
/// [`Linear::split`] and [`Linear::merging`] give or take the features of tokens in heads; the head is the slow index of the
/// features.
///
/// Tensors: `weight` `[outputs, inputs]`, `bias` `[outputs]`.
#[derive(Debug, Clone, Copy)]
pub struct Linear {
    outputs: usize,
    bias: bool,
    heads: Heads,
}

/// Which side of a [`Linear`] is in heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heads {
    Neither,
    Output(usize),
    Input,
}

impl Linear {
    /// A layer with this many outputs, and a bias.
    pub const fn new(outputs: usize) -> Self {
        Linear { outputs, bias: true, heads: Heads::Neither }
    }

    /// The same layer without a bias.
    #[must_use]
    pub const fn without_bias(self) -> Self {
        Linear { bias: false, ..self }
    }

    /// The same with its outputs in heads: `[tokens, inputs]` to `[heads, tokens, outputs / heads]`.
    #[must_use]
    pub const fn split(self, heads: usize) -> Self {
        Linear { heads: Heads::Output(heads), ..self }
    }

    /// The same with its inputs in heads: `[heads, tokens, d]` to `[tokens, outputs]`, with heads · d inputs.
    #[must_use]
    pub const fn merging(self) -> Self {
        Linear { heads: Heads::Input, ..self }
    }

    /// Numbers of an input.
    fn width(&self, shapes: &[&[usize]]) -> usize {
        match (self.heads, shapes[0]) {
            (Heads::Input, &[heads, _, d]) => heads * d,
            (_, shape) => shape.last().copied().unwrap_or(1),
        }
    }

    /// Heads, tokens and features of a head, on the side that is in heads.
    fn sizes(&self, shapes: &[&[usize]]) -> Option<[usize; 3]> {
        match (self.heads, shapes[0]) {
            (Heads::Output(heads), &[tokens, _]) => Some([heads, tokens, self.outputs / heads]),
            (Heads::Input, &[heads, tokens, d]) => Some([heads, tokens, d]),
            _ => None,
        }
    }
}

/// Where the tokens of a batch begin in a tensor `[batch, heads, tokens, d]`, and where a token's features are from there on.
fn in_heads([heads, tokens, d]: [usize; 3], batch: usize) -> [Axis; 2] {
    let rows = Axis::every(tokens, d).repeated([batch, heads * tokens * d]);
    [rows, Axis::nested([heads, tokens * d], [d, 1])]
}

impl Layer for Linear {
    fn output(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, String> {
        let shape = one(inputs)?;
        match (self.heads, shape) {
            (Heads::Neither, [first @ .., _]) => Ok([first, &[self.outputs]].concat()),
            (Heads::Neither, []) => Err("it needs an input with at least one axis".into()),
            (Heads::Output(heads), &[tokens, _]) if heads > 0 && self.outputs.is_multiple_of(heads) => {
                Ok(vec![heads, tokens, self.outputs / heads])
            }
            (Heads::Output(heads), _) => Err(format!(
                "it takes [tokens, inputs] to {heads} heads of {} outputs, not {shape:?}",
                self.outputs
            )),
            (Heads::Input, &[_, tokens, _]) => Ok(vec![tokens, self.outputs]),
            (Heads::Input, _) => Err(format!("it takes [heads, tokens, d], not {shape:?}")),
        }
    }

    fn tensors(&self, inputs: &[&[usize]]) -> Vec<TensorShape> {
        let weight = tensor("weight", [self.outputs, self.width(inputs)]);
        if self.bias { vec![weight, tensor("bias", [self.outputs])] } else { vec![weight] }
    }

    fn turn(&self, level: Level, shapes: &[&[usize]], params: &[f32], turned: &mut Turned) {
        if self.heads == Heads::Neither {
            let (n, k) = (self.outputs, self.width(shapes));
            turned.set(level, &params[..n * k], n, k);
        }
    }

    fn terms(&self, shapes: &[&[usize]]) -> usize {
        if self.heads == Heads::Neither { self.width(shapes) } else { 0 }
    }

    fn forward(&self, forward: Forward<'_>) {
        let Forward { level, batch, params, turned, inputs, rows: known, output, work, shapes, .. } = forward;
        let (n, k) = (self.outputs, self.width(shapes));
        let (weight, bias) = params.split_at(n * k);
        let bias = self.bias.then_some(bias);
        let whole = View::new(weight, n, k).transposed();
        match self.sizes(shapes) {
            None => {
                let count = output.len() / n;
                match (known, turned) {
                    (Some(known), Some(turned)) => rows::product(level, known, turned, bias, output),
                    (Some(known), None) => {
                        let own = work.turned();
                        own.set(level, weight, n, k);
                        rows::product(level, known, own, bias, output);
                    }
                    (None, Some(turned)) if count <= FEW => {
                        rows::product(level, work.rows(level, inputs[0], k), turned, bias, output);
                    }
                    _ => {
                        let x = View::new(inputs[0], count, k);
                        work.gemm.product_at(level, x, whole, bias, output, Axis::every(count, n));
                    }
                }
            }
            Some(sizes @ [heads, tokens, d]) if self.heads != Heads::Input => {
                let x = View::new(inputs[0], batch * tokens, k);
                for head in 0..heads {
                    let weight = View::new(&weight[head * d * k..][..d * k], d, k).transposed();
                    let bias = bias.map(|bias| &bias[head * d..][..d]);
                    let y = &mut output[head * tokens * d..];
                    work.gemm.product_at(level, x, weight, bias, y, in_heads(sizes, batch)[0]);
                }
            }
            Some(sizes @ [_, tokens, _]) => {
                let [rows, features] = in_heads(sizes, batch);
                let x = View::with_axes(inputs[0], rows, features);
                work.gemm.product_at(level, x, whole, bias, output, Axis::every(batch * tokens, n));
            }
        }
    }

    fn backward(&self, backward: Backward<'_>) {
        let Backward {
            level,
            batch,
            params,
            inputs,
            rows: known,
            d_output,
            d_inputs: [dx, ..],
            d_params,
            work,
            shapes,
            ..
        } = backward;
        let (n, k) = (self.outputs, self.width(shapes));
        let (d_weight, d_bias) = d_params.split_at_mut(n * k);
        let weight = View::new(&params[..n * k], n, k);
        let sizes = self.sizes(shapes);
        if let Some(known) = known {
            let own = work.turned();
            // As at the beginning of an update.
            if all_zero(d_weight) {
                own.clear(n, k);
            } else {
                own.set(level, d_weight, n, k);
            }
            rows::add_outer(level, known, d_output, own);
            own.write(level, d_weight);
            if self.bias {
                add_rows(d_bias, d_output);
            }
            return;
        }
        let gemm = &mut work.gemm;
        match sizes {
            None => {
                let rows = d_output.len() / n;
                let dy = View::new(d_output, rows, n);
                if let Some(dx) = dx {
                    gemm.add_product(level, dy, weight, dx);
                }
                gemm.add_product(level, dy.transposed(), View::new(inputs[0], rows, k), d_weight);
            }
            Some(sizes @ [_, tokens, _]) if self.heads != Heads::Input => {
                let [rows, features] = in_heads(sizes, batch);
                let dy = View::with_axes(d_output, rows, features);
                if let Some(dx) = dx {
                    gemm.add_product(level, dy, weight, dx);
                }
                let x = View::new(inputs[0], batch * tokens, k);
                gemm.add_product(level, dy.transposed(), x, d_weight);
            }
            Some(sizes @ [heads, tokens, d]) => {
                let dy = View::new(d_output, batch * tokens, n);
                let [rows, features] = in_heads(sizes, batch);
                if let Some(dx) = dx {
                    for head in 0..heads {
                        let weight = View::with_stride(&params[head * d..n * k], n, d, k);
                        gemm.add_product_at(level, dy, weight, &mut dx[head * tokens * d..], rows);
                    }
                }
                let x = View::with_axes(inputs[0], rows, features);
                gemm.add_product(level, dy.transposed(), x, d_weight);
            }
        }
        match (self.bias, self.heads, self.sizes(shapes)) {
            (false, ..) => {}
            (true, Heads::Output(heads), Some([_, tokens, d])) => {
                for (part, dy) in d_output.chunks_exact(tokens * d).enumerate() {
                    add_rows(&mut d_bias[part % heads * d..][..d], dy);
                }
            }
            _ => add_rows(d_bias, d_output),
        }
    }

    fn exact(&self, shapes: &[&[usize]], params: &[f64], inputs: &[&[f64]]) -> Vec<f64> {
        let (n, k) = (self.outputs, self.width(shapes));
        let rows = len_of(shapes[0]) / k;
        let sizes = self.sizes(shapes);
        // Where feature `i` of a row is, of `len`, in heads or not.
        let place = |row: usize, i: usize, len: usize, in_heads: bool| match sizes {
            Some([_, tokens, d]) if in_heads => (i / d * tokens + row) * d + i % d,
            _ => row * len + i,
        };
        let (from, to) = (self.heads == Heads::Input, matches!(self.heads, Heads::Output(_)));
        let mut y = vec![0.0; rows * n];
        for row in 0..rows {
            for j in 0..n {
                let bias = if self.bias { params[n * k + j] } else { 0.0 };
                let products = (0..k).map(|i| params[j * k + i] * inputs[0][place(row, i, k, from)]);
                y[place(row, j, n, to)] = bias + products.sum::<f64>();
            }
        }
        y
    }
}

#[cfg(test)]
mod tests {
    use foveate_core::Seed;

    use super::*;
    use crate::check::{gradient, refused};
    use crate::network::Builder;

    #[test]
    fn the_gradient_is_that_of_the_function() {
        gradient(&Linear::new(5), &[&[3]]);
        gradient(&Linear::new(1), &[&[2, 3, 4]]);
        gradient(&Linear::new(17).without_bias(), &[&[4, 20]]);
        gradient(&Linear::new(6).split(3), &[&[4, 5]]);
        gradient(&Linear::new(10).split(1).without_bias(), &[&[2, 3]]);
        gradient(&Linear::new(7).merging(), &[&[3, 4, 2]]);
        refused(&Linear::new(3), &[&[3], &[3]], "2 were given");
        refused(&Linear::new(6).split(4), &[&[4, 5]], "4 heads of 6 outputs");
        refused(&Linear::new(6).split(0), &[&[4, 5]], "0 heads");
        refused(&Linear::new(6).merging(), &[&[4, 5]], "[heads, tokens, d]");
    }

    /// Few samples of a prepared network, and inputs that are mostly zero, take other ways to the same numbers.
    #[test]
    fn every_way_gives_the_same_numbers() {
        const INPUTS: usize = 300;
        let mut net = Builder::default();
        let x = net.input("x", [INPUTS]);
        let first = net.layer("first", Linear::new(20), [x]);
        let other = net.layer("other", Linear::new(33), [x]);
        let last = net.layer("last", Linear::new(3), [first]);
        let net = net.build(&[last, other]).expect("a network");
        let params = net.initial(Seed::root(1));
        let mut rng = Seed::root(2).rng();
        let one_hot: Vec<f32> = (0..24 * INPUTS).map(|i| f32::from(i % 7 == 3)).collect();
        let dense: Vec<f32> = (0..24 * INPUTS).map(|_| rng.normal() as f32).collect();
        for (inputs, name) in [(one_hot, "one-hot"), (dense, "dense")] {
            // A product with a matrix of whole rows, as a sum of one term at a time.
            let exact = |sample: usize, output: usize| {
                let x = &inputs[sample * INPUTS..][..INPUTS];
                let weight = &params[output * INPUTS..][..INPUTS];
                let bias = params[20 * INPUTS + output];
                x.iter().zip(weight).fold(bias, |sum, (&x, &w)| x.mul_add(w, sum))
            };
            let mut all = net.activations(24);
            net.forward(Level::best(), &params[..], &[&inputs], 24, &mut all);
            for (at, &y) in all.get(first).iter().enumerate() {
                assert_eq!(y, exact(at / 20, at % 20), "{name}");
            }
            let turned = net.prepare(Level::best(), &params);
            for (sample, x) in inputs.chunks_exact(INPUTS).enumerate() {
                let mut one = net.activations(1);
                net.forward(Level::best(), (&params[..], &turned), &[x], 1, &mut one);
                assert_eq!(one.get(last), &all.get(last)[sample * 3..][..3], "{name}");
                assert_eq!(one.get(other), &all.get(other)[sample * 33..][..33], "{name}");
            }
            // The gradient of all samples is the sum of that of each, in their order.
            let (mut whole, mut sum) = (vec![0.0; net.params()], vec![0.0; net.params()]);
            all.clear_gradients();
            for (i, d) in all.gradient_mut(other).iter_mut().enumerate() {
                *d = (i % 5) as f32 - 1.5;
            }
            net.backward(Level::best(), &params, &mut all, &mut whole);
            for (sample, x) in inputs.chunks_exact(INPUTS).enumerate() {
                let mut one = net.activations(1);
                net.forward(Level::best(), &params[..], &[x], 1, &mut one);
                one.clear_gradients();
                for (i, d) in one.gradient_mut(other).iter_mut().enumerate() {
                    *d = ((sample * 33 + i) % 5) as f32 - 1.5;
                }
                net.backward(Level::best(), &params, &mut one, &mut sum);
            }
            assert_eq!(whole, sum, "{name}");
        }
    }
}
