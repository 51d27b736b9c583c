//! The operations of a training step besides attention, each with its backward.
//!
//! All of them are deterministic: what a task computes depends on the shape alone, and sums over
//! rows are made of partial sums over chunks of rows that are added in order. The number of
//! threads changes nothing, bit for bit.

pub mod activation;
pub mod adamw;
mod chunks;
pub mod ctc;
pub mod dropout;
pub mod embedding;
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

/// Floats to a task of an element-wise operation: 64 KiB, which takes a few microseconds, so
/// that handing out a task costs little and short arrays still spread.
pub(crate) const PIECE: usize = 16 * 1024;
