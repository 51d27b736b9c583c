//! Translation as a pipeline.

use super::request::TranslationRequest;
use super::{Translated, Translator};
use crate::decode::SearchParameters;
use crate::pipeline::Pipeline;
use regard_models::{Error, ModelFiles, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of a translation request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Whether to return words, their scores, their alignment and the attention weights.
    pub output_attentions: bool,
    /// Whether to replace unknown tokens by the source word with the most attention.
    pub replace_unknowns: bool,
    /// Text that every translation begins with; empty by default.
    pub target_prefix: String,
    /// Maximum number of sentences per batch; the results do not depend on it. 32 by default.
    pub batch_size: Option<usize>,
    /// Number of batches that are translated at the same time, each on a core of its own; the
    /// results do not depend on it. By default one for each thread if there are enough sentences,
    /// otherwise one that uses all threads.
    pub workers: Option<usize>,
    /// Index of the first input. With the seed it determines the random numbers of sampling, so a
    /// list split over several requests gives the same translations as one request.
    pub first: u64,
    /// Search and sampling parameters.
    #[serde(flatten)]
    pub search: SearchParameters,
}

/// A translation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// Text of the translation.
    pub translation_text: String,
    /// Log-probability after penalties, by which results are ordered; null if it is not finite.
    pub score: Option<f32>,
    /// Log-probability of all tokens, in nats; null if it is not finite.
    pub log_prob: Option<f32>,
    /// Whether the end token was generated, rather than the maximum length reached.
    pub finished: bool,
    /// Tokens of the source text.
    pub source_tokens: Vec<String>,
    /// Tokens of the translation.
    pub tokens: Vec<String>,
    /// Log-probability of each token, in nats.
    pub token_scores: Vec<f32>,
    /// Words, alignment and attention; only present if `output_attentions` is set.
    #[serde(flatten)]
    pub words: Option<WordAlignment>,
    /// Further results, the best first; only present if several were requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Response>,
}

/// Word alignment of a translation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WordAlignment {
    /// Words of the source text.
    pub source_words: Vec<String>,
    /// Words of the translation.
    pub words: Vec<String>,
    /// Log-probability of each word of the translation: the sum over its tokens, in nats.
    pub word_scores: Vec<f32>,
    /// Pairs of source and target word indices in Pharaoh format: `0-0 1-2`.
    pub alignment: String,
    /// Attention of each target word over the source words; the rest to 1 in a row is the attention
    /// on the source's end token.
    pub attention: Vec<Vec<f32>>,
}

impl Pipeline for Translator {
    const TASK: &'static str = "translate";

    type Inputs = String;
    type Parameters = Parameters;
    type Response = Response;

    fn open(files: ModelFiles) -> Result<Translator> {
        Translator::load(files)
    }

    fn run(&self, inputs: &[String], parameters: &Parameters) -> Result<Vec<Result<Response>>> {
        let found = self.translate_with(inputs, parameters)?;
        let respond =
            |(text, found): (&String, Vec<Translated>)| self.response(text, &found, parameters);
        Ok(inputs.iter().zip(found).map(respond).collect())
    }
}

impl Translator {
    /// Translates texts; returns the translations of each, the best first.
    pub fn translate_with<S: AsRef<str>>(
        &self,
        texts: &[S],
        parameters: &Parameters,
    ) -> Result<Vec<Vec<Translated>>> {
        let Parameters { output_attentions, replace_unknowns, target_prefix, first, .. } =
            parameters;
        let options = parameters.search.over(self.defaults())?;
        let request = TranslationRequest {
            batch: parameters.batch_size.unwrap_or(32),
            look: *output_attentions,
            replace_unknowns: *replace_unknowns,
            target_prefix,
            workers: parameters.workers,
            first: *first,
            ..TranslationRequest::new(&options)
        };
        Translator::run(self, texts, &request)
    }

    /// Creates the response for a text and its translations.
    ///
    /// # Errors
    /// If attention is requested and the model has none, or the text was translated in pieces.
    pub fn response(
        &self,
        text: &str,
        found: &[Translated],
        parameters: &Parameters,
    ) -> Result<Response> {
        let mut all = found.iter().map(|each| self.one_response(text, each, parameters));
        let mut best = all.next().unwrap_or_else(|| Ok(Response::default()))?;
        best.alternatives = all.collect::<Result<_>>()?;
        Ok(best)
    }

    fn one_response(
        &self,
        text: &str,
        each: &Translated,
        parameters: &Parameters,
    ) -> Result<Response> {
        let finite = |x: f32| x.is_finite().then_some(x);
        let words = match parameters.output_attentions {
            true => Some(self.word_alignment(text, each)?),
            false => None,
        };
        Ok(Response {
            translation_text: each.text.clone(),
            score: finite(each.found.score),
            log_prob: finite(each.found.log_prob),
            finished: each.found.finished,
            source_tokens: each.source_tokens.clone(),
            tokens: each.target_tokens.clone(),
            token_scores: each.found.token_log_probs[..each.target_tokens.len()].to_vec(),
            words,
            alternatives: vec![],
        })
    }

    fn word_alignment(&self, text: &str, each: &Translated) -> Result<WordAlignment> {
        let aligned = self.align(text, each)?;
        if aligned.alignment.is_none() && !each.target_tokens.is_empty() {
            return Err(self.no_alignment(each));
        }
        let alignment = aligned.alignment.unwrap_or_default();
        Ok(WordAlignment {
            source_words: aligned.source,
            words: aligned.target,
            word_scores: aligned.scores,
            alignment: alignment.pharaoh(),
            attention: alignment.weights,
        })
    }

    /// Returns the error for a translation without alignment.
    pub fn no_alignment(&self, each: &Translated) -> Error {
        match each.pieces > 1 {
            true => Error::invalid(format!(
                "attention: a text of {} tokens was split, so there are no attention weights; \
                 give at most {} tokens at a time",
                each.source_tokens.len(),
                self.most_tokens()
            )),
            false => Error::invalid(
                "attention: this model returns no attention weights; need one with attention",
            ),
        }
    }
}
