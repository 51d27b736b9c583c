//! Summaries as a pipeline.

use super::{Said, Summarizer, Summary};
use crate::decode::SearchParameters;
use crate::pipeline::Pipeline;
use regard_models::{Error, ModelFiles, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of a summary.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Words of a text that are read; 400 by default.
    pub max_words: Option<usize>,
    /// Also return how likely each word was, and which share of that came from copying.
    pub output_attentions: bool,
    /// How to search.
    #[serde(flatten)]
    pub search: SearchParameters,
}

/// A summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// Its text.
    pub summary: String,
    /// Log-probability of all of it.
    pub log_prob: f64,
    /// Its words, if they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<Vec<Said>>,
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
        let options = parameters.search.over(self.defaults())?;
        // An input without words gets no summary; the others are read together.
        let readable: Vec<&String> = inputs.iter().filter(|text| !text.trim().is_empty()).collect();
        let mut said = self.summarize(&readable, parameters.max_words, &options)?.into_iter();
        let one = |text: &String| {
            if text.trim().is_empty() {
                return Err(Error::invalid("got nothing, need words to summarise"));
            }
            let Summary { text, log_prob, words } = said.next().expect("a summary for each text");
            let words = parameters.output_attentions.then_some(words);
            Ok(Response { summary: text, log_prob, words })
        };
        Ok(inputs.iter().map(one).collect())
    }
}
