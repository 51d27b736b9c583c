//! Biases, which depend on the positions of query and key. Several biases add up.

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

/// All biases, in the order of the documentation.
pub const ROWS: &[Row<dyn Bias>] =
    &[alibi::ROW, table::ROW, dense::ROW, edge::ROW, gaussian::ROW, gaussian::AFTER];

mod bind {
    use super::{Grid, Term, View};

    /// Internal side of a bias.
    pub trait Bind {
        /// Binds the bias to its parameters.
        fn bind<'a>(&'a self, grid: &'a Grid, params: &'a [View<'a>]) -> Box<dyn Term + 'a>;
    }
}
pub(crate) use bind::Bind;

/// Bias added to the scores.
///
/// This trait is sealed: the engine's internals are private, so only this crate implements it. A
/// custom bias is passed as [`Dense`].
pub trait Bias: Bind + Send + Sync + std::fmt::Debug {
    /// Returns its name in the catalogue.
    fn name(&self) -> &'static str;

    /// Returns its parameters.
    fn params(&self, dims: &Dims) -> Vec<Param>;

    /// Returns its formula, `[B, H, T, S, 1]`, for the reference and for devices without kernels.
    fn formula(&self) -> Expr;

    /// Whether its exponential multiplies the weights, which are not renormalised, instead of it
    /// being added to the scores.
    fn after(&self) -> bool {
        false
    }

    /// Checks that it matches the sizes.
    fn check(&self, _grid: &Grid) -> Result<(), Error> {
        Ok(())
    }
}
