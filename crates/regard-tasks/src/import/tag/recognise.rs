//! Recognition of files with a word on each line: CoNLL-U, or a word with other columns beside it.
//! Texts of a few words look similar, and tagging one word of each would lose the rest: in doubt,
//! lines are texts.

use super::lines::{DOCUMENT, LABEL_NAMES, WORD_NAMES, split};
use super::treebank;
use crate::data::choose::name;
use crate::import::table::end;
use std::io::{self, BufRead, Read};
use std::path::Path;

/// Ends of the names of files with a word on each line.
const ENDS: [&str; 6] = ["conll", "iob", "iob2", "bio", "tags", "conllu"];
/// Lines from which the format is recognised, and the fewest that tell it.
const SAMPLE: usize = 50;
const ENOUGH: usize = 3;
/// Most bytes that are read ahead: lines of words are short.
const MOST: usize = 1 << 16;
/// Universal parts of speech.
const UNIVERSAL: [&str; 17] = [
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN",
    "PUNCT", "SCONJ", "SYM", "VERB", "X",
];
/// Parts of speech of the Penn Treebank.
const PENN: [&str; 36] = [
    "CC", "CD", "DT", "EX", "FW", "IN", "JJ", "JJR", "JJS", "LS", "MD", "NN", "NNS", "NNP", "NNPS",
    "PDT", "POS", "PRP", "PRP$", "RB", "RBR", "RBS", "RP", "SYM", "TO", "UH", "VB", "VBD", "VBG",
    "VBN", "VBP", "VBZ", "WDT", "WP", "WP$", "WRB",
];

/// Format of a file with a word on each line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordFormat {
    /// CoNLL-U: ten columns.
    ConllU,
    /// Columns that are separated by tabs or spaces.
    Columns,
}

impl WordFormat {
    /// Recognises the format by the name of a file or by its first bytes, whose last line may be
    /// cut off. `labels` are those of the model.
    pub fn recognise(name: &Path, first: &[u8], labels: &[String]) -> Option<WordFormat> {
        let text = decoded(first);
        let mut lines: Vec<&str> = text.lines().collect();
        if !text.ends_with('\n') && lines.len() > 1 {
            lines.pop();
        }
        of_lines(name, &lines, labels)
    }

    /// Whether no further lines could change what [`WordFormat::recognise`] says about these bytes.
    pub fn is_decided(name: &Path, first: &[u8], labels: &[String]) -> bool {
        let end = first.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        is_settled(name, &decoded(&first[..end]).lines().collect::<Vec<_>>(), labels)
    }

    /// Reads lines until they tell the format. Returns it with the bytes that were taken from the
    /// reader. It does not matter in which pieces they arrive, and no more are waited for than are
    /// needed: most texts are told by their first line.
    ///
    /// # Errors
    /// If the reader fails.
    pub fn look(
        name: &Path,
        reader: &mut dyn BufRead,
        labels: &[String],
    ) -> io::Result<(Option<WordFormat>, Vec<u8>)> {
        let mut taken = vec![];
        loop {
            let room = MOST.saturating_sub(taken.len());
            let read = Read::take(&mut *reader, room as u64).read_until(b'\n', &mut taken)?;
            let text = decoded(&taken);
            let lines: Vec<&str> = text.lines().collect();
            if read == 0 || is_settled(name, &lines, labels) {
                return Ok((of_lines(name, &lines, labels), taken));
            }
        }
    }
}

fn decoded(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes))
}

fn of_lines(name: &Path, lines: &[&str], labels: &[String]) -> Option<WordFormat> {
    let sample = Sample::of(lines);
    if sample.is_conllu || end(name) == "conllu" {
        return Some(WordFormat::ConllU);
    }
    let is_named = ENDS.contains(&end(name).as_str());
    (is_named || sample.has_labels(labels)).then_some(WordFormat::Columns)
}

fn is_settled(name: &Path, lines: &[&str], labels: &[String]) -> bool {
    let sample = Sample::of(lines);
    let is_named = ENDS.contains(&end(name).as_str()) && !sample.rows.is_empty();
    is_named || sample.is_whole || sample.is_conllu || !sample.may_have_labels(labels)
}

/// Whether a line names the columns of words and of labels.
pub(super) fn is_header(cells: &[&str]) -> bool {
    let is = |known: &[&str], cell: &&str| known.contains(&name(cell).as_str());
    cells.iter().any(|cell| is(&WORD_NAMES, cell))
        && cells.iter().any(|cell| is(&LABEL_NAMES, cell))
}

/// First lines with words.
struct Sample<'a> {
    /// Their columns, without a header.
    rows: Vec<Vec<&'a str>>,
    /// Whether the columns are separated by tabs.
    has_tabs: bool,
    is_conllu: bool,
    /// Whether there are as many lines as are looked at: no further ones are.
    is_whole: bool,
}

impl<'a> Sample<'a> {
    fn of(lines: &[&'a str]) -> Sample<'a> {
        let mut sample =
            Sample { rows: vec![], has_tabs: false, is_conllu: false, is_whole: false };
        let mut is_first = true;
        for line in lines {
            let is_end = line.trim().is_empty() || line.starts_with(DOCUMENT);
            // Who sends a sentence may wait for its labels before the next one. A sentence of one
            // or two words tells too little.
            sample.is_whole |= is_end && sample.rows.len() >= ENOUGH;
            if sample.is_whole {
                break;
            }
            if is_end || line.starts_with("# ") {
                continue;
            }
            if is_first {
                sample.is_conllu = treebank::is_conllu(line);
                sample.has_tabs = line.contains('\t');
            }
            let row = split(line, sample.has_tabs.then_some('\t'));
            if !is_first || !is_header(&row) {
                sample.rows.push(row);
            }
            sample.is_whole = sample.rows.len() == SAMPLE;
            is_first = false;
        }
        sample
    }

    /// Number of columns, if all lines have as many, at least two, and begin with a word.
    fn width(&self) -> Option<usize> {
        let width = self.rows.first()?.len();
        let is_word = |cell: &str| !cell.is_empty() && !cell.contains(char::is_whitespace);
        let is_good = |row: &Vec<&str>| row.len() == width && is_word(row[0]);
        (width > 1 && self.rows.iter().all(is_good)).then_some(width)
    }

    /// Whether the lines may be words with labels, as far as they are known.
    fn may_have_labels(&self, labels: &[String]) -> bool {
        let mut columns = 1..self.width().unwrap_or(1);
        self.rows.is_empty() || columns.any(|at| self.may_be_labels(at, labels))
    }

    /// Whether the lines are words with labels: a column, not the first, has nothing else.
    fn has_labels(&self, labels: &[String]) -> bool {
        let mut columns = 1..self.width().unwrap_or(1);
        self.rows.len() >= ENOUGH && columns.any(|at| self.are_labels(at, labels))
    }

    /// Whether no cell of a column contradicts that it has labels. A sentence may end with a mark,
    /// so a mark is only a label beside a mark. A word in capitals that is no known label, such as
    /// AAPL, may be anywhere in a text; labels are in the last column, or separated by tabs.
    fn may_be_labels(&self, at: usize, labels: &[String]) -> bool {
        let takes_unknown = |row: &Vec<&str>| self.has_tabs || at + 1 == row.len();
        self.rows.iter().all(|row| match row[at] {
            cell if is_mark(cell) => is_mark(row[0]),
            cell => is_known(cell, labels) || takes_unknown(row) && is_in_capitals(cell),
        })
    }

    fn are_labels(&self, at: usize, labels: &[String]) -> bool {
        let cells = || self.rows.iter().map(|row| row[at]);
        let first = self.rows[0][at];
        let has_letters = cells().any(|cell| cell.contains(char::is_alphabetic));
        // "iPhone X", "Model X", "Malcolm X"; but a sentence may have no entities.
        let varies = self.has_tabs || first == "O" || cells().any(|cell| cell != first);
        let are_known = cells().all(|cell| is_mark(cell) || is_known(cell, labels));
        // "buy AAPL", "sell TSLA": a text hardly begins with a mark alone, but a file has such words.
        let has_mark = self.has_tabs || self.rows.iter().any(|row| is_mark(row[0]));
        let has_small = self.rows.iter().any(|row| row[0].contains(char::is_lowercase));
        self.may_be_labels(at, labels)
            && has_letters
            && varies
            && (are_known || has_mark && has_small)
    }
}

/// Whether there is nothing but punctuation.
fn is_mark(cell: &str) -> bool {
    !cell.is_empty() && !cell.contains(char::is_alphanumeric)
}

/// Whether a cell is a label of the model, a usual part of speech or a label of entities.
fn is_known(cell: &str, labels: &[String]) -> bool {
    let kind = ["B-", "I-", "E-", "S-", "L-", "U-"].iter().find_map(|p| cell.strip_prefix(p));
    // I-95 is a road.
    let is_entity = kind.is_some_and(|kind| kind.starts_with(char::is_alphabetic));
    let is_part = UNIVERSAL.contains(&cell) || PENN.contains(&cell);
    cell == "O" || is_entity || is_part || labels.iter().any(|label| label == cell)
}

/// Whether a cell may be a label of an unknown set, such as VVFIN or -LRB-.
fn is_in_capitals(cell: &str) -> bool {
    let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || "$-_+|".contains(c);
    cell.starts_with(|c: char| c.is_ascii_uppercase() || c == '-')
        && cell.contains(|c: char| c.is_ascii_uppercase())
        && cell.chars().all(is_part)
}

#[cfg(test)]
mod tests;
