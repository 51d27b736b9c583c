//! Queries and texts with their relevance, from tables.

use super::columns::{TextColumns, note_parts};
use super::examples::{
    Example, check_parts, divide, mean, one_line, part_files, percentile, skipped, text_key,
};
use super::findings::{Findings, Place};
use super::reading::{Reading, part_told};
use super::roles::{self, Columns, Role, first_row};
use super::table::{Table, is_table};
use super::{DataSize, Draft, PartFiles, Request, is_unspaced, split_line, units, write_lines};
use crate::data::Part;
use crate::data::propose::Wanted;
use crate::say;
use regard_models::Result;
use serde::Serialize;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;
use toml::{Table as Keys, Value};

/// Flags of the roles.
const FLAGS: [&str; 3] = ["query", "text", "label"];
/// Names of the columns.
pub(super) const QUERY: [&str; 4] = ["query", "question", "search", "search_term"];
pub(super) const TEXT: [&str; 5] = ["text", "passage", "document", "answer", "candidate"];
const LABEL: [&str; 5] = ["label", "relevance", "score", "relevant", "relevance_label"];
/// Largest label.
const MOST: f64 = 100.0;

/// A query, a text, and how relevant the text is.
#[derive(Debug, Serialize)]
struct Pair {
    query: String,
    text: String,
    label: f64,
    #[serde(skip)]
    file: Rc<Path>,
    #[serde(skip)]
    line: u64,
}

impl Example for Pair {
    const KEY: &'static str = "query";

    fn key(&self) -> String {
        text_key(&self.query)
    }

    fn place(&self) -> Place<'_> {
        Place::line(&self.file, self.line)
    }
}

/// Reads the tables of a request.
pub(super) fn read(request: &Request, findings: &mut Findings) -> Result<Option<Draft>> {
    let files = PartFiles::find(request, &is_table, findings)?;
    let mut chosen: Option<Columns> = None;
    let mut reading = Reading::default();
    let mut all = [vec![], vec![], vec![]];
    let (given, evaluates) = (&request.columns, request.like().is_some());
    for (part, pairs) in [Part::Train, Part::Valid, Part::Test].into_iter().zip(&mut all) {
        for path in files.of(part) {
            let mut table = Table::read(path, request.separator(), findings)?;
            if table.rows.is_empty() {
                continue;
            }
            let request = request.for_table(&table);
            let like = chosen.as_ref();
            match request.and_then(|request| columns(&table, &request, like)) {
                Ok(columns) => {
                    table.take_header(columns.header.is_some(), findings);
                    table.take_nested(&columns.of.concat(), findings);
                    if let (Some(names), false) = (&columns.header, evaluates) {
                        note_parts(&table, names, findings);
                    }
                    let asked = [&given.query, &given.text];
                    for (role, flag) in FLAGS.into_iter().take(2).enumerate() {
                        let (asked, names) = (asked[role].as_deref(), columns.header.as_deref());
                        if !evaluates || asked.is_some() {
                            TextColumns { flag, asked, at: &columns.of[role], names, label: None }
                                .check(&table, findings);
                        }
                    }
                    pairs.extend(rows(&table, &columns, findings));
                    if chosen.is_none() {
                        reading = columns.reading(&table, &FLAGS);
                    }
                    chosen.get_or_insert(columns);
                }
                Err(message) => findings.error("columns", Place::whole(path), message),
            }
        }
    }
    let Some(columns) = chosen else { return Ok(None) };
    if all[0].is_empty() {
        return Ok(None);
    }
    if request.like().is_some() {
        let [all, ..] = all;
        let queries = say::many(by_query(&all).len(), "query");
        let count = format!("{} of {queries}", say::many(all.len(), "text"));
        let mut summary = vec![columns.told(&FLAGS), count];
        summary.extend(files.chosen.map(part_told));
        summary.extend(skipped(findings));
        let (count, file) = (all.len(), "test.jsonl");
        let write = move |folder: &Path| write_lines(&folder.join(file), &all);
        let draft = Draft::to_evaluate("rerank", summary, count, file, Box::new(write));
        return Ok(Some(Draft { chosen: files.chosen, ..draft }));
    }
    let (held, given_test) = (files.held_out(), files.test.clone());
    let all = divide(all, false, held, request.seed, findings);
    check_parts(&all, 2, held, findings);
    check_labels(&all, findings);
    let sizes = all.each_ref().map(Vec::len);
    let queries = |part: &[Pair]| by_query(part).len();
    let relevant = all[0].iter().filter(|pair| pair.label > 0.0).count();
    let unspaced = is_unspaced(all[0].iter().map(|pair| pair.text.as_str()));
    let length = |pair: &Pair| units(&pair.query, unspaced) + units(&pair.text, unspaced);
    let lengths: Vec<usize> = all[0].iter().map(length).collect();
    let mut summary = vec![
        columns.told(&FLAGS),
        format!("texts: {}", split_line(sizes, held, request.seed)),
        format!(
            "{} in the training part, {} of {} relevant, mean length {:.0} {}",
            say::many(queries(&all[0]), "query"),
            say::count(relevant),
            say::many(sizes[0], "text"),
            mean(&lengths),
            if unspaced { "characters" } else { "words" }
        ),
    ];
    summary.extend(skipped(findings));
    let size = DataSize {
        examples: sizes[0],
        units: lengths.iter().sum(),
        longest: lengths.iter().copied().max().unwrap_or(0),
        labels: 0,
        unspaced,
    };
    // A word is about one and a half tokens; longer texts are truncated.
    let tokens = (percentile(&lengths, 95) * 3 / 2).next_power_of_two().clamp(32, 512);
    let data = Keys::from_iter([("max_tokens".to_string(), Value::Integer(tokens as i64))]);
    let keys = Keys::from_iter([("data".to_string(), Value::Table(data))]);
    let names = ["train.jsonl", "valid.jsonl", "test.jsonl"];
    let files = part_files(names, sizes);
    let write = move |folder: &Path| {
        let mut parts = all.iter().zip(names).filter(|(part, _)| !part.is_empty());
        parts.try_for_each(|(part, name)| write_lines(&folder.join(name), part))
    };
    let (task, write) = ("rerank", Box::new(write));
    let draft = Draft::new(task, summary, sizes, write);
    Ok(Some(Draft { size, keys, files, reading, test: given_test, ..draft }))
}

fn number(cell: &str) -> Option<f64> {
    cell.trim().parse().ok()
}

/// Chooses the columns. Of three columns without names, the last is a number: the label.
fn columns(table: &Table, request: &Request, like: Option<&Columns>) -> Result<Columns, String> {
    let first = first_row(table);
    let [query, text, label] =
        [&request.columns.query, &request.columns.text, &request.columns.label]
            .map(|asked| asked.as_deref());
    let roles = [
        Role { flag: FLAGS[0], asked: query, names: vec![&QUERY[..]], several: false },
        Role { flag: FLAGS[1], asked: text, names: vec![&TEXT[..]], several: true },
        Role { flag: FLAGS[2], asked: label, names: vec![&LABEL[..]], several: false },
    ];
    if let Some(mut columns) = roles::choose(table, &roles, request.header, like)? {
        let label = columns.of[2][0];
        // A first row without a number above numbers names the columns.
        let mut labels = table.rows.iter().take(2).filter_map(|row| row.cells.get(label));
        let named = labels.next().is_some_and(|cell| number(cell).is_none())
            && labels.next().is_some_and(|cell| number(cell).is_some());
        if columns.header.is_none() && request.header.is_none() && named {
            columns.header = Some(first.to_vec());
        }
        return Ok(columns);
    }
    let is_plain = table.keys.is_none() && first.len() == 3 && number(&first[2]).is_some();
    match is_plain && [query, text, label].iter().all(Option::is_none) {
        true => Ok(Columns { of: vec![vec![0], vec![1], vec![2]], header: None }),
        false => {
            let wanted = [Wanted::Question, Wanted::Longest, Wanted::Few];
            Err(roles::unclear(table, &roles, request.header, &wanted))
        }
    }
}

fn rows(table: &Table, columns: &Columns, findings: &mut Findings) -> Vec<Pair> {
    let file: Rc<Path> = table.path.as_path().into();
    let mut all = vec![];
    for row in &table.rows {
        let place = Place::line(&table.path, row.line);
        let cells = |role: usize| {
            let cells = columns.of[role].iter().map(|at| one_line(&row.cells[*at]));
            cells.filter(|cell| !cell.is_empty()).collect::<Vec<_>>().join(" ")
        };
        let (query, text, cell) = (cells(0), cells(1), cells(2));
        let texts = columns.of[..2].concat();
        if let Some(message) = row.not_text(&texts, columns.header.as_deref()) {
            findings.row("not a text", place, message);
            continue;
        }
        let label = number(&cell).filter(|label| (0.0..=MOST).contains(label));
        match (query.is_empty(), text.is_empty(), label) {
            (true, ..) => findings.row("empty query", place, "the query is empty"),
            (_, true, _) => findings.row("empty text", place, "the text is empty"),
            (.., Some(label)) => {
                all.push(Pair { query, text, label, file: file.clone(), line: row.line });
            }
            (.., None) => {
                let message = format!(
                    "the label is {:?}, need a number from 0, irrelevant, to 100",
                    say::short(&cell, 40)
                );
                findings.row("label", place, message);
            }
        }
    }
    all
}

/// Pairs of each query, in the order of the file.
fn by_query(pairs: &[Pair]) -> Vec<Vec<&Pair>> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut all: Vec<Vec<&Pair>> = vec![];
    for pair in pairs {
        let at = *places.entry(&pair.query).or_insert_with(|| {
            all.push(vec![]);
            all.len() - 1
        });
        all[at].push(pair);
    }
    all
}

/// Checks that texts can be told apart: relevant ones and others, in all and for each query.
fn check_labels(all: &[Vec<Pair>; 3], findings: &mut Findings) {
    for (part, name) in all.iter().zip(["training", "validation"]) {
        let Some(first) = part.first() else { continue };
        let relevant = part.iter().filter(|pair| pair.label > 0.0).count();
        if relevant == 0 || (relevant == part.len() && name == "training") {
            let which = if relevant == 0 { "no text" } else { "every text" };
            let message = format!(
                "{which} of the {name} part is relevant: a label of 0 is irrelevant, a larger one \
                 relevant, and both are needed"
            );
            findings.error("one label", Place::whole(&first.file), message);
            return;
        }
    }
    for group in all.iter().flat_map(|part| by_query(part)) {
        let relevant = group.iter().filter(|pair| pair.label > 0.0).count();
        let lacks = match relevant {
            0 => "relevant",
            count if count == group.len() => "irrelevant",
            _ => continue,
        };
        let query = say::short(&group[0].query, 40);
        let message =
            format!("the query {query:?} has no {lacks} text: its texts cannot be ranked");
        findings.warn("nothing to rank", group[0].place(), message);
    }
    let is_part = |pair: &&Pair| pair.label > 0.0 && pair.label < 1.0;
    if let Some(pair) = all.iter().flatten().find(is_part) {
        let message = format!(
            "the label {} counts as relevant, as every label above 0 does; use 0 and 1 if scores \
             near 0 mean irrelevant",
            pair.label
        );
        findings.warn("label between 0 and 1", pair.place(), message);
    }
}

#[cfg(test)]
mod tests;
