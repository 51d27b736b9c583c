//! Split of files into parts, and checks of their labels.

use super::Item;
use crate::import::findings::{Findings, Place};
use crate::import::parts::{self, HeldOut};
use crate::import::reading::Reading;
use crate::say;
use std::collections::{BTreeMap, HashMap, HashSet};

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

/// Splits held-out parts off the training part where none were given. With `by_label`, each part
/// has all labels.
pub(in crate::import) fn divide<T>(
    [train, mut valid, mut test]: [Vec<Example<T>>; 3],
    by_label: bool,
    held: HeldOut,
    seed: u64,
    findings: &mut Findings,
) -> [Vec<Example<T>>; 3] {
    contradictions([&train, &valid, &test], findings);
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut strata = vec![];
    for example in &train {
        let label = if by_label { example.item.text.clone() } else { String::new() };
        let next = numbers.len();
        strata.push(*numbers.entry(label).or_insert(next));
    }
    let keys: Vec<&str> = train.iter().map(|example| example.key.as_str()).collect();
    let assigned = parts::split(&keys, &strata, seed, held);
    let [mut train, more_valid, more_test] = parts::distribute(train, &assigned);
    valid.extend(more_valid);
    test.extend(more_test);
    for (part, name) in [(&test, "test"), (&valid, "validation")] {
        let there: HashMap<&str, &Item> =
            part.iter().map(|example| (example.key.as_str(), &example.item)).collect();
        train.retain(|Example { item, key, .. }| {
            let Some(twin) = there.get(key.as_str()) else { return true };
            let twin = twin.named();
            let message =
                format!("is the same as {twin} in the {name} part; left out of the training part");
            findings.warn("duplicate across parts", item.place(), item.tell(&message));
            false
        });
    }
    [train, valid, test]
}

/// Notes files with the same contents and different labels or texts.
fn contradictions<T>(all: [&Vec<Example<T>>; 3], findings: &mut Findings) {
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

/// Checks that parts have examples and, with `by_label`, that held-out labels are known. `needed`
/// is how many of the parts a task needs, of training, validation and test.
pub(in crate::import) fn check_parts<T>(
    all: &[Vec<Example<T>>; 3],
    by_label: bool,
    needed: usize,
    findings: &mut Findings,
) {
    let known: Vec<&str> = counted(&all[0]).into_iter().map(|(label, _)| label).collect();
    let mut seen: HashSet<&str> = known.iter().copied().collect();
    for Example { item, .. } in all[1..].iter().flatten().filter(|_| by_label) {
        if seen.insert(&item.text) {
            let message = format!(
                "the label {:?} is not in the training part, whose labels are {}",
                say::short(&item.text, 40),
                say::list(&known, 8)
            );
            findings.error("unknown label", item.place(), item.tell(&message));
        }
    }
    for (part, name) in all.iter().zip(["training", "validation", "test"]).take(needed) {
        if part.is_empty()
            && let Some(any) = all.iter().flatten().next()
        {
            let message = format!("no example is left for the {name} part; need more examples");
            findings.error("too few examples", Place::whole(any.item.place().file), message);
        }
    }
}
