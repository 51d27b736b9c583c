//! What turns a query's scores into weights.
//!
//! A normaliser either works online, block of keys after block of keys, or needs all scores of a
//! query at once (a *strip*). What it keeps of a query is two numbers, from which the backward
//! makes the weights again.

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

/// Every normaliser, in the order of the documentation.
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

/// What is known of a block's queries while their keys are walked over, a float per lane.
pub struct State {
    /// The largest score so far (softmax), or a threshold.
    pub shift: Scratch,
    /// The sum of weights so far.
    pub sum: Scratch,
    /// What earlier sums must be multiplied with since the last block of keys.
    pub rescale: Scratch,
    /// What the choice of a hard choice was made by, and the chosen key's own score.
    pub best: Vec<(f32, f32)>,
    /// The chosen key of a hard choice, −1 for none.
    pub pick: Vec<i32>,
}

impl State {
    /// Nothing seen yet.
    pub fn new(lanes: usize) -> State {
        let mut shift = Scratch::new(lanes);
        shift.fill(f32::NEG_INFINITY);
        let mut rescale = Scratch::new(lanes);
        rescale.fill(1.0);
        State { shift, sum: Scratch::zeroed(lanes), rescale, best: vec![], pick: vec![] }
    }
}

/// What is kept of a block's queries, a float per lane: the weight of a key with score `s` is a
/// function of `s`, `shift` and `factor`.
#[derive(Clone, Copy)]
pub struct Stats<'a> {
    /// What is taken from a score.
    pub shift: &'a [f32],
    /// What the result is multiplied with; 0 for a query without keys.
    pub factor: &'a [f32],
    /// The chosen key of a hard choice, −1 for none.
    pub pick: &'a [i32],
}

/// The row term δ of a normaliser's gradient `ds = g · (dp − δ)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delta {
    /// `δ = Σ_j p·dp`, which is `dout · out`: no pass over the keys is needed.
    FromOutput,
    /// There is none.
    Zero,
    /// `δ = Σ_j g·dp / Σ_j g`, by a pass over the keys.
    FromSlopes,
    /// The gradient of the log-probability, which the caller gives.
    LogProb,
}

/// A normaliser. Masked cells come in as −∞ and leave as exactly 0.
pub trait Normalizer: Send + Sync + std::fmt::Debug {
    /// Whether its own arguments make sense, else which does not.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Its formula, for the reference and for devices without kernels. Without one, the kernels
    /// compute it on the CPU, with copies there and back.
    fn formula(&self) -> Option<Normalized> {
        None
    }

    /// The state before the first block.
    fn start(&self, lanes: usize) -> State {
        State::new(lanes)
    }

    /// Takes a block of scores, leaves weights that are right up to a factor per query, and
    /// updates the state.
    fn block(&self, at: &At, tile: &mut Tile, state: &mut State);

    /// Whether [`Self::block`] must be given all keys at once.
    fn needs_strip(&self) -> bool {
        false
    }

    /// Whether it chooses one key: its weights need no factor at the end, and the choice is kept.
    fn chooses(&self) -> bool {
        false
    }

    /// After the last block: leaves in `shift` and `sum` what [`Stats`] keeps as shift and factor.
    fn finish(&self, state: &mut State);

    /// Turns scores into the final weights.
    fn weights(&self, at: &At, tile: &mut Tile, stats: Stats);

    /// How δ comes about.
    fn delta(&self) -> Delta;

    /// Turns scores into `g`, for [`Delta::FromSlopes`].
    fn slopes(&self, at: &At, tile: &mut Tile, stats: Stats) {
        self.weights(at, tile, stats);
    }

    /// Turns scores into weights, and the weights' gradient `dp` into the scores' gradient.
    fn gradient(&self, at: &At, tiles: (&mut Tile, &mut Tile), stats: Stats, delta: &[f32]);
}
