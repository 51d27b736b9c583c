//! Normalisers with a threshold: `p_j = max(z_j − τ, 0)^m` with Σ p = 1.
//!
//! `f(τ) = Σ max(z − τ, 0)^m − 1` is decreasing and convex, and is not negative at `max z − 1`.
//! Newton's method from there rises to the root without passing it: in a finite number of steps for
//! m = 1, quadratically for m = 2. All lanes iterate at once; nothing is sorted.

use super::{NormalizerState, Stats, Tile};
use crate::pool::checkpoint;
use crate::simd::{Kernel, Simd, dispatch};

/// Result of a cell once τ is known.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cell {
    /// The weight.
    Weight,
    /// The slope `g` of the gradient.
    Slope,
}

/// The function of a score before and after the threshold.
#[derive(Clone, Copy)]
pub(super) struct Form {
    /// Factor of the scores.
    half: f32,
    /// Whether the power `m` is 2 instead of 1.
    squared: bool,
}

pub(super) const SPARSEMAX: Form = Form { half: 1.0, squared: false };
pub(super) const ENTMAX: Form = Form { half: 0.5, squared: true };

/// Maximum number of Newton steps; in practice they converge long before.
const STEPS: usize = 60;

/// Number of keys above which a step is long enough to check for cancellation.
const LONG: usize = 1 << 14;

/// Finds τ for each lane of a strip and replaces scores by weights.
pub(super) fn solve(tile: &mut Tile, state: &mut NormalizerState, form: Form) {
    assert!(tile.data.len() >= tile.keys * tile.lanes);
    assert!(state.shift.len().min(state.sum.len()) >= tile.lanes);
    let (data, keys, lanes) = (tile.data.as_mut_ptr(), tile.keys, tile.lanes);
    let Form { half, squared } = form;
    dispatch(Solve { data, keys, lanes, state, half, squared });
}

struct Solve<'a> {
    data: *mut f32,
    keys: usize,
    lanes: usize,
    state: &'a mut NormalizerState,
    half: f32,
    squared: bool,
}

impl Kernel for Solve<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (zero, half) = (s.splat(0.0), s.splat(self.half));
        for lane in (0..self.lanes).step_by(S::LANES) {
            // SAFETY: `solve` checked that lanes and keys lie within the slices.
            unsafe {
                let column = self.data.add(lane);
                let mut largest = s.splat(f32::NEG_INFINITY);
                for j in 0..self.keys {
                    largest = s.max(s.load(column.add(j * self.lanes)), largest);
                }
                let nothing = s.le(largest, s.splat(f32::NEG_INFINITY));
                // Scores are relative to their maximum, so that τ keeps its precision.
                let top = s.select(nothing, zero, largest);
                let mut tau = s.splat(-1.0);
                for _ in 0..STEPS {
                    if self.keys > LONG {
                        checkpoint();
                    }
                    let (mut sum, mut slope) = (zero, zero);
                    for j in 0..self.keys {
                        let z = s.mul(s.sub(s.load(column.add(j * self.lanes)), top), half);
                        let above = s.max(s.sub(z, tau), zero);
                        if self.squared {
                            sum = s.fma(above, above, sum);
                            slope = s.fma(s.splat(2.0), above, slope);
                        } else {
                            sum = s.add(sum, above);
                            slope = s.add(slope, s.select(s.lt(zero, above), s.splat(1.0), zero));
                        }
                    }
                    // τ += f(τ)/−f′(τ); a lane without keys does not change.
                    let step = s.div(s.sub(sum, s.splat(1.0)), slope);
                    let step = s.select(s.lt(zero, slope), step, zero);
                    let next = s.add(tau, step);
                    if !s.any(s.lt(tau, next)) {
                        break;
                    }
                    tau = s.max(next, tau);
                }
                for j in 0..self.keys {
                    let p = column.add(j * self.lanes);
                    let z = s.mul(s.sub(s.load(p), top), half);
                    let above = weight(s, s.sub(z, tau), self.squared);
                    s.store(p, above);
                }
                // z − τ = (s − top)·half − τ = (s − (top + τ/half))·half
                s.store(self.state.shift.as_mut_ptr().add(lane), top);
                s.store(self.state.sum.as_mut_ptr().add(lane), tau);
            }
        }
    }
}

/// `max(x, 0)^m`, keeping NaN.
#[inline(always)]
fn weight<S: Simd>(s: S, x: S::V, squared: bool) -> S::V {
    let above = s.max(s.splat(0.0), x);
    if squared { s.mul(above, above) } else { above }
}

/// Replaces scores by weights or slopes, from the saved maximum (`shift`) and τ (`factor`).
pub(super) fn replay(tile: &mut Tile, stats: Stats, form: Form, cell: Cell) {
    let Form { half, squared } = form;
    for row in tile.data.chunks_exact_mut(tile.lanes).take(tile.keys) {
        for ((s, top), tau) in row.iter_mut().zip(stats.shift).zip(stats.factor) {
            let above = (*s - top) * half - tau;
            let above = if above > 0.0 || above.is_nan() { above } else { 0.0 };
            *s = match (cell, squared) {
                (Cell::Weight, true) => above * above,
                (Cell::Weight, false) | (Cell::Slope, true) => above,
                (Cell::Slope, false) => f32::from(u8::from(above > 0.0)),
            };
        }
    }
}

/// `ds = g · (dp − δ)`; the scores are replaced by weights.
pub(super) fn gradient(scores: &mut Tile, dp: &mut Tile, stats: Stats, delta: &[f32], form: Form) {
    let Form { half, squared } = form;
    for (row, ds) in dp.data.chunks_exact_mut(dp.lanes).take(dp.keys).enumerate() {
        let row = &scores.data[row * scores.lanes..][..scores.lanes];
        for (lane, ds) in ds.iter_mut().enumerate() {
            let above = (row[lane] - stats.shift[lane]) * half - stats.factor[lane];
            // forward: p = max(z − τ, 0)^m with z = s·half, and Σ p = 1 fixes τ
            let g = match (above > 0.0, squared) {
                (false, _) => 0.0,
                (true, true) => 2.0 * half * above,
                (true, false) => half,
            };
            *ds = if g == 0.0 { 0.0 } else { g * (*ds - delta[lane]) };
        }
    }
    replay(scores, stats, form, Cell::Weight);
}
