//! Summarisation as a pipeline.

use super::{Summarizer, Summary, SummaryWord};
use crate::decode::SearchParameters;
use crate::pipeline::Pipeline;
use regard_models::{Error, ModelFiles, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of a summarisation request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Number of words after which a text is truncated; 400 by default.
    pub max_words: Option<usize>,
    /// Whether to return each word with its probability and the fraction of it that comes from
    /// copying.
    pub output_attentions: bool,
    /// Search parameters.
    #[serde(flatten)]
    pub search: SearchParameters,
}

/// Summary of a text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// Text of the summary.
    pub summary: String,
    /// Log-probability of the whole summary, in nats.
    pub log_prob: f64,
    /// Words of the summary; only present if `output_attentions` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<Vec<SummaryWord>>,
}

impl Pipeline for Summarizer {
    const TASK: &'static str = "summarize";

    type Inputs = String;
    type Parameters = Parameters;
    type Response = Response;

    fn open(files: ModelFiles) -> Result<Summarizer> {
        Summarizer::load(files)
    }

    fn run(&self, inputs: &[String], parameters: &Parameters) -> Result<Vec<Result<Response>>> {
        parameters.search.refuse(&["num_return_sequences"])?;
        let options = parameters.search.over(self.defaults())?;
        // An empty input gets an error; the others are batched.
        let readable: Vec<&String> = inputs.iter().filter(|text| !text.trim().is_empty()).collect();
        let mut said = self.summarize(&readable, parameters.max_words, &options)?.into_iter();
        let one = |text: &String| {
            if text.trim().is_empty() {
                return Err(Error::invalid("got nothing, need a text to summarise"));
            }
            let Summary { text, log_prob, words } = said.next().expect("a summary for each text");
            let words = parameters.output_attentions.then_some(words);
            Ok(Response { summary: text, log_prob, words })
        };
        Ok(inputs.iter().map(one).collect())
    }
}
