//! Weights of 8 bits: `ŵ = round(w / s)`, `s = max |w| / 127` of each output.

use super::activations::Activations;
use crate::simd::{IntSimd, Simd};

/// Quantises a row.
pub(super) fn quantize(floats: &[f32]) -> (Vec<i8>, f32) {
    let most = floats.iter().fold(0f32, |most, x| most.max(x.abs()));
    let scale = most / 127.0;
    let factor = if scale > 0.0 { 1.0 / f64::from(scale) } else { 0.0 };
    let one = |x: &f32| (f64::from(*x) * factor).round_ties_even().clamp(-127.0, 127.0) as i8;
    (floats.iter().map(one).collect(), scale)
}

/// Sums of `R` rows of activations with `V` vectors of outputs.
///
/// # Safety
/// The rows must exist, and `weights` must be the starts of panels with as many inputs, at their
/// vectors.
#[inline(always)]
pub(super) unsafe fn sums<S: IntSimd, const R: usize, const V: usize>(
    s: S,
    x: &Activations,
    rows: [usize; R],
    weights: [*const u8; V],
) -> [[<S::F as Simd>::V; V]; R] {
    // Loops instead of `array::map`: that is a call of its own, compiled without the instruction
    // set of the kernel, so that vectors would pass through memory.
    let quads = x.shape()[1].div_ceil(4);
    let mut starts = [std::ptr::null::<i32>(); R];
    let mut sums = [[s.splat(0); V]; R];
    for r in 0..R {
        starts[r] = x.start(rows[r]).cast();
        sums[r] = [s.splat(-S::OFFSET * x.sum(rows[r])); V];
    }
    for quad in 0..quads {
        // SAFETY: a panel has a line, and a row four bytes, for each quad of inputs.
        unsafe {
            let mut w = [s.weights(s.load(weights[0].add(quad * 64))); V];
            for v in 1..V {
                w[v] = s.weights(s.load(weights[v].add(quad * 64)));
            }
            for r in 0..R {
                let x = s.splat(starts[r].add(quad).read_unaligned());
                for v in 0..V {
                    sums[r][v] = s.dot(sums[r][v], w[v], x);
                }
            }
        }
    }
    let mut floats = [[s.floats().splat(0.0); V]; R];
    for r in 0..R {
        for v in 0..V {
            floats[r][v] = s.to_floats(sums[r][v]);
        }
    }
    floats
}
