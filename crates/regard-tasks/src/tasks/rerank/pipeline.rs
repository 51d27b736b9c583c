//! Ranking texts by a query as a pipeline.

use super::Reranker;
use crate::pipeline::Pipeline;
use regard_models::{Error, ModelFiles, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A query and the texts to rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Inputs {
    /// The query.
    pub query: String,
    /// The texts.
    pub texts: Vec<String>,
}

/// Settings of a ranking.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Texts to return, the most relevant first; all by default.
    pub top_n: Option<usize>,
    /// Logits of a cross-encoder instead of probabilities; of embeddings, cosines either way.
    pub raw_scores: bool,
    /// Also return the texts.
    pub return_text: bool,
}

/// Texts by their relevance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// The most relevant first.
    pub results: Vec<Ranked>,
}

/// A text and its relevance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ranked {
    /// Number of the text among those given, from 0.
    pub index: usize,
    /// Relevance to the query.
    pub score: f64,
    /// The text, if it was asked for.
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
