//! Summary of the data, printed before training: files, their sizes, labels.

use crate::say;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

/// Lines printed before training starts.
#[derive(Clone, Debug, Default)]
pub(crate) struct About {
    lines: Vec<String>,
}

/// Joins paths for printing: at most three, and the number of the others.
pub(crate) fn paths<P: AsRef<Path>>(paths: &[P]) -> String {
    let names: Vec<String> = paths.iter().map(|p| p.as_ref().display().to_string()).collect();
    // Paths are printed in full: a shortened one cannot be found.
    match names.len() {
        0..=3 => names.join(" and "),
        more => format!("{} … and {} more", names[..3].join(", "), more - 3),
    }
}

impl About {
    /// Adds a line about a part of the data: its name, source and size.
    pub fn part(&mut self, part: &str, from: impl Display, what: impl Display) {
        self.lines.push(format!("{part:<6} {from}: {what}"));
    }

    /// Adds any line.
    pub fn line(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    /// Adds a line with the names of labels and the number of examples of each.
    pub fn labels(&mut self, what: &str, counts: &[(&str, usize)]) {
        let each = |(name, count): &(&str, usize)| {
            format!("{} ({})", say::short(name, 30), say::count(*count))
        };
        let named: Vec<String> = counts.iter().map(each).collect();
        let named = say::list_in_line(&named);
        self.lines.push(format!("{}: {named}", say::many(counts.len(), what)));
    }

    /// Joins all lines, with the sizes of the model as the last one.
    pub fn with_sizes(mut self, sizes: impl Into<String>) -> String {
        self.lines.push(sizes.into());
        self.lines.join("\n")
    }
}

/// Counts the names, sorted by name.
pub(crate) fn counted<'a>(names: impl Iterator<Item = &'a str>) -> Vec<(&'a str, usize)> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    names.for_each(|name| *counts.entry(name).or_default() += 1);
    counts.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_labels_are_counted_and_not_listed() {
        let names: Vec<String> = (0..25).map(|i| format!("l{i:02}")).collect();
        let counts: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), 2)).collect();
        let mut about = About::default();
        about.labels("label", &counts);
        let text = about.with_sizes("sizes");
        assert!(text.starts_with("25 labels: l00 (2), l01 (2)"), "{text}");
        assert!(text.ends_with("l07 (2) … and 17 more\nsizes"), "{text}");
        assert_eq!(counted(["b", "a", "b"].into_iter()), [("a", 1), ("b", 2)]);
    }
}
