//! The keys of `config.json` for models of words.

use super::{BILSTM, CNN};
use crate::sizes;
use crate::text::Family;
use regard_attention::layers::Pool;
use serde::Deserialize;
use serde_json::Value;

/// No window is wider: it would hold more rows than a sentence has words.
const WIDEST_WINDOW: usize = 64;

/// How words become vectors, and what reads them.
#[derive(Clone, Debug, Deserialize)]
#[serde(default)]
pub struct Config {
    #[serde(skip)]
    pub(super) context: Context,
    pub(super) vocab_size: usize,
    /// Width of a word's vector in the table; 0 for no table.
    pub(super) embedding_size: usize,
    /// Whether the table stays as it is.
    pub(super) frozen_embeddings: bool,
    pub(super) unk_token_id: u32,
    /// The share of words that are unknown in training.
    pub(super) word_dropout: f32,
    /// Letters, with those that are none.
    pub(super) alphabet_size: usize,
    /// What reads the letters of a word, if something does.
    pub(super) characters: Option<Characters>,
    /// Width of a state, in each direction.
    pub(super) hidden_size: usize,
    pub(super) num_layers: usize,
    /// Widths of windows, in words.
    pub(super) widths: Vec<usize>,
    /// Numbers that each width of windows gives.
    pub(super) channels: usize,
    /// Of what words are read with.
    pub(super) embedding_dropout: f32,
    /// Between recurrent layers.
    pub(super) dropout: f32,
    /// Before the labels.
    pub(super) classifier_dropout: f32,
    /// How the words of a text become one vector.
    pub(super) pooling: String,
    /// The width in which the query of attention and words meet.
    pub(super) attention_size: usize,
}

/// What reads words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Context {
    #[default]
    Recurrent,
    Windows,
}

/// What reads the letters of a word.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum Characters {
    /// Windows of letters, and the largest number of each.
    Cnn {
        #[serde(default = "of::<32>")]
        embedding_size: usize,
        #[serde(default = "three")]
        widths: Vec<usize>,
        #[serde(default = "of::<64>")]
        channels: usize,
    },
    /// Recurrent layers both ways, and their last states.
    Lstm {
        #[serde(default = "of::<32>")]
        embedding_size: usize,
        #[serde(default = "of::<32>")]
        hidden_size: usize,
    },
    /// Windows of letters, pooled by attention.
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
    /// From the `config.json` of a model with recurrent layers.
    pub(crate) fn bilstm(json: &Value) -> Result<Config, String> {
        Config::read(json, Context::Recurrent)
    }

    /// From that of one with windows.
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

    /// The width of a word's vector: that of the table, and that of its letters behind it.
    pub(super) fn input(&self) -> usize {
        self.embedding_size + self.characters.as_ref().map_or(0, Characters::width)
    }

    /// The width of what is said of a word in its text.
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
            return Err("frozen_embeddings: there is no table, embedding_size is 0".into());
        }
        match &self.characters {
            Some(characters) => characters.check(self.alphabet_size)?,
            None if table.1 == 0 => {
                return Err("embedding_size: got 0, need a table or characters".into());
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
    /// The width of what is made of a word's letters.
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
