//! Shrinks small windows of pixels in 14-bit fixed point.
//!
//! A window has 12 × 10 pixels; the first and the last ones in each direction count in part. Sums and
//! truncations are those of an image shrink that processes the rows first and then the columns: the
//! contribution of a partial pixel is `(4 * value * weight) >> 16`; a sum is multiplied by a reciprocal and
//! divided by 2^16.

/// Width of a window in pixels.
pub const WIDTH: usize = 12;
/// Height of a window in pixels.
pub const HEIGHT: usize = 10;
/// Weight of a whole pixel.
pub const ONE: u16 = 1 << 14;

/// Weights of a window's pixels along one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weights {
    /// One weight for each pixel (or row), repeated four times: once for every byte of a pixel.
    lanes: [[u16; 4]; 12],
}

impl Weights {
    /// Weights of the pixels 0, 10 and 11 of a row; pixels 1 to 9 are whole.
    ///
    /// # Panics
    /// If a weight exceeds [`ONE`].
    pub const fn across(first: u16, tenth: u16, eleventh: u16) -> Self {
        assert!(first <= ONE && tenth <= ONE && eleventh <= ONE);
        let mut lanes = [[ONE; 4]; 12];
        (lanes[0], lanes[10], lanes[11]) = ([first; 4], [tenth; 4], [eleventh; 4]);
        Weights { lanes }
    }

    /// Weights of the rows 0, 8 and 9; rows 1 to 7 are whole.
    ///
    /// # Panics
    /// If a weight exceeds [`ONE`].
    pub const fn down(first: u16, eighth: u16, ninth: u16) -> Self {
        assert!(first <= ONE && eighth <= ONE && ninth <= ONE);
        let mut lanes = [[ONE; 4]; 12];
        (lanes[0], lanes[8], lanes[9]) = ([first; 4], [eighth; 4], [ninth; 4]);
        (lanes[10], lanes[11]) = ([0; 4], [0; 4]);
        Weights { lanes }
    }
}

/// The two reciprocals: of the number of pixels in a row, and of the number of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reciprocals {
    /// For the horizontal direction.
    pub x: u16,
    /// For the vertical direction.
    pub y: u16,
}

/// Shrinks a row of [`WIDTH`] pixels of four bytes to one.
pub fn narrow(row: &[u32; WIDTH], weights: &Weights, recip: u16) -> [u16; 4] {
    let mut sum = [0u16; 4];
    for (i, pixel) in row.iter().enumerate() {
        let bytes = pixel.to_le_bytes();
        let partial = matches!(i, 0 | 10 | 11);
        for c in 0..4 {
            let value = u16::from(bytes[c]);
            sum[c] += if partial { high(value * 4, weights.lanes[i][c]) } else { value };
        }
    }
    for s in &mut sum {
        *s = high(*s, recip);
    }
    sum
}

/// Shrinks a window to one pixel. The first pixel of the window is `pixels[0]`; its rows are `stride` pixels
/// apart.
///
/// # Panics
/// If `pixels` ends before the window does.
pub fn shrink(pixels: &[u32], stride: usize, x: &Weights, y: &Weights, recip: Reciprocals) -> [u8; 4] {
    assert!(
        (stride as u64) < 1 << 32 && pixels.len() >= (HEIGHT - 1) * stride + WIDTH,
        "a window reaches beyond the pixels"
    );
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: AVX2 was just detected, and the assertion above covers all pixels that are read.
        return unsafe { avx2::shrink(pixels, stride, x, y, recip) };
    }
    portable(pixels, stride, x, y, recip)
}

fn portable(pixels: &[u32], stride: usize, x: &Weights, y: &Weights, recip: Reciprocals) -> [u8; 4] {
    let mut sum = [0u16; 4];
    for i in 0..HEIGHT {
        let row = pixels[i * stride..].first_chunk().expect("the caller looked");
        let narrow = narrow(row, x, recip.x);
        for c in 0..4 {
            sum[c] += high(narrow[c] * 4, y.lanes[i][c]);
        }
    }
    sum.map(|s| high(s, recip.y) as u8)
}

/// The upper half of a product.
#[inline(always)]
fn high(a: u16, b: u16) -> u16 {
    ((u32::from(a) * u32::from(b)) >> 16) as u16
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{Reciprocals, Weights};

    /// # Safety
    /// AVX2 must be available, and `pixels` must reach to the window's end: `(HEIGHT - 1) * stride + WIDTH`
    /// pixels.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn shrink(
        pixels: &[u32],
        stride: usize,
        x: &Weights,
        y: &Weights,
        recip: Reciprocals,
    ) -> [u8; 4] {
        let across = _mm256_set1_epi16(recip.x as i16);
        let (x, y) = (x.lanes.as_ptr().cast::<__m256i>(), y.lanes.as_ptr().cast::<__m256i>());
        // SAFETY: weights are 12 times four u16, three times 32 bytes; all three are read at most. Rows 0 to
        // 9 of 12 pixels each lie within `pixels`, as the caller promised for the last one.
        let sum = unsafe {
            let (first, last) = (_mm256_loadu_si256(x), _mm256_loadu_si256(x.add(2)));
            let at = |i: usize| pixels.as_ptr().wrapping_add(i * stride);
            let (a, b) = (row(at(0), first, last), row(at(1), first, last));
            let (c, d) = (row(at(2), first, last), row(at(3), first, last));
            let sum = four(a, b, c, d, across, _mm256_loadu_si256(y));
            let (a, b) = (row(at(4), first, last), row(at(5), first, last));
            let (c, d) = (row(at(6), first, last), row(at(7), first, last));
            let sum = _mm256_add_epi16(sum, four(a, b, c, d, across, _mm256_loadu_si256(y.add(1))));
            let (a, b) = (row(at(8), first, last), row(at(9), first, last));
            let none = _mm256_setzero_si256();
            _mm256_add_epi16(sum, four(a, b, none, none, across, _mm256_loadu_si256(y.add(2))))
        };
        let sum = _mm_add_epi16(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum));
        let sum = _mm_add_epi16(sum, _mm_unpackhi_epi64(sum, sum));
        let sum = _mm_mulhi_epu16(sum, _mm_set1_epi16(recip.y as i16));
        _mm_cvtsi128_si32(_mm_packus_epi16(sum, sum)).to_le_bytes()
    }

    /// A row's pixels as four partial sums of four channels.
    ///
    /// # Safety
    /// AVX2 must be available, and 12 pixels must be readable at `at`.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn row(at: *const u32, first: __m256i, last: __m256i) -> __m256i {
        let at = at.cast::<__m128i>();
        // SAFETY: three times 16 bytes are the 12 pixels that the caller promised.
        let (a, b, c) =
            unsafe { (_mm_loadu_si128(at), _mm_loadu_si128(at.add(1)), _mm_loadu_si128(at.add(2))) };
        let a = _mm256_mulhi_epu16(_mm256_slli_epi16::<2>(_mm256_cvtepu8_epi16(a)), first);
        let c = _mm256_mulhi_epu16(_mm256_slli_epi16::<2>(_mm256_cvtepu8_epi16(c)), last);
        _mm256_add_epi16(_mm256_add_epi16(a, _mm256_cvtepu8_epi16(b)), c)
    }

    /// Shrinks each of four rows to one pixel and applies the row weights.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn four(a: __m256i, b: __m256i, c: __m256i, d: __m256i, across: __m256i, weights: __m256i) -> __m256i {
        // Two rows per vector, each half with two partial sums of each row: a b | a b and c d | c d.
        let ab = _mm256_add_epi16(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
        let cd = _mm256_add_epi16(_mm256_unpacklo_epi64(c, d), _mm256_unpackhi_epi64(c, d));
        let (low, high) =
            (_mm256_permute2x128_si256::<0x20>(ab, cd), _mm256_permute2x128_si256::<0x31>(ab, cd));
        let narrow = _mm256_mulhi_epu16(_mm256_add_epi16(low, high), across);
        _mm256_mulhi_epu16(_mm256_slli_epi16::<2>(narrow), weights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_shrink_as_plain_code_does() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 32) as u32
        };
        for stride in [12, 13, 40] {
            // Miri is an interpreter: a few rounds take as long there.
            for _ in 0..if cfg!(miri) { 4 } else { 500 } {
                let pixels: Vec<u32> = (0..9 * stride + 12).map(|_| random()).collect();
                let mut weight = || (random() % (u32::from(ONE) + 1)) as u16;
                let x = Weights::across(weight(), weight(), weight());
                let y = Weights::down(weight(), weight(), weight());
                let recip = Reciprocals { x: 6291, y: 7864 };
                assert_eq!(shrink(&pixels, stride, &x, &y, recip), portable(&pixels, stride, &x, &y, recip));
            }
        }
    }

    #[test]
    fn a_flat_window_keeps_its_colour_but_for_truncation() {
        let (x, y) = (Weights::across(ONE / 2, ONE, 0), Weights::down(0, ONE, 5461));
        let recip =
            Reciprocals { x: (65536.0 / 10.5) as u16, y: (65536.0 / (8.0 + 5461.0 / 16384.0)) as u16 };
        let [a, b, ..] = shrink(&[0x00FF_0064; 12 * 10], 12, &x, &y, recip);
        assert_eq!((a, b), (98, 0));
    }

    #[test]
    #[should_panic(expected = "reaches beyond")]
    fn windows_beyond_the_pixels_are_refused() {
        let recip = Reciprocals { x: 6291, y: 7864 };
        shrink(&[0; 119], 12, &Weights::across(0, 0, 0), &Weights::down(0, 0, 0), recip);
    }
}
