//! First rows that look like names of columns which are not known.

use super::super::roles::Columns;
use super::super::table::Table;
use super::super::{Request, is_unspaced, units};
use super::Kind;
use crate::data::propose::quoted;
use crate::say;

/// Rows below the first one from which their usual length is known, at least and at most.
const ROWS: [usize; 2] = [4, 200];
/// Most words of a name.
const NAME: usize = 2;
/// Usual number of words of texts, at least.
const WORDS: usize = 3;
/// Usual number of characters of texts without spaces, at least.
const CHARACTERS: usize = 8;
/// Punctuation that names of columns do not have.
const MARKS: [char; 8] = ['.', '!', '?', '。', '！', '？', ',', ';'];

/// Message for a first row of short names above texts, which was not recognised as a header: it would
/// be a training pair, and the order of the columns a guess. Rows of a dictionary are as short as
/// its first one.
pub(super) fn unclear(
    table: &Table,
    columns: &Columns,
    request: &Request,
    kind: Kind,
) -> Option<String> {
    let is_told = request.header.is_some()
        || request.columns.source.is_some()
        || request.columns.target.is_some();
    if is_told || columns.header.is_some() || table.keys.is_some() || request.like().is_some() {
        return None;
    }
    let mut rows = table.rows.iter().map(|row| &row.cells[..]);
    let first = rows.next()?;
    let rows: Vec<&[String]> = rows.filter(|row| row.len() == first.len()).take(ROWS[1]).collect();
    if rows.len() < ROWS[0] || !first.iter().all(|cell| is_name(cell)) {
        return None;
    }
    let sides = [columns.of[0][0], columns.of[1][0]];
    let [source, target] = sides.map(|column| usual(&rows, column));
    if !source.is_text() || !target.is_text() {
        return None;
    }
    // A summary is shorter than its text.
    let is_turned = kind == Kind::Summarize && target.characters > source.characters;
    let [from, to] = if is_turned { [sides[1], sides[0]] } else { sides };
    let [from, to] =
        [from, to].map(|column| quoted(first[column].trim_start_matches('\u{feff}').trim()));
    let shown = sides.map(|column| format!("{:?}", say::short(first[column].trim(), 40)));
    Some(format!(
        "the first row, {} and {}, looks like names of columns, which are not known: if it is a \
         header, choose them by --source {from} --target {to}; if it is an example, --no-header",
        shown[0], shown[1]
    ))
}

/// Whether a cell may be the name of a column.
fn is_name(cell: &str) -> bool {
    let (cell, unspaced) = (cell.trim(), is_unspaced(std::iter::once(cell)));
    let most = if unspaced { CHARACTERS - 1 } else { NAME };
    (1..=most).contains(&units(cell, unspaced)) && !cell.contains(MARKS)
}

/// Median lengths of the texts of a column.
struct Usual {
    words: usize,
    characters: usize,
    unspaced: bool,
}

impl Usual {
    fn is_text(&self) -> bool {
        match self.unspaced {
            true => self.characters >= CHARACTERS,
            false => self.words >= WORDS,
        }
    }
}

fn usual(rows: &[&[String]], column: usize) -> Usual {
    let median = |unspaced: bool| {
        let mut all: Vec<usize> = rows.iter().map(|row| units(&row[column], unspaced)).collect();
        all.sort_unstable();
        all[all.len() / 2]
    };
    let unspaced = is_unspaced(rows.iter().map(|row| row[column].as_str()));
    Usual { words: median(false), characters: median(true), unspaced }
}
