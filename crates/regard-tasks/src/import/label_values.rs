//! Labels that are hardly classes: missing values, one number in two spellings, and scores.

use super::findings::{Findings, Place};
use crate::say;
use std::collections::HashMap;
use std::path::Path;

/// What programs write for a missing value: Python, R, JSON and SQL. Not `none`, which people write
/// for a class.
const MISSING: [&str; 9] = ["nan", "NaN", "NAN", "<NA>", "NA", "N/A", "null", "NULL", "None"];
/// Different numbers above which they are a scale, however many examples each has.
const SCALE: usize = 20;
/// Different numbers from which those that are mostly different are a scale.
const FEW: usize = 3;

/// Message for a label that a program wrote for a missing value.
pub(super) fn missing(label: &str) -> Option<String> {
    MISSING.contains(&label).then(|| {
        format!(
            "the label is {label:?}, which programs write for a missing value; if it is a class, \
             write it in other letters, such as {:?}",
            if label == "None" { "none" } else { "not applicable" }
        )
    })
}

/// Notes a text that a program wrote for a missing value. It may be a word all the same.
pub(super) fn note_missing_text(text: &str, place: Place, findings: &mut Findings) {
    if MISSING.contains(&text) {
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
        let message = format!(
            "{column} has {} different numbers, such as {number:?}: that looks like a \
             score, and a label must be a class. Divide the scores into classes first: \
             pandas.qcut(table[COLUMN], 3, labels=['low', 'middle', 'high'])",
            say::count(counts.len())
        );
        findings.error("numbers as labels", place, message);
        return false;
    }
    let mut seen: HashMap<u64, &str> = HashMap::new();
    let mut is_good = true;
    for (label, _) in counts {
        let Some(number) = label.parse::<f64>().ok().filter(|number| number.is_finite()) else {
            continue;
        };
        // Zero has a sign.
        if let Some(other) = seen.insert((number + 0.0).to_bits(), label) {
            let message = format!(
                "the labels {other:?} and {label:?} are one number and would be two classes: write \
                 it in one way"
            );
            findings.error("one number, two labels", Place::whole(place.file), message);
            is_good = false;
        }
    }
    is_good
}

/// Notes labels that a reader cannot tell apart.
pub(super) fn note_alike(counts: &[(&str, usize)], file: &Path, findings: &mut Findings) {
    let mut seen: HashMap<String, &str> = HashMap::new();
    for (label, _) in counts {
        let Some(other) = seen.insert(letters(label), label) else { continue };
        let [a, b] = [other, label].map(|name| say::short(name, 40));
        let (kind, what) = match other.to_lowercase() == label.to_lowercase() {
            true => ("labels differ only in case", "case"),
            false => ("labels differ only in spaces", "case, spaces or invisible characters"),
        };
        let message =
            format!("the labels {a:?} and {b:?} differ only in {what}; they are two labels");
        findings.warn(kind, Place::whole(file), message);
    }
}

/// What a reader sees of a label: letters in one case, with no spaces, hyphens and underscores
/// between them, and without characters of no width.
fn letters(label: &str) -> String {
    let is_seen = |c: &char| {
        let is_between = c.is_whitespace() || matches!(c, '-' | '_');
        !is_between && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{ad}')
    };
    // A sign, and a label of hyphens alone, mean something.
    let begin = label.chars().next().filter(|first| *first == '-');
    begin.into_iter().chain(label.to_lowercase().chars().filter(is_seen)).collect()
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
mod tests {
    use super::*;

    fn said(labels: &[(&str, usize)]) -> String {
        let mut findings = Findings::new(false);
        let is_good =
            check_numbers(labels, "column 'y'", Place::whole(Path::new("a")), &mut findings);
        assert_eq!(is_good, !findings.has_errors());
        findings.text()
    }

    #[test]
    fn numbers_are_classes_if_they_are_few_and_written_in_one_way() {
        let stars = ["1", "2", "3", "4", "5", "1.5", "2.5", "3.5", "4.5"].map(|star| (star, 9));
        let ids: Vec<String> = (0..100).map(|id| id.to_string()).collect();
        let ids: Vec<(&str, usize)> = ids.iter().map(|id| (id.as_str(), 1)).collect();
        for labels in [&stars[..], &ids, &[("0.5", 2), ("1.5", 1)], &[("1.0", 3), ("a", 1)]] {
            assert_eq!(said(labels), "", "{labels:?}");
        }
        for (one, other) in [("1", "1.0"), ("0", "-0"), ("7", "07"), ("0.5", ".5")] {
            let told = said(&[(one, 9), ("3", 9), (other, 9)]);
            let wanted = format!("the labels {one:?} and {other:?} are one number");
            assert!(told.contains(&wanted), "{told}");
        }
        assert_eq!(said(&[("nan", 1), ("NaN", 1)]), "");
    }

    #[test]
    fn a_scale_is_not_one_of_classes() {
        let scores: Vec<String> = (0..100).map(|score| format!("0.{score:02}")).collect();
        for count in [1, 100] {
            let scores: Vec<(&str, usize)> =
                scores.iter().map(|score| (score.as_str(), count)).collect();
            let told = said(&scores);
            assert!(told.contains("has 100 different numbers, such as \"0.01\""), "{told}");
        }
        assert!(said(&[("0,25", 1), ("1", 1), ("7,5", 1)]).contains("looks like a score"));
    }

    #[test]
    fn missing_values_are_named() {
        assert!(missing("nan").is_some_and(|message| message.contains("missing value")));
        assert!(missing("None").is_some_and(|message| message.ends_with("such as \"none\"")));
        assert_eq!((missing("none"), missing("nano"), missing("")), (None, None, None));
    }
}
