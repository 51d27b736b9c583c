//! Text generation as a pipeline.

use super::{Generated, Generator};
use crate::batching;
use crate::decode::SearchParameters;
use crate::pipeline::Pipeline;
use regard_models::{ModelFiles, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of a generation request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Stop strings: generation ends before the first occurrence of one of them.
    pub stop: Vec<String>,
    /// Index of the first input. With the seed it determines the random numbers of sampling, so a
    /// list split over several requests gives the same texts as one request.
    pub first: u64,
    /// Search and sampling parameters.
    #[serde(flatten)]
    pub search: SearchParameters,
}

/// A generated text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// Prompt followed by its continuation.
    pub generated_text: String,
    /// Token ids of the continuation.
    pub token_ids: Vec<u32>,
    /// Sum of the continuation's log-probabilities, after penalties.
    pub score: f32,
    /// Further results, the best first; only present if several were requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Response>,
}

impl Response {
    /// Returns all results, the best first.
    pub fn results(&self) -> impl Iterator<Item = &Response> {
        std::iter::once(self).chain(&self.alternatives)
    }
}

/// Prompts that are continued at once.
const TOGETHER: usize = 16;

impl Pipeline for Generator {
    const TASK: &'static str = "generate";

    type Inputs = String;
    type Parameters = Parameters;
    type Response = Response;

    fn open(files: ModelFiles) -> Result<Generator> {
        Generator::load(files)
    }

    fn run(&self, inputs: &[String], parameters: &Parameters) -> Result<Vec<Result<Response>>> {
        let options = parameters.search.over(self.defaults())?;
        let one = |at: usize| {
            let (number, prompt) = (parameters.first.wrapping_add(at as u64), &inputs[at]);
            let written = self.generate(prompt, &options, number, &parameters.stop, &mut |_| {})?;
            let response = |Generated { text, ids, score }| Response {
                generated_text: format!("{prompt}{text}"),
                token_ids: ids,
                score,
                alternatives: vec![],
            };
            let mut all = written.into_iter().map(response);
            let best = all.next().unwrap_or_default();
            Ok(Response { alternatives: all.collect(), ..best })
        };
        // Results do not depend on what is generated together.
        Ok(batching::for_each(inputs.len(), TOGETHER, one))
    }
}
