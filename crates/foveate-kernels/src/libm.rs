//! Functions in double precision with the bits of the C library, many numbers at a time.
//!
//! A function is computed more precisely than a double holds, so that it is known how the C library rounds it unless the
//! value lies near the middle between two doubles; the caller asks the C library there. That the bits are equal assumes a C
//! library whose sine and cosine are wrong by at most 0.52 units in the last place. glibc states 0.518 for the sine's kernel
//! and 0.51 for the cosine's, to which it reduces all angles; see [`IS_KNOWN`].

use std::f64::consts::{FRAC_2_PI, FRAC_PI_2};

/// True if the C library is one whose errors are known to be below 0.52 units in the last place.
pub const IS_KNOWN: bool = cfg!(all(target_os = "linux", target_env = "gnu"));

/// Sine and cosine of a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SinCos {
    /// The sine.
    pub sin: f64,
    /// The cosine.
    pub cos: f64,
    /// True if these are the bits of the sine of a library as in [`IS_KNOWN`] for certain.
    pub sin_is_certain: bool,
    /// The same of the cosine.
    pub cos_is_certain: bool,
}

/// A value that is so far from the nearest double, in units in the last place, is uncertain: 0.027 from the middle between two
/// doubles, of which 0.02 are for the C library and the rest for the error of [`sin_cos`], which is below 0.006.
const FAR: f64 = 0.473;
/// The same without the error of [`sin_cos`].
const LIBRARY_FAR: f64 = 0.48;
/// Bound of the error of [`cos_of_small`], as a factor of z³ for z = x²/4 up to 0.64. It comes from the sine's polynomial
/// without its first two terms, z/120 − …: its first coefficient, the sum before and after the product with z are rounded to
/// doubles, which makes errors below 3 · 2^-60 z; the next operations multiply them by 4 z².
const ERROR_OF_COS: f64 = 1.0 / (1_u64 << 56) as f64;
/// The same as [`FAR`] for squares: 0.013 from the middle.
const FAR_OF_SQUARE: f64 = 0.487;
/// Angles between these are computed; others are never certain.
const LARGEST: f64 = 1e6;
const SMALLEST: f64 = 1e-6;
/// Added to a number below 2^51, it rounds it to a whole number, whose last bits are the last bits of the sum.
const MAGIC: f64 = 6_755_399_441_055_744.0;
/// π/2 − [`FRAC_PI_2`].
const PI_2_REST: f64 = 6.123_233_995_736_766e-17;
/// −1/6 and 1/24, each in two parts.
const SIXTH: [f64; 2] = [-1.0 / 6.0, -9.251_858_538_542_97e-18];
const TWENTY_FOURTH: [f64; 2] = [1.0 / 24.0, 2.312_964_634_635_742_7e-18];
/// 1/5!, −1/7!, …
const SIN: [f64; 7] = [
    1.0 / 120.0,
    -1.0 / 5_040.0,
    1.0 / 362_880.0,
    -1.0 / 39_916_800.0,
    1.0 / 6_227_020_800.0,
    -1.0 / 1_307_674_368_000.0,
    1.0 / 355_687_428_096_000.0,
];
/// −1/6!, 1/8!, …
const COS: [f64; 7] = [
    -1.0 / 720.0,
    1.0 / 40_320.0,
    -1.0 / 3_628_800.0,
    1.0 / 479_001_600.0,
    -1.0 / 87_178_291_200.0,
    1.0 / 20_922_789_888_000.0,
    -1.0 / 6_402_373_705_728_000.0,
];

/// A sum of two doubles, the second one small.
#[derive(Clone, Copy)]
struct Double {
    high: f64,
    low: f64,
}

impl Double {
    /// `a + b`, where |a| ≥ |b| or a is 0; exact.
    #[inline(always)]
    fn sum(a: f64, b: f64) -> Double {
        let high = a + b;
        Double { high, low: (a - high) + b }
    }

    #[inline(always)]
    fn times(self, other: Double) -> Double {
        let high = self.high * other.high;
        let low = self.high.mul_add(other.high, -high) + (self.high * other.low + self.low * other.high);
        Double { high, low }
    }

    /// `number + self`, where |number| ≥ |self|.
    #[inline(always)]
    fn plus(self, number: f64) -> Double {
        let Double { high, low } = Double::sum(number, self.high);
        Double { high, low: low + self.low }
    }

    /// The nearest double, and whether it is nearer than `far` units in the last place.
    #[inline(always)]
    fn rounded(self, far: f64) -> (f64, bool) {
        self.rounded_within(far, 0.0)
    }

    /// The same, nearer by `error`.
    #[inline(always)]
    #[expect(clippy::needless_bitwise_bool, reason = "without branches")]
    fn rounded_within(self, far: f64, error: f64) -> (f64, bool) {
        const EXPONENT: u64 = 0x7ff << 52;
        let Double { high: value, low: rest } = Double::sum(self.high, self.low);
        let bits = value.to_bits();
        let unit = f64::from_bits(bits & EXPONENT) * f64::EPSILON;
        // Below a power of two, units are half as large.
        (value, (rest.abs() < far * unit - error) & (bits & !EXPONENT & (u64::MAX >> 1) != 0))
    }
}

/// `first + others[0] z + others[1] z² + …`
#[inline(always)]
fn series(z: f64, first: [f64; 2], others: [f64; 7]) -> Double {
    let mut rest = others[6];
    for i in (0..6).rev() {
        rest = rest.mul_add(z, others[i]);
    }
    let Double { high, low } = Double::sum(first[0], z * rest);
    Double { high, low: low + first[1] }
}

/// Sine and cosine of `x`, in radians. Without branches, so that a loop over many numbers is vectorised; needs fused
/// multiply-adds to be fast.
///
/// x is n π/2 plus a remainder r in −π/4 ..= π/4, in two doubles. Both functions of r are their Taylor polynomials, whose
/// first terms are sums of two doubles.
#[inline(always)]
pub fn sin_cos(x: f64) -> SinCos {
    let rounded = x.mul_add(FRAC_2_PI, MAGIC);
    let (n, quadrant) = (rounded - MAGIC, rounded.to_bits());
    // Exact: both are multiples of 2^-53 that differ by less than 1.
    let r = (-n).mul_add(FRAC_PI_2, x);
    let rest = n * PI_2_REST;
    let Double { high, low } = Double::sum(r, -rest);
    let r = Double { high, low: low - n.mul_add(PI_2_REST, -rest) };
    let z = r.times(r);

    let [sin, cos] =
        [(SIXTH, SIN), (TWENTY_FOURTH, COS)].map(|(first, others)| series(z.high, first, others));
    let sin = sin.times(z).times(r);
    let sin = Double { high: sin.high, low: sin.low + r.low }.plus(r.high);
    let cos = cos.times(z).plus(-0.5).times(z).plus(1.0);

    let (sin, cos) = (sin.rounded(FAR), cos.rounded(FAR));
    let is_odd = quadrant & 1 != 0;
    let ((a, a_is_certain), (b, b_is_certain)) = if is_odd { (cos, sin) } else { (sin, cos) };
    let sign = |x: f64, bits: u64| f64::from_bits(x.to_bits() ^ (bits & 2) << 62);
    let known = (x.abs() < LARGEST) & (r.high.abs() > SMALLEST);
    SinCos {
        sin: sign(a, quadrant),
        cos: sign(b, quadrant.wrapping_add(1)),
        sin_is_certain: a_is_certain & known,
        cos_is_certain: b_is_certain & known,
    }
}

/// Cosine of `x`, for |x| up to about π/2, and whether it has the bits of a library as in [`IS_KNOWN`] for certain. Like
/// [`sin_cos`], without branches, and half as long.
///
/// It is 1 − 2 sin²(x/2). Its error does not fall with the cosine, so the smaller that is, the more often it is uncertain.
#[inline(always)]
pub fn cos_of_small(x: f64) -> (f64, bool) {
    let half = 0.5 * x;
    let z = Double { high: half * half, low: half.mul_add(half, -(half * half)) };
    // (sin y / y − 1) / y², then sin y / y − 1.
    let sin = series(z.high, SIXTH, SIN).times(z);
    // sin² y = y² (1 + s)² = y² + y² (2 s + s²).
    let squared = sin.times(sin);
    let Double { high, low } = Double::sum(2.0 * sin.high, squared.high);
    let sum = Double { high, low: low + (2.0 * sin.low + squared.low) }.times(z);
    let Double { high, low } = Double::sum(z.high, sum.high);
    let sin_squared = Double { high, low: low + (sum.low + z.low) };
    let cos = Double { high: -2.0 * sin_squared.high, low: -2.0 * sin_squared.low }.plus(1.0);
    let (value, is_near) = cos.rounded_within(LIBRARY_FAR, ERROR_OF_COS * (z.high * z.high * z.high));
    // The polynomial is that of ±π/4.
    (value, is_near & (x.abs() < 1.6) & (x.abs() > SMALLEST))
}

/// The square of `x`, and whether it is what the C library's `pow(x, 2)` gives for certain: that rounds a number that is
/// within 0.0125 units in the last place of the true square.
///
/// Needs fused multiply-adds to be fast.
#[inline(always)]
#[expect(clippy::needless_bitwise_bool, reason = "without branches")]
pub fn squared(x: f64) -> (f64, bool) {
    let square = x * x;
    let (_, is_near) = Double { high: square, low: x.mul_add(x, -square) }.rounded(FAR_OF_SQUARE);
    // Tiny and huge numbers, whose squares lose bits, or their rests do.
    (square, is_near & (square > 1e-200) & (square < 1e200))
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    /// Numbers of all sizes that angles have, and few that they do not have.
    fn numbers() -> impl Iterator<Item = f64> {
        let mut state = 1_u64;
        (0..2_400_000).map(move |i| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let unit = (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0;
            unit * [1.0, 1.6, 4.0, 30.0, 1000.0, 2e6][i % 6]
        })
    }

    #[test]
    #[cfg_attr(
        not(all(target_os = "linux", target_env = "gnu")),
        ignore = "the C library states no bound of its errors"
    )]
    fn what_is_certain_has_the_bits_of_the_c_library() {
        let (mut certain, mut all, mut small) = (0, 0, 0);
        for x in numbers() {
            let ours = sin_cos(x);
            all += 1;
            if ours.sin_is_certain {
                assert_eq!(ours.sin.to_bits(), x.sin().to_bits(), "sin {x:?}");
            }
            if ours.cos_is_certain {
                assert_eq!(ours.cos.to_bits(), x.cos().to_bits(), "cos {x:?}");
            }
            certain += u64::from(ours.sin_is_certain & ours.cos_is_certain);
            let (cos, is_certain) = cos_of_small(x);
            if is_certain {
                assert!(x.abs() < 1.6);
                assert_eq!(cos.to_bits(), x.cos().to_bits(), "cos {x:?}");
                small += 1;
            }
            let (square, is_certain) = squared(x);
            if is_certain {
                assert_eq!(square.to_bits(), x.powf(black_box(2.0)).to_bits(), "{x:?} squared");
            }
        }
        assert!(certain * 10 > all * 7, "{certain} of {all}");
        assert!(small * 4 > all, "{small} of {all}");
    }

    #[test]
    fn special_numbers_are_never_certain() {
        for x in [0.0, -0.0, 1e-300, f64::NAN, f64::INFINITY, -f64::INFINITY, 1e6, 1e300, FRAC_PI_2] {
            let found = sin_cos(x);
            assert!(!found.sin_is_certain && !found.cos_is_certain, "{x}");
            assert!(!cos_of_small(x).1, "{x}");
        }
        for x in [0.0, 1e-120, 1e120, f64::NAN, f64::INFINITY] {
            assert!(!squared(x).1, "{x}");
        }
    }
}
