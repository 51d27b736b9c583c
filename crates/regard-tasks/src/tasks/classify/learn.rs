//! Training of text classification.

use crate::about::About;
use crate::data::Part;
use crate::data::choose::Spelling;
use crate::data::known::{self, DataSet, Format};
use crate::data::labelled::{ColumnSelection, Columns, LabelledRows, LabelledText, LabelledTexts};
use crate::evaluation::{DetailedMarks, Details, EvaluationData, EvaluationSet, Metric, Source};
use crate::metrics::Confusion;
use crate::reader::TextEncoder;
use crate::reader::learn::{
    Data, EvaluationExamples, Evaluator, Example, Marks, Recipe, TextTask, likeliest,
};
use crate::recipe::details::{JudgedLabel, ShownInput};
use crate::text::Tokenizer;
use crate::{own, say};
use regard_models::text::Head;
use regard_models::{Error, Result};
use std::collections::HashSet;

/// Training and validation texts with their labels.
pub(crate) struct Classes {
    labels: Vec<String>,
    train: Texts,
    valid: Texts,
    about: About,
}

/// Encoded texts with their labels.
pub(crate) struct Texts {
    examples: Vec<Example>,
    /// Labels of texts without tokens, for which the model makes no prediction.
    silent: Vec<usize>,
    /// Index of each example among the texts that were given.
    places: Vec<usize>,
    /// Texts that were given, with their numbers in the data from 1; empty in training.
    given: Vec<(usize, String)>,
}

impl Texts {
    fn new<'a>(
        tokenizer: &Tokenizer,
        longest: usize,
        texts: impl Iterator<Item = (&'a str, usize)>,
    ) -> Result<Texts> {
        let mut all = Texts { examples: vec![], silent: vec![], places: vec![], given: vec![] };
        for (place, (text, label)) in texts.enumerate() {
            let encoding = tokenizer.encode_within(text, None, longest)?;
            if encoding.is_empty() {
                all.silent.push(label);
                continue;
            }
            all.examples.push(Example::new(encoding, vec![label as i64]));
            all.places.push(place);
        }
        Ok(all)
    }

    /// Computes the metrics of the predicted labels.
    fn marks(&self, said: &[usize]) -> Vec<Metric> {
        let right = || self.examples.iter().map(|example| example.wanted[0] as usize);
        let most = said.iter().copied().chain(right()).chain(self.silent.iter().copied()).max();
        let mut confusion = Confusion::new(most.map_or(0, |most| most + 1));
        said.iter().zip(right()).for_each(|(said, right)| confusion.add(*said, right));
        self.silent.iter().for_each(|right| confusion.miss(*right));
        let accuracy = 100.0 * confusion.accuracy();
        vec![
            Metric { name: "accuracy", value: accuracy, unit: "% of texts" },
            Metric { name: "f1", value: 100.0 * confusion.macro_mean().f1, unit: "% (macro-F1)" },
        ]
    }
}

/// Keeps the examples whose text `keeps`, and their numbers.
fn retain(texts: &mut LabelledTexts, numbers: &mut Vec<usize>, keeps: impl Fn(&str) -> bool) {
    let examples = std::mem::take(&mut texts.examples).into_iter();
    let both = examples.zip(std::mem::take(numbers));
    (texts.examples, *numbers) = both.filter(|(example, _)| keeps(&example.text)).unzip();
}

/// Labels and columns of the training file.
type Like<'a> = (&'a [&'a str], Option<&'a Columns>);

/// Returns the texts of a part. Labels are numbered as in `like`, else in order of appearance.
fn texts(data: &Data, part: Part, like: Option<Like>) -> Result<LabelledTexts> {
    let labels = like.map(|(labels, _)| labels);
    let (recipe_key, name) = data.named(part);
    let read = match known::named("classify", recipe_key, name)? {
        Some(DataSet { format: Format::Labelled(read), .. }) => read(part)?,
        Some(set) => return known::unread(set),
        None => {
            let (path, columns) = (data.file(part)?, like.and_then(|(_, columns)| columns));
            let mut read = LabelledTexts::read_as(path, &data.asked(), labels, columns)?;
            read.examples.retain(|example| data.keeps(part, &key(&example.text)));
            return Ok(read);
        }
    };
    match labels {
        Some(labels) => with_labels(read, labels)
            .map_err(|e| Error::invalid(format!("{}: {e}", data.set_of(part)))),
        None => Ok(read),
    }
}

/// Renumbers the labels of texts to indices into this list.
fn with_labels(mut texts: LabelledTexts, labels: &[&str]) -> Result<LabelledTexts, String> {
    let number = |name: &String| {
        labels.iter().position(|label| label == name).ok_or_else(|| {
            let known = say::list(labels, 8);
            format!("got the label {name:?}, the training data has other labels: {known}")
        })
    };
    let numbers: Vec<usize> = texts.labels.iter().map(number).collect::<Result<_, _>>()?;
    texts.examples.iter_mut().for_each(|example| example.label = numbers[example.label]);
    texts.labels = labels.iter().map(|label| label.to_string()).collect();
    Ok(texts)
}

/// Returns the columns of the training file, if it still exists.
fn learned_columns(data: &Data) -> Option<Columns> {
    let path = data.train.as_ref()?;
    LabelledRows::open_as(path, &data.asked(), None, None).ok()?.columns().cloned()
}

/// Training and test texts.
struct Parts {
    /// Training part without the texts that are also in the test part.
    train: LabelledTexts,
    test: Option<LabelledTexts>,
    /// Number of texts in both parts.
    left_out: usize,
}

fn parts(data: &Data) -> Result<Parts> {
    let mut train = texts(data, Part::Train, None)?;
    if !data.has_test(data.set_of(Part::Test)) {
        return Ok(Parts { train, test: None, left_out: 0 });
    }
    let labels: Vec<&str> = train.labels.iter().map(String::as_str).collect();
    let test = texts(data, Part::Test, Some((&labels, train.columns.as_ref())))?;
    let reported: HashSet<String> = keys(&test).collect();
    let all = train.examples.len();
    train.examples.retain(|example| !reported.contains(&key(&example.text)));
    let left_out = all - train.examples.len();
    Ok(Parts { train, test: Some(test), left_out })
}

/// Returns a key for duplicates: the text's letters and digits in lower case. One of SST-2's forms
/// has full stops and apostrophes that the other lacks.
fn key(text: &str) -> String {
    let letters = text.chars().filter(|c| c.is_alphanumeric());
    let key: String = letters.flat_map(char::to_lowercase).collect();
    if key.is_empty() { text.to_string() } else { key }
}

fn keys(texts: &LabelledTexts) -> impl Iterator<Item = String> {
    texts.examples.iter().map(|example| key(&example.text))
}

impl TextTask for Classes {
    const HEAD: Head = Head::Sequence;
    const DECIDES: &'static str = "valid_accuracy";
    const COUNTED: &'static str = "texts";
    type EvaluationExamples = Texts;

    fn read(recipe: &Recipe) -> Result<(Tokenizer, Classes)> {
        let Parts { train, test, left_out } = parts(&recipe.data)?;
        let labels: Vec<&str> = train.labels.iter().map(String::as_str).collect();
        let valid = texts(&recipe.data, Part::Valid, Some((&labels, train.columns.as_ref())))?;
        let tokenizer = recipe.tokenizer(train.examples.iter().map(|e| e.text.as_str()))?;
        let longest = recipe.data.max_tokens;
        let numbers = |texts: &LabelledTexts| {
            Texts::new(&tokenizer, longest, texts.examples.iter().map(|e| (&*e.text, e.label)))
        };
        let mut about = About::default();
        let mut tell = |part: Part, texts: &LabelledTexts, more: &str| {
            let columns = texts.columns.as_ref().map(|columns| format!(" ({})", columns.told()));
            let what = say::many(texts.examples.len(), "text") + &columns.unwrap_or_default();
            about.part(part.name(), recipe.data.source(part), what + more);
        };
        let without = match left_out {
            0 => String::new(),
            n => format!(", {} left out because the test part has them", say::many(n, "text")),
        };
        tell(Part::Train, &train, &without);
        tell(Part::Valid, &valid, "");
        if let Some(test) = &test {
            tell(Part::Test, test, "");
        }
        let counts: Vec<(&str, usize)> = labels.iter().copied().zip(train.counts()).collect();
        about.labels("label", &counts);
        let (train_texts, valid) = (numbers(&train)?, numbers(&valid)?);
        let classes = Classes { labels: train.labels, train: train_texts, valid, about };
        Ok((tokenizer, classes))
    }

    fn labels(&self) -> &[String] {
        &self.labels
    }

    fn examples(&self) -> &[Example] {
        &self.train.examples
    }

    fn valid(&self) -> &Texts {
        &self.valid
    }

    fn about(&self) -> About {
        self.about.clone()
    }

    fn paper(
        recipe: &Recipe,
        on: &EvaluationData,
        reader: &TextEncoder,
    ) -> Result<(Texts, EvaluationSet)> {
        let data = recipe.data.on(on);
        let source = on.decide(data.set_of(Part::Test), |set| data.has_test(set))?;
        let known: Vec<&str> = reader.labels().iter().map(String::as_str).collect();
        let mut asked = match source {
            Source::File(path) => {
                // Files are named on the command line, where flags choose their columns.
                let columns = ColumnSelection { spelling: Spelling::Flags, ..data.asked() };
                LabelledTexts::read_for(path, &columns, &known, None)?
            }
            Source::Set(own::FILES, part) => {
                let (path, like) = (data.file(part)?, learned_columns(&data));
                LabelledTexts::read_for(path, &data.asked(), &known, like.as_ref())?
            }
            Source::Set(_, part) => texts(&data, part, None)?,
        };
        // Counted before any is left out, so that an example is found in its file.
        let mut given: Vec<usize> = (1..=asked.examples.len()).collect();
        if let Source::Set(own::FILES, part) = source {
            retain(&mut asked, &mut given, |text| data.keeps(part, &key(text)));
        }
        let all = asked.examples.len();
        if source.part() == Some(Part::Test) && recipe.data.has_train() {
            let known: HashSet<String> = keys(&parts(&recipe.data)?.train).collect();
            retain(&mut asked, &mut given, |text| !known.contains(&key(text)));
        }
        let number = |name: &String| {
            reader.label_number(name).ok_or_else(|| {
                let (of, labels) = (source.name(), say::list(reader.labels(), 10));
                let name = say::short(name, 60);
                Error::invalid(format!(
                    "{of}: the model has no label {name:?}; its labels are {labels}"
                ))
            })
        };
        let numbers: Vec<usize> = asked.labels.iter().map(number).collect::<Result<_>>()?;
        let pairs = asked.examples.iter().map(|e: &LabelledText| (&*e.text, numbers[e.label]));
        let longest = recipe.data.max_tokens.min(reader.longest());
        let mut paper = Texts::new(reader.tokenizer(), longest, pairs)?;
        let excluded = all - asked.examples.len();
        let note = reader.numbered(&asked.labels);
        let columns = asked.columns.as_ref().map(Columns::told);
        let columns = columns.filter(|_| matches!(source, Source::File(_)));
        paper.given = given.into_iter().zip(asked.examples.into_iter().map(|e| e.text)).collect();
        let sheet = EvaluationSet::new(&source, paper.asked(), "texts");
        Ok((paper, EvaluationSet { excluded, note, columns, ..sheet }))
    }
}

impl EvaluationExamples for Texts {
    fn asked(&self) -> usize {
        self.examples.len() + self.silent.len()
    }

    fn mark(&self, exam: &Evaluator) -> Result<Marks> {
        let said: Vec<usize> = exam.labels(&self.examples)?.into_iter().flatten().collect();
        Ok((self.marks(&said), None))
    }

    fn mark_in_detail(&self, exam: &Evaluator) -> Result<DetailedMarks> {
        let rows: Vec<Vec<f32>> = exam.logits(&self.examples)?.into_iter().flatten().collect();
        let said: Vec<usize> = rows.iter().map(|row| likeliest(row)).collect();
        let right = self.examples.iter().map(|example| example.wanted[0] as usize);
        let judged = rows.iter().zip(&said).zip(right);
        let judged = judged.map(|((row, said), right)| JudgedLabel::new(row, *said, right));
        let silent = self.silent.iter().map(|right| JudgedLabel::missed(*right));
        let judged: Vec<JudgedLabel> = judged.chain(silent).collect();
        let names = exam.names(rows.first().map_or(0, Vec::len));
        let show = |at: usize| {
            let given = self.places.get(at).and_then(|place| self.given.get(*place));
            let (number, text) = given.cloned().unwrap_or_default();
            ShownInput { number: (number > 0).then_some(number), text }
        };
        Ok((self.marks(&said), Some(Details::of_labels(&names, &judged, show))))
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
