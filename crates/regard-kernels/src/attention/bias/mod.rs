//! What is added to a score for the place of its query and key. Biases add up.

mod alibi;
mod dense;
mod edge;
mod gaussian;
mod table;

pub use alibi::Alibi;
pub use dense::Dense;
pub use edge::EdgeBias;
pub use gaussian::Gaussian;
pub use table::Table;

use super::formula::{Expr, number, param, places};
use super::grid::{Dims, Grid};
use super::term::{Param, Term, sum_over_batch};
use super::tile::{At, Tile, each_cell};
use super::variants::{DEFAULTS, Row, Setting, Variant};
use crate::view::{Error, View, bail};
use std::sync::Arc;

/// Every bias, in the order of the documentation.
pub const ROWS: &[Row<dyn Bias>] =
    &[alibi::ROW, table::ROW, dense::ROW, edge::ROW, gaussian::ROW, gaussian::AFTER];

mod bind {
    use super::{Grid, Term, View};

    /// The engine's side of a bias.
    pub trait Bind {
        /// The bias with its parameters.
        fn bind<'a>(&'a self, grid: &'a Grid, params: &'a [View<'a>]) -> Box<dyn Term + 'a>;
    }
}
pub(crate) use bind::Bind;

/// A bias.
///
/// This trait is sealed: the engine's inside is not public, so only this crate implements it. A
/// number for each cell that is made outside goes in as [`Dense`].
pub trait Bias: Bind + Send + Sync + std::fmt::Debug {
    /// Its name in the catalogue.
    fn name(&self) -> &'static str;

    /// The parameters it asks for.
    fn params(&self, dims: &Dims) -> Vec<Param>;

    /// Its formula, for the reference and for devices without kernels: `[B, H, T, S, 1]`.
    fn formula(&self) -> Expr;

    /// Whether `e` to it multiplies the weights, which are not renormalised, instead of it being
    /// added to the scores.
    fn after(&self) -> bool {
        false
    }

    /// Whether it fits the sizes, else what does not.
    fn check(&self, _grid: &Grid) -> Result<(), Error> {
        Ok(())
    }
}
