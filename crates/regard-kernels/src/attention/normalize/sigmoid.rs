//! Sigmoid of each score: `p_j = σ(s_j)`.

use super::*;

pub(super) const ROW: Row<dyn Normalizer> = Row {
    about: Variant {
        name: "sigmoid",
        params: &[],
        settings: &[],
        formula: "1 / (1 + exp(−s_j))",
        paper: "Ramapuram et al. 2024, arXiv:2409.04431",
    },
    new: |_| Ok(Arc::new(Sigmoid)),
    trials: DEFAULTS,
};

/// Sigmoid `p_j = 1 / (1 + e^{−s_j})`: keys do not compete.
#[derive(Clone, Copy, Debug)]
pub struct Sigmoid;

/// Without overflow on either side, and exactly 0 for −∞.
fn sigmoid(s: f32) -> f32 {
    let e = (-s.abs()).exp();
    if s >= 0.0 { 1.0 / (1.0 + e) } else { e / (1.0 + e) }
}

impl Normalizer for Sigmoid {
    fn formula(&self) -> Option<Normalized> {
        Some(scores().sigmoid().into())
    }
    fn block(&self, _: &At, tile: &mut Tile, _: &mut NormalizerState) {
        tile.data[..tile.keys * tile.lanes].iter_mut().for_each(|s| *s = sigmoid(*s));
    }
    fn finish(&self, state: &mut NormalizerState) {
        state.shift.fill(0.0);
        state.sum.fill(1.0);
    }
    fn weights(&self, at: &At, tile: &mut Tile, _: Stats) {
        let mut unused = NormalizerState::new(0);
        self.block(at, tile, &mut unused);
    }
    fn delta(&self) -> Delta {
        Delta::Zero
    }
    fn gradient(&self, at: &At, s: &mut Tile, dp: &mut Tile, stats: Stats, _: &[f32]) {
        self.weights(at, s, stats);
        for (p, dp) in s.data.iter().zip(dp.data.iter_mut()).take(s.keys * s.lanes) {
            *dp *= p * (1.0 - p); // forward: p = σ(s)
        }
    }
}
