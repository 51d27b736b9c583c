//! Average pooling: every allowed key gets the same weight, whatever its score.

use super::*;

pub(super) const ROW: Row<dyn Normalizer> = Row {
    about: Variant {
        name: "uniform",
        params: &[],
        settings: &[],
        formula: "1 / number of allowed keys",
        paper: "average pooling, the baseline without a query",
    },
    new: |_| Ok(Arc::new(Uniform)),
    trials: DEFAULTS,
};

/// Uniform weights `p_j = 1/n` for the `n` allowed keys.
#[derive(Clone, Copy, Debug)]
pub struct Uniform;

impl Normalizer for Uniform {
    fn formula(&self) -> Option<Normalized> {
        Some((number(1.0) / number(1.0).total()).into())
    }
    fn block(&self, _: &At, tile: &mut Tile, state: &mut NormalizerState) {
        for row in tile.data.chunks_exact_mut(tile.lanes).take(tile.keys) {
            for (s, sum) in row.iter_mut().zip(state.sum.iter_mut()) {
                *s = if *s == f32::NEG_INFINITY { 0.0 } else { 1.0 };
                *sum += *s;
            }
        }
    }
    fn finish(&self, state: &mut NormalizerState) {
        state.shift.fill(0.0);
        state.sum.iter_mut().for_each(|n| *n = if *n == 0.0 { 0.0 } else { 1.0 / *n });
    }
    fn weights(&self, _: &At, tile: &mut Tile, stats: Stats) {
        for row in tile.data.chunks_exact_mut(tile.lanes).take(tile.keys) {
            for (s, factor) in row.iter_mut().zip(stats.factor) {
                *s = if *s == f32::NEG_INFINITY { 0.0 } else { *factor };
            }
        }
    }
    fn delta(&self) -> Delta {
        Delta::Zero
    }
    fn gradient(&self, at: &At, s: &mut Tile, dp: &mut Tile, stats: Stats, _: &[f32]) {
        self.weights(at, s, stats);
        dp.data.fill(0.0); // the scores' values do not matter
    }
}
