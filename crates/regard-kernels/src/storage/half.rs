//! Half precision: a sign, 5 bits of exponent, 10 of fraction (IEEE 754 `binary16`).

use super::{Element, Plain};
use crate::simd::Simd;

/// Half-precision value, as its bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct F16(pub u16);

// SAFETY: every pattern of bits is a number, and there is no padding.
unsafe impl Plain for F16 {}

impl F16 {
    /// Converts to single precision, exactly.
    #[inline(always)]
    pub fn single(self) -> f32 {
        let bits = u32::from(self.0);
        let (sign, exponent, fraction) = ((bits & 0x8000) << 16, bits >> 10 & 0x1f, bits & 0x3ff);
        let size = match exponent {
            // fraction · 2⁻²⁴
            0 => (fraction as f32 * (1.0 / 16_777_216.0)).to_bits(),
            0x1f if fraction == 0 => 0x7f80_0000,
            // A NaN becomes quiet, as in CPU conversions.
            0x1f => 0x7fc0_0000 | fraction << 13,
            _ => ((exponent + (127 - 15)) << 23) | (fraction << 13),
        };
        f32::from_bits(sign | size)
    }
}

impl Element for F16 {
    #[inline(always)]
    unsafe fn load<S: Simd>(s: S, p: *const F16) -> S::V {
        // SAFETY: the caller's promise is this.
        unsafe { s.load_f16(p) }
    }
}
