//! Embeddings as a pipeline.

use super::SentencePooling;
use crate::pipeline::Pipeline;
use crate::reader::TextEncoder;
use regard_models::text::{self, Head};
use regard_models::{Error, ModelFiles, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of an embedding request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Pooling of the token vectors; by default that of the model's `modules.json`, else `mean`.
    pub pooling: Option<SentencePooling>,
    /// Whether to scale embeddings to Euclidean norm 1; by default as `modules.json` of the model
    /// says, else no.
    pub normalize: Option<bool>,
}

/// Embedding of a text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// Elements of the embedding, as many as the model's hidden size.
    pub embedding: Vec<f32>,
}

/// Model that embeds texts.
pub struct Embedder(pub TextEncoder);

impl Embedder {
    /// Returns the pooling and normalisation of a request.
    ///
    /// # Errors
    /// If the model's folder specifies an unsupported pooling and the request specifies none.
    pub fn settings(&self, parameters: &Parameters) -> Result<(SentencePooling, bool)> {
        let said = match (parameters.pooling, self.0.sentence()) {
            // An unsupported pooling in the folder does not matter if the request overrides it.
            (Some(_), Err(_)) => None,
            (_, said) => said?,
        };
        let said = said.unwrap_or_default();
        let normalize = parameters.normalize.unwrap_or(said.normalize);
        Ok((parameters.pooling.unwrap_or(said.pooling), normalize))
    }
}

impl TextEncoder {
    /// Returns a note on how texts are embedded if nothing says that the model was trained for it:
    /// its folder has no `modules.json` of sentence-transformers. Distances between the embeddings
    /// of such a model say little about the meaning of the texts.
    ///
    /// # Errors
    /// If the configuration of the model cannot be read.
    pub fn untrained_note(&self, pooling: SentencePooling) -> Result<Option<String>> {
        let Some(files) = self.files() else { return Ok(None) };
        // An unsupported pooling in the folder is one of a model for embeddings, too.
        if !matches!(self.sentence(), Ok(None)) {
            return Ok(None);
        }
        let trained = match text::head_of(&files.config()?)? {
            Head::Sequence => "was trained to classify texts, not to embed them",
            Head::Tokens => "was trained to label words, not to embed texts",
            Head::Span => "was trained to answer questions, not to embed texts",
            Head::Words | Head::Pretraining => "was trained to predict words, not to embed texts",
            Head::Bare => "does not say that it was trained to embed texts (no modules.json)",
        };
        let pooled = match pooling {
            SentencePooling::Mean => "the mean of the token vectors of its last layer",
            SentencePooling::Cls => "the vector of the first token of its last layer",
            SentencePooling::Max => "the maximum of the token vectors of its last layer",
        };
        Ok(Some(format!(
            "the model {trained}: an embedding is {pooled}, and texts of similar meaning need not \
             have similar ones. A model for embeddings: sentence-transformers/all-MiniLM-L6-v2"
        )))
    }
}

impl Pipeline for Embedder {
    const TASK: &'static str = "embed";

    type Inputs = String;
    type Parameters = Parameters;
    type Response = Response;

    fn open(files: ModelFiles) -> Result<Embedder> {
        Ok(Embedder(TextEncoder::load(files, Head::Bare)?))
    }

    fn run(&self, inputs: &[String], parameters: &Parameters) -> Result<Vec<Result<Response>>> {
        let (pooling, normalize) = self.settings(parameters)?;
        let one = |text: &String| {
            // The vector of no words would be that of the special tokens, which means nothing.
            if text.trim().is_empty() {
                return Err(Error::invalid(
                    "a text without tokens cannot be embedded: it is empty",
                ));
            }
            let embedding = self.0.embed(&[text], pooling, normalize)?.remove(0);
            Ok(Response { embedding })
        };
        Ok(inputs.iter().map(one).collect())
    }
}
