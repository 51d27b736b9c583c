//! Right operand of a product.

use super::matrix::Matrix;
use super::pack::Packed;
use super::part;
use crate::storage::Stored;
use std::ops::Range;

/// Right operand of a [`product`](super::product).
#[derive(Clone, Copy)]
pub enum RightOperand<'a> {
    /// Matrix of floats, packed as needed in every product.
    Plain(Matrix<'a>),
    /// Matrix of any storage type, converted as needed in every product.
    Stored(Stored<'a>),
    /// Matrix that was packed before.
    Packed(&'a Packed),
}

impl<'a> From<Matrix<'a>> for RightOperand<'a> {
    fn from(b: Matrix<'a>) -> Self {
        RightOperand::Plain(b)
    }
}

impl<'a> From<Stored<'a>> for RightOperand<'a> {
    fn from(b: Stored<'a>) -> Self {
        RightOperand::Stored(b)
    }
}

impl<'a> From<&'a Packed> for RightOperand<'a> {
    fn from(b: &'a Packed) -> Self {
        RightOperand::Packed(b)
    }
}

impl<'a> RightOperand<'a> {
    pub(super) fn shape(&self) -> [usize; 2] {
        match self {
            RightOperand::Plain(b) => b.shape(),
            RightOperand::Stored(b) => b.shape(),
            RightOperand::Packed(b) => b.shape(),
        }
    }

    /// The operand, unless it was packed before.
    pub(super) fn right(self) -> Option<Right<'a>> {
        match self {
            RightOperand::Plain(b) => Some(Right::Matrix(b)),
            RightOperand::Stored(b) => Some(b.into()),
            RightOperand::Packed(_) => None,
        }
    }
}

/// Right operand that is not packed.
#[derive(Clone, Copy)]
pub(super) enum Right<'a> {
    /// A matrix of floats with any strides.
    Matrix(Matrix<'a>),
    /// A matrix of another storage type.
    Stored(Stored<'a>),
}

impl<'a> From<Stored<'a>> for Right<'a> {
    fn from(b: Stored<'a>) -> Self {
        b.matrix().map_or(Right::Stored(b), Right::Matrix)
    }
}

impl Right<'_> {
    pub fn shape(&self) -> [usize; 2] {
        match self {
            Right::Matrix(b) => b.shape(),
            Right::Stored(b) => b.shape(),
        }
    }

    /// Whether rows are contiguous.
    pub fn by_rows(&self) -> bool {
        match self {
            Right::Matrix(b) => b.col == 1,
            Right::Stored(b) => !b.turned(),
        }
    }

    /// Submatrix of `rows` and `cols`.
    pub fn part(&self, rows: &Range<usize>, cols: &Range<usize>) -> Self {
        match self {
            Right::Matrix(b) => Right::Matrix(part(b, rows, cols)),
            Right::Stored(b) => Right::Stored(b.part(rows.clone(), cols.clone())),
        }
    }

    /// Without the first `n` columns.
    #[inline(always)]
    pub fn skip_cols(self, n: usize) -> Self {
        match self {
            Right::Matrix(b) => Right::Matrix(b.skip_cols(n)),
            Right::Stored(b) => {
                let [rows, cols] = b.shape();
                Right::Stored(b.part(0..rows, n..cols))
            }
        }
    }
}
