//! Texts with one label each, from tables.

use super::examples::{self, check_known, check_parts, divide, skipped, text_key};
use super::findings::{Findings, Place, numbered};
use super::reading::Reading;
use super::table::{Table, is_table};
use super::{DataSize, Draft, PartFiles, Request, is_unspaced, split_line, units, write_lines};
use crate::data::Part;
use crate::data::choose::{ColumnSelection, Columns, Spelling, choose};
use crate::say;
use regard_models::Result;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use toml::{Table as Keys, Value};

/// Rows from which columns are chosen.
const SAMPLE: usize = 1000;
/// A label that has this many times the examples of another is an imbalance worth a warning.
const IMBALANCE: usize = 20;
/// Most labels: an evaluation holds a table of all pairs, 200 MB for this many.
const MOST_LABELS: usize = 5000;
/// Number of rows above which a label column of mostly different values must be text.
const ENOUGH: usize = 20;

/// A text with its label.
#[derive(Clone, Debug, Serialize)]
struct Example {
    text: String,
    label: String,
    #[serde(skip)]
    file: PathBuf,
    #[serde(skip)]
    line: u64,
}

/// Chosen columns, and how the first table was read.
struct Read {
    columns: Columns,
    reading: Reading,
}

impl examples::Example for Example {
    const KEY: &'static str = "text";

    fn key(&self) -> String {
        text_key(&self.text)
    }

    fn label(&self) -> &str {
        &self.label
    }

    fn place(&self) -> Place<'_> {
        Place::line(&self.file, self.line)
    }
}

/// Reads the tables of a request.
pub(super) fn read(request: &Request, findings: &mut Findings) -> Result<Option<Draft>> {
    let files = PartFiles::find(request, &is_table, findings)?;
    let mut columns: Option<Read> = None;
    let mut read = |part: Part| -> Result<Vec<Example>> {
        let mut all = vec![];
        for path in files.of(part) {
            all.extend(rows(path, request, &mut columns, findings)?);
        }
        Ok(all)
    };
    let [train, valid, test] = [read(Part::Train)?, read(Part::Valid)?, read(Part::Test)?];
    let Some(columns) = columns else { return Ok(None) };
    if train.is_empty() {
        return Ok(None);
    }
    let Read { columns, reading } = columns;
    if let Some(like) = request.like() {
        return Ok(Some(whole(train, &columns, like, files.note, findings)));
    }
    check_labels(&columns, &train, findings);
    contradictions([&train, &valid, &test], findings);
    let held = files.held_out();
    let all = divide([train, valid, test], true, held, request.seed, findings);
    check_known(&all, findings);
    check_parts(&all, 2, held, findings);
    let counts = label_counts(&all[0]);
    let labels: Vec<(&str, usize)> = counts.iter().map(|(name, count)| (*name, *count)).collect();
    let reading = reading.with_labels(labels.iter().map(|(name, _)| *name));
    let sizes = [0, 1, 2].map(|part: usize| all[part].len());
    let mut summary = vec![told(&columns, &labels), split_line(sizes, held, request.seed)];
    summary.extend(skipped(findings));
    let texts = || all[0].iter().map(|example| example.text.as_str());
    let unspaced = is_unspaced(texts());
    let lengths: Vec<usize> = texts().map(|text| units(text, unspaced)).collect();
    let size = DataSize {
        examples: lengths.len(),
        units: lengths.iter().sum(),
        longest: lengths.iter().copied().max().unwrap_or(0),
        labels: labels.len(),
        unspaced,
    };
    let names = [("train", "train.jsonl"), ("valid", "valid.jsonl"), ("test", "test.jsonl")];
    let files = names.into_iter().zip(sizes).filter(|(_, count)| *count > 0);
    let files: Vec<_> = files.map(|(name, _)| name).collect();
    let mut data = Keys::new();
    // A power of two that covers nearly all texts; the rest is truncated.
    let most = percentile(&lengths, 98).next_power_of_two().clamp(32, 512);
    data.insert("max_tokens".into(), Value::Integer(most as i64));
    long_texts(&all[0], unspaced, most, findings);
    let keys = Keys::from_iter([("data".to_string(), Value::Table(data))]);
    let written = files.clone();
    let write = move |folder: &Path| {
        written.iter().try_for_each(|(key, name)| {
            let part = names.iter().position(|(each, _)| each == key).unwrap_or(0);
            write_lines(&folder.join(name), &all[part])
        })
    };
    Ok(Some(Draft {
        task: "classify",
        summary,
        parts: sizes,
        size,
        keys,
        files,
        write: Box::new(write),
        reading,
    }))
}

/// Texts that a model is evaluated on, without those whose labels it does not know.
fn whole(
    mut all: Vec<Example>,
    columns: &Columns,
    like: &Reading,
    note: Option<String>,
    findings: &mut Findings,
) -> Draft {
    all.retain(|example| {
        let message = like.unknown(&example.label);
        let place = Place::line(&example.file, example.line);
        message.is_none_or(|message| {
            findings.row("unknown label", place, message);
            false
        })
    });
    let counts = label_counts(&all);
    let counts: Vec<(&str, usize)> = counts.iter().map(|(name, count)| (*name, *count)).collect();
    let told = format!("{}; {}", columns.told(), named(&counts));
    let mut summary = vec![told, say::many(all.len(), "text")];
    summary.extend(note);
    summary.extend(skipped(findings));
    let (count, file) = (all.len(), "test.jsonl");
    let write = move |folder: &Path| write_lines(&folder.join(file), &all);
    Draft::to_evaluate("classify", summary, count, file, Box::new(write))
}

fn percentile(lengths: &[usize], percent: usize) -> usize {
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len().saturating_sub(1) * percent / 100).copied().unwrap_or(0)
}

/// Reads a table; the columns are those of the first one.
fn rows(
    path: &Path,
    request: &Request,
    like: &mut Option<Read>,
    findings: &mut Findings,
) -> Result<Vec<Example>> {
    let mut table = Table::read(path, request.separator(), findings)?;
    if table.rows.is_empty() {
        return Ok(vec![]);
    }
    let chosen = request.for_table(&table).and_then(|request| {
        let asked = ColumnSelection {
            text: request.columns.text.clone(),
            label: request.columns.label.clone(),
            header: table.keys.as_ref().map(|_| true).or(request.header),
            spelling: Spelling::Flags,
        };
        choose(&table.sample(SAMPLE), &asked, None, like.as_ref().map(|like| &like.columns))
    });
    let columns = match chosen {
        Ok(columns) => columns,
        Err(message) => {
            findings.error("columns", Place::whole(path), message);
            return Ok(vec![]);
        }
    };
    table.take_header(columns.header.is_some(), findings);
    table.take_nested(&[&columns.text[..], &[columns.label]].concat(), findings);
    let mut all = vec![];
    for row in &table.rows {
        let place = Place::line(path, row.line);
        let cell = |column: usize| row.cells[column].trim();
        let texts: Vec<&str> =
            columns.text.iter().map(|i| cell(*i)).filter(|text| !text.is_empty()).collect();
        let (text, label) = (texts.join(" "), cell(columns.label).to_string());
        if let Some(message) = row.not_text(&columns.text, columns.header.as_deref()) {
            findings.row("not a text", place, message);
            continue;
        }
        match (text.is_empty(), label.is_empty()) {
            (true, _) => findings.row("empty text", place, "the text is empty"),
            (_, true) => findings.row("empty label", place, "the label is empty"),
            _ => all.push(Example { text, label, file: path.to_path_buf(), line: row.line }),
        }
    }
    let names = columns.header.as_deref();
    let reading = Reading::of_table(&table, names.is_some());
    let reading = reading.with("text", &columns.text, names).with("label", &[columns.label], names);
    like.get_or_insert(Read { columns, reading });
    Ok(all)
}

/// Checks that the label column holds labels, and more than one.
/// Notes equal texts with different labels.
fn contradictions(parts: [&Vec<Example>; 3], findings: &mut Findings) {
    let mut seen: HashMap<&str, &Example> = HashMap::new();
    for example in parts.into_iter().flatten() {
        let first = *seen.entry(example.text.trim()).or_insert(example);
        if first.label != example.label {
            let message = format!(
                "{:?}, but the same text has {:?} in {} of {}",
                say::short(&example.label, 40),
                say::short(&first.label, 40),
                numbered(&first.file, first.line),
                first.file.display()
            );
            let place = Place::line(&example.file, example.line);
            findings.warn("same text, different labels", place, message);
        }
    }
}

fn check_labels(columns: &Columns, train: &[Example], findings: &mut Findings) {
    let counts = label_counts(train);
    let (file, name) = (train[0].file.as_path(), columns.label_name());
    let different = counts.len();
    if train.len() >= ENOUGH && 2 * different > train.len() {
        let message = format!(
            "column {name} has {} different values in {} rows, such as {:?}: that looks like text, \
             not labels; --text and --label name the columns",
            say::count(different),
            say::count(train.len()),
            say::short(&train[0].label, 40)
        );
        findings.error("swapped columns", Place::line(file, train[0].line), message);
        return;
    }
    if different > MOST_LABELS {
        let message = format!(
            "column {name} has {} different labels, need at most {}: an evaluation counts each \
             pair of them",
            say::count(different),
            say::count(MOST_LABELS)
        );
        findings.error("too many labels", Place::line(file, train[0].line), message);
        return;
    }
    if different == 1 {
        let message = format!("every row has the label {:?}", say::short(&train[0].label, 40));
        findings.error("one label", Place::line(file, train[0].line), message);
    }
    for (label, count) in &counts {
        if *count == 1 && different > 1 {
            let one = train.iter().find(|example| example.label == *label).unwrap_or(&train[0]);
            let message = format!("the label {:?} has one example", say::short(label, 40));
            findings.warn("label with one example", Place::line(&one.file, one.line), message);
        }
    }
    let mut folded: BTreeMap<String, &str> = BTreeMap::new();
    for label in counts.keys() {
        if let Some(other) = folded.insert(label.to_lowercase(), label) {
            let [a, b] = [other, label].map(|name| say::short(name, 40));
            let message =
                format!("the labels {a:?} and {b:?} differ only in case; they are two labels");
            findings.warn("labels differ only in case", Place::whole(file), message);
        }
    }
    let most = counts.iter().max_by_key(|(_, count)| **count);
    let least = counts.iter().filter(|(_, count)| **count > 1).min_by_key(|(_, count)| **count);
    if let (Some((much, many)), Some((little, few))) = (most, least)
        && *many >= IMBALANCE * few
    {
        let message = format!(
            "{:?} has {} examples and {:?} {}: read macro-F1 and the F1 of each label, not accuracy",
            say::short(much, 40),
            say::count(*many),
            say::short(little, 40),
            say::count(*few)
        );
        findings.warn("imbalance", Place::whole(file), message);
    }
}

fn label_counts(examples: &[Example]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    examples.iter().for_each(|example| *counts.entry(example.label.as_str()).or_default() += 1);
    counts
}

/// Notes texts that the model reads only in part.
fn long_texts(train: &[Example], unspaced: bool, most: usize, findings: &mut Findings) {
    for example in train {
        let length = units(&example.text, unspaced);
        if length > most {
            let what = if unspaced { "characters" } else { "words" };
            let message = format!("has {length} {what}; the model reads about {most} of them");
            findings.warn("long text", Place::line(&example.file, example.line), message);
        }
    }
}

/// Sentence about the columns and the labels.
fn told(columns: &Columns, labels: &[(&str, usize)]) -> String {
    let count = say::many(labels.len(), "label");
    format!("{}; {count} in the training part: {}", columns.told(), counted(labels))
}

/// Phrase about the labels of examples to evaluate on.
fn named(labels: &[(&str, usize)]) -> String {
    format!("{}: {}", say::many(labels.len(), "label"), counted(labels))
}

fn counted(labels: &[(&str, usize)]) -> String {
    const NAMED: usize = 10;
    let mut each: Vec<String> = labels
        .iter()
        .take(NAMED)
        .map(|(name, count)| format!("{} {}", say::short(name, 40), say::count(*count)))
        .collect();
    if let more @ 1.. = labels.len().saturating_sub(NAMED) {
        each.push(format!("… and {} more", say::count(more)));
    }
    each.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::scratch::with_file;
    use crate::import::{self, Import};

    fn check(name: &str, text: &str) -> (Option<Import>, String) {
        with_file(name, text.as_bytes(), |path| {
            let mut request = Request::new("classify");
            request.data = vec![path.to_path_buf()];
            let (import, findings) = import::read(&request).unwrap();
            (import, findings.text())
        })
    }

    fn news(rows: usize) -> String {
        let row = |i: usize| format!("{},Title {i},\"Text, number {i}\"\n", ["a", "b"][i % 2]);
        (0..rows).map(row).collect()
    }

    #[test]
    fn a_number_is_a_label_and_no_text() {
        let row = |i: usize| format!("{{\"text\": \"text {i}\", \"label\": {}}}\n", i % 2);
        let rows: String = (0..40).map(row).collect();
        let (import, told) = check("n.jsonl", &rows);
        assert!(import.is_some(), "{told}");
        let (import, told) = check("n.jsonl", &(rows + "{\"text\": 5, \"label\": 1}\n"));
        assert!(import.is_none());
        assert!(told.contains("line 41: \"text\" is a number, 5; need a text"), "{told}");
    }

    #[test]
    fn columns_labels_and_split_are_said() {
        let (import, told) =
            check("news.csv", &format!("category,title,description\n{}", news(100)));
        assert_eq!(told, "");
        let import = import.unwrap();
        assert_eq!(import.parts, [80, 10, 10]);
        let said = import.summary.join("\n");
        for part in [
            "text: column 'title' + 'description', label: column 'category'",
            "2 labels in the training part: a 40, b 40",
            "80 train, 10 valid, 10 test (split by seed 0)",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!((import.size.examples, import.size.labels), (80, 2));
        let folder = std::env::temp_dir().join(format!("regard-classify-{}", std::process::id()));
        import.write(&folder).unwrap();
        let text = std::fs::read_to_string(folder.join("test.jsonl")).unwrap();
        assert_eq!(text.lines().count(), 10);
        assert!(text.starts_with("{\"text\":\"Title "), "{text}");
        let keys = import.recipe_keys(&folder);
        assert_eq!(keys["data"]["train"].as_str(), folder.join("train.jsonl").to_str());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// Each row is a broken file: its defect is named with the line, and nothing is imported.
    #[test]
    fn defects_are_named_with_their_lines() {
        let good = news(40);
        for (name, text, wanted) in [
            ("a.csv", format!("label,text\n{}", "x,\n"), "line 2: the text is empty"),
            ("b.csv", format!("label,title,body\n{good},T,b\n"), "line 42: the label is empty"),
            ("c.csv", format!("label,title,body\n{good}a,b\n"), "line 42: has 2 columns"),
            ("d.csv", format!("label,title,body\n{good}a,b,c,d\n"), "line 42: has 4 columns"),
            ("e.csv", "text,label\ngood,x\nbad,x\n".into(), "line 2: every row has the label"),
            (
                "f.csv",
                format!("label,title,body\n{good}a,\"open,b\n"),
                "within the quotation marks of line 42",
            ),
            ("g.jsonl", "{\"text\": \"a\"}\n".into(), "need a text and a label"),
            ("h.csv", good.clone(), "cannot tell which columns"),
            (
                "i.csv",
                format!(
                    "label,text\n{}",
                    (0..40)
                        .map(|i| format!("A whole text number {i},{}\n", i % 2))
                        .collect::<String>()
                ),
                "looks like text, not labels",
            ),
            ("j.csv", String::new(), "has no rows"),
        ] {
            let (import, told) = check(name, &text);
            assert!(import.is_none() && told.contains(wanted), "{name}: {wanted}: {told}");
        }
    }

    #[test]
    fn thousands_of_labels_are_refused() {
        let rows: String = (0..15_003).map(|i| format!("n{},text {i}\n", i % 5001)).collect();
        let (import, told) = check("many.csv", &format!("label,text\n{rows}"));
        assert!(import.is_none() && told.contains("has 5,001 different labels"), "{told}");
    }

    #[test]
    fn warnings_do_not_stop() {
        let mut text = format!("label,title,description\n{}", news(60));
        text += "c,Alone,one\n";
        let (import, told) = check("w.csv", &text);
        assert!(import.is_some(), "{told}");
        assert!(told.contains("warning: label with one example (1)\n"), "{told}");
        assert!(told.contains("line 62: the label \"c\" has one example"), "{told}");
    }

    #[test]
    fn given_parts_are_used_and_duplicates_are_left_out() {
        with_file("train.csv", format!("label,title,text\n{}", news(40)).as_bytes(), |path| {
            let test = path.with_file_name("held.csv");
            std::fs::write(&test, "label,title,text\na,Title 0,\"Text, number 0\"\nb,New,one\n")
                .unwrap();
            let mut request = Request::new("classify");
            (request.data, request.test) = (vec![path.into()], vec![test.clone()]);
            request.columns.text = Some("title,text".into());
            let (import, findings) = import::read(&request).unwrap();
            let import = import.unwrap();
            assert_eq!(import.parts[2], 2);
            assert_eq!(import.parts[0] + import.parts[1], 39);
            let told = findings.text();
            assert!(told.contains("line 2: its text is also on line 2 of"), "{told}");
            std::fs::write(&test, "label,title,text\nz,New,one\n").unwrap();
            let (import, findings) = import::read(&request).unwrap();
            assert!(import.is_none());
            assert!(findings.text().contains("line 2: the label \"z\" is not in the training"));
        });
    }
}
