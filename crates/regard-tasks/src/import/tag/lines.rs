//! Sentences with a word on each line: CoNLL-U, or columns as in CoNLL-2003. A blank line ends a
//! sentence.

use super::super::findings::{Findings, Place};
use super::super::reading::Reading;
use super::super::table::end;
use super::{Item, Unit, iob, sentence, treebank};
use crate::data::choose::name;
use crate::data::stream::Lines;
use crate::import::Request;
use crate::say;
use regard_models::{Error, Result};
use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;
use std::rc::Rc;

/// Line between documents in CoNLL-2003.
pub(super) const DOCUMENT: &str = "-DOCSTART-";
/// Names of columns in a first line.
pub(super) const WORD_NAMES: [&str; 6] = ["word", "words", "token", "tokens", "form", "text"];
pub(super) const LABEL_NAMES: [&str; 10] =
    ["label", "labels", "tag", "tags", "ner", "pos", "ner_tag", "ner_tags", "pos_tag", "upos"];

/// A line with its number.
pub(super) type Line = (u64, String);

/// Reads a file.
pub(super) fn read(
    path: &Path,
    request: &Request,
    reading: &mut Option<Reading>,
    findings: &mut Findings,
) -> Result<Vec<Item>> {
    let blocks = blocks(path, findings)?;
    let lines = || blocks.iter().flatten().flatten().map(|(_, line)| line.as_str());
    if lines().next().is_none() {
        if blocks.iter().all(Option::is_some) {
            findings.error("empty file", Place::whole(path), "has no sentences");
        }
        return Ok(vec![]);
    }
    let file: Rc<Path> = path.into();
    if end(path) == "conllu"
        || lines().find(|line| !line.starts_with('#')).is_some_and(treebank::is_conllu)
    {
        if request.columns.text.is_some() {
            let message = format!("--text does not apply to CoNLL-U, such as {}", path.display());
            return Err(Error::invalid(message));
        }
        let request = recorded(request, "conllu", treebank::COLUMNS).map_err(Error::invalid)?;
        let label = column("label", &request.columns.label, treebank::COLUMNS, &treebank::NAMES);
        let label = label.map_err(Error::invalid)?.unwrap_or(treebank::UPOS);
        reading.get_or_insert_with(|| noted("conllu", &[("label", label)]));
        let mut read = |block: &Vec<Line>| treebank::sentence(block, label, &file, findings);
        return Ok(blocks.iter().flatten().filter_map(&mut read).collect());
    }
    let mut blocks = blocks;
    let removed = comments(&mut blocks);
    if removed > 0 {
        let message = format!(
            "{} with \"# \" before a sentence {} not read",
            say::many(removed, "line"),
            if removed == 1 { "is a comment and" } else { "are comments and" }
        );
        findings.warn("comments", Place::whole(path), message);
    }
    let lines = || blocks.iter().flatten().flatten().map(|(_, line)| line.as_str());
    let Some(first) = lines().next() else {
        findings.error("empty file", Place::whole(path), "has no sentences");
        return Ok(vec![]);
    };
    let between = if first.contains('\t') { Some('\t') } else { None };
    let cells = split(first, between);
    let request = match recorded(request, "conll", cells.len()) {
        Ok(request) => request,
        Err(message) => {
            findings.error("columns", Place::whole(path), message);
            return Ok(vec![]);
        }
    };
    let request = &*request;
    let Some(columns) = Columns::choose(&cells, request, path, findings)? else {
        return Ok(vec![]);
    };
    let chosen = [("text", columns.word), ("label", columns.label)];
    reading.get_or_insert_with(|| noted("conll", &chosen));
    let mut blocks: Vec<Vec<Line>> = blocks.into_iter().flatten().collect();
    if columns.header {
        blocks[0].remove(0);
    }
    if let Some(message) = blocks.first().and_then(|block| columns.counted(block, between, request))
    {
        findings.error("columns", Place::line(path, blocks[0][0].0), message);
        return Ok(vec![]);
    }
    let mut read = |block: &Vec<Line>| columns.sentence(block, between, &file, findings);
    Ok(blocks.iter().filter_map(&mut read).collect())
}

/// Describes how a file was read: columns by number.
fn noted(format: &str, columns: &[(&str, usize)]) -> Reading {
    let reading = Reading { header: Some(false), ..Reading::of(format) };
    columns.iter().fold(reading, |reading, (role, at)| reading.with(role, &[*at], None))
}

/// Request with the recorded columns, if the run was trained on a file of this format.
fn recorded<'a>(
    request: &'a Request,
    format: &str,
    width: usize,
) -> Result<Cow<'a, Request>, String> {
    match request.like().is_some_and(|reading| reading.format == format) {
        true => {
            let numbers: Vec<String> = (1..=width).map(|number| number.to_string()).collect();
            request.for_columns(&numbers, false)
        }
        false => Ok(Cow::Borrowed(request)),
    }
}

/// Lines between blank lines; `None` for a sentence with a line that is not text, which is noted.
fn blocks(path: &Path, findings: &mut Findings) -> Result<Vec<Option<Vec<Line>>>> {
    let mut all = vec![];
    let mut block = Some(vec![]);
    let mut lines = Lines::open(path)?;
    while let Some(line) = lines.next() {
        let number = lines.number();
        match line {
            Ok(line) if line.trim().is_empty() || line.starts_with(DOCUMENT) => {
                all.push(block.replace(vec![]));
            }
            Ok(line) if line.contains('\0') => {
                let place = Place::line(path, number);
                findings.row("encoding", place, "has a NUL byte: this is not a text file");
                block = None;
            }
            Ok(line) => {
                if let Some(block) = &mut block {
                    block.push((number, line));
                }
            }
            Err(error) => {
                findings.reader("encoding", path, &error);
                block = None;
            }
        }
    }
    all.push(block);
    all.retain(|block| block.as_ref().is_none_or(|lines| !lines.is_empty()));
    Ok(all)
}

/// Removes comments before sentences: lines that begin with `# `, as in MultiCoNER. Returns their
/// number. A line that ends in a label of other lines is the word `#`.
fn comments(blocks: &mut Vec<Option<Vec<Line>>>) -> usize {
    fn last(line: &str) -> &str {
        line.split_whitespace().next_back().unwrap_or_default()
    }
    let lines = blocks.iter().flatten().flatten().map(|(_, line)| line);
    let words = lines.filter(|line| !line.starts_with("# "));
    let labels: HashSet<String> = words.map(|line| last(line).to_string()).collect();
    let is_comment = |(_, line): &&Line| line.starts_with("# ") && !labels.contains(last(line));
    let mut removed = 0;
    for block in blocks.iter_mut().flatten() {
        let count = block.iter().take_while(is_comment).count();
        removed += block.drain(..count).count();
    }
    blocks.retain(|block| block.as_ref().is_none_or(|lines| !lines.is_empty()));
    removed
}

pub(super) fn split(line: &str, between: Option<char>) -> Vec<&str> {
    match between {
        Some(between) => line.split(between).map(str::trim).collect(),
        None => line.split_whitespace().collect(),
    }
}

/// Column that a flag chooses, counted from 0.
pub(super) fn column(
    flag: &str,
    asked: &Option<String>,
    width: usize,
    names: &[&str],
) -> Result<Option<usize>, String> {
    let Some(asked) = asked else { return Ok(None) };
    if let Some(column) = names.iter().position(|cell| name(cell) == name(asked)) {
        return Ok(Some(column));
    }
    let number = asked.trim().parse().ok().filter(|number| (1..=width).contains(number));
    match number {
        Some(number) => Ok(Some(number - 1)),
        None => Err(format!(
            "--{flag}: there is no column {asked:?}; need a number from 1 to {width}, the columns \
             of a line"
        )),
    }
}

/// Columns of a file that is not CoNLL-U.
struct Columns {
    width: usize,
    word: usize,
    label: usize,
    /// Whether the first line names them.
    header: bool,
}

impl Columns {
    fn choose(
        first: &[&str],
        request: &Request,
        path: &Path,
        findings: &mut Findings,
    ) -> Result<Option<Columns>> {
        let width = first.len();
        if width < 2 {
            let message = format!(
                "need a word and a label in a line, separated by a tab or a space, and a blank \
                 line after a sentence; the first line is {:?}",
                say::short(first.first().unwrap_or(&""), 60)
            );
            findings.error("columns", Place::whole(path), message);
            return Ok(None);
        }
        let is = |known: &[&str], cell: &str| known.contains(&name(cell).as_str());
        let header = first.iter().any(|cell| is(&WORD_NAMES, cell))
            && first.iter().any(|cell| is(&LABEL_NAMES, cell));
        let names = if header { first } else { &[] };
        let asked = |flag: &str, asked: &Option<String>| {
            column(flag, asked, width, names).map_err(Error::invalid)
        };
        let word = asked("text", &request.columns.text)?.unwrap_or(0);
        let label = asked("label", &request.columns.label)?.unwrap_or(width - 1);
        if word == label {
            return Err(Error::invalid(format!(
                "--text and --label name the same column of {}",
                path.display()
            )));
        }
        Ok(Some(Columns { width, word, label, header }))
    }

    /// Message if the first column counts the words of a sentence.
    fn counted(&self, block: &[Line], between: Option<char>, request: &Request) -> Option<String> {
        let numbers = || block.iter().map(|(_, line)| split(line, between)[0].to_string());
        let counts = block.len() > 1 && numbers().eq((1..=block.len()).map(|n| n.to_string()));
        (counts && self.width > 2 && request.columns.text.is_none()).then(|| {
            "the first column counts the words: choose the column of the words, such as --text 2"
                .to_string()
        })
    }

    fn sentence(
        &self,
        block: &[Line],
        between: Option<char>,
        file: &Rc<Path>,
        findings: &mut Findings,
    ) -> Option<Item> {
        let mut units = vec![];
        let mut good = true;
        for (number, line) in block {
            let (cells, place) = (split(line, between), Place::line(file, *number));
            if cells.len() != self.width {
                let message = format!(
                    "has {}, the first line has {}",
                    say::many(cells.len(), "column"),
                    self.width
                );
                findings.row("number of columns", place, message);
                good = false;
                continue;
            }
            let (word, label) = (cells[self.word], cells[self.label]);
            match (word.is_empty(), label.is_empty()) {
                (true, _) => findings.row("empty word", place, "the word is empty"),
                (_, true) => findings.row("empty tag", place, "the tag is empty"),
                _ => {
                    units.push(Unit { form: word.into(), label: label.into(), line: *number });
                    continue;
                }
            }
            good = false;
        }
        if !good || units.is_empty() {
            return None;
        }
        iob(&units, file, findings);
        Some(Item { sentence: sentence(&units), file: file.clone(), line: block[0].0 })
    }
}
