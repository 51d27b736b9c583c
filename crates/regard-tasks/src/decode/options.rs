//! What a person may ask of the search.

use crate::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hypotheses at most: each has a copy of all that the decoder remembers.
const MOST_BEAMS: usize = 1 << 10;
/// Tokens at most.
const LONGEST: usize = 1 << 20;

/// How to search. The names and the defaults are those of Hugging Face `generate`, and of
/// CTranslate2 for what only that has (`patience`, `coverage_penalty`).
///
/// Lengths are counted as in `generate`: with the token that starts a sentence (or its prompt),
/// and with the one that ends it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Hypotheses that are followed at once; 1 is greedy search, or sampling.
    pub num_beams: usize,
    /// Scores are divided by `length^length_penalty`: above 0 favours long sentences.
    pub length_penalty: f32,
    /// When a beam search may stop.
    pub early_stopping: EarlyStopping,
    /// `num_beams · patience` finished hypotheses are kept, and stopping is considered only once
    /// there are as many (Kasai et al. 2022).
    pub patience: f32,
    /// Sequences of this many tokens do not occur twice; 0 for no such rule.
    pub no_repeat_ngram_size: usize,
    /// Above 1, tokens that have occurred become less likely (Keskar et al. 2019, sec. 4.1).
    pub repetition_penalty: f32,
    /// A sentence does not end before it has this length.
    pub min_length: usize,
    /// A sentence stops at this length. 256 by default, as in CTranslate2; in `generate` it is 20
    /// unless the model says otherwise.
    pub max_length: usize,
    /// Tokens to generate after the prompt and the prefix; if given, `max_length` and its relation
    /// to the source do not count.
    pub max_new_tokens: Option<usize>,
    /// `a` of the length that is allowed by the length of the source, `⌈a·source⌉ + b`, as in
    /// fairseq. If either is not 0, a sentence stops there or at `max_length`, whichever is first.
    pub max_len_a: f32,
    /// `b` of `⌈a·source⌉ + b`.
    pub max_len_b: usize,
    /// Hypotheses to return for each sentence; as many samples, if sampling.
    pub num_return_sequences: usize,
    /// `β` of `β·Σ_j ln(min(Σ_t a_tj, 1))`, which is added to the score of a finished hypothesis: it
    /// should have looked at the whole source (Wu et al. 2016, eq. 14). 0 for none.
    pub coverage_penalty: f32,
    /// Whether tokens are drawn at random, rather than the best taken.
    pub do_sample: bool,
    /// Logits are divided by it before a token is drawn.
    pub temperature: f32,
    /// Only this many of the best tokens are drawn from; 0 for all.
    pub top_k: usize,
    /// Only the best tokens that together have this probability are drawn from; 1 for all.
    pub top_p: f32,
    /// Only tokens with this share of the best one's probability are drawn from; 0 for all.
    pub min_p: f32,
    /// What is drawn is a function of the seed, the index of the sentence and the step.
    pub seed: u64,
    /// Tokens that are never generated.
    pub suppress_tokens: Vec<u32>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            num_beams: 1,
            length_penalty: 1.0,
            early_stopping: EarlyStopping::False,
            patience: 1.0,
            no_repeat_ngram_size: 0,
            repetition_penalty: 1.0,
            min_length: 0,
            max_length: 256,
            max_new_tokens: None,
            max_len_a: 0.0,
            max_len_b: 0,
            num_return_sequences: 1,
            coverage_penalty: 0.0,
            do_sample: false,
            temperature: 1.0,
            top_k: 50,
            top_p: 1.0,
            min_p: 0.0,
            seed: 0,
            suppress_tokens: Vec::new(),
        }
    }
}

/// When a beam search may stop, once enough hypotheses are finished: `false`, `true` or `"never"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "FlagOrWord", into = "FlagOrWord")]
pub enum EarlyStopping {
    /// When the best running one would not be among them if it ended now.
    #[default]
    False,
    /// At once.
    True,
    /// When no running one could be among them, however it went on.
    Never,
}

/// How [`EarlyStopping`] is written.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum FlagOrWord {
    Flag(bool),
    Word(String),
}

impl TryFrom<FlagOrWord> for EarlyStopping {
    type Error = String;
    fn try_from(written: FlagOrWord) -> Result<EarlyStopping, String> {
        match written {
            FlagOrWord::Flag(false) => Ok(EarlyStopping::False),
            FlagOrWord::Flag(true) => Ok(EarlyStopping::True),
            FlagOrWord::Word(word) => word.parse(),
        }
    }
}

impl From<EarlyStopping> for FlagOrWord {
    fn from(value: EarlyStopping) -> FlagOrWord {
        match value {
            EarlyStopping::False => FlagOrWord::Flag(false),
            EarlyStopping::True => FlagOrWord::Flag(true),
            EarlyStopping::Never => FlagOrWord::Word("never".into()),
        }
    }
}

impl std::str::FromStr for EarlyStopping {
    type Err = String;
    fn from_str(word: &str) -> Result<EarlyStopping, String> {
        match word {
            "false" => Ok(EarlyStopping::False),
            "true" => Ok(EarlyStopping::True),
            "never" => Ok(EarlyStopping::Never),
            _ => Err(format!("early_stopping: got \"{word}\", needs false, true or \"never\"")),
        }
    }
}

impl Options {
    /// Reads `generation_config.json`; what only others know is left out.
    pub fn from_bytes(bytes: &[u8]) -> Result<Options> {
        super::generation::read(bytes).map_err(Error::Invalid)
    }

    /// Whether these can be asked for, together.
    ///
    /// # Errors
    /// The first that cannot, by its name, with what it needs.
    pub fn check(&self) -> Result<()> {
        let rows: &[Row] = &[
            counted("num_beams", self.num_beams, 1..=MOST_BEAMS, "1 to 1024"),
            counted("min_length", self.min_length, 0..=LONGEST, "0 to 1048576"),
            counted("max_length", self.max_length, 0..=LONGEST, "0 to 1048576"),
            counted("max_len_b", self.max_len_b, 0..=LONGEST, "0 to 1048576"),
            counted("no_repeat_ngram_size", self.no_repeat_ngram_size, 0..=LONGEST, "0 to 1048576"),
            positive("temperature", self.temperature),
            positive("repetition_penalty", self.repetition_penalty),
            positive("patience", self.patience),
            (self.patience <= 1024.0, "patience", self.patience.to_string(), "at most 1024"),
            finite("length_penalty", self.length_penalty),
            at_least_zero("coverage_penalty", self.coverage_penalty),
            at_least_zero("max_len_a", self.max_len_a),
            (self.max_len_a <= 1024.0, "max_len_a", self.max_len_a.to_string(), "at most 1024"),
            share("top_p", self.top_p),
            share("min_p", self.min_p),
            counted(
                "max_new_tokens",
                self.max_new_tokens.unwrap_or(1),
                1..=LONGEST,
                "1 to 1048576, or not to be given",
            ),
            counted("num_return_sequences", self.num_return_sequences, 1..=MOST_BEAMS, "1 to 1024"),
            (
                self.num_return_sequences <= self.num_beams || self.samples(),
                "num_return_sequences",
                self.num_return_sequences.to_string(),
                "at most num_beams, unless do_sample is on and num_beams is 1",
            ),
        ];
        match rows.iter().find(|row| !row.0) {
            None => Ok(()),
            Some((_, name, got, needs)) => {
                Err(Error::invalid(format!("{name}: got {got}, needs {needs}")))
            }
        }
    }

    /// Whether each result is drawn by itself.
    pub(super) fn samples(&self) -> bool {
        self.do_sample && self.num_beams == 1
    }

    /// Finished hypotheses to keep.
    pub(super) fn kept(&self) -> usize {
        ((self.num_beams as f32 * self.patience).round() as usize).max(self.num_return_sequences)
    }

    /// `length^length_penalty`, 1 for nothing.
    pub(super) fn divisor(&self, length: usize) -> f32 {
        (length.max(1) as f64).powf(f64::from(self.length_penalty)) as f32
    }
}

/// Whether it can be, its name, what was got, what it needs.
type Row = (bool, &'static str, String, &'static str);

fn counted(
    name: &'static str,
    n: usize,
    range: std::ops::RangeInclusive<usize>,
    needs: &'static str,
) -> Row {
    (range.contains(&n), name, n.to_string(), needs)
}

fn finite(name: &'static str, x: f32) -> Row {
    (x.is_finite(), name, x.to_string(), "a finite number")
}

fn positive(name: &'static str, x: f32) -> Row {
    (x > 0.0 && x.is_finite(), name, x.to_string(), "a number above 0")
}

fn at_least_zero(name: &'static str, x: f32) -> Row {
    (x >= 0.0 && x.is_finite(), name, x.to_string(), "a number from 0 on")
}

fn share(name: &'static str, x: f32) -> Row {
    ((0.0..=1.0).contains(&x), name, x.to_string(), "a number from 0 to 1")
}
