//! Settings of a search that a caller gives in place of a model's own.

use super::{EarlyStopping, Options};
use crate::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of a search, with the names of Hugging Face `generate`; those that are left out are the
/// model's own (`generation_config.json`). See [`Options`] for their meaning.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SearchParameters {
    /// Hypotheses that are followed at once; 1 is greedy search, or sampling.
    pub num_beams: Option<usize>,
    /// Scores are divided by `length^length_penalty`.
    pub length_penalty: Option<f32>,
    /// When a beam search may stop: false, true or "never".
    pub early_stopping: Option<EarlyStopping>,
    /// `num_beams · patience` finished hypotheses are kept.
    pub patience: Option<f32>,
    /// Sequences of this many tokens do not occur twice; 0 for no such rule.
    pub no_repeat_ngram_size: Option<usize>,
    /// Above 1, tokens that have occurred become less likely.
    pub repetition_penalty: Option<f32>,
    /// Tokens of a result at least.
    pub min_length: Option<usize>,
    /// Tokens of a result at most, whatever else the model says of lengths.
    pub max_length: Option<usize>,
    /// Tokens to generate at most, beside the prompt's.
    pub max_new_tokens: Option<usize>,
    /// Results for each input.
    pub num_return_sequences: Option<usize>,
    /// Above 0, the whole source should be attended to.
    pub coverage_penalty: Option<f32>,
    /// Draw tokens at random instead of taking the best.
    pub do_sample: Option<bool>,
    /// Logits are divided by it before a token is drawn.
    pub temperature: Option<f32>,
    /// Draw from this many of the best tokens; 0 for all.
    pub top_k: Option<usize>,
    /// Draw from the best tokens that together have this probability; 1 for all.
    pub top_p: Option<f32>,
    /// Draw from tokens with this share of the best one's probability; 0 for all.
    pub min_p: Option<f32>,
    /// Seed of sampling; with the number of the input and the step it decides what is drawn.
    pub seed: Option<u64>,
}

impl SearchParameters {
    /// A model's options with these in place of its own.
    ///
    /// # Errors
    /// If they cannot be, alone or together.
    pub fn over(&self, model: &Options) -> Result<Options> {
        if let (Some(least), Some(most)) = (self.min_length, self.max_length)
            && least > most
        {
            return Err(Error::invalid(format!("min_length {least} is above max_length {most}")));
        }
        let mut options = model.clone();
        fn put<T: Copy>(place: &mut T, given: Option<T>) {
            *place = given.unwrap_or(*place);
        }
        put(&mut options.num_beams, self.num_beams);
        put(&mut options.length_penalty, self.length_penalty);
        put(&mut options.early_stopping, self.early_stopping);
        put(&mut options.patience, self.patience);
        put(&mut options.no_repeat_ngram_size, self.no_repeat_ngram_size);
        put(&mut options.repetition_penalty, self.repetition_penalty);
        put(&mut options.min_length, self.min_length);
        put(&mut options.num_return_sequences, self.num_return_sequences);
        put(&mut options.coverage_penalty, self.coverage_penalty);
        put(&mut options.do_sample, self.do_sample);
        put(&mut options.temperature, self.temperature);
        put(&mut options.top_k, self.top_k);
        put(&mut options.top_p, self.top_p);
        put(&mut options.min_p, self.min_p);
        put(&mut options.seed, self.seed);
        if let Some(length) = self.max_length {
            options.max_length = length;
            options.max_new_tokens = None;
            options.min_length = options.min_length.min(length);
        }
        options.max_new_tokens = self.max_new_tokens.or(options.max_new_tokens);
        options.check()?;
        Ok(options)
    }

    /// Settings that have no effect, because nothing is sampled with these options.
    pub fn idle(&self, options: &Options) -> Vec<&'static str> {
        let given = [
            ("temperature", self.temperature.is_some()),
            ("top_k", self.top_k.is_some()),
            ("top_p", self.top_p.is_some()),
            ("min_p", self.min_p.is_some()),
        ];
        let idle = given.iter().filter(|(_, given)| *given && !options.do_sample);
        idle.map(|(name, _)| *name).collect()
    }
}
