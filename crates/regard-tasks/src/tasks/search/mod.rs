//! Semantic search: the texts whose embeddings have the highest cosine similarity to that of a
//! query. Every text is compared, so that the result is exact.

mod embeddings;
mod identity;
mod index;
mod pipeline;

pub use crate::import::texts::{FileText, FileTexts, TextChoice};
pub use embeddings::{Embeddings, Neighbour};
pub use index::{EXTENSION, Index, IndexFile, IndexOrigin};
pub use pipeline::{Found, Inputs, Parameters, Response, TOP_K};

use crate::embed::{self, Embedder, SentencePooling};
use crate::reader::TextEncoder;
use crate::{say, train};
use regard_models::checkpoint::Array;
use regard_models::text::Head;
use regard_models::{Error, ModelFiles, Result};
use std::collections::HashMap;

/// Bytes of texts that are encoded between two reports of progress: about 8,000 tokens of Chinese
/// and 6,000 of English, one forward pass either way.
const AT_ONCE: usize = 24 << 10;

/// Model that searches texts.
pub struct Searcher {
    embedder: Embedder,
    files: ModelFiles,
}

impl Searcher {
    /// Opens a model from its files: a folder (which may be a training run's) or files in memory.
    pub fn load(model: impl Into<ModelFiles>) -> Result<Searcher> {
        let files = train::files(model)?;
        let embedder = Embedder(TextEncoder::load(files.clone(), Head::Bare)?);
        Ok(Searcher { embedder, files })
    }

    /// Returns the text encoder.
    pub fn encoder(&self) -> &TextEncoder {
        &self.embedder.0
    }

    /// Returns the pooling to use: the one that was asked for, or the model's own.
    ///
    /// # Errors
    /// If the model's folder specifies an unsupported pooling and none was asked for.
    pub fn pooling(&self, asked: Option<SentencePooling>) -> Result<SentencePooling> {
        let parameters = embed::Parameters { pooling: asked, normalize: None };
        Ok(self.embedder.settings(&parameters)?.0)
    }

    /// Returns the origin of an index of these texts by this model. A model is known by the hash of
    /// its files.
    pub fn origin(&self, texts: &FileTexts, pooling: SentencePooling) -> Result<IndexOrigin> {
        Ok(IndexOrigin {
            file: texts.sha256.clone(),
            column: texts.column.clone(),
            model: identity::identity(&self.files)?,
            pooling,
        })
    }

    /// Computes the embeddings of texts. Equal texts are encoded once, so that they are equally
    /// similar to a query. `progress` is called with the number of texts that have their embedding,
    /// equal ones included, and with that of all.
    ///
    /// # Errors
    /// If there are no texts, or one of them has no tokens.
    pub fn embed(
        &self,
        texts: &[&str],
        pooling: SentencePooling,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Embeddings> {
        let (mut places, mut different) = (HashMap::new(), vec![]);
        let mut place = |text| {
            *places.entry(text).or_insert_with(|| {
                different.push(text);
                different.len() - 1
            })
        };
        let of: Vec<usize> = texts.iter().map(|text| place(*text)).collect();
        let mut equal = vec![0; different.len()];
        of.iter().for_each(|at| equal[*at] += 1);
        let mut floats = vec![];
        let (mut done, mut texts_done) = (0, 0);
        while done < different.len() {
            let part = part(&different[done..]);
            // Batches have no padding, so that sorting by length would gain nothing.
            let rows =
                self.encoder().embed(part, pooling, true).map_err(|e| self.named(part, e))?;
            rows.iter().for_each(|row| floats.extend_from_slice(row));
            texts_done += equal[done..][..part.len()].iter().sum::<usize>();
            done += part.len();
            progress(texts_done, texts.len());
        }
        let width = floats.len() / different.len().max(1);
        if different.len() < texts.len() {
            floats = of.iter().flat_map(|at| &floats[at * width..][..width]).copied().collect();
        }
        Embeddings::new(Array::new(vec![texts.len(), width], floats)).map_err(Error::invalid)
    }

    /// Finds the `top_k` texts that are most similar to a query.
    ///
    /// # Errors
    /// If the query is empty.
    pub fn nearest(
        &self,
        query: &str,
        pooling: SentencePooling,
        embeddings: &Embeddings,
        top_k: usize,
    ) -> Result<Vec<Neighbour>> {
        if query.trim().is_empty() {
            return Err(Error::invalid("the query is empty"));
        }
        let query = self.encoder().embed(&[query.trim()], pooling, true)?.remove(0);
        embeddings.nearest(&query, top_k)
    }

    /// Adds to an error which text has no tokens, if that is the reason.
    fn named(&self, texts: &[&str], error: Error) -> Error {
        let is_empty = |text: &&&str| {
            self.encoder().tokenizer().encode_special(text, None).is_ok_and(|e| e.is_empty())
        };
        match texts.iter().find(is_empty) {
            Some(text) => Error::invalid(format!("{error}: {:?}", say::short(text, 40))),
            None => error,
        }
    }
}

/// First texts of about [`AT_ONCE`] bytes, at least one.
fn part<'a, 'b>(texts: &'a [&'b str]) -> &'a [&'b str] {
    let mut bytes = 0;
    let fits = texts.iter().take_while(|text| {
        bytes += text.len();
        bytes <= AT_ONCE
    });
    &texts[..fits.count().max(1).min(texts.len())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::Pipeline;
    use crate::rerank::Reranker;
    use std::path::Path;

    const TEXTS: [&str; 5] =
        ["the cat sat on the mat", "a red house in paris", "the cat", "bob sees ann", "the cat"];

    fn searcher() -> Searcher {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/reading/BertModel");
        Searcher::load(&folder).unwrap()
    }

    #[test]
    fn embeddings_are_those_of_the_embedder_in_any_batch() {
        let searcher = searcher();
        // Several parts, texts of all lengths, and some that are equal.
        let text = |i: usize| format!("{}{}", TEXTS[i % 5], " very".repeat(i / 5 % 100));
        let texts: Vec<String> = (0..1000).map(text).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        for pooling in [SentencePooling::Mean, SentencePooling::Cls, SentencePooling::Max] {
            let mut reports = vec![];
            let all = searcher.embed(&texts, pooling, &mut |done, of| reports.push((done, of)));
            let all = all.unwrap();
            assert_eq!((all.rows(), all.dimension()), (1000, 16));
            assert_eq!(reports.last(), Some(&(1000, 1000)), "equal texts count");
            assert!(reports.len() > 2 && reports.is_sorted(), "{reports:?}");
            let floats = all.array().floats().unwrap().into_owned();
            for (row, text) in floats.chunks_exact(16).zip(&texts).step_by(89) {
                let alone = searcher.encoder().embed(&[text], pooling, true).unwrap().remove(0);
                let error = row.iter().zip(&alone).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(error < 1e-5, "{text}: {error}");
            }
        }
    }

    #[test]
    fn a_request_gets_the_nearest_texts() {
        let searcher = searcher();
        let texts: Vec<String> = TEXTS.map(String::from).to_vec();
        let ask = |query: &str| Inputs { query: query.into(), texts: texts.clone() };
        let parameters = Parameters { top_k: Some(3), pooling: None };
        let both = searcher.run(&[ask("The cat"), ask("bob sees ann")], &parameters).unwrap();
        let [cat, bob] = [both[0].as_ref().unwrap(), both[1].as_ref().unwrap()];
        // Equal texts in their order.
        let lines: Vec<u64> = cat.results.iter().map(|found| found.line).collect();
        assert_eq!((lines.len(), &lines[..2]), (3, &[3, 5][..]), "{cat:?}");
        assert!((cat.results[0].score - 1.0).abs() < 1e-5);
        assert_eq!(cat.results[0].score, cat.results[1].score);
        assert_eq!((bob.results[0].line, &*bob.results[0].text), (4, "bob sees ann"));
        // By default five, and no more than there are.
        let all = searcher.run_one(ask("a"), &Parameters::default()).unwrap();
        assert_eq!(all.results.len(), TOP_K);
        assert!(all.results.windows(2).all(|two| two[0].score >= two[1].score));
        let none = Parameters { top_k: Some(0), pooling: None };
        assert!(searcher.run(&[ask("a")], &none).unwrap_err().to_string().contains("top_k"));
        let empty = Inputs { query: "a".into(), texts: vec![] };
        assert!(searcher.run_one(empty, &parameters).unwrap_err().to_string().contains("texts"));
        assert!(searcher.run_one(ask(" "), &parameters).unwrap_err().to_string().contains("query"));
    }

    #[test]
    fn results_are_ranked_again() {
        let searcher = searcher();
        let reranker = Reranker::Embeddings(Embedder(
            TextEncoder::load(searcher.files.clone(), Head::Bare).unwrap(),
        ));
        let input = Inputs { query: "bob".into(), texts: TEXTS.map(String::from).to_vec() };
        let found = searcher.run_one(input, &Parameters::default()).unwrap();
        let mut again = found.clone();
        again.results.reverse();
        again.rerank(&reranker, 2).unwrap();
        // The same model has the same opinion.
        assert_eq!(again.results[0].text, found.results[0].text);
        assert!((again.results[0].score - found.results[0].score).abs() < 1e-5);
        assert_eq!(again.results.len(), 2);
    }

    #[test]
    fn parts_have_at_least_one_text() {
        let long = "x".repeat(2 * AT_ONCE);
        assert_eq!(part(&[&long, "a"]).len(), 1);
        assert_eq!(part(&["a", &long]).len(), 1);
        assert_eq!(part(&["a", "b"]).len(), 2);
        assert!(part(&[]).is_empty());
    }
}
