//! Fused operations on tensors, each with its backward.
//!
//! Each function runs on the kernels where [`backend::fused`](crate::backend::fused) is true, and
//! is composed of Burn's own operations elsewhere.

mod activation;
mod ctc;
mod dropout;
mod embedding;
mod largest;
mod likelihood;
mod linear;
mod loss;
mod norm;
mod packing;
mod quantized;
mod recurrent;
mod rotary;
mod sparse;
mod stored;
mod unfold;

pub use activation::{Activation, activate};
pub use ctc::{Ctc, CtcTargets, ctc_loss};
pub use dropout::dropout;
pub use embedding::embedding;
pub use largest::largest;
pub use likelihood::{log_likelihoods, negative_log_likelihood};
pub(crate) use linear::linear_rows;
pub use linear::{linear, linear_packed};
pub use loss::{CrossEntropy, cross_entropy};
pub use norm::{NormKind, NormParams, add_norm, norm};
pub use packing::{Packing, set_packing_limit};
pub(crate) use quantized::quantized_rows;
pub use quantized::{QuantizedWeight, quantized_embedding, quantized_linear};
pub use recurrent::{Cell, DirectionWeights, States, recurrent};
pub use regard_kernels::ops::scan::{Scan, all_below_infinity, exponentials};
pub use rotary::{Angles, Pairs, TokenPositions, rotate};
pub use sparse::{Sparse, sparse_linear};
pub(crate) use stored::stored_rows;
pub use stored::{StoredMatrix, StoredRows, stored_embedding, stored_linear};
pub use unfold::{Windows, unfold};
