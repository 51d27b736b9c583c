//! Sparsemax: the projection of the scores onto the simplex; most weights are exactly 0.

use super::threshold::{Cell, SPARSEMAX, gradient, replay, solve};
use super::*;

pub(super) const ROW: Row<dyn Normalizer> = Row {
    about: Variant {
        name: "sparsemax",
        params: &[],
        settings: &[],
        formula: "max(s_j − τ, 0) with τ such that the weights sum to 1",
        paper: "Martins & Astudillo 2016, arXiv:1602.02068",
    },
    new: |_| Ok(Arc::new(Sparsemax)),
    trials: DEFAULTS,
};

/// Sparsemax `p_j = max(s_j − τ, 0)`, `Σ p = 1`.
#[derive(Clone, Copy, Debug)]
pub struct Sparsemax;

impl Normalizer for Sparsemax {
    fn formula(&self) -> Option<Normalized> {
        Some(scores().above_threshold(Power::One).into())
    }
    fn block(&self, _: &At, tile: &mut Tile, state: &mut NormalizerState) {
        solve(tile, state, SPARSEMAX);
    }
    fn needs_strip(&self) -> bool {
        true
    }
    fn finish(&self, _: &mut NormalizerState) {}
    fn weights(&self, _: &At, tile: &mut Tile, stats: Stats) {
        replay(tile, stats, SPARSEMAX, Cell::Weight);
    }
    fn delta(&self) -> Delta {
        Delta::FromSlopes
    }
    fn slopes(&self, _: &At, tile: &mut Tile, stats: Stats) {
        replay(tile, stats, SPARSEMAX, Cell::Slope);
    }
    fn gradient(&self, _: &At, s: &mut Tile, dp: &mut Tile, stats: Stats, delta: &[f32]) {
        gradient(s, dp, stats, delta, SPARSEMAX);
    }
}
