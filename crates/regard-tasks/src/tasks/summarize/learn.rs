//! Training objective of summarisation.

use super::{Corpus, Recipe, Summarizer, SummaryVocabulary};
use crate::data::aeslc::Email;
use crate::data::{Batches, Lengths};
use crate::decode::{self, generation};
use crate::evaluation;
use crate::recipe::ModelTable;
use crate::train::pretrained_embeddings;
use crate::train::{BatchLoss, Direction, Evaluation, Objective, Trained};
use regard_attention::Mode;
use regard_models::copying::{CopyBatch, Cost, PointerGenerator};
use regard_models::{Capability, Error, Network, Result};
use serde_json::Value;
use std::path::Path;

/// Number of validation texts that are summarised at each evaluation.
const TRIED: usize = 200;

/// A text and its target summary, which ends with the EOS token.
#[derive(Clone, Debug)]
struct Example {
    source: Vec<u32>,
    target: Vec<u32>,
}

/// Training objective of summarisation.
pub struct SummarizeObjective {
    words: SummaryVocabulary,
    train: Vec<Example>,
    valid: Vec<Example>,
    tried: Vec<Email>,
    max_words: usize,
    batch_tokens: usize,
    decode: decode::Options,
}

impl SummarizeObjective {
    /// Creates a model with initial weights as a recipe configures it.
    pub fn new(recipe: &Recipe, corpus: &Corpus) -> Result<Trained<SummarizeObjective>> {
        let texts = corpus.train.iter().flat_map(|each| {
            std::iter::once(&each.text).chain(each.summaries.first()).map(String::as_str)
        });
        let words = SummaryVocabulary::learn(texts, recipe.vocabulary)?;
        let mut model = table(recipe, &words)?.create::<PointerGenerator>(recipe.seed)?;
        if let Some(vectors) = &recipe.vectors {
            let mut weights = model.weights();
            pretrained_embeddings::with_vectors(
                &mut weights,
                &["embed_tokens.weight"],
                words.tokenizer(),
                vectors,
            )?;
            model.restore(weights)?;
        }
        let copy = model.settings().copy;
        let [train, valid] =
            [&corpus.train, &corpus.valid].map(|part| examples(&words, part, recipe, copy));
        let (train, valid) = (train?, valid?);
        for (part, examples) in [("training", &train), ("validation", &valid)] {
            if examples.is_empty() {
                return Err(Error::invalid(format!("data: the {part} part has no texts")));
            }
        }
        let objective = SummarizeObjective {
            words,
            train,
            valid,
            tried: corpus.valid.iter().take(TRIED).cloned().collect(),
            max_words: recipe.data.max_words,
            batch_tokens: recipe.train.batch_tokens,
            decode: recipe.decode.clone(),
        };
        Ok(Trained::new(model, objective))
    }

    /// Returns a summary of the sizes.
    pub(super) fn about(&self, millions: f64) -> String {
        format!(
            "{} training and {} validation texts, {} words, {millions:.3} M parameters",
            self.train.len(),
            self.valid.len(),
            self.words.size(),
        )
    }

    fn cost(&self, model: &PointerGenerator, batch: &[&Example], mode: Mode) -> Cost {
        let texts = CopyBatch::new(batch.iter().map(|each| each.source.clone()).collect());
        let wanted: Vec<Vec<u32>> = batch.iter().map(|each| each.target.clone()).collect();
        model.cost(&texts, &wanted, mode)
    }
}

impl Objective for SummarizeObjective {
    type Model = PointerGenerator;

    fn lengths(&self) -> Vec<Lengths> {
        self.train.iter().map(Example::lengths).collect()
    }

    fn loss(&self, model: &PointerGenerator, examples: &[usize], mode: Mode) -> BatchLoss {
        let batch: Vec<&Example> = examples.iter().map(|i| &self.train[*i]).collect();
        let Cost { likelihood, coverage } = self.cost(model, &batch, mode);
        let value = match (coverage, model.settings().coverage_loss) {
            (Some(coverage), weight) if weight > 0.0 => likelihood + coverage * weight,
            _ => likelihood,
        };
        BatchLoss { value, tokens: self.tokens(examples) }
    }

    fn tokens(&self, examples: &[usize]) -> usize {
        examples.iter().map(|i| self.train[*i].target.len()).sum()
    }

    fn evaluate(&self, model: &PointerGenerator) -> Result<Evaluation> {
        let model = *model.evaluation();
        let lengths = self.valid.iter().map(Example::lengths).collect();
        let (mut sum, mut words) = (0.0, 0);
        for batch in Batches::new(lengths, self.batch_tokens, 0)?.sorted() {
            let batch: Vec<&Example> = batch.iter().map(|i| &self.valid[*i]).collect();
            let count: usize = batch.iter().map(|each| each.target.len()).sum();
            let cost = self.cost(&model, &batch, Mode::Eval).likelihood;
            sum += f64::from(cost.into_scalar::<f32>()) * count as f64;
            words += count;
        }
        let loss = sum / words.max(1) as f64;
        let greedy = decode::Options { num_beams: 1, ..self.decode.clone() };
        let summarizer = Summarizer::new(model, self.words.clone(), greedy.clone())?;
        let marks = summarizer.exam(&self.tried, self.max_words, &greedy)?;
        let mut measures = vec![("valid_loss".to_string(), loss)];
        measures.extend(evaluation::measures(&marks[..3]));
        let first = summarizer.summarize(&[&self.tried[0].text], Some(self.max_words), &greedy)?;
        let sample = format!("{} → {}", self.tried[0].summaries[0], first[0].text);
        Ok(Evaluation::new(measures, loss, Direction::Lower).with_sample(Some(sample)))
    }

    fn save_rest(&self, config: &Value, folder: &Path) -> Result<()> {
        self.words.save(folder)?;
        generation::save(folder, &self.decode, config)
    }
}

impl Example {
    fn lengths(&self) -> Lengths {
        Lengths { source: self.source.len(), target: self.target.len() }
    }
}

/// Encodes documents with their first summary. Without copying, words outside the vocabulary are
/// unknown.
fn examples(
    words: &SummaryVocabulary,
    documents: &[Email],
    recipe: &Recipe,
    copy: bool,
) -> Result<Vec<Example>> {
    let end = words.tokenizer().special().need_eos()?;
    let texts: Vec<&str> = documents.iter().map(|each| each.text.as_str()).collect();
    let summaries: Vec<&str> = documents.iter().map(|each| each.summaries[0].as_str()).collect();
    let texts = words.read(&texts, recipe.data.max_words)?;
    let summaries = words.read(&summaries, recipe.data.max_summary)?;
    let mut all = vec![];
    for (text, summary) in texts.iter().zip(&summaries) {
        if text.ids.is_empty() || summary.ids.is_empty() {
            continue;
        }
        let mut target = words.told(summary, text);
        if !copy {
            let known = |id: u32| if (id as usize) < words.size() { id } else { words.unknown() };
            target.iter_mut().for_each(|id| *id = known(*id));
        }
        target.push(end);
        all.push(Example { source: text.ids.clone(), target });
    }
    Ok(all)
}

/// Returns the model configuration for this vocabulary.
fn table<'a>(recipe: &'a Recipe, words: &SummaryVocabulary) -> Result<ModelTable<'a>> {
    let mut table = ModelTable::new(&recipe.model)?;
    let special = words.tokenizer().special();
    table.set("vocab_size", words.size());
    table.set("pad_token_id", special.need_pad()?);
    table.set("decoder_start_token_id", special.need_bos()?);
    table.set("eos_token_id", special.need_eos()?);
    table.set("unk_token_id", words.unknown());
    Ok(table)
}
