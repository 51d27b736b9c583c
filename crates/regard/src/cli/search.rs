//! Flags of the decoding search.

use super::inputs::note;
use anyhow::{Result, bail};
use clap::Args;
use regard_tasks::decode::{EarlyStopping, Options, SearchParameters};

/// Heading of these flags in `--help`.
const SEARCH: &str = "Decoding, named as in Hugging Face generate [default: the model's settings]";

/// Flags of the search; an absent flag keeps the model's generation_config.json.
#[derive(Args)]
#[command(next_help_heading = SEARCH)]
pub struct Search {
    /// Number of beams; 1 is greedy search
    #[arg(long, value_name = "N")]
    num_beams: Option<usize>,
    /// Length penalty: above 0 favours longer texts
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    length_penalty: Option<f32>,
    /// Stopping rule of beam search: `false`, `true` or `never`
    #[arg(long, value_name = "WHEN")]
    early_stopping: Option<EarlyStopping>,
    /// Patience: beam search may stop after X times num-beams finished hypotheses
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    patience: Option<f32>,
    /// Forbid repeated n-grams of this size; 0 allows all
    #[arg(long, value_name = "N")]
    no_repeat_ngram_size: Option<usize>,
    /// Repetition penalty: above 1 makes earlier tokens less probable
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    repetition_penalty: Option<f32>,
    /// Minimum length in tokens, including BOS
    #[arg(long, value_name = "N")]
    min_length: Option<usize>,
    /// Maximum length in tokens, including BOS (or the prompt) and EOS
    #[arg(long, value_name = "N")]
    max_length: Option<usize>,
    /// Number of results per text
    #[arg(long, value_name = "N")]
    pub num_return_sequences: Option<usize>,
    /// Sample tokens instead of taking the best, seeded by --seed
    #[arg(long)]
    do_sample: bool,
    /// Sampling temperature; below 1 favours probable tokens
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    temperature: Option<f32>,
    /// Sample among the N most probable tokens; 0 is all
    #[arg(long, value_name = "N")]
    top_k: Option<usize>,
    /// Sample among the most probable tokens whose probabilities sum to P
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    top_p: Option<f32>,
    /// Sample among tokens with at least P times the highest probability
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    min_p: Option<f32>,
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
            min_length: self.min_length,
            max_length: self.max_length,
            num_return_sequences: self.num_return_sequences,
            do_sample: self.do_sample.then_some(true),
            temperature: self.temperature,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
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
