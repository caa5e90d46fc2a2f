//! Plain Rust.

use super::{Isa, Lanes};

/// The portable instruction set, available on every processor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Portable;

impl Isa for Portable {
    type V16 = Array<16>;
    type V8 = Array<8>;
    const ROWS: usize = 2;

    #[inline(always)]
    fn splat16(self, x: f32) -> Array<16> {
        Array([x; 16])
    }
    #[inline(always)]
    fn splat8(self, x: f32) -> Array<8> {
        Array([x; 8])
    }
    #[inline(always)]
    fn load16(self, from: &[f32; 16]) -> Array<16> {
        Array(*from)
    }
    #[inline(always)]
    fn load8(self, from: &[f32; 8]) -> Array<8> {
        Array(*from)
    }
    #[inline(always)]
    fn look_up16(self, table: Array<16>, sixteenths: Array<16>) -> Array<16> {
        Array(sixteenths.0.map(|n| {
            let n = n.to_bits();
            f32::from_bits(table.0[n as usize % 16].to_bits().wrapping_add(n << 19))
        }))
    }
    #[inline(always)]
    fn transpose(self, rows: [Array<8>; 16]) -> [Array<16>; 8] {
        std::array::from_fn(|t| Array(std::array::from_fn(|i| rows[i].0[t])))
    }
    #[inline(always)]
    fn halves(self, x: Array<16>) -> [Array<8>; 2] {
        [0, 8].map(|first| Array(std::array::from_fn(|i| x.0[first + i])))
    }
}

/// Lanes in an array; the compiler vectorises where it can.
#[derive(Clone, Copy)]
pub(crate) struct Array<const N: usize>([f32; N]);

impl<const N: usize> Array<N> {
    #[inline(always)]
    fn zip(self, b: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        Array(std::array::from_fn(|i| f(self.0[i], b.0[i])))
    }

    #[inline(always)]
    fn fold(mut self, f: impl Fn(f32, f32) -> f32) -> f32 {
        let mut half = N / 2;
        while half > 0 {
            for i in 0..half {
                self.0[i] = f(self.0[i], self.0[i + half]);
            }
            half /= 2;
        }
        self.0[0]
    }
}

impl<const N: usize> Lanes<N> for Array<N> {
    #[inline(always)]
    fn store(self, to: &mut [f32; N]) {
        *to = self.0;
    }
    #[inline(always)]
    fn add(self, b: Self) -> Self {
        self.zip(b, |a, b| a + b)
    }
    #[inline(always)]
    fn sub(self, b: Self) -> Self {
        self.zip(b, |a, b| a - b)
    }
    #[inline(always)]
    fn mul(self, b: Self) -> Self {
        self.zip(b, |a, b| a * b)
    }
    #[inline(always)]
    fn div(self, b: Self) -> Self {
        self.zip(b, |a, b| a / b)
    }
    // Its fifteen operations per pair of lanes at every place would double the compilation time of this crate.
    #[inline(never)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        Array(std::array::from_fn(|i| fused(self.0[i], b.0[i], c.0[i])))
    }
    #[inline(always)]
    fn min(self, b: Self) -> Self {
        self.zip(b, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    fn max(self, b: Self) -> Self {
        self.zip(b, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    fn select_lt(self, b: Self, yes: Self, no: Self) -> Self {
        Array(std::array::from_fn(|i| if self.0[i] < b.0[i] { yes.0[i] } else { no.0[i] }))
    }
    #[inline(always)]
    fn copy_sign(self, sign: Self) -> Self {
        self.zip(sign, f32::copysign)
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Array(self.0.map(f32::sqrt))
    }
    #[inline(always)]
    fn negate_if_odd(self, magic: Self) -> Self {
        self.zip(magic, |x, m| f32::from_bits(x.to_bits() ^ m.to_bits() << 31))
    }
    #[inline(always)]
    fn scale_by_magic(self, magic: Self) -> Self {
        self.zip(magic, |p, m| f32::from_bits(p.to_bits().wrapping_add(m.to_bits() << 23)))
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        self.fold(|a, b| a + b)
    }
    #[inline(always)]
    fn largest(self) -> f32 {
        self.fold(|a, b| if a > b { a } else { b })
    }
}

/// `a * b + c` rounded once, without a fused instruction.
///
/// The product of two f32 is exact in f64. Its sum with `c` is rounded *to odd* (an inexact result gets an
/// odd last bit); rounding that to f32 is then correct (Boldo and Melquiond 2008). The library's `fmaf` does
/// the same through the floating-point environment, which does not vectorise.
#[inline(always)]
fn fused(a: f32, b: f32, c: f32) -> f32 {
    if cfg!(any(target_feature = "fma", target_arch = "aarch64")) {
        return a.mul_add(b, c);
    }
    let (product, c) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + c;
    // Knuth's two-sum: `error` is exactly the rounding error of the addition, NaN if an operand was infinite.
    let back = sum - product;
    let error = (product - (sum - back)) + (c - back);
    let bits = sum.to_bits();
    // Moves toward the error: one unit up in magnitude if it has the sign of the sum, else one down.
    let odd = if (error > 0.0) == (sum > 0.0) { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    let inexact = error.abs() > 0.0; // false for NaN
    f64::from_bits(if inexact && bits & 1 == 0 { odd } else { bits }) as f32
}

#[cfg(test)]
mod tests {
    use super::fused;

    #[track_caller]
    fn check(a: f32, b: f32, c: f32) {
        let (got, want) = (fused(a, b, c), a.mul_add(b, c));
        assert!(
            got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(),
            "{a:e} {b:e} {c:e}: {got:e} {want:e}"
        );
    }

    #[test]
    fn fused_is_rounded_once() {
        let hard = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            f32::MIN_POSITIVE,
            f32::from_bits(1),
            f32::MAX,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            1.0 + f32::EPSILON,
            1.0 - f32::EPSILON / 2.0,
            f32::EPSILON / 2.0,
            16_777_217.0,
        ];
        for a in hard {
            for b in hard {
                for c in hard {
                    check(a, b, c);
                    check(a, b, -c);
                }
            }
        }
        // Arbitrary bits, then sums that cancel, where double rounding would be visible.
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 32) as u32
        };
        for _ in 0..1_000_000 {
            let (a, b) = (f32::from_bits(next()), f32::from_bits(next()));
            check(a, b, f32::from_bits(next()));
            let near = -(a * b);
            check(a, b, f32::from_bits(near.to_bits().wrapping_add(next() % 64)));
            let tie = 1.0 + (next() % 4096) as f32 / 4096.0;
            check(tie, 1.0 + (next() % 4096) as f32 / 4096.0, f32::from_bits(next() % 0x3000_0000));
        }
    }
}
