//! Flags of the decoding search.

use super::inputs::note;
use anyhow::{Result, bail};
use clap::Args;
use regard_tasks::decode::{EarlyStopping, Options, SearchParameters};

/// Headings of these flags in `--help`.
pub const LENGTH: &str = "Length and number of results";
const BEAMS: &str = "Beam search";
const SAMPLING: &str = "Sampling, in this order: temperature, top-k, top-p, min-p, typical-p";
pub const PENALTIES: &str = "Penalties, also without sampling";

/// Flags of the search; an absent flag keeps the model's generation_config.json.
#[derive(Args)]
pub struct Search {
    /// Minimum length in tokens, including BOS (or the prompt)
    #[arg(long, value_name = "N", help_heading = LENGTH)]
    min_length: Option<usize>,
    /// Maximum length in tokens, including BOS (or the prompt) and EOS
    #[arg(long, value_name = "N", help_heading = LENGTH)]
    max_length: Option<usize>,
    /// Number of results per text; they share the computation of the text
    #[arg(long, visible_alias = "n", value_name = "N", help_heading = LENGTH)]
    pub num_return_sequences: Option<usize>,
    /// Sample tokens, seeded by --seed; with =false take the best token
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        help_heading = SAMPLING
    )]
    do_sample: Option<bool>,
    /// Divide logits by X; below 1 favours probable tokens, 0 takes the best one
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = SAMPLING)]
    temperature: Option<f32>,
    /// Keep the N most probable tokens; 0 is all
    #[arg(long, value_name = "N", help_heading = SAMPLING)]
    top_k: Option<usize>,
    /// Keep the most probable tokens whose probabilities sum to P
    #[arg(long, value_name = "P", allow_negative_numbers = true, help_heading = SAMPLING)]
    top_p: Option<f32>,
    /// Keep tokens with at least P times the highest probability
    #[arg(long, value_name = "P", allow_negative_numbers = true, help_heading = SAMPLING)]
    min_p: Option<f32>,
    /// Keep tokens whose information is nearest to the entropy, with probabilities that sum to P
    #[arg(long, value_name = "P", allow_negative_numbers = true, help_heading = SAMPLING)]
    typical_p: Option<f32>,
    /// Divide the logits of tokens of the text and the prompt by X if positive, else multiply
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = PENALTIES)]
    repetition_penalty: Option<f32>,
    /// Subtract X from the logits of generated tokens
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = PENALTIES)]
    presence_penalty: Option<f32>,
    /// Subtract X from the logits of generated tokens for each time
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = PENALTIES)]
    frequency_penalty: Option<f32>,
    /// Forbid repeated n-grams of this size; 0 allows all
    #[arg(long, value_name = "N", help_heading = PENALTIES)]
    no_repeat_ngram_size: Option<usize>,
    /// Number of beams; 1 is greedy search, or sampling
    #[arg(long, value_name = "N", help_heading = BEAMS)]
    num_beams: Option<usize>,
    /// Length penalty: above 0 favours longer texts
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = BEAMS)]
    length_penalty: Option<f32>,
    /// Stopping rule: `false`, `true` or `never`
    #[arg(long, value_name = "WHEN", help_heading = BEAMS)]
    early_stopping: Option<EarlyStopping>,
    /// Patience: stop after X times num-beams finished hypotheses
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = BEAMS)]
    patience: Option<f32>,
}

impl Search {
    /// Returns the settings that were given, with a seed.
    ///
    /// # Errors
    /// If two of the flags contradict each other.
    pub fn parameters(&self, model: &Options, seed: Option<u64>) -> Result<SearchParameters> {
        if let (Some(least), Some(most)) = (self.min_length, self.max_length)
            && least > most
        {
            bail!("--min-length {least} is above --max-length {most}");
        }
        let parameters = SearchParameters {
            num_beams: self.num_beams,
            length_penalty: self.length_penalty,
            early_stopping: self.early_stopping,
            patience: self.patience,
            no_repeat_ngram_size: self.no_repeat_ngram_size,
            repetition_penalty: self.repetition_penalty,
            presence_penalty: self.presence_penalty,
            frequency_penalty: self.frequency_penalty,
            min_length: self.min_length,
            max_length: self.max_length,
            num_return_sequences: self.num_return_sequences,
            do_sample: self.do_sample,
            temperature: self.temperature,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            typical_p: self.typical_p,
            seed,
            ..SearchParameters::default()
        };
        let idle = parameters.idle(&parameters.over(model)?);
        if !idle.is_empty() {
            let flags: Vec<String> =
                idle.iter().map(|name| format!("--{}", name.replace('_', "-"))).collect();
            note(&format!("without --do-sample, these have no effect: {}", flags.join(", ")));
        }
        Ok(parameters)
    }
}
