//! Sentences with a label for each word.

mod json;
mod lines;
mod recognise;
mod treebank;
mod words;

use super::examples::{Example, check_parts, divide, part_files, percentile, skipped, text_key};
use super::findings::{Findings, Place};
use super::label_values::{missing, note_alike};
use super::reading::{Column, Reading, part_told};
use super::table::{PARQUET, end};
use super::{DataSize, Draft, PartFiles, Places, Request, is_unspaced, split_line, units};
use crate::data::Part;
use crate::data::conllu::{Sentence, Word};
use crate::say;
pub use recognise::WordFormat;
use regard_models::{Result, checkpoint};
use std::collections::{BTreeMap, HashSet};
use std::io::Write;
use std::path::Path;
use std::rc::Rc;
use toml::{Table as Keys, Value};
pub use words::{WordColumn, WordSentence, WordSentences, recorded_word_column};

/// Ends of file names that are read from a folder.
const ENDS: [&str; 10] =
    ["conllu", "conll", "iob", "bio", "tags", "txt", "tsv", "jsonl", "ndjson", "json"];
/// Number of words of a sentence above which it is hardly one.
const LONG: usize = 200;
/// Number of words above which labels that are mostly different must be words.
const ENOUGH: usize = 20;
/// Most labels of a file whose columns look swapped.
const FEW: usize = 50;
/// Label of a word outside all entities.
const OUTSIDE: &str = "O";

/// A sentence and its place.
struct Item {
    sentence: Sentence,
    file: Rc<Path>,
    line: u64,
}

impl Item {
    fn text(&self) -> &str {
        self.sentence.text.as_deref().unwrap_or_default()
    }

    fn labels(&self) -> impl Iterator<Item = &str> {
        self.sentence.words.iter().map(|word| word.universal.as_str())
    }
}

impl Example for Item {
    const KEY: &'static str = "sentence";

    fn key(&self) -> String {
        text_key(self.text())
    }

    fn place(&self) -> Place<'_> {
        Place::line(&self.file, self.line)
    }
}

/// A word with its label.
struct Unit {
    form: String,
    label: String,
    line: u64,
}

/// Reads the files of a request.
pub(super) fn read(request: &Request, findings: &mut Findings) -> Result<Option<Draft>> {
    let files = PartFiles::find(request, &|path| ENDS.contains(&end(path).as_str()), findings)?;
    let mut read = None;
    let mut all = [vec![], vec![], vec![]];
    for (part, items) in [Part::Train, Part::Valid, Part::Test].into_iter().zip(&mut all) {
        for path in files.of(part) {
            items.extend(match end(path).as_str() {
                "json" | "jsonl" | "ndjson" => json::read(path, request, &mut read, findings)?,
                PARQUET => {
                    let message = "is a Parquet file, whose lists are not read; convert it to JSON \
                                   lines: python3 -c \"import pandas; pandas.read_parquet('FILE')\
                                   .to_json('NEW.jsonl', orient='records', lines=True)\"";
                    findings.error("encoding", Place::whole(path), message);
                    vec![]
                }
                _ => lines::read(path, request, &mut read, findings)?,
            });
        }
    }
    let Some(first) = all[0].first() else { return Ok(None) };
    let told: Vec<String> = first.sentence.words.iter().take(4).map(pair).collect();
    let reading = read.unwrap_or_default();
    if let Some(like) = request.like() {
        let [items, ..] = all;
        let columns = [format!("{}; first: {}", columns_told(&reading), told.join(" "))];
        let notes = columns.into_iter().chain(files.chosen.map(part_told)).collect();
        let draft = whole(items, like, notes, findings);
        return Ok(Some(Draft { chosen: files.chosen, ..draft }));
    }
    if let Some(message) = swapped(&all[0], &reading) {
        // What follows from it, such as too few different sentences, is not told.
        findings.error("swapped columns", first.place(), message);
        return Ok(None);
    }
    check_labels(&all[0], findings);
    let (held, given_test) = (files.held_out(), files.test.clone());
    let all = divide(all, false, held, request.seed, findings);
    check_parts(&all, 2, held, findings);
    let known: HashSet<&str> = all[0].iter().flat_map(Item::labels).collect();
    for (item, label) in
        all[1..].iter().flatten().flat_map(|item| item.labels().map(move |l| (item, l)))
    {
        if !known.contains(label) {
            let message = format!(
                "the label {:?} is not in the training part: it cannot be predicted",
                say::short(label, 40)
            );
            findings.warn("unknown label", item.place(), message);
        }
    }
    long_sentences(&all, findings);
    let labels = counts(&all[0]);
    let names_of_labels: Vec<String> = labels.iter().map(|(name, _)| name.to_string()).collect();
    let sizes = all.each_ref().map(Vec::len);
    let words = |items: &[Item]| items.iter().map(|item| item.sentence.words.len()).sum::<usize>();
    let mut summary = vec![
        format!("first: {}", told.join(" ")),
        format!("sentences: {}", split_line(sizes, held, request.seed)),
        format!(
            "{} and {} in the training part: {}",
            say::many(words(&all[0]), "word"),
            say::many(labels.len(), "label"),
            named(&labels)
        ),
    ];
    summary.extend(skipped(findings));
    let unspaced = is_unspaced(all[0].iter().map(Item::text));
    let length = |item: &Item| match unspaced {
        true => units(item.text(), true),
        false => item.sentence.words.len(),
    };
    let lengths: Vec<usize> = all[0].iter().map(length).collect();
    let size = DataSize {
        examples: sizes[0],
        units: lengths.iter().sum(),
        longest: lengths.iter().copied().max().unwrap_or(0),
        labels: labels.len(),
        unspaced,
    };
    // Pretrained models split rare words into several tokens.
    let tokens = percentile(&lengths, 99) * if unspaced { 1 } else { 2 };
    let most = Value::Integer(tokens.next_power_of_two().clamp(64, 512) as i64);
    let data = Keys::from_iter([("max_tokens".to_string(), most)]);
    let keys = Keys::from_iter([("data".to_string(), Value::Table(data))]);
    let places = [1, 2].map(|part: usize| Places::of(&all[part]));
    let names = ["train.conllu", "valid.conllu", "test.conllu"];
    let files = part_files(names, sizes);
    let write = move |folder: &Path| {
        let mut parts = all.iter().zip(names).filter(|(items, _)| !items.is_empty());
        parts.try_for_each(|(items, name)| write_part(&folder.join(name), items))
    };
    let (task, write) = ("tag", Box::new(write));
    let reading = reading.with_labels(names_of_labels);
    let draft = Draft::new(task, summary, sizes, write);
    Ok(Some(Draft { size, keys, files, reading, test: given_test, places, ..draft }))
}

/// Sentences that a model is evaluated on, without those with labels that it does not know.
fn whole(
    mut items: Vec<Item>,
    like: &Reading,
    mut summary: Vec<String>,
    findings: &mut Findings,
) -> Draft {
    items.retain(|item| {
        let unknown = item.labels().find_map(|label| like.unknown(label));
        unknown.is_none_or(|message| {
            findings.row("unknown label", item.place(), message);
            false
        })
    });
    let words = items.iter().map(|item| item.sentence.words.len()).sum();
    let (sentences, words) = (say::many(items.len(), "sentence"), say::many(words, "word"));
    summary.push(format!("{sentences}, {words}; labels: {}", named(&counts(&items))));
    summary.extend(skipped(findings));
    let (count, file, places) = (items.len(), "test.conllu", Places::of(&items));
    let write = move |folder: &Path| write_part(&folder.join(file), &items);
    let draft = Draft::to_evaluate("tag", summary, count, file, Box::new(write));
    Draft { places: [Places::default(), places], ..draft }
}

/// Phrase about the columns of words and labels.
fn columns_told(reading: &Reading) -> String {
    let one = |(role, columns): (&String, &Vec<Column>)| {
        let column = columns.first().cloned().unwrap_or_default();
        match (column.name, column.number) {
            (Some(name), _) => format!("{role}: key '{}'", say::short(&name, 30)),
            (None, number) => format!("{role}: column {}", number.unwrap_or_default()),
        }
    };
    reading.columns.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn pair(word: &Word) -> String {
    format!("{}/{}", say::short(&word.form, 20), say::short(&word.universal, 20))
}

/// Labels with their numbers of words, the most frequent first.
fn counts(items: &[Item]) -> Vec<(&str, usize)> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    items.iter().flat_map(Item::labels).for_each(|label| *counts.entry(label).or_default() += 1);
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

fn named(labels: &[(&str, usize)]) -> String {
    let one =
        |(name, count): &(&str, usize)| format!("{} {}", say::short(name, 30), say::count(*count));
    say::list_in_line(&labels.iter().map(one).collect::<Vec<_>>())
}

/// Message if the words are few and repeated as labels are, and the labels as many as words are.
fn swapped(train: &[Item], reading: &Reading) -> Option<String> {
    let number = |role: &str| reading.columns.get(role)?.first()?.number;
    let (word, label) = (number("text")?, number("label")?);
    let mut forms: BTreeMap<&str, usize> = BTreeMap::new();
    for word in train.iter().flat_map(|item| &item.sentence.words) {
        *forms.entry(&word.form).or_default() += 1;
    }
    let labels = counts(train);
    let words: usize = forms.values().sum();
    let are_few = forms.len() <= FEW && forms.values().all(|count| *count > 1);
    (words >= ENOUGH && are_few && labels.len() > 2 * forms.len()).then(|| {
        let [form, other] = [forms.keys().next(), labels.first().map(|(name, _)| name)]
            .map(|text| say::short(text.unwrap_or(&""), 40));
        format!(
            "{} of {} have {} different labels, such as {other:?}: that looks like words, and the \
             words, such as {form:?}, like labels. If the columns are swapped, --text {label} \
             --label {word}",
            say::many(words, "word"),
            say::many(forms.len(), "kind"),
            say::count(labels.len())
        )
    })
}

/// Checks that the labels are labels, and more than one.
fn check_labels(train: &[Item], findings: &mut Findings) {
    let counts = counts(train);
    let words: usize = counts.iter().map(|(_, count)| count).sum();
    let (label, place) = (say::short(counts[0].0, 40), train[0].place());
    if counts.len() == 1 {
        findings.error("one label", place, format!("every word has the label {label:?}"));
    } else if words >= ENOUGH && 2 * counts.len() > words {
        let message = format!(
            "{} have {} different labels, such as {label:?}: that looks like words; --label chooses \
             the column of the labels",
            say::many(words, "word"),
            say::count(counts.len())
        );
        findings.error("swapped columns", place, message);
    } else {
        let mut listed = counts;
        listed.sort_unstable();
        note_alike(&listed, place.file, findings);
        for item in train {
            if let Some(message) = item.labels().find_map(missing) {
                findings.warn("missing label", item.place(), message);
            }
        }
    }
}

fn long_sentences(all: &[Vec<Item>; 3], findings: &mut Findings) {
    for item in all.iter().flatten().filter(|item| item.sentence.words.len() > LONG) {
        let message = format!(
            "a sentence of {}; is a blank line missing?",
            say::many(item.sentence.words.len(), "word")
        );
        findings.warn("long sentence", item.place(), message);
    }
}

/// Notes labels `I-X` that do not continue an entity of type X.
fn iob(units: &[Unit], file: &Path, findings: &mut Findings) {
    let mut before = OUTSIDE;
    for Unit { form, label, line } in units {
        if let Some(kind) = label.strip_prefix("I-") {
            let continues = before.split_once('-').is_some_and(|(_, other)| other == kind);
            if !continues {
                let message = format!(
                    "{label} after {before}, at {:?}: an entity begins with B-{kind}. Is this the \
                     scheme IOB1? Labels are kept as they are",
                    say::short(form, 30)
                );
                findings.warn("IOB1?", Place::line(file, *line), message);
            }
        }
        before = label;
    }
}

/// Puts words together to a sentence with a text. There is a space between words, or, in a language
/// without spaces, only between words in Latin letters.
fn sentence(units: &[Unit]) -> Sentence {
    let with_letters = units.iter().filter(|unit| unit.form.contains(char::is_alphabetic));
    let joined = |unit: &&Unit| is_unspaced(std::iter::once(unit.form.as_str()));
    let unspaced = 2 * units.iter().filter(joined).count() > with_letters.count();
    let mut text = String::new();
    let mut words: Vec<Word> = vec![];
    for Unit { form, label, .. } in units {
        let is_latin = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        let ends = is_latin(text.chars().last()) && is_latin(form.chars().next());
        if !text.is_empty() && (!unspaced || ends) {
            text.push(' ');
        }
        let place = Some(text.len()..text.len() + form.len());
        text += form;
        let (form, universal) = (form.clone(), label.clone());
        words.push(Word { form, universal, specific: None, head: None, relation: None, place });
    }
    Sentence { text: Some(text), words, ..Sentence::default() }
}

/// Writes sentences as CoNLL-U, with the label as universal part of speech.
fn write_part(path: &Path, items: &[Item]) -> Result<()> {
    checkpoint::write_file_with(path, |file| {
        let mut writer = std::io::BufWriter::new(file);
        for Item { sentence, .. } in items {
            if let Some(id) = &sentence.id {
                writeln!(writer, "# sent_id = {id}")?;
            }
            writeln!(writer, "# text = {}", sentence.text.as_deref().unwrap_or_default())?;
            let mut ranges = sentence.contractions.iter().peekable();
            let mut free = 0;
            for (at, word) in sentence.words.iter().enumerate() {
                if let Some(range) = ranges.next_if(|range| range.words.start == at) {
                    free = range.words.end;
                    let next = sentence.words.get(free).and_then(|word| word.place.as_ref());
                    let misc = spacing(range.place.as_ref().map(|place| place.end), next);
                    let form = &range.form;
                    writeln!(writer, "{}-{free}\t{form}\t_\t_\t_\t_\t_\t_\t_\t{misc}", at + 1)?;
                }
                let next = sentence.words.get(at + 1).and_then(|word| word.place.as_ref());
                let is_free = at >= free;
                let end = word.place.as_ref().map(|place| place.end).filter(|_| is_free);
                let (form, label, misc) = (&word.form, &word.universal, spacing(end, next));
                writeln!(writer, "{}\t{form}\t_\t{label}\t_\t_\t_\t_\t_\t{misc}", at + 1)?;
            }
            writeln!(writer)?;
        }
        writer.flush()
    })
}

/// Last column: whether no space follows.
fn spacing(end: Option<usize>, next: Option<&std::ops::Range<usize>>) -> &'static str {
    match (end, next) {
        (Some(end), Some(next)) if next.start == end => "SpaceAfter=No",
        _ => "_",
    }
}

#[cfg(test)]
mod tests;
