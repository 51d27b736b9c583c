//! Rows that a missing quotation mark made part of a text.
//!
//! A quotation mark that opens a cell and is not closed takes all lines up to the next quotation
//! mark into the cell, and if a separator follows that one, the row is well formed. Nothing proves
//! the mistake, because each such file is one that a program writes for texts with line ends, such as
//! mails, code and lists. What shows it is that every line within the cell is a row of the table:
//! with the right number of columns, and with labels of other rows. Less than that is a warning.

use super::Row;
use crate::data::propose::is_number;
use crate::import::findings::{Findings, Place};
use crate::say;
use std::collections::{HashSet, VecDeque};
use std::path::Path;

/// Kind of the findings.
const KIND: &str = "quotation marks";
/// Lines with labels of other rows from which a text is none: one or two may begin or end with such
/// a word, as `no, not at all` does.
const SURE: usize = 3;
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

impl<'a> Line<'a> {
    /// The cell in a column, if the line reaches there.
    fn cell(&self, at: usize) -> Option<&'a str> {
        at.checked_sub(self.column).and_then(|at| self.pieces.get(at)).map(|cell| cell.trim())
    }
}

/// Notes cells in quotation marks that hold whole rows: as an error if there is hardly a doubt, else
/// as a warning.
pub(super) fn check(rows: &VecDeque<Row>, mark: char, path: &Path, findings: &mut Findings) {
    let Some(width) = rows.front().map(|row| row.cells.len()).filter(|width| *width > 1) else {
        return;
    };
    let mut usual: Option<Usual> = None;
    let mut doubtful: Vec<(u64, String)> = vec![];
    for row in rows {
        let breaks = |cell: &String| cell.matches('\n').count() as u64;
        for (at, cell) in row.cells.iter().enumerate().filter(|(_, cell)| cell.contains('\n')) {
            let Some(lines) = lines_as_rows(&row.cells, at, mark, width) else { continue };
            let usual = usual.get_or_insert_with(|| Usual::of(rows, width));
            let is_sure = usual.are_rows(&lines);
            let found: Vec<&Line> = lines.iter().filter(|line| usual.is_like(line)).collect();
            let Some(shown) = found.last().filter(|_| is_sure || 2 * found.len() >= lines.len())
            else {
                continue;
            };
            let opens = row.line + row.cells[..at].iter().map(breaks).sum::<u64>();
            let begin = format!(
                "the quotation mark that opens a text here is closed on line {}, and the lines up \
                 to there look like rows, such as {:?}",
                opens + breaks(cell),
                say::short(&shown.pieces.join(&mark.to_string()), 40)
            );
            if !is_sure {
                doubtful.push((opens, begin));
                continue;
            }
            let message = format!(
                "{begin}: a quotation mark is missing or too many. If it is one text, give the \
                 table as JSON lines"
            );
            findings.error(KIND, Place::line(path, opens), message);
        }
    }
    if let Some((line, begin)) = doubtful.first() {
        let message = format!(
            "{begin}: they are read as one text. If they are rows, a quotation mark is missing or \
             too many ({})",
            say::many(doubtful.len(), "text")
        );
        findings.warn(KIND, Place::line(path, *line), message);
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

/// Whether each separator stands between two digits, as in 1,000.
fn is_in_number(pieces: &[&str]) -> bool {
    pieces.windows(2).all(|two| {
        let ends = two[0].ends_with(|c: char| c.is_ascii_digit());
        ends && two[1].starts_with(|c: char| c.is_ascii_digit())
    })
}

/// Usual contents of all columns, from the other rows. The first row may be a header.
struct Usual<'a> {
    cells: HashSet<(usize, &'a str)>,
    columns: Vec<Column>,
}

/// Usual contents of a column.
#[derive(Clone, Default)]
struct Column {
    /// Whether it has nothing but numbers.
    is_number: bool,
    /// Whether it has few short cells that repeat, as labels do.
    is_label: bool,
    /// Whether a space stands after the separator in a row.
    is_spaced: bool,
}

impl<'a> Usual<'a> {
    fn of(rows: &'a VecDeque<Row>, width: usize) -> Usual<'a> {
        let is_whole =
            |row: &&Row| row.cells.len() == width && !row.cells.iter().any(|c| c.contains('\n'));
        let whole: Vec<&Row> = rows.iter().skip(1).filter(is_whole).collect();
        let mut cells = HashSet::new();
        let column = |at: usize| {
            let all = || whole.iter().map(|row| row.cells[at].as_str());
            let is_short = |cell: &&str| !cell.is_empty() && cell.len() <= SHORT;
            let short: Vec<&str> = all().map(str::trim).filter(is_short).collect();
            let different: HashSet<&str> = short.iter().copied().collect();
            let is_label = short.len() > 1
                && 2 * different.len() <= short.len()
                && 2 * short.len() > whole.len();
            cells.extend(different.into_iter().map(|cell| (at, cell)));
            Column {
                is_number: whole.len() > 1 && all().all(is_number),
                is_label,
                is_spaced: all().any(|cell| cell.starts_with(char::is_whitespace)),
            }
        };
        let columns = (0..width).map(column).collect();
        Usual { cells, columns }
    }

    /// Whether lines are rows with hardly a doubt: they are several, and all have labels of other
    /// rows in the column of the labels, which no prose and no program code has.
    fn are_rows(&self, lines: &[Line]) -> bool {
        let is_row = |at: usize| {
            let there = || lines.iter().filter(|line| line.cell(at).is_some());
            let is_known = |line: &Line| line.cell(at).is_some_and(|cell| self.has(at, cell));
            let clear = there().filter(|line| !is_in_number(&line.pieces)).count();
            clear >= SURE && there().all(is_known)
        };
        let labels = (0..self.columns.len()).filter(|at| self.columns[*at].is_label);
        lines.iter().all(|line| self.is_spaced_alike(line)) && labels.into_iter().any(is_row)
    }

    /// Whether a line may be a row: it has a label of other rows, or a number where all rows have
    /// one, or if there are no labels, separators with no space.
    fn is_like(&self, line: &Line) -> bool {
        let is_usual = |at: usize| {
            let Column { is_number: are_numbers, is_label, .. } = self.columns[at];
            line.cell(at).is_some_and(|cell| {
                is_label && self.has(at, cell) || are_numbers && is_number(cell)
            })
        };
        let has_usual = !is_in_number(&line.pieces) && (0..self.columns.len()).any(is_usual);
        let has_labels = self.columns.iter().any(|column| column.is_label);
        self.is_spaced_alike(line) && (has_usual || !has_labels && is_tight(&line.pieces))
    }

    fn has(&self, at: usize, cell: &str) -> bool {
        self.cells.contains(&(at, cell))
    }

    /// Whether a space follows a separator only where it does in other rows, and not as in prose.
    fn is_spaced_alike(&self, Line { column, pieces }: &Line) -> bool {
        let is_alike = |(at, piece): (usize, &&str)| {
            !piece.starts_with(char::is_whitespace) || self.columns[column + at].is_spaced
        };
        pieces.iter().enumerate().skip(1).all(is_alike)
    }
}
