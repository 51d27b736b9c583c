//! Reranking as a pipeline.

use super::Reranker;
use crate::pipeline::Pipeline;
use regard_models::{Error, ModelFiles, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A query and the texts to rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Inputs {
    /// Query to rank by.
    pub query: String,
    /// Texts to rank.
    pub texts: Vec<String>,
}

/// Parameters of a ranking request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Maximum number of texts to return, the most relevant first; all by default.
    pub top_n: Option<usize>,
    /// Whether a cross-encoder returns logits instead of probabilities. Embedding models return
    /// cosine similarities either way.
    pub raw_scores: bool,
    /// Whether to include the texts in the results.
    pub return_text: bool,
}

/// Texts ranked by relevance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// Ranked texts, the most relevant first.
    pub results: Vec<Ranked>,
}

/// A text and its relevance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ranked {
    /// Index of the text in the request, from 0.
    pub index: usize,
    /// Relevance to the query; higher is more relevant.
    pub score: f64,
    /// Text; only present if `return_text` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl Pipeline for Reranker {
    const TASK: &'static str = "rerank";

    type Inputs = Inputs;
    type Parameters = Parameters;
    type Response = Response;

    fn open(files: ModelFiles) -> Result<Reranker> {
        Reranker::load(files)
    }

    fn run(&self, inputs: &[Inputs], parameters: &Parameters) -> Result<Vec<Result<Response>>> {
        let one = |Inputs { query, texts }: &Inputs| {
            if texts.is_empty() {
                return Err(Error::invalid("texts: got none, need texts to rank"));
            }
            let scores = self.scores(query, texts, parameters.raw_scores)?;
            let each = scores.into_iter().enumerate();
            let ranked = |(index, score): (usize, f64)| Ranked {
                index,
                score,
                text: parameters.return_text.then(|| texts[index].clone()),
            };
            let mut results: Vec<Ranked> = each.map(ranked).collect();
            results.sort_by(|a, b| b.score.total_cmp(&a.score));
            results.truncate(parameters.top_n.unwrap_or(usize::MAX));
            Ok(Response { results })
        };
        Ok(inputs.iter().map(one).collect())
    }
}
