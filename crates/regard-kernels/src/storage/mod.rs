//! The memory of weights, as files have it.

mod bytes;

pub use bytes::{Bytes, Plain};
