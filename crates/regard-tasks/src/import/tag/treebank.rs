//! Sentences of CoNLL-U.

use super::super::findings::{Findings, Place};
use super::lines::Line;
use super::{Item, Unit, iob};
use crate::data::conllu::{Sentence, Sentences};
use crate::data::stream::Lines;
use crate::say;
use std::path::Path;
use std::rc::Rc;

/// Number of columns.
pub(super) const COLUMNS: usize = 10;
/// Names of the columns.
pub(super) const NAMES: [&str; COLUMNS] =
    ["id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc"];
/// Columns, counted from 0: word, universal part of speech, other features.
const FORM: usize = 1;
pub(super) const UPOS: usize = 3;
const MISC: usize = 9;
/// Columns of the head of a word and of its relation to it.
const HEADS: std::ops::Range<usize> = 6..8;

/// Whether a line is one of CoNLL-U: ten columns, the first a number.
pub(super) fn is_conllu(line: &str) -> bool {
    let columns: Vec<&str> = line.split('\t').collect();
    let is_number = |c: char| c.is_ascii_digit() || c == '-' || c == '.';
    columns.len() == COLUMNS && columns[0].chars().all(is_number)
}

/// Reads a sentence of CoNLL-U, with the label of another column if that was chosen.
pub(super) fn sentence(
    block: &[Line],
    label: usize,
    file: &Rc<Path>,
    findings: &mut Findings,
) -> Option<Item> {
    let mut units = vec![];
    let mut good = true;
    for (number, line) in block.iter().filter(|(_, line)| !line.starts_with('#')) {
        let (cells, place) = (line.split('\t').collect::<Vec<_>>(), Place::line(file, *number));
        if cells.len() != COLUMNS {
            let message =
                format!("has {} with tabs between, not 10", say::many(cells.len(), "column"));
            findings.row("number of columns", place, message);
            good = false;
            continue;
        }
        let is_word = !cells[0].contains(['-', '.']);
        if is_word && matches!(cells[label].trim(), "" | "_") {
            findings.row("empty tag", place, format!("column {}, the tag, is empty", label + 1));
            good = false;
        } else if is_word {
            let (form, label) = (cells[FORM].to_string(), cells[label].trim().to_string());
            units.push(Unit { form, label, line: *number });
        }
    }
    if !good || units.is_empty() {
        return None;
    }
    match parsed(block, file)? {
        Ok(read) => {
            iob(&units, file, findings);
            let sentence = labelled(read, units);
            Some(Item { sentence, file: file.clone(), line: block[0].0 })
        }
        Err((line, message)) => {
            findings.row("CoNLL-U", Place::line(file, line), message);
            None
        }
    }
}

/// A line without its head and relation, which tags do not need: treebanks that were made for tags
/// have other things in these columns.
fn without_heads(line: &str) -> String {
    let mut cells: Vec<&str> = line.split('\t').collect();
    if cells.len() == COLUMNS && !line.starts_with('#') {
        cells[HEADS].fill("_");
    }
    cells.join("\t")
}

/// Parses the lines of a sentence, without heads and relations; an error has its line. `None` if
/// there are only comments.
pub(super) fn parsed(
    block: &[Line],
    file: &Path,
) -> Option<std::result::Result<Sentence, (u64, String)>> {
    let has_text = block.iter().any(|(_, line)| {
        let comment = line.strip_prefix('#').and_then(|comment| comment.split_once('='));
        comment.is_some_and(|(key, _)| key.trim() == "text")
    });
    // Without a text in a comment, the written tokens make it.
    let words = block.iter().filter(|(_, line)| !line.starts_with('#')).filter_map(|(_, line)| {
        let cells: Vec<&str> = line.split('\t').collect();
        let joined = cells.get(MISC)?.split('|').any(|feature| feature == "SpaceAfter=No");
        Some((cells[0], cells[FORM], joined))
    });
    let mut text: String =
        if has_text { String::new() } else { comment(&words.collect::<Vec<_>>()) };
    let before = usize::from(!has_text);
    block.iter().for_each(|(_, line)| text += &format!("{}\n", without_heads(line)));
    let read = Sentences::new(Lines::new(text.as_bytes(), file)).next()?;
    Some(read.map_err(|error| {
        // Lines of the reader are those of the block.
        let error = error.to_string();
        let message = error.strip_prefix(&format!("{}: line ", file.display()));
        let (line, message) = message.and_then(|m| m.split_once(": ")).unwrap_or(("", &error));
        let at = line.parse().unwrap_or(1usize).saturating_sub(1 + before);
        (block[at.min(block.len() - 1)].0, message.to_string())
    }))
}

/// Comment with the text of written tokens: words that are not part of a multiword token, and
/// multiword tokens.
fn comment(written: &[(&str, &str, bool)]) -> String {
    let (mut text, mut last) = (String::new(), 0usize);
    for (id, form, joined) in written {
        let number = |id: &str| id.parse::<usize>().unwrap_or(0);
        match id.split_once('-') {
            Some((_, end)) => last = number(end),
            None if id.contains('.') || number(id) <= last => continue,
            None => {}
        }
        text += form;
        if !joined {
            text.push(' ');
        }
    }
    format!("# text = {}\n", text.trim())
}

/// Sentence with the chosen labels and nothing else.
fn labelled(mut sentence: Sentence, units: Vec<Unit>) -> Sentence {
    for (word, unit) in sentence.words.iter_mut().zip(units) {
        word.universal = unit.label;
        (word.specific, word.head, word.relation) = (None, None, None);
    }
    sentence.unwritten = 0;
    sentence
}
