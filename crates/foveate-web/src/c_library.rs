//! Sine, cosine, exponential function, power and hypotenuse with the bits of the GNU C library on processors with fused
//! multiply-adds, for WebAssembly, which has no C library: an episode in the browser is the episode of the command.
//!
//! The operations and their order are those of glibc 2.36 (`s_sin.c`, `s_sincosf.h`, `e_exp.c`, `e_pow.c`, `e_hypot.c`), fused
//! where its compiler fuses them. Its tables are values of functions at regular places; they are computed here, with 120 bits.

use std::f64::consts::{FRAC_2_PI, FRAC_PI_2};
use std::sync::OnceLock;

/// π/2 − [`FRAC_PI_2`].
const PI_2_REST: f64 = 6.123_233_995_736_766e-17;
/// π/2 in four parts, of which the first two have few bits.
const PI_2: [f64; 4] = [
    f64::from_bits(0x3ff9_21fb_5800_0000),
    f64::from_bits(0xbe4d_de97_3c00_0000),
    f64::from_bits(0xbc8c_b3b3_9800_0000),
    f64::from_bits(0xbacd_747f_23e3_2ed7),
];
/// 1.5 · 2^52: added to a number, it rounds it to a whole number.
const WHOLE: f64 = 6_755_399_441_055_744.0;
/// 1.5 · 2^45: the same for multiples of 1/128.
const PARTS_OF_128: f64 = 52_776_558_133_248.0;
/// Near 0: sin x = x + x³ (…).
const TAYLOR: [f64; 5] = [
    f64::from_bits(0xbfc5_5555_5555_5555),
    f64::from_bits(0x3f81_1111_1111_0ece),
    f64::from_bits(0xbf2a_01a0_19db_08b8),
    f64::from_bits(0x3ec7_1de2_7b9a_7ed9),
    f64::from_bits(0xbe5a_ddff_c2fc_df59),
];
/// Within 1/256: sin x = x + x³ (…), 1 − cos x = x² (…).
const SIN: [f64; 2] = [f64::from_bits(0xbfc5_5555_5555_5515), f64::from_bits(0x3f81_1110_e829_872f)];
const COS: [f64; 3] = [0.5, f64::from_bits(0xbfa5_5555_5555_5535), f64::from_bits(0x3f56_c16b_edd9_e239)];
/// In single precision: the coefficients of the cosine at even places, of the sine at odd ones, from x² on.
const SINGLE: [f64; 7] = [
    f64::from_bits(0xbfdf_ffff_fd0c_621c),
    f64::from_bits(0xbfc5_5554_5995_a603),
    f64::from_bits(0x3fa5_5553_e106_8f19),
    f64::from_bits(0x3f81_1076_0523_0bc4),
    f64::from_bits(0xbf56_c087_e89a_359d),
    f64::from_bits(0xbf29_94eb_3774_cf24),
    f64::from_bits(0x3ef9_9343_027b_f8c3),
];
/// 2^24 · 2/π, and π · 2^-63.
const SINGLE_FRAC_2_PI: f64 = f64::from_bits(0x4164_5f30_6dc9_c883);
const PI_63: f64 = f64::from_bits(0x3c19_21fb_5444_2d18);
/// 2/π in binary.
const DIGITS_OF_2_PI: [u8; 24] = [
    0xa2, 0xf9, 0x83, 0x6e, 0x4e, 0x44, 0x15, 0x29, 0xfc, 0x27, 0x57, 0xd1, 0xf5, 0x34, 0xdd, 0xc0, 0xdb,
    0x62, 0x95, 0x99, 0x3c, 0x43, 0x90, 0x41,
];
/// ln 2 in two parts, the first with few bits.
const LN_2: [f64; 2] = [f64::from_bits(0x3fe6_2e42_fefa_3800), f64::from_bits(0x3d2e_f357_93c7_6730)];
/// ln (1 + r) = r + r² (…), as factors of −r²/2 from the second on.
const LOG: [f64; 7] = [
    -0.5,
    f64::from_bits(0xbfe5_5555_5555_5560),
    f64::from_bits(0x3fe0_0000_0000_0006),
    f64::from_bits(0x3fe9_9999_9959_554e),
    f64::from_bits(0xbfe5_5555_5529_a47a),
    f64::from_bits(0xbff2_495b_9b48_45e9),
    f64::from_bits(0x3ff0_002b_8b26_3fc3),
];
/// 128 / ln 2, and −ln 2 / 128 in two parts.
const PER_LN_2: f64 = f64::from_bits(0x4067_1547_652b_82fe);
const MINUS_LN_2: [f64; 2] = [f64::from_bits(0xbf76_2e42_fefa_0000), f64::from_bits(0xbd0c_f79a_bc9e_3b3a)];
/// e^r = 1 + r + r² (…).
const EXP: [f64; 4] = [
    f64::from_bits(0x3fdf_ffff_ffff_fdbd),
    f64::from_bits(0x3fc5_5555_5555_543c),
    f64::from_bits(0x3fa5_5555_cf17_2b91),
    f64::from_bits(0x3f81_1111_67a4_d017),
];
/// The bits of the smallest significand, about 1/√2; the logarithm's places divide the octave from there into 128 parts.
const FIRST: u64 = 0x3fe6_9555_0000_0000;

/// Values at 128 places.
struct Tables {
    /// Sine and cosine of k/128, each as a double and the rest.
    sin_cos: [[f64; 4]; 128],
    /// A short number near the inverse of a place, and its negated logarithm: a double with few bits and the rest.
    log: [[f64; 3]; 128],
    /// 2^(k/128): the rest as a part of the double, and the bits of that without k in the place of the exponent.
    exp: [(f64, u64); 128],
}

/// Bits after the point.
const POINT: u32 = 120;
/// 1.
const ONE: u128 = 1 << POINT;

/// Product of numbers below 16.
fn times(a: u128, b: u128) -> u128 {
    const LOW: u128 = u64::MAX as u128;
    let middle = (a >> 64) * (b & LOW) + (((a & LOW) * (b & LOW)) >> 64);
    let other = (a & LOW) * (b >> 64);
    let low = (middle & LOW) + (other & LOW);
    let high = (a >> 64) * (b >> 64) + (middle >> 64) + (other >> 64) + (low >> 64);
    high << (128 - POINT) | (low & LOW) >> (POINT - 64)
}

/// The number in floating point.
fn float(x: i128) -> f64 {
    x as f64 * f64::from_bits(u64::from(1023 - POINT) << 52)
}

/// The nearest double, and the rest.
fn parts(x: i128) -> [f64; 2] {
    [float(x), float(x - x as f64 as i128)]
}

/// 2 artanh (a / b) = ln ((b + a) / (b − a)).
fn log_ratio(a: u128, b: u128) -> u128 {
    let x = a * ONE / b;
    let square = times(x, x);
    let (mut power, mut sum) = (x, 0);
    for n in 0..60 {
        sum += power / (2 * n + 1);
        power = times(power, square);
    }
    2 * sum
}

/// The terms xⁿ/n!.
fn terms(x: u128) -> impl Iterator<Item = u128> {
    (1..60).scan(ONE, move |term, n| {
        let now = *term;
        *term = times(now, x) / n;
        Some(now)
    })
}

fn tables() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    TABLES.get_or_init(|| {
        let ln_2 = log_ratio(1, 3);
        Tables {
            sin_cos: std::array::from_fn(|k| {
                let mut sum = [0_i128; 2];
                for (n, term) in terms((k as u128) << (POINT - 7)).enumerate() {
                    let term = term as i128;
                    sum[n % 2] += if n & 2 == 0 { term } else { -term };
                }
                let ([sin, sin_rest], [cos, cos_rest]) = (parts(sum[1]), parts(sum[0]));
                [sin, sin_rest, cos, cos_rest]
            }),
            log: std::array::from_fn(|k| {
                let at = |k: usize| f64::from_bits(FIRST + ((k as u64) << 45));
                let (low, high) = (at(k), at(k + 1));
                let place = if low < 1.0 && high > 1.0 { 1.0 } else { 0.5 * (low + high) };
                let steps = if place < 1.0 { 128.0 } else { 256.0 };
                let inverse = (steps / place).round() / steps;
                let in_256 = (256.0 * inverse) as u128;
                let log = log_ratio(256_u128.abs_diff(in_256), 256 + in_256) as i128;
                let log = if in_256 > 256 { -log } else { log };
                let unit = 1_i128 << (POINT - 43);
                let short = (log + unit / 2).div_euclid(unit) * unit;
                [inverse, float(short), float(log - short)]
            }),
            exp: std::array::from_fn(|k| {
                let [value, rest] = parts(terms(ln_2 * k as u128 / 128).sum::<u128>() as i128);
                (rest / value, value.to_bits() - ((k as u64) << 45))
            }),
        }
    })
}

/// Sine of x + rest, for |x| up to 0.9.
fn sin_of_small(x: f64, rest: f64) -> f64 {
    if x.abs() < 0.126 {
        let square = x * x;
        let [a, b, c, d, e] = TAYLOR;
        let sum = square
            .mul_add(square.mul_add(square.mul_add(square.mul_add(e, d), c), b), a)
            .mul_add(x, -0.5 * rest);
        return x + square.mul_add(sum, rest);
    }
    let rest = if x <= 0.0 { -rest } else { rest };
    let (r, [sin, sin_rest, cos, cos_rest]) = place(x.abs());
    let square = r * r;
    let s = r + (r * square).mul_add(square.mul_add(SIN[1], SIN[0]), rest);
    let c = r.mul_add(rest, square * square.mul_add(square.mul_add(COS[2], COS[1]), COS[0]));
    (sin + s.mul_add(cos, (-c).mul_add(sin, s.mul_add(cos_rest, sin_rest)))).copysign(x)
}

/// Cosine of x + rest, for |x| up to 0.9.
fn cos_of_small(x: f64, rest: f64) -> f64 {
    let (r, [sin, sin_rest, cos, cos_rest]) = place(x.abs());
    let r = r + if x < 0.0 { -rest } else { rest };
    let square = r * r;
    let s = (r * square).mul_add(square.mul_add(SIN[1], SIN[0]), r);
    let c = square * square.mul_add(square.mul_add(COS[2], COS[1]), COS[0]);
    cos + (-s).mul_add(sin, (-c).mul_add(cos, (-s).mul_add(sin_rest, cos_rest)))
}

/// The distance from the nearest k/128, and what is known there.
fn place(x: f64) -> (f64, [f64; 4]) {
    let sum = PARTS_OF_128 + x;
    (x - (sum - PARTS_OF_128), tables().sin_cos[sum.to_bits() as usize & 127])
}

/// Sine of x + n π/2, for |x| up to 10^8. Larger angles, which no world has, are brought there by a remainder, which is not
/// what the C library does.
fn sin_of_quarter(x: f64, n: u64) -> f64 {
    let x = if x.abs() < 1.05e8 { x } else { x % (2.0 * std::f64::consts::PI) };
    let sum = x.mul_add(FRAC_2_PI, WHOLE);
    let quarters = sum - WHOLE;
    let y = (-quarters).mul_add(PI_2[1], (-quarters).mul_add(PI_2[0], x));
    let z = (-quarters).mul_add(PI_2[2], y);
    let rest = (-quarters).mul_add(PI_2[2], y - z);
    let small = (-quarters).mul_add(PI_2[3], z);
    let rest = rest + (-quarters).mul_add(PI_2[3], z - small);
    let n = n.wrapping_add(sum.to_bits());
    let value = if n & 1 == 0 { sin_of_small(small, rest) } else { cos_of_small(small, rest) };
    if n & 2 == 0 { value } else { -value }
}

/// The upper half of the bits, without the sign.
const fn upper(x: f64) -> u32 {
    (x.to_bits() >> 32) as u32 & 0x7fff_ffff
}

/// Sine, in double precision.
pub(super) fn sin(x: f64) -> f64 {
    match upper(x) {
        0..0x3e50_0000 => x,
        0x3e50_0000..=0x3feb_5fff => sin_of_small(x, 0.0),
        0x3feb_6000..=0x4003_68fc => cos_of_small(FRAC_PI_2 - x.abs(), PI_2_REST).copysign(x),
        _ => sin_of_quarter(x, 0),
    }
}

/// Cosine, in double precision.
pub(super) fn cos(x: f64) -> f64 {
    match upper(x) {
        0..0x3e40_0000 => 1.0,
        0x3e40_0000..=0x3feb_5fff => cos_of_small(x, 0.0),
        0x3feb_6000..=0x4003_68fc => {
            let y = FRAC_PI_2 - x.abs();
            let sum = y + PI_2_REST;
            sin_of_small(sum, (y - sum) + PI_2_REST)
        }
        _ => sin_of_quarter(x, 1),
    }
}

/// Sine (`n` even) or cosine (odd) of `x` in single precision, negated if `minus`.
fn single(x: f64, n: i32, minus: bool) -> f32 {
    let square = x * x;
    let [a, b, c, d, e, f, g] = SINGLE;
    let value = if n & 1 == 0 {
        let x = if minus { -x } else { x };
        let cube = square * x;
        square.mul_add(f, d).mul_add(square * cube, cube.mul_add(b, x))
    } else {
        let fourth = square * square;
        let value = square.mul_add(g, e).mul_add(square * fourth, fourth.mul_add(c, square.mul_add(a, 1.0)));
        if minus { -value } else { value }
    };
    value as f32
}

/// Sine of y + n π/2 in single precision.
fn single_of_quarter(y: f32, n: i32) -> f32 {
    let x = f64::from(y);
    let bits = y.to_bits();
    if bits >> 20 & 0x7ff <= 0x42e {
        // |y| < 120: the nearest multiple of π/2, in integers of which 24 bits lie behind the point.
        let quarters = ((x * SINGLE_FRAC_2_PI) as i32).wrapping_add(1 << 23) >> 24;
        let n = n + quarters;
        return single((-f64::from(quarters)).mul_add(FRAC_PI_2, x), n, n & 2 != 0);
    }
    if !y.is_finite() {
        return f32::NAN;
    }
    // The product with 2/π, of which only 64 bits around the point matter; without the sign of y.
    let first = (bits >> 26 & 15) as usize;
    let digit = |at: usize| if at < 3 { 0 } else { u32::from(DIGITS_OF_2_PI[at - 3]) };
    let word = |at: usize| (at..at + 4).fold(0, |word, at| word << 8 | digit(at));
    let significand = (bits & 0x00ff_ffff | 0x0080_0000) << (bits >> 23 & 7);
    let product = |at: usize| u64::from(significand) * u64::from(word(first + at));
    let fraction = (product(8) >> 32 | product(0) << 32).wrapping_add(product(4));
    let quarters = fraction.wrapping_add(1 << 61) >> 62;
    let x = fraction.wrapping_sub(quarters << 62) as i64 as f64 * PI_63;
    let value = single(x, n + quarters as i32, (n + quarters as i32) & 2 != 0);
    // The sine is odd, the cosine even.
    if y < 0.0 && n & 1 == 0 { -value } else { value }
}

/// Sine, in single precision.
pub(super) fn sinf(x: f32) -> f32 {
    match x.to_bits() >> 20 & 0x7ff {
        0..0x398 => x,
        0x398..=0x3f3 => single(f64::from(x), 0, false),
        _ => single_of_quarter(x, 0),
    }
}

/// Cosine, in single precision.
pub(super) fn cosf(x: f32) -> f32 {
    match x.to_bits() >> 20 & 0x7ff {
        0..0x398 => 1.0,
        0x398..=0x3f3 => single(f64::from(x), 1, false),
        _ => single_of_quarter(x, 1),
    }
}

/// √(x² + y²), without an overflow of the squares only for numbers that are neither huge nor tiny.
pub(super) fn hypot(x: f64, y: f64) -> f64 {
    if x.is_infinite() || y.is_infinite() {
        return f64::INFINITY;
    }
    if x.is_nan() || y.is_nan() {
        return f64::NAN;
    }
    let (x, y) = (x.abs().max(y.abs()), x.abs().min(y.abs()));
    if y <= x * (0.25 * f64::EPSILON) {
        return x + y;
    }
    let first = (x * x + y * y).sqrt();
    let (a, b) = if first <= 2.0 * y {
        let rest = first - y;
        (x * (2.0 * rest - x), (rest - 2.0 * (x - y)) * rest)
    } else {
        let rest = first - x;
        (2.0 * rest * (x - 2.0 * y), (4.0 * rest - y) * y + rest * rest)
    };
    first - (a + b) / (2.0 * first)
}

/// √(x² + y²), in single precision.
pub(super) fn hypotf(x: f32, y: f32) -> f32 {
    if x.is_infinite() || y.is_infinite() {
        return f32::INFINITY;
    }
    let (x, y) = (f64::from(x), f64::from(y));
    (x * x + y * y).sqrt() as f32
}

/// e to the power of x + rest.
fn exp_of_sum(x: f64, rest: f64) -> f64 {
    match upper(x) >> 20 {
        0..0x3c9 => return 1.0 + x,
        0x408.. if x.is_nan() => return x,
        0x408.. if x > 710.0 => return f64::INFINITY,
        0x408.. if x < -746.0 => return 0.0,
        _ => {}
    }
    let sum = x.mul_add(PER_LN_2, WHOLE);
    let (k, bits) = (sum - WHOLE, sum.to_bits());
    let r = rest + k.mul_add(MINUS_LN_2[1], k.mul_add(MINUS_LN_2[0], x));
    let (tail, value) = tables().exp[bits as usize & 127];
    let square = r * r;
    let low = r.mul_add(EXP[1], EXP[0]).mul_add(square, r + tail);
    let part = r.mul_add(EXP[3], EXP[2]).mul_add(square * square, low);
    // The exponent in two steps where one would leave the range.
    let exponent = (k / 128.0).floor();
    let first = exponent.clamp(-1000.0, 1000.0);
    let scale =
        f64::from_bits(value.wrapping_add((bits & 127) << 45).wrapping_add_signed((first as i64) << 52));
    part.mul_add(scale, scale) * f64::from_bits(((1023.0 + exponent - first) as u64) << 52)
}

/// The exponential function.
pub(super) fn exp(x: f64) -> f64 {
    exp_of_sum(x, 0.0)
}

/// x to the power of y; tiny results may lack bits.
pub(super) fn pow(x: f64, y: f64) -> f64 {
    let is_odd = y % 2.0 == 1.0 || y % 2.0 == -1.0;
    if y == 0.0 || x == 1.0 {
        return 1.0;
    }
    if x.is_nan() || y.is_nan() || x < 0.0 && x.is_finite() && y.is_finite() && y.fract() != 0.0 {
        return f64::NAN;
    }
    let sign = if is_odd { 1_f64.copysign(x) } else { 1.0 };
    let x = x.abs();
    if x == 0.0 || x.is_infinite() || y.is_infinite() {
        if x == 1.0 {
            return 1.0;
        }
        return sign * if (x < 1.0) == (y < 0.0) { f64::INFINITY } else { 0.0 };
    }
    // 2^54 brings the smallest numbers into the range of the others.
    let (bits, shift) =
        if x < f64::MIN_POSITIVE { ((x * (1_u64 << 54) as f64).to_bits(), 54.0) } else { (x.to_bits(), 0.0) };
    let from_first = bits.wrapping_sub(FIRST);
    let [inverse, log, log_rest] = tables().log[(from_first >> 45 & 127) as usize];
    let exponent = (from_first as i64 >> 52) as f64 - shift;
    let r = f64::from_bits(bits.wrapping_sub(from_first & 0xfff << 52)).mul_add(inverse, -1.0);
    let first = exponent.mul_add(LN_2[0], log);
    let second = first + r;
    let half = LOG[0] * r;
    let square = r * half;
    let sum = r.mul_add(LOG[6], LOG[5]).mul_add(square, r.mul_add(LOG[4], LOG[3]));
    let sum = square.mul_add(sum, r.mul_add(LOG[2], LOG[1]));
    let high = second + square;
    let low = exponent.mul_add(LN_2[1], log_rest) + ((first - second) + r);
    let low = low + half.mul_add(r, -square) + ((second - high) + square);
    let low = (r * square).mul_add(sum, low);
    let log = high + low;
    let rest = (high - log) + low;
    let product = y * log;
    sign * exp_of_sum(product, y.mul_add(rest, log.mul_add(y, -product)))
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    /// Numbers of all sizes that worlds and agents compute with.
    fn numbers() -> impl Iterator<Item = f64> {
        let mut state = 1_u64;
        (0..3_000_000).map(move |i| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let unit = (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0;
            unit * [1e-9, 0.1, 0.8, 2.4, 30.0, 700.0, 1e6][i % 7]
        })
    }

    /// Whether this machine's C library is the one whose bits are computed here.
    fn is_known() -> bool {
        #[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
        return std::arch::is_x86_feature_detected!("fma");
        #[allow(unreachable_code)]
        false
    }

    #[test]
    fn bits_are_those_of_the_c_library() {
        if !is_known() {
            foveate_toy::needs::skip("the bits are those of glibc on x86-64 with fused multiply-adds");
            return;
        }
        let mut before = 1.0;
        for x in numbers() {
            let single = x as f32;
            for (name, ours, theirs) in [
                ("sin", sin(x), x.sin()),
                ("cos", cos(x), x.cos()),
                ("sinf", f64::from(sinf(single)), f64::from(single.sin())),
                ("cosf", f64::from(cosf(single)), f64::from(single.cos())),
                ("exp", exp(x.clamp(-500.0, 500.0)), x.clamp(-500.0, 500.0).exp()),
                ("pow", pow(x, 2.0), x.powf(black_box(2.0))),
                ("pow", pow(x.abs(), 0.25), x.abs().powf(black_box(0.25))),
                ("hypot", hypot(x, before), x.hypot(before)),
                ("hypotf", f64::from(hypotf(single, before as f32)), f64::from(single.hypot(before as f32))),
            ] {
                assert_eq!(ours.to_bits(), theirs.to_bits(), "{name} {x:?}: {ours:?}, {theirs:?}");
            }
            before = x;
        }
    }

    #[test]
    fn corners_are_those_of_the_functions() {
        let corners = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            -2.0,
            3.0,
            1e-310,
            1e300,
            -1e300,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
        ];
        let same = |a: f64, b: f64| a.is_nan() && b.is_nan() || a == b || (a - b).abs() < 1e-12 * b.abs();
        for x in corners {
            assert!(same(exp(x), x.exp()) && same(hypot(x, 1.0), x.hypot(1.0)), "{x}");
            assert_eq!((sin(x).is_nan(), cos(x).is_nan()), (!x.is_finite(), !x.is_finite()), "{x}");
            assert_eq!(sinf(x as f32).is_nan(), !(x as f32).is_finite(), "{x}");
            for y in corners {
                assert!(same(pow(x, y), x.powf(y)), "{x} to the power of {y}: {}, {}", pow(x, y), x.powf(y));
            }
        }
    }
}
