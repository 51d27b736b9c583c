//! From text to numbers and back.

mod bpe;
mod charsmap;
mod layout;
pub mod marian;
pub mod simplify;
pub mod special;
pub mod spm;
#[cfg(test)]
mod tests;
pub mod tokenizer;
pub mod train;
mod unigram;

pub use simplify::simplify;
pub use special::Special;
pub use tokenizer::{Encoding, Tokenizer};
pub use train::{Form, Kind, Normalise, Spaces, Train};
