//! Functions of layers and their gradients, number by number or row by row.
//!
//! The results are bit-identical on all instruction sets. A gradient is computed from the function's own output
//! `y`, so that a layer may overwrite its input.

use crate::Level;
use crate::lanes::{Block, Isa, Lanes, Task, exp, sigmoid, tanh};
use crate::plain::Plain;

/// A function of one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// max(x, 0). Its gradient at 0 is 0.
    Relu,
    /// x for x > 0, else eˣ − 1.
    Elu,
    /// The hyperbolic tangent, relative error below 5e-7.
    Tanh,
    /// 1 / (1 + e⁻ˣ), absolute error below 2e-7.
    Sigmoid,
}

impl Function {
    /// Replaces every number by its value. NaN stays NaN in `Relu` and may become finite in the others.
    pub fn apply(self, level: Level, xs: &mut [f32]) {
        match self {
            Function::Relu => level.run(InPlace(Relu, xs)),
            Function::Elu => level.run(InPlace(Elu, xs)),
            Function::Tanh => level.run(InPlace(Tanh, xs)),
            Function::Sigmoid => level.run(InPlace(Sigmoid, xs)),
        }
    }

    /// Multiplies every `dy` by the derivative at the input that gave `y`.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn backward(self, level: Level, y: &[f32], dy: &mut [f32]) {
        assert_eq!(y.len(), dy.len(), "outputs and their gradients");
        match self {
            Function::Relu => level.run(Slope(Relu, y, dy)),
            Function::Elu => level.run(Slope(Elu, y, dy)),
            Function::Tanh => level.run(Slope(Tanh, y, dy)),
            Function::Sigmoid => level.run(Slope(Sigmoid, y, dy)),
        }
    }
}

/// A function and its derivative in terms of its output.
trait Map: Copy {
    fn value<I: Isa>(self, isa: I, x: I::V16) -> I::V16;
    fn slope<I: Isa>(self, isa: I, y: I::V16, dy: I::V16) -> I::V16;
}

#[derive(Clone, Copy)]
struct Relu;
#[derive(Clone, Copy)]
struct Elu;
#[derive(Clone, Copy)]
struct Tanh;
#[derive(Clone, Copy)]
struct Sigmoid;

impl Map for Relu {
    #[inline(always)]
    fn value<I: Isa>(self, isa: I, x: I::V16) -> I::V16 {
        isa.splat16(0.0).max(x)
    }
    #[inline(always)]
    fn slope<I: Isa>(self, isa: I, y: I::V16, dy: I::V16) -> I::V16 {
        isa.splat16(0.0).select_lt(y, dy, isa.splat16(0.0))
    }
}

impl Map for Elu {
    #[inline(always)]
    fn value<I: Isa>(self, isa: I, x: I::V16) -> I::V16 {
        let zero = isa.splat16(0.0);
        zero.select_lt(x, x, exp(isa, x.min(zero)).sub(isa.splat16(1.0)))
    }
    #[inline(always)]
    fn slope<I: Isa>(self, isa: I, y: I::V16, dy: I::V16) -> I::V16 {
        // Below zero the derivative is e^x = y + 1.
        isa.splat16(0.0).select_lt(y, dy, dy.mul(y.add(isa.splat16(1.0))))
    }
}

impl Map for Tanh {
    #[inline(always)]
    fn value<I: Isa>(self, isa: I, x: I::V16) -> I::V16 {
        tanh(isa, x)
    }
    #[inline(always)]
    fn slope<I: Isa>(self, isa: I, y: I::V16, dy: I::V16) -> I::V16 {
        dy.mul(isa.splat16(1.0).sub(y.mul(y)))
    }
}

impl Map for Sigmoid {
    #[inline(always)]
    fn value<I: Isa>(self, isa: I, x: I::V16) -> I::V16 {
        sigmoid(isa, x)
    }
    #[inline(always)]
    fn slope<I: Isa>(self, isa: I, y: I::V16, dy: I::V16) -> I::V16 {
        dy.mul(y.mul(isa.splat16(1.0).sub(y)))
    }
}

struct InPlace<'a, M>(M, &'a mut [f32]);

impl<M: Map> Task for InPlace<'_, M> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let InPlace(map, xs) = self;
        let (blocks, rest) = xs.as_chunks_mut::<16>();
        for block in blocks {
            map.value(isa, isa.load16(block)).store(block);
        }
        if !rest.is_empty() {
            let mut last = padded(rest);
            map.value(isa, isa.load16(&last.0)).store(&mut last.0);
            copy_few(&last.0[..rest.len()], rest);
        }
    }
}

struct Slope<'a, M>(M, &'a [f32], &'a mut [f32]);

impl<M: Map> Task for Slope<'_, M> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Slope(map, y, dy) = self;
        let (ys, y) = y.as_chunks::<16>();
        let (dys, dy) = dy.as_chunks_mut::<16>();
        for (y, dy) in ys.iter().zip(dys) {
            map.slope(isa, isa.load16(y), isa.load16(dy)).store(dy);
        }
        if !dy.is_empty() {
            let (last, mut d) = (padded(y), padded(dy));
            map.slope(isa, isa.load16(&last.0), isa.load16(&d.0)).store(&mut d.0);
            copy_few(&d.0[..dy.len()], dy);
        }
    }
}

/// Up to sixteen numbers, zeros after them.
#[inline(always)]
fn padded(xs: &[f32]) -> Block {
    padded_with(xs, 0.0)
}

#[inline(always)]
fn padded_with(xs: &[f32], fill: f32) -> Block {
    let mut block = Block([fill; 16]);
    copy_few(xs, &mut block.0);
    block
}

/// Copies fewer than sixteen numbers in pieces of fixed sizes: calling `memcpy` for them takes longer than their arithmetic.
#[inline(always)]
fn copy_few(from: &[f32], to: &mut [f32]) {
    let mut at = 0;
    macro_rules! piece {
        ($($n:literal)*) => { $(
            if from.len() & $n != 0 {
                to[at..at + $n].copy_from_slice(&from[at..at + $n]);
                at += $n;
            }
        )* };
    }
    piece!(8 4 2 1);
    debug_assert_eq!(at, from.len(), "fewer than sixteen numbers");
}

/// Replaces every row of `cols` numbers x by softmax(`factor` · x). A row of −∞ alone becomes NaN.
///
/// # Panics
/// When `cols` is 0 or does not divide the length.
pub fn softmax(level: Level, xs: &mut [f32], cols: usize, factor: f32) {
    assert!(cols > 0 && xs.len().is_multiple_of(cols), "{} numbers in rows of {cols}", xs.len());
    level.run(Softmax { xs, cols, factor });
}

/// Replaces the gradient `dy` with respect to the [`softmax`] `y` by that with respect to its input, for the same `factor`.
///
/// # Panics
/// When the lengths differ, `cols` is 0 or does not divide them.
pub fn softmax_backward(level: Level, y: &[f32], dy: &mut [f32], cols: usize, factor: f32) {
    assert_eq!(y.len(), dy.len(), "outputs and their gradients");
    assert!(cols > 0 && y.len().is_multiple_of(cols), "{} numbers in rows of {cols}", y.len());
    level.run(SoftmaxBackward { y, dy, cols, factor });
}

struct Softmax<'a> {
    xs: &'a mut [f32],
    cols: usize,
    factor: f32,
}

impl Task for Softmax<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Softmax { xs, cols, factor } = self;
        let factor = isa.splat16(factor);
        let tail = Tail::new(isa, cols);
        let least = isa.splat16(f32::NEG_INFINITY);
        for begin in (0..xs.len()).step_by(cols) {
            let behind = begin + cols - tail.len;
            let mut last = tail.or(isa, tail.load(isa, xs, behind).mul(factor), least);
            let blocks = xs[begin..behind].as_chunks_mut::<16>().0;
            let mut most = last;
            for block in &*blocks {
                most = isa.load16(block).mul(factor).max(most);
            }
            let most = isa.splat16(most.largest());
            let mut sum = isa.splat16(0.0);
            for block in &mut *blocks {
                let e = exp(isa, isa.load16(block).mul(factor).sub(most));
                e.store(block);
                sum = sum.add(e);
            }
            if tail.len > 0 {
                last = tail.or(isa, exp(isa, last.sub(most)), isa.splat16(0.0));
                sum = sum.add(last);
            }
            let scale = isa.splat16(1.0).div(isa.splat16(sum.sum()));
            for block in blocks {
                isa.load16(block).mul(scale).store(block);
            }
            tail.store(isa, last.mul(scale), xs, behind);
        }
    }
}

struct SoftmaxBackward<'a> {
    y: &'a [f32],
    dy: &'a mut [f32],
    cols: usize,
    factor: f32,
}

impl Task for SoftmaxBackward<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let SoftmaxBackward { y, dy, cols, factor } = self;
        let factor = isa.splat16(factor);
        let tail = Tail::new(isa, cols);
        let zero = isa.splat16(0.0);
        for begin in (0..y.len()).step_by(cols) {
            let behind = begin + cols - tail.len;
            let ys = y[begin..behind].as_chunks::<16>().0;
            let last_y = tail.or(isa, tail.load(isa, y, behind), zero);
            let last_d = tail.or(isa, tail.load(isa, dy, behind), zero);
            let dys = dy[begin..behind].as_chunks_mut::<16>().0;
            let mut sum = zero;
            for (y, dy) in ys.iter().zip(&*dys) {
                sum = isa.load16(y).mul_add(isa.load16(dy), sum);
            }
            let mean = isa.splat16(last_y.mul_add(last_d, sum).sum());
            for (y, dy) in ys.iter().zip(dys) {
                isa.load16(y).mul(isa.load16(dy).sub(mean)).mul(factor).store(dy);
            }
            tail.store(isa, last_y.mul(last_d.sub(mean)).mul(factor), dy, behind);
        }
    }
}

/// The numbers of a row behind its last whole block. They are read and written together with those of the next row, which
/// stay as they are, since numbers that were stored one by one cannot be loaded together without waiting for them.
#[derive(Clone, Copy)]
struct Tail<V> {
    /// Less than 16.
    len: usize,
    /// 0 to 15, and the length.
    lane: V,
    end: V,
}

impl<V: Lanes<16>> Tail<V> {
    #[inline(always)]
    fn new<I: Isa<V16 = V>>(isa: I, cols: usize) -> Self {
        const LANE: [f32; 16] = [0., 1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 11., 12., 13., 14., 15.];
        let len = cols % 16;
        Tail { len, lane: isa.load16(&LANE), end: isa.splat16(len as f32) }
    }

    /// The numbers from `at` on, and any behind them.
    #[inline(always)]
    fn load<I: Isa<V16 = V>>(self, isa: I, xs: &[f32], at: usize) -> V {
        match xs[at..].first_chunk() {
            Some(chunk) => isa.load16(chunk),
            None => isa.load16(&padded(&xs[at..at + self.len]).0),
        }
    }

    /// `x` in the lanes of the tail, `other` behind them.
    #[inline(always)]
    fn or<I: Isa<V16 = V>>(self, _: I, x: V, other: V) -> V {
        self.lane.select_lt(self.end, x, other)
    }

    #[inline(always)]
    fn store<I: Isa<V16 = V>>(self, isa: I, x: V, xs: &mut [f32], at: usize) {
        if self.len == 0 {
            return;
        }
        if let Some(chunk) = xs[at..].first_chunk_mut() {
            self.or(isa, x, isa.load16(chunk)).store(chunk);
        } else {
            let mut last = Block::default();
            x.store(&mut last.0);
            copy_few(&last.0[..self.len], &mut xs[at..at + self.len]);
        }
    }
}

/// The sum of the products of `a` and `b`: sixteen chains of fused multiply-adds, then a tree.
///
/// # Panics
/// When the lengths differ.
pub fn dot(level: Level, a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len(), "numbers of both vectors");
    level.run(Dot(a, b))
}

struct Dot<'a>(&'a [f32], &'a [f32]);

impl Task for Dot<'_> {
    type Out = f32;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> f32 {
        dot_of(isa, self.0, self.1)
    }
}

#[inline(always)]
fn dot_of<I: Isa>(isa: I, a: &[f32], b: &[f32]) -> f32 {
    let ((blocks, a), (others, b)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
    let mut sum = isa.splat16(0.0);
    for (a, b) in blocks.iter().zip(others) {
        sum = isa.load16(a).mul_add(isa.load16(b), sum);
    }
    let (a, b) = (padded(a), padded(b));
    isa.load16(&a.0).mul_add(isa.load16(&b.0), sum).sum()
}

/// Returns whether every number is finite.
pub fn all_finite(xs: &[f32]) -> bool {
    Level::best().run_plain(AllFinite(xs))
}

struct AllFinite<'a>(&'a [f32]);

impl Plain for AllFinite<'_> {
    type Out = bool;

    #[inline(always)]
    fn run(self) -> bool {
        // In parts of equal size, which compile to vector instructions.
        let (parts, rest) = self.0.as_chunks::<64>();
        let mut all = true;
        for part in parts {
            for x in part {
                all &= x.is_finite();
            }
        }
        all && rest.iter().all(|x| x.is_finite())
    }
}

/// Returns whether every number is zero.
pub fn all_zero(xs: &[f32]) -> bool {
    Level::best().run_plain(AllZero(xs))
}

struct AllZero<'a>(&'a [f32]);

impl Plain for AllZero<'_> {
    type Out = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let (parts, rest) = self.0.as_chunks::<64>();
        for part in parts {
            let mut all = true;
            for x in part {
                all &= *x == 0.0;
            }
            if !all {
                return false;
            }
        }
        rest.iter().all(|x| *x == 0.0)
    }
}

/// `y += x`.
///
/// # Panics
/// When the lengths differ.
pub fn add(y: &mut [f32], x: &[f32]) {
    assert_eq!(y.len(), x.len(), "numbers of both vectors");
    // Plain additions, which compilers turn to vectors without changing a bit.
    for (y, x) in y.iter_mut().zip(x) {
        *y += x;
    }
}

/// Adds every row of `rows`, `[n, sums.len()]`, to `sums`, the first row first.
///
/// # Panics
/// When the length of `rows` is no multiple of that of `sums`.
pub fn add_rows(sums: &mut [f32], rows: &[f32]) {
    assert!(rows.is_empty() || rows.len().is_multiple_of(sums.len()), "whole rows");
    for row in rows.chunks_exact(sums.len().max(1)) {
        add(sums, row);
    }
}

/// Mean of `xs`, and 1 / √(variance + `epsilon`) with the variance divided by the number of values.
///
/// # Panics
/// When `xs` is empty.
pub fn moments(level: Level, xs: &[f32], epsilon: f32) -> (f32, f32) {
    assert!(!xs.is_empty(), "numbers to average");
    level.run(Moments { xs, epsilon })
}

struct Moments<'a> {
    xs: &'a [f32],
    epsilon: f32,
}

impl Task for Moments<'_> {
    type Out = (f32, f32);

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> (f32, f32) {
        let (blocks, rest) = self.xs.as_chunks::<16>();
        let n = self.xs.len() as f32;
        let mut sum = isa.splat16(0.0);
        for block in blocks {
            sum = sum.add(isa.load16(block));
        }
        let mean = sum.add(isa.load16(&padded(rest).0)).sum() / n;
        let (m, mut sum) = (isa.splat16(mean), isa.splat16(0.0));
        for block in blocks {
            let d = isa.load16(block).sub(m);
            sum = d.mul_add(d, sum);
        }
        // The lanes after the last number hold the mean, which adds nothing.
        let d = isa.load16(&padded_with(rest, mean).0).sub(m);
        let variance = d.mul_add(d, sum).sum() / n;
        (mean, 1.0 / (variance + self.epsilon).sqrt())
    }
}

/// The gradient of normalisation, `x̂ = (x − mean) · scale` with the moments of `x` itself: adds to `dx` the
/// gradient for `d`, that with respect to x̂.
///
/// # Panics
/// When the lengths differ or are 0.
pub fn normalise_backward(level: Level, normal: &[f32], scale: f32, d: &[f32], dx: &mut [f32]) {
    assert!(normal.len() == d.len() && d.len() == dx.len() && !d.is_empty(), "numbers and their gradients");
    let n = d.len() as f32;
    let along = level.run(Dot(normal, d)) / n;
    let mean = level.run(Sum(d)) / n;
    level.run(AddNormalised { normal, d, dx, along, mean, scale });
}

struct AddNormalised<'a> {
    normal: &'a [f32],
    d: &'a [f32],
    dx: &'a mut [f32],
    along: f32,
    mean: f32,
    scale: f32,
}

impl Task for AddNormalised<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let AddNormalised { normal, d, dx, along, mean, scale } = self;
        let (along, mean, scale) = (isa.splat16(along), isa.splat16(mean), isa.splat16(scale));
        let ((normals, normal), (ds, d)) = (normal.as_chunks::<16>(), d.as_chunks::<16>());
        let (dxs, dx) = dx.as_chunks_mut::<16>();
        for ((dx, d), normal) in dxs.iter_mut().zip(ds).zip(normals) {
            let d = isa.load16(d).sub(mean).sub(isa.load16(normal).mul(along));
            isa.load16(dx).add(scale.mul(d)).store(dx);
        }
        if !dx.is_empty() {
            let (normal, d, mut last) = (padded(normal), padded(d), padded(dx));
            let d = isa.load16(&d.0).sub(mean).sub(isa.load16(&normal.0).mul(along));
            isa.load16(&last.0).add(scale.mul(d)).store(&mut last.0);
            copy_few(&last.0[..dx.len()], dx);
        }
    }
}

/// Normalisation: writes `normal = (x − mean) · scale`, with the [`moments`] of `x`, and `y = normal · by + plus`, or
/// `y = normal` without these; returns the scale.
///
/// # Panics
/// When the lengths differ or are 0.
pub fn normalise(
    level: Level,
    x: &[f32],
    epsilon: f32,
    affine: Option<(&[f32], &[f32])>,
    normal: &mut [f32],
    y: &mut [f32],
) -> f32 {
    let (mean, scale) = moments(level, x, epsilon);
    assert!(normal.len() == x.len() && y.len() == x.len(), "numbers and their normalised ones");
    if let Some((by, plus)) = affine {
        assert!(by.len() == x.len() && plus.len() == x.len(), "factors and terms");
    }
    level.run(Normalise { x, mean, scale, affine, normal, y });
    scale
}

struct Normalise<'a> {
    x: &'a [f32],
    mean: f32,
    scale: f32,
    affine: Option<(&'a [f32], &'a [f32])>,
    normal: &'a mut [f32],
    y: &'a mut [f32],
}

impl Task for Normalise<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Normalise { x, mean, scale, affine, normal, y } = self;
        let (mean, scale) = (isa.splat16(mean), isa.splat16(scale));
        let (xs, x) = x.as_chunks::<16>();
        let (normals, normal) = normal.as_chunks_mut::<16>();
        let (ys, y) = y.as_chunks_mut::<16>();
        if let Some((by, plus)) = affine {
            let ((bys, by), (pluses, plus)) = (by.as_chunks::<16>(), plus.as_chunks::<16>());
            let to = normals.iter_mut().zip(ys);
            for (((x, by), plus), (normal, y)) in xs.iter().zip(bys).zip(pluses).zip(to) {
                let n = isa.load16(x).sub(mean).mul(scale);
                n.store(normal);
                n.mul(isa.load16(by)).add(isa.load16(plus)).store(y);
            }
            if !x.is_empty() {
                let n = isa.load16(&padded(x).0).sub(mean).mul(scale);
                let mut last = Block::default();
                n.store(&mut last.0);
                copy_few(&last.0[..x.len()], normal);
                n.mul(isa.load16(&padded(by).0)).add(isa.load16(&padded(plus).0)).store(&mut last.0);
                copy_few(&last.0[..x.len()], y);
            }
            return;
        }
        for ((x, normal), y) in xs.iter().zip(normals).zip(ys) {
            let n = isa.load16(x).sub(mean).mul(scale);
            n.store(normal);
            n.store(y);
        }
        if !x.is_empty() {
            let mut last = Block::default();
            isa.load16(&padded(x).0).sub(mean).mul(scale).store(&mut last.0);
            copy_few(&last.0[..x.len()], normal);
            copy_few(&last.0[..x.len()], y);
        }
    }
}

/// The gradient of `y = x · by + plus`, number by number: adds those with respect to `by` and `plus`, and multiplies `dy` by
/// `by`, which gives that with respect to `x`.
///
/// # Panics
/// When the lengths differ.
pub fn affine_backward(
    level: Level,
    x: &[f32],
    by: &[f32],
    dy: &mut [f32],
    d_by: &mut [f32],
    d_plus: &mut [f32],
) {
    let lens = [by.len(), dy.len(), d_by.len(), d_plus.len()];
    assert_eq!(lens, [x.len(); 4], "numbers and their gradients");
    level.run(AffineBackward { x, by, dy, d_by, d_plus });
}

struct AffineBackward<'a> {
    x: &'a [f32],
    by: &'a [f32],
    dy: &'a mut [f32],
    d_by: &'a mut [f32],
    d_plus: &'a mut [f32],
}

impl Task for AffineBackward<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let AffineBackward { x, by, dy, d_by, d_plus } = self;
        let ((xs, x), (bys, by)) = (x.as_chunks::<16>(), by.as_chunks::<16>());
        let (dys, dy) = dy.as_chunks_mut::<16>();
        let ((d_bys, d_by), (d_pluses, d_plus)) = (d_by.as_chunks_mut::<16>(), d_plus.as_chunks_mut::<16>());
        let gradients = d_bys.iter_mut().zip(d_pluses);
        for (((x, by), dy), (d_by, d_plus)) in xs.iter().zip(bys).zip(dys).zip(gradients) {
            let d = isa.load16(dy);
            isa.load16(d_by).add(d.mul(isa.load16(x))).store(d_by);
            isa.load16(d_plus).add(d).store(d_plus);
            d.mul(isa.load16(by)).store(dy);
        }
        for i in 0..x.len() {
            d_by[i] += dy[i] * x[i];
            d_plus[i] += dy[i];
            dy[i] *= by[i];
        }
    }
}

struct Sum<'a>(&'a [f32]);

impl Task for Sum<'_> {
    type Out = f32;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> f32 {
        let (blocks, rest) = self.0.as_chunks::<16>();
        let mut sum = isa.splat16(0.0);
        for block in blocks {
            sum = sum.add(isa.load16(block));
        }
        sum.add(isa.load16(&padded(rest).0)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(n: usize, size: f64) -> Vec<f32> {
        let mut rng = foveate_core::Seed::root(n as u64).rng();
        (0..n).map(|_| rng.uniform(-size, size) as f32).collect()
    }

    /// `f` on every level; asserts equal bits.
    fn everywhere(f: impl Fn(Level) -> Vec<f32>) -> Vec<f32> {
        let expect = f(Level::PORTABLE);
        for level in Level::available() {
            let bits = |xs: &[f32]| xs.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&f(level)), bits(&expect), "{level}");
        }
        expect
    }

    fn close(a: f32, b: f64) -> bool {
        (f64::from(a) - b).abs() <= 2e-6 * (1.0 + b.abs())
    }

    #[test]
    fn functions_and_their_slopes() {
        let exact = |function, x: f64| match function {
            Function::Relu => x.max(0.0),
            Function::Elu => {
                if x > 0.0 {
                    x
                } else {
                    x.exp_m1()
                }
            }
            Function::Tanh => x.tanh(),
            Function::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        };
        for function in [Function::Relu, Function::Elu, Function::Tanh, Function::Sigmoid] {
            let xs = numbers(37, 3.0);
            let ys = everywhere(|level| {
                let mut ys = xs.clone();
                function.apply(level, &mut ys);
                ys
            });
            let slopes = everywhere(|level| {
                let mut slopes = vec![2.0; 37];
                function.backward(level, &ys, &mut slopes);
                slopes
            });
            for ((&x, &y), &slope) in xs.iter().zip(&ys).zip(&slopes) {
                let x = f64::from(x);
                assert!(close(y, exact(function, x)), "{function:?} at {x}: {y}");
                let h = 1e-6;
                let expect = (exact(function, x + h) - exact(function, x - h)) / h;
                assert!((f64::from(slope) - expect).abs() < 1e-5, "{function:?}' at {x}: {slope}, {expect}");
            }
        }
    }

    #[test]
    fn softmax_of_rows() {
        for cols in [1, 5, 16, 23, 49] {
            let xs = numbers(3 * cols, 20.0);
            let ys = everywhere(|level| {
                let mut ys = xs.clone();
                softmax(level, &mut ys, cols, 1.0);
                ys
            });
            let d = numbers(3 * cols, 1.0);
            let dx = everywhere(|level| {
                let mut d = d.clone();
                softmax_backward(level, &ys, &mut d, cols, 1.0);
                d
            });
            for (row, xs) in xs.chunks_exact(cols).enumerate() {
                let e: Vec<f64> = xs.iter().map(|&x| (f64::from(x) - 20.0).exp()).collect();
                let sum: f64 = e.iter().sum();
                let d = &d[row * cols..][..cols];
                let mean: f64 = e.iter().zip(d).map(|(e, &d)| e / sum * f64::from(d)).sum();
                for j in 0..cols {
                    assert!(close(ys[row * cols + j], e[j] / sum));
                    assert!(close(dx[row * cols + j], e[j] / sum * (f64::from(d[j]) - mean)));
                }
            }
        }
    }

    #[test]
    fn normalisation_and_its_gradient() {
        for n in [1, 7, 16, 49, 100] {
            let [x, by, plus, d] = [1, 2, 3, 4].map(|i| numbers(n + 1000 * i, 2.0)[..n].to_vec());
            let got = everywhere(|level| {
                let (mut normal, mut y) = (vec![0.0; n], vec![0.0; n]);
                normalise(level, &x, 0.1, Some((&by, &plus)), &mut normal, &mut y);
                let mut plain = vec![0.0; n];
                let scale = normalise(level, &x, 0.1, None, &mut normal, &mut plain);
                assert_eq!(normal, plain);
                let (mut dy, mut d_by, mut d_plus) = (d.clone(), vec![1.0; n], vec![2.0; n]);
                affine_backward(level, &normal, &by, &mut dy, &mut d_by, &mut d_plus);
                let mut dx = vec![3.0; n];
                normalise_backward(level, &normal, scale, &dy, &mut dx);
                [y, normal, dy, d_by, d_plus, dx].concat()
            });
            let wide = |xs: &[f32]| xs.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
            let [x, by, plus, d] = [&x, &by, &plus, &d].map(|xs| wide(xs));
            let mean = |xs: &[f64]| xs.iter().sum::<f64>() / n as f64;
            let scale =
                1.0 / (mean(&x.iter().map(|a| (a - mean(&x)).powi(2)).collect::<Vec<_>>()) + 0.1).sqrt();
            let normal: Vec<f64> = x.iter().map(|a| (a - mean(&x)) * scale).collect();
            let dy: Vec<f64> = d.iter().zip(&by).map(|(d, by)| d * by).collect();
            let along = mean(&dy.iter().zip(&normal).map(|(d, normal)| d * normal).collect::<Vec<_>>());
            for i in 0..n {
                let expect = [
                    normal[i] * by[i] + plus[i],
                    normal[i],
                    dy[i],
                    1.0 + d[i] * normal[i],
                    2.0 + d[i],
                    3.0 + scale * (dy[i] - mean(&dy) - normal[i] * along),
                ];
                for (part, expect) in expect.into_iter().enumerate() {
                    let got = got[part * n + i];
                    assert!((f64::from(got) - expect).abs() < 2e-5, "{n}, {part}, {i}: {got}, {expect}");
                }
            }
        }
    }

    #[test]
    fn sums_and_moments() {
        for n in [1, 15, 16, 100, 9216] {
            let (a, b) = (numbers(n, 1.0), numbers(n + 1, 1.0));
            let b = &b[..n];
            let expect: f64 = a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
            let size: f64 = a.iter().zip(b).map(|(&a, &b)| f64::from(a * b).abs()).sum();
            let got = everywhere(|level| vec![dot(level, &a, b)])[0];
            assert!((f64::from(got) - expect).abs() <= 1e-6 * size, "{n}: {got}, {expect}");
            let mean = a.iter().map(|&a| f64::from(a)).sum::<f64>() / n as f64;
            let variance = a.iter().map(|&a| (f64::from(a) - mean).powi(2)).sum::<f64>() / n as f64;
            let got = everywhere(|level| {
                let (mean, scale) = moments(level, &a, 1e-5);
                vec![mean, scale]
            });
            assert!(close(got[0], mean), "{n}: {got:?}, {mean}");
            assert!(
                (f64::from(got[1]) * (variance + 1e-5).sqrt() - 1.0).abs() < 1e-5,
                "{n}: {got:?}, {variance}"
            );
        }
        // A factor is as good as numbers that are multiplied by it.
        let xs = numbers(2 * 37, 3.0);
        let (mut scaled, mut given) = (xs.iter().map(|x| -0.3 * x).collect::<Vec<_>>(), xs.clone());
        softmax(Level::best(), &mut scaled, 37, 1.0);
        softmax(Level::best(), &mut given, 37, -0.3);
        assert_eq!(scaled, given);
        let mut sums = vec![1.0, 2.0];
        add_rows(&mut sums, &[10.0, 20.0, 100.0, 200.0]);
        assert_eq!(sums, [111.0, 222.0]);
    }
}
