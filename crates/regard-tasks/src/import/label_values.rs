//! Labels that are hardly classes: missing values, one number in two spellings, and scores.

use super::findings::{Findings, Place};
use super::request::Request;
use crate::say;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

/// Missing values as programs write them, which are never a class.
const NEVER: [&str; 4] = ["nan", "NaN", "NAN", "<NA>"];
/// Missing values as programs write them (Python, R, JSON and SQL) that people write for a class
/// too: no severity, Namibia. Not `none`, which is a word.
const PERHAPS: [&str; 5] = ["NA", "N/A", "null", "NULL", "None"];
/// Examples from which such a value is an ordinary class and no stray: a class with fewer is hardly
/// learned, and three parts need one example each.
const CLASS: usize = 5;
/// Examples that are a class if they are more than one in [`SHARE`] of all, as in a small table.
/// One example never is.
const PAIR: usize = 2;
const SHARE: usize = 100;

/// Different numbers above which they may be a scale, whatever the number of examples: half stars
/// from 0 to 10 are 21, of which less than half have a fraction.
const SCALE: usize = 20;
/// Different numbers from which those that are mostly different are a scale: two are a choice.
const FEW: usize = 3;
/// Examples of a class below which it is rare. The numbers of a scale are mostly rare; those of
/// classes, such as versions, repeat.
const RARE: usize = 5;

/// Labels of training data that programs write for missing values, with their numbers of examples.
pub(super) struct MissingLabels {
    counts: BTreeMap<&'static str, usize>,
    /// Number of all labels.
    all: usize,
}

impl MissingLabels {
    /// Counts such labels in all parts of the data. There are none in data to evaluate, where what
    /// is no label of the run is an error in any case, and what is one is known.
    pub fn of<'a>(labels: impl Iterator<Item = &'a str>, request: &Request) -> MissingLabels {
        let mut found = MissingLabels { counts: BTreeMap::new(), all: 0 };
        if request.like().is_some() {
            return found;
        }
        for label in labels {
            found.all += 1;
            if let Some(word) = NEVER.iter().chain(&PERHAPS).find(|word| **word == label) {
                *found.counts.entry(word).or_default() += 1;
            }
        }
        found
    }

    /// Message for a label that stands for a missing value. The caller leaves the example out.
    pub fn stray(&self, label: &str) -> Option<String> {
        let is_stray = self.counts.contains_key(label) && !self.is_class(label);
        is_stray.then(|| missing(label)).flatten()
    }

    /// Notes labels that are read as classes and may be missing values.
    pub fn note_classes(&self, file: &Path, findings: &mut Findings) {
        for (label, count) in self.counts.iter().filter(|(label, _)| self.is_class(label)) {
            let message = format!(
                "the label {label:?} has {} and is read as a class, and programs write it for a \
                 missing value: if it is none, leave these rows out",
                say::many(*count, "example")
            );
            findings.warn("missing label", Place::whole(file), message);
        }
    }

    /// Whether a value has as many examples as an ordinary class.
    fn is_class(&self, label: &str) -> bool {
        let count = self.counts.get(label).copied().unwrap_or(0);
        let are_enough = count >= CLASS || count >= PAIR && SHARE * count > self.all;
        PERHAPS.contains(&label) && are_enough
    }
}

/// Message for a label that a program wrote for a missing value.
pub(super) fn missing(label: &str) -> Option<String> {
    is_missing(label).then(|| {
        format!(
            "the label is {label:?}, which programs write for a missing value; if it is a class, \
             write it in other letters, such as {:?}",
            if label == "None" { "none" } else { "not applicable" }
        )
    })
}

fn is_missing(text: &str) -> bool {
    NEVER.contains(&text) || PERHAPS.contains(&text)
}

/// Notes a text that a program wrote for a missing value. It may be a word all the same.
pub(super) fn note_missing_text(text: &str, place: Place, findings: &mut Findings) {
    if is_missing(text) {
        let message = format!("the text is {text:?}, which programs write for a missing value");
        findings.warn("missing text", place, message);
    }
}

/// Whether labels are classes, as far as their numbers tell. `counts` are the labels with their
/// numbers of examples, and `column` names their column; `place` is that of an example.
pub(super) fn check_numbers(
    counts: &[(&str, usize)],
    column: &str,
    place: Place,
    findings: &mut Findings,
) -> bool {
    if let Some(number) = score(counts) {
        let rare = counts.iter().filter(|(_, count)| *count < RARE).count();
        let begin = format!(
            "{column} has {} different numbers, such as {number:?}: that looks like a score",
            say::count(counts.len())
        );
        let end = "Divide the scores into classes first: pandas.qcut(table[COLUMN], 3, \
                   labels=['low', 'middle', 'high'])";
        if 2 * rare > counts.len() {
            let message = format!("{begin}, and a label must be a class. {end}");
            findings.error("numbers as labels", place, message);
            return false;
        }
        let message = format!("{begin}, and each is read as a class. If they are scores: {end}");
        findings.warn("numbers as labels", place, message);
    }
    let twice = written_twice(counts);
    for (whole, label) in &twice {
        let message = format!(
            "the labels {whole:?} and {label:?} are one number and would be two classes: write it \
             in one way"
        );
        findings.error("one number, two labels", Place::whole(place.file), message);
    }
    let mut seen: HashMap<u64, &str> = HashMap::new();
    for (label, _) in counts.iter().filter(|(label, _)| twice.iter().all(|(_, t)| t != label)) {
        let Some(number) = label.parse::<f64>().ok().filter(|number| number.is_finite()) else {
            continue;
        };
        // Zero has a sign.
        if let Some(other) = seen.insert((number + 0.0).to_bits(), label) {
            let message = format!(
                "the labels {other:?} and {label:?} are one number and are read as two classes"
            );
            findings.warn("one number, two labels", Place::whole(place.file), message);
        }
    }
    twice.is_empty()
}

/// Whole numbers that are labels with and without a zero after the decimal mark, as programs write
/// whole numbers of a column that has missing values. Other spellings may be meant: `1.10` is no
/// version `1.1`, and `01` no code `1`.
fn written_twice<'a>(counts: &[(&'a str, usize)]) -> Vec<(&'a str, &'a str)> {
    let all: HashSet<&str> = counts.iter().map(|(label, _)| *label).collect();
    // Of the labels 0, 1 and `1,0`, the last is both others, unless `0,0` is one too.
    let is_decimal = !all.contains("0") || all.contains("0,0");
    let one = |label: &'a str| {
        let with_comma = label.strip_suffix(",0").filter(|_| is_decimal);
        let whole = label.strip_suffix(".0").or(with_comma)?;
        let is_whole = whole.parse::<i64>().is_ok() && all.contains(whole);
        is_whole.then_some((whole, label))
    };
    counts.iter().filter_map(|(label, _)| one(label)).collect()
}

/// Notes labels that a reader cannot tell apart.
pub(super) fn note_alike(counts: &[(&str, usize)], file: &Path, findings: &mut Findings) {
    let mut seen: HashMap<String, &str> = HashMap::new();
    for (label, _) in counts {
        let Some(other) = seen.insert(letters(label), label) else { continue };
        let [a, b] = [other, label].map(|name| say::short(name, 40));
        let (kind, what) = match other.to_lowercase() == label.to_lowercase() {
            true => ("labels differ only in case", "case"),
            false => ("labels differ only in spaces", {
                "case, spaces, hyphens, underscores or invisible characters"
            }),
        };
        let message =
            format!("the labels {a:?} and {b:?} differ only in {what}; they are two labels");
        findings.warn(kind, Place::whole(file), message);
    }
}

/// Visible part of a label: letters in one case, with no spaces, and no hyphens and
/// underscores between letters, and without characters of no width. Elsewhere a hyphen means
/// something, as in `A-` and `1-8`.
fn letters(label: &str) -> String {
    let is_seen =
        |c: &char| !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{ad}');
    let all: Vec<char> = label.to_lowercase().chars().filter(is_seen).collect();
    let is_letter = |at: Option<usize>| {
        at.and_then(|at| all.get(at)).is_some_and(|letter| letter.is_alphabetic())
    };
    let is_kept = |(at, c): &(usize, &char)| {
        let is_between = is_letter(at.checked_sub(1)) && is_letter(Some(at + 1));
        !(c.is_whitespace() || matches!(c, '-' | '_') && is_between)
    };
    all.iter().enumerate().filter(is_kept).map(|(_, c)| *c).collect()
}

/// A label that is no whole number, if the labels are the numbers of a scale.
fn score<'a>(counts: &[(&'a str, usize)]) -> Option<&'a str> {
    let examples: usize = counts.iter().map(|(_, count)| count).sum();
    let numbers: Option<Vec<f64>> = counts.iter().map(|(label, _)| number(label)).collect();
    let broken = numbers?.into_iter().zip(counts).filter(|(number, _)| number.fract() != 0.0);
    let broken: Vec<&str> = broken.map(|(_, (label, _))| *label).collect();
    let are_many = counts.len() > SCALE || counts.len() >= FEW && 2 * counts.len() > examples;
    broken.first().copied().filter(|_| are_many && 2 * broken.len() >= counts.len())
}

/// A number with a decimal point or, as in many countries, a comma.
fn number(label: &str) -> Option<f64> {
    let number = label.parse().or_else(|_| label.replacen(',', ".", 1).parse::<f64>());
    number.ok().filter(|number| number.is_finite())
}

#[cfg(test)]
mod tests;
