//! Examples that know their place: their split, duplicates across parts, their lengths.

use super::findings::{Findings, Place, numbered};
use super::parts::{self, HeldOut};
use crate::say;
use std::collections::{BTreeSet, HashMap, HashSet};

/// An example of a table or a file.
pub(super) trait Example {
    /// Name of the text that must not be in two parts, such as `sentence`.
    const KEY: &'static str;

    /// Returns the text that must not be in two parts, in a form in which equal texts are equal.
    fn key(&self) -> String;

    /// Returns the key of the examples that a split keeps together.
    fn group(&self) -> String {
        self.key()
    }

    /// Returns the label, if examples have one: a split by label has all labels in each part.
    fn label(&self) -> &str {
        ""
    }

    /// Returns the place of the example.
    fn place(&self) -> Place<'_>;

    /// Completes a message by what the place does not say.
    fn tell(&self, message: String) -> String {
        message
    }

    /// Says that this example is equal to another.
    fn equals(&self, twin: &Self) -> String {
        let Place { file, line } = twin.place();
        let line = line.map_or("in".into(), |line| format!("on {} of", numbered(file, line)));
        format!("its {} is also {line} {}", Self::KEY, file.display())
    }
}

/// Key by which texts are equal: letters and digits in lower case.
pub(super) fn text_key(text: &str) -> String {
    let letters = text.chars().filter(|c| c.is_alphanumeric());
    let key: String = letters.flat_map(char::to_lowercase).collect();
    if key.is_empty() { text.to_string() } else { key }
}

/// Text on one line: line breaks, tabs and other control characters become spaces.
pub(super) fn one_line(text: &str) -> String {
    let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}');
    let pieces = text.split(breaks).map(str::trim).filter(|piece| !piece.is_empty());
    pieces.collect::<Vec<_>>().join(" ")
}

/// Splits held-out parts off the training part where none were given, and leaves examples that are
/// held out too out of the training part. With `by_label`, each part has all labels.
///
/// Examples of given parts leave the training part before it is split: else the validation part,
/// which selects the checkpoint, could have examples of the test part.
pub(super) fn divide<E: Example>(
    [mut train, mut valid, mut test]: [Vec<E>; 3],
    by_label: bool,
    held: HeldOut,
    seed: u64,
    findings: &mut Findings,
) -> [Vec<E>; 3] {
    let both = [(&test, "test"), (&valid, "validation")];
    both.into_iter().for_each(|(part, name)| leave_out(&mut train, part, name, findings));
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut strata = vec![];
    for example in &train {
        let (label, next) = (if by_label { example.label() } else { "" }, numbers.len());
        strata.push(*numbers.entry(label).or_insert(next));
    }
    let keys: Vec<String> = train.iter().map(Example::group).collect();
    let assigned = parts::split(&keys, &strata, seed, held);
    let [mut train, more_valid, more_test] = parts::distribute(train, &assigned);
    valid.extend(more_valid);
    test.extend(more_test);
    // A group may hold several keys, and a key may be in several groups.
    let both = [(&test, "test"), (&valid, "validation")];
    both.into_iter().for_each(|(part, name)| leave_out(&mut train, part, name, findings));
    shared(&mut valid, &test, held.valid, findings);
    [train, valid, test]
}

/// Leaves examples out of the validation part that are in the test part, or notes them if the
/// validation part was given.
fn shared<E: Example>(valid: &mut Vec<E>, test: &[E], split: bool, findings: &mut Findings) {
    let there: HashMap<String, &E> = test.iter().map(|example| (example.key(), example)).collect();
    valid.retain(|example| {
        let Some(twin) = there.get(&example.key()) else { return true };
        let end = match split {
            true => "left out of the validation part",
            false => "the checkpoint is selected on it, so test metrics are too good",
        };
        let message = format!("{} in the test part; {end}", example.equals(twin));
        findings.warn("duplicate across parts", example.place(), example.tell(message));
        !split
    });
}

/// Leaves examples out of the training part that are in a held-out part.
fn leave_out<E: Example>(train: &mut Vec<E>, part: &[E], name: &str, findings: &mut Findings) {
    let there: HashMap<String, &E> = part.iter().map(|example| (example.key(), example)).collect();
    train.retain(|example| {
        let Some(twin) = there.get(&example.key()) else { return true };
        let message =
            format!("{} in the {name} part; left out of the training part", example.equals(twin));
        findings.warn("duplicate across parts", example.place(), example.tell(message));
        false
    });
}

/// Checks that the labels of held-out examples are in the training part.
pub(super) fn check_known<E: Example>(all: &[Vec<E>; 3], findings: &mut Findings) {
    let known: BTreeSet<&str> = all[0].iter().map(Example::label).collect();
    let names: Vec<&str> = known.iter().copied().collect();
    let mut seen: HashSet<&str> = HashSet::new();
    for example in all[1..].iter().flatten() {
        let label = example.label();
        if !known.contains(label) && seen.insert(label) {
            let message = format!(
                "the label {:?} is not in the training part, whose labels are {}",
                say::short(label, 40),
                say::list(&names, 8)
            );
            findings.error("unknown label", example.place(), example.tell(message));
        }
    }
}

/// Checks that the parts have examples. `needed` is how many of the parts a task needs, of training,
/// validation and test; a given part must have examples in any case.
pub(super) fn check_parts<E: Example>(
    all: &[Vec<E>; 3],
    needed: usize,
    held: HeldOut,
    findings: &mut Findings,
) {
    let given = [false, !held.valid, !held.test];
    for (at, name) in ["training", "validation", "test"].into_iter().enumerate() {
        let Some(any) = all.iter().flatten().next().filter(|_| all[at].is_empty()) else {
            continue;
        };
        let message = match given[at] {
            true => format!("no example is left of the {name} part that was given"),
            false if at < needed => format!(
                "no example is left for the {name} part; need at least three examples that differ \
                 in their {}",
                E::KEY
            ),
            false => continue,
        };
        findings.error("too few examples", Place::whole(any.place().file), message);
    }
}

/// Keys of `[data]` and names of the files of the parts that have examples.
pub(super) fn part_files(
    names: [&'static str; 3],
    sizes: [usize; 3],
) -> Vec<(&'static str, &'static str)> {
    let keyed = ["train", "valid", "test"].into_iter().zip(names).zip(sizes);
    keyed.filter(|(_, size)| *size > 0).map(|(row, _)| row).collect()
}

/// Sentence about rows that were left out, if there are any.
pub(super) fn skipped(findings: &Findings) -> Option<String> {
    let many = || say::many(findings.skipped(), "row");
    (findings.skipped() > 0).then(|| format!("{} left out (--skip-bad)", many()))
}

/// Smallest length that is at least as long as `percent` of all.
pub(super) fn percentile(lengths: &[usize], percent: usize) -> usize {
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable();
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or(0)
}

/// Mean of lengths.
pub(super) fn mean(lengths: &[usize]) -> f64 {
    lengths.iter().sum::<usize>() as f64 / lengths.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    struct Text(&'static str, u64);

    impl Example for Text {
        const KEY: &'static str = "text";

        fn key(&self) -> String {
            text_key(self.0)
        }

        fn place(&self) -> Place<'_> {
            Place::line(Path::new("a.tsv"), self.1)
        }
    }

    #[test]
    fn held_out_texts_leave_the_training_part() {
        let mut findings = Findings::new(false);
        let held = HeldOut { valid: true, test: false };
        let train = ["One.", "two", "three", "four"].into_iter().zip(1..);
        let train = train.map(|(text, line)| Text(text, line)).collect();
        let all = divide([train, vec![], vec![Text("one", 7)]], false, held, 0, &mut findings);
        assert_eq!(all.each_ref().map(Vec::len).iter().sum::<usize>(), 4);
        assert!(all[0].iter().all(|text| text.0 != "One."));
        assert_eq!((all[1].len(), all[2].len()), (1, 1));
        check_parts(&all, 2, held, &mut findings);
        assert!(!findings.has_errors());
        check_parts(&[vec![Text("a", 1)], vec![], vec![]], 2, held, &mut findings);
        assert!(findings.text().contains("no example is left for the validation part"));
    }

    fn texts(all: &[&'static str]) -> Vec<Text> {
        all.iter().zip(1..).map(|(text, line)| Text(text, line)).collect()
    }

    /// All examples are in the given test part too, so none may be drawn for validation.
    #[test]
    fn no_validation_example_is_in_the_test_part() {
        const ALL: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
        let held = HeldOut { valid: true, test: false };
        for seed in 0..20 {
            let mut findings = Findings::new(false);
            let parts = [texts(&ALL), vec![], texts(&ALL[..5])];
            let [train, valid, test] = divide(parts, false, held, seed, &mut findings);
            assert_eq!((train.len(), valid.len(), test.len()), (2, 1, 5));
            assert!(valid.iter().all(|one| !ALL[..5].contains(&one.0)), "{}", valid[0].0);
        }
        let (mut findings, held) = (Findings::new(false), HeldOut { valid: false, test: false });
        let all = divide(
            [texts(&["a", "b"]), texts(&["c", "d"]), texts(&["d"])],
            false,
            held,
            0,
            &mut findings,
        );
        assert_eq!(all.each_ref().map(Vec::len), [2, 2, 1]);
        let told = findings.text();
        assert!(told.contains("line 2: its text is also on line 1 of a.tsv in the test"), "{told}");
    }

    #[test]
    fn a_given_part_without_examples_is_an_error() {
        let mut findings = Findings::new(true);
        let held = HeldOut { valid: true, test: true };
        check_parts(&[texts(&["a"]), texts(&["b"]), vec![]], 2, held, &mut findings);
        assert!(!findings.has_errors());
        let held = HeldOut { valid: true, test: false };
        check_parts(&[texts(&["a"]), texts(&["b"]), vec![]], 2, held, &mut findings);
        let told = findings.text();
        assert!(told.contains("no example is left of the test part that was given"), "{told}");
    }

    #[test]
    fn texts_and_lengths() {
        assert_eq!(one_line("\u{feff}a \r\n\n b\tc\u{2028}d\u{202f}!"), "a b c d\u{202f}!");
        assert_eq!((text_key("Go, On!"), text_key("…")), ("goon".into(), "…".into()));
        let lengths: Vec<usize> = (1..=100).rev().collect();
        assert_eq!((percentile(&lengths, 95), percentile(&lengths, 100)), (95, 100));
        assert_eq!((percentile(&[], 95), percentile(&[7], 1)), (0, 7));
        assert_eq!(part_files(["a", "b", "c"], [1, 2, 0]), [("train", "a"), ("valid", "b")]);
    }
}
