//! Entmax with α = 1.5: between softmax and sparsemax.

use super::threshold::{Cell, ENTMAX, gradient, replay, solve};
use super::*;

pub(super) const ROW: Row<dyn Normalizer> = Row {
    about: Variant {
        name: "entmax15",
        params: &[],
        settings: &[],
        formula: "max(s_j/2 − τ, 0)² with τ such that the weights sum to 1",
        paper: "Peters et al. 2019, arXiv:1905.05702",
    },
    new: |_| Ok(Arc::new(Entmax15)),
    trials: DEFAULTS,
};

/// Entmax with α = 1.5: `p_j = max(s_j/2 − τ, 0)²`, `Σ p = 1`.
#[derive(Clone, Copy, Debug)]
pub struct Entmax15;

impl Normalizer for Entmax15 {
    fn formula(&self) -> Option<Normalized> {
        Some((number(0.5) * scores()).above_threshold(Power::Two).into())
    }
    fn block(&self, _: &At, tile: &mut Tile, state: &mut NormalizerState) {
        solve(tile, state, ENTMAX);
    }
    fn needs_strip(&self) -> bool {
        true
    }
    fn finish(&self, _: &mut NormalizerState) {}
    fn weights(&self, _: &At, tile: &mut Tile, stats: Stats) {
        replay(tile, stats, ENTMAX, Cell::Weight);
    }
    fn delta(&self) -> Delta {
        Delta::FromSlopes
    }
    fn slopes(&self, _: &At, tile: &mut Tile, stats: Stats) {
        replay(tile, stats, ENTMAX, Cell::Slope);
    }
    fn gradient(&self, _: &At, s: &mut Tile, dp: &mut Tile, stats: Stats, delta: &[f32]) {
        gradient(s, dp, stats, delta, ENTMAX);
    }
}
