//! A label for a text.

use super::{Reader, numbers, softmax};
use regard_models::{Error, Result};

/// A label, and how sure the model is of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// Its name.
    pub label: String,
    /// Its probability.
    pub score: f64,
}

impl Reader {
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
            for row in numbers(logits).chunks_exact(labels) {
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
