//! Text classification: labels for a text.

pub(crate) mod learn;
mod pipeline;

pub use crate::logits::Label;
pub use pipeline::{Classifier, Inputs, Parameters, RankedLabels, Response};

use crate::logits::softmax;
use crate::reader::{TextEncoder, numbers, push};
use crate::text::Encoding;
use regard_models::text::Texts;
use regard_models::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A word of a text with its attention weight in pooling.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WordWeight {
    /// Text of the word.
    pub word: String,
    /// Attention weight, 0 to 1; the weights of a text sum to 1.
    pub weight: f64,
    /// Index of the first character in the text, from 0.
    pub start: usize,
    /// Index one past the last character in the text.
    pub end: usize,
}

impl TextEncoder {
    /// Returns the attention weights with which a model pools the words of a text; `None` for a
    /// model that does not pool by attention.
    pub fn weigh(&self, text: &str) -> Result<Option<Vec<WordWeight>>> {
        let encoding = self.tokenizer.encode_within(text, None, self.longest())?;
        if encoding.is_empty() {
            return Err(Error::invalid("a text without tokens cannot be read"));
        }
        let mut texts = Texts::new();
        let Encoding { ids, types, letters, .. } = &encoding;
        push(&*self.model, &mut texts, ids, types, letters);
        let Some(weights) = self.model.forward_with_attention(&texts).1.weights else {
            return Ok(None);
        };
        let places = encoding.in_characters(&[text]);
        let one = |(at, weight): (usize, f32)| {
            let ((start, end), (from, to)) = (places[at], encoding.offsets[at]);
            let word = text.get(from..to).unwrap_or_default().to_string();
            WordWeight { word, weight: f64::from(weight), start, end }
        };
        Ok(Some(numbers(weights)?.into_iter().enumerate().map(one).collect()))
    }

    /// Returns the number of tokens that are truncated because a text or pair exceeds the model's
    /// maximum length.
    pub fn unread(&self, text: &str, pair: Option<&str>) -> Result<usize> {
        let whole = self.tokenizer.encode_special(text, pair)?.len();
        Ok(whole.saturating_sub(self.longest()))
    }

    /// Returns all labels of each text, the most probable first. The texts of a pair are encoded
    /// together. A text longer than the model's maximum length is truncated, as in Hugging Face's
    /// pipeline.
    ///
    /// Labels exclude each other (softmax), unless the configuration has
    /// `"problem_type": "multi_label_classification"`; then each has an independent probability
    /// (sigmoid).
    pub fn classify(&self, texts: &[(&str, Option<&str>)]) -> Result<Vec<Vec<Label>>> {
        let longest = self.longest();
        let encode = |(text, pair): &(&str, Option<&str>)| {
            self.tokenizer.encode_within(text, *pair, longest)
        };
        let encodings: Vec<_> = texts.iter().map(encode).collect::<Result<_>>()?;
        let each = self.model.config()["problem_type"] == "multi_label_classification";
        let mut all = vec![];
        self.read(&encodings, |_, _, said| {
            let logits =
                said.logits.ok_or_else(|| self.without_head("ForSequenceClassification"))?;
            let [_, labels] = logits.dims();
            for row in numbers(logits)?.chunks_exact(labels) {
                let scores = match each || labels == 1 {
                    true => row.iter().map(|x| 1.0 / (1.0 + f64::from(-x).exp())).collect(),
                    false => softmax(row),
                };
                let named = scores.into_iter().enumerate();
                let mut named: Vec<Label> =
                    named.map(|(i, score)| Label { label: self.label(i), score }).collect();
                named.sort_by(|a, b| b.score.total_cmp(&a.score));
                all.push(named);
            }
            Ok(())
        })?;
        Ok(all)
    }
}
