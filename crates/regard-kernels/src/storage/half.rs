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

    /// Converts from single precision, to the nearest value, ties to even; too large ones to
    /// infinity.
    pub fn from_single(x: f32) -> F16 {
        let bits = x.to_bits();
        let (sign, size) = ((bits >> 16 & 0x8000) as u16, bits & 0x7fff_ffff);
        let half = if size > 0x7f80_0000 {
            0x7e00
        } else if size >= 0x4780_0000 {
            // 2¹⁶ and more.
            0x7c00
        } else if size >= 0x3880_0000 {
            // Normal: the exponent is rebased, and rounding may carry into it.
            let rest = size - 0x3800_0000;
            ((rest + 0x0fff + (rest >> 13 & 1)) >> 13) as u16
        } else {
            // Subnormal: adding 2⁻¹ leaves multiples of 2⁻²⁴ in the lowest bits of the fraction.
            ((f32::from_bits(size) + 0.5).to_bits() - 0x3f00_0000) as u16
        };
        F16(sign | half)
    }
}

impl Element for F16 {
    fn single(self) -> f32 {
        F16::single(self)
    }
    #[inline(always)]
    unsafe fn load<S: Simd>(s: S, p: *const F16) -> S::V {
        // SAFETY: the caller's promise is this.
        unsafe { s.load_f16(p) }
    }
}
