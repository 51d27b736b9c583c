//! Embeddings as a pipeline.

use super::Pooling;
use crate::pipeline::Pipeline;
use crate::reader::Reader;
use regard_models::text::Head;
use regard_models::{ModelFiles, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of an embedding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// How the vectors of a text's tokens become one: as `modules.json` of the model says it, or
    /// their mean, by default.
    pub pooling: Option<Pooling>,
    /// Vectors of length 1: as `modules.json` of the model says it, by default.
    pub normalize: Option<bool>,
}

/// The vector of a text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// Its numbers.
    pub embedding: Vec<f32>,
}

/// A model that gives texts vectors.
pub struct Embedder(pub Reader);

impl Embedder {
    /// Pooling and normalisation of a call.
    ///
    /// # Errors
    /// If the model asks for a pooling that is not supported, and the call for no other.
    pub fn settings(&self, parameters: &Parameters) -> Result<(Pooling, bool)> {
        let said = match (parameters.pooling, self.0.sentence()) {
            // What a folder asks for and cannot be done does not matter if something else is asked.
            (Some(_), Err(_)) => None,
            (_, said) => said?,
        };
        let said = said.unwrap_or_default();
        let normalize = parameters.normalize.unwrap_or(said.normalize);
        Ok((parameters.pooling.unwrap_or(said.pooling), normalize))
    }
}

impl Pipeline for Embedder {
    const TASK: &'static str = "embed";

    type Inputs = String;
    type Parameters = Parameters;
    type Response = Response;

    fn open(files: ModelFiles) -> Result<Embedder> {
        Ok(Embedder(Reader::load(files, Head::Bare)?))
    }

    fn run(&self, inputs: &[String], parameters: &Parameters) -> Result<Vec<Result<Response>>> {
        let (pooling, normalize) = self.settings(parameters)?;
        let one = |text: &String| {
            let embedding = self.0.embed(&[text], pooling, normalize)?.remove(0);
            Ok(Response { embedding })
        };
        Ok(inputs.iter().map(one).collect())
    }
}
