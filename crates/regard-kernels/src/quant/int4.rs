//! Weights of 4 bits: `ŵ = round(w / s)` in −8..=7, with a half-precision `s` for each 32 inputs.

use super::GROUP;
use super::activations::Activations;
use crate::simd::{IntSimd, Simd, fetch};
use crate::storage::F16;

/// Quantises a group of up to 32 weights: bytes of weights `i` and `i + 16`, each plus 8.
///
/// The largest weight becomes −8 or 7; of several scales around that one, the one with the smallest
/// squared error is taken.
pub(super) fn quantize(floats: &[f32]) -> ([u8; GROUP / 2], F16) {
    let largest = floats.iter().fold(0f32, |most, x| if x.abs() > most.abs() { *x } else { most });
    let round = |x: f32, scale: f32| (x / scale).round_ties_even().clamp(-8.0, 7.0);
    let mut best = (f32::INFINITY, F16::default());
    if largest != 0.0 {
        for steps in -8..=4 {
            let scale = F16::from_single(largest / (-8.0 + steps as f32 * 0.125));
            let s = scale.single();
            if s == 0.0 || !s.is_finite() {
                continue;
            }
            let error: f32 = floats.iter().map(|x| (x - round(*x, s) * s).powi(2)).sum();
            if error < best.0 {
                best = (error, scale);
            }
        }
    }
    let scale = best.1;
    let mut bytes = [0x88; GROUP / 2];
    if scale.single() != 0.0 {
        for (i, x) in floats.iter().enumerate() {
            let value = (round(*x, scale.single()) + 8.0) as u8;
            let byte = &mut bytes[i % 16];
            *byte = if i < 16 { *byte & 0xf0 | value } else { *byte & 0x0f | value << 4 };
        }
    }
    (bytes, scale)
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
    // With few rows, reading the weights takes longest: the next panels are fetched meanwhile.
    // The products of a token of GPT-2 124M on 2 cores of an AMD Zen 5: 70 GB/s instead of 51, of 71
    // that a plain read has.
    let (f, groups) = (s.floats(), x.shape()[1].div_ceil(GROUP));
    let next = V * <S::F as Simd>::LANES / super::PANEL * groups * 256;
    // Loops instead of `array::map`, as for 8 bits.
    let mut starts = [std::ptr::null::<i32>(); R];
    let mut group_sums = [std::ptr::null::<i32>(); R];
    for r in 0..R {
        starts[r] = x.start(rows[r]).cast();
        group_sums[r] = x.sums(rows[r]);
    }
    let mut totals = [[f.splat(0.0); V]; R];
    for group in 0..groups {
        // SAFETY: panels have four lines, rows 32 bytes and a sum for each group.
        unsafe {
            // With few rows the upper inputs have sums of their own, so that an addition need not
            // wait for the one before it; with many, registers would not suffice.
            let apart = R <= 2;
            let (mut sums, mut upper) = ([[s.splat(0); V]; R], [[s.splat(0); V]; R]);
            for r in 0..R {
                sums[r] = [s.splat(-8 * *group_sums[r].add(group)); V];
            }
            for line in 0..4 {
                let (mut low, mut high) = ([s.splat(0); V], [s.splat(0); V]);
                for v in 0..V {
                    let place = weights[v].wrapping_add((group * 4 + line) * 64);
                    if R <= 2 {
                        fetch(place.wrapping_add(next));
                    }
                    let w = s.load(place);
                    low[v] = s.low_nibbles(w);
                    high[v] = s.high_nibbles(w);
                }
                for r in 0..R {
                    let x = starts[r].add(group * 8 + line);
                    let (near, far) =
                        (s.splat(x.read_unaligned()), s.splat(x.add(4).read_unaligned()));
                    for v in 0..V {
                        sums[r][v] = s.dot_small(sums[r][v], low[v], near);
                        let to = if apart { &mut upper } else { &mut sums };
                        to[r][v] = s.dot_small(to[r][v], high[v], far);
                    }
                }
            }
            for v in 0..V {
                let scale = f.load_f16(scales[v].add(group * super::PANEL));
                for r in 0..R {
                    let whole = if apart { s.add(sums[r][v], upper[r][v]) } else { sums[r][v] };
                    let sum = f.mul(s.to_floats(whole), scale);
                    totals[r][v] = f.add(totals[r][v], sum);
                }
            }
        }
    }
    totals
}
