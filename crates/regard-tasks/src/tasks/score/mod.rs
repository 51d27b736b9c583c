//! Scoring: the log-probability of each token of a text under a language model.

use crate::generate::{Generator, Scored};
use crate::pipeline::Pipeline;
use regard_models::{ModelFiles, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of a scoring request: there are none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {}

/// Log-probability of a text under the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// Tokens of the text, as spelled in the vocabulary.
    pub tokens: Vec<String>,
    /// Natural logarithm of each token's probability given the tokens before it; null for the first
    /// token, which has no context.
    pub token_logprobs: Vec<Option<f64>>,
    /// Sum of `token_logprobs`.
    pub logprob: f64,
    /// Perplexity per token: `exp(-logprob / N)` over the N tokens that have a log-probability.
    pub perplexity: f64,
}

impl From<Scored> for Response {
    fn from(scored: Scored) -> Response {
        let logprob = scored.logprob();
        let count = scored.token_logprobs.iter().flatten().count();
        let perplexity = (-logprob / count.max(1) as f64).exp();
        let Scored { tokens, token_logprobs } = scored;
        Response { tokens, token_logprobs, logprob, perplexity }
    }
}

/// Language model that scores texts.
pub struct Scorer(pub Generator);

impl Pipeline for Scorer {
    const TASK: &'static str = "score";

    type Inputs = String;
    type Parameters = Parameters;
    type Response = Response;

    fn open(files: ModelFiles) -> Result<Scorer> {
        Ok(Scorer(Generator::load(files)?))
    }

    fn run(&self, inputs: &[String], _: &Parameters) -> Result<Vec<Result<Response>>> {
        Ok(inputs.iter().map(|text| Ok(self.0.score(text)?.into())).collect())
    }
}
