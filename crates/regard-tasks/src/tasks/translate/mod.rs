//! Sequence-to-sequence translation: sentences into another language, spelling into phonemes.

mod corpus;
mod evaluate;
mod learn;
mod pieces;
mod pipeline;
mod recipe;
mod request;
mod translator;
mod vocabulary;
mod words;

pub use corpus::{Corpus, Data};
pub use evaluate::{Bucket, Measure, TranslationReport, details, measure, swapped};
pub use learn::Translation;
pub use pieces::sentence_count;
pub use pipeline::{Parameters, Response, WordAlignment};
pub use recipe::Recipe;
pub use request::{Translated, TranslationRequest};
pub use translator::Translator;
pub use vocabulary::{Tokens, TranslatorVocabulary, VOCABULARY_FILES, Vocabularies};
pub use words::Aligned;
