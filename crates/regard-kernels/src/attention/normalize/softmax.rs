//! Online softmax: `p_j = e^{s_j} / Σ e^{s}`, with a running maximum and sum.

use super::*;
use crate::attention::formula::Expr;
use crate::simd::{Kernel, Simd, dispatch, exp_nonpositive};

pub(super) const ROW: Row<dyn Normalizer> = Row {
    about: Variant {
        name: "softmax",
        params: &[],
        settings: &[],
        formula: "exp(s_j) / Σ exp(s)",
        paper: "online: Milakov & Gimelshein 2018, arXiv:1805.02867; Dao et al. 2022, arXiv:2205.14135",
    },
    new: |_| Ok(Arc::new(Softmax)),
    trials: DEFAULTS,
};

/// Softmax `p_j = e^{s_j} / Σ e^{s}`; a query without keys gets zeros.
#[derive(Clone, Copy, Debug)]
pub struct Softmax;

impl Normalizer for Softmax {
    fn formula(&self) -> Option<Normalized> {
        Some(formula(scores()).into())
    }
    fn block(&self, _: &At, tile: &mut Tile, state: &mut NormalizerState) {
        block(tile, state);
    }
    fn finish(&self, state: &mut NormalizerState) {
        finish(state);
    }
    fn weights(&self, _: &At, tile: &mut Tile, stats: Stats) {
        weights(tile, stats);
    }
    fn delta(&self) -> Delta {
        Delta::FromOutput
    }
    fn gradient(&self, _: &At, s: &mut Tile, dp: &mut Tile, stats: Stats, delta: &[f32]) {
        gradient(s, dp, stats, delta);
    }
}

/// `e^{s − max} / Σ e^{s − max}`
pub(super) fn formula(s: Expr) -> Expr {
    let e = (s.clone() - s.largest()).exp();
    e.clone() / e.total()
}

/// Online step, shared with the normalisers that differ only at the end.
pub(super) fn block(tile: &mut Tile, state: &mut NormalizerState) {
    let NormalizerState { shift, sum, rescale, .. } = state;
    assert!(tile.data.len() >= tile.keys * tile.lanes);
    assert!(shift.len().min(sum.len()).min(rescale.len()) >= tile.lanes);
    let (data, keys, lanes) = (tile.data.as_mut_ptr(), tile.keys, tile.lanes);
    dispatch(Block { data, keys, lanes, shift, sum, rescale });
}

struct Block<'a> {
    data: *mut f32,
    keys: usize,
    lanes: usize,
    shift: &'a mut [f32],
    sum: &'a mut [f32],
    rescale: &'a mut [f32],
}

impl Kernel for Block<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        // Four columns at a time, since a single one would wait for each maximum and each sum.
        let mut lane = 0;
        while lane + 4 * S::LANES <= self.lanes {
            self.columns::<S, 4>(s, lane);
            lane += 4 * S::LANES;
        }
        while lane < self.lanes {
            self.columns::<S, 1>(s, lane);
            lane += S::LANES;
        }
    }
}

impl Block<'_> {
    #[inline(always)]
    fn columns<S: Simd, const C: usize>(&mut self, s: S, lane: usize) {
        // SAFETY: `block` checked that lanes and keys lie within the slices.
        unsafe {
            let (shift, sum, rescale) = (
                self.shift.as_mut_ptr().add(lane),
                self.sum.as_mut_ptr().add(lane),
                self.rescale.as_mut_ptr().add(lane),
            );
            let mut before = [s.splat(0.0); C];
            for (c, before) in before.iter_mut().enumerate() {
                *before = s.load(shift.add(c * S::LANES));
            }
            let mut largest = before;
            for j in 0..self.keys {
                let row = self.data.add(j * self.lanes + lane);
                for (c, largest) in largest.iter_mut().enumerate() {
                    // A NaN score is dropped here and reappears in the exponential.
                    *largest = s.max(s.load(row.add(c * S::LANES)), *largest);
                }
            }
            let mut total = [s.splat(0.0); C];
            let mut from = largest;
            for c in 0..C {
                s.store(shift.add(c * S::LANES), largest[c]);
                // While all keys are masked the maximum is −∞; any finite value serves.
                let nothing = s.le(largest[c], s.splat(f32::NEG_INFINITY));
                from[c] = s.select(nothing, s.splat(0.0), largest[c]);
                let factor = exp_nonpositive(s, s.sub(before[c], from[c]));
                s.store(rescale.add(c * S::LANES), factor);
                total[c] = s.mul(s.load(sum.add(c * S::LANES)), factor);
            }
            for j in 0..self.keys {
                let row = self.data.add(j * self.lanes + lane);
                for c in 0..C {
                    let p = exp_nonpositive(s, s.sub(s.load(row.add(c * S::LANES)), from[c]));
                    s.store(row.add(c * S::LANES), p);
                    total[c] = s.add(total[c], p);
                }
            }
            for (c, total) in total.iter().enumerate() {
                s.store(sum.add(c * S::LANES), *total);
            }
        }
    }
}

/// `sum` becomes its reciprocal.
pub(super) fn finish(state: &mut NormalizerState) {
    for (shift, sum) in state.shift.iter_mut().zip(state.sum.iter_mut()) {
        if *shift == f32::NEG_INFINITY {
            *shift = 0.0;
        }
        *sum = if *sum == 0.0 { 0.0 } else { 1.0 / *sum };
    }
}

/// `p = e^{s − shift} · factor`
pub(super) fn weights(tile: &mut Tile, stats: Stats) {
    check(tile, stats);
    let (data, keys, lanes) = (tile.data.as_mut_ptr(), tile.keys, tile.lanes);
    dispatch(Weights { data, keys, lanes, stats });
}

fn check(tile: &Tile, stats: Stats) {
    assert!(tile.data.len() >= tile.keys * tile.lanes);
    assert!(stats.shift.len().min(stats.factor.len()) >= tile.lanes);
}

struct Weights<'a> {
    data: *mut f32,
    keys: usize,
    lanes: usize,
    stats: Stats<'a>,
}

impl Kernel for Weights<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for lane in (0..self.lanes).step_by(S::LANES) {
            // SAFETY: `check` saw that lanes and keys lie within the slices.
            unsafe {
                let shift = s.load(self.stats.shift.as_ptr().add(lane));
                let factor = s.load(self.stats.factor.as_ptr().add(lane));
                for j in 0..self.keys {
                    let p = self.data.add(j * self.lanes + lane);
                    s.store(p, s.mul(exp_nonpositive(s, s.sub(s.load(p), shift)), factor));
                }
            }
        }
    }
}

/// `ds = p · (dp − δ)`; the scores are replaced by weights.
pub(super) fn gradient(scores: &mut Tile, dp: &mut Tile, stats: Stats, delta: &[f32]) {
    check(scores, stats);
    assert!(dp.data.len() >= scores.keys * scores.lanes && delta.len() >= scores.lanes);
    let (data, dp) = (scores.data.as_mut_ptr(), dp.data.as_mut_ptr());
    dispatch(Gradient { data, dp, keys: scores.keys, lanes: scores.lanes, stats, delta });
}

struct Gradient<'a> {
    data: *mut f32,
    dp: *mut f32,
    keys: usize,
    lanes: usize,
    stats: Stats<'a>,
    delta: &'a [f32],
}

impl Kernel for Gradient<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for lane in (0..self.lanes).step_by(S::LANES) {
            // SAFETY: `gradient` checked that lanes and keys lie within the slices.
            unsafe {
                let shift = s.load(self.stats.shift.as_ptr().add(lane));
                let factor = s.load(self.stats.factor.as_ptr().add(lane));
                let delta = s.load(self.delta.as_ptr().add(lane));
                for j in 0..self.keys {
                    let at = j * self.lanes + lane;
                    let score = s.load(self.data.add(at));
                    // forward: p = e^{s − shift} · factor
                    let p = s.mul(exp_nonpositive(s, s.sub(score, shift)), factor);
                    s.store(self.data.add(at), p);
                    s.store(self.dp.add(at), s.mul(p, s.sub(s.load(self.dp.add(at)), delta)));
                }
            }
        }
    }
}
