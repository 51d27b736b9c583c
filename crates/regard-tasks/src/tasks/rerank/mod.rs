//! Texts ranked by their relevance to a query: by a cross-encoder, which reads the query and a text
//! together, or by the cosine of their embeddings.

pub(crate) mod learn;
mod pipeline;

pub use pipeline::{Inputs, Parameters, Ranked, Response};

use crate::embed::{self, Embedder};
use crate::reader::{Reader, numbers};
use crate::train;
use regard_models::text::{self, Head};
use regard_models::{Error, ModelFiles, Result, checkpoint};

/// A model that ranks texts.
pub enum Reranker {
    /// Reads the query and a text together.
    CrossEncoder(Reader),
    /// Compares vectors of the query and of a text.
    Embeddings(Embedder),
}

impl Reranker {
    /// Opens a model: a cross-encoder if it has a head for sequences, with one label (relevance) or
    /// two (irrelevant, relevant); any other encoder is used for embeddings.
    pub fn load(model: impl Into<ModelFiles>) -> Result<Reranker> {
        let files = train::files(model)?;
        let wrong = |message: String| Error::file(files.path(checkpoint::CONFIG), message);
        let head = text::head_of(&files.config()?).map_err(|e| wrong(e.to_string()))?;
        if head != Head::Sequence {
            return Ok(Reranker::Embeddings(Embedder(Reader::load(files, Head::Bare)?)));
        }
        Ok(Reranker::CrossEncoder(Reader::load(files, Head::Sequence)?))
    }

    /// The model and its tokenizer.
    pub fn reader(&self) -> &Reader {
        match self {
            Reranker::CrossEncoder(reader) => reader,
            Reranker::Embeddings(embedder) => &embedder.0,
        }
    }

    /// The relevance of each text to a query: a probability or, if `raw`, a logit; of embeddings
    /// their cosine.
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

/// The logit of relevance: that of the one label, or of two labels the second's less the first's.
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

impl Reader {
    /// The logit of relevance of pairs of a query and a text; of two labels, that of the second
    /// less that of the first. A pair that is longer than the model can read is cut.
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
            let logits = said.logits.ok_or_else(|| Error::invalid("a model without labels"))?;
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
