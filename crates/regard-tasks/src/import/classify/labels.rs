//! Labels of texts: checks, counts, and sentences about them.

use super::Example;
use crate::data::choose::Columns;
use crate::import::findings::{Findings, Place, numbered};
use crate::import::label_values::{check_numbers, note_alike};
use crate::say;
use std::collections::{BTreeMap, HashMap};

/// A label that has this many times the examples of another is an imbalance worth a warning.
const IMBALANCE: usize = 20;
/// Most labels: an evaluation holds a table of all pairs, 200 MB for this many.
const MOST_LABELS: usize = 5000;
/// Number of rows above which a label column of mostly different values must be text.
const ENOUGH: usize = 20;

/// Notes equal texts with different labels.
pub(super) fn contradictions(parts: [&Vec<Example>; 3], findings: &mut Findings) {
    let mut seen: HashMap<&str, &Example> = HashMap::new();
    for example in parts.into_iter().flatten() {
        let first = *seen.entry(example.text.trim()).or_insert(example);
        if first.label != example.label {
            let message = format!(
                "{:?}, but the same text has {:?} in {} of {}",
                say::short(&example.label, 40),
                say::short(&first.label, 40),
                numbered(&first.file, first.line),
                first.file.display()
            );
            let place = Place::line(&example.file, example.line);
            findings.warn("same text, different labels", place, message);
        }
    }
}

/// Checks that the label column holds labels, and more than one.
pub(super) fn check_labels(columns: &Columns, train: &[Example], findings: &mut Findings) {
    let counts = label_counts(train);
    let (file, name) = (train[0].file.as_path(), columns.label_name());
    let different = counts.len();
    let listed: Vec<(&str, usize)> = counts.iter().map(|(name, count)| (*name, *count)).collect();
    if !check_numbers(
        &listed,
        &format!("column {name}"),
        Place::line(file, train[0].line),
        findings,
    ) {
        return;
    }
    if train.len() >= ENOUGH && 2 * different > train.len() {
        let message = format!(
            "column {name} has {} different values in {} rows, such as {:?}: that looks like text, \
             not labels; --text and --label name the columns",
            say::count(different),
            say::count(train.len()),
            say::short(&train[0].label, 40)
        );
        findings.error("swapped columns", Place::line(file, train[0].line), message);
        return;
    }
    if different > MOST_LABELS {
        let message = format!(
            "column {name} has {} different labels, need at most {}: an evaluation counts each \
             pair of them",
            say::count(different),
            say::count(MOST_LABELS)
        );
        findings.error("too many labels", Place::line(file, train[0].line), message);
        return;
    }
    if different == 1 {
        let message = format!("every row has the label {:?}", say::short(&train[0].label, 40));
        findings.error("one label", Place::line(file, train[0].line), message);
    }
    for (label, count) in &counts {
        if *count == 1 && different > 1 {
            let one = train.iter().find(|example| example.label == *label).unwrap_or(&train[0]);
            let message = format!("the label {:?} has one example", say::short(label, 40));
            findings.warn("label with one example", Place::line(&one.file, one.line), message);
        }
    }
    note_alike(&listed, file, findings);
    for (label, mark, inner) in combined(&counts) {
        let one = train.iter().find(|example| example.label == label).unwrap_or(&train[0]);
        let message = format!(
            "the label {:?} has the label {:?} and a {mark:?} in it; it is a label of its own. Is it \
             a row with another separator, or several labels?",
            say::short(label, 40),
            say::short(inner, 40)
        );
        findings.warn("label within a label", Place::line(&one.file, one.line), message);
    }
    let most = counts.iter().max_by_key(|(_, count)| **count);
    let least = counts.iter().filter(|(_, count)| **count > 1).min_by_key(|(_, count)| **count);
    if let (Some((much, many)), Some((little, few))) = (most, least)
        && *many >= IMBALANCE * few
    {
        let message = format!(
            "{:?} has {} examples and {:?} {}: read macro-F1 and the F1 of each label, not accuracy",
            say::short(much, 40),
            say::count(*many),
            say::short(little, 40),
            say::count(*few)
        );
        findings.warn("imbalance", Place::whole(file), message);
    }
}

/// Labels that are another label and something more, with the mark between them: rows of a file with
/// another separator, or several labels in one.
fn combined<'a>(counts: &BTreeMap<&'a str, usize>) -> Vec<(&'a str, char, &'a str)> {
    let inner = |label: &&'a str, mark: char| {
        let mut pieces = label.split(mark).map(str::trim).filter(|_| label.contains(mark));
        pieces.find(|piece| counts.contains_key(piece))
    };
    let found = |label: &&'a str| {
        let marks = [';', ',', '|', '\t'].into_iter();
        marks.filter_map(|mark| inner(label, mark).map(|piece| (*label, mark, piece))).next()
    };
    counts.keys().filter_map(found).collect()
}

pub(super) fn label_counts(examples: &[Example]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    examples.iter().for_each(|example| *counts.entry(example.label.as_str()).or_default() += 1);
    counts
}

/// Sentence about the columns and the labels.
pub(super) fn told(columns: &Columns, labels: &[(&str, usize)]) -> String {
    let count = say::many(labels.len(), "label");
    format!("{}; {count} in the training part: {}", columns.told(), counted(labels))
}

/// Phrase about the labels of examples to evaluate on.
pub(super) fn named(labels: &[(&str, usize)]) -> String {
    format!("{}: {}", say::many(labels.len(), "label"), counted(labels))
}

fn counted(labels: &[(&str, usize)]) -> String {
    // Of many, the most frequent are named.
    const FEW: usize = 12;
    let mut labels = labels.to_vec();
    if labels.len() > FEW {
        labels.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    }
    let one =
        |(name, count): &(&str, usize)| format!("{} {}", say::short(name, 30), say::count(*count));
    say::list_in_line(&labels.iter().map(one).collect::<Vec<_>>())
}
