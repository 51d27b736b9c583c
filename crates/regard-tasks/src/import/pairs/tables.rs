//! Pairs in two columns of a table.

use super::super::columns::{TextColumns, note_parts};
use super::super::examples::one_line;
use super::super::findings::{Findings, Place};
use super::super::label_values::note_missing_text;
use super::super::reading::Reading;
use super::super::roles::{self, Columns, Role, first_row};
use super::super::table::{Row, Table, is_table};
use super::super::{PartFiles, Request};
use super::{Corpus, Kind, Pair, header, languages};
use crate::data::Part;
use crate::data::choose::name;
use crate::data::propose::Wanted;
use crate::say;
use regard_models::Result;
use serde_json::Value;
use std::borrow::Cow;
use std::path::Path;
use std::rc::Rc;

/// Names of a source column.
const SOURCE: [&str; 3] = ["source", "src", "input"];
/// Names of a target column.
const TARGET: [&str; 4] = ["target", "tgt", "trg", "output"];
/// Names of the text of a summary.
const TEXT: [&str; 6] = ["text", "document", "article", "body", "dialogue", "content"];
/// Names of a summary.
const SUMMARY: [&str; 3] = ["summary", "highlights", "abstract"];
/// Names of short texts, which are summaries if nothing else is.
const TITLE: [&str; 3] = ["headline", "subject", "title"];
/// Names of a text and its translation.
const ORIGINAL: [&str; 3] = ["text", "sentence", "original"];
const TRANSLATION: [&str; 2] = ["translation", "reference"];
/// Key of nested translations, as in `{"translation": {"en": …, "fr": …}}`.
const NESTED: &str = "translation";
/// Rows from which an attribution is recognised.
const SAMPLE: usize = 50;
/// Number of columns of Tatoeba's pairs: two sentences and their attribution.
const TATOEBA: usize = 3;

/// Flags of the roles.
const FLAGS: [&str; 2] = ["source", "target"];

/// Reads tables; `None` if their columns are not clear.
pub(super) fn read(
    request: &Request,
    kind: Kind,
    findings: &mut Findings,
) -> Result<Option<Corpus>> {
    let files = PartFiles::find(request, &is_table, findings)?;
    let mut chosen: Option<Columns> = None;
    let mut reading = Reading::default();
    let mut note = None;
    let mut all = [vec![], vec![], vec![]];
    for (part, pairs) in [Part::Train, Part::Valid, Part::Test].into_iter().zip(&mut all) {
        for path in files.of(part) {
            let mut table = Table::read(path, request.separator(), findings)?;
            if table.rows.is_empty() {
                continue;
            }
            flatten(&mut table, findings);
            let chosen_now = sides(request, &table)
                .and_then(|request| columns(&table, &request, kind, chosen.as_ref()));
            let columns = match chosen_now {
                Ok((columns, found)) => {
                    note = note.or(found.filter(|_| chosen.is_none()));
                    columns
                }
                Err(message) => {
                    findings.error("columns", Place::whole(path), message);
                    continue;
                }
            };
            if let Some(message) = header::unclear(&table, &columns, request, kind) {
                findings.error("header", Place::whole(path), message);
                continue;
            }
            table.take_header(columns.header.is_some(), findings);
            table.take_nested(&columns.of.concat(), findings);
            if let (Some(names), None) = (&columns.header, request.like()) {
                note_parts(&table, names, findings);
            }
            let asked = [&request.columns.source, &request.columns.target];
            for (role, flag) in FLAGS.into_iter().enumerate() {
                let (asked, names) = (asked[role].as_deref(), columns.header.as_deref());
                // A run whose columns have numbers alone was never trained on a column of numbers.
                let is_numbered = |reading: &Reading| reading.header == Some(false);
                if request.like().is_none_or(is_numbered) || asked.is_some() {
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
    }
    let Some(columns) = chosen else { return Ok(None) };
    let code = |role: usize| {
        let name = columns.header.as_ref().map(|names| names[columns.of[role][0]].as_str());
        name.and_then(languages::of_column).map(str::to_string)
    };
    let ends = match (code(0), code(1)) {
        (Some(from), Some(to)) if from == to => ["src".into(), "tgt".into()],
        (from, to) => [from.unwrap_or("src".into()), to.unwrap_or("tgt".into())],
    };
    let (flags, told) = ([columns.flag(0), columns.flag(1)], columns.told(&FLAGS));
    reading.languages = Some(ends.clone());
    let (held, chosen, test) = (files.held_out(), files.chosen, files.test);
    Ok(Some(Corpus { parts: all, held, ends, flags, told, note, chosen, test, reading }))
}

/// Request with the recorded columns. If a run was trained on parallel files, or only the languages
/// of a model are known, the columns of these languages.
fn sides<'a>(request: &'a Request, table: &Table) -> Result<Cow<'a, Request>, String> {
    let request = request.for_table(table)?;
    let languages = request.like().filter(|reading| reading.columns.is_empty());
    let Some(languages) = languages.and_then(|reading| reading.languages.clone()) else {
        return Ok(request);
    };
    let is_chosen = request.columns.source.is_some() || request.columns.target.is_some();
    if is_chosen || request.header == Some(false) {
        return Ok(request);
    }
    let first = first_row(table);
    let of = |language: &String| {
        let code = languages::code(language);
        let is = |cell: &String| {
            name(cell) == *language || (code.is_some() && languages::of_column(cell) == code)
        };
        first.iter().position(is)
    };
    let spoken = |at: usize| languages::of_column(&first[at]).is_some();
    let is_known = languages.iter().any(|each| languages::code(each).is_some());
    // A single name of another language may be a text, such as the greeting "Hi.".
    let are_names = |found: [Option<usize>; 2]| {
        found != [None, None] || (0..first.len()).filter(|at| spoken(*at)).count() > 1
    };
    let sides = match (languages.each_ref().map(of), first.len()) {
        ([Some(source), Some(target)], _) => [source, target],
        // The only other column, if it is not of a third language.
        ([Some(source), None], 2) if !spoken(1 - source) => [source, 1 - source],
        ([None, Some(target)], 2) if !spoken(1 - target) => [1 - target, target],
        (found, _) if is_known && are_names(found) => {
            let [source, target] = &languages;
            return Err(format!(
                "the model translates {source} to {target}, and not both are columns of this \
                 table: choose them with --source and --target; {}",
                super::super::columns::shown(first)
            ));
        }
        _ => return Ok(request),
    };
    let mut request = request.into_owned();
    let [source, target] = sides.map(|at| Some(first[at].trim().to_string()));
    (request.columns.source, request.columns.target) = (source, target);
    Ok(Cow::Owned(request))
}

/// Replaces the column of nested translations by a column for each language.
fn flatten(table: &mut Table, findings: &mut Findings) {
    let Some(keys) = &table.keys else { return };
    let Some(column) = keys.iter().position(|key| key == NESTED) else { return };
    let parse =
        |row: &Row| serde_json::from_str::<serde_json::Map<String, Value>>(&row.cells[column]).ok();
    let Some(first) = table.rows.front().and_then(parse) else { return };
    let names: Vec<String> = first.keys().cloned().collect();
    let path = table.path.clone();
    let mut rows = std::mem::take(&mut table.rows);
    rows.retain_mut(|row| {
        let cells = parse(row).and_then(|object| {
            let cell = |name: &String| object.get(name)?.as_str().map(str::to_string);
            names.iter().map(cell).collect::<Option<Vec<String>>>()
        });
        match cells {
            Some(cells) => (row.cells, row.other) = (cells, vec![]),
            None => {
                let message =
                    format!("{NESTED:?} has no text for each of {}", say::list(&names, 8));
                findings.row("missing field", Place::line(&path, row.line), message);
                return false;
            }
        }
        true
    });
    (table.rows, table.keys, table.has_order) = (rows, Some(names), false);
}

/// Chooses the columns; also returns a note about others.
fn columns(
    table: &Table,
    request: &Request,
    kind: Kind,
    like: Option<&Columns>,
) -> Result<(Columns, Option<String>), String> {
    let first = first_row(table);
    if first.len() < 2 {
        let example = match kind {
            Kind::Translate => "two files: --data train.en --data train.fr",
            Kind::Summarize => "two files: --data train.source --data train.target",
        };
        return Err(format!(
            "need a source and a target in each row, separated by a tab, or {example}; {}",
            super::super::columns::shown(first)
        ));
    }
    let [source, target] =
        [&request.columns.source, &request.columns.target].map(|asked| asked.as_deref());
    let cells = first.iter().filter(|cell| languages::of_column(cell).is_some());
    let spoken: Vec<String> = cells.map(|cell| name(cell)).collect();
    let spoken: Vec<&str> = spoken.iter().map(String::as_str).collect();
    // Of two languages the first is the source; keys of objects have no order.
    let is_clear = spoken.len() == 2 && table.has_order && source.is_none() && target.is_none();
    let [from, to] = if is_clear { [&spoken[..1], &spoken[1..]] } else { [&spoken[..]; 2] };
    let names: [Vec<&[&str]>; 2] = match kind {
        Kind::Translate => {
            [vec![&SOURCE[..], from, &ORIGINAL[..]], vec![&TARGET[..], to, &TRANSLATION[..]]]
        }
        Kind::Summarize => {
            [vec![&SOURCE[..], &TEXT[..]], vec![&TARGET[..], &SUMMARY[..], &TITLE[..]]]
        }
    };
    let [source_names, target_names] = names;
    let roles = [
        Role { flag: FLAGS[0], asked: source, names: source_names, several: false },
        Role { flag: FLAGS[1], asked: target, names: target_names, several: false },
    ];
    let attribution = attribution(table);
    if let Some(columns) = roles::choose(table, &roles, request.header, like)? {
        let note = attribution.filter(|_| columns.of.iter().flatten().all(|at| *at < TATOEBA - 1));
        return Ok((columns, note));
    }
    let is_first_two = table.keys.is_none() && (first.len() == 2 || attribution.is_some());
    if is_first_two && source.is_none() && target.is_none() {
        return Ok((Columns { of: vec![vec![0], vec![1]], header: None }, attribution));
    }
    let wanted = match kind {
        Kind::Translate => [Wanted::Text, Wanted::Text],
        Kind::Summarize => [Wanted::Longest, Wanted::Text],
    };
    Err(roles::unclear(table, &roles, request.header, &wanted))
}

/// Whether the name of a column is that of a source, or of a target.
pub(in crate::import) fn is_side(cell: &str, is_source: bool) -> bool {
    let names: &[&[&str]] = match is_source {
        true => &[&SOURCE, &TEXT, &ORIGINAL],
        false => &[&TARGET, &SUMMARY, &TITLE, &TRANSLATION],
    };
    languages::of_column(cell).is_some() || names.iter().any(|names| roles::is_known(cell, names))
}

/// Note about a third column with the attribution of Tatoeba's sentences.
fn attribution(table: &Table) -> Option<String> {
    let rows = || table.rows.iter().take(SAMPLE);
    let is_credit = |row: &&Row| matches!(&row.cells[..], [_, _, credit] if credit.trim_start().starts_with("CC-BY"));
    let most = 2 * rows().filter(is_credit).count() > rows().count();
    (most && table.keys.is_none()).then(|| "column 3, an attribution, is ignored".to_string())
}

fn rows(table: &Table, columns: &Columns, findings: &mut Findings) -> Vec<Pair> {
    let file: Rc<Path> = table.path.as_path().into();
    let mut all = vec![];
    for row in &table.rows {
        let cell = |role: usize| one_line(&row.cells[columns.of[role][0]]);
        let (source, target) = (cell(0), cell(1));
        let place = Place::line(&table.path, row.line);
        if let Some(message) = row.not_text(&columns.of.concat(), columns.header.as_deref()) {
            findings.row("not a text", place, message);
            continue;
        }
        match (source.is_empty(), target.is_empty()) {
            (true, _) => findings.row("empty source", place, "the source is empty"),
            (_, true) => findings.row("empty target", place, "the target is empty"),
            _ => {
                [&source, &target].iter().for_each(|t| note_missing_text(t, place, findings));
                all.push(Pair { source, target, file: file.clone(), line: row.line });
            }
        }
    }
    all
}
