//! AVX2 with FMA, and AVX-512.
//!
//! **Why the `unsafe` below is sound.** [`Avx2`] and [`Avx512`] have private fields and are only made in
//! `run_avx2` and `run_avx512`, whose callers guarantee the features. [`Ymm`] and [`Zmm`] are made from those
//! tokens or from each other. So wherever a method on a token or a vector runs, the processor has the
//! instruction.

use std::arch::x86_64::*;

use super::pair::Pair;
use super::{Isa, Lanes, Task};

/// Runs `task` with AVX2 and FMA.
///
/// # Safety
/// The processor must have `avx2` and `fma`.
#[target_feature(enable = "avx2,fma")]
pub(crate) unsafe fn run_avx2<T: Task>(task: T) -> T::Out {
    task.run(Avx2(()))
}

/// Runs `task` with AVX-512.
///
/// # Safety
/// The processor must have `avx2`, `fma`, `avx512f`, `avx512vl` and `avx512dq`.
#[target_feature(enable = "avx2,fma,avx512f,avx512vl,avx512dq")]
pub(crate) unsafe fn run_avx512<T: Task>(task: T) -> T::Out {
    task.run(Avx512(()))
}

/// Proof of `avx2` and `fma`.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

impl Isa for Avx2 {
    type V16 = Pair<Ymm>;
    type V8 = Ymm;
    const ROWS: usize = 2;

    #[inline(always)]
    fn splat16(self, x: f32) -> Pair<Ymm> {
        let half = self.splat8(x);
        Pair(half, half)
    }
    #[inline(always)]
    fn splat8(self, x: f32) -> Ymm {
        // SAFETY: `self` proves avx2.
        Ymm(unsafe { _mm256_set1_ps(x) })
    }
    #[inline(always)]
    fn load16(self, from: &[f32; 16]) -> Pair<Ymm> {
        let from = from.as_ptr();
        // SAFETY: `self` proves avx2; 8 + 8 floats lie behind the reference.
        unsafe { Pair(Ymm(_mm256_loadu_ps(from)), Ymm(_mm256_loadu_ps(from.add(8)))) }
    }
    #[inline(always)]
    fn load8(self, from: &[f32; 8]) -> Ymm {
        // SAFETY: `self` proves avx2; 8 floats lie behind the reference.
        Ymm(unsafe { _mm256_loadu_ps(from.as_ptr()) })
    }
    #[inline(always)]
    fn look_up16(self, table: Pair<Ymm>, sixteenths: Pair<Ymm>) -> Pair<Ymm> {
        Pair(look_up8(table, sixteenths.0), look_up8(table, sixteenths.1))
    }
    #[inline(always)]
    fn transpose(self, rows: [Ymm; 16]) -> [Pair<Ymm>; 8] {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = rows;
        let low = transpose8([a, b, c, d, e, f, g, h]);
        let high = transpose8([i, j, k, l, m, n, o, p]);
        let mut columns = [Pair(a, a); 8];
        for t in 0..8 {
            columns[t] = Pair(low[t], high[t]);
        }
        columns
    }
    #[inline(always)]
    fn halves(self, x: Pair<Ymm>) -> [Ymm; 2] {
        [x.0, x.1]
    }
}

/// Eight lanes of [`Isa::look_up16`]. No closure: it would not get the caller's target features.
#[inline(always)]
fn look_up8(table: Pair<Ymm>, n: Ymm) -> Ymm {
    // SAFETY: a `Ymm` proves avx2.
    unsafe {
        let n = _mm256_castps_si256(n.0);
        let (low, high) = (_mm256_permutevar8x32_ps(table.0.0, n), _mm256_permutevar8x32_ps(table.1.0, n));
        // Bit 3 selects the half, as the sign.
        let half = _mm256_castsi256_ps(_mm256_slli_epi32::<28>(n));
        let entry = _mm256_castps_si256(_mm256_blendv_ps(low, high, half));
        Ymm(_mm256_castsi256_ps(_mm256_add_epi32(entry, _mm256_slli_epi32::<19>(n))))
    }
}

/// Transposes eight rows to eight columns. No closures: they would not get the caller's target features.
#[inline(always)]
fn transpose8([a, b, c, d, e, f, g, h]: [Ymm; 8]) -> [Ymm; 8] {
    let (left, right) = (quarters8([a, b, c, d]), quarters8([e, f, g, h]));
    let mut columns = [a; 8];
    for t in 0..4 {
        // SAFETY: a `Ymm` proves avx2.
        unsafe {
            columns[t] = Ymm(_mm256_permute2f128_ps::<0x20>(left[t].0, right[t].0));
            columns[4 + t] = Ymm(_mm256_permute2f128_ps::<0x31>(left[t].0, right[t].0));
        }
    }
    columns
}

/// Transposes four rows: their columns 0 to 3 are in the first half of the lanes, columns 4 to 7 in the other
/// half.
#[inline(always)]
fn quarters8([a, b, c, d]: [Ymm; 4]) -> [Ymm; 4] {
    // SAFETY: a `Ymm` proves avx2.
    unsafe {
        let low = _mm256_castps_pd(_mm256_unpacklo_ps(a.0, b.0));
        let high = _mm256_castps_pd(_mm256_unpackhi_ps(a.0, b.0));
        let low2 = _mm256_castps_pd(_mm256_unpacklo_ps(c.0, d.0));
        let high2 = _mm256_castps_pd(_mm256_unpackhi_ps(c.0, d.0));
        [
            Ymm(_mm256_castpd_ps(_mm256_unpacklo_pd(low, low2))),
            Ymm(_mm256_castpd_ps(_mm256_unpackhi_pd(low, low2))),
            Ymm(_mm256_castpd_ps(_mm256_unpacklo_pd(high, high2))),
            Ymm(_mm256_castpd_ps(_mm256_unpackhi_pd(high, high2))),
        ]
    }
}

/// Proof of `avx512f`, `avx512vl`, `avx512dq`, `avx2` and `fma`.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(());

impl Isa for Avx512 {
    type V16 = Zmm;
    type V8 = Ymm;
    const ROWS: usize = 4;

    #[inline(always)]
    fn splat16(self, x: f32) -> Zmm {
        // SAFETY: `self` proves avx512f.
        Zmm(unsafe { _mm512_set1_ps(x) })
    }
    #[inline(always)]
    fn splat8(self, x: f32) -> Ymm {
        // SAFETY: `self` proves avx2.
        Ymm(unsafe { _mm256_set1_ps(x) })
    }
    #[inline(always)]
    fn load16(self, from: &[f32; 16]) -> Zmm {
        // SAFETY: `self` proves avx512f; 16 floats lie behind the reference.
        Zmm(unsafe { _mm512_loadu_ps(from.as_ptr()) })
    }
    #[inline(always)]
    fn load8(self, from: &[f32; 8]) -> Ymm {
        // SAFETY: `self` proves avx2; 8 floats lie behind the reference.
        Ymm(unsafe { _mm256_loadu_ps(from.as_ptr()) })
    }
    #[inline(always)]
    fn look_up16(self, table: Zmm, sixteenths: Zmm) -> Zmm {
        // SAFETY: `self` proves avx512f.
        unsafe {
            let n = _mm512_castps_si512(sixteenths.0);
            let entry = _mm512_castps_si512(_mm512_permutexvar_ps(n, table.0));
            Zmm(_mm512_castsi512_ps(_mm512_add_epi32(entry, _mm512_slli_epi32::<19>(n))))
        }
    }
    #[inline(always)]
    fn transpose(self, rows: [Ymm; 16]) -> [Zmm; 8] {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = rows;
        let left = quarters16([both(a, e), both(b, f), both(c, g), both(d, h)]);
        let right = quarters16([both(i, m), both(j, n), both(k, o), both(l, p)]);
        let mut columns = [left[0]; 8];
        for t in 0..4 {
            // SAFETY: `self` proves avx512f.
            unsafe {
                columns[t] = Zmm(_mm512_shuffle_f32x4::<0b10_00_10_00>(left[t].0, right[t].0));
                columns[4 + t] = Zmm(_mm512_shuffle_f32x4::<0b11_01_11_01>(left[t].0, right[t].0));
            }
        }
        columns
    }
    #[inline(always)]
    fn halves(self, x: Zmm) -> [Ymm; 2] {
        let (low, high) = x.halves();
        [low, high]
    }
}

/// Joins two halves. Both were loaded by an [`Avx512`].
#[inline(always)]
fn both(low: Ymm, high: Ymm) -> Zmm {
    // SAFETY: the only caller is `Avx512::transpose`, whose token proves avx512f and avx512dq.
    Zmm(unsafe { _mm512_insertf32x8::<1>(_mm512_castps256_ps512(low.0), high.0) })
}

/// Transposes four rows, with rows i and i + 4 in one register, to columns t in the first and third quarter
/// of the lanes and columns 4 + t in the others.
#[inline(always)]
fn quarters16([a, b, c, d]: [Zmm; 4]) -> [Zmm; 4] {
    // SAFETY: a `Zmm` proves avx512f.
    unsafe {
        let low = _mm512_castps_pd(_mm512_unpacklo_ps(a.0, b.0));
        let high = _mm512_castps_pd(_mm512_unpackhi_ps(a.0, b.0));
        let low2 = _mm512_castps_pd(_mm512_unpacklo_ps(c.0, d.0));
        let high2 = _mm512_castps_pd(_mm512_unpackhi_ps(c.0, d.0));
        [
            Zmm(_mm512_castpd_ps(_mm512_unpacklo_pd(low, low2))),
            Zmm(_mm512_castpd_ps(_mm512_unpackhi_pd(low, low2))),
            Zmm(_mm512_castpd_ps(_mm512_unpacklo_pd(high, high2))),
            Zmm(_mm512_castpd_ps(_mm512_unpackhi_pd(high, high2))),
        ]
    }
}

/// Eight lanes. A value exists only where `avx2` and `fma` are available.
#[derive(Clone, Copy)]
pub(crate) struct Ymm(__m256);

impl Lanes<8> for Ymm {
    #[inline(always)]
    fn store(self, to: &mut [f32; 8]) {
        // SAFETY: `self` proves avx2; there is room for 8 floats behind the reference.
        unsafe { _mm256_storeu_ps(to.as_mut_ptr(), self.0) }
    }
    #[inline(always)]
    fn add(self, b: Self) -> Self {
        // SAFETY: `self` proves avx2.
        Ymm(unsafe { _mm256_add_ps(self.0, b.0) })
    }
    #[inline(always)]
    fn sub(self, b: Self) -> Self {
        // SAFETY: `self` proves avx2.
        Ymm(unsafe { _mm256_sub_ps(self.0, b.0) })
    }
    #[inline(always)]
    fn mul(self, b: Self) -> Self {
        // SAFETY: `self` proves avx2.
        Ymm(unsafe { _mm256_mul_ps(self.0, b.0) })
    }
    #[inline(always)]
    fn div(self, b: Self) -> Self {
        // SAFETY: `self` proves avx2.
        Ymm(unsafe { _mm256_div_ps(self.0, b.0) })
    }
    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        // SAFETY: `self` proves fma.
        Ymm(unsafe { _mm256_fmadd_ps(self.0, b.0, c.0) })
    }
    #[inline(always)]
    fn min(self, b: Self) -> Self {
        // SAFETY: `self` proves avx2.
        Ymm(unsafe { _mm256_min_ps(self.0, b.0) })
    }
    #[inline(always)]
    fn max(self, b: Self) -> Self {
        // SAFETY: `self` proves avx2.
        Ymm(unsafe { _mm256_max_ps(self.0, b.0) })
    }
    #[inline(always)]
    fn select_lt(self, b: Self, yes: Self, no: Self) -> Self {
        // SAFETY: `self` proves avx2.
        Ymm(unsafe { _mm256_blendv_ps(no.0, yes.0, _mm256_cmp_ps::<_CMP_LT_OQ>(self.0, b.0)) })
    }
    #[inline(always)]
    fn copy_sign(self, sign: Self) -> Self {
        // SAFETY: `self` proves avx2.
        unsafe {
            let bit = _mm256_set1_ps(-0.0);
            Ymm(_mm256_or_ps(_mm256_andnot_ps(bit, self.0), _mm256_and_ps(bit, sign.0)))
        }
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        // SAFETY: `self` proves avx2.
        Ymm(unsafe { _mm256_sqrt_ps(self.0) })
    }
    #[inline(always)]
    fn negate_if_odd(self, magic: Self) -> Self {
        // SAFETY: `self` proves avx2.
        unsafe {
            let sign = _mm256_slli_epi32::<31>(_mm256_castps_si256(magic.0));
            Ymm(_mm256_castsi256_ps(_mm256_xor_si256(_mm256_castps_si256(self.0), sign)))
        }
    }
    #[inline(always)]
    fn scale_by_magic(self, magic: Self) -> Self {
        // SAFETY: `self` proves avx2.
        unsafe {
            let n = _mm256_slli_epi32::<23>(_mm256_castps_si256(magic.0));
            Ymm(_mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(self.0), n)))
        }
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        // SAFETY: `self` proves avx2.
        unsafe {
            let four = _mm_add_ps(_mm256_castps256_ps128(self.0), _mm256_extractf128_ps::<1>(self.0));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        }
    }
    #[inline(always)]
    fn largest(self) -> f32 {
        // SAFETY: `self` proves avx2.
        unsafe {
            let four = _mm_max_ps(_mm256_castps256_ps128(self.0), _mm256_extractf128_ps::<1>(self.0));
            let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)))
        }
    }
}

/// Sixteen lanes. A value exists only where `avx512f`, `avx512dq`, `avx2` and `fma` are available.
#[derive(Clone, Copy)]
pub(crate) struct Zmm(__m512);

impl Zmm {
    /// The low and the high half.
    #[inline(always)]
    fn halves(self) -> (Ymm, Ymm) {
        // SAFETY: `self` proves avx512f and avx512dq.
        unsafe { (Ymm(_mm512_castps512_ps256(self.0)), Ymm(_mm512_extractf32x8_ps::<1>(self.0))) }
    }
}

impl Lanes<16> for Zmm {
    #[inline(always)]
    fn store(self, to: &mut [f32; 16]) {
        // SAFETY: `self` proves avx512f; there is room for 16 floats behind the reference.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), self.0) }
    }
    #[inline(always)]
    fn add(self, b: Self) -> Self {
        // SAFETY: `self` proves avx512f.
        Zmm(unsafe { _mm512_add_ps(self.0, b.0) })
    }
    #[inline(always)]
    fn sub(self, b: Self) -> Self {
        // SAFETY: `self` proves avx512f.
        Zmm(unsafe { _mm512_sub_ps(self.0, b.0) })
    }
    #[inline(always)]
    fn mul(self, b: Self) -> Self {
        // SAFETY: `self` proves avx512f.
        Zmm(unsafe { _mm512_mul_ps(self.0, b.0) })
    }
    #[inline(always)]
    fn div(self, b: Self) -> Self {
        // SAFETY: `self` proves avx512f.
        Zmm(unsafe { _mm512_div_ps(self.0, b.0) })
    }
    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        // SAFETY: `self` proves avx512f.
        Zmm(unsafe { _mm512_fmadd_ps(self.0, b.0, c.0) })
    }
    #[inline(always)]
    fn min(self, b: Self) -> Self {
        // SAFETY: `self` proves avx512f.
        Zmm(unsafe { _mm512_min_ps(self.0, b.0) })
    }
    #[inline(always)]
    fn max(self, b: Self) -> Self {
        // SAFETY: `self` proves avx512f.
        Zmm(unsafe { _mm512_max_ps(self.0, b.0) })
    }
    #[inline(always)]
    fn select_lt(self, b: Self, yes: Self, no: Self) -> Self {
        // SAFETY: `self` proves avx512f.
        Zmm(unsafe { _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(self.0, b.0), no.0, yes.0) })
    }
    #[inline(always)]
    fn copy_sign(self, sign: Self) -> Self {
        // SAFETY: `self` proves avx512f and avx512dq.
        unsafe {
            let bit = _mm512_set1_ps(-0.0);
            Zmm(_mm512_or_ps(_mm512_andnot_ps(bit, self.0), _mm512_and_ps(bit, sign.0)))
        }
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        // SAFETY: `self` proves avx512f.
        Zmm(unsafe { _mm512_sqrt_ps(self.0) })
    }
    #[inline(always)]
    fn negate_if_odd(self, magic: Self) -> Self {
        // SAFETY: `self` proves avx512f.
        unsafe {
            let sign = _mm512_slli_epi32::<31>(_mm512_castps_si512(magic.0));
            Zmm(_mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(self.0), sign)))
        }
    }
    #[inline(always)]
    fn scale_by_magic(self, magic: Self) -> Self {
        // SAFETY: `self` proves avx512f.
        unsafe {
            let n = _mm512_slli_epi32::<23>(_mm512_castps_si512(magic.0));
            Zmm(_mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(self.0), n)))
        }
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        let (low, high) = self.halves();
        low.add(high).sum()
    }
    #[inline(always)]
    fn largest(self) -> f32 {
        let (low, high) = self.halves();
        low.max(high).largest()
    }
}
