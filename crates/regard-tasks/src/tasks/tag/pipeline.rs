//! Tagging as a pipeline.

use super::{Entity, Grouping};
use crate::pipeline::Pipeline;
use crate::reader::Reader;
use regard_models::text::Head;
use regard_models::{ModelFiles, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of a tagging.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// How tokens are put together: entities if labels have B- and I-, else words, by default.
    pub aggregation_strategy: Option<Grouping>,
}

/// The labelled parts of a text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// In the order of the text.
    pub entities: Vec<Entity>,
}

/// A model that labels the words of a text.
pub struct Tagger(pub Reader);

impl Pipeline for Tagger {
    const TASK: &'static str = "tag";

    type Inputs = String;
    type Parameters = Parameters;
    type Response = Response;

    fn open(files: ModelFiles) -> Result<Tagger> {
        Ok(Tagger(Reader::load(files, Head::Tokens)?))
    }

    fn run(&self, inputs: &[String], parameters: &Parameters) -> Result<Vec<Result<Response>>> {
        let inside = |label: &String| label.starts_with("B-") || label.starts_with("I-");
        let grouping = parameters.aggregation_strategy.unwrap_or_else(|| {
            match self.0.labels().iter().any(inside) {
                true => Grouping::Entities,
                false => Grouping::Words,
            }
        });
        let one =
            |text: &String| Ok(Response { entities: self.0.tag(&[text], grouping)?.remove(0) });
        Ok(inputs.iter().map(one).collect())
    }
}
