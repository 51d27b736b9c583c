//! Sentences of a file that are already split into words, to be tagged: CoNLL-U, or a word on each
//! line with other columns beside it. Labels of the file are not read.

use super::lines::{DOCUMENT, Line, WORD_NAMES, column, split};
use super::recognise::{WordFormat, is_header};
use super::{Unit, sentence, treebank};
use crate::data::choose::name;
use crate::data::conllu::Sentence;
use crate::data::stream::Lines;
use crate::import::reading::TrainedImport;
use crate::say;
use regard_models::{Error, Result};
use std::io::BufRead;
use std::path::{Path, PathBuf};

/// Begin of a comment.
const COMMENT: &str = "# ";

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

/// A sentence, or what is wrong with it: the next one can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordSentence {
    /// Line of the file on which it begins, or which is wrong, from 1.
    pub line: u64,
    /// Its words, with their places in its text, or a message about the line.
    pub sentence: Result<Sentence, String>,
}

/// Problem of a sentence: a line and a message about it.
type Problem = (u64, String);
/// Result of reading a sentence; `None` if there are only comments.
type SentenceRead = Result<Option<WordSentence>, Problem>;

/// Returns the number, from 1, of the column of the words in the files that a run was trained on.
///
/// # Errors
/// If the record of the run is damaged.
pub fn recorded_word_column(run: &Path) -> Result<Option<usize>> {
    let reading = TrainedImport::of_run(run)?.map(|trained| trained.reading);
    let reading = reading.filter(|reading| reading.format == "conll");
    Ok(reading.and_then(|reading| reading.columns.get("text")?.first()?.number))
}

/// Iterator over the sentences of a file. An error is one of the whole file: it cannot be read, or a
/// column is missing.
pub struct WordSentences<'a, R> {
    lines: Lines<R>,
    file: PathBuf,
    format: WordFormat,
    column: WordColumn<'a>,
    chosen: Option<Chosen>,
}

/// Columns, as the first sentence has them.
#[derive(Clone, Copy)]
struct Chosen {
    /// Number of columns.
    width: usize,
    /// Column of the words, from 0.
    word: usize,
    /// Separator; `None` for spaces.
    between: Option<char>,
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

    /// Number of the column of the words, from 1; `None` before the first sentence.
    pub fn column(&self) -> Option<usize> {
        match self.format {
            WordFormat::ConllU => Some(2),
            WordFormat::Columns => self.chosen.map(|chosen| chosen.word + 1),
        }
    }

    /// Lines up to the next blank one, or what is wrong with one of them; `None` at the end.
    fn block(&mut self) -> Result<Option<Result<Vec<Line>, Problem>>> {
        let (mut block, mut wrong) = (vec![], None);
        loop {
            let next = self.lines.next();
            let number = self.lines.number();
            let is_none = block.is_empty() && wrong.is_none();
            match next {
                None if is_none => return Ok(None),
                None => break,
                Some(Ok(line)) if line.trim().is_empty() || line.starts_with(DOCUMENT) => {
                    if !is_none {
                        break;
                    }
                }
                Some(Ok(line)) => block.push((number, line)),
                // A line that is not UTF-8.
                Some(Err(Error::File { message, .. })) => {
                    let about = message.strip_prefix(&format!("line {number}: "));
                    wrong.get_or_insert((number, about.unwrap_or(&message).to_string()));
                }
                Some(Err(error)) => return Err(error),
            }
        }
        Ok(Some(wrong.map_or(Ok(block), Err)))
    }

    fn parsed(&mut self, mut block: Vec<Line>) -> Result<SentenceRead> {
        if self.format == WordFormat::ConllU {
            let (line, read) = (block[0].0, treebank::parsed(&block, &self.file).transpose());
            let found = |sentence| WordSentence { line, sentence: Ok(sentence) };
            return Ok(read.map(|read| read.map(found)));
        }
        let chosen = match self.chosen {
            Some(chosen) => chosen,
            // Comments have no columns to choose from.
            None if block.iter().all(|(_, line)| line.starts_with(COMMENT)) => return Ok(Ok(None)),
            None => {
                let chosen = self.choose(&mut block)?;
                *self.chosen.insert(chosen)
            }
        };
        Ok(chosen.sentence(&block))
    }

    /// Chooses the column of the words by the first sentence, and removes comments and a header
    /// from it.
    fn choose(&self, block: &mut Vec<Line>) -> Result<Chosen> {
        let is_word = |(_, line): &&Line| !line.starts_with(COMMENT);
        let words = block.iter().find(is_word).unwrap_or(&block[0]).1.as_str();
        let between = words.contains('\t').then_some('\t');
        let width = split(words, between).len();
        let is_comment = |(_, line): &&Line| is_comment(line, width, between);
        let comments = block.iter().take_while(is_comment).count();
        block.drain(..comments);
        let first = block[0].1.clone();
        let cells = split(&first, between);
        let header = self.column.header.unwrap_or_else(|| is_header(&cells));
        let names = if header { &cells[..] } else { &[] };
        let asked = self.column.asked.map(str::to_string);
        let asked = column("text", &asked, width, names).map_err(Error::invalid)?;
        if header {
            block.remove(0);
        }
        let recorded = match (asked, self.column.recorded) {
            (None, Some(number)) if number > width => {
                return Err(Error::file(
                    &self.file,
                    format!(
                        "has {}; the model was trained on files with the words in column {number}. \
                         --text NUMBER chooses another",
                        say::many(width, "column")
                    ),
                ));
            }
            (None, recorded) => recorded.map(|number| number.saturating_sub(1)),
            (Some(_), _) => None,
        };
        let known = cells.iter().position(|cell| WORD_NAMES.contains(&name(cell).as_str()));
        let known = known.filter(|_| header);
        // Words may be counted in the first column.
        let numbers = block.iter().map(|(_, line)| split(line, between)[0].to_string());
        let counts = numbers.eq((1..=block.len()).map(|number| number.to_string()));
        let other = usize::from(counts && width > 2 && !block.is_empty());
        let word = asked.or(recorded).or(known).unwrap_or(other);
        Ok(Chosen { width, word, between })
    }
}

impl Chosen {
    fn sentence(&self, block: &[Line]) -> SentenceRead {
        let mut units = vec![];
        for (number, line) in block {
            if units.is_empty() && is_comment(line, self.width, self.between) {
                continue;
            }
            let cells = split(line, self.between);
            if cells.len() != self.width {
                let (has, first) = (say::many(cells.len(), "column"), self.width);
                return Err((*number, format!("has {has}, the first line has {first}")));
            }
            let form = cells[self.word].to_string();
            if form.is_empty() {
                return Err((*number, format!("column {}, the word, is empty", self.word + 1)));
            }
            units.push(Unit { form, label: "_".into(), line: *number });
        }
        let first = units.first().map(|unit| unit.line);
        Ok(first.map(|line| WordSentence { line, sentence: Ok(sentence(&units)) }))
    }
}

/// Whether a line before a sentence of `width` columns is a comment. The word `#` has as many
/// columns as other words; so may a comment, but it has a key and a value: `# id 1 domain=en`, as
/// in MultiCoNER, or `# sent_id = 1`.
fn is_comment(line: &str, width: usize, between: Option<char>) -> bool {
    let cells = split(line, between);
    let is_pair = |cell: &&str| {
        cell.split_once('=').is_some_and(|(key, value)| !key.is_empty() && !value.is_empty())
    };
    let has_value = cells.get(2) == Some(&"=") || cells.last().is_some_and(is_pair);
    line.starts_with(COMMENT) && (cells.len() != width || has_value)
}

impl<R: BufRead> Iterator for WordSentences<'_, R> {
    type Item = Result<WordSentence>;

    fn next(&mut self) -> Option<Result<WordSentence>> {
        loop {
            let read = match self.block() {
                Ok(block) => match block? {
                    Ok(block) => self.parsed(block),
                    Err(problem) => Ok(Err(problem)),
                },
                Err(error) => Err(error),
            };
            match read {
                Ok(Ok(None)) => {}
                Ok(Ok(Some(sentence))) => return Some(Ok(sentence)),
                Ok(Err((line, message))) => {
                    return Some(Ok(WordSentence { line, sentence: Err(message) }));
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests;
