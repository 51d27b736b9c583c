//! Rows that a missing quotation mark made part of a text.
//!
//! A quotation mark that opens a cell and is not closed takes all lines up to the next quotation
//! mark into the cell, and if a separator follows that one, the row is well formed. What shows the
//! mistake is that every line within the cell is a row of the table. Texts have line ends too, such
//! as mails, so that lines with the right number of separators are not enough: cells must be such as
//! the column has in other rows, or the separators must stand as no prose has them, with no space.

use super::Row;
use crate::data::propose::is_number;
use crate::import::findings::{Findings, Place};
use crate::say;
use std::collections::{HashMap, VecDeque};
use std::path::Path;

/// Longest cell, in bytes, that is compared with those of other rows: labels are short.
const SHORT: usize = 40;
/// Scripts from here on have no spaces between words, so none after a comma.
const UNSPACED: char = '\u{2e80}';

/// A line within a cell, at the separators.
struct Line<'a> {
    /// Column of the first piece, from 0.
    column: usize,
    pieces: Vec<&'a str>,
}

/// Notes cells in quotation marks that hold whole rows.
pub(super) fn check(rows: &VecDeque<Row>, mark: char, path: &Path, findings: &mut Findings) {
    let Some(width) = rows.front().map(|row| row.cells.len()).filter(|width| *width > 1) else {
        return;
    };
    let mut usual: Option<Usual> = None;
    for row in rows {
        let breaks = |cell: &String| cell.matches('\n').count() as u64;
        for (at, cell) in row.cells.iter().enumerate().filter(|(_, cell)| cell.contains('\n')) {
            let Some(lines) = lines_as_rows(&row.cells, at, mark, width) else { continue };
            let usual = usual.get_or_insert_with(|| Usual::of(rows, width));
            let is_row = |line: &&Line| usual.has(line) || is_tight(&line.pieces);
            let found: Vec<&Line> = lines.iter().filter(is_row).collect();
            let Some(shown) = found.last().filter(|_| 2 * found.len() >= lines.len()) else {
                continue;
            };
            let opens = row.line + row.cells[..at].iter().map(breaks).sum::<u64>();
            let message = format!(
                "the quotation mark that opens a text here is closed on line {}, and the lines up \
                 to there look like rows, such as {:?}: a quotation mark is missing or too many. If \
                 it is one text, give the table as JSON lines",
                opens + breaks(cell),
                say::short(&shown.pieces.join(&mark.to_string()), 40)
            );
            findings.error("quotation marks", Place::line(path, opens), message);
        }
    }
}

/// The lines of a cell that have separators; `None` if a line of the file is not a row with the
/// right number of columns.
fn lines_as_rows(cells: &[String], at: usize, mark: char, width: usize) -> Option<Vec<Line<'_>>> {
    let lines: Vec<&str> = cells[at].split('\n').collect();
    let mut all = vec![];
    for (number, line) in lines.iter().enumerate() {
        let (is_first, is_last) = (number == 0, number + 1 == lines.len());
        // Blank lines are not rows.
        if !is_first && !is_last && line.trim().is_empty() {
            continue;
        }
        let pieces: Vec<&str> = line.split(mark).collect();
        let column = if is_first { at } else { 0 };
        let after = if is_last { cells.len() - at - 1 } else { 0 };
        if column + pieces.len() + after != width {
            return None;
        }
        if pieces.len() > 1 {
            all.push(Line { column, pieces });
        }
    }
    (!all.is_empty()).then_some(all)
}

/// Whether separators stand between cells with no space, and not within numbers such as 1,000.
fn is_tight(pieces: &[&str]) -> bool {
    let mut tight = 0;
    for two in pieces.windows(2) {
        // A column may be empty.
        let (Some(before), Some(after)) = (two[0].chars().last(), two[1].chars().next()) else {
            continue;
        };
        if before.is_whitespace() || after.is_whitespace() || before.max(after) >= UNSPACED {
            return false;
        }
        tight += usize::from(!(before.is_ascii_digit() && after.is_ascii_digit()));
    }
    tight > 0
}

/// What other rows have in their columns.
struct Usual<'a> {
    counts: HashMap<(usize, &'a str), usize>,
    /// Whether a column has nothing but numbers below the first row.
    numbers: Vec<bool>,
}

impl<'a> Usual<'a> {
    fn of(rows: &'a VecDeque<Row>, width: usize) -> Usual<'a> {
        let mut counts = HashMap::new();
        let mut numbers = vec![rows.len() > 2; width];
        let is_whole =
            |row: &&Row| row.cells.len() == width && !row.cells.iter().any(|c| c.contains('\n'));
        for (number, row) in rows.iter().filter(is_whole).enumerate() {
            for (at, cell) in row.cells.iter().map(|cell| cell.trim()).enumerate() {
                if !cell.is_empty() && cell.len() <= SHORT {
                    *counts.entry((at, cell)).or_default() += 1;
                }
                numbers[at] &= number == 0 || is_number(cell);
            }
        }
        Usual { counts, numbers }
    }

    /// Whether a cell of a line repeats one of its column, or is a number where all are.
    fn has(&self, Line { column, pieces }: &Line) -> bool {
        let is_usual = |(at, cell): (usize, &&str)| {
            let (at, cell) = (column + at, cell.trim());
            let is_repeated = self.counts.get(&(at, cell)).is_some_and(|count| *count > 1);
            is_repeated || self.numbers[at] && is_number(cell)
        };
        let in_number = pieces.windows(2).all(|two| {
            let ends = two[0].ends_with(|c: char| c.is_ascii_digit());
            ends && two[1].starts_with(|c: char| c.is_ascii_digit())
        });
        !in_number && pieces.iter().enumerate().any(is_usual)
    }
}
