//! Sixteen lanes: AVX-512 F, VL, BW and DQ, as Skylake-X and Zen 4 have them.
//!
//! The register tile is 8 × 2 vectors: 16 accumulators, 2 of the row, 1 broadcast, of 32.
//! A row group of 8 divides every power of two, so short sequences have no ragged edge.

use super::{Kernel, Simd};
use crate::storage::{Bf16, F16};
use std::arch::x86_64::*;

/// Token of AVX-512, created only where the CPU has the instructions.
#[derive(Clone, Copy)]
pub struct Avx512(());

impl Avx512 {
    /// Creates the token.
    ///
    /// # Safety
    /// The CPU must have AVX-512 F, VL, BW and DQ.
    #[inline(always)]
    pub(super) unsafe fn token() -> Avx512 {
        Avx512(())
    }
}

/// Runs a kernel with AVX-512.
///
/// # Safety
/// The CPU must have AVX-512 F, VL, BW and DQ.
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512vl,avx512bw,avx512dq")]
pub unsafe fn enter<K: Kernel>(kernel: K) -> K::Out {
    kernel.run(Avx512(()))
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

impl Simd for Avx512 {
    type V = __m512;
    type M = __mmask16;
    const LANES: usize = 16;
    const ROWS: usize = 8;
    const COLS: usize = 2;

    methods! {
        splat(x: f32) -> __m512 = _mm512_set1_ps(x);
        add(a: __m512, b: __m512) -> __m512 = _mm512_add_ps(a, b);
        sub(a: __m512, b: __m512) -> __m512 = _mm512_sub_ps(a, b);
        mul(a: __m512, b: __m512) -> __m512 = _mm512_mul_ps(a, b);
        div(a: __m512, b: __m512) -> __m512 = _mm512_div_ps(a, b);
        fma(a: __m512, b: __m512, c: __m512) -> __m512 = _mm512_fmadd_ps(a, b, c);
        fnma(a: __m512, b: __m512, c: __m512) -> __m512 = _mm512_fnmadd_ps(a, b, c);
        max(a: __m512, b: __m512) -> __m512 = _mm512_max_ps(a, b);
        min(a: __m512, b: __m512) -> __m512 = _mm512_min_ps(a, b);
        sqrt(a: __m512) -> __m512 = _mm512_sqrt_ps(a);
        round(a: __m512) -> __m512 =
            _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a);
        scale2(a: __m512, n: __m512) -> __m512 = _mm512_scalef_ps(a, n);
        abs(a: __m512) -> __m512 = _mm512_abs_ps(a);
        lt(a: __m512, b: __m512) -> __mmask16 = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b);
        le(a: __m512, b: __m512) -> __mmask16 = _mm512_cmp_ps_mask::<_CMP_LE_OQ>(a, b);
        select(m: __mmask16, a: __m512, b: __m512) -> __m512 = _mm512_mask_blend_ps(m, b, a);
        sum(a: __m512) -> f32 = _mm512_reduce_add_ps(a);
        largest(a: __m512) -> f32 = _mm512_reduce_max_ps(a);
    }

    #[inline(always)]
    fn both(self, a: __mmask16, b: __mmask16) -> __mmask16 {
        a & b
    }
    #[inline(always)]
    fn any(self, m: __mmask16) -> bool {
        m != 0
    }
    #[inline(always)]
    fn bits(self, m: __mmask16) -> u32 {
        u32::from(m)
    }

    #[inline(always)]
    fn recip(self, a: __m512) -> __m512 {
        // The approximation has 14 bits; one Newton step gives 24. Where it is 0 (an infinite
        // argument) the step would make NaN, so it is left as it is.
        // SAFETY: the token exists only where the CPU has the instructions.
        unsafe {
            let r = _mm512_rcp14_ps(a);
            let finite = _mm512_cmp_ps_mask::<_CMP_NEQ_UQ>(r, _mm512_setzero_ps());
            let e = _mm512_fnmadd_ps(a, r, _mm512_set1_ps(1.0));
            _mm512_mask_fmadd_ps(r, finite, e, r)
        }
    }

    #[inline(always)]
    fn transpose(self, r: &mut [__m512]) {
        // SAFETY: the token exists only where the CPU has the instructions.
        unsafe {
            let mut t = [_mm512_setzero_ps(); 16];
            // Pairs of rows, then quads, within 128-bit lanes.
            for i in 0..8 {
                t[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
                t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
            }
            for q in 0..4 {
                let (a, b) = (4 * q, 4 * q + 2);
                r[a] = _mm512_shuffle_ps::<0x44>(t[a], t[b]);
                r[a + 1] = _mm512_shuffle_ps::<0xEE>(t[a], t[b]);
                r[a + 2] = _mm512_shuffle_ps::<0x44>(t[a + 1], t[b + 1]);
                r[a + 3] = _mm512_shuffle_ps::<0xEE>(t[a + 1], t[b + 1]);
            }
            // Then the 128-bit lanes themselves, as a 4 × 4 matrix.
            for i in 0..4 {
                let (a, b, c, d) = (r[i], r[i + 4], r[i + 8], r[i + 12]);
                let ab_even = _mm512_shuffle_f32x4::<0x88>(a, b);
                let ab_odd = _mm512_shuffle_f32x4::<0xDD>(a, b);
                let cd_even = _mm512_shuffle_f32x4::<0x88>(c, d);
                let cd_odd = _mm512_shuffle_f32x4::<0xDD>(c, d);
                t[i] = _mm512_shuffle_f32x4::<0x88>(ab_even, cd_even);
                t[i + 4] = _mm512_shuffle_f32x4::<0x88>(ab_odd, cd_odd);
                t[i + 8] = _mm512_shuffle_f32x4::<0xDD>(ab_even, cd_even);
                t[i + 12] = _mm512_shuffle_f32x4::<0xDD>(ab_odd, cd_odd);
            }
            r[..16].copy_from_slice(&t);
        }
    }

    #[inline(always)]
    unsafe fn load(self, p: *const f32) -> __m512 {
        // SAFETY: the caller vouches for the memory, the token for the instruction.
        unsafe { _mm512_loadu_ps(p) }
    }
    #[inline(always)]
    unsafe fn load_f16(self, p: *const F16) -> __m512 {
        // SAFETY: the caller vouches for the memory, the token for the instruction.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(p.cast())) }
    }
    #[inline(always)]
    unsafe fn load_i8(self, p: *const i8) -> __m512 {
        // SAFETY: the caller vouches for the memory, the token for the instructions.
        unsafe { _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(p.cast()))) }
    }
    #[inline(always)]
    unsafe fn load_bf16(self, p: *const Bf16) -> __m512 {
        // SAFETY: the caller vouches for the memory, the token for the instructions.
        unsafe {
            let wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(p.cast()));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(wide))
        }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32, a: __m512) {
        // SAFETY: the caller vouches for the memory, the token for the instruction.
        unsafe { _mm512_storeu_ps(p, a) }
    }
    #[inline(always)]
    unsafe fn named(self, index: *const u32) -> __mmask16 {
        // SAFETY: the caller vouches for the memory, the token for the instructions.
        unsafe { _mm512_cmpneq_epi32_mask(_mm512_loadu_si512(index.cast()), _mm512_set1_epi32(-1)) }
    }
    #[inline(always)]
    unsafe fn gather(self, p: *const f32, index: *const u32) -> __m512 {
        // SAFETY: masked lanes are not touched; the caller vouches for the others, the token for
        // the instructions.
        unsafe {
            let (named, index) = (self.named(index), _mm512_loadu_si512(index.cast()));
            _mm512_mask_i32gather_ps::<4>(_mm512_setzero_ps(), named, index, p)
        }
    }
    #[inline(always)]
    unsafe fn load_part(self, p: *const f32, n: usize) -> __m512 {
        let lanes = ((1u32 << n) - 1) as __mmask16;
        // SAFETY: masked lanes are not touched; the caller vouches for the others.
        unsafe { _mm512_maskz_loadu_ps(lanes, p) }
    }
    #[inline(always)]
    unsafe fn store_part(self, p: *mut f32, n: usize, a: __m512) {
        let lanes = ((1u32 << n) - 1) as __mmask16;
        // SAFETY: masked lanes are not touched; the caller vouches for the others.
        unsafe { _mm512_mask_storeu_ps(p, lanes, a) }
    }
}
