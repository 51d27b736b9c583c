//! Tokenizers: from text to token ids and back, and training of vocabularies.

mod alphabet;
mod bpe;
mod byte_level;
mod charsmap;
pub mod chat_template;
mod check;
mod encoding;
mod english;
mod family;
mod folder;
mod layout;
pub mod marian;
mod one_file;
mod prompt;
pub mod simplify;
pub mod special;
mod spiece;
pub mod spm;
mod stream;
#[cfg(test)]
mod tests;
mod token_bytes;
pub mod tokenizer;
pub mod train;
mod unigram;
mod window;
mod wordpiece;
mod words;

pub use alphabet::Alphabet;
pub use chat_template::{ChatTemplate, Message, RenderOptions};
pub use encoding::Encoding;
pub use folder::{CONFIGURATION_FILES, vocabulary_files};
pub use simplify::simplify;
pub use special::Special;
pub use stream::DecodeStream;
pub use token_bytes::TokenBytes;
pub use tokenizer::{Padding, Tokenizer};
pub use train::{Normalise, SpaceHandling, Train, UnicodeForm, VocabularyKind};
