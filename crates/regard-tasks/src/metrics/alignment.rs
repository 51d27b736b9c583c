//! Links between the words of a sentence and those of its translation, in the Pharaoh format, and
//! the alignment error rate (Och and Ney 2003).
//!
//! ```text
//! AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|)
//! ```
//!
//! A are the links of a model, S the sure ones of an annotator, P ⊇ S the possible ones.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::{Error, Result};

/// A link between words: index in the source, index in the target, from 0.
pub type Link = (usize, usize);

/// Links of a sentence pair, printed and parsed in Pharaoh format, `0-0 1-2`, source first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alignment(pub BTreeSet<Link>);

impl FromIterator<Link> for Alignment {
    fn from_iter<I: IntoIterator<Item = Link>>(links: I) -> Alignment {
        Alignment(links.into_iter().collect())
    }
}

impl fmt::Display for Alignment {
    /// Prints links in the order of the source, so that equal alignments give equal lines.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_links(f, self.0.iter().map(|&link| (link, '-')))
    }
}

impl FromStr for Alignment {
    type Err = Error;

    fn from_str(line: &str) -> Result<Alignment> {
        line.split_whitespace().map(|token| parse_link(token, &['-']).map(|l| l.0)).collect()
    }
}

/// The links of an annotator: some sure, others only possible. A possible link is written
/// `1p2` or `1?2`, a sure one `1-2`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GoldAlignment {
    sure: BTreeSet<Link>,
    possible: BTreeSet<Link>,
}

impl GoldAlignment {
    /// Creates a gold alignment; sure links are added to the possible ones.
    pub fn new(sure: &Alignment, possible: &Alignment) -> GoldAlignment {
        let possible = sure.0.union(&possible.0).copied().collect();
        GoldAlignment { sure: sure.0.clone(), possible }
    }

    /// Returns the sure links.
    pub fn sure(&self) -> &BTreeSet<Link> {
        &self.sure
    }

    /// Returns the possible links, including the sure ones.
    pub fn possible(&self) -> &BTreeSet<Link> {
        &self.possible
    }
}

impl fmt::Display for GoldAlignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = |link| if self.sure.contains(link) { '-' } else { 'p' };
        write_links(f, self.possible.iter().map(|link| (*link, sign(link))))
    }
}

impl FromStr for GoldAlignment {
    type Err = Error;

    fn from_str(line: &str) -> Result<GoldAlignment> {
        let mut gold = GoldAlignment::default();
        for token in line.split_whitespace() {
            let (link, sign) = parse_link(token, &['-', 'p', '?'])?;
            gold.possible.insert(link);
            if sign == '-' {
                gold.sure.insert(link);
            }
        }
        Ok(gold)
    }
}

fn write_links(
    f: &mut fmt::Formatter<'_>,
    links: impl Iterator<Item = (Link, char)>,
) -> fmt::Result {
    for (n, ((source, target), sign)) in links.enumerate() {
        let space = if n > 0 { " " } else { "" };
        write!(f, "{space}{source}{sign}{target}")?;
    }
    Ok(())
}

fn parse_link(token: &str, signs: &[char]) -> Result<(Link, char)> {
    // `usize::from_str` takes a plus sign; a link has only digits.
    let number = |text: &str| text.parse().ok().filter(|_| !text.starts_with('+'));
    token
        .find(signs)
        .and_then(|at| {
            let (source, target) = (number(&token[..at])?, number(&token[at + 1..])?);
            Some(((source, target), char::from(token.as_bytes()[at])))
        })
        .ok_or_else(|| {
            Error::invalid(format!(
                "{token:?} is not a link between words: it needs two numbers from 0 with a sign \
                 between them ({signs:?}), source first, such as 0-0"
            ))
        })
}

/// Counts of a corpus for the alignment error rate, summed over sentences before the division.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AlignmentErrors {
    /// Links of the model.
    pub links: u64,
    /// Sure links of the annotator.
    pub sure: u64,
    /// Links of the model that are sure.
    pub links_sure: u64,
    /// Links of the model that are possible.
    pub links_possible: u64,
}

impl AlignmentErrors {
    /// Creates empty counts.
    pub fn new() -> AlignmentErrors {
        AlignmentErrors::default()
    }

    /// Adds a sentence pair.
    pub fn add(&mut self, links: &Alignment, gold: &GoldAlignment) {
        self.links += links.0.len() as u64;
        self.sure += gold.sure.len() as u64;
        self.links_sure += links.0.intersection(&gold.sure).count() as u64;
        self.links_possible += links.0.intersection(&gold.possible).count() as u64;
    }

    /// Adds the counts of another part of the corpus.
    pub fn merge(&mut self, other: &AlignmentErrors) {
        self.links += other.links;
        self.sure += other.sure;
        self.links_sure += other.links_sure;
        self.links_possible += other.links_possible;
    }

    /// Returns the alignment error rate, from 0 to 1; 0 if there are no links at all.
    pub fn error_rate(&self) -> f64 {
        match self.links + self.sure {
            0 => 0.0,
            all => 1.0 - (self.links_sure + self.links_possible) as f64 / all as f64,
        }
    }

    /// Returns the fraction of predicted links that are possible; 1 if there are no links.
    pub fn precision(&self) -> f64 {
        if self.links == 0 { 1.0 } else { self.links_possible as f64 / self.links as f64 }
    }

    /// Returns the fraction of sure links that were predicted; 1 if there are none.
    pub fn recall(&self) -> f64 {
        if self.sure == 0 { 1.0 } else { self.links_sure as f64 / self.sure as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(links: &str, gold: &str) -> AlignmentErrors {
        let mut errors = AlignmentErrors::new();
        errors.add(&links.parse().unwrap(), &gold.parse().unwrap());
        errors
    }

    #[test]
    fn lines_are_read_and_written() {
        let check = |line: &str, printed: &str| {
            let gold: GoldAlignment = line.parse().unwrap();
            assert_eq!(gold.to_string(), printed);
            assert_eq!(printed.parse::<GoldAlignment>().unwrap(), gold);
        };
        check("", "");
        check(" 1-2  0-0\t10-3 ", "0-0 1-2 10-3");
        check("0-0 1?2 2p3 0-0", "0-0 1p2 2p3");
        check("1p1 1-1", "1-1");
        assert_eq!("3-1 0-2".parse::<Alignment>().unwrap().to_string(), "0-2 3-1");
    }

    #[test]
    fn what_is_no_link_is_named() {
        for line in ["0", "0-", "-1", "a-b", "0-0 1:2", "1--2", "1-2-3", "0-+1", "1p2", "0–0"] {
            let error = line.parse::<Alignment>().unwrap_err().to_string();
            let token = line.split(' ').next_back().unwrap();
            assert!(error.contains(token) && error.contains("such as 0-0"), "{error}");
        }
    }

    #[test]
    fn error_rates() {
        let check = |links: &str, gold: &str, expected: f64| {
            let found = rate(links, gold).error_rate();
            assert!((found - expected).abs() < 1e-15, "{links} | {gold}: {found}");
        };
        check("0-0 1-1", "0-0 1-1", 0.0);
        check("", "", 0.0);
        check("", "0-0", 1.0);
        check("1-0", "0-0", 1.0);
        // A possible link is neither missed nor wrong.
        check("0-0", "0-0 1p1", 0.0);
        check("0-0 1-1", "0-0 1p1", 0.0);
        check("0-0 1-1 2-0", "0-0 1p1 2-2", 1.0 - 3.0 / 5.0);
    }

    #[test]
    fn a_corpus_is_the_sum_of_its_sentences() {
        let mut all = rate("0-0 1-1 2-0", "0-0 1p1 2-2");
        assert_eq!((all.precision(), all.recall()), (2.0 / 3.0, 0.5));
        all.merge(&rate("", "0-0"));
        assert_eq!(all.error_rate(), 1.0 - 3.0 / 6.0);
        assert_eq!((rate("", "").precision(), rate("", "").recall()), (1.0, 1.0));
    }

    #[test]
    fn sure_links_are_possible() {
        let gold = GoldAlignment::new(&"0-0".parse().unwrap(), &"1-1".parse().unwrap());
        assert_eq!(gold.to_string(), "0-0 1p1");
        assert!(gold.sure().is_subset(gold.possible()));
    }
}
