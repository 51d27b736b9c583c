//! Weights of 16 bits, `bfloat16`, for products with activations of 16 bits.
//!
//! Both operands have 8 significant bits, so that each product is exact in single precision, and
//! only the sums are rounded: `((0 + x₁·w₁) + x₀·w₀ + x₃·w₃) + x₂·w₂ …`, the upper input of each
//! pair first, as `vdpbf16ps` has it. Every instruction set gives these bits. Values below 2⁻¹²⁶
//! are taken for zeros when they are stored, because that instruction takes them so; sums below
//! that are zero there and may be smaller numbers elsewhere.

use super::PANEL;
use super::activations::Activations;
use crate::simd::{IntSimd, Simd, fetch};
use crate::storage::Bf16;

/// The largest number that is not rounded to infinity, in steps of `bfloat16`.
pub(super) const LARGEST: f32 = f32::from_bits(0x7f7f_0000);

/// Rounds to the nearest value, ties to even.
#[inline(always)]
pub(super) fn round(x: f32) -> Bf16 {
    let bits = x.to_bits();
    let (size, sign) = (bits & 0x7fff_ffff, (bits >> 16 & 0x8000) as u16);
    let near = ((bits.wrapping_add(0x7fff + (bits >> 16 & 1))) >> 16) as u16;
    // A NaN stays one; the smallest numbers become zeros.
    let near = if size > 0x7f80_0000 { sign | 0x7fc0 } else { near };
    Bf16(if near & 0x7f80 == 0 { sign } else { near })
}

/// Sums of `R` rows of activations with `V` vectors of outputs.
///
/// # Safety
/// The rows must exist and hold `bfloat16`, and `weights` must be the starts of panels with as many
/// inputs, at their vectors.
#[inline(always)]
pub(super) unsafe fn sums<S: IntSimd, const R: usize, const V: usize>(
    s: S,
    x: &Activations,
    rows: [usize; R],
    weights: [*const u8; V],
) -> [[<S::F as Simd>::V; V]; R] {
    // With few rows the next panels are fetched meanwhile, and loops stand instead of `array::map`,
    // both as for 4 bits.
    let (f, pairs) = (s.floats(), x.shape()[1].div_ceil(2));
    let next = V * <S::F as Simd>::LANES / PANEL * pairs * 64;
    let mut starts = [std::ptr::null::<i32>(); R];
    for r in 0..R {
        starts[r] = x.start(rows[r]).cast();
    }
    let mut sums = [[f.splat(0.0); V]; R];
    for pair in 0..pairs {
        // SAFETY: a panel has a line, and a row four bytes, for each pair of inputs.
        unsafe {
            let mut w = [s.pairs(s.load(weights[0].wrapping_add(pair * 64))); V];
            for v in 0..V {
                let place = weights[v].wrapping_add(pair * 64);
                if R <= 2 {
                    fetch(place.wrapping_add(next));
                }
                if v > 0 {
                    w[v] = s.pairs(s.load(place));
                }
            }
            for r in 0..R {
                let x = s.pairs(s.splat(starts[r].add(pair).read_unaligned()));
                for v in 0..V {
                    sums[r][v] = s.dot_pairs(sums[r][v], w[v], x);
                }
            }
        }
    }
    sums
}
