//! Four lanes: AArch64's Advanced SIMD, which every such CPU has.
//!
//! The register tile is 8 × 2 vectors: 16 accumulators, 2 of the row, 1 broadcast, of 32.

use super::{Kernel, Simd};
use crate::storage::{Bf16, F16};
use std::arch::aarch64::*;

/// Token of NEON, created only where the CPU has the instructions.
#[derive(Clone, Copy)]
pub struct Neon(());

impl Neon {
    /// Creates the token.
    ///
    /// # Safety
    /// The CPU must have Advanced SIMD.
    #[inline(always)]
    pub(super) unsafe fn token() -> Neon {
        Neon(())
    }
}

/// Runs a kernel with NEON.
///
/// # Safety
/// The CPU must have Advanced SIMD.
#[target_feature(enable = "neon")]
pub unsafe fn enter<K: Kernel>(kernel: K) -> K::Out {
    kernel.run(Neon(()))
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

impl Simd for Neon {
    type V = float32x4_t;
    type M = uint32x4_t;
    const LANES: usize = 4;
    const ROWS: usize = 8;
    const COLS: usize = 2;

    methods! {
        splat(x: f32) -> float32x4_t = vdupq_n_f32(x);
        add(a: float32x4_t, b: float32x4_t) -> float32x4_t = vaddq_f32(a, b);
        sub(a: float32x4_t, b: float32x4_t) -> float32x4_t = vsubq_f32(a, b);
        mul(a: float32x4_t, b: float32x4_t) -> float32x4_t = vmulq_f32(a, b);
        div(a: float32x4_t, b: float32x4_t) -> float32x4_t = vdivq_f32(a, b);
        fma(a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t = vfmaq_f32(c, a, b);
        fnma(a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t = vfmsq_f32(c, a, b);
        // NEON's own max and min return NaN when either is; ours return the second operand.
        max(a: float32x4_t, b: float32x4_t) -> float32x4_t = vbslq_f32(vcgtq_f32(a, b), a, b);
        min(a: float32x4_t, b: float32x4_t) -> float32x4_t = vbslq_f32(vcltq_f32(a, b), a, b);
        sqrt(a: float32x4_t) -> float32x4_t = vsqrtq_f32(a);
        round(a: float32x4_t) -> float32x4_t = vrndnq_f32(a);
        recip(a: float32x4_t) -> float32x4_t = vdivq_f32(vdupq_n_f32(1.0), a);
        abs(a: float32x4_t) -> float32x4_t = vabsq_f32(a);
        lt(a: float32x4_t, b: float32x4_t) -> uint32x4_t = vcltq_f32(a, b);
        le(a: float32x4_t, b: float32x4_t) -> uint32x4_t = vcleq_f32(a, b);
        both(a: uint32x4_t, b: uint32x4_t) -> uint32x4_t = vandq_u32(a, b);
        select(m: uint32x4_t, a: float32x4_t, b: float32x4_t) -> float32x4_t = vbslq_f32(m, a, b);
        any(m: uint32x4_t) -> bool = vmaxvq_u32(m) != 0;
        sum(a: float32x4_t) -> f32 = vaddvq_f32(a);
        largest(a: float32x4_t) -> f32 = vmaxvq_f32(a);
    }

    #[inline(always)]
    fn scale2(self, a: float32x4_t, n: float32x4_t) -> float32x4_t {
        // SAFETY: the token exists only where the CPU has the instructions.
        unsafe {
            let biased = vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127));
            vmulq_f32(a, vreinterpretq_f32_s32(vshlq_n_s32::<23>(biased)))
        }
    }

    #[inline(always)]
    fn transpose(self, r: &mut [float32x4_t]) {
        // SAFETY: the token exists only where the CPU has the instructions.
        unsafe {
            let (a, b) = (vtrn1q_f32(r[0], r[1]), vtrn2q_f32(r[0], r[1]));
            let (c, d) = (vtrn1q_f32(r[2], r[3]), vtrn2q_f32(r[2], r[3]));
            let pair = |x| vreinterpretq_f64_f32(x);
            r[0] = vreinterpretq_f32_f64(vtrn1q_f64(pair(a), pair(c)));
            r[1] = vreinterpretq_f32_f64(vtrn1q_f64(pair(b), pair(d)));
            r[2] = vreinterpretq_f32_f64(vtrn2q_f64(pair(a), pair(c)));
            r[3] = vreinterpretq_f32_f64(vtrn2q_f64(pair(b), pair(d)));
        }
    }

    #[inline(always)]
    unsafe fn load(self, p: *const f32) -> float32x4_t {
        // SAFETY: the caller vouches for the memory, the token for the instruction.
        unsafe { vld1q_f32(p) }
    }
    #[inline(always)]
    unsafe fn load_f16(self, p: *const F16) -> float32x4_t {
        // SAFETY: the caller vouches for the memory, the token for the instruction.
        unsafe { vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p.cast()))) }
    }
    #[inline(always)]
    unsafe fn load_bf16(self, p: *const Bf16) -> float32x4_t {
        // SAFETY: the caller vouches for the memory, the token for the instructions.
        unsafe { vreinterpretq_f32_u32(vshll_n_u16::<16>(vld1_u16(p.cast()))) }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32, a: float32x4_t) {
        // SAFETY: the caller vouches for the memory, the token for the instruction.
        unsafe { vst1q_f32(p, a) }
    }
}
