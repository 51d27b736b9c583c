//! Masked tokens as a pipeline.

use super::Candidate;
use crate::pipeline::Pipeline;
use crate::reader::Reader;
use regard_models::text::Head;
use regard_models::{ModelFiles, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of a guess.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Candidates for each masked token.
    pub top_k: usize,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { top_k: 5 }
    }
}

/// The candidates for the masked tokens of a text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// The likeliest first; a list for each masked token, if there are several.
    pub candidates: Candidates,
}

/// Candidates for one masked token or for several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Candidates {
    /// For one.
    One(Vec<Candidate>),
    /// For each of several.
    Several(Vec<Vec<Candidate>>),
}

impl Candidates {
    /// A list for each masked token.
    pub fn lists(&self) -> Vec<&[Candidate]> {
        match self {
            Candidates::One(list) => vec![list],
            Candidates::Several(lists) => lists.iter().map(Vec::as_slice).collect(),
        }
    }
}

/// A model that guesses masked tokens.
pub struct Filler(pub Reader);

impl Pipeline for Filler {
    const TASK: &'static str = "fill";

    type Inputs = String;
    type Parameters = Parameters;
    type Response = Response;

    fn open(files: ModelFiles) -> Result<Filler> {
        Ok(Filler(Reader::load(files, Head::Words)?))
    }

    fn run(&self, inputs: &[String], parameters: &Parameters) -> Result<Vec<Result<Response>>> {
        let one = |text: &String| {
            let mut lists = self.0.fill(text, parameters.top_k)?;
            let candidates = match lists.len() {
                1 => Candidates::One(lists.remove(0)),
                _ => Candidates::Several(lists),
            };
            Ok(Response { candidates })
        };
        Ok(inputs.iter().map(one).collect())
    }
}
