//! Data sets: the catalogue, readers of all formats, splits and batches.
//!
//! | file | reads | data sets |
//! |---|---|---|
//! | `pairs` | source and target, pronunciations | multi30k, tatoeba-*, cmudict |
//! | `choose` | choice of the text and label columns of a table | |
//! | `labelled` | texts with a label, from columns or JSON lines | sst2 |
//! | `conllu` | words with parts of speech and dependency heads | ud-english-ewt |
//! | `squad` | questions about paragraphs | squad |
//! | `babi` | questions about stories | babi-en-10k |
//! | `aeslc` | e-mails with subjects, from an archive that `tar` reads | aeslc |
//! | `idx` | arrays of images and their labels | fashion-mnist |
//! | `pictures` | one image: PNG, JPEG | |
//! | `recordings` | recordings with transcripts | fsdd |
//! | `documents` | plain text, larger than memory | wikitext-2 |
//! | `characters` | a text character by character | tinyshakespeare |
//! | `running` | running text: training and held-out documents | wikitext-2 |
//! | `network` | a graph's nodes and edges | planetoid |
//! | `graphs` | graphs with a label each | |
//! | `vectors` | pretrained word vectors | glove-subset |
//! | `similarity` | word pairs with a similarity score | word-similarity |
//!
//! `known` has a row for each set that recipes can name, `catalogue` one for each published set.
//!
//! Files are not trusted: malformed content is an error that names the file and the line.

pub mod addresses;
pub mod aeslc;
pub mod babi;
pub mod batches;
mod catalogue;
pub mod characters;
pub mod choose;
pub(crate) mod columns;
pub mod conllu;
pub mod documents;
pub mod graphs;
pub mod idx;
pub(crate) mod known;
pub mod labelled;
pub mod ledger;
pub mod network;
pub mod pairs;
pub mod pictures;
pub(crate) mod propose;
pub mod ranking;
pub mod recordings;
pub mod running;
#[cfg(test)]
pub(crate) mod scratch;
pub mod sets;
pub mod similarity;
pub mod split;
pub mod squad;
pub mod stream;
mod tar;
pub(crate) mod twins;
pub mod vectors;

pub use batches::{Batches, Lengths, Position};
pub use characters::Characters;
pub use documents::{Document, Documents};
pub use labelled::{LabelledText, LabelledTexts};
pub use network::GraphData;
pub use pairs::{Pair, Pronunciations, Tsv};
pub use pictures::Image;
pub use running::TextCorpus;
pub use split::{Part, Split};
pub use squad::Squad;
pub use stream::Lines;
pub use vectors::Vectors;
