//! Text generation as a pipeline.

use super::{Writer, Written};
use crate::decode::SearchParameters;
use crate::pipeline::Pipeline;
use regard_models::{ModelFiles, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of a generation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Texts before which a result stops.
    pub stop: Vec<String>,
    /// Number of the first input among all that will be continued: with the seed it decides what is
    /// sampled.
    pub first: u64,
    /// How to search.
    #[serde(flatten)]
    pub search: SearchParameters,
}

/// A text that was continued.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// The prompt and its continuation.
    pub generated_text: String,
    /// Tokens of the continuation.
    pub token_ids: Vec<u32>,
    /// Log-probability of the continuation, after penalties.
    pub score: f32,
    /// The other results, the best first, if several were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Response>,
}

impl Response {
    /// All results, the best first.
    pub fn results(&self) -> impl Iterator<Item = &Response> {
        std::iter::once(self).chain(&self.alternatives)
    }
}

impl Pipeline for Writer {
    const TASK: &'static str = "generate";

    type Inputs = String;
    type Parameters = Parameters;
    type Response = Response;

    fn open(files: ModelFiles) -> Result<Writer> {
        Writer::load(files)
    }

    fn run(&self, inputs: &[String], parameters: &Parameters) -> Result<Vec<Result<Response>>> {
        let options = parameters.search.over(self.defaults())?;
        let one = |(number, prompt): (u64, &String)| {
            let number = parameters.first.wrapping_add(number);
            let written = self.generate(prompt, &options, number, &parameters.stop, &mut |_| {})?;
            let response = |Written { text, ids, score }| Response {
                generated_text: format!("{prompt}{text}"),
                token_ids: ids,
                score,
                alternatives: vec![],
            };
            let mut all = written.into_iter().map(response);
            let best = all.next().unwrap_or_default();
            Ok(Response { alternatives: all.collect(), ..best })
        };
        Ok((0..).zip(inputs).map(one).collect())
    }
}
