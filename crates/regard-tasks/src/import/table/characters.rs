//! Characters that another program left in a table: what is not a text any more can still be read.

use super::Row;
use crate::import::findings::{Findings, Place};
use crate::say;
use std::collections::VecDeque;
use std::path::Path;

/// Kind of the warnings about characters.
pub(in crate::import) const DAMAGED: &str = "damaged characters";

/// Notes texts that were decoded in a wrong encoding.
pub(super) fn check_encoding(rows: &VecDeque<Row>, path: &Path, findings: &mut Findings) {
    let marks = |row: &Row| row.cells.iter().find_map(|cell| damaged(cell)).map(|m| (row.line, m));
    for (is_lost, message) in [
        (
            true,
            "stands for characters that were lost when the file was converted: convert it again",
        ),
        (
            false,
            "is a letter of UTF-8 that was read in another encoding: read the original as UTF-8, or \
             repair the file: iconv -f UTF-8 -t WINDOWS-1252 FILE > NEW",
        ),
    ] {
        let found =
            rows.iter().filter_map(marks).filter(|(_, mark)| (mark == "\u{fffd}") == is_lost);
        let found: Vec<(u64, String)> = found.collect();
        if let Some((line, mark)) = found.first() {
            let count = say::many(found.len(), "row");
            let message = format!("{mark:?} {message} ({count})");
            findings.warn(DAMAGED, Place::line(path, *line), message);
        }
    }
}

/// The replacement character, or two that stand for one letter.
fn damaged(cell: &str) -> Option<String> {
    if cell.is_ascii() {
        return None;
    }
    let mut before = ' ';
    for c in cell.chars() {
        let is_pair = match before {
            'Ã' => matches!(c, '\u{80}'..='\u{bf}'),
            'Â' => c == '\u{a0}',
            'â' => c == '€',
            _ => false,
        };
        if is_pair {
            return Some(format!("{before}{c}"));
        }
        if c == '\u{fffd}' {
            return Some(c.to_string());
        }
        before = c;
    }
    None
}

/// Notes cells of TSV that a program wrote in quotation marks, which are part of a text there.
pub(super) fn check_quotes(rows: &VecDeque<Row>, path: &Path, findings: &mut Findings) {
    // Within such a cell, a quotation mark is doubled; within a text, it is not.
    let is_written = |cell: &String| {
        let inside = cell.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        inside.is_some_and(|text| text.contains("\"\"") && !text.replace("\"\"", "").contains('"'))
    };
    let mut found = rows.iter().filter(|row| row.cells.iter().any(is_written)).map(|row| row.line);
    if let Some(line) = found.next() {
        let message = format!(
            "a text in quotation marks, with doubled ones in it, is read as it is ({}): in TSV they \
             are characters. If a program wrote them, give the file a name that ends in .csv",
            say::many(1 + found.count(), "row")
        );
        findings.warn("quotation marks", Place::line(path, line), message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_that_were_read_in_another_encoding_are_found() {
        for (text, mark) in [
            ("cafÃ© noir", "Ã©"),
            ("itâ€™s", "â€"),
            ("a\u{fffd}b", "\u{fffd}"),
            ("10Â\u{a0}%", "Â\u{a0}"),
        ] {
            assert_eq!(damaged(text).as_deref(), Some(mark));
        }
        for text in ["plain", "NÃO", "pâte, Âge, â", "10 €", "很好"] {
            assert_eq!(damaged(text), None, "{text}");
        }
    }
}
