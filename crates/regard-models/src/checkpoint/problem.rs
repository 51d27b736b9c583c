//! Tensors of a checkpoint that do not fit the model.

use crate::sizes::short;

/// A tensor of a checkpoint that does not fit the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TensorProblem {
    /// The checkpoint does not have a tensor of the model.
    Missing {
        /// Name of the tensor.
        name: String,
        /// Shape by the configuration.
        shape: Vec<usize>,
    },
    /// A tensor has another shape than the configuration says.
    Misshapen {
        /// Name of the tensor.
        name: String,
        /// Shape in the checkpoint.
        got: Vec<usize>,
        /// Shape by the configuration.
        wanted: Vec<usize>,
    },
    /// A tensor has integers, or another element type that no weight has.
    NotFloats {
        /// Name of the tensor.
        name: String,
        /// Element type in the checkpoint.
        dtype: String,
    },
    /// A tensor has an element that is NaN or infinite.
    NotFinite {
        /// Name of the tensor.
        name: String,
        /// Row-major index of the first such element.
        at: usize,
        /// Value of that element, as text: `NaN`, `inf` or `-inf`.
        number: String,
    },
}

impl TensorProblem {
    /// Whether this is a missing tensor whose name fulfils `such`.
    pub fn is_missing(&self, such: &dyn Fn(&str) -> bool) -> bool {
        matches!(self, TensorProblem::Missing { name, .. } if such(name))
    }
}

impl std::fmt::Display for TensorProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            TensorProblem::Missing { name, shape } => {
                write!(f, "{} {shape:?} is missing", short(name, NAME))
            }
            TensorProblem::Misshapen { name, got, wanted } => {
                write!(f, "{} is {got:?}, the configuration says {wanted:?}", short(name, NAME))
            }
            TensorProblem::NotFloats { name, dtype } => {
                write!(f, "{} is {dtype}, need F32, F16, BF16 or F64", short(name, NAME))
            }
            TensorProblem::NotFinite { name, at, number } => {
                write!(f, "{}: element {at} is {number}, {NOT_FINITE}", short(name, NAME))
            }
        }
    }
}

/// End of a message about a value that is not finite.
pub(crate) const NOT_FINITE: &str = "need finite numbers";

/// Most characters of a name in a message; a file may have names of any length.
const NAME: usize = 80;
