//! Softmax with a 1 in the denominator: a query may attend to nothing.

use super::*;

pub(super) const ROW: Row<dyn Normalizer> = Row {
    about: Variant {
        name: "softmax1",
        params: &[],
        settings: &[],
        formula: "exp(s_j) / (1 + Σ exp(s))",
        paper: "Miller 2023, Attention Is Off By One",
    },
    new: |_| Ok(Arc::new(Softmax1)),
    trials: DEFAULTS,
};

/// `p_j = e^{s_j} / (1 + Σ e^{s})`: a softmax over one more key with score 0 and value 0.
#[derive(Clone, Copy, Debug)]
pub struct Softmax1;

impl Normalizer for Softmax1 {
    fn formula(&self) -> Option<Normalized> {
        // As if there were one more key, with score 0.
        let top = scores().largest().at_least(0.0);
        let e = (scores() - top.clone()).exp();
        Some((e.clone() / (e.total() + (-top).exp())).into())
    }
    fn start(&self, lanes: usize) -> NormalizerState {
        // The key with score 0 comes first.
        let mut state = NormalizerState::new(lanes);
        state.shift.fill(0.0);
        state.sum.fill(1.0);
        state
    }
    fn block(&self, _: &At, tile: &mut Tile, state: &mut NormalizerState) {
        softmax::block(tile, state);
    }
    fn finish(&self, state: &mut NormalizerState) {
        softmax::finish(state);
    }
    fn weights(&self, _: &At, tile: &mut Tile, stats: Stats) {
        softmax::weights(tile, stats);
    }
    fn delta(&self) -> Delta {
        Delta::FromOutput
    }
    fn gradient(&self, _: &At, s: &mut Tile, dp: &mut Tile, stats: Stats, delta: &[f32]) {
        softmax::gradient(s, dp, stats, delta);
    }
}
