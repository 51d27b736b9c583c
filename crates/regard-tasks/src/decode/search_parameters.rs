//! Search settings of a request, which override the model's own.

use super::{EarlyStopping, Options};
use crate::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of a search, with the names of Hugging Face `generate`; missing ones are the model's
/// own (`generation_config.json`). See [`Options`] for details.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SearchParameters {
    /// Number of beams; 1 is greedy search, or sampling.
    pub num_beams: Option<usize>,
    /// Exponent of the length by which scores are divided; above 0 favours long results.
    pub length_penalty: Option<f32>,
    /// Condition for stopping a beam search: false, true or "never".
    pub early_stopping: Option<EarlyStopping>,
    /// Factor of the number of finished hypotheses to keep, `num_beams · patience`.
    pub patience: Option<f32>,
    /// Size of n-grams that must not occur twice; 0 to allow all.
    pub no_repeat_ngram_size: Option<usize>,
    /// Penalty of tokens that have occurred: above 1 makes them less likely.
    pub repetition_penalty: Option<f32>,
    /// Penalty of tokens that were generated before: subtracted from their logits. The prompt does
    /// not count.
    pub presence_penalty: Option<f32>,
    /// Penalty of tokens that were generated before: subtracted from their logits as often as they
    /// were.
    pub frequency_penalty: Option<f32>,
    /// Minimum length of a result, in tokens.
    pub min_length: Option<usize>,
    /// Minimum number of tokens to generate, not counting the prompt: no end token and no stop
    /// comes before.
    pub min_new_tokens: Option<usize>,
    /// Maximum length of a result, in tokens; overrides `max_length` and `max_new_tokens` of the
    /// model.
    pub max_length: Option<usize>,
    /// Maximum number of tokens to generate, not counting the prompt.
    pub max_new_tokens: Option<usize>,
    /// Number of results for each input; also called `n`.
    #[serde(alias = "n")]
    pub num_return_sequences: Option<usize>,
    /// Weight of the coverage penalty: above 0 favours results that attend to the whole source.
    pub coverage_penalty: Option<f32>,
    /// Whether to sample tokens instead of taking the best.
    pub do_sample: Option<bool>,
    /// Sampling temperature: logits are divided by it. 0 takes the best token.
    pub temperature: Option<f32>,
    /// Number of most likely tokens to sample from; 0 for all.
    pub top_k: Option<usize>,
    /// Probability mass of the most likely tokens to sample from (nucleus sampling); 1 for all.
    pub top_p: Option<f32>,
    /// Minimum probability of tokens to sample from, as a fraction of the most likely one's; 0 for
    /// all.
    pub min_p: Option<f32>,
    /// Probability mass of the tokens to sample from whose information is nearest to the entropy
    /// (typical sampling); 1 for all.
    pub typical_p: Option<f32>,
    /// Seed of sampling: samples are a function of it, the index of the input and the step.
    pub seed: Option<u64>,
}

impl SearchParameters {
    /// Returns a model's options, overridden by these.
    ///
    /// # Errors
    /// If an option is invalid, alone or with others.
    pub fn over(&self, model: &Options) -> Result<Options> {
        if let (Some(least), Some(most)) = (self.min_length, self.max_length)
            && least > most
        {
            return Err(Error::invalid(format!("min_length {least} is above max_length {most}")));
        }
        if let (Some(least), Some(most)) = (self.min_new_tokens, self.max_new_tokens)
            && least > most
        {
            let message = format!("min_new_tokens {least} is above max_new_tokens {most}");
            return Err(Error::invalid(message));
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
        put(&mut options.presence_penalty, self.presence_penalty);
        put(&mut options.frequency_penalty, self.frequency_penalty);
        put(&mut options.min_length, self.min_length);
        put(&mut options.min_new_tokens, self.min_new_tokens);
        put(&mut options.num_return_sequences, self.num_return_sequences);
        put(&mut options.coverage_penalty, self.coverage_penalty);
        put(&mut options.do_sample, self.do_sample);
        put(&mut options.temperature, self.temperature.filter(|temperature| *temperature != 0.0));
        if self.temperature == Some(0.0) {
            options.do_sample = false;
            let (results, beams) = (options.num_return_sequences, options.num_beams);
            if results > beams {
                return Err(Error::invalid(format!(
                    "num_return_sequences: got {results}, but temperature 0 takes the best token \
                     and does not sample; need at most num_beams = {beams}, or a temperature above 0"
                )));
            }
        }
        put(&mut options.top_k, self.top_k);
        put(&mut options.top_p, self.top_p);
        put(&mut options.min_p, self.min_p);
        put(&mut options.typical_p, self.typical_p);
        put(&mut options.seed, self.seed);
        if let Some(length) = self.max_length {
            options.max_length = length;
            options.max_new_tokens = None;
            options.min_length = options.min_length.min(length);
        }
        options.max_new_tokens = self.max_new_tokens.or(options.max_new_tokens);
        if let (Some(most), None) = (self.max_new_tokens, self.min_new_tokens) {
            options.min_new_tokens = options.min_new_tokens.min(most);
        }
        options.check()?;
        Ok(options)
    }

    /// Refuses settings that a task does not have.
    ///
    /// # Errors
    /// With the name of a setting of `names` that was given.
    pub fn refuse(&self, names: &[&str]) -> Result<()> {
        let given = [
            ("max_length", self.max_length.is_some()),
            ("max_new_tokens", self.max_new_tokens.is_some()),
            ("min_length", self.min_length.is_some()),
            ("min_new_tokens", self.min_new_tokens.is_some()),
            ("num_return_sequences", self.num_return_sequences.is_some()),
        ];
        match given.iter().find(|(name, given)| *given && names.contains(name)) {
            Some((name, _)) => Err(Error::invalid(format!("{name}: not supported by this task"))),
            None => Ok(()),
        }
    }

    /// Returns the names of settings that have no effect because these options do not sample.
    pub fn idle(&self, options: &Options) -> Vec<&'static str> {
        let given = [
            ("temperature", self.temperature.is_some_and(|temperature| temperature != 0.0)),
            ("top_k", self.top_k.is_some()),
            ("top_p", self.top_p.is_some()),
            ("min_p", self.min_p.is_some()),
            ("typical_p", self.typical_p.is_some()),
        ];
        let idle = given.iter().filter(|(_, given)| *given && !options.do_sample);
        idle.map(|(name, _)| *name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_results_at_temperature_0_are_refused_with_the_reason() {
        let asked = SearchParameters {
            do_sample: Some(true),
            temperature: Some(0.0),
            num_return_sequences: Some(3),
            ..SearchParameters::default()
        };
        let error = asked.over(&Options::default()).unwrap_err().to_string();
        assert!(error.contains("got 3, but temperature 0 takes the best token"), "{error}");
        let beams = SearchParameters { num_beams: Some(3), ..asked };
        assert!(!beams.over(&Options::default()).unwrap().do_sample);
    }
}
