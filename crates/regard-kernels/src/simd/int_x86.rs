//! Integer dot products of x86: AVX2, AVX-VNNI, AVX-512 with and without VNNI.
//!
//! Where VNNI is missing, `vpmaddubsw` adds pairs of products in 16 bits, which must not saturate:
//! `|w|·(±x)` is at most 128 · 127, two of them 32,512.

use super::super::avx2::Avx2;
use super::super::avx512::Avx512;
use super::{IntKernel, IntSimd};
use std::arch::x86_64::*;

/// Token of 256-bit integers; `VNNI`: with the instruction of AVX-VNNI.
#[derive(Clone, Copy)]
pub struct Int256<const VNNI: bool>(Avx2);

/// Token of 512-bit integers; `VNNI`, `BF16`: with the instructions of AVX-512 VNNI and BF16.
#[derive(Clone, Copy)]
pub struct Int512<const VNNI: bool, const BF16: bool>(Avx512);

/// # Safety
/// The CPU must have AVX2, FMA and F16C.
#[target_feature(enable = "avx2,fma,f16c")]
pub unsafe fn enter_avx2<K: IntKernel>(kernel: K) -> K::Out {
    // SAFETY: the caller vouches for the CPU.
    kernel.run(Int256::<false>(unsafe { Avx2::token() }))
}

/// # Safety
/// The CPU must have AVX2, FMA, F16C and AVX-VNNI.
#[target_feature(enable = "avx2,fma,f16c,avxvnni")]
pub unsafe fn enter_avx_vnni<K: IntKernel>(kernel: K) -> K::Out {
    // SAFETY: the caller vouches for the CPU.
    kernel.run(Int256::<true>(unsafe { Avx2::token() }))
}

/// # Safety
/// The CPU must have AVX-512 F, VL, BW and DQ.
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512vl,avx512bw,avx512dq")]
pub unsafe fn enter_avx512<K: IntKernel>(kernel: K) -> K::Out {
    // SAFETY: the caller vouches for the CPU.
    kernel.run(Int512::<false, false>(unsafe { Avx512::token() }))
}

/// # Safety
/// The CPU must have AVX-512 F, VL, BW, DQ and VNNI.
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512vl,avx512bw,avx512dq,avx512vnni")]
pub unsafe fn enter_avx512_vnni<K: IntKernel>(kernel: K) -> K::Out {
    // SAFETY: the caller vouches for the CPU.
    kernel.run(Int512::<true, false>(unsafe { Avx512::token() }))
}

/// # Safety
/// The CPU must have AVX-512 F, VL, BW, DQ, VNNI and BF16.
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512vl,avx512bw,avx512dq,avx512vnni,avx512bf16")]
pub unsafe fn enter_avx512_bf16<K: IntKernel>(kernel: K) -> K::Out {
    // SAFETY: the caller vouches for the CPU.
    kernel.run(Int512::<true, true>(unsafe { Avx512::token() }))
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

impl<const VNNI: bool> IntSimd for Int256<VNNI> {
    type F = Avx2;
    type I = __m256i;
    /// The stored bytes for VNNI; otherwise `|w|` and `w`.
    type W = (__m256i, __m256i);
    /// First and second of each pair.
    type P = (__m256, __m256);
    const OFFSET: i32 = if VNNI { 128 } else { 0 };
    const VECTORS: usize = 2;
    const ROWS: usize = 4;

    methods! {
        splat(x: i32) -> __m256i = _mm256_set1_epi32(x);
        add(a: __m256i, b: __m256i) -> __m256i = _mm256_add_epi32(a, b);
        to_floats(a: __m256i) -> __m256 = _mm256_cvtepi32_ps(a);
        low_nibbles(a: __m256i) -> __m256i = _mm256_and_si256(a, _mm256_set1_epi8(15));
        high_nibbles(a: __m256i) -> __m256i =
            _mm256_and_si256(_mm256_srli_epi16::<4>(a), _mm256_set1_epi8(15));
        pairs(a: __m256i) -> (__m256, __m256) = (
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(a)),
            _mm256_castsi256_ps(_mm256_and_si256(a, _mm256_set1_epi32(-65_536))),
        );
        dot_pairs(sum: __m256, w: (__m256, __m256), x: (__m256, __m256)) -> __m256 =
            _mm256_fmadd_ps(w.0, x.0, _mm256_fmadd_ps(w.1, x.1, sum));
    }

    #[inline(always)]
    fn floats(self) -> Avx2 {
        self.0
    }
    #[inline(always)]
    unsafe fn load(self, p: *const u8) -> __m256i {
        // SAFETY: the caller vouches for the memory, the token for the instruction.
        unsafe { _mm256_loadu_si256(p.cast()) }
    }
    #[inline(always)]
    fn weights(self, stored: __m256i) -> (__m256i, __m256i) {
        if VNNI {
            return (stored, stored);
        }
        // SAFETY: the token exists only where the CPU has the instructions.
        unsafe {
            let signed = _mm256_xor_si256(stored, _mm256_set1_epi8(-128));
            (_mm256_abs_epi8(signed), signed)
        }
    }
    #[inline(always)]
    fn dot(self, sum: __m256i, (w, signed): (__m256i, __m256i), x: __m256i) -> __m256i {
        // SAFETY: the token exists only where the CPU has the instructions.
        unsafe {
            if VNNI {
                return _mm256_dpbusd_avx_epi32(sum, w, x);
            }
            let pairs = _mm256_maddubs_epi16(w, _mm256_sign_epi8(x, signed));
            _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
        }
    }
    #[inline(always)]
    fn dot_small(self, sum: __m256i, w: __m256i, x: __m256i) -> __m256i {
        // SAFETY: the token exists only where the CPU has the instructions.
        unsafe {
            if VNNI {
                return _mm256_dpbusd_avx_epi32(sum, w, x);
            }
            let pairs = _mm256_maddubs_epi16(w, x);
            _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
        }
    }
}

impl<const VNNI: bool, const BF16: bool> IntSimd for Int512<VNNI, BF16> {
    type F = Avx512;
    type I = __m512i;
    /// The stored bytes for VNNI; otherwise `|w|`, and where `w` is negative.
    type W = (__m512i, __mmask64);
    /// The stored pairs for BF16; otherwise first and second of each pair.
    type P = (__m512, __m512);
    const OFFSET: i32 = if VNNI { 128 } else { 0 };
    const VECTORS: usize = 2;
    const ROWS: usize = 8;

    methods! {
        splat(x: i32) -> __m512i = _mm512_set1_epi32(x);
        add(a: __m512i, b: __m512i) -> __m512i = _mm512_add_epi32(a, b);
        to_floats(a: __m512i) -> __m512 = _mm512_cvtepi32_ps(a);
        low_nibbles(a: __m512i) -> __m512i = _mm512_and_si512(a, _mm512_set1_epi8(15));
        high_nibbles(a: __m512i) -> __m512i =
            _mm512_and_si512(_mm512_srli_epi16::<4>(a), _mm512_set1_epi8(15));
    }

    #[inline(always)]
    fn floats(self) -> Avx512 {
        self.0
    }
    #[inline(always)]
    unsafe fn load(self, p: *const u8) -> __m512i {
        // SAFETY: the caller vouches for the memory, the token for the instruction.
        unsafe { _mm512_loadu_si512(p.cast()) }
    }
    #[inline(always)]
    fn weights(self, stored: __m512i) -> (__m512i, __mmask64) {
        if VNNI {
            return (stored, 0);
        }
        // SAFETY: the token exists only where the CPU has the instructions.
        unsafe {
            let signed = _mm512_xor_si512(stored, _mm512_set1_epi8(-128));
            (_mm512_abs_epi8(signed), _mm512_movepi8_mask(signed))
        }
    }
    #[inline(always)]
    fn dot(self, sum: __m512i, (w, negative): (__m512i, __mmask64), x: __m512i) -> __m512i {
        // SAFETY: the token exists only where the CPU has the instructions.
        unsafe {
            if VNNI {
                return _mm512_dpbusd_epi32(sum, w, x);
            }
            let x = _mm512_mask_sub_epi8(x, negative, _mm512_setzero_si512(), x);
            let pairs = _mm512_maddubs_epi16(w, x);
            _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)))
        }
    }
    #[inline(always)]
    fn dot_small(self, sum: __m512i, w: __m512i, x: __m512i) -> __m512i {
        // SAFETY: the token exists only where the CPU has the instructions.
        unsafe {
            if VNNI {
                return _mm512_dpbusd_epi32(sum, w, x);
            }
            let pairs = _mm512_maddubs_epi16(w, x);
            _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)))
        }
    }
    #[inline(always)]
    fn pairs(self, a: __m512i) -> (__m512, __m512) {
        // SAFETY: the token exists only where the CPU has the instructions.
        unsafe {
            if BF16 {
                return (_mm512_castsi512_ps(a), _mm512_setzero_ps());
            }
            let upper = _mm512_and_si512(a, _mm512_set1_epi32(-65_536));
            (_mm512_castsi512_ps(_mm512_slli_epi32::<16>(a)), _mm512_castsi512_ps(upper))
        }
    }
    #[inline(always)]
    fn dot_pairs(self, sum: __m512, w: (__m512, __m512), x: (__m512, __m512)) -> __m512 {
        // SAFETY: the token exists only where the CPU has the instructions; both types are 64
        // bytes, of which any pattern is valid.
        unsafe {
            if BF16 {
                let w = std::mem::transmute::<__m512, __m512bh>(w.0);
                return _mm512_dpbf16_ps(sum, w, std::mem::transmute::<__m512, __m512bh>(x.0));
            }
            _mm512_fmadd_ps(w.0, x.0, _mm512_fmadd_ps(w.1, x.1, sum))
        }
    }
}
