//! Evaluation metrics.
//!
//! Every metric is an accumulator: sentences are added one by one, parts of a corpus are merged,
//! and the score is computed at the end, so that the corpus need not be held in memory.
//!
//! | file | metric | of |
//! |---|---|---|
//! | `bleu` | BLEU | translations, by words |
//! | `chrf` | chrF, chrF++ | translations, by characters |
//! | `error_rate` | WER, PER, word accuracy | transcriptions and pronunciations |
//! | `alignment` | alignment error rate | links between words of two sentences |
//! | `perplexity` | perplexity, bits per unit | log-probabilities |
//! | `classification` | accuracy, F1, Matthews' correlation | labels of texts or of words |
//! | `entities` | entity F1 | names in sentences |
//! | `spans` | exact match, F1 | answers to questions |
//! | `correlation` | Pearson's, Spearman's | two lists of numbers |
//! | `rouge` | ROUGE-1, ROUGE-2, ROUGE-L | summaries |
//! | `ranking` | MRR, NDCG@10 | ranked texts |
//! | `sample` | mean, standard deviation, median | repeated measurements |
//!
//! BLEU and chrF are those of sacrebleu [`SACREBLEU_VERSION`]: the same score to the last printed
//! digit, the same line, the same signature. Labels are counted as scikit-learn does, entities as
//! seqeval, correlations as scipy, answers as SQuAD's own scripts, and ROUGE as `rouge_score`.
//!
//! ```
//! use regard_tasks::metrics::Bleu;
//!
//! let mut counts = Bleu::new().counts();
//! counts.add("They watch.", &["They are watching.", "They watch it."]);
//! counts.add("The dogs run in the deep snow.", &["Two dogs run in the snow."]);
//! assert_eq!(
//!     counts.score().to_string(),
//!     "BLEU = 40.15 81.8/55.6/28.6/20.0 (BP = 1.000 ratio = 1.000 hyp_len = 11 ref_len = 11)"
//! );
//! assert_eq!(
//!     counts.signature(),
//!     "nrefs:var|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"
//! );
//! ```

pub mod alignment;
pub mod bleu;
pub mod chrf;
pub mod classification;
pub mod correlation;
pub mod entities;
pub mod error_rate;
pub mod perplexity;
pub mod porter;
pub mod ranking;
pub mod rouge;
pub mod sample;
pub mod segment;
pub mod spans;

#[cfg(test)]
mod goldens;
#[cfg(test)]
mod measures;
mod nrefs;
mod unicode_marks;

pub use alignment::{Alignment, AlignmentErrors, GoldAlignment};
pub use bleu::{Bleu, BleuCounts, BleuOrder, BleuScore, Smoothing};
pub use chrf::{Chrf, ChrfCounts, ChrfOrder, ChrfScore, ChrfSpaces};
pub use classification::{Confusion, PrecisionRecall};
pub use correlation::Correlation;
pub use entities::{Entities, EntitySpan, Scheme};
pub use error_rate::{ErrorRate, WordAccuracy, edit_distance};
pub use perplexity::Perplexity;
pub use ranking::Ranking;
pub use rouge::{Overlap, Rouge, RougeCounts, RougeScore};
pub use sample::Sample;
pub use segment::{BleuTokenizer, Case};
pub use spans::{SpanMetrics, SpanScore};

/// Version of sacrebleu whose results BLEU and chrF were tested to equal, named in signatures.
pub const SACREBLEU_VERSION: &str = "2.6.0";
