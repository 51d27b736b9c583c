//! Translation as a pipeline.

use super::request::Request;
use super::{Translated, Translator};
use crate::decode::SearchParameters;
use crate::pipeline::Pipeline;
use regard_models::{Error, ModelFiles, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of a translation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Also return words, their scores, their alignment and the attention weights.
    pub output_attentions: bool,
    /// Put the source word with the most attention in place of an unknown token.
    pub replace_unknowns: bool,
    /// Text that every translation begins with.
    pub target_prefix: String,
    /// Sentences at a time; the results do not depend on it. 32 by default.
    pub batch_size: Option<usize>,
    /// Number of the first input among all that will be translated: with the seed it decides what
    /// is sampled.
    pub first: u64,
    /// How to search.
    #[serde(flatten)]
    pub search: SearchParameters,
}

/// A translation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// Its text.
    pub translation_text: String,
    /// Log-probability after penalties, by which results are ordered; null if it is not finite.
    pub score: Option<f32>,
    /// Log-probability; null if it is not finite.
    pub log_prob: Option<f32>,
    /// Whether the end was reached, rather than the greatest length.
    pub finished: bool,
    /// Tokens of the source.
    pub source_tokens: Vec<String>,
    /// Tokens of the translation.
    pub tokens: Vec<String>,
    /// Log-probability of each token.
    pub token_scores: Vec<f32>,
    /// Words, alignment and attention, if they were asked for.
    #[serde(flatten)]
    pub words: Option<WordAlignment>,
    /// The other results, the best first, if several were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Response>,
}

/// A translation word by word.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WordAlignment {
    /// Words of the source.
    pub source_words: Vec<String>,
    /// Words of the translation.
    pub words: Vec<String>,
    /// Log-probability of each word.
    pub word_scores: Vec<f32>,
    /// Pairs of source and target word, as Pharaoh writes them: `0-0 1-2`.
    pub alignment: String,
    /// Attention of each word over the words of the source. What is missing to 1 in a row went to
    /// the end of the source.
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
    /// Translates texts: for each its translations, the best first.
    pub fn translate_with<S: AsRef<str>>(
        &self,
        texts: &[S],
        parameters: &Parameters,
    ) -> Result<Vec<Vec<Translated>>> {
        let Parameters { output_attentions, replace_unknowns, target_prefix, first, .. } =
            parameters;
        let options = parameters.search.over(self.defaults())?;
        let request = Request {
            batch: parameters.batch_size.unwrap_or(32),
            look: *output_attentions,
            replace_unknowns: *replace_unknowns,
            target_prefix,
            first: *first,
            ..Request::new(&options)
        };
        Translator::run(self, texts, &request)
    }

    /// The response for a text and its translations.
    ///
    /// # Errors
    /// If attention is asked for and the model has none, or the text was translated in pieces.
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

    /// Why a translation has no alignment.
    pub fn no_alignment(&self, each: &Translated) -> Error {
        match each.pieces > 1 {
            true => Error::invalid(format!(
                "attention: a text of {} tokens is read in pieces, and there is no map of those; \
                 give at most {} tokens at a time",
                each.source_tokens.len(),
                self.most_tokens()
            )),
            false => Error::invalid(
                "attention: this model does not tell where it looks; take one with attention",
            ),
        }
    }
}
