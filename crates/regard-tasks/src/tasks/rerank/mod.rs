//! Ranking of texts by their relevance to a query: by a cross-encoder, which encodes the query and
//! a text together, or by the cosine similarity of their embeddings.

pub(crate) mod learn;
mod pipeline;

pub use pipeline::{Inputs, Parameters, Ranked, Response};

use crate::embed::{self, Embedder};
use crate::reader::{TextEncoder, numbers};
use crate::train;
use regard_models::text::{self, Head};
use regard_models::{Error, Labels, ModelFiles, Result, checkpoint};

/// Model that ranks texts.
pub enum Reranker {
    /// Cross-encoder: encodes the query and a text together.
    CrossEncoder(TextEncoder),
    /// Bi-encoder: compares the embeddings of the query and a text.
    Embeddings(Embedder),
}

impl Reranker {
    /// Opens a model: a cross-encoder if it has a sequence classification head, with one label
    /// (relevance) or two (irrelevant, relevant); any other encoder is used for embeddings.
    pub fn load(model: impl Into<ModelFiles>) -> Result<Reranker> {
        let files = train::files(model)?;
        let wrong = |message: String| Error::file(files.path(checkpoint::CONFIG), message);
        let head = text::head_of(&files.config()?).map_err(|e| wrong(e.to_string()))?;
        let labels = Labels::names(&files.config()?);
        // Two labels without names of their own are irrelevant and relevant.
        let names_relevance = |name: &String| {
            let name = name.to_lowercase();
            name.contains("relevan") || name.starts_with("label_") || name.parse::<u8>().is_ok()
        };
        if head == Head::Sequence && labels.len() == 2 && !labels.iter().all(names_relevance) {
            return Err(wrong(format!(
                "the model classifies texts as {} and was not trained to rank them. Train one: \
                 regard train squad-rerank; or use a cross-encoder or an embedding model",
                labels.join(" or ")
            )));
        }
        if head != Head::Sequence {
            return Ok(Reranker::Embeddings(Embedder(TextEncoder::load(files, Head::Bare)?)));
        }
        Ok(Reranker::CrossEncoder(TextEncoder::load(files, Head::Sequence)?))
    }

    /// Returns the relevance of each text to a query: a probability or, if `raw`, a logit; for
    /// embeddings the cosine similarity.
    pub fn scores(&self, query: &str, texts: &[String], raw: bool) -> Result<Vec<f64>> {
        match self {
            Reranker::CrossEncoder(reader) => {
                let logits = reader.relevance(texts.iter().map(|text| (query, text.as_str())))?;
                let score = |x: f64| if raw { x } else { 1.0 / (1.0 + (-x).exp()) };
                Ok(logits.into_iter().map(score).collect())
            }
            Reranker::Embeddings(embedder) => {
                let (pooling, _) = embedder.settings(&embed::Parameters::default())?;
                let all: Vec<&str> =
                    [query].into_iter().chain(texts.iter().map(String::as_str)).collect();
                let vectors = embedder.0.embed(&all, pooling, true)?;
                let cosine = |v: &Vec<f32>| {
                    v.iter().zip(&vectors[0]).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
                };
                Ok(vectors[1..].iter().map(cosine).collect())
            }
        }
    }
}

/// Returns the relevance logit: the only logit, or the difference of the second and the first of
/// two.
fn relevance_logit(row: &[f32]) -> Result<f64> {
    match row {
        [relevant] => Ok(f64::from(*relevant)),
        [not, relevant] => Ok(f64::from(*relevant) - f64::from(*not)),
        _ => Err(Error::invalid(format!(
            "a model with {} labels does not rank texts: need one label, or two of which the \
             second is relevant",
            row.len()
        ))),
    }
}

impl TextEncoder {
    /// Returns the relevance logit of each pair of a query and a text; with two labels, the second
    /// logit minus the first. A pair longer than the model's maximum length is truncated.
    pub(crate) fn relevance<'a>(
        &self,
        pairs: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<Vec<f64>> {
        let encode = |(query, text): (&str, &str)| {
            self.tokenizer.encode_within(query, Some(text), self.longest())
        };
        let encodings: Vec<_> = pairs.map(encode).collect::<Result<_>>()?;
        let mut all = vec![];
        self.read(&encodings, |_, _, said| {
            let logits =
                said.logits.ok_or_else(|| self.without_head("ForSequenceClassification"))?;
            let [_, labels] = logits.dims();
            let rows = numbers(logits)?;
            for row in rows.chunks_exact(labels) {
                all.push(relevance_logit(row)?);
            }
            Ok(())
        })?;
        Ok(all)
    }
}
