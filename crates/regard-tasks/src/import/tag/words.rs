//! Sentences of a file that are already split into words, to be tagged: CoNLL-U, or a word on each
//! line with other columns beside it. Labels of the file are not read.

use super::lines::{DOCUMENT, LABEL_NAMES, Line, WORD_NAMES, column, split};
use super::{Unit, sentence, treebank};
use crate::data::choose::name;
use crate::data::conllu::Sentence;
use crate::data::stream::Lines;
use crate::import::reading::TrainedImport;
use crate::import::table::end;
use crate::say;
use regard_models::{Error, Result};
use std::io::BufRead;
use std::path::{Path, PathBuf};

/// Ends of the names of files with a word on each line.
const ENDS: [&str; 6] = ["conll", "iob", "iob2", "bio", "tags", "conllu"];
/// Lines from which the format is recognised, and the fewest that tell it.
const SAMPLE: usize = 50;
const ENOUGH: usize = 3;
/// Universal parts of speech.
const UNIVERSAL: [&str; 17] = [
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN",
    "PUNCT", "SCONJ", "SYM", "VERB", "X",
];

/// Format of a file with a word on each line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordFormat {
    /// CoNLL-U: ten columns.
    ConllU,
    /// Columns that are separated by tabs or spaces.
    Columns,
}

/// Which column has the words of [`WordFormat::Columns`].
#[derive(Clone, Copy, Debug, Default)]
pub struct WordColumn<'a> {
    /// Its name or its number from 1, as the user chose it.
    pub asked: Option<&'a str>,
    /// Its number from 1 in the files that the model was trained on.
    pub recorded: Option<usize>,
    /// Whether the first line names the columns; `None` to detect it.
    pub header: Option<bool>,
}

/// A sentence and the line on which it begins, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordSentence {
    /// Line of the file, from 1.
    pub line: u64,
    /// Its words, with their places in its text.
    pub sentence: Sentence,
}

/// Returns the number, from 1, of the column of the words in the files that a run was trained on.
///
/// # Errors
/// If the record of the run is damaged.
pub fn recorded_word_column(run: &Path) -> Result<Option<usize>> {
    let reading = TrainedImport::of_run(run)?.map(|trained| trained.reading);
    let reading = reading.filter(|reading| reading.format == "conll");
    Ok(reading.and_then(|reading| reading.columns.get("text")?.first()?.number))
}

impl WordFormat {
    /// Recognises the format by the name of a file or by its first bytes. `labels` are those of the
    /// model. Two words on a line are only a word and its label if the second one is a label on
    /// every line: texts may be that short.
    pub fn recognise(name: &Path, first: &[u8], labels: &[String]) -> Option<WordFormat> {
        let first = first.strip_prefix(b"\xef\xbb\xbf").unwrap_or(first);
        let text = String::from_utf8_lossy(first);
        let mut lines: Vec<&str> = text.lines().collect();
        // The last line may be cut off.
        if !text.ends_with('\n') && lines.len() > 1 {
            lines.pop();
        }
        let is_word = |line: &&str| {
            !line.trim().is_empty() && !line.starts_with("# ") && !line.starts_with(DOCUMENT)
        };
        let words: Vec<&str> = lines.into_iter().filter(is_word).take(SAMPLE).collect();
        let is_conllu = words.first().is_some_and(|line| treebank::is_conllu(line));
        if is_conllu || end(name) == "conllu" {
            return Some(WordFormat::ConllU);
        }
        let is_named = ENDS.contains(&end(name).as_str());
        (is_named || has_labels(&words, labels)).then_some(WordFormat::Columns)
    }
}

/// Whether lines have the same number of columns, and one of them, not the first, only labels:
/// those of the model, known ones, or others in capitals beside words that are not.
fn has_labels(lines: &[&str], labels: &[String]) -> bool {
    let Some(first) = lines.first() else { return false };
    let between = first.contains('\t').then_some('\t');
    let mut rows: Vec<Vec<&str>> = lines.iter().map(|line| split(line, between)).collect();
    if is_header(&rows[0]) {
        rows.remove(0);
    }
    let width = rows.first().map_or(0, Vec::len);
    if rows.len() < ENOUGH || width < 2 || rows.iter().any(|row| row.len() != width) {
        return false;
    }
    let is_label = |cell: &str| {
        let has_prefix = ["B-", "I-", "E-", "S-", "L-", "U-"].iter().any(|p| cell.starts_with(p));
        cell == "O" || has_prefix || UNIVERSAL.contains(&cell) || labels.iter().any(|l| l == cell)
    };
    let is_capital = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || "$-_+|".contains(c);
    let is_tag = |cell: &str| {
        let is_mark = !cell.is_empty() && cell.chars().all(|c| c.is_ascii_punctuation());
        is_mark
            || cell.starts_with(|c: char| c.is_ascii_uppercase()) && cell.chars().all(is_capital)
    };
    let has_small = rows.iter().any(|row| row[0].contains(char::is_lowercase));
    let is_one_word = |cell: &str| !cell.contains(char::is_whitespace) && !cell.is_empty();
    rows.iter().all(|row| is_one_word(row[0]))
        && (1..width).any(|at| {
            rows.iter().all(|row| is_label(row[at]))
                || has_small && rows.iter().all(|row| is_tag(row[at]))
        })
}

/// Whether a line names the columns of words and of labels.
fn is_header(cells: &[&str]) -> bool {
    let is = |known: &[&str], cell: &&str| known.contains(&name(cell).as_str());
    cells.iter().any(|cell| is(&WORD_NAMES, cell))
        && cells.iter().any(|cell| is(&LABEL_NAMES, cell))
}

/// Iterator over the sentences of a file. A sentence with a problem is an error, after which the
/// next one can be read.
pub struct WordSentences<'a, R> {
    lines: Lines<R>,
    file: PathBuf,
    format: WordFormat,
    column: WordColumn<'a>,
    /// Columns of the first sentence: number of columns, column of the words, separator.
    chosen: Option<(usize, usize, Option<char>)>,
}

impl<'a, R: BufRead> WordSentences<'a, R> {
    /// Reads sentences; `file` is the name in errors.
    ///
    /// # Errors
    /// If a column is chosen in CoNLL-U, whose words are in the second one.
    pub fn new(
        reader: R,
        file: &Path,
        format: WordFormat,
        column: WordColumn<'a>,
    ) -> Result<WordSentences<'a, R>> {
        if let (WordFormat::ConllU, Some(_)) = (format, column.asked) {
            let message = "is CoNLL-U, whose words are in column 2: --text does not apply";
            return Err(Error::file(file, message));
        }
        let (lines, file) = (Lines::new(reader, file), file.to_path_buf());
        Ok(WordSentences { lines, file, format, column, chosen: None })
    }

    fn parsed(&mut self, mut block: Vec<Line>) -> Result<Option<WordSentence>> {
        let line = block[0].0;
        let error = |line: u64, message: String| Error::invalid(format!("line {line}: {message}"));
        if self.format == WordFormat::ConllU {
            let read = treebank::parsed(&block, &self.file).transpose();
            let read = read.map_err(|(line, message)| error(line, message))?;
            return Ok(read.map(|sentence| WordSentence { line, sentence }));
        }
        let (width, word, between) = match self.chosen {
            Some(chosen) => chosen,
            None => {
                let chosen = self.choose(&mut block)?;
                *self.chosen.insert(chosen)
            }
        };
        let mut units = vec![];
        for (number, line) in &block {
            let cells = split(line, between);
            // Comments before a sentence, as in MultiCoNER.
            if units.is_empty() && line.starts_with("# ") && cells.len() != width {
                continue;
            }
            if cells.len() != width {
                let (has, first) = (say::many(cells.len(), "column"), width);
                let message = format!("has {has}, the first line has {first}");
                return Err(error(*number, message));
            }
            if cells[word].is_empty() {
                return Err(error(*number, format!("column {}, the word, is empty", word + 1)));
            }
            units.push(Unit { form: cells[word].into(), label: "_".into(), line: *number });
        }
        let first = units.first().map(|unit| unit.line);
        Ok(first.map(|line| WordSentence { line, sentence: sentence(&units) }))
    }

    /// Chooses the column of the words by the first sentence, and removes a header from it.
    fn choose(&self, block: &mut Vec<Line>) -> Result<(usize, usize, Option<char>)> {
        let is_comment = |(_, line): &&Line| line.starts_with("# ");
        let comments = block.iter().take_while(is_comment).count();
        if comments < block.len() {
            block.drain(..comments);
        }
        let first = block[0].1.clone();
        let between = first.contains('\t').then_some('\t');
        let cells = split(&first, between);
        let header = self.column.header.unwrap_or_else(|| is_header(&cells));
        let names = if header { &cells[..] } else { &[] };
        let asked = self.column.asked.map(str::to_string);
        let asked = column("text", &asked, cells.len(), names).map_err(Error::invalid)?;
        if header {
            block.remove(0);
        }
        let recorded = match (asked, self.column.recorded) {
            (None, Some(number)) if number > cells.len() => {
                return Err(Error::file(
                    &self.file,
                    format!(
                        "has {}; the model was trained on files with the words in column {number}. \
                         --text NUMBER chooses another",
                        say::many(cells.len(), "column")
                    ),
                ));
            }
            (None, recorded) => recorded.map(|number| number.saturating_sub(1)),
            (Some(_), _) => None,
        };
        let known = (0..cells.len()).find(|at| WORD_NAMES.contains(&name(cells[*at]).as_str()));
        let known = known.filter(|_| header);
        // Words may be counted in the first column.
        let numbers = block.iter().map(|(_, line)| split(line, between)[0].to_string());
        let counts = numbers.eq((1..=block.len()).map(|number| number.to_string()));
        let other = usize::from(counts && cells.len() > 2 && !block.is_empty());
        let word = asked.or(recorded).or(known).unwrap_or(other);
        Ok((cells.len(), word, between))
    }

    /// Number of the column of the words, from 1; `None` before the first sentence.
    pub fn column(&self) -> Option<usize> {
        match self.format {
            WordFormat::ConllU => Some(2),
            WordFormat::Columns => self.chosen.map(|(_, word, _)| word + 1),
        }
    }
}

impl<R: BufRead> Iterator for WordSentences<'_, R> {
    type Item = Result<WordSentence>;

    fn next(&mut self) -> Option<Result<WordSentence>> {
        loop {
            let mut block: Vec<Line> = vec![];
            let mut wrong = None;
            let ended = loop {
                match self.lines.next() {
                    Some(Ok(line)) if line.trim().is_empty() || line.starts_with(DOCUMENT) => {
                        break false;
                    }
                    Some(Ok(line)) => block.push((self.lines.number(), line)),
                    Some(Err(error)) => wrong = wrong.or(Some(error)),
                    None => break true,
                }
            };
            if let Some(error) = wrong {
                return Some(Err(error));
            }
            let read = if block.is_empty() { Ok(None) } else { self.parsed(block) };
            match read {
                Ok(None) if ended => return None,
                Ok(None) => {}
                read => return read.transpose(),
            }
        }
    }
}
