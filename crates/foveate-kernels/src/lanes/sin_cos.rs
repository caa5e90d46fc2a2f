//! Sine and cosine, computed together.

use std::f32::consts::FRAC_1_PI;

use super::{Isa, Lanes, MAGIC};

/// Sine and cosine of x, |x| ≤ 2e6: the error is below 2e-7 for |x| up to 1e5, and below 2e-6 beyond.
///
/// x is n π plus a remainder r in −π/2 ..= π/2, where both functions are (−1)^n times those of r. π is
/// subtracted in three parts of 24 bits, each product rounded once (Cody and Waite).
#[inline(always)]
pub(crate) fn sin_cos<I: Isa>(isa: I, x: I::V16) -> (I::V16, I::V16) {
    let magic = isa.splat16(MAGIC);
    let rounded = x.mul_add(isa.splat16(FRAC_1_PI), magic);
    let n = rounded.sub(magic);
    let r = n.mul_add(isa.splat16(-PI[0]), x);
    let r = n.mul_add(isa.splat16(-PI[1]), r);
    let r = n.mul_add(isa.splat16(-PI[2]), r);
    let z = r.mul(r);
    let mut sin = isa.splat16(SIN[3]);
    let mut cos = isa.splat16(COS[4]);
    for c in SIN[..3].iter().rev() {
        sin = sin.mul_add(z, isa.splat16(*c));
    }
    for c in COS[..4].iter().rev() {
        cos = cos.mul_add(z, isa.splat16(*c));
    }
    let sin = sin.mul(z).mul_add(r, r);
    let cos = cos.mul_add(z, isa.splat16(1.0));
    (sin.negate_if_odd(rounded), cos.negate_if_odd(rounded))
}
/// π in three parts.
#[expect(clippy::approx_constant, reason = "the first part is π itself")]
const PI: [f32; 3] = [3.1415927, -8.742278e-08, -3.430249e-15];
/// Minimax fit of (sin r / r - 1) / r^2 in r^2, absolute in sin r.
const SIN: [f32; 4] = [-0.16666657, 0.008333017, -0.00019806602, 2.6000243e-06];
/// Minimax fit of (cos r - 1) / r^2 in r^2, absolute in cos r.
const COS: [f32; 5] = [-0.5, 0.04166664, -0.0013888404, 2.476187e-05, -2.607681e-07];
