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
    let quads = x.shape()[1].div_ceil(4);
    let starts = rows.map(|row| x.start(row).cast::<i32>());
    let mut sums = rows.map(|row| [s.splat(-S::OFFSET * x.sum(row)); V]);
    for quad in 0..quads {
        // SAFETY: a panel has a line, and a row four bytes, for each quad of inputs.
        let w = weights.map(|p| s.weights(unsafe { s.load(p.add(quad * 64)) }));
        for r in 0..R {
            // SAFETY: as above.
            let x = s.splat(unsafe { starts[r].add(quad).read_unaligned() });
            for v in 0..V {
                sums[r][v] = s.dot(sums[r][v], w[v], x);
            }
        }
    }
    sums.map(|row| row.map(|sum| s.to_floats(sum)))
}
