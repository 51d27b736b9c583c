//! Rows of CSV and TSV.

use super::{Row, Table};
use crate::data::columns::{Separator, row};
use crate::data::stream::Lines;
use crate::import::budget::{Budget, of_row};
use crate::import::findings::{Findings, Place};
use crate::import::glimpse::{encoding_hint, named};
use std::collections::VecDeque;
use std::io::BufRead;
use std::path::Path;

/// Line ends of a cell above which a quotation mark may be missing.
const LONG: usize = 100;

impl Table {
    /// Reads columns; the first bytes of the reader tell the encoding of bad lines.
    pub(super) fn columns(
        (first, reader): (&[u8], impl BufRead),
        path: &Path,
        between: Separator,
        budget: &mut Budget,
        findings: &mut Findings,
    ) -> Table {
        let mut lines = Lines::new(reader, path);
        if named(first).is_some() && between != Separator::Tab {
            let _ = lines.next();
        }
        let mut rows = VecDeque::new();
        let mut bad = 0;
        loop {
            let before = lines.number();
            match row(&mut lines, between) {
                Ok(Some(cells)) if cells.iter().any(|cell| cell.contains('\0')) => {
                    let place = Place::line(path, lines.number());
                    findings.row("encoding", place, "has a NUL byte: this is not a text file");
                }
                Ok(Some(cells)) => {
                    let breaks = |cell: &String| cell.matches('\n').count();
                    let (most, all) = cells
                        .iter()
                        .map(breaks)
                        .fold((0, 0), |(most, all), breaks| (breaks.max(most), all + breaks));
                    // A finding about a long text is looked for where it begins.
                    let line = lines.number().saturating_sub(all as u64);
                    if most > LONG {
                        let message = format!(
                            "a text in quotation marks with {most} line ends begins here; if it is \
                             not one text, a quotation mark is missing"
                        );
                        findings.warn("quotation marks", Place::line(path, line), message);
                    }
                    if !budget.take(of_row(&cells)) {
                        budget.refuse(path, findings);
                        return Table::empty(path);
                    }
                    rows.push_back(Row::new(line, cells));
                }
                Ok(None) => break,
                Err(error) => {
                    let text = error.to_string();
                    let encoding = text.contains("not UTF-8");
                    bad += usize::from(encoding);
                    let kind = if encoding { "encoding" } else { "quotation marks" };
                    let first = text.rsplit_once(" of line ").and_then(|(_, n)| n.parse().ok());
                    match first {
                        // Which of the lines are rows is unknown, so that none can be left out.
                        Some(first) => {
                            let count = 1 + lines.number().saturating_sub(first);
                            findings.reader_of_file(kind, path, &error, count);
                        }
                        None => findings.reader(kind, path, &error),
                    }
                    // An error of the reader itself repeats for ever.
                    if lines.number() == before {
                        break;
                    }
                }
            }
        }
        let is_foreign = |row: &&Row| row.cells.iter().any(|cell| !cell.is_ascii());
        if bad > 0 && rows.iter().filter(is_foreign).count() > bad {
            let message = "most lines are UTF-8 and these are not: correct them by hand";
            findings.warn("encoding", Place::whole(path), message);
        } else if bad > 0 {
            findings.warn("encoding", Place::whole(path), encoding_hint(first));
        }
        Table { rows, ..Table::empty(path) }
    }
}
