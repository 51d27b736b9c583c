//! Terms added to the scores of pairs: biases, and the terms of relative positions.

use super::tile::{At, Tile};
use crate::memory::zeros;

/// Term of the scores, bound to its parameters.
///
/// Its gradient is summed in accumulators, one for each batch row and head that [`Term::scope`]
/// distinguishes.
pub trait Term: Send + Sync {
    /// Whether it multiplies the weights instead of being added to the scores.
    fn after(&self) -> bool {
        false
    }

    /// Number of floats of an accumulator.
    fn accumulator(&self) -> usize;

    /// Whether batch rows, and heads, have separate accumulators.
    fn scope(&self) -> (bool, bool) {
        (true, true)
    }

    /// Adds to a tile of scores; or multiplies a tile of weights, if [`Term::after`].
    fn apply(&self, at: &At, tile: &mut Tile);

    /// Adds the parameters' gradient of the tile's cells to `sums`. `ds` is the gradient of the
    /// scores; for a term [`Term::after`], the gradient of the weights times the weights.
    fn gradient(&self, at: &At, ds: &mut Tile, sums: &mut [f32]);

    /// Combines all accumulators, in order, into the parameters' gradients.
    fn collect(&self, sums: &[f32]) -> Vec<Vec<f32>>;
}

/// Sums accumulators `[B, H, n]` over the batch: `[H, n]`.
pub(crate) fn sum_over_batch(sums: &[f32], heads: usize, n: usize) -> Vec<f32> {
    let mut out = zeros(&[heads, n]);
    for row in sums.chunks_exact((heads * n).max(1)) {
        for (out, x) in out.iter_mut().zip(row) {
            *out += x;
        }
    }
    out
}

/// Allowed values of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// Any values.
    Any,
    /// Positive values: the width of a kernel.
    Width,
    /// Positions among the keys, one for each query.
    Centres,
}

/// Parameter of a score or a bias, as a four-dimensional array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Name in the catalogue.
    pub name: &'static str,
    /// Shape, with 1 for axes that its documentation does not have.
    pub shape: [usize; 4],
    /// Letter of each axis: `B` batch rows, `H` query heads, `T` queries, `S` keys, `D` features,
    /// `R` rows of which each cell uses one, `1` none.
    pub axes: &'static str,
    /// Allowed values.
    pub values: Values,
}

impl Param {
    /// Creates a parameter that allows any values.
    pub fn new(name: &'static str, shape: [usize; 4], axes: &'static str) -> Param {
        assert_eq!(axes.len(), 4, "{name}: a letter for each axis");
        Param { name, shape, axes, values: Values::Any }
    }

    /// Creates a width parameter: one positive scalar.
    pub fn width(name: &'static str) -> Param {
        Param { values: Values::Width, ..Param::new(name, [1; 4], "1111") }
    }

    /// Returns the position of each axis among the five of a [formula](super::formula), if it has
    /// one.
    pub fn places(&self) -> [Option<usize>; 4] {
        let mut letters = self.axes.chars();
        std::array::from_fn(|_| match letters.next() {
            Some('B') => Some(0),
            Some('H') => Some(1),
            Some('T') => Some(2),
            Some('S' | 'R') => Some(3),
            Some('D') => Some(4),
            _ => None,
        })
    }
}
