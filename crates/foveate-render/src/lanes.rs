//! Arithmetic on the pixels of a block, written lane by lane, so that the compiler makes vector instructions of it.
//!
//! Every operation is an exact IEEE operation in a fixed order, so all instruction sets give the same bits.

/// Pixels that are computed together.
pub(crate) const LANES: usize = 16;

/// A number for every pixel of a block.
pub(crate) type Wide = [f32; LANES];

/// A geom or a colour for every pixel of a block.
pub(crate) type Words = [u32; LANES];

/// A vector in space.
pub(crate) type V3 = [f32; 3];

/// A vector for every pixel of a block.
pub(crate) type Wide3 = [Wide; 3];

#[inline(always)]
pub(crate) fn dot(a: V3, b: V3) -> f32 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

#[inline(always)]
pub(crate) fn add(a: V3, b: V3) -> V3 {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

#[inline(always)]
pub(crate) fn sub(a: V3, b: V3) -> V3 {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

#[inline(always)]
pub(crate) fn scale(a: V3, by: f32) -> V3 {
    [a[0] * by, a[1] * by, a[2] * by]
}

#[inline(always)]
pub(crate) fn cross(a: V3, b: V3) -> V3 {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// The vector with length 1; NaN for a vector of length 0.
#[inline(always)]
pub(crate) fn unit(a: V3) -> V3 {
    scale(a, 1.0 / dot(a, a).sqrt())
}

/// `b` when either is NaN.
#[inline(always)]
pub(crate) fn max(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

/// `b` when either is NaN.
#[inline(always)]
pub(crate) fn min(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}

#[inline(always)]
pub(crate) fn select(condition: bool, yes: f32, no: f32) -> f32 {
    if condition { yes } else { no }
}

#[inline(always)]
pub(crate) fn select_word(condition: bool, yes: u32, no: u32) -> u32 {
    if condition { yes } else { no }
}

/// All bits, or none.
#[inline(always)]
pub(crate) fn mask(condition: bool) -> u32 {
    if condition { u32::MAX } else { 0 }
}

/// From 0 to 1; NaN becomes 0.
#[inline(always)]
pub(crate) fn clamp01(x: f32) -> f32 {
    min(max(x, 0.0), 1.0)
}

/// The largest integer that is not above x, for |x| < 2^22.
#[inline(always)]
pub(crate) fn floor(x: f32) -> f32 {
    const MAGIC: f32 = 12_582_912.0; // 1.5 * 2^23: adding it rounds to an integer
    let rounded = (x + MAGIC) - MAGIC;
    rounded - select(rounded > x, 1.0, 0.0)
}

/// A number from 0 to 1 as a byte, rounded.
#[inline(always)]
pub(crate) fn byte(x: f32) -> u32 {
    // The sum's last bits are the integer.
    (x * 255.0 + 8_388_608.0).to_bits() & 0xff
}

/// Colours from 0 to 1 as bytes, R in the lowest.
#[inline(always)]
pub(crate) fn pack(r: f32, g: f32, b: f32) -> u32 {
    byte(r) | byte(g) << 8 | byte(b) << 16
}

/// The sums of the bytes, at most 255 each.
#[inline(always)]
pub(crate) fn add_bytes(a: u32, b: u32) -> u32 {
    let even = (a & 0x00ff_00ff) + (b & 0x00ff_00ff);
    let odd = (a >> 8 & 0x00ff_00ff) + (b >> 8 & 0x00ff_00ff);
    let (even_over, odd_over) = (even & 0x0100_0100, odd & 0x0100_0100);
    let even = (even | (even_over - (even_over >> 8))) & 0x00ff_00ff;
    let odd = (odd | (odd_over - (odd_over >> 8))) & 0x00ff_00ff;
    even | odd << 8
}

/// `a + (b - a) part / 256` for every byte, `part` from 0 to 256.
#[inline(always)]
pub(crate) fn mix_bytes(a: u32, b: u32, part: u32) -> u32 {
    let even = (a & 0x00ff_00ff) * (256 - part) + (b & 0x00ff_00ff) * part + 0x0080_0080;
    let odd = (a >> 8 & 0x00ff_00ff) * (256 - part) + (b >> 8 & 0x00ff_00ff) * part + 0x0080_0080;
    (even >> 8 & 0x00ff_00ff) | (odd & 0xff00_ff00)
}

/// 2^x, relative error below 1e-6, 0 for very negative x.
#[inline(always)]
#[expect(clippy::approx_constant, reason = "fitted, not ln 2")]
fn exp2(x: f32) -> f32 {
    let x = min(max(x, -126.0), 126.0);
    let whole = floor(x + 0.5);
    let r = x - whole;
    // Minimax fit of 2^r on -1/2 ..= 1/2.
    let mut p = 0.001_326_472_7;
    p = p * r + 0.009_671_513;
    p = p * r + 0.055_507_336;
    p = p * r + 0.240_222_42;
    p = p * r + 0.693_147;
    p = p * r + 1.0;
    let exponent = ((whole + 12_582_912.0).to_bits() << 23).wrapping_add(127 << 23);
    p * f32::from_bits(exponent)
}

/// The binary logarithm of a positive normal number, error below 2e-5.
#[inline(always)]
fn log2(x: f32) -> f32 {
    let bits = x.to_bits();
    let exponent = ((bits >> 23) as i32 - 127) as f32;
    let m = f32::from_bits(bits & 0x007f_ffff | 0x3f80_0000);
    // atanh series: log2(m) = 2 / ln 2 (z + z³/3 + z⁵/5 + …), z = (m - 1) / (m + 1) in 0 ..= 1/3.
    let z = (m - 1.0) / (m + 1.0);
    let q = z * z;
    let series = ((q * (1.0 / 9.0) + 1.0 / 7.0) * q + 0.2) * q + 1.0 / 3.0;
    exponent + 2.885_39 * (z * q * series + z)
}

/// x^power for x from 0 to 1, in place; 0 where x is 0.
#[inline(always)]
pub(crate) fn power(x: &mut Wide, power: f32) {
    let whole = power as u32;
    if whole as f32 == power && whole <= 128 {
        let mut result = [1.0; LANES];
        let mut left = whole;
        while left > 0 {
            if left & 1 == 1 {
                for i in 0..LANES {
                    result[i] *= x[i];
                }
            }
            for i in 0..LANES {
                x[i] *= x[i];
            }
            left >>= 1;
        }
        *x = result;
        return;
    }
    for x in x {
        let value = exp2(power * log2(max(*x, 1e-30)));
        *x = select(*x > 0.0, value, 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_close() {
        for p in [0.0, 1.0, 10.0, 64.0, 38.4, 0.5, 127.9] {
            for i in 0..=1000 {
                let x = i as f32 / 1000.0;
                let mut wide = [x; LANES];
                power(&mut wide, p);
                let exact = if x == 0.0 && p > 0.0 { 0.0 } else { f64::from(x).powf(f64::from(p)) };
                assert!((f64::from(wide[0]) - exact).abs() < 3e-4, "{x}^{p} = {exact}, not {}", wide[0]);
            }
        }
    }

    #[test]
    fn bytes_are_added_and_mixed() {
        assert_eq!(add_bytes(0x00ff_0180, 0x0002_0280), 0x00ff_03ff);
        assert_eq!(add_bytes(0x0000_fffe, 0x0010_0001), 0x0010_ffff);
        assert_eq!(mix_bytes(0x0000_ff10, 0x00ff_0020, 128), 0x0080_8018);
        assert_eq!(mix_bytes(0x0012_3456, 0x0078_9abc, 0), 0x0012_3456);
        assert_eq!(mix_bytes(0x0012_3456, 0x0078_9abc, 256), 0x0078_9abc);
        assert_eq!(pack(1.0, 0.5, 0.0), 0x0000_80ff);
    }

    #[test]
    fn floors_are_floors() {
        for x in [-2.5_f32, -2.0, -0.1, 0.0, 0.4, 0.5, 1.5, 2.5, 99.99, 4000.0] {
            assert_eq!(floor(x), x.floor());
        }
    }
}
