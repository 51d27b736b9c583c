//! Options of the search.

use crate::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of beams: each has a copy of the decoder's state.
const MOST_BEAMS: usize = 1 << 10;
/// Maximum length, in tokens.
const LONGEST: usize = 1 << 20;

/// Options of a search. Names and defaults are those of Hugging Face `generate`, or of CTranslate2
/// for options that only it has (`patience`, `coverage_penalty`).
///
/// Lengths are counted as in `generate`: including the start token (or the prompt) and the end
/// token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Number of beams; 1 is greedy search, or sampling.
    pub num_beams: usize,
    /// Exponent of the length by which scores are divided, `length^length_penalty`: above 0 favours
    /// long sentences.
    pub length_penalty: f32,
    /// Condition for stopping a beam search.
    pub early_stopping: EarlyStopping,
    /// `num_beams · patience` finished hypotheses are kept, and stopping is considered only once
    /// there are as many (Kasai et al. 2022).
    pub patience: f32,
    /// Size of n-grams that must not occur twice; 0 to allow all.
    pub no_repeat_ngram_size: usize,
    /// Penalty of tokens that have occurred: above 1 makes them less likely (Keskar et al. 2019,
    /// sec. 4.1).
    pub repetition_penalty: f32,
    /// Subtracted from the logit of a token that was generated before (of OpenAI and vLLM; the
    /// prompt does not count).
    pub presence_penalty: f32,
    /// Subtracted from the logit of a token as often as it was generated before.
    pub frequency_penalty: f32,
    /// Minimum length: the end token is not generated before.
    pub min_length: usize,
    /// Minimum number of tokens after the prompt and the prefix: no end token, and no stop, comes
    /// before.
    pub min_new_tokens: usize,
    /// Maximum length. 256 by default, as in CTranslate2; in `generate` it is 20 unless the model's
    /// configuration sets it.
    pub max_length: usize,
    /// Maximum number of tokens after the prompt and the prefix; if given, `max_length`,
    /// `max_len_a` and `max_len_b` are ignored.
    pub max_new_tokens: Option<usize>,
    /// `a` of the maximum length relative to the source, `⌈a·source⌉ + b`, as in fairseq. If `a` or
    /// `b` is not 0, a sentence stops there or at `max_length`, whichever comes first.
    pub max_len_a: f32,
    /// `b` of `⌈a·source⌉ + b`.
    pub max_len_b: usize,
    /// Number of hypotheses, or of samples if sampling, to return for each sentence.
    pub num_return_sequences: usize,
    /// Weight `β` of the coverage penalty `β·Σ_j ln(min(Σ_t a_tj, 1))`, added to the score of a
    /// finished hypothesis so that it attends to the whole source (Wu et al. 2016, eq. 14). 0 for
    /// none.
    pub coverage_penalty: f32,
    /// Whether tokens are sampled, rather than the best taken.
    pub do_sample: bool,
    /// Sampling temperature: logits are divided by it.
    pub temperature: f32,
    /// Number of most likely tokens to sample from; 0 for all.
    pub top_k: usize,
    /// Probability mass of the most likely tokens to sample from (nucleus sampling); 1 for all.
    pub top_p: f32,
    /// Minimum probability of tokens to sample from, as a fraction of the most likely one's; 0 for
    /// all.
    pub min_p: f32,
    /// Probability mass of the tokens to sample from whose information is nearest to the expected
    /// one, the entropy (Meister et al. 2023); 1 for all.
    pub typical_p: f32,
    /// Seed of sampling: samples are a function of it, the index of the sentence and the step.
    pub seed: u64,
    /// Tokens that are never generated.
    pub suppress_tokens: Vec<u32>,
    /// Numbers added to the logits of tokens, before all penalties.
    #[serde(skip)]
    pub logit_bias: Vec<(u32, f32)>,
    /// Tokens that end a sentence besides the model's own end tokens.
    #[serde(skip)]
    pub stop_token_ids: Vec<u32>,
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
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            min_length: 0,
            min_new_tokens: 0,
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
            typical_p: 1.0,
            seed: 0,
            suppress_tokens: Vec::new(),
            logit_bias: Vec::new(),
            stop_token_ids: Vec::new(),
        }
    }
}

/// Condition for stopping a beam search once enough hypotheses are finished: `false`, `true` or
/// `"never"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "FlagOrWord", into = "FlagOrWord")]
pub enum EarlyStopping {
    /// Stop when the best running hypothesis, ended now, would not be among the finished ones kept.
    #[default]
    False,
    /// Stop as soon as enough hypotheses are finished.
    True,
    /// Stop when no running hypothesis could be among those kept, however it continued.
    Never,
}

/// Serialised form of [`EarlyStopping`].
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "need false, true or \"never\"")]
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
            _ => Err(format!("got \"{word}\", need false, true or \"never\"")),
        }
    }
}

impl Options {
    /// Reads `generation_config.json`; keys that only other libraries use are ignored.
    pub fn from_bytes(bytes: &[u8]) -> Result<Options> {
        super::generation::read(bytes).map_err(Error::Invalid)
    }

    /// Checks that the options are valid, each and together.
    ///
    /// # Errors
    /// The first invalid option, with its value and what is expected.
    pub fn check(&self) -> Result<()> {
        let rows: &[Row] = &[
            counted("num_beams", self.num_beams, 1..=MOST_BEAMS, "1 to 1024"),
            counted("min_length", self.min_length, 0..=LONGEST, "0 to 1048576"),
            counted("min_new_tokens", self.min_new_tokens, 0..=LONGEST, "0 to 1048576"),
            counted("max_length", self.max_length, 0..=LONGEST, "0 to 1048576"),
            counted("max_len_b", self.max_len_b, 0..=LONGEST, "0 to 1048576"),
            counted("no_repeat_ngram_size", self.no_repeat_ngram_size, 0..=LONGEST, "0 to 1048576"),
            positive("temperature", self.temperature),
            positive("repetition_penalty", self.repetition_penalty),
            finite("presence_penalty", self.presence_penalty),
            finite("frequency_penalty", self.frequency_penalty),
            positive("patience", self.patience),
            (self.patience <= 1024.0, "patience", self.patience.to_string(), "at most 1024"),
            finite("length_penalty", self.length_penalty),
            at_least_zero("coverage_penalty", self.coverage_penalty),
            at_least_zero("max_len_a", self.max_len_a),
            (self.max_len_a <= 1024.0, "max_len_a", self.max_len_a.to_string(), "at most 1024"),
            share("top_p", self.top_p),
            share("min_p", self.min_p),
            (
                self.typical_p > 0.0 && self.typical_p <= 1.0,
                "typical_p",
                self.typical_p.to_string(),
                "a number above 0, at most 1",
            ),
            finite("logit_bias", self.odd_bias()),
            counted(
                "max_new_tokens",
                self.max_new_tokens.unwrap_or(1),
                1..=LONGEST,
                "1 to 1048576, or leave it out",
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
            Some((_, name, got, need)) => {
                Err(Error::invalid(format!("{name}: got {got}, need {need}")))
            }
        }
    }

    /// Whether results are independent samples (not a beam).
    pub(super) fn samples(&self) -> bool {
        self.do_sample && self.num_beams == 1
    }

    /// Returns the first bias that is not finite, or 0.
    fn odd_bias(&self) -> f32 {
        let not_finite = self.logit_bias.iter().find(|(_, bias)| !bias.is_finite());
        not_finite.map_or(0.0, |(_, bias)| *bias)
    }

    /// Returns the number of finished hypotheses to keep.
    pub(super) fn kept(&self) -> usize {
        ((self.num_beams as f32 * self.patience).round() as usize).max(self.num_return_sequences)
    }

    /// Computes `length^length_penalty`, with length 0 counted as 1.
    pub(super) fn divisor(&self, length: usize) -> f32 {
        (length.max(1) as f64).powf(f64::from(self.length_penalty)) as f32
    }
}

/// Whether the option is valid, its name, its value, what it needs.
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
