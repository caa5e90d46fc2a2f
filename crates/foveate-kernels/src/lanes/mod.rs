//! Vector operations: sixteen (or eight) floats at a time, on any register width.
//!
//! A [`Task`] is a kernel written once over an [`Isa`]. An `Isa` value is proof that the processor has the
//! instructions, and vectors can only be made from one, so all code outside the few `unsafe` lines of the
//! instruction set files is safe. All operations are exact IEEE operations and reductions use one fixed tree:
//! every instruction set produces bit-identical results.

#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
mod pair;
mod portable;
mod sin_cos;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "aarch64")]
pub(crate) use neon::run_neon;
pub(crate) use portable::Portable;
pub(crate) use sin_cos::sin_cos;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{run_avx2, run_avx512};

/// A kernel that is compiled for every instruction set. Implementations are `#[inline(always)]`, so that they
/// get the target features of the function that they are inlined into.
pub(crate) trait Task {
    /// The kernel's result.
    type Out;
    /// Runs the kernel.
    fn run<I: Isa>(self, isa: I) -> Self::Out;
}

/// Proof that the processor has an instruction set.
pub(crate) trait Isa: Copy {
    /// Sixteen lanes.
    type V16: Lanes<16>;
    /// Eight lanes.
    type V8: Lanes<8>;
    /// Number of rows of the attention matrix processed together: as many as the registers hold.
    const ROWS: usize;

    /// Sixteen copies of `x`.
    fn splat16(self, x: f32) -> Self::V16;
    /// Eight copies of `x`.
    fn splat8(self, x: f32) -> Self::V8;
    /// Loads sixteen lanes.
    fn load16(self, from: &[f32; 16]) -> Self::V16;
    /// Loads eight lanes.
    fn load8(self, from: &[f32; 8]) -> Self::V8;
    /// In every lane, looks up the entry `n mod 16` of `table` and adds `n * 2^19` to its bits; `sixteenths`
    /// is `n / 16 + 1.5 * 2^19`. If `i * 2^19` was subtracted from the bits of entry i, the result is the
    /// entry times 2^⌊n / 16⌋.
    fn look_up16(self, table: Self::V16, sixteenths: Self::V16) -> Self::V16;
    /// Transposes rows to columns: lane i of result t is lane t of row i.
    fn transpose(self, rows: [Self::V8; 16]) -> [Self::V16; 8];
    /// Lanes 0 to 7, and lanes 8 to 15.
    fn halves(self, x: Self::V16) -> [Self::V8; 2];
    /// Loads sixteen lanes each. A loop: in a closure, such as one for `map`, vector operations may be compiled
    /// without the instruction set, as calls of functions of one instruction each.
    #[inline(always)]
    fn load_all<const N: usize>(self, from: [&Block; N]) -> [Self::V16; N] {
        let mut loaded = [self.splat16(0.0); N];
        for n in 0..N {
            loaded[n] = self.load16(&from[n].0);
        }
        loaded
    }
}

/// `N` floats. Comparisons treat NaN as x86 does; the other instruction sets imitate it.
pub(crate) trait Lanes<const N: usize>: Copy {
    /// Writes the lanes.
    fn store(self, to: &mut [f32; N]);
    /// `self + b`.
    fn add(self, b: Self) -> Self;
    /// `self - b`.
    fn sub(self, b: Self) -> Self;
    /// `self * b`.
    fn mul(self, b: Self) -> Self;
    /// `self / b`.
    fn div(self, b: Self) -> Self;
    /// `self * b + c`, rounded once.
    fn mul_add(self, b: Self, c: Self) -> Self;
    /// `if self < b { self } else { b }` in every lane: `b` when either is NaN.
    fn min(self, b: Self) -> Self;
    /// `if self > b { self } else { b }` in every lane: `b` when either is NaN.
    fn max(self, b: Self) -> Self;
    /// `if self < b { yes } else { no }` in every lane.
    fn select_lt(self, b: Self, yes: Self, no: Self) -> Self;
    /// The magnitude of `self` with the sign of `sign`.
    fn copy_sign(self, sign: Self) -> Self;
    /// The square root.
    fn sqrt(self) -> Self;
    /// `self` times (-1)^n, where `magic` is `n + 1.5 * 2^23`.
    fn negate_if_odd(self, magic: Self) -> Self;
    /// `self * 2^n`, where `magic` is `n + 1.5 * 2^23` and the result is a normal number.
    fn scale_by_magic(self, magic: Self) -> Self;
    /// The sum of all lanes in a fixed tree: lane i plus lane i + N/2, and so on down to one.
    fn sum(self) -> f32;
    /// The largest lane, with `max` in the same tree.
    fn largest(self) -> f32;
}

/// Sixteen floats, aligned to a cache line.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[repr(C, align(64))]
pub(crate) struct Block(pub(crate) [f32; 16]);

/// Views blocks as one slice of numbers.
pub(crate) fn flat(blocks: &[Block]) -> &[f32] {
    // SAFETY: `Block` is `repr(C)` with 64 bytes of f32 and alignment 64, so there is no padding: n blocks
    // are 16 n consecutive f32, and the slice borrows them for as long.
    unsafe { std::slice::from_raw_parts(blocks.as_ptr().cast(), blocks.len() * 16) }
}

/// Views blocks as one mutable slice of numbers.
pub(crate) fn flat_mut(blocks: &mut [Block]) -> &mut [f32] {
    // SAFETY: as in [`flat`]; the slice borrows the blocks mutably for as long.
    unsafe { std::slice::from_raw_parts_mut(blocks.as_mut_ptr().cast(), blocks.len() * 16) }
}

/// Eight floats, aligned to half a cache line.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[repr(C, align(32))]
pub(crate) struct Eight(pub(crate) [f32; 8]);

/// Adding it to a number of magnitude below 2^22 rounds that to an integer, which is in the low bits of the
/// sum.
const MAGIC: f32 = 12_582_912.0; // 1.5 * 2^23

/// 2^x for x in −126 ..= 126, relative error below 2e-7; exactly 1 at 0.
#[inline(always)]
#[expect(clippy::approx_constant, reason = "fitted, not ln 2")]
pub(crate) fn exp2<I: Isa>(isa: I, x: I::V16) -> I::V16 {
    let magic = isa.splat16(MAGIC);
    let rounded = x.add(magic);
    let r = x.sub(rounded.sub(magic));
    // Minimax fit of 2^r - 1 on -1/2 ..= 1/2, relative to 2^r, without a constant term.
    let mut p = isa.splat16(0.001_326_472_7);
    p = p.mul_add(r, isa.splat16(0.009_671_513));
    p = p.mul_add(r, isa.splat16(0.055_507_336));
    p = p.mul_add(r, isa.splat16(0.240_222_42));
    p = p.mul_add(r, isa.splat16(0.693_147));
    p = p.mul_add(r, isa.splat16(1.0));
    p.scale_by_magic(rounded)
}

/// Adding it to a number of magnitude below 2^18 rounds that to sixteenths; their count is in the low bits of
/// the sum.
const MAGIC_16: f32 = 786_432.0; // 1.5 * 2^19

/// 2^x for x in −123 ..= 123, relative error below 1e-6: less work than [`exp2`].
///
/// x is a multiple of 1/16, whose power comes from a table, plus a remainder. For |remainder| ≤ 1/32,
/// 2^remainder is within 7e-7 of a · ((remainder + c)² + b). The best c is close to 23/16, which saves an
/// operation: adding that constant is free.
#[inline(always)]
pub(crate) fn exp2_by_table<I: Isa>(isa: I, x: I::V16) -> I::V16 {
    const TABLE: [f32; 16] = {
        // a · 2^(i / 16), minimax together with b.
        let mut table = [
            0.241_112_53,
            0.251_787_48,
            0.262_935_07,
            0.274_576_22,
            0.286_732_73,
            0.299_427_48,
            0.312_684_27,
            0.326_527_98,
            0.340_984_6,
            0.356_081_28,
            0.371_846_35,
            0.388_309_4,
            0.405_501_3,
            0.423_454_4,
            0.442_202_33,
            0.461_780_28,
        ];
        let mut i = 0;
        while i < 16 {
            table[i] = f32::from_bits(f32::to_bits(table[i]) - ((i as u32) << 19));
            i += 1;
        }
        table
    };
    let rounded = x.add(isa.splat16(MAGIC_16));
    let r = x.sub(rounded.sub(isa.splat16(MAGIC_16 + 23.0 / 16.0)));
    let power = isa.look_up16(isa.load16(&TABLE), rounded);
    r.mul_add(r, isa.splat16(2.081_033_7)).mul(power)
}

/// e^x, saturating near e^±87.
#[inline(always)]
pub(crate) fn exp<I: Isa>(isa: I, x: I::V16) -> I::V16 {
    let x = x.mul(isa.splat16(std::f32::consts::LOG2_E));
    exp2(isa, x.min(isa.splat16(126.0)).max(isa.splat16(-126.0)))
}

/// The logistic function, absolute error below 2e-7.
#[inline(always)]
pub(crate) fn sigmoid<I: Isa>(isa: I, x: I::V16) -> I::V16 {
    let one = isa.splat16(1.0);
    one.div(one.add(exp(isa, isa.splat16(0.0).sub(x))))
}

/// The hyperbolic tangent, relative error below 5e-7.
#[inline(always)]
pub(crate) fn tanh<I: Isa>(isa: I, x: I::V16) -> I::V16 {
    let one = isa.splat16(1.0);
    // Beyond ±10 the result is ±1 in f32. NaN becomes 10 on every processor, whatever its sign.
    let x = x.min(isa.splat16(10.0)).max(isa.splat16(-10.0));
    let size = x.copy_sign(one);
    // Far from zero: 1 - 2 / (e^2|x| + 1).
    let far = one.sub(isa.splat16(2.0).div(exp(isa, size.add(size)).add(one)));
    // Near zero: minimax fit of (tanh x / x - 1) / x^2 in x^2 on 0 ..= 0.625.
    let z = x.mul(x);
    let mut p = isa.splat16(-0.005_704_985_5);
    p = p.mul_add(z, isa.splat16(0.020_639_086));
    p = p.mul_add(z, isa.splat16(-0.053_739_715));
    p = p.mul_add(z, isa.splat16(0.133_314_42));
    p = p.mul_add(z, isa.splat16(-0.333_332_8));
    let near = p.mul(z).mul_add(size, size);
    size.select_lt(isa.splat16(0.625), near, far).copy_sign(x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Level;

    struct Run<'a> {
        xs: &'a [f32],
        which: u8,
    }

    impl Task for Run<'_> {
        type Out = Vec<f32>;
        #[inline(always)]
        fn run<I: Isa>(self, isa: I) -> Vec<f32> {
            let mut out = Vec::new();
            for chunk in self.xs.as_chunks::<16>().0 {
                let x = isa.load16(chunk);
                let y = match self.which {
                    0 => exp2(isa, x),
                    1 => sigmoid(isa, x),
                    2 => tanh(isa, x),
                    5 => exp2_by_table(isa, x),
                    6 => sin_cos(isa, x).0,
                    7 => sin_cos(isa, x).1,
                    8 => x.sqrt(),
                    3 => x.mul_add(x, isa.splat16(-1.0)),
                    _ => isa.splat16(x.sum()).min(isa.splat16(x.largest())),
                };
                let mut y16 = [0.0; 16];
                y.store(&mut y16);
                out.extend(y16);
            }
            out
        }
    }

    fn sweep(low: f32, high: f32) -> Vec<f32> {
        (0..=160_015).map(|i| low + (high - low) * (i as f32 / 160_015.0)).collect()
    }

    /// The largest error of function `which` over `xs` against double precision; asserts equal bits on all
    /// levels.
    fn worst(which: u8, xs: &[f32], truth: fn(f64) -> f64, relative: bool) -> f64 {
        let portable = Level::PORTABLE.run(Run { xs, which });
        for level in Level::available() {
            let other = level.run(Run { xs, which });
            for ((x, a), b) in xs.iter().zip(&portable).zip(&other) {
                assert_eq!(a.to_bits(), b.to_bits(), "{level}: function {which} at {x}: {b} against {a}");
            }
        }
        let error = |(x, y): (&f32, &f32)| {
            let want = truth(f64::from(*x));
            (f64::from(*y) - want).abs() / if relative && want != 0.0 { want.abs() } else { 1.0 }
        };
        xs.iter().zip(&portable).map(error).fold(0.0, f64::max)
    }

    #[test]
    fn functions_are_accurate_and_equal_everywhere() {
        let tanh = |x: f64| x.tanh();
        let logistic = |x: f64| 1.0 / (1.0 + (-x).exp());
        assert!(worst(0, &sweep(-1.0, 1.0), f64::exp2, true) < 2e-7);
        assert!(worst(0, &sweep(-126.0, 126.0), f64::exp2, true) < 2e-7);
        assert!(worst(5, &sweep(-1.0, 1.0), f64::exp2, true) < 1e-6);
        assert!(worst(5, &sweep(-123.0, 123.0), f64::exp2, true) < 1e-6);
        assert!(worst(1, &sweep(-20.0, 20.0), logistic, false) < 2e-7);
        assert!(worst(1, &sweep(-3e38, 3e38), logistic, false) < 2e-7);
        assert!(worst(2, &sweep(-1.0, 1.0), tanh, true) < 5e-7);
        assert!(worst(2, &sweep(-20.0, 20.0), tanh, true) < 5e-7);
        assert!(worst(2, &sweep(-3e38, 3e38), tanh, true) < 5e-7);
        assert!(worst(2, &sweep(-1e-38, 1e-38), tanh, true) < 5e-7);
        for (which, truth) in [(6, f64::sin as fn(f64) -> f64), (7, f64::cos)] {
            assert!(worst(which, &sweep(-4.0, 4.0), truth, false) < 2e-7);
            assert!(worst(which, &sweep(-1e3, 1e3), truth, false) < 2e-7);
            assert!(worst(which, &sweep(-1e5, 1e5), truth, false) < 2e-7);
            assert!(worst(which, &sweep(-2e6, 2e6), truth, false) < 2e-6);
        }
        assert!(worst(8, &sweep(0.0, 1e9), f64::sqrt, true) < 6e-8);
        assert!(worst(3, &sweep(-1.001, 1.001), |x| x.mul_add(x, -1.0), false) < 2e-7);
    }

    #[test]
    fn reductions_are_equal_everywhere() {
        let xs: Vec<f32> = (0..16_000_u64).map(|i| ((i * 2_654_435) % 1_000_003) as f32 / 7.0).collect();
        let portable = Level::PORTABLE.run(Run { xs: &xs, which: 4 });
        for level in Level::available() {
            assert_eq!(level.run(Run { xs: &xs, which: 4 }), portable, "{level}");
        }
    }

    struct Transpose;

    impl Task for Transpose {
        type Out = [[f32; 16]; 8];
        #[inline(always)]
        fn run<I: Isa>(self, isa: I) -> Self::Out {
            let rows = std::array::from_fn(|i| isa.load8(&std::array::from_fn(|t| (8 * i + t) as f32)));
            let mut out = [[0.0; 16]; 8];
            for (column, out) in isa.transpose(rows).into_iter().zip(&mut out) {
                column.store(out);
            }
            out
        }
    }

    #[test]
    fn rows_become_columns() {
        for level in Level::available() {
            for (t, column) in level.run(Transpose).iter().enumerate() {
                assert_eq!(column, &std::array::from_fn(|i| (8 * i + t) as f32), "{level}: column {t}");
            }
        }
    }

    #[test]
    fn exp2_of_zero_is_one() {
        assert_eq!(Level::best().run(Run { xs: &[0.0; 16], which: 0 }), [1.0; 16]);
    }
}
