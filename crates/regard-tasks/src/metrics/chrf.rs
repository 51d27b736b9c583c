//! chrF (Popović 2015) and chrF++ (Popović 2017): an F-score of character n-grams, for chrF++ also
//! of word n-grams.
//!
//! ```text
//! chrFβ = (1 + β²) · P · R / (β² · P + R)
//! ```
//!
//! P and R are the means of precision and recall over the orders. Scores and signatures are those
//! of sacrebleu.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;

use super::nrefs::ReferenceCount;
use super::segment::{Case, is_space, words};

/// Whether spaces count as characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ChrfSpaces {
    /// Spaces are removed; `space:no` in a signature.
    #[default]
    Removed,
    /// Spaces count as characters; `space:yes`.
    Kept,
}

/// Treatment of n-gram orders that a text is too short for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ChrfOrder {
    /// The means are over the orders that both sides have; `eff:yes`, sacrebleu's default.
    #[default]
    Effective,
    /// The mean of one F-score per order over all orders, with a very small value for a missing
    /// one, as in the author's chrF++.py; `eff:no`.
    Full,
}

/// Options of chrF. The default is chrF2: character order 6, no words, β = 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chrf {
    /// Maximum character n-gram order.
    pub char_order: usize,
    /// Maximum word n-gram order; 0 is chrF, 2 is chrF++.
    pub word_order: usize,
    /// β: recall counts β times as much as precision.
    pub beta: u32,
    /// Whether case is distinguished.
    pub case: Case,
    /// Whether spaces count as characters.
    pub spaces: ChrfSpaces,
    /// Treatment of orders that a text is too short for.
    pub order: ChrfOrder,
}

impl Default for Chrf {
    fn default() -> Chrf {
        Chrf {
            char_order: 6,
            word_order: 0,
            beta: 2,
            case: Case::Mixed,
            spaces: ChrfSpaces::Removed,
            order: ChrfOrder::Effective,
        }
    }
}

impl Chrf {
    /// Returns the options of chrF2.
    pub fn new() -> Chrf {
        Chrf::default()
    }

    /// Returns the options of chrF2++, with word unigrams and bigrams.
    pub fn plus_plus() -> Chrf {
        Chrf { word_order: 2, ..Chrf::default() }
    }

    /// Creates empty counts, to add sentences to.
    pub fn counts(self) -> ChrfCounts {
        let orders = vec![Matches::default(); self.char_order + self.word_order];
        ChrfCounts { chrf: self, orders, references: ReferenceCount::default() }
    }

    /// Scores one sentence.
    ///
    /// # Panics
    /// If there is no reference.
    pub fn sentence<R: AsRef<str>>(self, hypothesis: &str, references: &[R]) -> ChrfScore {
        let mut counts = self.counts();
        counts.add(hypothesis, references);
        counts.score()
    }

    /// Returns the name: `chrF2`, `chrF2++`.
    pub fn name(self) -> String {
        format!("chrF{}{}", self.beta, "+".repeat(self.word_order))
    }

    fn f_score(self, orders: &[Matches]) -> f64 {
        let factor = f64::from(self.beta) * f64::from(self.beta);
        let f = |p: f64, r: f64| (1.0 + factor) * p * r / (factor * p + r);
        match self.order {
            ChrfOrder::Full => {
                // The value of the author's chrF++.py.
                const EPSILON: f64 = 1e-16;
                let ratio = |m, n| if n > 0 { m as f64 / n as f64 } else { EPSILON };
                let mut sum = 0.0;
                for m in orders {
                    let (p, r) = (ratio(m.both, m.hypothesis), ratio(m.both, m.reference));
                    sum += if factor * p + r > 0.0 { f(p, r) } else { EPSILON };
                }
                100.0 * sum / orders.len() as f64
            }
            ChrfOrder::Effective => {
                let (mut p, mut r, mut count) = (0.0, 0.0, 0.0);
                for m in orders.iter().filter(|m| m.hypothesis > 0 && m.reference > 0) {
                    p += m.both as f64 / m.hypothesis as f64;
                    r += m.both as f64 / m.reference as f64;
                    count += 1.0;
                }
                if p + r > 0.0 { 100.0 * f(p / count, r / count) } else { 0.0 }
            }
        }
    }
}

/// N-gram counts of one order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Matches {
    hypothesis: u64,
    reference: u64,
    both: u64,
}

impl Matches {
    fn of<T: Eq + Hash>(hypothesis: &[T], reference: &[T], n: usize) -> Matches {
        let grams = |text: &[T]| (text.len() + 1).saturating_sub(n) as u64;
        let mut left: HashMap<&[T], u64> = HashMap::new();
        for gram in reference.windows(n) {
            *left.entry(gram).or_default() += 1;
        }
        let mut both = 0;
        for gram in hypothesis.windows(n) {
            if let Some(count @ 1..) = left.get_mut(gram) {
                *count -= 1;
                both += 1;
            }
        }
        // An order that the reference is too short for does not count against the hypothesis.
        let hypothesis = if left.is_empty() { 0 } else { grams(hypothesis) };
        Matches { hypothesis, reference: grams(reference), both }
    }

    fn add(&mut self, other: &Matches) {
        self.hypothesis += other.hypothesis;
        self.reference += other.reference;
        self.both += other.both;
    }
}

/// A sentence as characters and as words.
struct Text {
    chars: Vec<char>,
    words: Vec<String>,
}

impl Text {
    fn new(chrf: Chrf, sentence: &str) -> Text {
        let sentence = chrf.case.apply(sentence);
        let is_char = |c: &char| chrf.spaces == ChrfSpaces::Kept || !is_space(*c);
        let words = words(&sentence).filter(|_| chrf.word_order > 0).flat_map(without_mark);
        Text { chars: sentence.chars().filter(is_char).collect(), words: words.collect() }
    }
}

/// Splits one ASCII punctuation mark off the end of a word, or else off its start, as the author's
/// program does.
fn without_mark(word: &str) -> impl Iterator<Item = String> + use<> {
    let is_mark = |c: char| c.is_ascii_punctuation();
    let (first, last) = (word.chars().next(), word.chars().next_back());
    let (head, tail) = match (first, last) {
        (Some(first), _) if first.len_utf8() == word.len() => (word, ""),
        (_, Some(last)) if is_mark(last) => word.split_at(word.len() - 1),
        (Some(first), _) if is_mark(first) => word.split_at(1),
        _ => (word, ""),
    };
    [head.to_owned(), tail.to_owned()].into_iter().filter(|part| !part.is_empty())
}

/// Sufficient statistics of a corpus; sentences are added one by one and need not be kept.
#[derive(Clone, Debug, PartialEq)]
pub struct ChrfCounts {
    chrf: Chrf,
    orders: Vec<Matches>,
    references: ReferenceCount,
}

impl ChrfCounts {
    /// Adds a sentence; of several references, the one with the best score counts.
    ///
    /// # Panics
    /// If there is no reference: no score is defined then.
    pub fn add<R: AsRef<str>>(&mut self, hypothesis: &str, references: &[R]) {
        self.references.add(references.len());
        let hypothesis = Text::new(self.chrf, hypothesis);
        let mut best: Option<(f64, Vec<Matches>)> = None;
        for reference in references {
            let orders = self.compare(&hypothesis, &Text::new(self.chrf, reference.as_ref()));
            let score = self.chrf.f_score(&orders);
            if best.as_ref().is_none_or(|(most, _)| score > *most) {
                best = Some((score, orders));
            }
        }
        let (_, orders) = best.expect("a reference was checked for");
        self.orders.iter_mut().zip(&orders).for_each(|(sum, order)| sum.add(order));
    }

    fn compare(&self, hypothesis: &Text, reference: &Text) -> Vec<Matches> {
        let chars =
            (1..=self.chrf.char_order).map(|n| Matches::of(&hypothesis.chars, &reference.chars, n));
        let words =
            (1..=self.chrf.word_order).map(|n| Matches::of(&hypothesis.words, &reference.words, n));
        chars.chain(words).collect()
    }

    /// Adds the sentences of another part of the corpus.
    ///
    /// # Panics
    /// If the other part was counted with other options.
    pub fn merge(&mut self, other: &ChrfCounts) {
        assert_eq!(self.chrf, other.chrf, "parts of a corpus were counted by different options");
        self.orders.iter_mut().zip(&other.orders).for_each(|(sum, order)| sum.add(order));
        self.references.merge(other.references);
    }

    /// Computes the score of the sentences added so far.
    pub fn score(&self) -> ChrfScore {
        ChrfScore { chrf: self.chrf, score: self.chrf.f_score(&self.orders) }
    }

    /// Returns sacrebleu's signature, such as
    /// `nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0`. The version is that of the
    /// sacrebleu whose results these were tested to equal.
    pub fn signature(&self) -> String {
        let Chrf { char_order, word_order, case, spaces, order, .. } = self.chrf;
        let yes_or_no = |yes| if yes { "yes" } else { "no" };
        format!(
            "nrefs:{}|case:{}|eff:{}|nc:{char_order}|nw:{word_order}|space:{}|version:{}",
            self.references,
            case.name(),
            yes_or_no(order == ChrfOrder::Effective),
            yes_or_no(spaces == ChrfSpaces::Kept),
            super::SACREBLEU_VERSION
        )
    }
}

/// A chrF score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChrfScore {
    chrf: Chrf,
    /// The score in per cent.
    pub score: f64,
}

impl ChrfScore {
    /// Formats the score with a signature: `chrF2|nrefs:1|… = 55.50`.
    pub fn with_signature(&self, signature: &str) -> String {
        format!("{}|{signature} = {:.2}", self.chrf.name(), self.score)
    }
}

impl fmt::Display for ChrfScore {
    /// Formats as sacrebleu: `chrF2 = 55.50`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {:.2}", self.chrf.name(), self.score)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: [&str; 3] = ["Ils regardent.", "Ça va\u{202f}?", "(hi) there, you"];

    #[test]
    fn a_corpus_is_like_itself_in_any_order_and_parts() {
        for chrf in [Chrf::new(), Chrf::plus_plus(), Chrf { beta: 1, ..Chrf::new() }] {
            let (mut whole, mut back, mut parts) = (chrf.counts(), chrf.counts(), chrf.counts());
            for line in LINES {
                whole.add(line, &[line]);
                let mut one = chrf.counts();
                one.add(line, &[line]);
                parts.merge(&one);
            }
            LINES.iter().rev().for_each(|line| back.add(line, &[line]));
            assert!((whole.score().score - 100.0).abs() < 1e-9, "{}", whole.score());
            assert_eq!(whole, back);
            assert_eq!(whole, parts);
        }
    }

    #[test]
    fn marks_come_off_words() {
        let check = |word: &str, parts: &[&str]| {
            assert_eq!(without_mark(word).collect::<Vec<_>>(), parts);
        };
        check("a", &["a"]);
        check(".", &["."]);
        check("end.", &["end", "."]);
        check("(hi)", &["(hi", ")"]);
        check("\"hi", &["\"", "hi"]);
        check("...", &["..", "."]);
        check("va\u{bb}", &["va\u{bb}"]);
        check("é!", &["é", "!"]);
    }

    #[test]
    fn nothing_scores_zero() {
        for (hypothesis, reference) in [("", "a b"), ("", ""), ("x", "a b"), ("a", "")] {
            assert_eq!(Chrf::plus_plus().sentence(hypothesis, &[reference]).score, 0.0);
        }
    }
}
