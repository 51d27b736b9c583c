//! Tensors of a checkpoint that do not fit the model.

use crate::sizes::short;

/// A tensor of a checkpoint that does not fit the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// A tensor that is not there.
    Missing {
        /// Its name.
        name: String,
        /// Its shape.
        shape: Vec<usize>,
    },
    /// A tensor of another shape.
    Misshapen {
        /// Its name.
        name: String,
        /// In the checkpoint.
        got: Vec<usize>,
        /// By the configuration.
        wanted: Vec<usize>,
    },
    /// A tensor of integers, or of another type that no weight has.
    NotFloats {
        /// Its name.
        name: String,
        /// The type of its numbers.
        dtype: String,
    },
    /// A tensor with a number that is NaN or infinite.
    NotFinite {
        /// Its name.
        name: String,
        /// Which number is the first, row by row.
        at: usize,
        /// The value.
        number: String,
    },
}

impl Problem {
    /// Whether it is a missing tensor of such a name.
    pub fn is_missing(&self, such: &dyn Fn(&str) -> bool) -> bool {
        matches!(self, Problem::Missing { name, .. } if such(name))
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Problem::Missing { name, shape } => {
                write!(f, "{} {shape:?} is missing", short(name, NAME))
            }
            Problem::Misshapen { name, got, wanted } => {
                write!(f, "{} is {got:?}, the configuration says {wanted:?}", short(name, NAME))
            }
            Problem::NotFloats { name, dtype } => {
                write!(f, "{} is {dtype}, need F32, F16, BF16 or F64", short(name, NAME))
            }
            Problem::NotFinite { name, at, number } => {
                write!(f, "{}: number {at} is {number}, {NOT_FINITE}", short(name, NAME))
            }
        }
    }
}

/// How a message about a number that is not finite ends.
pub(crate) const NOT_FINITE: &str = "need finite numbers";

/// Characters of a name in a message, with room for what is said of it; a file may have names of
/// any length.
const NAME: usize = 80;
