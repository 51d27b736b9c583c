//! Texts with a label each, for classification.
//!
//! | name ends in | form |
//! |---|---|
//! | `.tsv`, `.txt` | columns with tabs between them |
//! | `.csv` | columns with commas between them, quoted where needed |
//! | `.jsonl`, `.ndjson` | an object a line |
//!
//! and each with `.gz` after it. The text and label columns or keys are given by [`ColumnSelection`], by
//! names in the first row, or by the contents of the columns: see [`choose()`].

use std::collections::{HashMap, HashSet, VecDeque};
use std::io::BufRead;
use std::path::Path;

use regard_models::{Error, Result};
use serde_json::Value;

use super::choose::{self, choose};
use super::columns::{Separator, row};
use super::split::Part;
use super::stream::Lines;
use crate::say;

pub use super::choose::{ColumnSelection, Columns};

/// Number of rows that are inspected before columns are chosen.
const SAMPLE: usize = 1000;
/// Number of examples from which on almost as many different labels are an error.
const ENOUGH: usize = 20;

/// A text with its label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelledText {
    /// The text, trimmed.
    pub text: String,
    /// Index in [`LabelledTexts::labels`].
    pub label: usize,
}

/// Texts with their labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelledTexts {
    /// Names of the labels.
    pub labels: Vec<String>,
    /// The examples, in the order of the file.
    pub examples: Vec<LabelledText>,
    /// Columns that were read; `None` for JSON lines.
    pub columns: Option<Columns>,
}

/// Versions of the Stanford Sentiment Treebank with two labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sentiment {
    /// Sentences and the phrases in them. Training: 60,614 of GLUE's training set, validation:
    /// 6,735 of it, test: GLUE's 872 development sentences. Phrases of one sentence may be in both
    /// the training and the validation part: metrics on the latter are too optimistic.
    Phrases,
    /// Whole sentences: 6,920 for training, 872 for validation and 1,821 for the test.
    Sentences,
}

impl LabelledTexts {
    /// Reads a file and detects its columns. Labels are those of the list, or numbered in the order
    /// of their first appearance; a list makes the numbers of two files agree.
    pub fn read(path: impl AsRef<Path>, labels: Option<&[&str]>) -> Result<LabelledTexts> {
        LabelledTexts::read_as(path, &ColumnSelection::default(), labels, None)
    }

    /// Reads a file with columns that the user chose, or, where nothing else decides, like those of
    /// another file.
    ///
    /// # Errors
    /// If it is not clear which columns are meant, if a label is not in the list, or if almost
    /// every text has a different label: then a column of texts was taken for labels.
    pub fn read_as(
        path: impl AsRef<Path>,
        asked: &ColumnSelection,
        labels: Option<&[&str]>,
        like: Option<&Columns>,
    ) -> Result<LabelledTexts> {
        let rows = LabelledRows::open_as(path.as_ref(), asked, labels, like)?;
        let (texts, different) = LabelledTexts::collect(rows, labels)?;
        // Known labels are not checked: there may be few texts per label.
        if labels.is_none() {
            texts.check_labels(path.as_ref(), different)?;
        }
        Ok(texts)
    }

    /// Reads a file for a model with these labels (empty if it has no names for them): they decide
    /// which column holds the labels. Labels are numbered by first appearance and may be others,
    /// such as class numbers.
    pub fn read_for(
        path: impl AsRef<Path>,
        asked: &ColumnSelection,
        known: &[&str],
        like: Option<&Columns>,
    ) -> Result<LabelledTexts> {
        if known.is_empty() {
            return LabelledTexts::read_as(path, asked, None, like);
        }
        let rows = LabelledRows::open_as(path, asked, Some(known), like)?;
        Ok(LabelledTexts::collect(rows, None)?.0)
    }

    /// Returns all rows and the number of different labels in them.
    fn collect(
        mut rows: LabelledRows<impl BufRead>,
        labels: Option<&[&str]>,
    ) -> Result<(LabelledTexts, usize)> {
        let mut texts = LabelledTexts::default();
        texts.labels.extend(labels.unwrap_or_default().iter().map(|label| label.to_string()));
        let mut places: HashMap<String, usize> = HashMap::new();
        for (place, label) in texts.labels.iter().enumerate() {
            places.entry(label.clone()).or_insert(place);
        }
        texts.columns = rows.columns().cloned();
        let mut seen = HashSet::new();
        while let Some((text, label)) = rows.next().transpose()? {
            let place = match (places.get(&label), labels) {
                (Some(place), _) => *place,
                (None, None) => {
                    places.insert(label.clone(), texts.labels.len());
                    texts.labels.push(label);
                    texts.labels.len() - 1
                }
                (None, Some(labels)) => {
                    let message = format!(
                        "label {:?} is not one of {}: {}",
                        say::short(&label, 60),
                        say::many(labels.len(), "label"),
                        say::list(labels, 8)
                    );
                    return Err(rows.error(message));
                }
            };
            seen.insert(place);
            texts.examples.push(LabelledText { text, label: place });
        }
        Ok((texts, seen.len()))
    }

    /// Checks that the label column does not hold texts.
    fn check_labels(&self, path: &Path, different: usize) -> Result<()> {
        let all = self.examples.len();
        if all < ENOUGH || 2 * different <= all {
            return Ok(());
        }
        let column = self.columns.as_ref().map(|columns| columns.label_name());
        let column = column.map_or("the label".to_string(), |name| format!("column {name}"));
        Err(Error::file(
            path,
            format!(
                "{column} has {} different values in {} rows, such as {:?}: that looks like text, \
                 not labels; set data.label (and data.text) to the right columns",
                say::count(different),
                say::count(all),
                say::short(&self.labels[0], 40),
            ),
        ))
    }

    /// Reads a part of the data set `sst2` in its folder. Label 0 is negative and 1 is positive.
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

    /// Returns the number of examples of each label.
    pub fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.labels.len()];
        self.examples.iter().for_each(|example| counts[example.label] += 1);
        counts
    }
}

/// Layout of the rows of a file.
enum Form {
    Columns(Table),
    /// The keys that the user chose; after the first object, the keys found in it.
    Objects(ColumnSelection, Option<Keys>),
}

struct Table {
    between: Separator,
    /// Text and label columns.
    columns: Columns,
    /// Number of columns of the first row.
    width: usize,
}

/// The keys of objects.
struct Keys {
    text: Vec<String>,
    label: String,
}

/// Iterator over texts and the names of their labels, in constant memory. It stops after an
/// error.
pub struct LabelledRows<R> {
    lines: Lines<R>,
    form: Form,
    /// Rows that were read before columns were chosen, with their line numbers.
    read: VecDeque<(u64, Vec<String>)>,
    /// Line number of the last row.
    line: u64,
    done: bool,
}

impl LabelledRows<Box<dyn BufRead + Send>> {
    /// Opens a file; its extension gives the format.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        LabelledRows::open_as(path, &ColumnSelection::default(), None, None)
    }

    /// Opens a file with columns that the user chose, known labels, and the columns of another
    /// file that this one may be like.
    pub fn open_as(
        path: impl AsRef<Path>,
        asked: &ColumnSelection,
        labels: Option<&[&str]>,
        like: Option<&Columns>,
    ) -> Result<Self> {
        let path = path.as_ref();
        let mut name = path.to_string_lossy().to_lowercase();
        if name.ends_with(".gz") {
            name.truncate(name.len() - 3);
        }
        let between = match name.rsplit_once('.').map_or("", |(_, end)| end) {
            "tsv" | "txt" => Separator::Tab,
            "csv" => Separator::Comma,
            "jsonl" | "ndjson" => {
                let (lines, form) = (Lines::open(path)?, Form::Objects(asked.clone(), None));
                return Ok(LabelledRows {
                    lines,
                    form,
                    read: VecDeque::new(),
                    line: 0,
                    done: false,
                });
            }
            _ => {
                let message =
                    "is of an unknown file type: its name must end in .tsv, .txt, .csv or .jsonl";
                return Err(Error::file(path, message));
            }
        };
        let mut lines = Lines::open(path)?;
        let (mut read, mut problem) = (VecDeque::new(), None);
        while read.len() < SAMPLE {
            match row(&mut lines, between) {
                Ok(Some(cells)) => read.push_back((lines.number(), cells)),
                Ok(None) => break,
                Err(error) => {
                    problem = Some(error);
                    break;
                }
            }
        }
        if read.is_empty() {
            return Err(problem.unwrap_or_else(|| Error::file(path, "has no rows")));
        }
        let sample: Vec<&[String]> = read.iter().map(|(_, cells)| &cells[..]).collect();
        let columns = choose(&sample, asked, labels, like);
        let columns = columns.map_err(|message| Error::file(path, message))?;
        if let Some(problem) = problem {
            return Err(problem);
        }
        let width = sample[0].len();
        if columns.header.is_some() {
            read.pop_front();
        }
        let form = Form::Columns(Table { between, columns, width });
        Ok(LabelledRows { lines, form, read, line: 0, done: false })
    }
}

impl<R: BufRead> LabelledRows<R> {
    /// Returns the columns that are read; `None` for JSON lines.
    pub fn columns(&self) -> Option<&Columns> {
        match &self.form {
            Form::Columns(table) => Some(&table.columns),
            Form::Objects(..) => None,
        }
    }

    /// Returns an error about the last row.
    fn error(&self, message: impl std::fmt::Display) -> Error {
        Error::file(self.lines.name(), format!("line {}: {message}", self.line))
    }

    fn read(&mut self) -> Result<Option<(String, String)>> {
        let found = match &self.form {
            Form::Objects(..) => self.object()?,
            Form::Columns(table) => self.columns_of_row(table.between)?,
        };
        let Some((text, label)) = found else { return Ok(None) };
        let (text, label) = (text.trim().to_owned(), label.trim().to_owned());
        match (text.is_empty(), label.is_empty()) {
            (true, _) => Err(self.error("the text is empty")),
            (_, true) => Err(self.error("the label is empty")),
            _ => Ok(Some((text, label))),
        }
    }

    fn columns_of_row(&mut self, between: Separator) -> Result<Option<(String, String)>> {
        let cells = match self.read.pop_front() {
            Some((line, cells)) => {
                self.line = line;
                cells
            }
            None => {
                let Some(cells) = row(&mut self.lines, between)? else { return Ok(None) };
                self.line = self.lines.number();
                cells
            }
        };
        let Form::Columns(Table { columns, width, .. }) = &self.form else {
            unreachable!("objects are read elsewhere")
        };
        let Columns { text, label, header } = columns;
        let needed = 1 + text.iter().chain([label]).max().expect("a label");
        let (found, width) = (cells.len(), *width);
        // An unquoted comma or tab within a text shifts all columns after it. Without a header the
        // first row itself may be shifted: then all others are narrower.
        let slipped = found > width || (header.is_none() && found < width);
        if found < needed || slipped {
            let why = match (slipped, between) {
                (true, Separator::Comma | Separator::Semicolon | Separator::Other(_)) => {
                    "; a text with a comma in it needs quotation marks"
                }
                (true, Separator::Tab) => "; a text must not have a tab in it",
                (false, _) => "",
            };
            let wanted = if slipped { width } else { needed };
            let as_first = if header.is_none() { ", as in the first row" } else { "" };
            return Err(
                self.error(format!("has {found} columns, and {wanted} are needed{as_first}{why}"))
            );
        }
        let texts: Vec<&str> =
            text.iter().map(|i| cells[*i].trim()).filter(|text| !text.is_empty()).collect();
        Ok(Some((texts.join(" "), cells[*label].clone())))
    }

    fn object(&mut self) -> Result<Option<(String, String)>> {
        let line = loop {
            match self.lines.next().transpose()? {
                Some(line) if line.trim().is_empty() => {}
                Some(line) => break line,
                None => return Ok(None),
            }
        };
        self.line = self.lines.number();
        let object: Value = serde_json::from_str(&line).map_err(|e| self.error(e))?;
        let names: Vec<&str> =
            object.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
        let line = self.line;
        let Form::Objects(asked, keys) = &mut self.form else {
            unreachable!("columns are read elsewhere")
        };
        if keys.is_none() {
            let chosen = choose::of_object(&names, asked);
            let told = |message| Error::file(self.lines.name(), format!("line {line}: {message}"));
            let (text, label) = chosen.map_err(told)?;
            let text = text.into_iter().map(str::to_string).collect();
            *keys = Some(Keys { text, label: label.to_string() });
        }
        let Form::Objects(_, Some(Keys { text, label })) = &self.form else {
            unreachable!("they were just chosen")
        };
        if let Some(lacking) = text.iter().chain([label]).find(|key| !names.contains(&&***key)) {
            return Err(self.error(format!(
                "has no {lacking:?}, which the first object has; its keys are {}",
                say::list(&names, 10)
            )));
        }
        let value = |name: &str| match &object[name] {
            Value::String(text) => Ok(text.trim().to_string()),
            plain @ (Value::Number(_) | Value::Bool(_)) => Ok(plain.to_string()),
            _ => Err(self.error(format!("{name:?} is not a text"))),
        };
        let texts = text.iter().map(|key| value(key)).collect::<Result<Vec<_>>>()?;
        Ok(Some((texts.join(" "), value(label)?)))
    }
}

impl<R: BufRead> Iterator for LabelledRows<R> {
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
            ("b.TXT", "so \"good\" ,\tyes\nno\tno\nfine\tyes"),
            ("c.csv", "id,Label,Text\n1,yes,\"so \"\"good\"\" ,\"\n2,no,no\n3,yes,fine\n"),
            ("d.csv", "\"so \"\"good\"\" ,\",yes\nno,no\nfine,yes\n"),
            (
                "e.jsonl",
                "{\"label\": \"yes\", \"text\": \"so \\\"good\\\" ,\"}\n\n\
                 {\"id\": 2, \"text\": \"no\", \"label\": \"no\"}\n{\"text\":\"fine\",\"label\":\"yes\"}",
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
        assert!(error.contains("line 2: label \"2\" is not one of 2 labels: 0, 1"), "{error}");
    }

    #[test]
    fn what_is_wrong_has_its_line() {
        for (name, text, message) in [
            ("a.tsv", "a\t1\nb\n", "line 2: has 1 columns, and 2 are needed"),
            ("b.tsv", "a\t1\n \t1\n", "line 2: the text is empty"),
            ("c.tsv", "a\t\n", "line 1: the label is empty"),
            ("d.jsonl", "{\"text\": \"a\"}\n", "line 1: has no \"label\""),
            ("e.jsonl", "\n[1]\n", "line 2: has no \"text\""),
            ("f.jsonl", "{\"text\": {}, \"label\": 1}", "line 1: \"text\" is not a text"),
            ("g.jsonl", "{\"text\"", "line 1: EOF"),
            ("h.xml", "<a/>", "unknown file type"),
            // Keys are those of the first object, and no others are taken in their place.
            (
                "i.jsonl",
                "{\"text\": \"a\", \"label\": 1}\n{\"sentence\": \"b\", \"label\": 1}\n",
                "line 2: has no \"text\", which the first object has; its keys are",
            ),
            (
                "j.jsonl",
                "{\"title\": \"a\", \"body\": \"b\", \"label\": 1}\n\n\
                 {\"title\": \"c\", \"label\": 1}\n",
                "line 3: has no \"body\"",
            ),
            (
                "k.jsonl",
                "{\"text\": \"a\", \"label\": 1}\n{\"text\": \"b\", \"class\": 1}\n",
                "line 2: has no \"label\"",
            ),
        ] {
            let error = read(name, text, None).unwrap_err();
            assert!(error.contains(message) && error.contains(name), "{error}");
        }
    }

    #[test]
    fn a_header_is_never_an_example_and_labels_are_never_texts() {
        let rows =
            |n: usize, row: &dyn Fn(usize) -> String| -> String { (0..n).map(row).collect() };
        let news = rows(40, &|i| format!("{},Title {i},\"Text, number {i}\"\n", i % 4));
        let texts = read("news.csv", &format!("label,title,description\n{news}"), None).unwrap();
        assert_eq!((texts.examples.len(), texts.labels.len()), (40, 4));
        assert_eq!(texts.examples[1].text, "Title 1 Text, number 1");
        // The same without a header is not guessed.
        let error = read("bare.csv", &news, None).unwrap_err();
        assert!(error.contains("bare.csv") && error.contains("data.label"), "{error}");
        let two = rows(40, &|i| format!("{},some text {i}\n", ["neg", "pos"][i % 2]));
        let texts = read("two.csv", &two, None).unwrap();
        assert_eq!(
            (texts.examples.len(), &texts.labels[..]),
            (40, &["neg", "pos"].map(String::from)[..])
        );
        // Columns that were named wrongly.
        let asked = ColumnSelection {
            text: Some("label".into()),
            label: Some("title".into()),
            ..ColumnSelection::default()
        };
        let table = format!("label,title,description\n{news}");
        let error = with_file("wrong.csv", table.as_bytes(), |path| {
            LabelledTexts::read_as(path, &asked, None, None).unwrap_err().to_string()
        });
        for part in
            ["column 'title' has 40 different values in 40 rows", "not labels", "data.label"]
        {
            assert!(error.contains(part), "{part}: {error}");
        }
    }

    #[test]
    fn a_comma_that_is_not_quoted_is_told() {
        let error = read("a.csv", "text,label\nso good, really,yes\n", None).unwrap_err();
        assert!(error.contains("line 2: has 3 columns, and 2 are needed"), "{error}");
        assert!(error.contains("quotation marks"), "{error}");
    }

    /// Without a header too: a row that is wider than the first was split wrongly, and so was the
    /// first if the others are narrower.
    #[test]
    fn rows_of_another_width_are_told() {
        for (name, text, message) in [
            ("a.csv", "fine,yes\nno,no\nso good, really,yes\n", "line 3: has 3 columns, and 2"),
            ("b.tsv", "fine\tyes\nno\tno\textra\nbad\tno", "line 2: has 3 columns, and 2"),
            ("c.csv", "yes,fine\nno,bad\nyes,so good, really\n", "line 3: has 3 columns, and 2"),
        ] {
            let error = read(name, text, None).unwrap_err();
            assert!(error.contains(message) && error.contains("in the first row"), "{error}");
            assert!(error.contains("quotation marks") || error.contains("a tab"), "{error}");
        }
        let asked = ColumnSelection {
            text: Some("1".into()),
            label: Some("2".into()),
            header: Some(false),
            ..ColumnSelection::default()
        };
        let error = with_file("d.csv", b"so good, really,yes\nfine,yes\nno,no\n", |path| {
            LabelledTexts::read_as(path, &asked, None, None).unwrap_err().to_string()
        });
        assert!(error.contains("line 2: has 2 columns, and 3 are needed"), "{error}");
    }

    /// 100 questions with 77 intents, as a small test file of a large set has.
    #[test]
    fn known_labels_may_be_many() {
        let names: Vec<String> = (0..77).map(|i| format!("intent_{i}")).collect();
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        let rows: String = (0..100).map(|i| format!("question {i}\tintent_{}\n", i % 77)).collect();
        let error = read("many.tsv", &rows, None).unwrap_err();
        assert!(error.contains("looks like text"), "{error}");
        let texts = read("many.tsv", &rows, Some(&known)).unwrap();
        assert_eq!((texts.examples.len(), texts.labels.len()), (100, 77));
        let read_for = |name: &str, text: &str, known: &[&str]| {
            with_file(name, text.as_bytes(), |path| {
                LabelledTexts::read_for(path, &ColumnSelection::default(), known, None)
            })
            .map_err(|e| e.to_string())
        };
        assert_eq!(read_for("many.tsv", &rows, &known).unwrap().examples.len(), 100);
        assert!(read_for("many.tsv", &rows, &[]).unwrap_err().contains("looks like text"));
        // The known labels decide the columns: here nothing else does.
        let texts = read_for("one.tsv", "a\tb\n", &["a"]).unwrap();
        assert_eq!((&*texts.examples[0].text, &*texts.labels[0]), ("b", "a"));
        // Labels that the model does not know are kept.
        let numbers = read_for("numbers.tsv", "some text\t0\nmore text\t1\n", &known).unwrap();
        assert_eq!(numbers.labels, ["0", "1"]);
    }

    #[test]
    fn thousands_of_labels_make_a_short_message() {
        let labels: Vec<String> =
            (0..9000).map(|i| format!("a whole review, number {i}")).collect();
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        let error = read("v.csv", "review,label\nfine,new\n", Some(&labels)).unwrap_err();
        assert!(error.len() < 1000 && error.contains("… and 8,992 more"), "{error}");
    }

    #[test]
    fn a_second_file_is_read_like_the_first() {
        let first =
            with_file("first.csv", b"neg,not so good\npos,a fine film\nneg,bad\n", |path| {
                LabelledTexts::read(path, None).unwrap()
            });
        let labels: Vec<&str> = first.labels.iter().map(String::as_str).collect();
        // By itself, nothing would tell which column of this row is the label.
        let second = with_file("second.csv", b"pos,bad\n", |path| {
            let like = first.columns.as_ref();
            LabelledTexts::read_as(path, &ColumnSelection::default(), Some(&labels), like).unwrap()
        });
        assert_eq!(second.examples[0], LabelledText { text: "bad".into(), label: 1 });
    }
}
