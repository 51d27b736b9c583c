//! `bfloat16`, the upper half of single precision: a sign, 8 bits of exponent, 7 of fraction.

use super::{Element, Plain};
use crate::simd::Simd;

/// `bfloat16` value, as its bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Bf16(pub u16);

// SAFETY: every pattern of bits is a number, and there is no padding.
unsafe impl Plain for Bf16 {}

impl Bf16 {
    /// Converts to single precision, exactly.
    #[inline(always)]
    pub fn single(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }
}

impl Element for Bf16 {
    fn single(self) -> f32 {
        Bf16::single(self)
    }
    #[inline(always)]
    unsafe fn load<S: Simd>(s: S, p: *const Bf16) -> S::V {
        // SAFETY: the caller's promise is this.
        unsafe { s.load_bf16(p) }
    }
}
