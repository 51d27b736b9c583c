//! The operations of a training step besides attention, each with its backward.
//!
//! All of them are deterministic: the work of a task depends on the shape alone, and sums over rows
//! consist of partial sums over chunks of rows, added in order. Results do not depend on the number
//! of threads, bit for bit.

pub mod activation;
pub mod adamw;
mod chunks;
pub mod ctc;
pub mod dropout;
pub mod embedding;
pub mod gated;
pub(crate) mod lanes;
pub mod largest;
pub mod linear;
pub mod loss;
pub mod norm;
pub mod recurrent;
pub mod scan;
pub mod sparse;
#[cfg(test)]
mod testing;
pub mod unfold;

pub(crate) use crate::pool::Parts;

/// Floats per task of an elementwise operation: 64 KiB, which takes a few microseconds, so that
/// scheduling costs little and short arrays still use several threads.
pub(crate) const PIECE: usize = 16 * 1024;
