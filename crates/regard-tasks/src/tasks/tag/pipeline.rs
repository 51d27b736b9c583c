//! Tagging as a pipeline.

use super::{Entity, Grouping};
use crate::pipeline::Pipeline;
use crate::reader::TextEncoder;
use regard_models::text::Head;
use regard_models::{ModelFiles, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of a tagging request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Aggregation of tokens; by default `entities` if labels have `B-` or `I-` prefixes, else
    /// `words`.
    pub aggregation_strategy: Option<Grouping>,
}

/// Labelled spans of a text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// Spans in the order of the text.
    pub entities: Vec<Entity>,
}

/// Token classification model.
pub struct Tagger(pub TextEncoder);

impl Tagger {
    /// Returns the aggregation of a request: without one, `entities` if labels have `B-` or `I-`
    /// prefixes, else `words`.
    pub fn grouping(&self, asked: Option<Grouping>) -> Grouping {
        let inside = |label: &String| label.starts_with("B-") || label.starts_with("I-");
        asked.unwrap_or_else(|| match self.0.labels().iter().any(inside) {
            true => Grouping::Entities,
            false => Grouping::Words,
        })
    }
}

impl Pipeline for Tagger {
    const TASK: &'static str = "tag";

    type Inputs = String;
    type Parameters = Parameters;
    type Response = Response;

    fn open(files: ModelFiles) -> Result<Tagger> {
        Ok(Tagger(TextEncoder::load(files, Head::Tokens)?))
    }

    fn run(&self, inputs: &[String], parameters: &Parameters) -> Result<Vec<Result<Response>>> {
        let grouping = self.grouping(parameters.aggregation_strategy);
        let one =
            |text: &String| Ok(Response { entities: self.0.tag(&[text], grouping)?.remove(0) });
        Ok(inputs.iter().map(one).collect())
    }
}
