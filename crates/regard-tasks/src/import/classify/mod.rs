//! Texts with one label each, from tables.

mod labels;

use super::columns::{TextColumns, note_parts};
use super::examples::{self, check_known, check_parts, divide, skipped, text_key};
use super::findings::{Findings, Place};
use super::label_values::{MissingLabels, note_missing_text};
use super::reading::{Reading, part_told};
use super::table::{Table, is_table};
use super::{
    DataSize, Draft, PartFiles, Places, Request, is_unspaced, split_line, units, write_lines,
};
use crate::data::Part;
use crate::data::choose::{ColumnSelection, Columns, Spelling, choose};
use crate::say;
use labels::{check_labels, contradictions, label_counts, named, told};
use regard_models::Result;
use serde::Serialize;
use std::path::{Path, PathBuf};
use toml::{Table as Keys, Value};

/// Rows from which columns are chosen.
const SAMPLE: usize = 1000;

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
    let mut parts = [read(Part::Train)?, read(Part::Valid)?, read(Part::Test)?];
    let Some(columns) = columns else { return Ok(None) };
    leave_out_missing(&mut parts, request, findings);
    let [train, valid, test] = parts;
    if train.is_empty() {
        return Ok(None);
    }
    let Read { columns, reading } = columns;
    if let Some(like) = request.like() {
        return Ok(Some(whole(train, &columns, like, files.chosen, findings)));
    }
    check_labels(&columns, &train, findings);
    contradictions([&train, &valid, &test], findings);
    let (held, given_test) = (files.held_out(), files.test.clone());
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
    let places = [1, 2].map(|part: usize| Places::of(&all[part]));
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
        chosen: None,
        test: given_test,
        places,
    }))
}

/// Leaves out examples without a label, whatever a program wrote for it; they are noted.
fn leave_out_missing(parts: &mut [Vec<Example>; 3], request: &Request, findings: &mut Findings) {
    let labels = parts.iter().flatten().map(|example| example.label.as_str());
    let missing = MissingLabels::of(labels, request);
    if let Some(first) = parts.iter().flatten().next() {
        missing.note_classes(&first.file, findings);
    }
    for part in parts {
        part.retain(|example| {
            let message = missing.stray(&example.label);
            message.is_none_or(|message| {
                let place = Place::line(&example.file, example.line);
                findings.row("missing label", place, message);
                false
            })
        });
    }
}

/// Texts that a model is evaluated on, without those whose labels it does not know.
fn whole(
    mut all: Vec<Example>,
    columns: &Columns,
    like: &Reading,
    chosen: Option<Part>,
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
    summary.extend(chosen.map(part_told));
    summary.extend(skipped(findings));
    let (count, file, places) = (all.len(), "test.jsonl", Places::of(&all));
    let write = move |folder: &Path| write_lines(&folder.join(file), &all);
    let draft = Draft::to_evaluate("classify", summary, count, file, Box::new(write));
    Draft { chosen, places: [Places::default(), places], ..draft }
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
    if let Some(Read { columns: first, .. }) = like
        && first.names() != columns.names()
    {
        let message = format!("{}; in the first table {}", columns.told(), first.told());
        findings.warn("other columns", Place::whole(path), message);
    }
    table.take_header(columns.header.is_some(), findings);
    table.take_nested(&[&columns.text[..], &[columns.label]].concat(), findings);
    if let (Some(names), None) = (&columns.header, request.like()) {
        note_parts(&table, names, findings);
    }
    let asked = request.columns.text.as_deref();
    // A run whose columns have numbers alone was never trained on a column of numbers.
    let is_numbered = |reading: &Reading| reading.header == Some(false);
    if request.like().is_none_or(is_numbered) || asked.is_some() {
        let names = columns.header.as_deref();
        let texts = TextColumns {
            flag: "text",
            asked,
            at: &columns.text,
            names,
            label: Some(columns.label),
        };
        if !texts.check(&table, findings) {
            return Ok(vec![]);
        }
    }
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
            _ => {
                note_missing_text(&text, place, findings);
                all.push(Example { text, label, file: path.to_path_buf(), line: row.line });
            }
        }
    }
    let names = columns.header.as_deref();
    let reading = Reading::of_table(&table, names.is_some());
    let reading = reading.with("text", &columns.text, names).with("label", &[columns.label], names);
    like.get_or_insert(Read { columns, reading });
    Ok(all)
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

#[cfg(test)]
mod tests;
