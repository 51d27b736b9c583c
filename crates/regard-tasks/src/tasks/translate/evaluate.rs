//! Evaluation of translations.

use super::corpus::plain;
use super::{Data, Translator};
use crate::data::pairs::Group;
use crate::decode::Options;
use crate::evaluation::Details;
use crate::metrics::{Bleu, Case, Chrf, ErrorRate, WordAccuracy};
use crate::recipe::details::{ShownInput, ShownOutput};
use regard_models::Result;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Instant;

/// Sentences per batch.
const BATCH: usize = 64;

/// Metrics to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// BLEU and chrF of sentences.
    Sentences {
        /// Whether both sides are lower-cased before the comparison.
        lowercase: bool,
    },
    /// Word and phoneme error rates of pronunciations.
    Phonemes,
}

/// Metrics of translations.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TranslationReport {
    /// Number of sentences.
    pub sentences: usize,
    /// BLEU as computed by sacrebleu, 0 to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bleu: Option<f64>,
    /// BLEU line as printed by sacrebleu, with its signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bleu_line: Option<String>,
    /// BLEU of lower-cased words with punctuation split off, as in torchtext's tutorials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokenized_bleu: Option<f64>,
    /// chrF2 as computed by sacrebleu, 0 to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chrf: Option<f64>,
    /// Word error rate: percentage of words that equal none of their references.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wer: Option<f64>,
    /// Phoneme error rate: edit distance relative to the reference length, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per: Option<f64>,
    /// Duration of the translation, in seconds.
    pub seconds: f64,
    /// Metrics by source length.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_length: Vec<Bucket>,
    /// Unit of source lengths: `words`, or `characters` for spellings and for languages written
    /// without spaces.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub length_in: &'static str,
}

/// Sources of similar length.
#[derive(Clone, Debug, Serialize)]
pub struct Bucket {
    /// Length of the shortest source, in units of the report's `length_in`.
    pub from: usize,
    /// Length of the longest source, in units of the report's `length_in`.
    pub to: usize,
    /// Metrics of their translations.
    #[serde(flatten)]
    pub report: TranslationReport,
}

/// Upper length limits of all buckets but the last.
const EDGES: [usize; 6] = [5, 10, 15, 20, 25, 30];

impl TranslationReport {
    /// Returns the main metric of a data set: BLEU, or the word error rate.
    pub fn main(&self) -> Option<f64> {
        self.bleu.or(self.wer)
    }
}

impl Measure {
    /// Returns the metrics for a data set.
    pub fn of(data: &Data, lowercase: bool) -> Measure {
        if data.set == "cmudict" { Measure::Phonemes } else { Measure::Sentences { lowercase } }
    }

    /// Returns the unit of source lengths.
    fn length_in(self, groups: &[Group]) -> &'static str {
        let sources = || groups.iter().flat_map(|group| group.source.chars());
        let letters = sources().filter(|c| c.is_alphabetic()).count();
        let unspaced = sources().filter(|c| is_unspaced(*c)).count();
        match self {
            Measure::Sentences { .. } if 2 * unspaced <= letters => "words",
            _ => "characters",
        }
    }

    /// Removes sources that are shorter than `least`, and returns the unit of their lengths.
    pub fn drop_shorter(self, groups: &mut Vec<Group>, least: usize) -> &'static str {
        let length_in = self.length_in(groups);
        groups.retain(|group| length(&group.source, length_in) >= least);
        length_in
    }
}

/// Returns whether a character belongs to a script written without spaces between words: Thai, Lao,
/// Burmese, Khmer, kana and Chinese characters.
fn is_unspaced(c: char) -> bool {
    matches!(c as u32,
        0x0e00..=0x0eff | 0x1000..=0x109f | 0x1780..=0x17ff | 0x3040..=0x30ff | 0x3400..=0x4dbf
        | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x3ffff)
}

fn length(source: &str, length_in: &str) -> usize {
    match length_in {
        "words" => source.split_whitespace().count(),
        _ => source.chars().filter(|c| !c.is_whitespace()).count(),
    }
}

/// Minimum number of sentences to detect swapped sides.
const ENOUGH: usize = 5;

/// Returns a warning if translations are more similar to their sources than to their references:
/// then source and target files were probably swapped.
pub fn swapped(groups: &[Group], texts: &[String]) -> Option<String> {
    if groups.len() < ENOUGH {
        return None;
    }
    let (mut right, mut wrong) = (Chrf::new().counts(), Chrf::new().counts());
    for (text, group) in texts.iter().zip(groups) {
        right.add(text, &group.targets);
        wrong.add(text, std::slice::from_ref(&group.source));
    }
    let (right, wrong) = (right.score().score, wrong.score().score);
    (wrong > 5.0 && wrong > 1.5 * right).then(|| {
        format!(
            "the translations are more like the source (chrF {wrong:.1}) than like the reference \
             (chrF {right:.1})"
        )
    })
}

/// Translates sources and computes the metrics, overall and by length.
pub fn measure(
    translator: &Translator,
    groups: &[Group],
    options: &Options,
    how: Measure,
) -> Result<(TranslationReport, Vec<String>)> {
    let length_in = how.length_in(groups);
    let mut buckets: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (i, group) in groups.iter().enumerate() {
        let length = length(&group.source, length_in);
        let bucket = EDGES.iter().position(|edge| length <= *edge).unwrap_or(EDGES.len());
        buckets.entry(bucket).or_default().push(i);
    }
    let mut texts = vec![String::new(); groups.len()];
    let mut by_length = vec![];
    for rows in buckets.values() {
        let some: Vec<Group> = rows.iter().map(|i| groups[*i].clone()).collect();
        let sources: Vec<&str> = some.iter().map(|group| group.source.as_str()).collect();
        let began = Instant::now();
        let found = translator.translate(&sources, options, BATCH, false)?;
        let seconds = began.elapsed().as_secs_f64();
        let of_bucket: Vec<String> =
            found.into_iter().map(|mut all| plain(&std::mem::take(&mut all[0].text))).collect();
        let lengths = || some.iter().map(|group| length(&group.source, length_in));
        by_length.push(Bucket {
            from: lengths().min().unwrap_or(0),
            to: lengths().max().unwrap_or(0),
            report: TranslationReport { seconds, ..report(&some, &of_bucket, how) },
        });
        for (i, text) in rows.iter().zip(of_bucket) {
            texts[*i] = text;
        }
    }
    let seconds = by_length.iter().map(|bucket| bucket.report.seconds).sum();
    Ok((TranslationReport { seconds, by_length, length_in, ..report(groups, &texts, how) }, texts))
}

/// Returns the worst translations: by chrF, or by the error rate of phonemes.
pub fn details(groups: &[Group], texts: &[String], how: Measure) -> Details {
    let both = texts.iter().zip(groups);
    let show = |at: usize| ShownOutput {
        input: ShownInput { number: None, text: groups[at].source.clone() },
        reference: groups[at].targets.join(" | "),
        hypothesis: texts[at].clone(),
    };
    match how {
        Measure::Phonemes => {
            let rate = |(text, group): (&String, &Group)| {
                let mut errors = ErrorRate::new();
                errors.add_line(text, &group.targets);
                100.0 * errors.rate()
            };
            let rates: Vec<f64> = both.map(rate).collect();
            Details::of_texts("phoneme error rate, percent", 0.0, &rates, show)
        }
        Measure::Sentences { lowercase } => {
            let case = if lowercase { Case::Lower } else { Case::Mixed };
            let chrf = Chrf { case, ..Chrf::new() };
            let score =
                |(text, group): (&String, &Group)| chrf.sentence(text, &group.targets).score;
            let scores: Vec<f64> = both.map(score).collect();
            Details::of_texts("chrF2 of the sentence", 100.0, &scores, show)
        }
    }
}

/// Computes the metrics of translations.
pub fn report(groups: &[Group], texts: &[String], how: Measure) -> TranslationReport {
    let mut report = TranslationReport { sentences: groups.len(), ..TranslationReport::default() };
    let both = || texts.iter().zip(groups);
    match how {
        Measure::Phonemes => {
            let (mut errors, mut words) = (ErrorRate::new(), WordAccuracy::new());
            for (text, group) in both() {
                let phonemes: Vec<&str> = text.split_whitespace().collect();
                let accepted: Vec<Vec<&str>> =
                    group.targets.iter().map(|t| t.split_whitespace().collect()).collect();
                errors.add(&phonemes, &accepted);
                words.add(&phonemes, &accepted);
            }
            report.wer = Some(100.0 * words.error_rate());
            report.per = Some(100.0 * errors.rate());
        }
        Measure::Sentences { lowercase } => {
            let case = if lowercase { Case::Lower } else { Case::Mixed };
            let mut bleu = Bleu { case, ..Bleu::new() }.counts();
            let mut tokenized = Bleu::tokenized().counts();
            let mut chrf = Chrf { case, ..Chrf::new() }.counts();
            for (text, group) in both() {
                bleu.add(text, &group.targets);
                chrf.add(text, &group.targets);
                let references: Vec<String> =
                    group.targets.iter().map(|reference| words(reference)).collect();
                tokenized.add(&words(text), &references);
            }
            let score = bleu.score();
            report.bleu = Some(score.score);
            report.bleu_line = Some(score.with_signature(&bleu.signature()));
            report.tokenized_bleu = Some(tokenized.score().score);
            report.chrf = Some(chrf.score().score);
        }
    }
    report
}

/// Lower-cases and splits punctuation from words, as tutorials with a word-level vocabulary do.
fn words(text: &str) -> String {
    let mut apart = String::with_capacity(text.len() + 16);
    for c in text.to_lowercase().chars() {
        if c.is_alphanumeric() || c.is_whitespace() || c == '\'' || c == '-' {
            apart.push(c);
        } else {
            apart.extend([' ', c, ' ']);
        }
    }
    apart.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_sources_are_dropped_by_the_unit_of_their_language() {
        let left = |how: Measure, least: usize, sources: &[&str]| {
            let group = |source: &&str| Group { source: source.to_string(), targets: vec![] };
            let mut groups: Vec<Group> = sources.iter().map(group).collect();
            let unit = how.drop_shorter(&mut groups, least);
            (groups.len(), unit)
        };
        let sentences = Measure::Sentences { lowercase: false };
        let (english, chinese) = (["Go.", "Go on now."], ["走。", "他在看书。"]);
        for (least, wanted) in [(0, 2), (1, 2), (2, 1), (3, 1), (4, 0)] {
            assert_eq!(left(sentences, least, &english), (wanted, "words"), "{least}");
        }
        for (least, wanted) in [(2, 2), (3, 1), (5, 1), (6, 0)] {
            assert_eq!(left(sentences, least, &chinese), (wanted, "characters"), "{least}");
        }
        assert_eq!(left(Measure::Phonemes, 3, &["go", "going"]), (1, "characters"));
    }
}
