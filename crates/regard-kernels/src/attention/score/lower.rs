//! Lowering of scores to the engine.
//!
//! A score is *lowered* to operations of the engine: rows for queries and keys, a way to combine
//! their features, and possibly a map over the result and further terms. Computations that are
//! linear in the number of rows (a projection, an exponential) are done once, before the walk over
//! the pairs. The engine's gradients, of the lowered rows, are then *raised* to those of the
//! inputs.
//!
//! Nothing here is public: the engine's internals may change, which is why [`Score`](super::Score)
//! is sealed.

use crate::attention::grid::Grid;
use crate::attention::pair::Pairwise;
use crate::attention::term::Term;
use crate::attention::tile::{At, Tile};
use crate::view::{View, ViewMut};

/// Internal side of a score.
pub trait Lower {
    /// The rows, the pair and the terms that the engine computes.
    fn lower<'a>(&'a self, grid: &'a Grid, x: ScoreOperands<'a>, scale: f32) -> Lowered<'a>;

    /// Returns the parameters' gradients, and adds those of computed rows to the inputs' gradients.
    fn raise(&self, _grid: &Grid, _x: ScoreOperands, _scale: f32, _grads: Raise) -> Vec<Vec<f32>> {
        vec![]
    }
}

/// Queries, keys, values, and the score's parameters in the order of its `params`.
#[derive(Clone, Copy)]
pub struct ScoreOperands<'a> {
    /// `[B, H, T, D]`
    pub q: View<'a>,
    /// `[B, Hk, S, Dk]`
    pub k: View<'a>,
    /// `[B, Hk, S, E]`
    pub v: View<'a>,
    /// The score's parameters.
    pub params: &'a [View<'a>],
}

/// Rows read by the engine: given by the caller, or computed from them.
pub enum Operand<'a> {
    /// Given by the caller.
    Given(View<'a>),
    /// Computed by the score, contiguous.
    Made(Vec<f32>, [usize; 4]),
}

impl Operand<'_> {
    /// Returns a view of the rows.
    pub fn view(&self) -> View<'_> {
        match self {
            Operand::Given(view) => *view,
            Operand::Made(data, shape) => {
                let [_, h, n, d] = shape.map(|x| x as isize);
                // SAFETY: it was made to its shape. Asked for every block: not checked again.
                unsafe { View::from_raw(data.as_ptr(), *shape, [h * n * d, n * d, d, 1]) }
            }
        }
    }
}

/// A function over a tile of scores, with its derivative.
pub trait Map: Send + Sync {
    /// Replaces scores.
    fn apply(&self, at: &At, tile: &mut Tile);
    /// Multiplies `ds` by the derivative at the scores before the map, and adds the gradient of the
    /// map's parameter.
    fn gradient(&self, at: &At, before: &Tile, ds: &mut Tile, parameter: &mut f32);
}

/// A score as the engine computes it.
pub struct Lowered<'a> {
    /// Way in which features are combined.
    pub pair: Box<dyn Pairwise + 'a>,
    /// `[B, H, T, D′]`
    pub q: Operand<'a>,
    /// `[B, Hk or H, S, D′]`
    pub k: Operand<'a>,
    /// Factor of the queries.
    pub scale: f32,
    /// The features' weights, `[H, D′]`, if the pair has any.
    pub weights: Vec<f32>,
    /// Function applied to the summed pairs.
    pub map: Option<Box<dyn Map + 'a>>,
    /// Terms added to the score.
    pub terms: Vec<Box<dyn Term + 'a>>,
}

/// The engine's gradients of a lowered score.
pub struct Raise<'a> {
    /// `[B, H, T, D′]`, unless the lowered queries were the given ones.
    pub q: Vec<f32>,
    /// `[B, Hk or H, S, D′]`, unless the lowered keys were the given ones.
    pub k: Vec<f32>,
    /// Gradient of the features' weights, `[H, D′]`.
    pub weights: Vec<f32>,
    /// Gradient of the map's parameter.
    pub map: f32,
    /// Gradients in the terms' accumulators.
    pub terms: Vec<Vec<Vec<f32>>>,
    /// Gradient of the edge features, `[H, edges, D′]`.
    pub added: Vec<f32>,
    /// Gradient of the queries, to be added to.
    pub dq: &'a ViewMut<'a>,
    /// Gradient of the keys, to be added to.
    pub dk: &'a ViewMut<'a>,
    /// Gradient of the values, which the engine has written; to be added to.
    pub dv: &'a ViewMut<'a>,
}
