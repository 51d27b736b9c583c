//! Learning to give texts labels.

use super::{Exam, Example, Goal, Marks, Recipe};
use crate::data::labelled::{LabelledTexts, Sentiment};
use crate::data::{Part, sentiment, sets};
use crate::metrics::Confusion;
use crate::text::Tokenizer;
use regard_models::text::Head;
use regard_models::{Error, Result};

/// Texts with labels.
pub(in super::super) struct Classes {
    labels: Vec<String>,
    train: Vec<Example>,
    valid: Vec<Example>,
}

impl Classes {
    pub fn read(recipe: &Recipe) -> Result<(Tokenizer, Classes)> {
        let (train, valid) = parts(recipe)?;
        let tokenizer = recipe.tokenizer(train.examples.iter().map(|e| e.text.as_str()))?;
        let examples = |texts: &LabelledTexts| -> Result<Vec<Example>> {
            let one = |e: &crate::data::labelled::Labelled| {
                let encoding = tokenizer.encode_within(&e.text, None, recipe.data.max_tokens)?;
                Ok(Example::new(encoding, vec![e.label as i64]))
            };
            // A text without tokens cannot be read.
            let all = texts.examples.iter().map(one);
            all.filter(|e| e.as_ref().map_or(true, |e| !e.ids.is_empty())).collect()
        };
        let (labels, train, valid) = (train.labels.clone(), examples(&train)?, examples(&valid)?);
        Ok((tokenizer, Classes { labels, train, valid }))
    }
}

fn parts(recipe: &Recipe) -> Result<(LabelledTexts, LabelledTexts)> {
    let sentiment = |form| -> Result<(LabelledTexts, LabelledTexts)> {
        let folder = sets::find("sst2")?;
        let part = |part| LabelledTexts::sentiment(&folder, form, part);
        Ok((part(Part::Train)?, part(Part::Valid)?))
    };
    match recipe.data.set.as_str() {
        "sst2-phrases" => sentiment(Sentiment::Phrases),
        "sst2-sentences" => sentiment(Sentiment::Sentences),
        "sst2-all" => sentiment::phrases_and_sentences(sets::find("sst2")?),
        "files" => {
            let [train, valid] = recipe.data.files()?;
            let train = LabelledTexts::read(train, None)?;
            let labels: Vec<&str> = train.labels.iter().map(String::as_str).collect();
            let valid = LabelledTexts::read(valid, Some(&labels))?;
            Ok((train, valid))
        }
        other => Err(Error::invalid(format!(
            "data.set: got {other:?}, need sst2-phrases, sst2-sentences, sst2-all or files"
        ))),
    }
}

impl Goal for Classes {
    const HEAD: Head = Head::Sequence;
    const DECIDES: &'static str = "valid_accuracy";

    fn labels(&self) -> &[String] {
        &self.labels
    }

    fn examples(&self) -> &[Example] {
        &self.train
    }

    fn asked(&self) -> usize {
        self.valid.len()
    }

    fn evaluate(&self, exam: &Exam) -> Result<Marks> {
        let mut confusion = Confusion::new(self.labels.len());
        exam.labels(&self.valid, |said, right| confusion.add(said, right))?;
        let measures = vec![
            ("valid_accuracy".to_string(), 100.0 * confusion.accuracy()),
            ("valid_f1".to_string(), 100.0 * confusion.macro_mean().f1),
        ];
        Ok((measures, None))
    }
}
