//! Parts that the recurrent encoder–decoders share: encoder, decoding state, and output layer. Each
//! model's own file defines one decoding step.

mod body;
mod plan;
mod reader;
mod readout;
mod writer;

pub(crate) use body::Body;
pub(crate) use plan::{Beside, PlannedAdditive, PlannedReadout, PlannedStep, Step};
pub(crate) use reader::{Read, Reader};
pub(crate) use readout::{Readout, Widths};
pub(crate) use writer::{Advanced, OutputWords, Stepwise, Writing, describe};

use crate::sizes;
use regard_attention::layers::RecurrentConfig;
use regard_attention::ops::Cell;
use serde::{Deserialize, Serialize};

/// Configuration that all recurrent encoder–decoders share.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EncoderDecoderConfig {
    /// Size of the source vocabulary.
    pub vocab_size: usize,
    /// Size of the target vocabulary.
    pub decoder_vocab_size: usize,
    /// Recurrent cell: `rnn`, `gru` or `lstm`; default `gru`.
    #[serde(default = "CellKind::gru")]
    pub cell: CellKind,
    /// Width of token embeddings; default 256.
    #[serde(default = "of::<256>")]
    pub embedding_size: usize,
    /// Width of hidden states; default 512.
    #[serde(default = "of::<512>")]
    pub hidden_size: usize,
    /// Number of layers of encoder and decoder each; default 1.
    #[serde(default = "of::<1>")]
    pub num_layers: usize,
    /// Whether the encoder is bidirectional; default false.
    #[serde(default)]
    pub bidirectional: bool,
    /// Dropout of embeddings, between layers and before the output layer; default 0.
    #[serde(default)]
    pub dropout: f32,
    /// Initial states of the decoder.
    #[serde(default)]
    pub start: Start,
    /// Inputs of the output layer.
    #[serde(default)]
    pub readout: ReadoutInputs,
    /// Whether the output layer shares the target embedding table.
    #[serde(default)]
    pub tie_word_embeddings: bool,
    /// Id of the padding token; default 0.
    #[serde(default)]
    pub pad_token_id: u32,
    /// Id of the first input token of the decoder; default 1.
    #[serde(default = "one")]
    pub decoder_start_token_id: u32,
    /// Id of the end token; default 2.
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

/// Recurrent cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CellKind {
    /// `tanh(W x + U h + b)` (Elman 1990)
    Rnn,
    /// Gated recurrent unit (Cho et al. 2014)
    Gru,
    /// Long short-term memory (Hochreiter and Schmidhuber 1997)
    Lstm,
}

impl CellKind {
    fn gru() -> CellKind {
        CellKind::Gru
    }

    pub(crate) fn cell(self) -> Cell {
        match self {
            CellKind::Rnn => Cell::Rnn,
            CellKind::Gru => Cell::Gru,
            CellKind::Lstm => Cell::Lstm,
        }
    }
}

/// Initial states of the decoder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// Final state of the same encoder layer.
    #[default]
    Encoder,
    /// A learned vector for each layer.
    Learned,
}

/// Inputs of the output layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReadoutInputs {
    /// The decoder's state only.
    #[default]
    State,
    /// State, context and previous token, through an additional layer (Bahdanau's deep output).
    Deep,
}

impl EncoderDecoderConfig {
    /// Width of the encoder's states.
    pub(crate) fn memory(&self) -> usize {
        self.hidden_size * (1 + usize::from(self.bidirectional))
    }

    /// Configuration of decoder layers with inputs of this width.
    pub(crate) fn writer(&self, input: usize) -> RecurrentConfig {
        RecurrentConfig {
            layers: self.num_layers,
            dropout: self.dropout,
            ..RecurrentConfig::new(self.cell.cell(), input, self.hidden_size)
        }
    }

    /// Checks sizes before any tensor is allocated.
    pub(crate) fn check(&self) -> Result<(), String> {
        let EncoderDecoderConfig { vocab_size: reads, decoder_vocab_size: writes, .. } = *self;
        let (e, h) = (("embedding_size", self.embedding_size), ("hidden_size", self.hidden_size));
        let (reads, writes) = (("vocab_size", reads), ("decoder_vocab_size", writes));
        sizes::check(&[reads, writes, e, h, ("num_layers", self.num_layers)])?;
        // A recurrent matrix has up to four gates, and inputs of both directions.
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
