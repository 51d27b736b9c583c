//! How to search, as flags.

use super::inputs::note;
use anyhow::{Result, bail};
use clap::Args;
use regard_tasks::decode::{EarlyStopping, Options};

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
    /// What was asked for, over what the model likes.
    ///
    /// # Errors
    /// If two of the flags contradict each other.
    pub fn over(&self, model: &Options, seed: Option<u64>) -> Result<Options> {
        if let (Some(least), Some(most)) = (self.min_length, self.max_length)
            && least > most
        {
            bail!("--min-length {least} is above --max-length {most}");
        }
        let mut options = model.clone();
        fn put<T: Copy>(place: &mut T, asked: Option<T>) {
            *place = asked.unwrap_or(*place);
        }
        put(&mut options.num_beams, self.num_beams);
        put(&mut options.length_penalty, self.length_penalty);
        put(&mut options.early_stopping, self.early_stopping);
        put(&mut options.patience, self.patience);
        put(&mut options.no_repeat_ngram_size, self.no_repeat_ngram_size);
        put(&mut options.repetition_penalty, self.repetition_penalty);
        put(&mut options.min_length, self.min_length);
        put(&mut options.num_return_sequences, self.num_return_sequences);
        put(&mut options.temperature, self.temperature);
        put(&mut options.top_k, self.top_k);
        put(&mut options.top_p, self.top_p);
        put(&mut options.min_p, self.min_p);
        put(&mut options.seed, seed);
        options.do_sample |= self.do_sample;
        let idle = [
            ("--temperature", self.temperature.is_some()),
            ("--top-k", self.top_k.is_some()),
            ("--top-p", self.top_p.is_some()),
            ("--min-p", self.min_p.is_some()),
        ];
        let idle: Vec<&str> = idle.iter().filter(|row| row.1).map(|row| row.0).collect();
        if !options.do_sample && !idle.is_empty() {
            note(&format!("without --do-sample, these have no effect: {}", idle.join(", ")));
        }
        if let Some(length) = self.max_length {
            // What was asked for now, whatever else the model says of lengths.
            options.max_length = length;
            options.max_new_tokens = None;
            options.min_length = options.min_length.min(length);
        }
        Ok(options)
    }
}
