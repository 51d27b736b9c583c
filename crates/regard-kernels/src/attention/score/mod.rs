//! Scores of query–key pairs.
//!
//! Their lowering to the engine is in `lower.rs`.

mod additive;
mod dot;
mod edge;
mod general;
mod kernel;
mod keyvalue;
mod lower;
mod relative;
pub mod scaled_cosine;
mod score_mod;
mod soft_cap;

pub use additive::{Additive, Gatv2};
pub use dot::Dot;
pub use edge::Edge;
pub use general::General;
pub use kernel::{KernelFunction, KernelScore};
pub use keyvalue::KeyValue;
pub use relative::Relative;
pub use score_mod::{Modified, ScoreCell, ScoreMod, check_derivative};
pub use soft_cap::SoftCap;

use super::formula::{Expr, keys, param, queries, scale};
use super::graph::Graph;
use super::grid::{Dims, Grid};
use super::term::{Param, Term};
use super::tile::{At, Tile};
use super::variants::{DEFAULTS, Row, Setting, Variant};
use crate::pool::parallel_ranges;
use crate::view::{Error, View, ViewMut, bail};
use std::sync::Arc;

pub(crate) use lower::{Lower, Lowered, Map, Operand, Raise, ScoreOperands};

/// All scores, in the order of the documentation.
pub const ROWS: &[Row<dyn Score>] = &[
    dot::ROW,
    additive::ROW,
    general::ROW,
    kernel::GAUSSIAN,
    kernel::BOXCAR,
    kernel::EPANECHNIKOV,
    keyvalue::ROW,
    scaled_cosine::ROW,
    relative::ROW,
    edge::ROW,
    additive::GATV2,
    soft_cap::ROW,
    score_mod::ROW,
];

/// Negative slope of LeakyReLU in graph attention, as in the papers.
pub const SLOPE: f32 = 0.2;

/// Extension that only some scores support.
#[derive(Clone, Debug)]
pub enum More {
    /// Graph whose edges have features, for [`Edge`] and [`Gatv2`].
    Graph(Arc<Graph>),
    /// Segment ids of the keys, `[B·S]`, for [`Relative`].
    Segments(Vec<i64>),
    /// Number of last keys among which the queries are positioned, for [`Relative`].
    Last(usize),
}

/// Score of a query and a key.
///
/// This trait is sealed: the engine's internals are private, so only this crate implements it. A
/// custom score is a [`ScoreMod`]. The open traits of an attention are [`ScoreMod`],
/// [`Rule`](super::mask::Rule) and [`Normalizer`](super::normalize::Normalizer).
pub trait Score: Lower + Send + Sync + std::fmt::Debug {
    /// Returns its parameters.
    fn params(&self, _dims: &Dims) -> Vec<Param> {
        vec![]
    }

    /// Checks that it matches the sizes.
    fn check(&self, grid: &Grid) -> Result<(), Error> {
        same_width(grid)
    }

    /// Returns the scale that is used if none is given.
    fn default_scale(&self, _dims: &Dims) -> f32 {
        1.0
    }

    /// Returns its formula, `[B, H, T, S, 1]`, for the reference and for devices without kernels.
    /// Only a [`ScoreMod`] may have none.
    fn formula(&self) -> Option<Expr>;

    /// Whether it depends on values, so that weights cannot be computed without them.
    fn needs_values(&self) -> bool {
        false
    }

    /// Returns this score with an extension; `None` if it does not support it, or has it already.
    fn extended(&self, _more: More) -> Option<Arc<dyn Score>> {
        None
    }

    /// Whether it supports lists of keys (relative positions do not).
    fn takes_lists(&self) -> bool {
        true
    }
}

/// Queries and keys must be equally wide.
fn same_width(grid: &Grid) -> Result<(), Error> {
    let (d, dk) = (grid.dims.d, grid.dims.dk);
    if d != dk {
        bail!("k: got width {dk}, need the queries' D = {d} (only `general` differs)");
    }
    Ok(())
}

/// Writes a contiguous array into a view of the same shape, or adds it with `add`.
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

/// Rows per task of work that is linear in the rows.
const ROWS_PER_TASK: usize = 256;
