//! Tables of paths and labels or texts.

use super::{Item, Media};
use crate::data::twins::refuse_twins;
use crate::import::Request;
use crate::import::columns::{asked, known, shown, told};
use crate::import::findings::{Findings, Place};
use crate::import::reading::Reading;
use crate::import::table::Table;
use regard_models::Result;
use std::path::{Path, PathBuf};

/// Rows from which the columns are chosen: each cell of them is looked up as a file.
const SAMPLE: usize = 50;

/// Chosen columns.
struct Chosen {
    path: usize,
    text: usize,
    header: Option<Vec<String>>,
}

/// Returns the files that a table lists, a sentence about its columns, and how it was read.
pub(super) fn items(
    path: &Path,
    request: &Request,
    media: &Media,
    findings: &mut Findings,
) -> Result<(Vec<Item>, String, Reading)> {
    let nothing = || Ok((vec![], String::new(), Reading::default()));
    let mut table = Table::read(path, request.separator(), findings)?;
    if table.rows.is_empty() {
        return nothing();
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let chosen = request.for_table(&table);
    let chosen = chosen.and_then(|request| choose(&table, folder, &request, media));
    let Chosen { path: place, text, header } = match chosen {
        Ok(chosen) => chosen,
        Err(message) => {
            findings.error("columns", Place::whole(path), message);
            return nothing();
        }
    };
    table.take_header(header.is_some(), findings);
    table.take_nested(&[place, text], findings);
    let mut all = vec![];
    for row in &table.rows {
        let at = Place::line(path, row.line);
        let cell = row.cells[place].trim();
        let words: Vec<&str> = row.cells[text].split_whitespace().collect();
        if cell.is_empty() {
            findings.row("empty path", at, "the path is empty");
            continue;
        }
        let Some(found) = resolve(folder, cell) else {
            let there = folder.join(cell);
            let why = if there.is_dir() { "is a folder" } else { "does not exist" };
            let message = format!("{} {why}; paths are relative to the table", there.display());
            findings.row("missing file", at, message);
            continue;
        };
        if words.is_empty() {
            findings.row(media.empty, at, format!("the {} is empty", media.text));
            continue;
        }
        let listed = Some((path.to_path_buf(), row.line));
        all.push(Item { path: found, text: words.join(" "), listed });
    }
    let names = header.as_deref();
    let end = if names.is_some() { "" } else { ", no header" };
    let told = format!(
        "{}: {}, {}: {}{end}",
        media.thing,
        told(place, names),
        media.text,
        told(text, names)
    );
    let reading = Reading::of_table(&table, names.is_some()).with(media.text, &[text], names);
    Ok((all, told, reading))
}

/// Returns the path of a file that a cell names; a path may be written with backslashes.
fn resolve(folder: &Path, cell: &str) -> Option<PathBuf> {
    let both = [folder.join(cell), folder.join(cell.replace('\\', "/"))];
    both.into_iter().find(|path| path.is_file())
}

fn choose(
    table: &Table,
    folder: &Path,
    request: &Request,
    media: &Media,
) -> Result<Chosen, String> {
    let rows = table.sample(SAMPLE);
    let first = rows[0];
    let header = table.keys.as_ref().map(|_| true).or(request.header);
    let is_path = |cell: &str| {
        !cell.trim().is_empty()
            && (resolve(folder, cell.trim()).is_some() || media.is_one(Path::new(cell.trim())))
    };
    let by_name = known(first, media.path_names).filter(|_| header != Some(false));
    let by_contents = || {
        let count = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.filter(|cell| is_path(cell)).count()
        };
        // The first of several columns with as many paths.
        let best = (0..first.len()).rev().max_by_key(|column| count(*column));
        best.filter(|column| count(*column) > 0)
    };
    let unclear = |what: &str| {
        format!(
            "cannot tell which column {what}: {}. Name them '{}' and '{}' in a header",
            shown(first),
            media.path_names[0],
            media.text_names[0]
        )
    };
    let path = by_name.or_else(by_contents);
    let path = path.ok_or_else(|| unclear(&format!("is the path of the {}", media.thing)))?;
    let header = header.unwrap_or(!is_path(&first[path]));
    let columns = &request.columns;
    let flag = columns.label.as_ref().map(|name| ("label", name));
    let flag = flag.or(columns.text.as_ref().map(|name| ("text", name)));
    let text = match flag {
        Some((flag, name)) => Some(asked(flag, name, first, Some(header))?),
        None if first.len() == 2 => Some(1 - path),
        None => known(first, media.text_names).filter(|_| header),
    };
    match text {
        Some(text) if text == path => {
            Err(format!("{} is the path; {}", told(path, header.then_some(first)), shown(first)))
        }
        Some(text) => {
            if header {
                refuse_twins(first, &[path], None)?;
            }
            if header && flag.is_none() {
                refuse_twins(first, &[text], Some(&|value| format!("--label {value}")))?;
            }
            Ok(Chosen { path, text, header: header.then(|| first.to_vec()) })
        }
        None => Err(format!(
            "{}, or choose it by --label, its name or its number from 1",
            unclear(&format!("is the {}", media.text))
        )),
    }
}
