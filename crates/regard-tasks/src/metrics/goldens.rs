//! Compares the metrics with golden scores made by `fixtures/make/metrics.py`.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

use super::segment::words;
use super::*;

fn load<T: DeserializeOwned>(name: &str) -> T {
    let path = format!("{}/../../fixtures/metrics/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Far below the last printed digit; logarithms of two systems may differ in the last bit.
fn near(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() <= 1e-12 * expected.max(1.0), "{what}: {found} {expected}");
}

#[derive(Deserialize)]
struct Translation {
    bleu_options: Vec<BleuOptions>,
    chrf_options: Vec<ChrfOptions>,
    sets: Vec<Set>,
}

#[derive(Deserialize)]
struct BleuOptions {
    tokenize: String,
    #[serde(default)]
    lowercase: bool,
    #[serde(default)]
    smooth_method: Option<String>,
    #[serde(default)]
    smooth_value: Option<f64>,
    #[serde(default)]
    effective_order: bool,
}

impl BleuOptions {
    fn bleu(&self) -> Bleu {
        let smoothing = match (self.smooth_method.as_deref(), self.smooth_value) {
            (None, _) => Smoothing::Exp,
            (Some("none"), _) => Smoothing::None,
            (Some("floor"), None) => Smoothing::FLOOR,
            (Some("floor"), Some(value)) => Smoothing::Floor(value),
            (Some("add-k"), None) => Smoothing::ADD_K,
            (Some("add-k"), Some(value)) => Smoothing::AddK(value),
            (Some(other), _) => panic!("the golden file has a smoothing {other}"),
        };
        Bleu {
            tokenizer: BleuTokenizer::from_name(&self.tokenize).unwrap(),
            case: if self.lowercase { Case::Lower } else { Case::Mixed },
            smoothing,
            order: if self.effective_order { BleuOrder::Effective } else { BleuOrder::Full },
        }
    }
}

#[derive(Deserialize)]
struct ChrfOptions {
    #[serde(default)]
    char_order: Option<usize>,
    #[serde(default)]
    word_order: usize,
    #[serde(default)]
    beta: Option<u32>,
    #[serde(default)]
    lowercase: bool,
    #[serde(default)]
    whitespace: bool,
    #[serde(default)]
    eps_smoothing: bool,
}

impl ChrfOptions {
    fn chrf(&self) -> Chrf {
        Chrf {
            char_order: self.char_order.unwrap_or(6),
            word_order: self.word_order,
            beta: self.beta.unwrap_or(2),
            case: if self.lowercase { Case::Lower } else { Case::Mixed },
            spaces: if self.whitespace { ChrfSpaces::Kept } else { ChrfSpaces::Removed },
            order: if self.eps_smoothing { ChrfOrder::Full } else { ChrfOrder::Effective },
        }
    }
}

#[derive(Deserialize)]
struct Set {
    name: String,
    hypotheses: Vec<String>,
    references: Vec<Vec<String>>,
    bleu: Vec<(f64, String)>,
    chrf: Vec<(f64, String)>,
    sentences: Vec<(f64, f64)>,
}

impl Set {
    fn sentences(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.hypotheses.iter().map(String::as_str).zip(self.references.iter().map(Vec::as_slice))
    }
}

#[test]
fn bleu_is_that_of_sacrebleu() {
    let Translation { bleu_options, sets, .. } = load("translation");
    assert!(sets.len() >= 40, "only {} sets", sets.len());
    for set in &sets {
        assert_eq!(set.bleu.len(), bleu_options.len());
        for (options, (score, line)) in bleu_options.iter().zip(&set.bleu) {
            let mut counts = options.bleu().counts();
            set.sentences().for_each(|(hypothesis, refs)| counts.add(hypothesis, refs));
            assert_eq!(&counts.score().with_signature(&counts.signature()), line, "{}", set.name);
            near(counts.score().score, *score, &set.name);
        }
    }
}

#[test]
fn chrf_is_that_of_sacrebleu() {
    let Translation { chrf_options, sets, .. } = load("translation");
    for set in &sets {
        assert_eq!(set.chrf.len(), chrf_options.len());
        for (options, (score, line)) in chrf_options.iter().zip(&set.chrf) {
            let mut counts = options.chrf().counts();
            set.sentences().for_each(|(hypothesis, refs)| counts.add(hypothesis, refs));
            assert_eq!(&counts.score().with_signature(&counts.signature()), line, "{}", set.name);
            near(counts.score().score, *score, &set.name);
        }
    }
}

#[test]
fn sentences_score_as_in_sacrebleu() {
    for set in load::<Translation>("translation").sets {
        assert_eq!(set.sentences.len(), set.hypotheses.len());
        for ((hypothesis, refs), (bleu, chrf)) in set.sentences().zip(&set.sentences) {
            near(Bleu::for_sentences().sentence(hypothesis, refs).score, *bleu, hypothesis);
            near(Chrf::plus_plus().sentence(hypothesis, refs).score, *chrf, hypothesis);
        }
    }
}

#[derive(Deserialize)]
struct Tokens {
    rows: Vec<(String, BTreeMap<String, Vec<String>>)>,
}

#[test]
fn words_are_those_of_sacrebleu() {
    for (line, expected) in load::<Tokens>("tokens").rows {
        for tokenizer in BleuTokenizer::ALL {
            let text = tokenizer.tokenize(line.trim_end_matches(segment::is_space));
            let found: Vec<&str> = words(&text).collect();
            assert_eq!(found, expected[tokenizer.name()], "{} {line:?}", tokenizer.name());
        }
    }
}

#[derive(Deserialize)]
struct Errors {
    edits: Vec<Edits>,
    alignments: Vec<Links>,
}

#[derive(Deserialize)]
struct Edits {
    hypothesis: String,
    reference: String,
    edits: u64,
    rate: f64,
}

#[derive(Deserialize)]
struct Links {
    links: String,
    sure: String,
    possible: String,
    rate: f64,
}

#[test]
fn edits_are_those_of_jiwer() {
    for row in load::<Errors>("errors").edits {
        let mut rate = ErrorRate::new();
        rate.add_line(&row.hypothesis, &[&row.reference]);
        assert_eq!(rate.edits, row.edits, "{} | {}", row.hypothesis, row.reference);
        near(rate.rate(), row.rate, &row.hypothesis);
    }
}

#[test]
fn alignment_errors_are_those_of_nltk() {
    for row in load::<Errors>("errors").alignments {
        let alignment = |line: &str| line.parse::<Alignment>().unwrap();
        let gold = GoldAlignment::new(&alignment(&row.sure), &alignment(&row.possible));
        let mut errors = AlignmentErrors::new();
        errors.add(&alignment(&row.links), &gold);
        near(errors.error_rate(), row.rate, &row.links);
    }
}
