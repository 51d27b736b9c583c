//! Eight lanes: AVX2 with fused multiply-add and half-precision conversion, which every CPU with
//! AVX2 has.
//!
//! The register tile is 6 × 2 vectors: 12 accumulators, 2 of the row, 1 broadcast, of 16.

use super::{Kernel, Simd};
use crate::storage::{Bf16, F16};
use std::arch::x86_64::*;

/// Token of AVX2 + FMA + F16C, created only where the CPU has the instructions.
#[derive(Clone, Copy)]
pub struct Avx2(());

impl Avx2 {
    /// Creates the token.
    ///
    /// # Safety
    /// The CPU must have AVX2, FMA and F16C.
    #[inline(always)]
    pub(super) unsafe fn token() -> Avx2 {
        Avx2(())
    }
}

/// Runs a kernel with AVX2.
///
/// # Safety
/// The CPU must have AVX2, FMA and F16C.
#[target_feature(enable = "avx2,fma,f16c")]
pub unsafe fn enter<K: Kernel>(kernel: K) -> K::Out {
    kernel.run(Avx2(()))
}

/// Methods that are a single expression of intrinsics.
macro_rules! methods {
    ($($name:ident($($a:ident: $t:ty),*) -> $r:ty = $e:expr;)*) => {$(
        #[inline(always)]
        fn $name(self, $($a: $t),*) -> $r {
            // SAFETY: the token exists only where the CPU has the instructions.
            unsafe { $e }
        }
    )*};
}

impl Simd for Avx2 {
    type V = __m256;
    type M = __m256;
    const LANES: usize = 8;
    const ROWS: usize = 6;
    const COLS: usize = 2;

    methods! {
        splat(x: f32) -> __m256 = _mm256_set1_ps(x);
        add(a: __m256, b: __m256) -> __m256 = _mm256_add_ps(a, b);
        sub(a: __m256, b: __m256) -> __m256 = _mm256_sub_ps(a, b);
        mul(a: __m256, b: __m256) -> __m256 = _mm256_mul_ps(a, b);
        div(a: __m256, b: __m256) -> __m256 = _mm256_div_ps(a, b);
        fma(a: __m256, b: __m256, c: __m256) -> __m256 = _mm256_fmadd_ps(a, b, c);
        fnma(a: __m256, b: __m256, c: __m256) -> __m256 = _mm256_fnmadd_ps(a, b, c);
        max(a: __m256, b: __m256) -> __m256 = _mm256_max_ps(a, b);
        min(a: __m256, b: __m256) -> __m256 = _mm256_min_ps(a, b);
        sqrt(a: __m256) -> __m256 = _mm256_sqrt_ps(a);
        round(a: __m256) -> __m256 =
            _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a);
        abs(a: __m256) -> __m256 = _mm256_andnot_ps(_mm256_set1_ps(-0.0), a);
        lt(a: __m256, b: __m256) -> __m256 = _mm256_cmp_ps::<_CMP_LT_OQ>(a, b);
        le(a: __m256, b: __m256) -> __m256 = _mm256_cmp_ps::<_CMP_LE_OQ>(a, b);
        both(a: __m256, b: __m256) -> __m256 = _mm256_and_ps(a, b);
        select(m: __m256, a: __m256, b: __m256) -> __m256 = _mm256_blendv_ps(b, a, m);
        any(m: __m256) -> bool = _mm256_movemask_ps(m) != 0;
        bits(m: __m256) -> u32 = _mm256_movemask_ps(m) as u32;
    }

    #[inline(always)]
    fn scale2(self, a: __m256, n: __m256) -> __m256 {
        // SAFETY: the token exists only where the CPU has the instructions.
        unsafe {
            let biased = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
            _mm256_mul_ps(a, _mm256_castsi256_ps(_mm256_slli_epi32::<23>(biased)))
        }
    }

    #[inline(always)]
    fn recip(self, a: __m256) -> __m256 {
        // The approximation has 12 bits; one Newton step gives 23. Where it is 0 (an infinite
        // argument) the step would make NaN, so it is left as it is.
        // SAFETY: the token exists only where the CPU has the instructions.
        unsafe {
            let r = _mm256_rcp_ps(a);
            let zero = _mm256_cmp_ps::<_CMP_EQ_OQ>(r, _mm256_setzero_ps());
            let e = _mm256_fnmadd_ps(a, r, _mm256_set1_ps(1.0));
            _mm256_blendv_ps(_mm256_fmadd_ps(r, e, r), r, zero)
        }
    }

    #[inline(always)]
    fn sum(self, a: __m256) -> f32 {
        // SAFETY: the token exists only where the CPU has the instructions.
        unsafe {
            let s = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let s = _mm_add_ps(s, _mm_movehl_ps(s, s));
            _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps::<1>(s, s)))
        }
    }

    #[inline(always)]
    fn largest(self, a: __m256) -> f32 {
        // SAFETY: the token exists only where the CPU has the instructions.
        unsafe {
            let s = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let s = _mm_max_ps(s, _mm_movehl_ps(s, s));
            _mm_cvtss_f32(_mm_max_ss(s, _mm_shuffle_ps::<1>(s, s)))
        }
    }

    #[inline(always)]
    fn transpose(self, r: &mut [__m256]) {
        // SAFETY: the token exists only where the CPU has the instructions.
        unsafe {
            let mut t = [_mm256_setzero_ps(); 8];
            for i in 0..4 {
                t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
                t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
            }
            for half in 0..2 {
                let (a, b) = (4 * half, 4 * half + 2);
                r[a] = _mm256_shuffle_ps::<0x44>(t[a], t[b]);
                r[a + 1] = _mm256_shuffle_ps::<0xEE>(t[a], t[b]);
                r[a + 2] = _mm256_shuffle_ps::<0x44>(t[a + 1], t[b + 1]);
                r[a + 3] = _mm256_shuffle_ps::<0xEE>(t[a + 1], t[b + 1]);
            }
            for i in 0..4 {
                let (a, b) = (r[i], r[i + 4]);
                r[i] = _mm256_permute2f128_ps::<0x20>(a, b);
                r[i + 4] = _mm256_permute2f128_ps::<0x31>(a, b);
            }
        }
    }

    #[inline(always)]
    unsafe fn load(self, p: *const f32) -> __m256 {
        // SAFETY: the caller vouches for the memory, the token for the instruction.
        unsafe { _mm256_loadu_ps(p) }
    }
    #[inline(always)]
    unsafe fn load_f16(self, p: *const F16) -> __m256 {
        // SAFETY: the caller vouches for the memory, the token for the instruction.
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(p.cast())) }
    }
    #[inline(always)]
    unsafe fn load_bf16(self, p: *const Bf16) -> __m256 {
        // SAFETY: the caller vouches for the memory, the token for the instructions.
        unsafe {
            let wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(p.cast()));
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(wide))
        }
    }
    #[inline(always)]
    unsafe fn load_i8(self, p: *const i8) -> __m256 {
        // SAFETY: the caller vouches for the memory, the token for the instructions.
        unsafe { _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(p.cast()))) }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32, a: __m256) {
        // SAFETY: the caller vouches for the memory, the token for the instruction.
        unsafe { _mm256_storeu_ps(p, a) }
    }
}
