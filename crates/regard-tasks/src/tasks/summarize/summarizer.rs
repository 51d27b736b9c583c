//! Inference of summarisation: text in, summary out.

use super::{SummaryVocabulary, Text};
use crate::data::aeslc::Email;
use crate::decode::{
    DecodeInput, Hypothesis, Ids, Options, StepAttention, Stepper, decode, generation,
};
use crate::evaluation::{DetailedMarks, Details, Metric};
use crate::metrics::Rouge;
use crate::recipe::details::{ShownInput, ShownOutput};
use crate::train;
use burn::tensor::Device;
use regard_attention::plan::{Part, timed};
use regard_models::copying::{CopyBatch, CopyDecoding, Mixed, PointerGenerator};
use regard_models::{Error, ModelFiles, Network, Result, zoo};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Texts per batch.
const AT_ONCE: usize = 16;
/// Default number of words after which a text is truncated.
const MOST_WORDS: usize = 400;

/// Summary of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Text of the summary.
    pub text: String,
    /// Log-probability of the whole summary, in nats.
    pub log_prob: f64,
    /// Words of the summary.
    pub words: Vec<SummaryWord>,
}

/// A word of a summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SummaryWord {
    /// The word itself.
    pub word: String,
    /// Probability of the word, 0 to 1.
    pub probability: f64,
    /// Fraction of the probability that comes from copying, 0 to 1.
    pub copied: f64,
    /// Whether the word is in the vocabulary.
    pub known: bool,
}

/// Summarisation model with its vocabulary.
pub struct Summarizer {
    model: PointerGenerator,
    words: SummaryVocabulary,
    ids: Ids,
    defaults: Options,
}

impl Summarizer {
    /// Creates a summarizer from a model and its vocabulary.
    pub fn new(
        model: PointerGenerator,
        words: SummaryVocabulary,
        defaults: Options,
    ) -> Result<Summarizer> {
        let shape = &model.settings().shape;
        if words.size() != shape.vocab_size {
            return Err(Error::invalid(format!(
                "vocabulary: got {} words, the model has {}",
                words.size(),
                shape.vocab_size
            )));
        }
        let ids = Ids {
            bos: shape.decoder_start_token_id,
            eos: vec![shape.eos_token_id],
            pad: Some(shape.pad_token_id),
        };
        Ok(Summarizer { model, words, ids, defaults })
    }

    /// Opens a model: from a folder, which may be a training run's, or a built-in one.
    pub fn load(model: impl Into<ModelFiles>) -> Result<Summarizer> {
        let files = train::files(model)?;
        let model = *zoo::open::<PointerGenerator>(files.clone(), &Device::flex())?;
        let (words, defaults) = (SummaryVocabulary::load(&files)?, generation::load(&files)?);
        Summarizer::new(model, words, defaults)
            .map_err(|e| Error::file(files.place(), e.to_string()))
    }

    /// Returns the model's default search options.
    pub fn defaults(&self) -> &Options {
        &self.defaults
    }

    /// Returns the number of parameters.
    pub fn parameters(&self) -> usize {
        self.model.parameters()
    }

    /// Summarises texts, each truncated to `most` words, by default 400.
    ///
    /// # Errors
    /// If a text has no words, or the options are invalid.
    pub fn summarize<S: AsRef<str> + Sync>(
        &self,
        texts: &[S],
        most: Option<usize>,
        options: &Options,
    ) -> Result<Vec<Summary>> {
        let read = self.words.read(texts, most.unwrap_or(MOST_WORDS))?;
        if read.iter().any(|text| text.ids.is_empty()) {
            return Err(Error::invalid("got a text without words, need words to summarise"));
        }
        let mut said = Vec::with_capacity(texts.len());
        for (i, some) in read.chunks(AT_ONCE).enumerate() {
            said.extend(self.some(some, i * AT_ONCE, options)?);
        }
        Ok(said)
    }

    /// Summarises one batch. `first` is the index of its first text, on which samples depend.
    fn some(&self, texts: &[Text], first: usize, options: &Options) -> Result<Vec<Summary>> {
        let batch = CopyBatch::new(texts.iter().map(|text| text.ids.clone()).collect());
        let sentence = |(index, text): (usize, &Text)| DecodeInput {
            index: (first + index) as u64,
            // Generation probability first, then one attention weight per position.
            source: text.ids.len() + 1,
            ..DecodeInput::default()
        };
        let sentences: Vec<DecodeInput> = texts.iter().enumerate().map(sentence).collect();
        // A summary is never empty and has no unknown word.
        let mut options = Options { min_length: options.min_length.max(2), ..options.clone() };
        options.suppress_tokens.push(self.words.unknown());
        options.num_return_sequences = 1;
        let mut stepping = Stepping(self.model.walk(&batch), Mixed::default());
        let found = decode(&mut stepping, &sentences, &options, &self.ids)?;
        texts.iter().zip(found).map(|(text, mut found)| self.said(text, found.remove(0))).collect()
    }

    fn said(&self, text: &Text, found: Hypothesis) -> Result<Summary> {
        let each = found.tokens.iter().zip(&found.token_log_probs).zip(&found.attention);
        let words: Vec<SummaryWord> = each
            .map(|((id, log_prob), look)| {
                let probability = f64::from(*log_prob).exp();
                let here = text.ids.iter().zip(&look[1..]).filter(|(word, _)| *word == id);
                let weight: f64 = here.map(|(_, weight)| f64::from(*weight)).sum();
                let copied = (1.0 - f64::from(look[0])) * weight / probability.max(1e-30);
                let known = (*id as usize) < self.words.size();
                let word = self.words.word(*id, text);
                SummaryWord { word, probability, copied: copied.clamp(0.0, 1.0), known }
            })
            .collect();
        let written: Vec<String> = words.iter().map(|said| said.word.clone()).collect();
        let text = self.words.tokenizer().join(&written)?;
        Ok(Summary { text, log_prob: f64::from(found.log_prob), words })
    }

    /// Evaluates summaries of documents: ROUGE F1 in percent, with and without stemming.
    pub fn exam(&self, documents: &[Email], most: usize, options: &Options) -> Result<Vec<Metric>> {
        let texts: Vec<&str> = documents.iter().map(|each| each.text.as_str()).collect();
        Ok(marks(documents, &self.summarize(&texts, Some(most), options)?))
    }

    /// As [`Summarizer::exam`], with details.
    pub(super) fn exam_in_detail(
        &self,
        documents: &[Email],
        most: usize,
        options: &Options,
    ) -> Result<DetailedMarks> {
        let texts: Vec<&str> = documents.iter().map(|each| each.text.as_str()).collect();
        let said = self.summarize(&texts, Some(most), options)?;
        let score = |(said, document): (&Summary, &Email)| {
            100.0 * Rouge { stemmed: false }.score(&said.text, &document.summaries).rouge_l.f1
        };
        let scores: Vec<f64> = said.iter().zip(documents).map(score).collect();
        let show = |at: usize| ShownOutput {
            input: ShownInput { number: None, text: documents[at].text.clone() },
            reference: documents[at].summaries.join(" | "),
            hypothesis: said[at].text.clone(),
        };
        let details = Details::of_texts("ROUGE-L F1, percent", 100.0, &scores, show);
        Ok((marks(documents, &said), Some(details)))
    }
}

/// Computes ROUGE F1 of summaries, with and without stemming, and the share of new words.
fn marks(documents: &[Email], said: &[Summary]) -> Vec<Metric> {
    let rouge = |stemmed: bool| {
        let mut counts = Rouge { stemmed }.counts();
        let all = said.iter().zip(documents);
        all.for_each(|(said, document)| counts.add(&said.text, &document.summaries));
        counts.score()
    };
    let (plain, stemmed) = (rouge(false), rouge(true));
    let words = said.iter().flat_map(|said| &said.words);
    let (all, new) =
        words.fold((0, 0), |(all, new), said| (all + 1, new + usize::from(!said.known)));
    let (f1, stems) = ("% F1", "% F1, stemmed");
    let mark = |name, value: f64, unit| Metric { name, value: 100.0 * value, unit };
    vec![
        mark("rouge1", plain.rouge1.f1, f1),
        mark("rouge2", plain.rouge2.f1, f1),
        mark("rouge_l", plain.rouge_l.f1, f1),
        mark("rouge1_stems", stemmed.rouge1.f1, stems),
        mark("rouge2_stems", stemmed.rouge2.f1, stems),
        mark("rouge_l_stems", stemmed.rouge_l.f1, stems),
        mark("new_words", new as f64 / f64::from(all.max(1)), "% not in the vocabulary"),
    ]
}

/// Decoding state as seen by the search, and the last prediction.
struct Stepping<'a>(CopyDecoding<'a>, Mixed);

impl Stepper for Stepping<'_> {
    fn vocabulary(&self) -> usize {
        self.0.width()
    }

    fn step(&mut self, tokens: &[u32], logits: &mut Vec<f32>) -> Option<StepAttention> {
        let Stepping(decoding, mixed) = self;
        timed(Part::Rest, || decoding.step_into(tokens, mixed));
        logits.clear();
        // Probabilities sum to one, so the softmax of their logarithms restores them.
        logits.extend(mixed.words.iter().map(|p| p.ln()));
        let places = decoding.places();
        let mut weights = Vec::with_capacity(tokens.len() * (places + 1));
        for (share, row) in mixed.share.iter().zip(mixed.weights.chunks_exact(places)) {
            weights.push(*share);
            weights.extend_from_slice(row);
        }
        Some(StepAttention { weights, keys: places + 1 })
    }

    fn reorder(&mut self, parents: &[usize]) {
        self.0.reorder(parents);
    }
}
