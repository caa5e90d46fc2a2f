//! Two registers used as one.

use super::Lanes;

/// The low half of the lanes in `.0`, the high half in `.1`.
#[derive(Clone, Copy)]
pub(crate) struct Pair<T>(pub(crate) T, pub(crate) T);

/// Implements [`Lanes<$wide>`] for a pair of `Lanes<$half>`; stable Rust cannot express "half of N".
macro_rules! pair {
    ($wide:literal, $half:literal) => {
        impl<T: Lanes<$half>> Lanes<$wide> for Pair<T> {
            #[inline(always)]
            fn store(self, to: &mut [f32; $wide]) {
                let (low, high) = to.split_at_mut($half);
                self.0.store(low.try_into().expect("half of the lanes"));
                self.1.store(high.try_into().expect("half of the lanes"));
            }
            #[inline(always)]
            fn add(self, b: Self) -> Self {
                Pair(self.0.add(b.0), self.1.add(b.1))
            }
            #[inline(always)]
            fn sub(self, b: Self) -> Self {
                Pair(self.0.sub(b.0), self.1.sub(b.1))
            }
            #[inline(always)]
            fn mul(self, b: Self) -> Self {
                Pair(self.0.mul(b.0), self.1.mul(b.1))
            }
            #[inline(always)]
            fn div(self, b: Self) -> Self {
                Pair(self.0.div(b.0), self.1.div(b.1))
            }
            #[inline(always)]
            fn mul_add(self, b: Self, c: Self) -> Self {
                Pair(self.0.mul_add(b.0, c.0), self.1.mul_add(b.1, c.1))
            }
            #[inline(always)]
            fn min(self, b: Self) -> Self {
                Pair(self.0.min(b.0), self.1.min(b.1))
            }
            #[inline(always)]
            fn max(self, b: Self) -> Self {
                Pair(self.0.max(b.0), self.1.max(b.1))
            }
            #[inline(always)]
            fn select_lt(self, b: Self, yes: Self, no: Self) -> Self {
                Pair(self.0.select_lt(b.0, yes.0, no.0), self.1.select_lt(b.1, yes.1, no.1))
            }
            #[inline(always)]
            fn copy_sign(self, sign: Self) -> Self {
                Pair(self.0.copy_sign(sign.0), self.1.copy_sign(sign.1))
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                Pair(self.0.sqrt(), self.1.sqrt())
            }
            #[inline(always)]
            fn negate_if_odd(self, magic: Self) -> Self {
                Pair(self.0.negate_if_odd(magic.0), self.1.negate_if_odd(magic.1))
            }
            #[inline(always)]
            fn scale_by_magic(self, magic: Self) -> Self {
                Pair(self.0.scale_by_magic(magic.0), self.1.scale_by_magic(magic.1))
            }
            #[inline(always)]
            fn sum(self) -> f32 {
                self.0.add(self.1).sum()
            }
            #[inline(always)]
            fn largest(self) -> f32 {
                self.0.max(self.1).largest()
            }
        }
    };
}

pair!(16, 8);
#[cfg(target_arch = "aarch64")]
pair!(8, 4);
