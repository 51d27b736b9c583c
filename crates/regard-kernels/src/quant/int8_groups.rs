//! Weights of 8 bits in groups: `ŵ = round(w / s)`, with a half-precision `s` for each 32 inputs.
//!
//! Values of files may be −128 too, which every instruction set multiplies without saturating: the
//! largest pair of products is 2 · 128 · 127 = 32,512.

use super::activations::Activations;
use super::{GROUP, PANEL};
use crate::simd::{IntSimd, Simd, fetch};
use crate::storage::F16;

/// Bytes of a group of a panel.
const BYTES: usize = GROUP * PANEL;

/// Quantises a group of up to 32 weights of at most 127 · 65,504.
pub(super) fn quantize(floats: &[f32]) -> ([i8; GROUP], F16) {
    let most = floats.iter().fold(0f32, |most, x| most.max(x.abs()));
    let mut scale = F16::from_single(most / 127.0);
    // A small scale has few digits: rounded down, it would cut off the largest weights.
    if scale.single() * 127.5 < most {
        scale = F16(scale.0 + 1);
    }
    let (s, mut values) = (scale.single(), [0; GROUP]);
    if s > 0.0 {
        for (value, x) in values.iter_mut().zip(floats) {
            *value = (x / s).round_ties_even().clamp(-127.0, 127.0) as i8;
        }
    }
    (values, scale)
}

/// Sums of `R` rows of activations with `V` vectors of outputs. Groups are added in order.
///
/// # Safety
/// The rows must exist, `weights` must be the starts of panels with as many inputs, at their
/// vectors, and `scales` those of their scales.
#[inline(always)]
pub(super) unsafe fn sums<S: IntSimd, const R: usize, const V: usize>(
    s: S,
    x: &Activations,
    rows: [usize; R],
    weights: [*const u8; V],
    scales: [*const F16; V],
) -> [[<S::F as Simd>::V; V]; R] {
    // With few rows the next panels are fetched meanwhile, and loops stand instead of `array::map`,
    // both as for 4 bits.
    let (f, groups) = (s.floats(), x.shape()[1].div_ceil(GROUP));
    let next = V * <S::F as Simd>::LANES / PANEL * groups * BYTES;
    let mut starts = [std::ptr::null::<i32>(); R];
    let mut group_sums = [std::ptr::null::<i32>(); R];
    for r in 0..R {
        starts[r] = x.start(rows[r]).cast();
        group_sums[r] = x.sums(rows[r]);
    }
    let mut totals = [[f.splat(0.0); V]; R];
    for group in 0..groups {
        // SAFETY: panels have eight lines, rows 32 bytes and a sum for each group.
        unsafe {
            let mut sums = [[s.splat(0); V]; R];
            for r in 0..R {
                sums[r] = [s.splat(-S::OFFSET * *group_sums[r].add(group)); V];
            }
            for line in 0..GROUP / 4 {
                let at = group * BYTES + line * 64;
                let mut w = [s.weights(s.load(weights[0].wrapping_add(at))); V];
                for v in 0..V {
                    let place = weights[v].wrapping_add(at);
                    if R <= 2 {
                        fetch(place.wrapping_add(next));
                    }
                    if v > 0 {
                        w[v] = s.weights(s.load(place));
                    }
                }
                for r in 0..R {
                    let x = s.splat(starts[r].add(group * 8 + line).read_unaligned());
                    for v in 0..V {
                        sums[r][v] = s.dot(sums[r][v], w[v], x);
                    }
                }
            }
            for v in 0..V {
                let scale = f.load_f16(scales[v].add(group * PANEL));
                for r in 0..R {
                    let sum = f.mul(s.to_floats(sums[r][v]), scale);
                    totals[r][v] = f.add(totals[r][v], sum);
                }
            }
        }
    }
    totals
}
