//! NEON, four lanes per register.
//!
//! **Why the `unsafe` below is sound.** [`Neon`] has a private field and is only made in `run_neon`, whose
//! caller guarantees the feature. [`Quad`] is made from that token or from another `Quad`. So wherever a
//! method on either runs, the processor has the instruction.

use std::arch::aarch64::*;

use super::pair::Pair;
use super::{Isa, Lanes, Task};

/// Runs `task` with NEON.
///
/// # Safety
/// The processor must have `neon`.
#[target_feature(enable = "neon")]
pub(crate) unsafe fn run_neon<T: Task>(task: T) -> T::Out {
    task.run(Neon(()))
}

/// Proof of `neon`.
#[derive(Clone, Copy)]
pub(crate) struct Neon(());

impl Isa for Neon {
    type V16 = Pair<Pair<Quad>>;
    type V8 = Pair<Quad>;
    const ROWS: usize = 2;

    #[inline(always)]
    fn splat16(self, x: f32) -> Pair<Pair<Quad>> {
        let half = self.splat8(x);
        Pair(half, half)
    }
    #[inline(always)]
    fn splat8(self, x: f32) -> Pair<Quad> {
        // SAFETY: `self` proves neon.
        let quad = Quad(unsafe { vdupq_n_f32(x) });
        Pair(quad, quad)
    }
    #[inline(always)]
    fn load16(self, from: &[f32; 16]) -> Pair<Pair<Quad>> {
        let from = from.as_ptr();
        // SAFETY: `self` proves neon; 4 times 4 floats lie behind the reference.
        unsafe {
            Pair(
                Pair(Quad(vld1q_f32(from)), Quad(vld1q_f32(from.add(4)))),
                Pair(Quad(vld1q_f32(from.add(8))), Quad(vld1q_f32(from.add(12)))),
            )
        }
    }
    #[inline(always)]
    fn load8(self, from: &[f32; 8]) -> Pair<Quad> {
        let from = from.as_ptr();
        // SAFETY: `self` proves neon; 4 + 4 floats lie behind the reference.
        unsafe { Pair(Quad(vld1q_f32(from)), Quad(vld1q_f32(from.add(4)))) }
    }
    #[inline(always)]
    fn look_up16(self, table: Pair<Pair<Quad>>, sixteenths: Pair<Pair<Quad>>) -> Pair<Pair<Quad>> {
        let bytes = |quad: Quad| {
            // SAFETY: `self` proves neon.
            unsafe { vreinterpretq_u8_f32(quad.0) }
        };
        let table = uint8x16x4_t(bytes(table.0.0), bytes(table.0.1), bytes(table.1.0), bytes(table.1.1));
        let four = |n: Quad| {
            // SAFETY: `self` proves neon.
            unsafe {
                let n = vreinterpretq_u32_f32(n.0);
                // An entry has four bytes: bytes 4 i to 4 i + 3.
                let i = vandq_u32(n, vdupq_n_u32(15));
                let at = vmlaq_u32(vdupq_n_u32(0x0302_0100), i, vdupq_n_u32(0x0404_0404));
                let entry = vreinterpretq_u32_u8(vqtbl4q_u8(table, vreinterpretq_u8_u32(at)));
                Quad(vreinterpretq_f32_u32(vaddq_u32(entry, vshlq_n_u32::<19>(n))))
            }
        };
        let Pair(low, high) = sixteenths;
        Pair(Pair(four(low.0), four(low.1)), Pair(four(high.0), four(high.1)))
    }
    #[inline(always)]
    fn transpose(self, rows: [Pair<Quad>; 16]) -> [Pair<Pair<Quad>>; 8] {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = rows;
        let first = transpose4(a, b, c, d);
        let second = transpose4(e, f, g, h);
        let third = transpose4(i, j, k, l);
        let fourth = transpose4(m, n, o, p);
        let mut columns = [Pair(a, a); 8];
        for t in 0..8 {
            columns[t] = Pair(Pair(first[t], second[t]), Pair(third[t], fourth[t]));
        }
        columns
    }
    #[inline(always)]
    fn halves(self, x: Pair<Pair<Quad>>) -> [Pair<Quad>; 2] {
        [x.0, x.1]
    }
}

/// Transposes four rows to eight columns. No closures: they would not get the caller's target features.
#[inline(always)]
fn transpose4(a: Pair<Quad>, b: Pair<Quad>, c: Pair<Quad>, d: Pair<Quad>) -> [Quad; 8] {
    let (low, high) = (quarters(a.0, b.0, c.0, d.0), quarters(a.1, b.1, c.1, d.1));
    [low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3]]
}

/// Transposes four rows to four columns.
#[inline(always)]
fn quarters(a: Quad, b: Quad, c: Quad, d: Quad) -> [Quad; 4] {
    // SAFETY: a `Quad` proves neon.
    unsafe {
        let even = vreinterpretq_f64_f32(vtrn1q_f32(a.0, b.0));
        let odd = vreinterpretq_f64_f32(vtrn2q_f32(a.0, b.0));
        let even2 = vreinterpretq_f64_f32(vtrn1q_f32(c.0, d.0));
        let odd2 = vreinterpretq_f64_f32(vtrn2q_f32(c.0, d.0));
        [
            Quad(vreinterpretq_f32_f64(vtrn1q_f64(even, even2))),
            Quad(vreinterpretq_f32_f64(vtrn1q_f64(odd, odd2))),
            Quad(vreinterpretq_f32_f64(vtrn2q_f64(even, even2))),
            Quad(vreinterpretq_f32_f64(vtrn2q_f64(odd, odd2))),
        ]
    }
}

/// Four lanes. A value exists only where `neon` is available.
#[derive(Clone, Copy)]
pub(crate) struct Quad(float32x4_t);

impl Quad {
    /// Moves lanes 2 and 3 to positions 0 and 1.
    #[inline(always)]
    fn upper(self) -> Self {
        // SAFETY: `self` proves neon.
        Quad(unsafe { vextq_f32::<2>(self.0, self.0) })
    }

    /// Lanes 0 and 1.
    #[inline(always)]
    fn first_two(self) -> (f32, f32) {
        // SAFETY: `self` proves neon.
        unsafe { (vgetq_lane_f32::<0>(self.0), vgetq_lane_f32::<1>(self.0)) }
    }
}

impl Lanes<4> for Quad {
    #[inline(always)]
    fn store(self, to: &mut [f32; 4]) {
        // SAFETY: `self` proves neon; there is room for 4 floats behind the reference.
        unsafe { vst1q_f32(to.as_mut_ptr(), self.0) }
    }
    #[inline(always)]
    fn add(self, b: Self) -> Self {
        // SAFETY: `self` proves neon.
        Quad(unsafe { vaddq_f32(self.0, b.0) })
    }
    #[inline(always)]
    fn sub(self, b: Self) -> Self {
        // SAFETY: `self` proves neon.
        Quad(unsafe { vsubq_f32(self.0, b.0) })
    }
    #[inline(always)]
    fn mul(self, b: Self) -> Self {
        // SAFETY: `self` proves neon.
        Quad(unsafe { vmulq_f32(self.0, b.0) })
    }
    #[inline(always)]
    fn div(self, b: Self) -> Self {
        // SAFETY: `self` proves neon.
        Quad(unsafe { vdivq_f32(self.0, b.0) })
    }
    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        // SAFETY: `self` proves neon.
        Quad(unsafe { vfmaq_f32(c.0, self.0, b.0) })
    }
    #[inline(always)]
    fn min(self, b: Self) -> Self {
        // NEON's own minimum propagates NaN; a comparison and a selection behave as on x86.
        self.select_lt(b, self, b)
    }
    #[inline(always)]
    fn max(self, b: Self) -> Self {
        b.select_lt(self, self, b)
    }
    #[inline(always)]
    fn select_lt(self, b: Self, yes: Self, no: Self) -> Self {
        // SAFETY: `self` proves neon.
        Quad(unsafe { vbslq_f32(vcltq_f32(self.0, b.0), yes.0, no.0) })
    }
    #[inline(always)]
    fn copy_sign(self, sign: Self) -> Self {
        // SAFETY: `self` proves neon.
        Quad(unsafe { vbslq_f32(vdupq_n_u32(0x8000_0000), sign.0, self.0) })
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        // SAFETY: `self` proves neon.
        Quad(unsafe { vsqrtq_f32(self.0) })
    }
    #[inline(always)]
    fn negate_if_odd(self, magic: Self) -> Self {
        // SAFETY: `self` proves neon.
        unsafe {
            let sign = vshlq_n_u32::<31>(vreinterpretq_u32_f32(magic.0));
            Quad(vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(self.0), sign)))
        }
    }
    #[inline(always)]
    fn scale_by_magic(self, magic: Self) -> Self {
        // SAFETY: `self` proves neon.
        unsafe {
            let n = vshlq_n_u32::<23>(vreinterpretq_u32_f32(magic.0));
            Quad(vreinterpretq_f32_u32(vaddq_u32(vreinterpretq_u32_f32(self.0), n)))
        }
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        let (a, b) = self.add(self.upper()).first_two();
        a + b
    }
    #[inline(always)]
    fn largest(self) -> f32 {
        let (a, b) = self.max(self.upper()).first_two();
        if a > b { a } else { b }
    }
}
