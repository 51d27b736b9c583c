//! Training objective of translation.

use super::evaluate::{Measure, measure};
use super::translator::padded;
use super::{Corpus, Recipe, Tokens, Translator};
use crate::data::pairs::Group;
use crate::data::{Batches, Lengths, Pair, split};
use crate::decode::{self, generation};
use crate::recipe::ModelTable;
use crate::train::trained::device;
use crate::train::{BatchLoss, Direction, Evaluation, Objective, Trained};
use burn::tensor::{Device, Int, Tensor, TensorData, activation};
use regard_attention::Mode;
use regard_attention::ops::{CrossEntropy, cross_entropy};
use regard_models::{Capability, Error, Result, Scores, Seq2Seq};
use serde_json::Value;
use std::path::Path;

/// Target of padding, ignored by the loss.
const IGNORED: i64 = -100;
/// Tokens per evaluation batch.
const EVALUATED: usize = 4096;

/// Training objective of translation.
pub struct Translation {
    recipe: Recipe,
    tokens: Tokens,
    train: Vec<Example>,
    valid: Vec<Example>,
    groups: Vec<Group>,
}

/// An encoded pair.
struct Example {
    /// Source ids, with EOS.
    source: Vec<u32>,
    /// Target ids, without BOS and EOS.
    target: Vec<u32>,
}

impl Translation {
    /// Creates a model with initial weights as a recipe configures it.
    pub fn new(recipe: &Recipe, corpus: Corpus) -> Result<Trained<Translation>> {
        let tokens = recipe.vocabulary.train(&corpus.train)?;
        let mut model = table(recipe, &tokens)?.create::<dyn Seq2Seq>(recipe.seed)?;
        if recipe.vocabulary.has_vectors() {
            let mut weights = model.weights();
            recipe.vocabulary.begin(&tokens, &mut weights)?;
            model.restore(weights)?;
        }
        let reach = model.longest().unwrap_or(usize::MAX);
        let longest = recipe.data.max_tokens.min(recipe.train.batch_tokens).min(reach);
        let mut train = examples(&tokens, &corpus.train)?;
        train.retain(|example| example.longest() <= longest && !example.target.is_empty());
        let pairs: Vec<Pair> = corpus
            .valid
            .iter()
            .flat_map(|group| {
                let pair =
                    |target: &String| Pair { source: group.source.clone(), target: target.clone() };
                group.targets.iter().map(pair).collect::<Vec<_>>()
            })
            .collect();
        let mut valid = examples(&tokens, &pairs)?;
        valid.retain(|example| example.longest() <= EVALUATED.min(reach));
        for (part, count) in [("training", train.len()), ("validation", valid.len())] {
            if count == 0 {
                return Err(Error::invalid(format!(
                    "data.max_tokens: the {part} part has no pair of at most {longest} \
                     tokens; raise data.max_tokens, or check the data"
                )));
            }
        }
        let mut groups = corpus.valid;
        if recipe.evaluate.sentences > 0 {
            // Files are often sorted by length; the first few would be the shortest.
            groups.sort_by_key(|group| split::hash(&group.source));
            groups.truncate(recipe.evaluate.sentences);
        }
        let objective = Translation { recipe: recipe.clone(), tokens, train, valid, groups };
        Ok(Trained::new(model, objective))
    }

    /// Returns the number of training pairs.
    pub fn examples(&self) -> usize {
        self.train.len()
    }

    /// Returns the tokenizers.
    pub fn vocabularies(&self) -> &Tokens {
        &self.tokens
    }

    /// Computes the scores of a batch with teacher forcing, and the targets, `[B·T]`.
    fn scores(
        &self,
        model: &dyn Seq2Seq,
        batch: &[&Example],
        mode: Mode,
        device: &Device,
    ) -> (Scores, Tensor<1, Int>) {
        let special = self.tokens.target.special();
        let id = |id: Option<u32>| i64::from(id.unwrap_or(0));
        let (pad, bos, eos) = (id(special.pad), id(special.bos), id(special.eos));
        let rows: Vec<&[u32]> = batch.iter().map(|example| &example.source[..]).collect();
        let source = padded(&rows, pad as u32, device);
        let wide = batch.iter().map(|example| example.target.len()).max().unwrap_or(0) + 1;
        let (mut given, mut wanted) = (vec![], vec![]);
        for Example { target, .. } in batch {
            let words = || target.iter().map(|id| i64::from(*id));
            given.extend(std::iter::once(bos).chain(words()));
            wanted.extend(words().chain([eos]));
            let rest = wide - target.len() - 1;
            given.resize(given.len() + rest, pad);
            wanted.resize(wanted.len() + rest, IGNORED);
        }
        let given = Tensor::from_data(TensorData::new(given, [batch.len(), wide]), device);
        let wanted = Tensor::from_data(TensorData::new(wanted, [batch.len() * wide]), device);
        (model.forward(&source, given, mode), wanted)
    }

    /// Computes the mean negative log-likelihood per token of the validation part.
    fn validation_loss(&self, model: &dyn Seq2Seq) -> Result<f64> {
        let lengths = self.valid.iter().map(Example::lengths).collect();
        let device = Device::flex();
        let (mut sum, mut count) = (0.0, 0);
        for rows in Batches::new(lengths, EVALUATED, 0)?.sorted() {
            let batch: Vec<&Example> = rows.iter().map(|i| &self.valid[*i]).collect();
            let tokens: usize = batch.iter().map(|example| example.target.len() + 1).sum();
            let (scores, wanted) = self.scores(model, &batch, Mode::Eval, &device);
            let loss = mean_loss(scores.logits, wanted, 0.0).into_scalar::<f32>();
            sum += f64::from(loss) * tokens as f64;
            count += tokens;
        }
        Ok(sum / count.max(1) as f64)
    }
}

impl Example {
    fn lengths(&self) -> Lengths {
        Lengths { source: self.source.len(), target: self.target.len() + 1 }
    }

    fn longest(&self) -> usize {
        self.source.len().max(self.target.len() + 1)
    }
}

impl Objective for Translation {
    type Model = dyn Seq2Seq;

    fn lengths(&self) -> Vec<Lengths> {
        self.train.iter().map(Example::lengths).collect()
    }

    fn loss(&self, model: &dyn Seq2Seq, examples: &[usize], mode: Mode) -> BatchLoss {
        let batch: Vec<&Example> = examples.iter().map(|i| &self.train[*i]).collect();
        let (scores, wanted) = self.scores(model, &batch, mode, &device());
        let reward = scores.log_prob.map(|log_prob| {
            let chosen = reinforce(log_prob, scores.logits.clone(), wanted.clone());
            chosen * self.recipe.train.reinforce
        });
        let mut value = mean_loss(scores.logits, wanted, self.recipe.train.label_smoothing);
        if let Some(reward) = reward {
            value = value + reward;
        }
        BatchLoss { value, tokens: self.tokens(examples) }
    }

    fn tokens(&self, examples: &[usize]) -> usize {
        examples.iter().map(|i| self.train[*i].target.len() + 1).sum()
    }

    fn evaluate(&self, model: &dyn Seq2Seq) -> Result<Evaluation> {
        let model = model.evaluation();
        let loss = self.validation_loss(&*model)?;
        let mut measures = vec![("valid_loss".to_string(), loss)];
        let greedy = decode::Options { num_beams: 1, ..self.recipe.decode.clone() };
        let translator = Translator::new(model, self.tokens.clone(), greedy.clone())?;
        let how = Measure::of(&self.recipe.data, self.recipe.lowercase());
        let (report, texts) = measure(&translator, &self.groups, &greedy, how)?;
        let named =
            [("valid_bleu", report.bleu), ("valid_wer", report.wer), ("valid_per", report.per)];
        measures.extend(named.iter().filter_map(|(n, v)| Some((n.to_string(), (*v)?))));
        let (decides, better) = match (self.recipe.evaluate.by.as_str(), report.bleu, report.wer) {
            ("bleu", Some(bleu), _) => (bleu, Direction::Higher),
            ("wer", _, Some(wer)) => (wer, Direction::Lower),
            _ => (loss, Direction::Lower),
        };
        let sample = self.groups.first().zip(texts.first());
        let sample = sample.map(|(group, text)| format!("{} → {text}", group.source));
        Ok(Evaluation::new(measures, decides, better).with_sample(sample))
    }

    fn save_rest(&self, config: &Value, folder: &Path) -> Result<()> {
        self.tokens.save(folder)?;
        generation::save(folder, &self.recipe.decode, config)
    }
}

fn examples(tokens: &Tokens, pairs: &[Pair]) -> Result<Vec<Example>> {
    let sources: Vec<&str> = pairs.iter().map(|pair| pair.source.as_str()).collect();
    let targets: Vec<&str> = pairs.iter().map(|pair| pair.target.as_str()).collect();
    let eos = tokens.source.special().need_eos()?;
    let (sources, targets) =
        (tokens.source.ids_batch(&sources)?, tokens.target.ids_batch(&targets)?);
    let one = |(mut source, target): (Vec<u32>, Vec<u32>)| {
        source.push(eos);
        Example { source, target }
    };
    Ok(sources.into_iter().zip(targets).map(one).collect())
}

fn mean_loss(logits: Tensor<3>, wanted: Tensor<1, Int>, smoothing: f32) -> Tensor<1> {
    let [b, t, v] = logits.dims();
    let options = CrossEntropy { smoothing, ignore: Some(IGNORED) };
    cross_entropy(logits.reshape([b * t, v]), wanted, options)
}

/// Computes the REINFORCE loss of hard attention, `−mean (R − b)·log π`: a sampled position becomes
/// more probable if the correct token got a higher likelihood than the baseline. `R` is the
/// log-likelihood of the correct token, `b` its mean over the batch (Xu et al. 2015 take a moving
/// average; the batch mean needs no state).
fn reinforce(log_prob: Tensor<2>, logits: Tensor<3>, wanted: Tensor<1, Int>) -> Tensor<1> {
    let [b, t, v] = logits.dims();
    let counts = wanted.clone().greater_equal_elem(0).float();
    let index = wanted.clamp_min(0).reshape([b * t, 1]);
    let reward = activation::log_softmax(logits.detach().reshape([b * t, v]), 1).gather(1, index);
    let reward: Tensor<1> = reward.reshape([b * t]) * counts.clone();
    let count = counts.clone().sum();
    let baseline = reward.clone().sum() / count.clone();
    let advantage = (reward - baseline.expand([b * t])) * counts;
    (advantage * log_prob.reshape([b * t])).sum().neg() / count
}

/// Returns the model configuration for these vocabularies.
fn table<'a>(recipe: &'a Recipe, tokens: &Tokens) -> Result<ModelTable<'a>> {
    let mut table = ModelTable::new(&recipe.model)?;
    let special = tokens.target.special();
    table.set("vocab_size", tokens.source.size());
    table.set("decoder_vocab_size", tokens.target.size());
    table.set("pad_token_id", special.need_pad()?);
    table.set("decoder_start_token_id", special.need_bos()?);
    table.set("eos_token_id", special.need_eos()?);
    if !tokens.shared {
        table.set_default("share_encoder_decoder_embeddings", false);
    }
    Ok(table)
}
