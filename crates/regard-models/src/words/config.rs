//! `config.json` of word models.

use super::{BILSTM, CNN};
use crate::sizes;
use crate::text::Family;
use regard_attention::layers::Pool;
use serde::Deserialize;
use serde_json::Value;

/// Widest convolution; wider ones would exceed the length of sentences.
const WIDEST_WINDOW: usize = 64;

/// Configuration of word embeddings, character encoder and context encoder.
#[derive(Clone, Debug, Deserialize)]
#[serde(default)]
pub struct Config {
    #[serde(skip)]
    pub(super) context: Context,
    pub(super) vocab_size: usize,
    /// Width of the word embeddings; 0 for none.
    pub(super) embedding_size: usize,
    /// Whether the word embeddings are frozen.
    pub(super) frozen_embeddings: bool,
    pub(super) unk_token_id: u32,
    /// Probability in training that a word is replaced by the unknown one.
    pub(super) word_dropout: f32,
    /// Number of characters in the alphabet, with special ones.
    pub(super) alphabet_size: usize,
    /// Character encoder, if any.
    pub(super) characters: Option<Characters>,
    /// Width of the LSTM's hidden states, in each direction.
    pub(super) hidden_size: usize,
    pub(super) num_layers: usize,
    /// Widths of the convolutions, in words.
    pub(super) widths: Vec<usize>,
    /// Output channels of each convolution.
    pub(super) channels: usize,
    /// Dropout of word and character vectors.
    pub(super) embedding_dropout: f32,
    /// Dropout between recurrent layers.
    pub(super) dropout: f32,
    /// Dropout before the classifier.
    pub(super) classifier_dropout: f32,
    /// Pooling of a text's words: `attention`, `mean`, `max` or `last`.
    pub(super) pooling: String,
    /// Hidden width of the attention pooling.
    pub(super) attention_size: usize,
}

/// Context encoder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Context {
    #[default]
    Recurrent,
    Windows,
}

/// Character encoder.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum Characters {
    /// Convolutions and max pooling.
    Cnn {
        #[serde(default = "of::<32>")]
        embedding_size: usize,
        #[serde(default = "three")]
        widths: Vec<usize>,
        #[serde(default = "of::<64>")]
        channels: usize,
    },
    /// A bidirectional LSTM, its final states.
    Lstm {
        #[serde(default = "of::<32>")]
        embedding_size: usize,
        #[serde(default = "of::<32>")]
        hidden_size: usize,
    },
    /// Convolutions and attention pooling.
    Attention {
        #[serde(default = "of::<32>")]
        embedding_size: usize,
        #[serde(default = "three")]
        widths: Vec<usize>,
        #[serde(default = "of::<64>")]
        channels: usize,
        #[serde(default = "of::<64>")]
        attention_size: usize,
    },
}

fn of<const N: usize>() -> usize {
    N
}

fn three() -> Vec<usize> {
    vec![3]
}

impl Default for Config {
    fn default() -> Config {
        Config {
            context: Context::Recurrent,
            vocab_size: 30_000,
            embedding_size: 100,
            frozen_embeddings: false,
            unk_token_id: 3,
            word_dropout: 0.0,
            alphabet_size: 0,
            characters: None,
            hidden_size: 128,
            num_layers: 1,
            widths: vec![3, 4, 5],
            channels: 100,
            embedding_dropout: 0.0,
            dropout: 0.0,
            classifier_dropout: 0.0,
            pooling: "attention".into(),
            attention_size: 100,
        }
    }
}

impl Config {
    /// Reads the `config.json` of a recurrent model.
    pub(crate) fn bilstm(json: &Value) -> Result<Config, String> {
        Config::read(json, Context::Recurrent)
    }

    /// Reads the `config.json` of a convolutional model.
    pub(crate) fn cnn(json: &Value) -> Result<Config, String> {
        Config::read(json, Context::Windows)
    }

    fn read(json: &Value, context: Context) -> Result<Config, String> {
        let config = Config { context, ..crate::parse(json)? };
        config.check()?;
        Ok(config)
    }

    pub(super) fn family(&self) -> &'static Family {
        match self.context {
            Context::Recurrent => &BILSTM,
            Context::Windows => &CNN,
        }
    }

    /// Width of a word's vector: its embedding, and the encoding of its characters.
    pub(super) fn input(&self) -> usize {
        self.embedding_size + self.characters.as_ref().map_or(0, Characters::width)
    }

    /// Width of the context encoder's output.
    pub(super) fn width(&self) -> usize {
        match self.context {
            Context::Recurrent => 2 * self.hidden_size,
            Context::Windows => self.widths.len() * self.channels,
        }
    }

    pub(super) fn pool(&self) -> Result<Pool, String> {
        Ok(match self.pooling.as_str() {
            "attention" => Pool::Attention { hidden: self.attention_size },
            "mean" => Pool::Mean,
            "max" => Pool::Max,
            "last" => Pool::Last { both_ways: self.context == Context::Recurrent },
            other => {
                return Err(format!("pooling: got {other:?}, need attention, mean, max or last"));
            }
        })
    }

    fn check(&self) -> Result<(), String> {
        let words = ("vocab_size", self.vocab_size);
        let table = ("embedding_size", self.embedding_size);
        sizes::check(&[words, ("attention_size", self.attention_size)])?;
        if table.1 > 0 {
            sizes::check(&[table])?;
            sizes::check_matrices(&[[words, table]])?;
        }
        if self.frozen_embeddings && table.1 == 0 {
            return Err("frozen_embeddings: got true without word embeddings".into());
        }
        match &self.characters {
            Some(characters) => characters.check(self.alphabet_size)?,
            None if table.1 == 0 => {
                return Err("embedding_size: got 0, need at least 1, or set characters".into());
            }
            None => {}
        }
        let input = ("a word's vector", self.input());
        match self.context {
            Context::Recurrent => {
                let state = ("hidden_size", self.hidden_size);
                sizes::check(&[state, ("num_layers", self.num_layers)])?;
                // Four gates, and both directions below the second layer.
                let gates = (state.0, 8 * state.1);
                sizes::check_matrices(&[[state, gates], [input, gates]])?;
            }
            Context::Windows => check_windows(&self.widths, input, ("channels", self.channels))?,
        }
        let attention = ("attention_size", self.attention_size);
        sizes::check_matrices(&[[("the width", self.width()), attention]])?;
        sizes::check_shares(&[
            ("word_dropout", self.word_dropout),
            ("embedding_dropout", self.embedding_dropout),
            ("dropout", self.dropout),
            ("classifier_dropout", self.classifier_dropout),
        ])?;
        sizes::check_ids(&[("unk_token_id", self.unk_token_id)], self.vocab_size)?;
        self.pool().map(|_| ())
    }
}

fn check_windows(
    widths: &[usize],
    (what, input): (&str, usize),
    channels: (&str, usize),
) -> Result<(), String> {
    sizes::check(&[(what, input), channels])?;
    if widths.is_empty() || widths.len() > WIDEST_WINDOW {
        let got = widths.len();
        return Err(format!("widths: got {got} of them, need 1 to {WIDEST_WINDOW}"));
    }
    for width in widths {
        if !(1..=WIDEST_WINDOW).contains(width) {
            return Err(format!("widths: got {width}, need 1 to {WIDEST_WINDOW}"));
        }
        sizes::check_matrices(&[[(what, width * input), channels]])?;
    }
    Ok(())
}

impl Characters {
    /// Width of the character encoder's output.
    pub(super) fn width(&self) -> usize {
        match self {
            Characters::Lstm { hidden_size, .. } => 2 * hidden_size,
            Characters::Cnn { widths, channels, .. }
            | Characters::Attention { widths, channels, .. } => widths.len() * channels,
        }
    }

    pub(super) fn embedding_size(&self) -> usize {
        match self {
            Characters::Lstm { embedding_size, .. }
            | Characters::Cnn { embedding_size, .. }
            | Characters::Attention { embedding_size, .. } => *embedding_size,
        }
    }

    fn check(&self, alphabet_size: usize) -> Result<(), String> {
        let letters = ("alphabet_size", alphabet_size);
        let input = ("characters.embedding_size", self.embedding_size());
        sizes::check(&[letters, input])?;
        sizes::check_matrices(&[[letters, input]])?;
        match self {
            Characters::Lstm { hidden_size, .. } => {
                let state = ("characters.hidden_size", *hidden_size);
                sizes::check(&[state])?;
                let gates = (state.0, 8 * state.1);
                sizes::check_matrices(&[[state, gates], [input, gates]])
            }
            Characters::Cnn { widths, channels, .. } => {
                check_windows(widths, input, ("characters.channels", *channels))
            }
            Characters::Attention { widths, channels, attention_size, .. } => {
                check_windows(widths, input, ("characters.channels", *channels))?;
                let hidden = ("characters.attention_size", *attention_size);
                sizes::check(&[hidden])?;
                sizes::check_matrices(&[[("characters", self.width()), hidden]])
            }
        }
    }
}
