//! Scoring: the log-probability of each token of a text under a language model.

use crate::batching::{self, Cancel};
use crate::generate::{Generator, LongText, Scored, TOGETHER};
use crate::pipeline::Pipeline;
use regard_models::{Error, ModelFiles, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of a scoring request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Whether a text longer than the model's context loses its first tokens, instead of being an
    /// error.
    pub truncate: bool,
    /// Whether a text longer than the model's context is read in windows that overlap by half.
    pub windows: bool,
}

impl Parameters {
    fn long(&self) -> Result<LongText> {
        match (self.truncate, self.windows) {
            (true, true) => Err(Error::invalid("truncate and windows: need only one of them")),
            (true, false) => Ok(LongText::Truncate),
            (false, true) => Ok(LongText::Windows),
            (false, false) => Ok(LongText::Refuse),
        }
    }
}

/// Log-probability of a text under the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// Tokens of the text, as spelled in the vocabulary.
    pub tokens: Vec<String>,
    /// Natural logarithm of each token's probability given the tokens before it; null for a first
    /// token without a BOS token before it, which has no context.
    pub token_logprobs: Vec<Option<f64>>,
    /// Sum of `token_logprobs`.
    pub logprob: f64,
    /// Perplexity per token: `exp(-logprob / N)` over the N tokens that have a log-probability.
    pub perplexity: f64,
    /// Number of tokens that were cut off at the start of the text; only present if there are any.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub truncated_tokens: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl From<Scored> for Response {
    fn from(scored: Scored) -> Response {
        let logprob = scored.logprob();
        let count = scored.token_logprobs.iter().flatten().count();
        let perplexity = (-logprob / count.max(1) as f64).exp();
        let Scored { tokens, token_logprobs, truncated } = scored;
        Response { tokens, token_logprobs, logprob, perplexity, truncated_tokens: truncated }
    }
}

/// Language model that scores texts.
pub struct Scorer(pub Generator);

impl Scorer {
    /// Runs a batch of one, until it is cancelled.
    ///
    /// # Errors
    /// As [`Pipeline::run_one`], or if it is cancelled.
    pub fn run_until(
        &self,
        text: &str,
        parameters: &Parameters,
        cancel: &Cancel,
    ) -> Result<Response> {
        Ok(self.0.score_until(text, parameters.long()?, cancel)?.into())
    }
}

impl Pipeline for Scorer {
    const TASK: &'static str = "score";

    type Inputs = String;
    type Parameters = Parameters;
    type Response = Response;

    fn open(files: ModelFiles) -> Result<Scorer> {
        Ok(Scorer(Generator::load(files)?))
    }

    fn run(&self, inputs: &[String], parameters: &Parameters) -> Result<Vec<Result<Response>>> {
        let long = parameters.long()?;
        // Results do not depend on what is scored together.
        let one = |at: usize| Ok(self.0.score(&inputs[at], long)?.into());
        Ok(batching::for_each(inputs.len(), TOGETHER, one))
    }
}
