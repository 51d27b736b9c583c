//! A score of the caller's own: a function of the dot product and the place, with its derivative.

use super::*;
use crate::attention::tile::each_cell;
use crate::gemm::micro::Product;
use std::sync::Arc;

pub(super) const ROW: Row<dyn Score> = Row {
    about: Variant {
        name: "score_mod",
        params: &[("apply", "fn(score, cell)"), ("derivative", "fn(score, cell)")],
        settings: &[],
        formula: "f(scale · (q · k), b, h, p, j), scale = 1/√D unless given",
        paper: "He et al. 2024 (FlexAttention), arXiv:2412.05496",
    },
    new: |_| bail!("`score_mod` is a function of one's own: it exists in Rust only"),
    trials: &[],
};

/// The place of a score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// The batch row.
    pub b: usize,
    /// The query head.
    pub h: usize,
    /// The query's position among the keys.
    pub position: f32,
    /// The key.
    pub key: usize,
}

/// A function of a score and its place, with its derivative by the score.
pub trait ScoreMod: Send + Sync + std::fmt::Debug {
    /// The new score.
    fn apply(&self, score: f32, cell: Cell) -> f32;
    /// `d apply / d score`
    fn derivative(&self, score: f32, cell: Cell) -> f32;

    /// The function as a formula of the scores, `[B, H, T, S, 1]`, if it can be written as one. A
    /// device without kernels then computes it itself; else it is computed on the CPU, with copies
    /// there and back.
    fn formula(&self, _score: Expr) -> Option<Expr> {
        None
    }
}

/// `s = f(scale · (q · k), cell)`
#[derive(Clone, Debug)]
pub struct Modified(pub Arc<dyn ScoreMod>);

impl Score for Modified {
    fn default_scale(&self, dims: &Dims) -> f32 {
        Dot.default_scale(dims)
    }
    fn formula(&self) -> Option<Expr> {
        self.0.formula(Dot.formula()?)
    }
}

impl Lower for Modified {
    fn lower<'a>(&'a self, _: &'a Grid, x: Operands<'a>, scale: f32) -> Lowered<'a> {
        let (q, k) = (Operand::Given(x.q), Operand::Given(x.k));
        let map: Option<Box<dyn Map>> = Some(Box::new(Apply(self.0.clone())));
        Lowered { pair: Box::new(Product), q, k, scale, weights: vec![], map, terms: vec![] }
    }
}

struct Apply(Arc<dyn ScoreMod>);

fn cell(at: &At, query: usize, key: usize) -> Cell {
    Cell { b: at.b, h: at.h, position: at.grid.position(at.b, query), key }
}

impl Map for Apply {
    fn apply(&self, at: &At, tile: &mut Tile) {
        each_cell(at, tile, |s, i, j| *s = self.0.apply(*s, cell(at, i, j)));
    }
    fn gradient(&self, at: &At, before: &Tile, ds: &mut Tile, _: &mut f32) {
        let (lanes, keys) = (ds.lanes, at.keys);
        for row in 0..ds.keys {
            for lane in 0..ds.queries {
                let Some(key) = keys.key(row, lane) else { continue };
                let ds = &mut ds.data[row * lanes + lane];
                // A masked cell has no gradient, whatever the function says of its score.
                if *ds != 0.0 {
                    let cell = cell(at, at.i0 + lane, key);
                    *ds *= self.0.derivative(before.data[row * lanes + lane], cell);
                }
            }
        }
    }
}
