//! Converts accumulated coverage to bytes: the inner loops of a coverage renderer.
//!
//! A row is a number of blocks of [`BLOCK`] cells. A mask selects the blocks to process; bit 0 is the first
//! block. The vector paths and the portable path use the same operations in the same order on every number
//! (no fused multiply-add), so they produce identical bytes.

/// Cells in a block.
pub const BLOCK: usize = 8;

/// Background of a cell: colour = `base + lift * share`, with R, G, B from 0 to 255.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ground {
    /// Colour at share 0.
    pub base: [f32; 3],
    /// Added to `base` at share 1.
    pub lift: [f32; 3],
}

/// Coverage above this is more than rounding error: polygons overlap.
const FULL: f32 = 1.001;
/// 2^23: adding it rounds to the nearest integer, which is then in the low bits.
const ROUND: f32 = 8_388_608.0;

/// Adds `deltas` to `sums` and zeroes `deltas`, in the blocks selected by `mask`. Both are `[blocks]`.
pub fn take<const N: usize>(mask: u16, sums: &mut [[[f32; N]; BLOCK]], deltas: &mut [[[f32; N]; BLOCK]]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: AVX2 was just detected.
        unsafe { avx2::take(mask, sums, deltas) };
        return;
    }
    take_blocks(mask, sums, deltas);
}

/// [`take`], compiled for the target features of the caller.
#[inline(always)]
fn take_blocks<const N: usize>(mask: u16, sums: &mut [[[f32; N]; BLOCK]], deltas: &mut [[[f32; N]; BLOCK]]) {
    for block in ones(mask) {
        if let (Some(sums), Some(deltas)) = (sums.get_mut(block), deltas.get_mut(block)) {
            for i in 0..BLOCK {
                for k in 0..N {
                    sums[i][k] += deltas[i][k];
                }
            }
            *deltas = [[0.0; N]; BLOCK];
        }
    }
}

/// Composes premultiplied colours over the ground and writes bytes, in the blocks selected by `mask`.
///
/// * `ground`, `shares`: the two-coloured ground and the share of the second colour in each cell,
///   `[blocks, BLOCK]`
/// * `over`: `[blocks, BLOCK]` cells of R, G, B (0 to 255, premultiplied) and coverage; where coverage
///   exceeds 1, the colours divide the cell in proportion
/// * `bias`: subtracted before rounding to the nearest integer; negative results become 0, results stay below
///   256 if the colours do
/// * `out`: `[blocks * BLOCK, 3]` bytes
///
/// # Panics
/// When `mask` selects a block outside `shares`, `over` or `out`.
pub fn blend(
    mask: u16,
    ground: &Ground,
    shares: &[[[f32; 1]; BLOCK]],
    over: &[[[f32; 4]; BLOCK]],
    bias: f32,
    out: &mut [u8],
) {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: AVX2 was just detected.
            unsafe { avx2::blend(mask, ground, shares, over, bias, out) };
        } else {
            // SAFETY: SSE2 is part of every x86-64.
            unsafe { sse2::blend(mask, ground, shares, over, bias, out) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    portable::blend(mask, ground, shares, over, bias, out);
}

/// Positions of the bits that are 1, from the lowest.
fn ones(mut mask: u16) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let at = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (at < 16).then_some(at as usize)
    })
}

/// The bytes of one block.
#[inline(always)]
fn block_bytes(out: &mut [u8], block: usize) -> &mut [u8; BLOCK * 3] {
    let at = block * BLOCK * 3;
    (&mut out[at..at + BLOCK * 3]).try_into().expect("as long as it says")
}

#[cfg(any(test, not(target_arch = "x86_64")))]
mod portable {
    use super::{BLOCK, FULL, Ground, ROUND, block_bytes, ones};

    pub(super) fn blend(
        mask: u16,
        ground: &Ground,
        shares: &[[[f32; 1]; BLOCK]],
        over: &[[[f32; 4]; BLOCK]],
        bias: f32,
        out: &mut [u8],
    ) {
        for block in ones(mask) {
            let out = block_bytes(out, block);
            for i in 0..BLOCK {
                let [share] = shares[block][i];
                let mut over = over[block][i];
                if over[3] > FULL {
                    let scale = 1.0 / over[3];
                    over = over.map(|v| v * scale);
                }
                let keep = 1.0 - over[3];
                for k in 0..3 {
                    let value = (ground.base[k] + ground.lift[k] * share) * keep + over[k] - bias;
                    let value = if value > 0.0 { value } else { 0.0 };
                    out[i * 3 + k] = (value + ROUND).to_bits() as u8;
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use super::{BLOCK, FULL, Ground, ROUND, block_bytes, ones};
    use std::arch::x86_64::*;

    #[target_feature(enable = "sse2")]
    pub(super) fn blend(
        mask: u16,
        ground: &Ground,
        shares: &[[[f32; 1]; BLOCK]],
        over: &[[[f32; 4]; BLOCK]],
        bias: f32,
        out: &mut [u8],
    ) {
        let (one, zero) = (_mm_set1_ps(1.0), _mm_setzero_ps());
        for block in ones(mask) {
            let (shares, over, out) =
                (shares[block].as_flattened(), over[block].as_flattened(), block_bytes(out, block));
            let mut pixels = [0u32; BLOCK];
            for at in [0, 4] {
                // SAFETY: `shares` has 8 floats and `over` 32, and `at` is 0 or 4: both pointers come from
                // the whole slice, and four floats from `at`, as 16 from `4 * at`, are in bounds.
                let (share, cells) = unsafe {
                    let cell = |i: usize| _mm_loadu_ps(over.as_ptr().add(4 * (at + i)));
                    (_mm_loadu_ps(shares.as_ptr().add(at)), [cell(0), cell(1), cell(2), cell(3)])
                };
                // Four cells of R, G, B, coverage become four vectors, one per quantity.
                let rg_low = _mm_unpacklo_ps(cells[0], cells[1]);
                let rg_high = _mm_unpacklo_ps(cells[2], cells[3]);
                let bc_low = _mm_unpackhi_ps(cells[0], cells[1]);
                let bc_high = _mm_unpackhi_ps(cells[2], cells[3]);
                let mut over = [
                    _mm_movelh_ps(rg_low, rg_high),
                    _mm_movehl_ps(rg_high, rg_low),
                    _mm_movelh_ps(bc_low, bc_high),
                    _mm_movehl_ps(bc_high, bc_low),
                ];
                let crowded = _mm_cmpgt_ps(over[3], _mm_set1_ps(FULL));
                if _mm_movemask_ps(crowded) != 0 {
                    let shared = _mm_and_ps(crowded, _mm_div_ps(one, over[3]));
                    let scale = _mm_or_ps(shared, _mm_andnot_ps(crowded, one));
                    over = over.map(|v| _mm_mul_ps(v, scale));
                }
                let keep = _mm_sub_ps(one, over[3]);
                let channel = |k: usize| {
                    let ground = _mm_add_ps(
                        _mm_set1_ps(ground.base[k]),
                        _mm_mul_ps(_mm_set1_ps(ground.lift[k]), share),
                    );
                    let value = _mm_sub_ps(_mm_add_ps(_mm_mul_ps(ground, keep), over[k]), _mm_set1_ps(bias));
                    let value = _mm_add_ps(_mm_max_ps(value, zero), _mm_set1_ps(ROUND));
                    _mm_and_si128(_mm_castps_si128(value), _mm_set1_epi32(255))
                };
                let pixel = _mm_or_si128(
                    channel(0),
                    _mm_or_si128(_mm_slli_epi32::<8>(channel(1)), _mm_slli_epi32::<16>(channel(2))),
                );
                // SAFETY: `at` is 0 or 4, so four words from `pixels[at]` are in bounds.
                unsafe { _mm_storeu_si128(pixels.as_mut_ptr().add(at).cast(), pixel) };
            }
            // Words overlap by a byte; the last one must not reach beyond the block.
            for i in 0..BLOCK - 1 {
                out[i * 3..i * 3 + 4].copy_from_slice(&pixels[i].to_le_bytes());
            }
            let last = pixels[BLOCK - 2] >> 16 | pixels[BLOCK - 1] << 8;
            out[BLOCK * 3 - 4..].copy_from_slice(&last.to_le_bytes());
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{BLOCK, FULL, Ground, ROUND, block_bytes, ones, take_blocks};
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx2")]
    pub(super) fn take<const N: usize>(
        mask: u16,
        sums: &mut [[[f32; N]; BLOCK]],
        deltas: &mut [[[f32; N]; BLOCK]],
    ) {
        take_blocks(mask, sums, deltas);
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn blend(
        mask: u16,
        ground: &Ground,
        shares: &[[[f32; 1]; BLOCK]],
        over: &[[[f32; 4]; BLOCK]],
        bias: f32,
        out: &mut [u8],
    ) {
        let (one, zero) = (_mm256_set1_ps(1.0), _mm256_setzero_ps());
        let base = ground.base.map(|v| _mm256_set1_ps(v));
        let lift = ground.lift.map(|v| _mm256_set1_ps(v));
        let (bias, round) = (_mm256_set1_ps(bias), _mm256_set1_ps(ROUND));
        // Unpacking leaves the cells in the order 0 2 4 6 1 3 5 7.
        let scatter = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
        let gather = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
        let drop_fourth = _mm256_setr_epi8(
            0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1, //
            0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1,
        );
        let close_gap = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7);
        for block in ones(mask) {
            let (shares, over, out) =
                (shares[block].as_flattened(), over[block].as_flattened(), block_bytes(out, block));
            // SAFETY: `shares` has 8 floats, `over` 32, in four pieces of 8.
            let (share, cells) = unsafe {
                let cells = |i: usize| _mm256_loadu_ps(over.as_ptr().add(i * 8));
                (_mm256_loadu_ps(shares.as_ptr()), [cells(0), cells(1), cells(2), cells(3)])
            };
            let share = _mm256_permutevar8x32_ps(share, scatter);
            let rg_low = _mm256_castps_pd(_mm256_unpacklo_ps(cells[0], cells[1]));
            let rg_high = _mm256_castps_pd(_mm256_unpacklo_ps(cells[2], cells[3]));
            let bc_low = _mm256_castps_pd(_mm256_unpackhi_ps(cells[0], cells[1]));
            let bc_high = _mm256_castps_pd(_mm256_unpackhi_ps(cells[2], cells[3]));
            let mut over = [
                _mm256_castpd_ps(_mm256_unpacklo_pd(rg_low, rg_high)),
                _mm256_castpd_ps(_mm256_unpackhi_pd(rg_low, rg_high)),
                _mm256_castpd_ps(_mm256_unpacklo_pd(bc_low, bc_high)),
                _mm256_castpd_ps(_mm256_unpackhi_pd(bc_low, bc_high)),
            ];
            let crowded = _mm256_cmp_ps::<_CMP_GT_OQ>(over[3], _mm256_set1_ps(FULL));
            if _mm256_movemask_ps(crowded) != 0 {
                let scale = _mm256_blendv_ps(one, _mm256_div_ps(one, over[3]), crowded);
                over = over.map(|v| _mm256_mul_ps(v, scale));
            }
            let keep = _mm256_sub_ps(one, over[3]);
            let channel = |k: usize| {
                let ground = _mm256_add_ps(base[k], _mm256_mul_ps(lift[k], share));
                let value = _mm256_sub_ps(_mm256_add_ps(_mm256_mul_ps(ground, keep), over[k]), bias);
                let value = _mm256_add_ps(_mm256_max_ps(value, zero), round);
                _mm256_and_si256(_mm256_castps_si256(value), _mm256_set1_epi32(255))
            };
            let pixel = _mm256_or_si256(
                channel(0),
                _mm256_or_si256(_mm256_slli_epi32::<8>(channel(1)), _mm256_slli_epi32::<16>(channel(2))),
            );
            let bytes = _mm256_shuffle_epi8(_mm256_permutevar8x32_epi32(pixel, gather), drop_fourth);
            let bytes = _mm256_permutevar8x32_epi32(bytes, close_gap);
            // SAFETY: `out` has 24 bytes: 16 from the start, 8 from byte 16.
            unsafe {
                _mm_storeu_si128(out.as_mut_ptr().cast(), _mm256_castsi256_si128(bytes));
                _mm_storel_epi64(out.as_mut_ptr().add(16).cast(), _mm256_extracti128_si256::<1>(bytes));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Blend = fn(u16, &Ground, &[[[f32; 1]; BLOCK]], &[[[f32; 4]; BLOCK]], f32, &mut [u8]);

    fn random() -> impl FnMut() -> f32 {
        let mut state = 1u32;
        move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32
        }
    }

    /// Every path produces the same bytes as the portable one on covered, bare and crowded cells, and leaves
    /// other blocks unchanged.
    #[track_caller]
    fn check(path: Blend) {
        let mut next = random();
        // Miri is an interpreter: a few rounds take as long there.
        for round in 0..if cfg!(miri) { 24 } else { 3000_u16 } {
            let base = [next() * 255.0, next() * 255.0, 0.0];
            let ground = Ground { base, lift: [next() * (255.0 - base[0]), -next() * base[1], 0.0] };
            let shares: [[[f32; 1]; BLOCK]; 3] = std::array::from_fn(|_| std::array::from_fn(|_| [next()]));
            let most = [0.0, 1.0, 2.0][usize::from(round % 3)];
            let over: [[[f32; 4]; BLOCK]; 3] = std::array::from_fn(|_| {
                std::array::from_fn(|_| {
                    let cover = next() * most;
                    [255.0 * cover, 102.0 * cover, next() * 255.0 * cover, cover]
                })
            });
            let (mut got, mut want) = ([7; 3 * BLOCK * 3], [7; 3 * BLOCK * 3]);
            path(round % 8, &ground, &shares, &over, 1.502, &mut got);
            portable::blend(round % 8, &ground, &shares, &over, 1.502, &mut want);
            assert_eq!(got, want, "round {round}");
            for block in 0..3 {
                let bytes = &want[block * 24..][..24];
                assert_eq!(bytes.iter().all(|&b| b == 7), (round % 8) & (1 << block) == 0, "round {round}");
            }
        }
    }

    #[test]
    fn the_chosen_path_gives_the_portable_bytes() {
        check(blend);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn sse2_gives_the_portable_bytes() {
        // SAFETY: SSE2 is part of every x86-64.
        check(|mask, ground, shares, over, bias, out| unsafe {
            sse2::blend(mask, ground, shares, over, bias, out);
        });
    }

    #[test]
    fn flat_colours_lose_the_bias_and_overlaps_share() {
        let ground = Ground { base: [102.0, 204.0, 0.4], lift: [0.0, 26.0, 0.0] };
        let mut out = [0; 24];
        let mut over = [[[0.0; 4]; BLOCK]];
        over[0][1] = [255.0, 0.0, 0.0, 1.0];
        over[0][2] = [255.0, 255.0, 0.0, 2.0];
        blend(1, &ground, &[[[1.0]; BLOCK]], &over, 1.502, &mut out);
        assert_eq!(&out[..9], &[100, 228, 0, 253, 0, 0, 126, 126, 0]);
    }

    #[test]
    fn taking_moves_the_differences_of_the_named_blocks() {
        let mut sums = [[[1.0; 2]; BLOCK]; 3];
        let mut deltas = [[[0.5; 2]; BLOCK]; 3];
        take(0b101, &mut sums, &mut deltas);
        assert_eq!(sums, [[[1.5; 2]; BLOCK], [[1.0; 2]; BLOCK], [[1.5; 2]; BLOCK]]);
        assert_eq!(deltas, [[[0.0; 2]; BLOCK], [[0.5; 2]; BLOCK], [[0.0; 2]; BLOCK]]);
    }
}
