//! Characters that another program left in a table: what is not a text any more can still be read.

use super::{Row, end};
use crate::import::findings::{Findings, Place};
use crate::say;
use std::collections::VecDeque;
use std::path::Path;

/// Kind of the warnings about characters.
pub(in crate::import) const DAMAGED: &str = "damaged characters";

/// Characters of Windows-1252 from byte 0x80 on, of which five are unused.
const HIGH: [char; 32] = [
    '€', '\0', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\0', 'Ž', '\0', //
    '\0', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\0', 'ž', 'Ÿ',
];
/// Marks that stand after a word too, such as one in capitals that ends in Ã.
const MARKS: [char; 13] = ['«', '»', '“', '”', '‘', '’', '„', '…', '–', '—', '‹', '›', '•'];

/// Notes texts that were decoded in a wrong encoding.
pub(super) fn check_encoding(rows: &VecDeque<Row>, path: &Path, findings: &mut Findings) {
    let marks = |row: &Row| row.cells.iter().find_map(|cell| damaged(cell)).map(|m| (row.line, m));
    let found: Vec<(u64, String)> = rows.iter().filter_map(marks).collect();
    for is_lost in [true, false] {
        let mut some = found.iter().filter(|(_, mark)| (mark == "\u{fffd}") == is_lost);
        let Some((line, mark)) = some.next() else { continue };
        let message = match is_lost {
            true => {
                "stands for characters that were lost when the file was converted: convert it again"
            }
            false if is_repaired(rows, path) => {
                "is a letter of UTF-8 that was read in another encoding: export the original again \
                 as UTF-8, or repair the file: iconv -f UTF-8 -t WINDOWS-1252 FILE > NEW"
            }
            false => {
                "is a letter of UTF-8 that was read in another encoding: export the original again \
                 as UTF-8"
            }
        };
        let count = say::many(1 + some.count(), "row");
        findings.warn(DAMAGED, Place::line(path, *line), format!("{mark:?} {message} ({count})"));
    }
}

/// Whether conversion to Windows-1252 gives back the letters of every row. It stops at a character
/// that Windows-1252 lacks, and damages a row that is sound.
fn is_repaired(rows: &VecDeque<Row>, path: &Path) -> bool {
    let is_utf8 = |cell: &String| {
        let bytes: Option<Vec<u8>> = cell.chars().map(windows_1252).collect();
        bytes.is_some_and(|bytes| std::str::from_utf8(&bytes).is_ok())
    };
    let is_plain = ["csv", "tsv", "tab", "txt"].contains(&end(path).as_str());
    let is_packed = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("gz"));
    is_plain && !is_packed && rows.iter().flat_map(|row| &row.cells).all(is_utf8)
}

/// The byte of a character in Windows-1252.
fn windows_1252(c: char) -> Option<u8> {
    match c {
        '\0'..='\u{7f}' | '\u{a0}'..='\u{ff}' => u8::try_from(u32::from(c)).ok(),
        _ => HIGH.iter().position(|high| *high == c).map(|at| 0x80 + at as u8),
    }
}

/// The replacement character, or two that stand for one letter.
fn damaged(cell: &str) -> Option<String> {
    if cell.is_ascii() {
        return None;
    }
    let (mut first, mut before) = (' ', ' ');
    let mut rest = cell.chars().peekable();
    while let Some(c) = rest.next() {
        let is_pair = match before {
            'Ã' => {
                // A word in capitals, and what stands after it.
                let is_end = !rest.peek().is_some_and(|next| next.is_alphabetic());
                let is_mark = c == '\u{a0}' || is_end && MARKS.contains(&c);
                let is_second = matches!(c, '\u{80}'..='\u{bf}') || HIGH.contains(&c);
                is_second && !(is_mark && first.is_uppercase())
            }
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
        (first, before) = (before, c);
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
            ("StraÃŸe", "ÃŸ"),
            ("STRAÃŸE", "ÃŸ"),
            ("CAFÃ‰", "Ã‰"),
            ("Ã‰cole", "Ã‰"),
            ("KÃ–LN", "Ã–"),
            ("dÃ»", "Ã»"),
            ("voilÃ\u{a0} tout", "Ã\u{a0}"),
        ] {
            assert_eq!(damaged(text).as_deref(), Some(mark));
        }
        for text in
            ["plain", "NÃO", "pâte, Âge, â", "10 €", "很好", "a «IRMÃ»", "IRMÃ… ", "AMANHÃ–"]
        {
            assert_eq!(damaged(text), None, "{text}");
        }
        assert_eq!(damaged("IRMÃ\u{a0}MARIA"), None);
    }

    /// The command must not stop, and must not damage what is sound.
    #[test]
    fn the_repair_is_told_where_it_repairs_all_rows() {
        for (name, texts, is_told) in [
            ("a.csv", &["cafÃ© noir", "itâ€™s", "plain", "StraÃŸe"][..], true),
            ("a.tsv", &["cafÃ©"], true),
            ("a.csv", &["cafÃ©", "â€œsoâ€\u{9d}"], false),
            ("a.csv", &["cafÃ©", "a sound café"], false),
            ("a.csv", &["cafÃ©", "很好"], false),
            ("a.csv.gz", &["cafÃ©"], false),
            ("a.jsonl", &["cafÃ©"], false),
        ] {
            let row = |text: &&str| Row::new(1, vec![text.to_string()]);
            let mut findings = Findings::new(false);
            check_encoding(&texts.iter().map(row).collect(), Path::new(name), &mut findings);
            let told = findings.text();
            assert!(told.contains("export the original again as UTF-8"), "{told}");
            assert_eq!(told.contains("iconv"), is_told, "{name} {texts:?}: {told}");
        }
    }
}
