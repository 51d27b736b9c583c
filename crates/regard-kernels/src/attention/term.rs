//! What is added to scores besides the pair's own: biases, and the terms of relative positions.

use super::tile::{At, Tile};
use crate::memory::zeros;

/// A term of the scores, bound to its parameters.
///
/// Its gradient is summed in accumulators of its own, one for each batch row and head that
/// [`Term::scope`] tells apart.
pub trait Term: Send + Sync {
    /// Whether it multiplies the weights instead of adding to the scores.
    fn after(&self) -> bool {
        false
    }

    /// Floats of an accumulator.
    fn accumulator(&self) -> usize;

    /// Whether batch rows, and heads, have accumulators of their own.
    fn scope(&self) -> (bool, bool) {
        (true, true)
    }

    /// Adds to a tile of scores; or multiplies a tile of weights, if [`Term::after`].
    fn apply(&self, at: &At, tile: &mut Tile);

    /// Adds what the gradient of the tile's cells means for the parameters. `ds` is the gradient
    /// of the scores; for a term [`Term::after`] the gradient of the weights times the weights.
    fn gradient(&self, at: &At, ds: &mut Tile, sums: &mut [f32]);

    /// The parameters' gradients, from all accumulators in order.
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

/// The values that a parameter may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// Any.
    Any,
    /// Numbers above 0: the width of a kernel.
    Width,
    /// Positions among the keys, one for each query.
    Centres,
}

/// A parameter that a score or a bias asks for, as a four-dimensional array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name in the catalogue.
    pub name: &'static str,
    /// Its shape, with ones where its documentation has no axis.
    pub shape: [usize; 4],
    /// A letter for each axis: `B` batch rows, `H` query heads, `T` queries, `S` keys, `D`
    /// features, `R` rows of which a cell looks at one, `1` none.
    pub axes: &'static str,
    /// Its values.
    pub values: Values,
}

impl Param {
    /// With any values.
    pub fn new(name: &'static str, shape: [usize; 4], axes: &'static str) -> Param {
        assert_eq!(axes.len(), 4, "{name}: a letter for each axis");
        Param { name, shape, axes, values: Values::Any }
    }

    /// A width: one number above 0.
    pub fn width(name: &'static str) -> Param {
        Param { values: Values::Width, ..Param::new(name, [1; 4], "1111") }
    }

    /// For each axis its place among the five of a [formula](super::formula), if it has one.
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
