//! Normalisers, which map a query's scores to weights.
//!
//! A normaliser works online, one block of keys after the other, or needs all scores of a query at
//! once (a *strip*). It keeps two values per query, from which the backward recomputes the weights.

mod entmax;
mod hard;
mod sigmoid;
mod softmax;
mod softmax1;
mod sparsemax;
mod threshold;
mod uniform;

pub use entmax::Entmax15;
pub use hard::{Estimator, Hard};
pub use sigmoid::Sigmoid;
pub use softmax::Softmax;
pub use softmax1::Softmax1;
pub use sparsemax::Sparsemax;
pub use uniform::Uniform;

use super::formula::{Normalized, Power, number, scores};
use super::tile::{At, Tile};
use super::variants::{DEFAULTS, Row, Setting, Variant};
use crate::scratch::Scratch;
use crate::view::Error;
use std::sync::Arc;

/// All normalisers, in the order of the documentation.
pub const ROWS: &[Row<dyn Normalizer>] = &[
    softmax::ROW,
    softmax1::ROW,
    sparsemax::ROW,
    entmax::ROW,
    sigmoid::ROW,
    uniform::ROW,
    hard::STRAIGHT_THROUGH,
    hard::GUMBEL,
    hard::REINFORCE,
];

/// Running state of a block's queries during the pass over their keys, a float per lane.
pub struct NormalizerState {
    /// Largest score so far (softmax), or a threshold.
    pub shift: Scratch,
    /// Sum of the weights so far.
    pub sum: Scratch,
    /// Factor that earlier sums must be multiplied by since the last block of keys.
    pub rescale: Scratch,
    /// For hard attention, the score with noise of the best key, and its own score.
    pub best: Vec<(f32, f32)>,
    /// For hard attention, the chosen key, −1 for none.
    pub pick: Vec<i32>,
}

impl NormalizerState {
    /// Creates the state before the first block.
    pub fn new(lanes: usize) -> NormalizerState {
        let mut shift = Scratch::new(lanes);
        shift.fill(f32::NEG_INFINITY);
        let mut rescale = Scratch::new(lanes);
        rescale.fill(1.0);
        NormalizerState { shift, sum: Scratch::zeroed(lanes), rescale, best: vec![], pick: vec![] }
    }
}

/// Saved statistics of a block's queries, a float per lane: the weight of a key with score `s` is a
/// function of `s`, `shift` and `factor`.
#[derive(Clone, Copy)]
pub struct Stats<'a> {
    /// Subtracted from a score.
    pub shift: &'a [f32],
    /// Factor of the weights; 0 for a query without keys.
    pub factor: &'a [f32],
    /// For hard attention, the chosen key, −1 for none.
    pub pick: &'a [i32],
}

/// Row term δ of a normaliser's gradient `ds = g · (dp − δ)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delta {
    /// `δ = Σ_j p·dp`, which is `dout · out`: no pass over the keys is needed.
    FromOutput,
    /// No row term.
    Zero,
    /// `δ = Σ_j g·dp / Σ_j g`, by a pass over the keys.
    FromSlopes,
    /// The gradient of the log-probability, given by the caller.
    LogProb,
}

/// Normaliser. Masked cells have the score −∞ and get a weight of exactly 0.
///
/// This trait is open to custom implementations.
pub trait Normalizer: Send + Sync + std::fmt::Debug {
    /// Checks its own arguments.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns its formula, for the reference and for devices without kernels. If `None`, the
    /// kernels compute it on the CPU, with copies there and back.
    fn formula(&self) -> Option<Normalized> {
        None
    }

    /// Returns the state before the first block.
    fn start(&self, lanes: usize) -> NormalizerState {
        NormalizerState::new(lanes)
    }

    /// Replaces a block of scores by weights that are correct up to a factor per query, and updates
    /// the state.
    fn block(&self, at: &At, tile: &mut Tile, state: &mut NormalizerState);

    /// Whether [`Self::block`] needs all keys at once.
    fn needs_strip(&self) -> bool {
        false
    }

    /// Whether it chooses one key: its weights need no final factor, and the choice is saved.
    fn chooses(&self) -> bool {
        false
    }

    /// After the last block, sets `shift` and `sum` to the shift and factor of [`Stats`].
    fn finish(&self, state: &mut NormalizerState);

    /// Replaces scores by the final weights.
    fn weights(&self, at: &At, tile: &mut Tile, stats: Stats);

    /// Returns the way in which δ is computed.
    fn delta(&self) -> Delta;

    /// Replaces scores by `g`, for [`Delta::FromSlopes`].
    fn slopes(&self, at: &At, tile: &mut Tile, stats: Stats) {
        self.weights(at, tile, stats);
    }

    /// Replaces scores by weights, and the weights' gradient `dp` by the scores' gradient.
    fn gradient(&self, at: &At, scores: &mut Tile, dp: &mut Tile, stats: Stats, delta: &[f32]);
}
