//! Features of sixteen patches.

use std::f32::consts::LOG2_E;

use super::map::{Base, Elementwise, FeatureMap, Positive};
use super::vectors::{products, squares};
use crate::lanes::{Block, Isa, Lanes, exp2, sin_cos};

impl FeatureMap {
    /// Raises `peaks`, `[1 + base_features, 16]`, to at least the binary exponents of sixteen patches `z`,
    /// `[dim, 16]`: first that of e^(|z|²/2), then those of the exponential features.
    #[inline(always)]
    pub(super) fn raise_peaks<I: Isa>(&self, isa: I, z: &[Block], peaks: &mut [Block]) {
        let log2_e = isa.splat16(LOG2_E);
        let (first, rest) = peaks.split_first_mut().expect("one for the lengths");
        match self.base {
            Base::Elementwise(_) if self.omega.is_empty() => {
                for (peak, z) in rest.iter_mut().zip(z) {
                    raise(isa, peak, isa.load16(&z.0).mul(log2_e));
                }
            }
            Base::Elementwise(_) => {
                for (peak, row) in rest.iter_mut().zip(self.omega.chunks_exact(self.dim)) {
                    raise(isa, peak, products(isa, row, z).mul(log2_e));
                }
            }
            Base::Random { positive, .. } => {
                let half = squares(isa, z).mul(isa.splat16(0.5 * LOG2_E));
                raise(isa, first, half);
                let (low, minus) = (isa.splat16(0.0).sub(half), isa.splat16(-LOG2_E));
                let m = self.projections();
                for (i, row) in self.omega.chunks_exact(self.dim).enumerate() {
                    let u = products(isa, row, z);
                    if positive.is_some() {
                        raise(isa, &mut rest[i], u.mul_add(log2_e, low));
                    }
                    if positive == Some(Positive::Hyperbolic) {
                        raise(isa, &mut rest[m + i], u.mul_add(minus, low));
                    }
                }
            }
        }
    }

    /// Writes the features of sixteen patches `z`, `[dim, 16]`, to `out`, `[base_features, 16]`: without the
    /// constant under the root, and divided by 2^constants, which are in the order of
    /// [`FeatureMap::raise_peaks`].
    #[inline(always)]
    pub(super) fn write_features<I: Isa>(&self, isa: I, z: &[Block], constants: &[f32], out: &mut [Block]) {
        match self.base {
            Base::Elementwise(f) if self.omega.is_empty() => {
                for (i, (out, z)) in out.iter_mut().zip(z).enumerate() {
                    elementwise(isa, f, isa.load16(&z.0), constants[1 + i]).store(&mut out.0);
                }
            }
            Base::Elementwise(f) => {
                for (i, (out, row)) in out.iter_mut().zip(self.omega.chunks_exact(self.dim)).enumerate() {
                    elementwise(isa, f, products(isa, row, z), constants[1 + i]).store(&mut out.0);
                }
            }
            Base::Random { trigonometric, positive } => {
                let m = self.projections();
                let half = squares(isa, z).mul(isa.splat16(0.5 * LOG2_E));
                let (waves, powers) = out.split_at_mut(if trigonometric { 2 * m } else { 0 });
                let growth = if trigonometric {
                    power(isa, half.sub(isa.splat16(constants[0])))
                } else {
                    isa.splat16(0.0)
                };
                for (i, row) in self.omega.chunks_exact(self.dim).enumerate() {
                    let u = products(isa, row, z);
                    if trigonometric {
                        let (sin, cos) = sin_cos(isa, u);
                        cos.mul(growth).store(&mut waves[i].0);
                        sin.mul(growth).store(&mut waves[m + i].0);
                    }
                    if positive.is_some() {
                        let low = isa.splat16(-constants[1 + i]).sub(half);
                        power(isa, u.mul_add(isa.splat16(LOG2_E), low)).store(&mut powers[i].0);
                    }
                    if positive == Some(Positive::Hyperbolic) {
                        let low = isa.splat16(-constants[1 + m + i]).sub(half);
                        power(isa, u.mul_add(isa.splat16(-LOG2_E), low)).store(&mut powers[m + i].0);
                    }
                }
            }
        }
    }

    /// The side of each hyperplane on which sixteen patches `z`, `[dim, 16]`, are: `out`,
    /// `[hyperplanes, 16]`, is 1 or −1.
    #[inline(always)]
    pub(super) fn sides<I: Isa>(&self, isa: I, z: &[Block], out: &mut [Block]) {
        let (zero, one) = (isa.splat16(0.0), isa.splat16(1.0));
        for (out, row) in out.iter_mut().zip(self.planes.chunks_exact(self.dim)) {
            products(isa, row, z).select_lt(zero, isa.splat16(-1.0), one).store(&mut out.0);
        }
    }
}

#[inline(always)]
fn raise<I: Isa>(isa: I, peak: &mut Block, x: I::V16) {
    x.max(isa.load16(&peak.0)).store(&mut peak.0);
}

#[inline(always)]
fn elementwise<I: Isa>(isa: I, f: Elementwise, u: I::V16, constant: f32) -> I::V16 {
    match f {
        Elementwise::Relu { epsilon } => u.max(isa.splat16(0.0)).add(isa.splat16(epsilon)),
        Elementwise::Exp => power(isa, u.mul_add(isa.splat16(LOG2_E), isa.splat16(-constant))),
        Elementwise::Elu1 => {
            let (zero, one) = (isa.splat16(0.0), isa.splat16(1.0));
            let below = power(isa, u.min(zero).mul(isa.splat16(LOG2_E)));
            u.select_lt(zero, below, u.add(one))
        }
    }
}

/// 2^x for x up to 126; 0 below −126.
#[inline(always)]
fn power<I: Isa>(isa: I, x: I::V16) -> I::V16 {
    let low = isa.splat16(-126.0);
    x.select_lt(low, isa.splat16(0.0), exp2(isa, x.max(low)))
}
