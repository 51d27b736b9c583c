//! Learning to give texts labels.

use super::{Data, Exam, Example, Goal, Marks, Paper, Recipe};
use crate::data::labelled::{Labelled, LabelledTexts, Sentiment};
use crate::data::{Part, sets};
use crate::examine::{Mark, On, Sheet, Source};
use crate::metrics::Confusion;
use crate::reading::Reader;
use crate::text::Tokenizer;
use regard_models::text::Head;
use regard_models::{Error, Result};
use std::collections::HashSet;

/// Texts with labels.
pub(in super::super) struct Classes {
    labels: Vec<String>,
    train: Texts,
    valid: Texts,
    /// Texts that are not learned from because they are in the test part too.
    left_out: usize,
}

/// Texts as numbers, with their labels.
pub(in super::super) struct Texts {
    examples: Vec<Example>,
    /// The labels of texts without tokens: a model says nothing of those.
    silent: Vec<usize>,
}

impl Classes {
    pub fn read(recipe: &Recipe) -> Result<(Tokenizer, Classes)> {
        let (train, left_out) = learned_from(&recipe.data)?;
        let labels: Vec<&str> = train.labels.iter().map(String::as_str).collect();
        let valid = texts(&recipe.data, Part::Valid, Some(&labels))?;
        let tokenizer = recipe.tokenizer(train.examples.iter().map(|e| e.text.as_str()))?;
        let longest = recipe.data.max_tokens;
        let numbers = |texts: &LabelledTexts| {
            Texts::new(&tokenizer, longest, texts.examples.iter().map(|e| (&*e.text, e.label)))
        };
        let (train_texts, valid) = (numbers(&train)?, numbers(&valid)?);
        let classes = Classes { labels: train.labels, train: train_texts, valid, left_out };
        Ok((tokenizer, classes))
    }
}

impl Texts {
    fn new<'a>(
        tokenizer: &Tokenizer,
        longest: usize,
        texts: impl Iterator<Item = (&'a str, usize)>,
    ) -> Result<Texts> {
        let mut all = Texts { examples: vec![], silent: vec![] };
        for (text, label) in texts {
            let encoding = tokenizer.encode_within(text, None, longest)?;
            match encoding.is_empty() {
                true => all.silent.push(label),
                false => all.examples.push(Example::new(encoding, vec![label as i64])),
            }
        }
        Ok(all)
    }
}

/// The texts of a part. Labels are those of the list, or as they come.
fn texts(data: &Data, part: Part, labels: Option<&[&str]>) -> Result<LabelledTexts> {
    let form = match data.set_of(part) {
        "sst2-phrases" => Sentiment::Phrases,
        "sst2-sentences" => Sentiment::Sentences,
        "files" => return LabelledTexts::read(data.file(part)?, labels),
        other => {
            return Err(Error::invalid(format!(
                "data.set: got {other:?}, need sst2-phrases, sst2-sentences or files"
            )));
        }
    };
    LabelledTexts::sentiment(sets::find("sst2")?, form, part)
}

/// What is learned from: the training part without what is also in the test part, and how many
/// texts that were.
fn learned_from(data: &Data) -> Result<(LabelledTexts, usize)> {
    let mut train = texts(data, Part::Train, None)?;
    if !data.has_test(data.set_of(Part::Test)) {
        return Ok((train, 0));
    }
    let test: HashSet<String> = keys(&texts(data, Part::Test, None)?).collect();
    let all = train.examples.len();
    train.examples.retain(|example| !test.contains(&key(&example.text)));
    let left_out = all - train.examples.len();
    Ok((train, left_out))
}

/// Two texts with the same letters and digits are the same text: one of SST-2's forms has full
/// stops and apostrophes that the other has not.
fn key(text: &str) -> String {
    let letters = text.chars().filter(|c| c.is_alphanumeric());
    let key: String = letters.flat_map(char::to_lowercase).collect();
    if key.is_empty() { text.to_string() } else { key }
}

fn keys(texts: &LabelledTexts) -> impl Iterator<Item = String> {
    texts.examples.iter().map(|example| key(&example.text))
}

impl Goal for Classes {
    const HEAD: Head = Head::Sequence;
    const DECIDES: &'static str = "valid_accuracy";
    const COUNTED: &'static str = "texts";
    type Paper = Texts;

    fn labels(&self) -> &[String] {
        &self.labels
    }

    fn examples(&self) -> &[Example] {
        &self.train.examples
    }

    fn valid(&self) -> &Texts {
        &self.valid
    }

    fn about(&self) -> Option<String> {
        let n = self.left_out;
        (n > 0).then(|| format!("{n} texts left out that the test part has"))
    }

    fn paper(recipe: &Recipe, on: &On, reader: &Reader) -> Result<(Texts, Sheet)> {
        let data = recipe.data.on(on);
        let source = on.decide(data.set_of(Part::Test), |set| data.has_test(set))?;
        let mut asked = match source {
            Source::File(path) => LabelledTexts::read(path, None)?,
            Source::Set(_, part) => texts(&data, part, None)?,
        };
        let all = asked.examples.len();
        if source.part() == Some(Part::Test) && recipe.data.has_train() {
            let known: HashSet<String> = keys(&learned_from(&recipe.data)?.0).collect();
            asked.examples.retain(|example| !known.contains(&key(&example.text)));
        }
        let number = |name: &String| {
            reader.label_number(name).ok_or_else(|| {
                let labels = reader.labels().join(", ");
                let of = source.name();
                Error::invalid(format!("{of}: the model has no label {name:?}, but {labels}"))
            })
        };
        let numbers: Vec<usize> = asked.labels.iter().map(number).collect::<Result<_>>()?;
        let pairs = asked.examples.iter().map(|e: &Labelled| (&*e.text, numbers[e.label]));
        let longest = recipe.data.max_tokens.min(reader.longest());
        let paper = Texts::new(reader.tokenizer(), longest, pairs)?;
        let sheet = Sheet {
            data: source.name(),
            part: source.part(),
            asked: paper.asked(),
            unit: "texts",
            excluded: all - asked.examples.len(),
        };
        Ok((paper, sheet))
    }
}

impl Paper for Texts {
    fn asked(&self) -> usize {
        self.examples.len() + self.silent.len()
    }

    fn mark(&self, exam: &Exam) -> Result<Marks> {
        let said: Vec<usize> = exam.labels(&self.examples)?.into_iter().flatten().collect();
        let right = || self.examples.iter().map(|example| example.wanted[0] as usize);
        let most = said.iter().copied().chain(right()).chain(self.silent.iter().copied()).max();
        let mut confusion = Confusion::new(most.map_or(0, |most| most + 1));
        said.iter().zip(right()).for_each(|(said, right)| confusion.add(*said, right));
        self.silent.iter().for_each(|right| confusion.miss(*right));
        let accuracy = 100.0 * confusion.accuracy();
        let marks = vec![
            Mark { name: "accuracy", value: accuracy, unit: "% of texts" },
            Mark { name: "f1", value: 100.0 * confusion.macro_mean().f1, unit: "% (macro-F1)" },
        ];
        Ok((marks, None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_letters_are_the_same_text() {
        assert_eq!(key("What 's next ?"), key("what's next"));
        assert_ne!(key("no more"), key("no"));
        assert_ne!(key("…"), key("!"));
    }
}
