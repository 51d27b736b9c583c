//! A label for a text.

pub(crate) mod learn;
mod pipeline;

pub use crate::logits::Label;
pub use pipeline::{Classifier, Inputs, Parameters, RankedLabels, Response};

use crate::logits::softmax;
use crate::reader::{Reader, numbers, push};
use crate::text::Encoding;
use regard_models::text::Texts;
use regard_models::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A word of a text, and how much it weighs in what is said of the text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Weight {
    /// What stands there.
    pub word: String,
    /// From 0 to 1; those of a text make 1.
    pub weight: f64,
    /// The number of its first character.
    pub start: usize,
    /// That of the character after it.
    pub end: usize,
}

impl Reader {
    /// Which words decide: the weights by which a model pools the words of a text. Nothing of a
    /// model that does not pool by attention.
    pub fn weigh(&self, text: &str) -> Result<Option<Vec<Weight>>> {
        let encoding = self.tokenizer.encode_within(text, None, self.longest())?;
        if encoding.is_empty() {
            return Err(Error::invalid("a text without tokens cannot be read"));
        }
        let mut texts = Texts::new();
        let Encoding { ids, types, letters, .. } = &encoding;
        push(&*self.model, &mut texts, ids, types, letters);
        let Some(weights) = self.model.look_inside(&texts).1.weights else { return Ok(None) };
        let places = encoding.in_characters(&[text]);
        let one = |(at, weight): (usize, f32)| {
            let ((start, end), (from, to)) = (places[at], encoding.offsets[at]);
            let word = text.get(from..to).unwrap_or_default().to_string();
            Weight { word, weight: f64::from(weight), start, end }
        };
        Ok(Some(numbers(weights)?.into_iter().enumerate().map(one).collect()))
    }

    /// Tokens of a text or a pair that are cut off, because it is longer than the model reads.
    pub fn unread(&self, text: &str, pair: Option<&str>) -> Result<usize> {
        let whole = self.tokenizer.encode_special(text, pair)?.len();
        Ok(whole.saturating_sub(self.longest()))
    }

    /// All labels of each text, the likeliest first. Of a pair, both texts are read. A text that
    /// is longer than the model can read is cut, as Hugging Face's pipeline cuts it.
    ///
    /// Labels exclude each other, unless the configuration has
    /// `"problem_type": "multi_label_classification"`; then each has a probability of its own.
    pub fn classify(&self, texts: &[(&str, Option<&str>)]) -> Result<Vec<Vec<Label>>> {
        let longest = self.longest();
        let encode = |(text, pair): &(&str, Option<&str>)| {
            self.tokenizer.encode_within(text, *pair, longest)
        };
        let encodings: Vec<_> = texts.iter().map(encode).collect::<Result<_>>()?;
        let each = self.model.config()["problem_type"] == "multi_label_classification";
        let mut all = vec![];
        self.read(&encodings, |_, _, said| {
            let logits = said.logits.ok_or_else(|| Error::invalid("a model without labels"))?;
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
