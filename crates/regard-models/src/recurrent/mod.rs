//! What the recurrent encoder–decoders share: reading, the state of writing, and the way from a
//! state to words. Each model's own file says what happens in one step.

mod body;
mod reader;
mod readout;
mod writer;

pub(crate) use body::Body;
pub(crate) use reader::{Read, Reader};
pub(crate) use readout::{Readout, Widths};
pub(crate) use writer::{Advanced, Stepwise, Words, Writing, describe};

use crate::sizes;
use regard_attention::layers::RecurrentConfig;
use regard_attention::ops::Cell;
use serde::{Deserialize, Serialize};

/// The part of `config.json` that all of them have.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Shape {
    /// Words that can be read.
    pub vocab_size: usize,
    /// Words that can be written.
    pub decoder_vocab_size: usize,
    /// `rnn`, `gru` or `lstm`.
    #[serde(default = "Kind::gru")]
    pub cell: Kind,
    /// Width of a word's vector.
    #[serde(default = "of::<256>")]
    pub embedding_size: usize,
    /// Width of a state.
    #[serde(default = "of::<512>")]
    pub hidden_size: usize,
    /// Layers of encoder and decoder each.
    #[serde(default = "of::<1>")]
    pub num_layers: usize,
    /// Whether the encoder reads both ways.
    #[serde(default)]
    pub bidirectional: bool,
    /// Of vectors, between layers and before the readout.
    #[serde(default)]
    pub dropout: f32,
    /// Where the decoder's states come from.
    #[serde(default)]
    pub start: Start,
    /// What the next word is told from.
    #[serde(default)]
    pub readout: Told,
    /// Whether words are written with the vectors that they are read back with.
    #[serde(default)]
    pub tie_word_embeddings: bool,
    /// Fills up rows.
    #[serde(default)]
    pub pad_token_id: u32,
    /// What a row begins with when it is written.
    #[serde(default = "one")]
    pub decoder_start_token_id: u32,
    /// Ends a row.
    #[serde(default = "two")]
    pub eos_token_id: u32,
}

fn of<const N: usize>() -> usize {
    N
}

fn one() -> u32 {
    1
}

fn two() -> u32 {
    2
}

/// Which recurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// `tanh(W x + U h + b)` (Elman 1990)
    Rnn,
    /// Gated (Cho et al. 2014)
    Gru,
    /// Long short-term memory (Hochreiter and Schmidhuber 1997)
    Lstm,
}

impl Kind {
    fn gru() -> Kind {
        Kind::Gru
    }

    pub(crate) fn cell(self) -> Cell {
        match self {
            Kind::Rnn => Cell::Rnn,
            Kind::Gru => Cell::Gru,
            Kind::Lstm => Cell::Lstm,
        }
    }
}

/// Where the decoder's states come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// The last state of the encoder's same layer.
    #[default]
    Encoder,
    /// A learned vector for each layer.
    Learned,
}

/// What the next word is told from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Told {
    /// The decoder's state alone.
    #[default]
    State,
    /// State, context and the word before, through a layer of their own (Bahdanau's deep output).
    Deep,
}

impl Shape {
    /// The width of what the encoder leaves for each word.
    pub(crate) fn memory(&self) -> usize {
        self.hidden_size * (1 + usize::from(self.bidirectional))
    }

    /// Decoder layers over inputs of this width.
    pub(crate) fn writer(&self, input: usize) -> RecurrentConfig {
        RecurrentConfig {
            layers: self.num_layers,
            dropout: self.dropout,
            ..RecurrentConfig::new(self.cell.cell(), input, self.hidden_size)
        }
    }

    /// Finds what no tensor could be made from.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Shape { vocab_size: reads, decoder_vocab_size: writes, .. } = *self;
        let (e, h) = (("embedding_size", self.embedding_size), ("hidden_size", self.hidden_size));
        let (reads, writes) = (("vocab_size", reads), ("decoder_vocab_size", writes));
        sizes::check(&[reads, writes, e, h, ("num_layers", self.num_layers)])?;
        // A state's matrix has up to four gates, and is told of both directions.
        let gates = (h.0, 8 * h.1);
        sizes::check_matrices(&[[reads, e], [writes, e], [writes, gates], [h, gates], [e, gates]])?;
        sizes::check_shares(&[("dropout", self.dropout)])?;
        let ids = [
            ("pad_token_id", self.pad_token_id),
            ("decoder_start_token_id", self.decoder_start_token_id),
            ("eos_token_id", self.eos_token_id),
        ];
        sizes::check_ids(&ids, writes.1)?;
        sizes::check_ids(&ids[..1], reads.1)
    }
}
