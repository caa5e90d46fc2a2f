//! Functions of layers and their gradients, number by number or row by row.
//!
//! The results are bit-identical on all instruction sets. A gradient is computed from the function's own output
//! `y`, so that a layer may overwrite its input.

use crate::Level;
use crate::lanes::{Block, Isa, Lanes, Task, exp, sigmoid, tanh};

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
            rest.copy_from_slice(&last.0[..rest.len()]);
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
            dy.copy_from_slice(&d.0[..dy.len()]);
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
    block.0[..xs.len()].copy_from_slice(xs);
    block
}

/// Replaces every row of `cols` numbers by its softmax. A row of −∞ alone becomes NaN.
///
/// # Panics
/// When `cols` is 0 or does not divide the length.
pub fn softmax(level: Level, xs: &mut [f32], cols: usize) {
    assert!(cols > 0 && xs.len().is_multiple_of(cols), "{} numbers in rows of {cols}", xs.len());
    level.run(Softmax { xs, cols });
}

/// Replaces the gradient `dy` with respect to the [`softmax`] `y` by that with respect to its input.
///
/// # Panics
/// When the lengths differ, `cols` is 0 or does not divide them.
pub fn softmax_backward(level: Level, y: &[f32], dy: &mut [f32], cols: usize) {
    assert_eq!(y.len(), dy.len(), "outputs and their gradients");
    assert!(cols > 0 && y.len().is_multiple_of(cols), "{} numbers in rows of {cols}", y.len());
    level.run(SoftmaxBackward { y, dy, cols });
}

struct Softmax<'a> {
    xs: &'a mut [f32],
    cols: usize,
}

impl Task for Softmax<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        for row in self.xs.chunks_exact_mut(self.cols) {
            let (blocks, rest) = row.as_chunks_mut::<16>();
            let mut most = isa.splat16(f32::NEG_INFINITY);
            for block in &*blocks {
                most = isa.load16(block).max(most);
            }
            most = isa.load16(&padded_with(rest, f32::NEG_INFINITY).0).max(most);
            let most = isa.splat16(most.largest());
            let mut sum = isa.splat16(0.0);
            for block in &mut *blocks {
                let e = exp(isa, isa.load16(block).sub(most));
                e.store(block);
                sum = sum.add(e);
            }
            let mut last = padded_with(rest, f32::NEG_INFINITY);
            if !rest.is_empty() {
                exp(isa, isa.load16(&last.0).sub(most)).store(&mut last.0);
                last.0[rest.len()..].fill(0.0);
                sum = sum.add(isa.load16(&last.0));
            }
            let scale = isa.splat16(1.0).div(isa.splat16(sum.sum()));
            for block in blocks {
                isa.load16(block).mul(scale).store(block);
            }
            isa.load16(&last.0).mul(scale).store(&mut last.0);
            rest.copy_from_slice(&last.0[..rest.len()]);
        }
    }
}

struct SoftmaxBackward<'a> {
    y: &'a [f32],
    dy: &'a mut [f32],
    cols: usize,
}

impl Task for SoftmaxBackward<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        for (y, dy) in self.y.chunks_exact(self.cols).zip(self.dy.chunks_exact_mut(self.cols)) {
            let mean = isa.splat16(dot_of(isa, y, dy));
            let (ys, y) = y.as_chunks::<16>();
            let (dys, dy) = dy.as_chunks_mut::<16>();
            for (y, dy) in ys.iter().zip(dys) {
                isa.load16(y).mul(isa.load16(dy).sub(mean)).store(dy);
            }
            let (last, mut d) = (padded(y), padded(dy));
            isa.load16(&last.0).mul(isa.load16(&d.0).sub(mean)).store(&mut d.0);
            dy.copy_from_slice(&d.0[..dy.len()]);
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
    for ((dx, &d), &normal) in dx.iter_mut().zip(d).zip(normal) {
        *dx += scale * (d - mean - normal * along);
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
                softmax(level, &mut ys, cols);
                ys
            });
            let d = numbers(3 * cols, 1.0);
            let dx = everywhere(|level| {
                let mut d = d.clone();
                softmax_backward(level, &ys, &mut d, cols);
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
        let mut sums = vec![1.0, 2.0];
        add_rows(&mut sums, &[10.0, 20.0, 100.0, 200.0]);
        assert_eq!(sums, [111.0, 222.0]);
    }
}
