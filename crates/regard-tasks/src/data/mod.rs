//! Data sets: what is known, where it is, how it is split and batched.

pub mod addresses;
pub mod batches;
mod catalogue;
pub mod pairs;
pub mod sets;
pub mod split;
pub mod stream;

pub use batches::{Batches, Lengths, Position};
pub use pairs::{Pair, Pronunciations, Tsv};
pub use split::{Part, Split};
pub use stream::Lines;
