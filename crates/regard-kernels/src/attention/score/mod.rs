//! How well a query and a key fit.
//!
//! A score is *lowered* to what the engine computes: rows for queries and keys, a way to combine
//! their features, and possibly a map over the result and further terms. What is linear in the
//! number of rows (a projection, an exponential) is done once, before the walk over the pairs.
//! The engine's gradients, of the lowered rows, are then *raised* to those of the inputs.

mod additive;
mod dot;
mod edge;
mod general;
mod kernel;
mod keyvalue;
mod relative;
mod score_mod;

pub use additive::{Additive, Gatv2};
pub use dot::Dot;
pub use edge::Edge;
pub use general::General;
pub use kernel::{Kernel, Shape};
pub use keyvalue::KeyValue;
pub use relative::Relative;
pub use score_mod::{Cell, Modified, ScoreMod};

use super::grid::{Dims, Grid};
use super::pair::Pairwise;
use super::term::{Param, Term};
use super::tile::{At, Tile};
use super::variants::Variant;
use crate::pool::parallel_ranges;
use crate::view::{Error, View, ViewMut};
use std::sync::Arc;

/// Every score, in the order of the documentation.
pub const VARIANTS: &[Variant] = &[
    dot::VARIANT,
    additive::VARIANT,
    general::VARIANT,
    kernel::GAUSSIAN,
    kernel::BOXCAR,
    kernel::EPANECHNIKOV,
    keyvalue::VARIANT,
    relative::VARIANT,
    edge::VARIANT,
    additive::GATV2,
    score_mod::VARIANT,
];

/// Of the negative side of LeakyReLU in graph attention, as the papers have it.
pub const SLOPE: f32 = 0.2;

/// The score of a name of the catalogue, as the papers have it; `score_mod` has none.
pub fn named(name: &str) -> Option<Arc<dyn Score>> {
    Some(match name {
        "dot" => Arc::new(Dot),
        "additive" => Arc::new(Additive),
        "general" => Arc::new(General),
        "gaussian" => Arc::new(Kernel(Shape::Gaussian)),
        "boxcar" => Arc::new(Kernel(Shape::Boxcar)),
        "epanechnikov" => Arc::new(Kernel(Shape::Epanechnikov)),
        "keyvalue" => Arc::new(KeyValue),
        "relative" => Arc::new(Relative::default()),
        "edge" => Arc::new(Edge { slope: SLOPE, graph: None }),
        "gatv2" => Arc::new(Gatv2 { slope: SLOPE, graph: None }),
        _ => return None,
    })
}

/// Queries, keys, values, and the score's parameters in the order that it asks for them.
#[derive(Clone, Copy)]
pub struct Operands<'a> {
    /// `[B, H, T, D]`
    pub q: View<'a>,
    /// `[B, Hk, S, Dk]`
    pub k: View<'a>,
    /// `[B, Hk, S, E]`
    pub v: View<'a>,
    /// The score's parameters.
    pub params: &'a [View<'a>],
}

/// Rows that the engine reads: the caller's, or made from them.
pub enum Operand<'a> {
    /// The caller's own.
    Given(View<'a>),
    /// Made by the score, contiguous.
    Made(Vec<f32>, [usize; 4]),
}

impl Operand<'_> {
    /// The rows.
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
pub(crate) trait Map: Send + Sync {
    /// Replaces scores.
    fn apply(&self, at: &At, tile: &mut Tile);
    /// Multiplies `ds` with the derivative at the scores before the map, and adds what they mean
    /// for the map's parameter.
    fn gradient(&self, at: &At, before: &Tile, ds: &mut Tile, parameter: &mut f32);
}

/// A score as the engine computes it.
pub(crate) struct Lowered<'a> {
    /// How features combine.
    pub pair: Box<dyn Pairwise + 'a>,
    /// `[B, H, T, D′]`
    pub q: Operand<'a>,
    /// `[B, Hk or H, S, D′]`
    pub k: Operand<'a>,
    /// What queries are multiplied with.
    pub scale: f32,
    /// The features' weights, `[H, D′]`, if the pair has any.
    pub weights: Vec<f32>,
    /// What happens to the sum.
    pub map: Option<Box<dyn Map + 'a>>,
    /// What is added to it.
    pub terms: Vec<Box<dyn Term + 'a>>,
}

/// The engine's gradients of a lowered score.
pub(crate) struct Raise<'a> {
    /// `[B, H, T, D′]`, unless the lowered queries were the given ones.
    pub q: Vec<f32>,
    /// `[B, Hk or H, S, D′]`, unless the lowered keys were the given ones.
    pub k: Vec<f32>,
    /// `[H, D′]`
    pub weights: Vec<f32>,
    /// Of the map's parameter.
    pub map: f32,
    /// Of the terms' accumulators.
    pub terms: Vec<Vec<Vec<f32>>>,
    /// `[H, edges, D′]`, of what pairs add to their keys.
    pub added: Vec<f32>,
    /// Where the gradients of the inputs go. Values have theirs from the engine already.
    pub dq: &'a ViewMut<'a>,
    /// As above.
    pub dk: &'a ViewMut<'a>,
    /// As above.
    pub dv: &'a ViewMut<'a>,
}

/// A score.
pub trait Score: Send + Sync + std::fmt::Debug {
    /// The parameters it asks for.
    fn params(&self, _dims: &Dims) -> Vec<Param> {
        vec![]
    }

    /// Whether it fits the sizes, else what does not.
    fn check(&self, grid: &Grid) -> Result<(), Error> {
        same_width(grid)
    }

    /// The scale if none is given.
    fn default_scale(&self, _dims: &Dims) -> f32 {
        1.0
    }

    /// Whether lists of keys can be scored (relative positions cannot).
    fn takes_lists(&self) -> bool {
        true
    }

    /// What the engine is to compute.
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn lower<'a>(&'a self, grid: &'a Grid, x: Operands<'a>, scale: f32) -> Lowered<'a>;

    /// The parameters' gradients; those of made rows go on to the inputs.
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn raise(&self, _grid: &Grid, _x: Operands, _scale: f32, _grads: Raise) -> Vec<Vec<f32>> {
        vec![]
    }
}

/// Queries and keys must be equally wide.
fn same_width(grid: &Grid) -> Result<(), Error> {
    let (d, dk) = (grid.dims.d, grid.dims.dk);
    if d != dk {
        crate::view::bail!("k: got width {dk}, need the queries' D = {d} (only `general` differs)");
    }
    Ok(())
}

/// Writes a contiguous array into a view of the same shape; adds instead, with `add`.
fn spread(from: &[f32], to: &ViewMut, add: bool) {
    let [b, h, n, d] = to.shape;
    assert_eq!(from.len(), b * h * n * d, "the same shape");
    parallel_ranges(b * h * n, ROWS_PER_TASK, &|first, last| {
        for row in first..last {
            let from = &from[row * d..][..d];
            let p = to.at(row / (h * n), row / n % h, row % n, 0);
            for (c, x) in from.iter().enumerate() {
                // SAFETY: the index is inside the view's shape; each task has its own rows.
                unsafe {
                    let p = p.offset(c as isize * to.strides[3]);
                    *p = if add { *p + *x } else { *x };
                }
            }
        }
    });
}

/// Rows that a task handles when the work is linear in the rows.
const ROWS_PER_TASK: usize = 256;
