//! Layers that only move numbers: coordinates, parts, concatenation; and sums of two tensors.

use foveate_kernels::elementwise::add;

use crate::layer::{Backward, Forward, Layer, len_of, one};

/// Appends two channels to a picture, column / width and row / height, each from 0 to below 1: `[height, width, channels]`
/// to `[height, width, channels + 2]`.
#[derive(Debug, Clone, Copy)]
pub struct Coordinates;

impl Layer for Coordinates {
    fn output(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, String> {
        match *one(inputs)? {
            [height, width, channels] => Ok(vec![height, width, channels + 2]),
            ref shape => Err(format!("it takes [height, width, channels], not {shape:?}")),
        }
    }

    fn forward(&self, forward: Forward<'_>) {
        let Forward { inputs, output, shapes, .. } = forward;
        let [height, width, c] = [shapes[0][0], shapes[0][1], shapes[0][2]];
        let pixels = inputs[0].chunks_exact(c).zip(output.chunks_exact_mut(c + 2));
        for (at, (from, to)) in pixels.enumerate() {
            let (row, column) = (at / width % height, at % width);
            to[..c].copy_from_slice(from);
            to[c] = column as f32 / width as f32;
            to[c + 1] = row as f32 / height as f32;
        }
    }

    fn backward(&self, backward: Backward<'_>) {
        let Backward { d_output, d_inputs: [dx, ..], shapes, .. } = backward;
        let Some(dx) = dx else { return };
        let c = shapes[0][2];
        for (dx, dy) in dx.chunks_exact_mut(c).zip(d_output.chunks_exact(c + 2)) {
            add(dx, &dy[..c]);
        }
    }

    fn exact(&self, shapes: &[&[usize]], _: &[f64], inputs: &[&[f64]]) -> Vec<f64> {
        let [height, width, c] = [shapes[0][0], shapes[0][1], shapes[0][2]];
        let pixels = inputs[0].chunks_exact(c).enumerate();
        let place = |at: usize| [(at % width) as f64 / width as f64, (at / width) as f64 / height as f64];
        pixels.flat_map(|(at, pixel)| [pixel, &place(at)].concat()).collect()
    }
}

/// Joins two tensors along the last axis: `[…, a]` and `[…, b]` to `[…, a + b]`.
#[derive(Debug, Clone, Copy)]
pub struct Concat;

impl Concat {
    fn widths(shapes: &[&[usize]]) -> [usize; 2] {
        [shapes[0][shapes[0].len() - 1], shapes[1][shapes[1].len() - 1]]
    }
}

impl Layer for Concat {
    fn output(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, String> {
        match inputs {
            [[first @ .., a], [second @ .., b]] if first == second => Ok([first, &[a + b]].concat()),
            _ => Err(format!("it joins two tensors that differ in the last axis alone, not {inputs:?}")),
        }
    }

    fn forward(&self, forward: Forward<'_>) {
        let Forward { inputs, output, shapes, .. } = forward;
        let [a, b] = Concat::widths(shapes);
        let rows = inputs[0].chunks_exact(a).zip(inputs[1].chunks_exact(b));
        for ((first, second), y) in rows.zip(output.chunks_exact_mut(a + b)) {
            y[..a].copy_from_slice(first);
            y[a..].copy_from_slice(second);
        }
    }

    fn backward(&self, backward: Backward<'_>) {
        let Backward { d_output, d_inputs: [da, db, ..], shapes, .. } = backward;
        let [a, b] = Concat::widths(shapes);
        if let Some(da) = da {
            for (da, dy) in da.chunks_exact_mut(a).zip(d_output.chunks_exact(a + b)) {
                add(da, &dy[..a]);
            }
        }
        if let Some(db) = db {
            for (db, dy) in db.chunks_exact_mut(b).zip(d_output.chunks_exact(a + b)) {
                add(db, &dy[a..]);
            }
        }
    }

    fn exact(&self, shapes: &[&[usize]], _: &[f64], inputs: &[&[f64]]) -> Vec<f64> {
        let [a, b] = Concat::widths(shapes);
        let rows = inputs[0].chunks_exact(a).zip(inputs[1].chunks_exact(b));
        rows.flat_map(|(first, second)| [first, second].concat()).collect()
    }
}

/// The part of the last axis that begins at `begin` and has `len` numbers: `[…, n]` to `[…, len]`.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// The first number.
    pub begin: usize,
    /// Their number.
    pub len: usize,
}

impl Layer for Part {
    fn output(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, String> {
        match one(inputs)? {
            [first @ .., n] if self.begin.checked_add(self.len).is_some_and(|end| end <= *n) => {
                Ok([first, &[self.len]].concat())
            }
            shape => Err(format!("numbers {} and {} after it, of {shape:?}", self.begin, self.len)),
        }
    }

    fn forward(&self, forward: Forward<'_>) {
        let Forward { inputs, output, shapes, .. } = forward;
        let n = shapes[0][shapes[0].len() - 1];
        for (x, y) in inputs[0].chunks_exact(n).zip(output.chunks_exact_mut(self.len)) {
            y.copy_from_slice(&x[self.begin..][..self.len]);
        }
    }

    fn backward(&self, backward: Backward<'_>) {
        let Backward { d_output, d_inputs: [dx, ..], shapes, .. } = backward;
        let Some(dx) = dx else { return };
        let n = shapes[0][shapes[0].len() - 1];
        for (dx, dy) in dx.chunks_exact_mut(n).zip(d_output.chunks_exact(self.len)) {
            add(&mut dx[self.begin..][..self.len], dy);
        }
    }

    fn exact(&self, shapes: &[&[usize]], _: &[f64], inputs: &[&[f64]]) -> Vec<f64> {
        let n = shapes[0][shapes[0].len() - 1];
        inputs[0].chunks_exact(n).flat_map(|x| x[self.begin..][..self.len].to_vec()).collect()
    }
}

/// The sum of two tensors of equal shape, as at the end of a residual block.
#[derive(Debug, Clone, Copy)]
pub struct Add;

impl Layer for Add {
    fn output(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, String> {
        match inputs {
            [a, b] if a == b => Ok(a.to_vec()),
            _ => Err(format!("it adds two tensors of equal shape, not {inputs:?}")),
        }
    }

    fn forward(&self, forward: Forward<'_>) {
        let Forward { inputs, output, .. } = forward;
        output.copy_from_slice(inputs[0]);
        add(output, inputs[1]);
    }

    fn backward(&self, backward: Backward<'_>) {
        let Backward { d_output, d_inputs, .. } = backward;
        for dx in d_inputs.into_iter().flatten() {
            add(dx, d_output);
        }
    }

    fn exact(&self, _: &[&[usize]], _: &[f64], inputs: &[&[f64]]) -> Vec<f64> {
        inputs[0].iter().zip(inputs[1]).map(|(a, b)| a + b).collect()
    }
}

/// Scores of additive attention between all pairs (Bahdanau et al. 2015): the sums q + k of every query with every key,
/// `[heads…, queries, d]` and `[heads…, tokens, d]` to `[heads…, queries, tokens, d]`.
#[derive(Debug, Clone, Copy)]
pub struct PairSums;

impl PairSums {
    /// Heads, queries, tokens, d.
    fn sizes(shapes: &[&[usize]]) -> Option<[usize; 4]> {
        match shapes {
            [[first @ .., queries, d], [second @ .., tokens, same]] if first == second && d == same => {
                Some([len_of(first), *queries, *tokens, *d])
            }
            _ => None,
        }
    }
}

impl Layer for PairSums {
    fn output(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, String> {
        let Some([_, queries, tokens, d]) = PairSums::sizes(inputs) else {
            return Err(format!("it takes [heads, queries, d] and [heads, tokens, d], not {inputs:?}"));
        };
        Ok([&inputs[0][..inputs[0].len() - 2], &[queries, tokens, d]].concat())
    }

    fn forward(&self, forward: Forward<'_>) {
        let Forward { inputs, output, shapes, .. } = forward;
        let Some([_, queries, tokens, d]) = PairSums::sizes(shapes) else { return };
        for (at, y) in output.chunks_exact_mut(d).enumerate() {
            let (head, query, token) = (at / tokens / queries, at / tokens % queries, at % tokens);
            y.copy_from_slice(&inputs[0][(head * queries + query) * d..][..d]);
            add(y, &inputs[1][(head * tokens + token) * d..][..d]);
        }
    }

    fn backward(&self, backward: Backward<'_>) {
        let Backward { d_output, d_inputs: [mut dq, mut dk, ..], shapes, .. } = backward;
        let Some([_, queries, tokens, d]) = PairSums::sizes(shapes) else { return };
        for (at, dy) in d_output.chunks_exact(d).enumerate() {
            let (head, query, token) = (at / tokens / queries, at / tokens % queries, at % tokens);
            if let Some(dq) = dq.as_deref_mut() {
                add(&mut dq[(head * queries + query) * d..][..d], dy);
            }
            if let Some(dk) = dk.as_deref_mut() {
                add(&mut dk[(head * tokens + token) * d..][..d], dy);
            }
        }
    }

    fn exact(&self, shapes: &[&[usize]], _: &[f64], inputs: &[&[f64]]) -> Vec<f64> {
        let Some([heads, queries, tokens, d]) = PairSums::sizes(shapes) else { return vec![] };
        let mut y = Vec::with_capacity(heads * queries * tokens * d);
        for head in 0..heads {
            for query in 0..queries {
                for token in 0..tokens {
                    for i in 0..d {
                        y.push(
                            inputs[0][(head * queries + query) * d + i]
                                + inputs[1][(head * tokens + token) * d + i],
                        );
                    }
                }
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
        gradient(&Coordinates, &[&[3, 4, 2]]);
        gradient(&Concat, &[&[4, 3], &[4, 2]]);
        gradient(&Part { begin: 2, len: 3 }, &[&[2, 6]]);
        gradient(&Add, &[&[2, 6], &[2, 6]]);
        gradient(&PairSums, &[&[2, 3, 4], &[2, 5, 4]]);
        refused(&Coordinates, &[&[3, 4]], "[height, width, channels]");
        refused(&Concat, &[&[4, 3], &[5, 2]], "differ in the last axis alone");
        refused(&Part { begin: usize::MAX, len: 3 }, &[&[2, 6]], "of [2, 6]");
        refused(&Add, &[&[2, 6], &[6, 2]], "equal shape");
        refused(&PairSums, &[&[2, 3, 4], &[2, 5, 3]], "not [[2, 3, 4]");
    }
}
