//! Integer dot products of AArch64 with `dotprod`.

use super::super::neon::Neon;
use super::{IntKernel, IntSimd};
use std::arch::aarch64::*;
use std::arch::asm;

/// Token of NEON with `dotprod`.
#[derive(Clone, Copy)]
pub struct NeonDot(Neon);

/// # Safety
/// The CPU must have NEON and `dotprod`.
#[target_feature(enable = "neon,dotprod")]
pub unsafe fn enter<K: IntKernel>(kernel: K) -> K::Out {
    // SAFETY: the caller vouches for the CPU.
    kernel.run(NeonDot(unsafe { Neon::token() }))
}

/// `sum + Σ₄ w·x` of signed bytes. The intrinsic `vdotq_s32` is not stable.
#[inline(always)]
fn sdot(mut sum: int32x4_t, w: int32x4_t, x: int32x4_t) -> int32x4_t {
    // SAFETY: the token exists only where the CPU has the instruction.
    unsafe {
        asm!(
            "sdot {sum:v}.4s, {w:v}.16b, {x:v}.16b",
            sum = inout(vreg) sum, w = in(vreg) w, x = in(vreg) x,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sum
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

impl IntSimd for NeonDot {
    type F = Neon;
    type I = int32x4_t;
    /// Signed weights.
    type W = int32x4_t;
    /// First and second of each pair. `bfdot` rounds otherwise.
    type P = [float32x4_t; 2];
    const OFFSET: i32 = 0;
    const VECTORS: usize = 4;
    const ROWS: usize = 4;

    methods! {
        splat(x: i32) -> int32x4_t = vdupq_n_s32(x);
        add(a: int32x4_t, b: int32x4_t) -> int32x4_t = vaddq_s32(a, b);
        to_floats(a: int32x4_t) -> float32x4_t = vcvtq_f32_s32(a);
        weights(stored: int32x4_t) -> int32x4_t =
            veorq_s32(stored, vreinterpretq_s32_u8(vdupq_n_u8(128)));
        low_nibbles(a: int32x4_t) -> int32x4_t =
            vandq_s32(a, vreinterpretq_s32_u8(vdupq_n_u8(15)));
        high_nibbles(a: int32x4_t) -> int32x4_t =
            vreinterpretq_s32_u8(vshrq_n_u8::<4>(vreinterpretq_u8_s32(a)));
        pairs(a: int32x4_t) -> [float32x4_t; 2] = [
            vreinterpretq_f32_s32(vshlq_n_s32::<16>(a)),
            vreinterpretq_f32_s32(vandq_s32(a, vdupq_n_s32(-65_536))),
        ];
        dot_pairs(sum: float32x4_t, w: [float32x4_t; 2], x: [float32x4_t; 2]) -> float32x4_t =
            vfmaq_f32(vfmaq_f32(sum, w[1], x[1]), w[0], x[0]);
    }

    #[inline(always)]
    fn floats(self) -> Neon {
        self.0
    }
    #[inline(always)]
    unsafe fn load(self, p: *const u8) -> int32x4_t {
        // SAFETY: the caller vouches for the memory, the token for the instruction.
        unsafe { vreinterpretq_s32_u8(vld1q_u8(p)) }
    }
    #[inline(always)]
    fn dot(self, sum: int32x4_t, w: int32x4_t, x: int32x4_t) -> int32x4_t {
        sdot(sum, w, x)
    }
    #[inline(always)]
    fn dot_small(self, sum: int32x4_t, w: int32x4_t, x: int32x4_t) -> int32x4_t {
        sdot(sum, w, x)
    }
}
