//! Softmax, weighted sums of tokens, and the two together: attention.

use foveate_kernels::elementwise::{softmax, softmax_backward};
use foveate_kernels::gemm::View;

use crate::layer::{Backward, Forward, Layer, len_of, one};

/// Softmax over the last axis.
#[derive(Debug, Clone, Copy)]
pub struct Softmax;

impl Layer for Softmax {
    fn output(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, String> {
        let shape = one(inputs)?;
        if shape.is_empty() {
            Err("it needs an input with at least one axis".into())
        } else {
            Ok(shape.to_vec())
        }
    }

    fn forward(&self, forward: Forward<'_>) {
        let Forward { level, inputs, output, shapes, .. } = forward;
        output.copy_from_slice(inputs[0]);
        softmax(level, output, shapes[0][shapes[0].len() - 1], 1.0);
    }

    fn backward(&self, backward: Backward<'_>) {
        let Backward { level, output, d_output, d_inputs: [dx, ..], shapes, .. } = backward;
        let Some(dx) = dx else { return };
        softmax_backward(level, output, d_output, shapes[0][shapes[0].len() - 1], 1.0);
        foveate_kernels::elementwise::add(dx, d_output);
    }

    fn reads_output(&self) -> bool {
        true
    }

    fn exact(&self, shapes: &[&[usize]], _: &[f64], inputs: &[&[f64]]) -> Vec<f64> {
        let mut y = inputs[0].to_vec();
        y.chunks_exact_mut(shapes[0][shapes[0].len() - 1]).for_each(exact_softmax);
        y
    }
}

fn exact_softmax(row: &mut [f64]) {
    let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for x in &mut *row {
        *x = (*x - most).exp();
    }
    let sum: f64 = row.iter().sum();
    for x in row {
        *x /= sum;
    }
}

/// Heads, and the two last axes.
fn heads<'a>(shapes: &[&'a [usize]]) -> Option<(&'a [usize], Vec<[usize; 2]>)> {
    let split = |shape: &'a [usize]| match shape {
        [heads @ .., rows, cols] => Some((heads, [*rows, *cols])),
        _ => None,
    };
    let parts: Option<Vec<_>> = shapes.iter().map(|shape| split(shape)).collect();
    let parts = parts?;
    let first = parts.first()?.0;
    let same = parts.iter().all(|(heads, _)| *heads == first);
    same.then(|| (first, parts.into_iter().map(|(_, sizes)| sizes).collect()))
}

/// Sums of tokens: weights `[heads…, queries, tokens]` and values `[heads…, tokens, features]` to
/// `[heads…, queries, features]`.
#[derive(Debug, Clone, Copy)]
pub struct WeightedSum;

impl Layer for WeightedSum {
    fn output(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, String> {
        if let Some((heads, sizes)) = heads(inputs)
            && let [[queries, tokens], [values, features]] = sizes[..]
            && tokens == values
        {
            return Ok([heads, &[queries, features]].concat());
        }
        Err(format!("it takes [heads, queries, tokens] and [heads, tokens, features], not {inputs:?}"))
    }

    fn forward(&self, forward: Forward<'_>) {
        let Forward { level, inputs, output, shapes, work, .. } = forward;
        let [queries, tokens] = last_two(shapes[0]);
        let [_, features] = last_two(shapes[1]);
        let heads = inputs[0].chunks_exact(queries * tokens).zip(inputs[1].chunks_exact(tokens * features));
        for ((weights, values), y) in heads.zip(output.chunks_exact_mut(queries * features)) {
            let (weights, values) =
                (View::new(weights, queries, tokens), View::new(values, tokens, features));
            work.gemm.product(level, weights, values, y);
        }
    }

    fn backward(&self, backward: Backward<'_>) {
        let Backward { level, inputs, d_output, d_inputs: [mut dw, mut dv, ..], shapes, work, .. } = backward;
        let [queries, tokens] = last_two(shapes[0]);
        let [_, features] = last_two(shapes[1]);
        let (w, v) = (queries * tokens, tokens * features);
        for (head, dy) in d_output.chunks_exact(queries * features).enumerate() {
            let dy = View::new(dy, queries, features);
            if let Some(dw) = dw.as_deref_mut() {
                let values = View::new(&inputs[1][head * v..][..v], tokens, features);
                work.gemm.add_product(level, dy, values.transposed(), &mut dw[head * w..][..w]);
            }
            if let Some(dv) = dv.as_deref_mut() {
                let weights = View::new(&inputs[0][head * w..][..w], queries, tokens);
                work.gemm.add_product(level, weights.transposed(), dy, &mut dv[head * v..][..v]);
            }
        }
    }

    fn exact(&self, shapes: &[&[usize]], _: &[f64], inputs: &[&[f64]]) -> Vec<f64> {
        let [queries, tokens] = last_two(shapes[0]);
        let [_, features] = last_two(shapes[1]);
        let heads = len_of(shapes[0]) / (queries * tokens);
        let mut y = vec![0.0; heads * queries * features];
        for (at, y) in y.iter_mut().enumerate() {
            let (head, query, feature) = (at / features / queries, at / features % queries, at % features);
            for token in 0..tokens {
                *y += inputs[0][(head * queries + query) * tokens + token]
                    * inputs[1][(head * tokens + token) * features + feature];
            }
        }
        y
    }
}

fn last_two(shape: &[usize]) -> [usize; 2] {
    [shape[shape.len() - 2], shape[shape.len() - 1]]
}

/// Softmax attention (Vaswani et al. 2017): softmax(Q Kᵀ · scale) V for each head.
///
/// Inputs: queries `[heads…, queries, d]`, keys `[heads…, tokens, d]`, values `[heads…, tokens, features]`. Output:
/// `[heads…, queries, features]`. It keeps the weights, `[heads…, queries, tokens]`.
#[derive(Debug, Clone, Copy)]
pub struct SoftmaxAttention {
    scale: f32,
}

impl SoftmaxAttention {
    /// With this factor of queries × keys, usually 1 / √d.
    pub const fn new(scale: f32) -> Self {
        SoftmaxAttention { scale }
    }
}

impl Layer for SoftmaxAttention {
    fn output(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, String> {
        if let Some((heads, sizes)) = heads(inputs)
            && let [[queries, d], [tokens, keys], [values, features]] = sizes[..]
            && (d, tokens) == (keys, values)
        {
            return Ok([heads, &[queries, features]].concat());
        }
        Err(format!(
            "it takes [heads, queries, d], [heads, tokens, d] and [heads, tokens, features], not {inputs:?}"
        ))
    }

    fn kept(&self, inputs: &[&[usize]]) -> usize {
        let [queries, d] = last_two(inputs[0]);
        len_of(inputs[0]) / (queries * d) * queries * last_two(inputs[1])[0]
    }

    fn forward(&self, forward: Forward<'_>) {
        let Forward { level, inputs, output, kept, shapes, work, .. } = forward;
        let [queries, d] = last_two(shapes[0]);
        let [tokens, features] = last_two(shapes[2]);
        let heads = kept.chunks_exact_mut(queries * tokens).zip(output.chunks_exact_mut(queries * features));
        for (head, (weights, y)) in heads.enumerate() {
            let q = View::new(&inputs[0][head * queries * d..][..queries * d], queries, d);
            let k = View::new(&inputs[1][head * tokens * d..][..tokens * d], tokens, d);
            let v = View::new(&inputs[2][head * tokens * features..][..tokens * features], tokens, features);
            work.gemm.product(level, q, k.transposed(), weights);
            softmax(level, weights, tokens, self.scale);
            work.gemm.product(level, View::new(weights, queries, tokens), v, y);
        }
    }

    fn backward(&self, backward: Backward<'_>) {
        let Backward { level, inputs, kept, d_output, d_inputs, shapes, work, .. } = backward;
        let [mut dq, mut dk, mut dv, ..] = d_inputs;
        let [queries, d] = last_two(shapes[0]);
        let [tokens, features] = last_two(shapes[2]);
        let (a, b, c) = (queries * d, tokens * d, tokens * features);
        let (gemm, room) = work.room(queries * tokens);
        for (head, dy) in d_output.chunks_exact(queries * features).enumerate() {
            let dy = View::new(dy, queries, features);
            let q = View::new(&inputs[0][head * a..][..a], queries, d);
            let k = View::new(&inputs[1][head * b..][..b], tokens, d);
            let v = View::new(&inputs[2][head * c..][..c], tokens, features);
            let weights = &kept[head * queries * tokens..][..queries * tokens];
            if let Some(dv) = dv.as_deref_mut() {
                let weights = View::new(weights, queries, tokens).transposed();
                gemm.add_product(level, weights, dy, &mut dv[head * c..][..c]);
            }
            gemm.product(level, dy, v.transposed(), room);
            softmax_backward(level, weights, room, tokens, self.scale);
            let scores = View::new(room, queries, tokens);
            if let Some(dq) = dq.as_deref_mut() {
                gemm.add_product(level, scores, k, &mut dq[head * a..][..a]);
            }
            if let Some(dk) = dk.as_deref_mut() {
                gemm.add_product(level, scores.transposed(), q, &mut dk[head * b..][..b]);
            }
        }
    }

    fn exact(&self, shapes: &[&[usize]], _: &[f64], inputs: &[&[f64]]) -> Vec<f64> {
        let [queries, d] = last_two(shapes[0]);
        let tokens = last_two(shapes[1])[0];
        let heads = len_of(shapes[0]) / (queries * d);
        let mut weights = vec![0.0; heads * queries * tokens];
        for (at, weight) in weights.iter_mut().enumerate() {
            let (head, query, token) = (at / tokens / queries, at / tokens % queries, at % tokens);
            let q = &inputs[0][(head * queries + query) * d..][..d];
            let k = &inputs[1][(head * tokens + token) * d..][..d];
            *weight = q.iter().zip(k).map(|(q, k)| q * k).sum::<f64>() * f64::from(self.scale);
        }
        weights.chunks_exact_mut(tokens).for_each(exact_softmax);
        let shape = [&shapes[0][..shapes[0].len() - 1], &[tokens]].concat();
        WeightedSum.exact(&[&shape, shapes[2]], &[], &[&weights, inputs[2]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{gradient, refused};

    #[test]
    fn the_gradient_is_that_of_the_function() {
        gradient(&Softmax, &[&[3, 5]]);
        gradient(&WeightedSum, &[&[3, 5], &[5, 2]]);
        gradient(&WeightedSum, &[&[2, 3, 5], &[2, 5, 4]]);
        gradient(&SoftmaxAttention::new(0.5), &[&[4, 3], &[5, 3], &[5, 2]]);
        gradient(&SoftmaxAttention::new(0.3), &[&[2, 4, 3], &[2, 4, 3], &[2, 4, 17]]);
        refused(&WeightedSum, &[&[3, 5], &[4, 2]], "[[3, 5], [4, 2]]");
        refused(&SoftmaxAttention::new(1.0), &[&[2, 4, 3], &[3, 4, 3], &[2, 4, 17]], "not [[2, 4, 3]");
    }
}
