//! Whether lines that should each be a text are the rows of a table. What is not clear is not one:
//! texts may contain commas, semicolons and tabs.

use crate::data::choose::{is_text_and_label, name, text_columns};
use crate::data::columns::{Separator, row};
use crate::data::stream::Lines;
use crate::import::glimpse::named;
use crate::import::values::cell;
use crate::say;
use serde_json::{Map, Value};

/// Rows that are compared.
const ROWS: usize = 20;
/// Rows below a header, or quoted rows, from which a table is recognised.
const ENOUGH: usize = 2;
/// Longest name of a column, in characters.
const LONGEST: usize = 40;

/// A table where texts were expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LooksLikeTable {
    /// Its first line, shortened.
    pub first_line: String,
    /// Names of its columns; empty if it has no header.
    pub header: Vec<String>,
    /// Column that is probably the text: its name, or its number from 1.
    pub text: String,
}

/// Type of a table by its first line, as the end of a file name.
pub(super) fn kind(line: &[u8]) -> &'static str {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    match line.trim_ascii_start().first() {
        Some(b'{') => "jsonl",
        Some(b'[') => "json",
        _ if line.contains(&b'\t') => "tsv",
        _ => "csv",
    }
}

/// Recognises a table by the first bytes of a file. `known` are the text columns of the table that
/// a model was trained with, and `pairs` is whether a text is a pair, with a tab in it.
pub fn looks_like_table(first: &[u8], known: &[String], pairs: bool) -> Option<LooksLikeTable> {
    let first = first.strip_prefix(b"\xef\xbb\xbf").unwrap_or(first);
    let line = first.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned();
    if let Some((header, rows)) = objects(first) {
        return Some(found(line, header, known, &rows));
    }
    if let Some(Ok(between)) = named(first) {
        let (mut rows, _) = rows(first, between);
        rows.drain(..rows.len().min(1));
        let header = rows.first().cloned().unwrap_or_default();
        return Some(found(line, header, known, rows.get(1..).unwrap_or_default()));
    }
    let all = [Separator::Tab, Separator::Semicolon, Separator::Comma];
    let all = all.into_iter().filter(|between| !(pairs && *between == Separator::Tab));
    all.into_iter().find_map(|between| columns(first, &line, between, known))
}

/// Keys and values of JSON lines: every complete line is an object.
fn objects(first: &[u8]) -> Option<(Vec<String>, Vec<Vec<String>>)> {
    if !first.starts_with(b"{") {
        return None;
    }
    let lines: Vec<&[u8]> = first.split(|byte| *byte == b'\n').collect();
    let complete = lines.len().saturating_sub(1).max(1);
    let lines = lines[..complete].iter().take(ROWS).filter(|line| !line.trim_ascii().is_empty());
    let parse = |line: &&[u8]| serde_json::from_slice::<Map<String, Value>>(line).ok();
    let all = lines.map(parse).collect::<Option<Vec<_>>>()?;
    let keys: Vec<String> = all.first()?.keys().cloned().collect();
    let row = |object: &Map<String, Value>| -> Vec<String> {
        keys.iter().map(|key| object.get(key).map_or(String::new(), cell)).collect()
    };
    let rows = all.iter().map(row).collect();
    (!keys.is_empty()).then_some((keys, rows))
}

/// Rows of the first bytes, and whether each has a quoted cell. The last row may be cut off.
fn rows(first: &[u8], between: Separator) -> (Vec<Vec<String>>, Vec<bool>) {
    let is_whole = first.ends_with(b"\n");
    let mut lines = Lines::new(first, "");
    let (mut all, mut quoted) = (vec![], vec![]);
    let marks = match between {
        Separator::Comma => [",\"", "\","],
        Separator::Semicolon => [";\"", "\";"],
        _ => ["\t\"", "\"\t"],
    };
    while all.len() <= ROWS {
        let before = lines.number();
        match row(&mut lines, between) {
            Ok(Some(cells)) => all.push(cells),
            Ok(None) | Err(_) => break,
        }
        let text = first.split(|byte| *byte == b'\n').nth(before as usize).unwrap_or_default();
        let text = String::from_utf8_lossy(text);
        quoted.push(marks.iter().any(|mark| text.contains(mark)));
    }
    let reached_end = all.len() <= ROWS;
    if reached_end && !is_whole && all.len() > 1 {
        all.pop();
        quoted.pop();
    }
    (all, quoted)
}

fn columns(
    first: &[u8],
    line: &str,
    between: Separator,
    known: &[String],
) -> Option<LooksLikeTable> {
    let (rows, quoted) = rows(first, between);
    let header = rows.first()?;
    if header.len() < 2 {
        return None;
    }
    let below = &rows[1..];
    let is_named = header.iter().all(|cell| is_name(cell)) && all_different(header);
    let is_known = |cell: &String| known.iter().any(|known| name(known) == name(cell));
    // Names that a text would hardly have side by side, without a space between them.
    let strong = is_named && (header.iter().any(is_known) || is_text_and_label(header));
    let same = below.iter().all(|row| row.len() == header.len());
    let enough = below.len() >= ENOUGH && same;
    let weak = is_named && enough && (0..header.len()).any(|at| is_prose(at, header, below));
    let written = enough && 2 * quoted.iter().filter(|quoted| **quoted).count() > rows.len();
    match (strong || weak, written && between != Separator::Tab) {
        (true, _) => Some(found(line.to_string(), header.clone(), known, below)),
        (false, true) => Some(found(line.to_string(), vec![], known, &rows)),
        _ => None,
    }
}

/// Whether a cell can be the name of a column: one word, with no space around it.
fn is_name(cell: &str) -> bool {
    let begins = cell.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '#');
    begins
        && cell.chars().count() <= LONGEST
        && cell.chars().all(is_part)
        && !cell.ends_with(['.', '-'])
}

fn all_different(header: &[String]) -> bool {
    let mut names: Vec<String> = header.iter().map(|cell| name(cell)).collect();
    names.sort();
    names.windows(2).all(|two| two[0] != two[1])
}

/// Whether most cells below a name are texts: several words, or much longer than the name.
fn is_prose(at: usize, header: &[String], below: &[Vec<String>]) -> bool {
    let name = header[at].chars().count();
    let is_text = |row: &&Vec<String>| {
        let cell = row[at].trim();
        let length = cell.chars().count();
        cell.split_whitespace().count() >= 3 || (length >= 8 && length >= 3 * name)
    };
    2 * below.iter().filter(is_text).count() > below.len()
}

/// Describes the table. The text is a column of the training, one with the name of a text, or the
/// longest.
fn found(
    line: String,
    header: Vec<String>,
    known: &[String],
    rows: &[Vec<String>],
) -> LooksLikeTable {
    let find = |known: &String| header.iter().position(|cell| name(cell) == name(known));
    let trained: Option<Vec<usize>> = known.iter().map(find).collect();
    let trained = trained.filter(|trained| !trained.is_empty());
    let at = trained.unwrap_or_else(|| text_columns(&header));
    let at = match at.is_empty() {
        false => at,
        true => {
            let width = rows.first().map_or(header.len(), Vec::len).max(1);
            let length = |at: &usize| -> usize {
                rows.iter().filter_map(|row| row.get(*at)).map(|cell| cell.chars().count()).sum()
            };
            vec![(0..width).rev().max_by_key(length).unwrap_or(0)]
        }
    };
    let call = |at: usize| match header.get(at) {
        Some(name) => name.trim().to_string(),
        None => (at + 1).to_string(),
    };
    let text = at.into_iter().map(call).collect::<Vec<_>>().join(",");
    LooksLikeTable { first_line: say::short(&line, 60), header, text }
}
