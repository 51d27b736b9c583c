//! Masked-token prediction as a pipeline.

use super::TokenCandidate;
use crate::pipeline::Pipeline;
use crate::reader::TextEncoder;
use regard_models::text::Head;
use regard_models::{ModelFiles, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of a fill-mask request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Number of candidates per masked token; 5 by default.
    pub top_k: usize,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { top_k: 5 }
    }
}

/// Candidates for the masked tokens of a text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// Candidates, the most probable first; with several masks, one list per mask in text order.
    pub candidates: Candidates,
}

/// Candidates for one masked token or for several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Candidates {
    /// Candidates of the only mask.
    One(Vec<TokenCandidate>),
    /// One list of candidates per mask.
    Several(Vec<Vec<TokenCandidate>>),
}

impl Candidates {
    /// Returns one list per masked token.
    pub fn lists(&self) -> Vec<&[TokenCandidate]> {
        match self {
            Candidates::One(list) => vec![list],
            Candidates::Several(lists) => lists.iter().map(Vec::as_slice).collect(),
        }
    }
}

/// Masked language model.
pub struct Filler(pub TextEncoder);

impl Pipeline for Filler {
    const TASK: &'static str = "fill";

    type Inputs = String;
    type Parameters = Parameters;
    type Response = Response;

    fn open(files: ModelFiles) -> Result<Filler> {
        Ok(Filler(TextEncoder::load(files, Head::Words)?))
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
