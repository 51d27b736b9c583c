//! Files with their labels or texts, and checks of the labels.

use super::Item;
use crate::import::examples;
use crate::import::findings::{Findings, Place};
use crate::import::label_values::check_numbers;
use crate::import::reading::Reading;
use crate::say;
use std::collections::{BTreeMap, HashMap};

/// A label that has this many times the examples of another is an imbalance worth a warning.
const IMBALANCE: usize = 20;

/// A file that was read.
pub(in crate::import) struct Example<T> {
    /// The file with its label or text.
    pub item: Item,
    /// Hash of its contents: files with the same one stay in one part.
    pub key: String,
    /// Contents that are kept.
    pub content: T,
}

impl<T> examples::Example for Example<T> {
    const KEY: &'static str = "contents";

    fn key(&self) -> String {
        self.key.clone()
    }

    fn label(&self) -> &str {
        &self.item.text
    }

    fn place(&self) -> Place<'_> {
        self.item.place()
    }

    fn tell(&self, message: String) -> String {
        self.item.tell(&message)
    }

    fn equals(&self, twin: &Self) -> String {
        format!("is the same as {}", twin.item.named())
    }
}

/// Notes files with the same contents and different labels or texts.
pub(in crate::import) fn contradictions<T>(all: [&Vec<Example<T>>; 3], findings: &mut Findings) {
    let mut seen: HashMap<&str, &Item> = HashMap::new();
    for Example { item, key, .. } in all.into_iter().flatten() {
        let first = *seen.entry(key).or_insert(item);
        if first.text != item.text {
            let message = format!(
                "{:?}, but the same contents have {:?} in {}",
                say::short(&item.text, 40),
                say::short(&first.text, 40),
                first.named()
            );
            findings.warn("same contents, different labels", item.place(), item.tell(&message));
        }
    }
}

/// Returns the number of examples of each label; labels that are integers are sorted as numbers.
pub(in crate::import) fn counted<T>(examples: &[Example<T>]) -> Vec<(&str, usize)> {
    let mut counts: BTreeMap<(u64, &str), usize> = BTreeMap::new();
    for example in examples {
        let text = example.item.text.as_str();
        *counts.entry((text.parse().unwrap_or(u64::MAX), text)).or_default() += 1;
    }
    counts.into_iter().map(|((_, text), count)| (text, count)).collect()
}

/// Checks that there is more than one label, and notes rare ones.
pub(in crate::import) fn check_labels<T>(train: &[Example<T>], findings: &mut Findings) {
    let counts = counted(train);
    let Some(first) = train.first() else { return };
    if let [(label, _)] = counts[..] {
        let message = format!("every file has the label {:?}", say::short(label, 40));
        findings.error("one label", first.item.place(), first.item.tell(&message));
    }
    let source = match first.item.listed {
        Some(_) => "the column of the labels",
        None => "the folder, which has a sub-folder for each label,",
    };
    if !check_numbers(&counts, source, first.item.place(), findings) {
        return;
    }
    for (label, _) in counts.iter().filter(|(_, count)| *count == 1 && counts.len() > 1) {
        let one = train.iter().find(|example| example.item.text == *label).unwrap_or(first);
        let message = format!("the label {:?} has one example", say::short(label, 40));
        findings.warn("label with one example", one.item.place(), one.item.tell(&message));
    }
    let most = counts.iter().max_by_key(|(_, count)| *count);
    let least = counts.iter().filter(|(_, count)| *count > 1).min_by_key(|(_, count)| *count);
    if let (Some((much, many)), Some((little, few))) = (most, least)
        && *many >= IMBALANCE * few
    {
        let message = format!(
            "{:?} has {} examples and {:?} {}: read the numbers of each label, not only accuracy",
            say::short(much, 40),
            say::count(*many),
            say::short(little, 40),
            say::count(*few)
        );
        findings.warn("imbalance", Place::whole(first.item.place().file), message);
    }
}

/// Keeps the examples whose labels a run has learned; the others are noted.
pub(in crate::import) fn known_only<T>(
    mut all: Vec<Example<T>>,
    like: &Reading,
    findings: &mut Findings,
) -> Vec<Example<T>> {
    all.retain(|Example { item, .. }| {
        let message = like.unknown(&item.text);
        message.is_none_or(|message| {
            findings.row("unknown label", item.place(), item.tell(&message));
            false
        })
    });
    all
}
