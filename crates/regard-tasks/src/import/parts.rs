//! Split of the user's examples into training, validation and test part.
//!
//! Examples with the same key (text, source sentence, …) stay together, so that no held-out example
//! was seen in training. The split depends on the keys and the seed, not on the order of rows.

use crate::data::Part;
use crate::data::split::hash;
use crate::say;
use std::collections::{BTreeMap, HashMap};

/// Fraction of examples for validation and, again, for the test: one in ten.
const SHARE: usize = 10;
/// Largest held-out part: more examples cost time and change a metric by less than its noise.
const MOST: usize = 5000;

/// Parts to split off the training examples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeldOut {
    pub valid: bool,
    pub test: bool,
}

/// Assigns each example to a part. `strata` are the labels, so that each part has all of them;
/// a label with fewer than three keys stays in the training part.
pub(crate) fn split<K: AsRef<str>>(
    keys: &[K],
    strata: &[usize],
    seed: u64,
    held: HeldOut,
) -> Vec<Part> {
    // Keys of each stratum; a key with several labels belongs to the first.
    let mut home: HashMap<&str, usize> = HashMap::new();
    let mut groups: BTreeMap<usize, Vec<(u64, &str)>> = BTreeMap::new();
    for (key, stratum) in keys.iter().zip(strata) {
        let key = key.as_ref();
        home.entry(key).or_insert_with(|| {
            groups.entry(*stratum).or_default().push((hash(&format!("{seed} {key}")), key));
            *stratum
        });
    }
    let parts = usize::from(held.valid) + usize::from(held.test);
    let mut part_of: HashMap<&str, Part> = HashMap::new();
    for group in groups.values_mut() {
        group.sort_unstable();
        let fair = (MOST * group.len()).div_ceil(home.len().max(1));
        let share = (group.len() / SHARE).max(1).min(fair);
        let share = if group.len() > parts { share } else { 0 };
        let mut rest = group.iter().map(|(_, key)| *key);
        for (part, wanted) in [(Part::Test, held.test), (Part::Valid, held.valid)] {
            let count = if wanted { share } else { 0 };
            part_of.extend(rest.by_ref().take(count).map(|key| (key, part)));
        }
    }
    keys.iter().map(|key| part_of.get(key.as_ref()).copied().unwrap_or(Part::Train)).collect()
}

/// Sentence about the sizes of the parts and where they come from.
pub(crate) fn split_line(parts: [usize; 3], held: HeldOut, seed: u64) -> String {
    let [train, valid, test] = parts.map(say::count);
    let split = match (held.valid, held.test) {
        (false, false) => String::new(),
        (true, true) => format!(" (split by seed {seed})"),
        (true, false) => format!(" (valid split from train by seed {seed})"),
        (false, true) => format!(" (test split from train by seed {seed})"),
    };
    format!("{train} train, {valid} valid, {test} test{split}")
}

/// Distributes items to the three parts.
pub(crate) fn distribute<T>(items: Vec<T>, parts: &[Part]) -> [Vec<T>; 3] {
    let mut all = [vec![], vec![], vec![]];
    for (item, part) in items.into_iter().zip(parts) {
        all[*part as usize].push(item);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: HeldOut = HeldOut { valid: true, test: true };

    fn counts(parts: &[Part]) -> [usize; 3] {
        [Part::Train, Part::Valid, Part::Test].map(|p| parts.iter().filter(|q| **q == p).count())
    }

    #[test]
    fn each_label_is_in_each_part_and_equal_texts_are_together() {
        let keys: Vec<String> = (0..300).map(|i| format!("text {}", i / 2)).collect();
        let labels: Vec<usize> = (0..300).map(|i| usize::from(i < 60)).collect();
        let parts = split(&keys, &labels, 0, BOTH);
        assert_eq!(counts(&parts), [240, 30, 30]);
        for label in 0..2 {
            let of: Vec<Part> =
                parts.iter().zip(&labels).filter(|(_, l)| **l == label).map(|(p, _)| *p).collect();
            assert_eq!(counts(&of), [[192, 24, 24], [48, 6, 6]][label]);
        }
        assert!((0..150).all(|i| parts[2 * i] == parts[2 * i + 1]));
    }

    #[test]
    fn the_split_depends_on_the_seed_and_not_on_the_order() {
        let keys: Vec<String> = (0..100).map(|i| format!("text {i}")).collect();
        let labels = vec![0; 100];
        let parts = split(&keys, &labels, 0, BOTH);
        assert_ne!(parts, split(&keys, &labels, 1, BOTH));
        let turned: Vec<String> = keys.iter().rev().cloned().collect();
        let mut back = split(&turned, &labels, 0, BOTH);
        back.reverse();
        assert_eq!(parts, back);
    }

    #[test]
    fn rare_labels_stay_in_training_and_large_sets_hold_out_a_few_thousand() {
        assert_eq!(counts(&split(&["a", "b"], &[0, 1], 0, BOTH)), [2, 0, 0]);
        assert_eq!(counts(&split(&["a", "b", "c"], &[0; 3], 0, BOTH)), [1, 1, 1]);
        let only = HeldOut { valid: true, test: false };
        assert_eq!(counts(&split(&["a", "b"], &[0; 2], 0, only)), [1, 1, 0]);
        let keys: Vec<String> = (0..200_000).map(|i| i.to_string()).collect();
        assert_eq!(counts(&split(&keys, &vec![0; 200_000], 0, BOTH)), [190_000, 5000, 5000]);
        let parts = [Part::Test, Part::Train];
        assert_eq!(distribute(vec!['a', 'b'], &parts), [vec!['b'], vec![], vec!['a']]);
    }
}
