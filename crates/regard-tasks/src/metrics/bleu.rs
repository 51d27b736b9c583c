//! BLEU (Papineni et al. 2002): the geometric mean of the n-gram precisions, n = 1 to 4, times a
//! penalty for brevity.
//!
//! ```text
//! BLEU = BP · exp( ¼ Σ_n log p_n ),   BP = exp(1 − r/c) where c < r, otherwise 1
//! ```
//!
//! c is the length of the hypotheses and r that of the references closest in length. Scores, lines
//! and signatures are those of sacrebleu (Post 2018); `fixtures/make/metrics.py` made the goldens.

use std::collections::HashMap;
use std::fmt;

use super::nrefs::ReferenceCount;
use super::segment::{BleuTokenizer, Case, is_space, words};

/// Maximum n-gram order.
const ORDER: usize = 4;

/// Smoothing of n-gram orders without a match, which would make the whole score zero (Chen and
/// Cherry 2014).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Smoothing {
    /// Counts half a match for the first such order, a quarter for the next, and so on.
    #[default]
    Exp,
    /// Replaces zero matches by this number; sacrebleu's default is 0.1.
    Floor(f64),
    /// Adds this number to matches and n-grams from order 2 on; sacrebleu's default is 1.
    AddK(f64),
    /// No smoothing: the score is zero.
    None,
}

impl Smoothing {
    /// `floor` with sacrebleu's default value.
    pub const FLOOR: Smoothing = Smoothing::Floor(0.1);
    /// `add-k` with sacrebleu's default value.
    pub const ADD_K: Smoothing = Smoothing::AddK(1.0);
}

impl fmt::Display for Smoothing {
    /// Formats as in a signature: `exp`, `floor[0.10]`, `add-k[1.00]`, `none`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Smoothing::Exp => f.write_str("exp"),
            Smoothing::Floor(value) => write!(f, "floor[{value:.2}]"),
            Smoothing::AddK(value) => write!(f, "add-k[{value:.2}]"),
            Smoothing::None => f.write_str("none"),
        }
    }
}

/// N-gram orders over which the mean is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BleuOrder {
    /// All four, for a corpus; `eff:no` in a signature.
    #[default]
    Full,
    /// Those that the hypothesis is long enough for, for single sentences; `eff:yes`.
    Effective,
}

/// Options of BLEU. The default is that of papers: `case:mixed|eff:no|tok:13a|smooth:exp`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bleu {
    /// Tokeniser of hypotheses and references.
    pub tokenizer: BleuTokenizer,
    /// Whether case is distinguished.
    pub case: Case,
    /// Smoothing of orders without a match.
    pub smoothing: Smoothing,
    /// Orders averaged for sentences shorter than four tokens.
    pub order: BleuOrder,
}

impl Bleu {
    /// Returns the options that papers use for a corpus.
    pub fn new() -> Bleu {
        Bleu::default()
    }

    /// Returns options for single sentences, which may be shorter than four words.
    pub fn for_sentences() -> Bleu {
        Bleu { order: BleuOrder::Effective, ..Bleu::default() }
    }

    /// Returns options for text that is already tokenised, as is customary for Multi30k.
    pub fn tokenized() -> Bleu {
        Bleu { tokenizer: BleuTokenizer::None, ..Bleu::default() }
    }

    /// Creates empty counts, to add sentences to.
    pub fn counts(self) -> BleuCounts {
        BleuCounts {
            bleu: self,
            hypothesis_length: 0,
            reference_length: 0,
            correct: [0; ORDER],
            total: [0; ORDER],
            references: ReferenceCount::default(),
        }
    }

    /// Scores one sentence; see [`Bleu::for_sentences`].
    ///
    /// # Panics
    /// If there is no reference.
    pub fn sentence<R: AsRef<str>>(self, hypothesis: &str, references: &[R]) -> BleuScore {
        let mut counts = self.counts();
        counts.add(hypothesis, references);
        counts.score()
    }

    /// Tokenises a sentence according to the options.
    fn tokenize(self, sentence: &str) -> String {
        let sentence = self.case.apply(sentence);
        self.tokenizer.tokenize(sentence.trim_end_matches(is_space)).into_owned()
    }
}

/// Sufficient statistics of a corpus. Sentences are added one by one, in any order, and need not be
/// kept.
#[derive(Clone, Debug, PartialEq)]
pub struct BleuCounts {
    bleu: Bleu,
    hypothesis_length: u64,
    reference_length: u64,
    correct: [u64; ORDER],
    total: [u64; ORDER],
    references: ReferenceCount,
}

impl BleuCounts {
    /// Adds a sentence. The number of references may vary from sentence to sentence.
    ///
    /// # Panics
    /// If there is no reference: no score is defined then.
    pub fn add<R: AsRef<str>>(&mut self, hypothesis: &str, references: &[R]) {
        self.references.add(references.len());
        let hypothesis = self.bleu.tokenize(hypothesis);
        let hypothesis: Vec<&str> = words(&hypothesis).collect();
        let references: Vec<String> =
            references.iter().map(|r| self.bleu.tokenize(r.as_ref())).collect();
        let references: Vec<Vec<&str>> = references.iter().map(|r| words(r).collect()).collect();

        let closest = references.iter().map(Vec::len);
        let closest = closest.min_by_key(|&length| (length.abs_diff(hypothesis.len()), length));
        self.hypothesis_length += hypothesis.len() as u64;
        self.reference_length += closest.expect("a reference was checked for") as u64;
        for n in 1..=ORDER {
            self.total[n - 1] += (hypothesis.len() + 1).saturating_sub(n) as u64;
            self.correct[n - 1] += matches(&hypothesis, &references, n);
        }
    }

    /// Adds the sentences of another part of the corpus.
    ///
    /// # Panics
    /// If the other part was counted with other options.
    pub fn merge(&mut self, other: &BleuCounts) {
        assert_eq!(self.bleu, other.bleu, "parts of a corpus were counted by different options");
        self.hypothesis_length += other.hypothesis_length;
        self.reference_length += other.reference_length;
        for n in 0..ORDER {
            self.correct[n] += other.correct[n];
            self.total[n] += other.total[n];
        }
        self.references.merge(other.references);
    }

    /// Computes the score of the sentences added so far.
    pub fn score(&self) -> BleuScore {
        let (c, r) = (self.hypothesis_length as f64, self.reference_length as f64);
        // exp(−∞) = 0 if the hypotheses are empty.
        let brevity_penalty = if c < r { (1.0 - r / c).exp() } else { 1.0 };
        let (precisions, orders) = self.precisions();
        // A precision of zero means no match at all, or no smoothing: the product is zero.
        let score = if precisions[..orders].contains(&0.0) {
            0.0
        } else {
            let logs: f64 = precisions[..orders].iter().map(|p| p.ln()).sum();
            brevity_penalty * (logs / orders as f64).exp()
        };
        BleuScore {
            score,
            precisions,
            brevity_penalty,
            hypothesis_length: self.hypothesis_length,
            reference_length: self.reference_length,
        }
    }

    /// Returns sacrebleu's signature, such as
    /// `nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0`. The version is that of the
    /// sacrebleu whose results these were tested to equal:
    /// [`SACREBLEU_VERSION`](super::SACREBLEU_VERSION).
    pub fn signature(&self) -> String {
        let Bleu { tokenizer, case, smoothing, order } = self.bleu;
        let effective = match order {
            BleuOrder::Full => "no",
            BleuOrder::Effective => "yes",
        };
        format!(
            "nrefs:{}|case:{}|eff:{effective}|tok:{}|smooth:{smoothing}|version:{}",
            self.references,
            case.name(),
            tokenizer.name(),
            super::SACREBLEU_VERSION
        )
    }

    /// Computes the smoothed precisions in per cent, and the number of orders to average.
    fn precisions(&self) -> ([f64; ORDER], usize) {
        let mut precisions = [0.0; ORDER];
        let mut orders = ORDER;
        // Without a single matching word, smoothing does not apply.
        if self.correct == [0; ORDER] {
            return (precisions, orders);
        }
        let mut halves = 1.0;
        for (n, precision) in precisions.iter_mut().enumerate() {
            let (mut correct, mut total) = (self.correct[n] as f64, self.total[n] as f64);
            if let Smoothing::AddK(k) = self.bleu.smoothing
                && n > 0
            {
                correct += k;
                total += k;
            }
            if total == 0.0 {
                break;
            }
            if self.bleu.order == BleuOrder::Effective {
                orders = n + 1;
            }
            *precision = match self.bleu.smoothing {
                _ if correct > 0.0 => 100.0 * correct / total,
                Smoothing::Exp => {
                    halves *= 2.0;
                    100.0 / (halves * total)
                }
                Smoothing::Floor(value) => 100.0 * value / total,
                Smoothing::AddK(_) | Smoothing::None => 0.0,
            };
        }
        (precisions, orders)
    }
}

/// Counts the n-grams of the hypothesis that occur in a reference, each at most as often as in the
/// reference that has it most often.
fn matches(hypothesis: &[&str], references: &[Vec<&str>], n: usize) -> u64 {
    // For every n-gram of the hypothesis: the number of matches allowed.
    let mut allowed: HashMap<&[&str], u64> = hypothesis.windows(n).map(|w| (w, 0)).collect();
    let mut seen: HashMap<&[&str], u64> = HashMap::new();
    for reference in references {
        seen.clear();
        for gram in reference.windows(n) {
            if let Some(most) = allowed.get_mut(gram) {
                let count = seen.entry(gram).or_default();
                *count += 1;
                *most = (*most).max(*count);
            }
        }
    }
    let mut correct = 0;
    for gram in hypothesis.windows(n) {
        if let Some(left @ 1..) = allowed.get_mut(gram) {
            *left -= 1;
            correct += 1;
        }
    }
    correct
}

/// A BLEU score and its components.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BleuScore {
    /// The score in per cent.
    pub score: f64,
    /// Smoothed precision of every order, in per cent.
    pub precisions: [f64; ORDER],
    /// Factor for hypotheses that are too short, at most 1.
    pub brevity_penalty: f64,
    /// Number of tokens in the hypotheses.
    pub hypothesis_length: u64,
    /// Number of tokens in the references closest in length.
    pub reference_length: u64,
}

impl BleuScore {
    /// Returns the length of the hypotheses over that of the references; 0 if these are empty.
    pub fn ratio(&self) -> f64 {
        match self.reference_length {
            0 => 0.0,
            length => self.hypothesis_length as f64 / length as f64,
        }
    }

    /// Formats the score with a signature: `BLEU|nrefs:1|… = 30.11 60.1/…`.
    pub fn with_signature(&self, signature: &str) -> String {
        format!("BLEU|{signature}{}", self.to_string().trim_start_matches("BLEU"))
    }
}

impl fmt::Display for BleuScore {
    /// Formats as sacrebleu: `BLEU = 30.11 60.1/37.0/… (BP = … ratio = … hyp_len = … ref_len = …)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p1, p2, p3, p4] = self.precisions;
        write!(
            f,
            "BLEU = {:.2} {p1:.1}/{p2:.1}/{p3:.1}/{p4:.1} (BP = {:.3} ratio = {:.3} hyp_len = {} \
             ref_len = {})",
            self.score,
            self.brevity_penalty,
            self.ratio(),
            self.hypothesis_length,
            self.reference_length
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: [&str; 4] = [
        "They are watching the two dogs in the snow.",
        "Go.",
        "He paid 1,500.50 euros for it, didn't he?",
        "The the the the end of the day.",
    ];

    fn corpus(bleu: Bleu, pairs: &[(&str, &str)]) -> BleuCounts {
        let mut counts = bleu.counts();
        for (hypothesis, reference) in pairs {
            counts.add(hypothesis, &[reference]);
        }
        counts
    }

    #[test]
    fn a_corpus_is_like_itself() {
        let same: Vec<_> = LINES.iter().map(|&l| (l, l)).collect();
        for tokenizer in BleuTokenizer::ALL {
            for smoothing in [Smoothing::Exp, Smoothing::FLOOR, Smoothing::ADD_K, Smoothing::None] {
                let bleu = Bleu { tokenizer, smoothing, ..Bleu::new() };
                let score = corpus(bleu, &same).score();
                assert!((score.score - 100.0).abs() < 1e-12, "{bleu:?}: {score}");
            }
        }
    }

    #[test]
    fn order_and_parts_do_not_matter() {
        let mut pairs: Vec<_> = LINES.into_iter().zip(LINES.into_iter().rev()).collect();
        pairs.push(("the two dogs in the snow", "They are watching two dogs in the snow."));
        let whole = corpus(Bleu::new(), &pairs);
        assert!(whole.score().score > 1.0, "{}", whole.score());
        let mut parts = corpus(Bleu::new(), &pairs[..2]);
        parts.merge(&corpus(Bleu::new(), &pairs[2..]));
        assert_eq!(whole, parts);
        pairs.reverse();
        assert_eq!(whole, corpus(Bleu::new(), &pairs));
    }

    #[test]
    fn more_references_never_match_less() {
        let [a, b, c, d] = LINES;
        let one = Bleu::new().sentence(a, &[d]).precisions;
        let all = Bleu::new().sentence(a, &[d, b, c, a]).precisions;
        assert!(one.iter().zip(all).all(|(one, all)| *one <= all), "{one:?} {all:?}");
        assert_eq!(all, [100.0; 4]);
    }

    #[test]
    fn nothing_scores_zero() {
        for (hypothesis, reference) in [("", "a b"), ("", ""), ("x", "a b"), ("a", "")] {
            for bleu in [Bleu::new(), Bleu::for_sentences()] {
                assert_eq!(bleu.sentence(hypothesis, &[reference]).score, 0.0);
            }
        }
        assert_eq!(Bleu::new().counts().score().score, 0.0);
    }

    #[test]
    #[should_panic(expected = "no reference")]
    fn a_sentence_needs_a_reference() {
        Bleu::new().sentence::<&str>("a", &[]);
    }
}
