//! Texts with a label each, for classification.
//!
//! | name ends in | form |
//! |---|---|
//! | `.tsv`, `.txt` | columns with tabs between them |
//! | `.csv` | columns with commas between them, quoted where needed |
//! | `.jsonl`, `.ndjson` | an object a line |
//!
//! and each with `.gz` after it. Columns may have names in the first row; unless both `text` (or
//! `sentence`) and `label` are among them, every row is an example and its first two columns are
//! the text and the label.

use std::collections::HashMap;
use std::io::BufRead;
use std::path::Path;

use regard_models::{Error, Result};
use serde_json::Value;

use super::columns::{Separator, row};
use super::split::Part;
use super::stream::Lines;

/// What columns of texts are called; GLUE says `sentence`.
const TEXT: [&str; 2] = ["text", "sentence"];
/// What columns of labels are called.
const LABEL: [&str; 1] = ["label"];

/// A text and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labelled {
    /// The text, without spaces around it.
    pub text: String,
    /// Which of the labels.
    pub label: usize,
}

/// Texts with their labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelledTexts {
    /// The names of the labels.
    pub labels: Vec<String>,
    /// The examples, in the order of the file.
    pub examples: Vec<Labelled>,
}

/// The forms that the Stanford sentiment treebank has with two labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sentiment {
    /// Sentences and the phrases in them: 60,614 and 6,735 of GLUE's training set, and its
    /// development set of 872 sentences as the test. Phrases of a sentence of the first part
    /// may be in the second: what that one measures is too good.
    Phrases,
    /// Whole sentences: 6,920, 872 and 1,821.
    Sentences,
}

impl LabelledTexts {
    /// Reads a file. Labels are those of the list, or numbered in the order in which they come
    /// first; a list is what makes two files agree.
    pub fn read(path: impl AsRef<Path>, labels: Option<&[&str]>) -> Result<LabelledTexts> {
        let mut texts = LabelledTexts::default();
        texts.labels.extend(labels.unwrap_or_default().iter().map(|label| label.to_string()));
        let mut places: HashMap<String, usize> = HashMap::new();
        for (place, label) in texts.labels.iter().enumerate() {
            places.entry(label.clone()).or_insert(place);
        }
        let mut rows = Rows::open(path)?;
        while let Some((text, label)) = rows.next().transpose()? {
            let place = match (places.get(&label), labels) {
                (Some(place), _) => *place,
                (None, None) => {
                    places.insert(label.clone(), texts.labels.len());
                    texts.labels.push(label);
                    texts.labels.len() - 1
                }
                (None, Some(labels)) => {
                    let message = format!("label {label:?} is not one of {}", labels.join(", "));
                    return Err(rows.lines.error(message));
                }
            };
            texts.examples.push(Labelled { text, label: place });
        }
        Ok(texts)
    }

    /// Reads a part of the data set `sst2` in its folder. Label 0 is bad and 1 is good.
    pub fn sentiment(
        folder: impl AsRef<Path>,
        form: Sentiment,
        part: Part,
    ) -> Result<LabelledTexts> {
        let form = match form {
            Sentiment::Phrases => "glue-phrases",
            Sentiment::Sentences => "sentence-level",
        };
        let part = match part {
            Part::Train => "train.tsv",
            Part::Valid => "dev.tsv",
            Part::Test => "test.tsv",
        };
        LabelledTexts::read(folder.as_ref().join(form).join(part), Some(&["0", "1"]))
    }

    /// How many examples each label has.
    pub fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.labels.len()];
        self.examples.iter().for_each(|example| counts[example.label] += 1);
        counts
    }
}

/// How the rows of a file are to be taken apart.
#[derive(Clone, Copy)]
enum Form {
    /// Columns, and which of them are the text and the label, once the first row was seen.
    Columns(Separator, Option<(usize, usize)>),
    Objects,
}

/// Texts and the names of their labels, one after another in constant memory. After an error
/// comes no more.
pub struct Rows<R> {
    lines: Lines<R>,
    form: Form,
    done: bool,
}

impl Rows<Box<dyn BufRead + Send>> {
    /// Opens a file; its name says of which form it is.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let mut name = path.to_string_lossy().to_lowercase();
        if name.ends_with(".gz") {
            name.truncate(name.len() - 3);
        }
        let form = match name.rsplit_once('.').map_or("", |(_, end)| end) {
            "tsv" | "txt" => Form::Columns(Separator::Tab, None),
            "csv" => Form::Columns(Separator::Comma, None),
            "jsonl" | "ndjson" => Form::Objects,
            _ => {
                let message =
                    "is of no known form: its name must end in .tsv, .txt, .csv or .jsonl";
                return Err(Error::file(path, message));
            }
        };
        Ok(Rows { lines: Lines::open(path)?, form, done: false })
    }
}

impl<R: BufRead> Rows<R> {
    fn read(&mut self) -> Result<Option<(String, String)>> {
        let found = match self.form {
            Form::Objects => self.object()?,
            Form::Columns(between, columns) => self.columns(between, columns)?,
        };
        let Some((text, label)) = found else { return Ok(None) };
        let (text, label) = (text.trim().to_owned(), label.trim().to_owned());
        match (text.is_empty(), label.is_empty()) {
            (true, _) => Err(self.lines.error("the text is empty")),
            (_, true) => Err(self.lines.error("the label is empty")),
            _ => Ok(Some((text, label))),
        }
    }

    fn columns(
        &mut self,
        between: Separator,
        columns: Option<(usize, usize)>,
    ) -> Result<Option<(String, String)>> {
        let Some(mut cells) = row(&mut self.lines, between)? else { return Ok(None) };
        let (text, label) = match columns {
            Some(columns) => columns,
            None => {
                let named = |names: &[&str]| {
                    let is = |cell: &str| names.iter().any(|name| cell.eq_ignore_ascii_case(name));
                    cells.iter().position(|cell| is(cell.trim()))
                };
                let (columns, header) = match (named(&TEXT), named(&LABEL)) {
                    (Some(text), Some(label)) => ((text, label), true),
                    _ => ((0, 1), false),
                };
                self.form = Form::Columns(between, Some(columns));
                if header {
                    return self.columns(between, Some(columns));
                }
                columns
            }
        };
        if let Some(missing) = [text, label].into_iter().find(|&i| i >= cells.len()) {
            let (found, wanted) = (cells.len(), missing + 1);
            let message = format!("has {found} columns, and column {wanted} is needed");
            return Err(self.lines.error(message));
        }
        let label = std::mem::take(&mut cells[label]);
        Ok(Some((std::mem::take(&mut cells[text]), label)))
    }

    fn object(&mut self) -> Result<Option<(String, String)>> {
        let line = loop {
            match self.lines.next().transpose()? {
                Some(line) if line.trim().is_empty() => {}
                Some(line) => break line,
                None => return Ok(None),
            }
        };
        let object: Value = serde_json::from_str(&line).map_err(|e| self.lines.error(e))?;
        let value = |names: &[&str]| {
            let found = names.iter().find_map(|name| object.get(name));
            match found {
                Some(Value::String(text)) => Ok(text.clone()),
                Some(plain @ (Value::Number(_) | Value::Bool(_))) => Ok(plain.to_string()),
                Some(_) => Err(self.lines.error(format!("{:?} is not a text", names[0]))),
                None => Err(self.lines.error(format!("has no {:?}", names[0]))),
            }
        };
        Ok(Some((value(&TEXT)?, value(&LABEL)?)))
    }
}

impl<R: BufRead> Iterator for Rows<R> {
    type Item = Result<(String, String)>;

    fn next(&mut self) -> Option<Result<(String, String)>> {
        if self.done {
            return None;
        }
        let next = self.read().transpose();
        self.done = !matches!(next, Some(Ok(_)));
        next
    }
}

#[cfg(test)]
mod tests {
    use super::super::scratch::with_file;
    use super::*;

    fn read(name: &str, text: &str, labels: Option<&[&str]>) -> Result<LabelledTexts, String> {
        with_file(name, text.as_bytes(), |path| LabelledTexts::read(path, labels))
            .map_err(|e| e.to_string())
    }

    #[test]
    fn all_forms_say_the_same() {
        for (name, text) in [
            ("a.tsv", "sentence\tlabel\n so \"good\" , \tyes\nno\tno\nfine\tyes\n"),
            ("b.TXT", "so \"good\" ,\tyes\nno\tno\textra\nfine\tyes"),
            ("c.csv", "id,Label,Text\n1,yes,\"so \"\"good\"\" ,\"\n2,no,no\n3,yes,fine\n"),
            ("d.csv", "\"so \"\"good\"\" ,\",yes\nno,no\nfine,yes\n"),
            (
                "e.jsonl",
                "{\"label\": \"yes\", \"text\": \"so \\\"good\\\" ,\"}\n\n\
                 {\"sentence\": \"no\", \"label\": \"no\"}\n{\"text\":\"fine\",\"label\":\"yes\"}",
            ),
        ] {
            let texts = read(name, text, None).unwrap();
            assert_eq!(texts.labels, ["yes", "no"], "{name}");
            let found: Vec<_> = texts.examples.iter().map(|e| (e.text.as_str(), e.label)).collect();
            assert_eq!(found, [("so \"good\" ,", 0), ("no", 1), ("fine", 0)], "{name}");
            assert_eq!(texts.counts(), [2, 1]);
        }
    }

    #[test]
    fn a_list_gives_the_order_and_refuses_others() {
        let text = "{\"text\": \"a\", \"label\": 1}\n{\"text\": \"b\", \"label\": 0}\n";
        let texts = read("list.jsonl", text, Some(&["0", "1"])).unwrap();
        assert_eq!(texts.examples[0].label, 1);
        let error = read("other.tsv", "a\t0\nb\t2\n", Some(&["0", "1"])).unwrap_err();
        assert!(error.contains("line 2: label \"2\" is not one of 0, 1"), "{error}");
    }

    #[test]
    fn what_is_wrong_has_its_line() {
        for (name, text, message) in [
            ("a.tsv", "a\t1\nb\n", "line 2: has 1 columns, and column 2 is needed"),
            ("b.tsv", "a\t1\n \t1\n", "line 2: the text is empty"),
            ("c.tsv", "a\t\n", "line 1: the label is empty"),
            ("d.jsonl", "{\"text\": \"a\"}\n", "line 1: has no \"label\""),
            ("e.jsonl", "\n[1]\n", "line 2: has no \"text\""),
            ("f.jsonl", "{\"text\": {}, \"label\": 1}", "line 1: \"text\" is not a text"),
            ("g.jsonl", "{\"text\"", "line 1: EOF"),
            ("h.xml", "<a/>", "is of no known form"),
        ] {
            let error = read(name, text, None).unwrap_err();
            assert!(error.contains(message) && error.contains(name), "{error}");
        }
    }
}
