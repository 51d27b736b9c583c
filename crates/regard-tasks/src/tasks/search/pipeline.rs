//! Search as a pipeline.

use super::{Embeddings, Neighbour, Searcher};
use crate::embed::SentencePooling;
use crate::pipeline::Pipeline;
use crate::rerank::Reranker;
use regard_models::{Error, ModelFiles, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of results by default.
pub const TOP_K: usize = 5;

/// A query and the texts to search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Inputs {
    /// Query to search for.
    pub query: String,
    /// Texts to search. Consecutive inputs with the same texts encode them once.
    pub texts: Vec<String>,
}

/// Parameters of a search request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Maximum number of results, the most similar first; 5 by default.
    pub top_k: Option<usize>,
    /// Pooling of the token vectors; by default that of the model's `modules.json`, else `mean`.
    pub pooling: Option<SentencePooling>,
}

/// Texts found for a query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// Query that was searched for.
    pub query: String,
    /// Texts, the most similar first, and of equally similar ones the first in their order.
    pub results: Vec<Found>,
}

/// A text that was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Found {
    /// Line of the text in its file, or its place in a list of texts, from 1.
    pub line: u64,
    /// Cosine similarity to the query, or the score of the model that re-ranked the results.
    pub score: f64,
    /// The text.
    pub text: String,
}

impl Response {
    /// Makes a response of the nearest rows; `text` returns the line and the text of a row.
    pub fn new<'a>(
        query: &str,
        nearest: &[Neighbour],
        text: impl Fn(usize) -> (u64, &'a str),
    ) -> Response {
        let found = |Neighbour { row, score }: &Neighbour| {
            let (line, text) = text(*row);
            Found { line, score: f64::from(*score), text: text.to_string() }
        };
        Response { query: query.to_string(), results: nearest.iter().map(found).collect() }
    }

    /// Ranks the results again by another model, and keeps the first `top_k`.
    pub fn rerank(&mut self, by: &Reranker, top_k: usize) -> Result<()> {
        let texts: Vec<String> = self.results.iter().map(|found| found.text.clone()).collect();
        let scores = by.scores(&self.query, &texts, false)?;
        self.results.iter_mut().zip(scores).for_each(|(found, score)| found.score = score);
        self.results.sort_by(|a, b| b.score.total_cmp(&a.score));
        self.results.truncate(top_k);
        Ok(())
    }
}

impl Pipeline for Searcher {
    const TASK: &'static str = "search";

    type Inputs = Inputs;
    type Parameters = Parameters;
    type Response = Response;

    fn open(files: ModelFiles) -> Result<Searcher> {
        Searcher::load(files)
    }

    fn run(&self, inputs: &[Inputs], parameters: &Parameters) -> Result<Vec<Result<Response>>> {
        let pooling = self.pooling(parameters.pooling)?;
        let top_k = parameters.top_k.unwrap_or(TOP_K);
        if top_k == 0 {
            return Err(Error::invalid("top_k: got 0, need at least 1"));
        }
        let mut last: Option<(&[String], Embeddings)> = None;
        let mut all = vec![];
        for Inputs { query, texts } in inputs {
            let embeddings = match last.take() {
                Some((of, embeddings)) if of == texts => Ok(embeddings),
                _ => self.embed_list(texts, pooling),
            };
            all.push(embeddings.and_then(|embeddings| {
                let nearest = self.nearest(query, pooling, &embeddings, top_k);
                last = Some((texts, embeddings));
                let text = |row: usize| (row as u64 + 1, texts[row].as_str());
                Ok(Response::new(query, &nearest?, text))
            }));
        }
        Ok(all)
    }
}

impl Searcher {
    fn embed_list(&self, texts: &[String], pooling: SentencePooling) -> Result<Embeddings> {
        if texts.is_empty() {
            return Err(Error::invalid("texts: got none, need texts to search"));
        }
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        self.embed(&texts, pooling, &mut |_, _| ())
    }
}
