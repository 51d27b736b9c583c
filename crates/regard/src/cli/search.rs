//! How to search, as flags.

use super::inputs::note;
use anyhow::{Result, bail};
use clap::Args;
use regard_tasks::decode::{EarlyStopping, Options, SearchParameters};

/// Where help lists them.
const SEARCH: &str = "Search, named as in Hugging Face generate [default: what the model says]";

/// What may be asked of the search; what is not given is as the model likes it.
#[derive(Args)]
#[command(next_help_heading = SEARCH)]
pub struct Search {
    /// Hypotheses that are followed at once; 1 is greedy search
    #[arg(long, value_name = "N")]
    num_beams: Option<usize>,
    /// Above 0 favours long texts
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    length_penalty: Option<f32>,
    /// When beams may stop: false, true or never
    #[arg(long, value_name = "WHEN")]
    early_stopping: Option<EarlyStopping>,
    /// Wait for so many times as many finished hypotheses
    #[arg(long, value_name = "X")]
    patience: Option<f32>,
    /// Sequences of so many tokens do not occur twice
    #[arg(long, value_name = "N")]
    no_repeat_ngram_size: Option<usize>,
    /// Above 1, what was said becomes less likely
    #[arg(long, value_name = "X")]
    repetition_penalty: Option<f32>,
    /// Tokens of a text at least, with its start
    #[arg(long, value_name = "N")]
    min_length: Option<usize>,
    /// Tokens of a text at most, with its start (or its prompt) and end
    #[arg(long, value_name = "N")]
    max_length: Option<usize>,
    /// Results for each text
    #[arg(long, value_name = "N")]
    pub num_return_sequences: Option<usize>,
    /// Draw words at random, by --seed
    #[arg(long)]
    do_sample: bool,
    /// Below 1 draws likely words more often
    #[arg(long, value_name = "X")]
    temperature: Option<f32>,
    /// Draw among so many best tokens; 0 for all
    #[arg(long, value_name = "N")]
    top_k: Option<usize>,
    /// Draw among the best that have this probability together
    #[arg(long, value_name = "P")]
    top_p: Option<f32>,
    /// Draw among those with this share of the best one's probability
    #[arg(long, value_name = "P")]
    min_p: Option<f32>,
}

impl Search {
    /// The settings that were given, with a seed.
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
