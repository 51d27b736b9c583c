//! Training objective of causal language models.

use super::pretrained::Pretrained;
use super::{Generation, Generator, PromptOptions, Recipe};
use crate::data::running::tokens;
use crate::data::{Lengths, TextCorpus};
use crate::decode::{GenerationConfig, generation};
use crate::evaluation::{self, Metric};
use crate::generate::filling::{self, Gap, Passage};
use crate::metrics::Perplexity;
use crate::recipe::ModelTable;
use crate::text::Tokenizer;
use crate::train::pretrained_embeddings::Lexicon;
use crate::train::trained::device;
use crate::train::{BatchLoss, Direction, Evaluation, Objective, Trained};
use burn::tensor::{Device, Int, Tensor, TensorData};
use regard_attention::Mode;
use regard_attention::ops::{CrossEntropy, cross_entropy};
use regard_kernels::rng::Stream;
use regard_models::text::{self, Head, TextModel, Texts};
use regard_models::{Capability, Error, Result};
use serde_json::Value;
use std::path::Path;

/// Random stream of the shift of a step.
const SHIFT: u64 = 0x6c61_6e67_7561_6765;
/// Tokens per evaluation batch.
const EVALUATED: usize = 8192;

/// Causal language modelling objective.
pub struct Language {
    recipe: Recipe,
    lexicon: Lexicon,
    train: Vec<u32>,
    valid: Vec<u32>,
    /// Masked spans of the validation text to fill.
    gaps: Vec<Gap>,
    /// The model that is fine-tuned, if it is not trained from scratch.
    origin: Option<Pretrained>,
    /// Number of parameters of the adapter that is trained.
    updated: usize,
}

impl Language {
    /// Creates a model with initial weights as a recipe configures it.
    pub fn new(recipe: &Recipe, text: &TextCorpus) -> Result<Trained<Language>> {
        recipe.decode.check()?;
        let origin = Pretrained::of(recipe)?;
        let tokenizer = match (&origin, &recipe.vocabulary) {
            (Some(origin), _) => origin.tokenizer()?,
            (None, Some(vocabulary)) => vocabulary.train(&text.train)?,
            (None, None) => return Err(Error::invalid("vocabulary: need one, or `from`")),
        };
        let held_out = tokens(&text.valid, &tokenizer)?;
        let passages = Passage::running(&held_out, recipe.context);
        let gaps = recipe.filling.map_or(vec![], |filling| filling.gaps(&passages));
        let (train, valid) = (tokens(&text.train, &tokenizer)?.concat(), held_out.concat());
        for (part, ids) in [("training", &train), ("validation", &valid)] {
            if ids.len() <= recipe.context {
                return Err(Error::invalid(format!(
                    "the {part} text has {} tokens, need more than context = {}",
                    ids.len(),
                    recipe.context
                )));
            }
        }
        let mut model = match &origin {
            Some(origin) => origin.model(recipe, &tokenizer)?,
            None => table(recipe, &tokenizer)?.create_text(Head::Words, recipe.seed)?,
        };
        if model.decode(&[&[]]).is_none() {
            let kind = &model.config()["model_type"];
            return Err(Error::invalid(format!("model_type: {kind} does not generate text")));
        }
        if let Some(longest) = model.longest().filter(|longest| *longest < recipe.context) {
            let asked = recipe.context;
            return Err(Error::invalid(format!(
                "context: got {asked}, need at most {longest}, the longest text of the model \
                 (n_positions)"
            )));
        }
        let lexicon = Lexicon::new(tokenizer, &mut *model, None)?;
        let recipe = recipe.clone();
        let adapter = match (&origin, &recipe.lora) {
            (Some(origin), Some(lora)) => Some(origin.adapter(lora)?),
            _ => None,
        };
        let seed = recipe.seed;
        let objective = Language { recipe, lexicon, train, valid, gaps, origin, updated: 0 };
        let mut trained = Trained::new(model, objective);
        if let Some(adapter) = adapter {
            let updated;
            let told = |e: Error| Error::invalid(format!("lora.{e}"));
            (trained, updated) = trained.adapted(adapter, seed).map_err(told)?;
            trained.objective_mut().updated = updated;
        }
        Ok(trained)
    }

    pub(super) fn about(&self, millions: f64) -> String {
        let about = self.lexicon.about(self.train.len(), "tokens", millions);
        match &self.recipe.lora {
            Some(lora) => format!(
                "{about}, of which {:.2} M are trained (LoRA of rank {})",
                self.updated as f64 / 1e6,
                lora.rank
            ),
            None => about,
        }
    }

    /// Returns the number of pieces of the training text, for any shift.
    fn pieces(&self) -> usize {
        let context = self.recipe.context;
        (self.train.len().saturating_sub(context) / context).max(1)
    }
}

/// Returns the mean cross-entropy per token of pieces of a text, each at most `context + 1` long.
fn cost(
    model: &dyn TextModel,
    pieces: &[&[u32]],
    mode: Mode,
    smoothing: f32,
    device: &Device,
) -> Tensor<1> {
    let mut texts = Texts::new();
    let mut wanted: Vec<i64> = vec![];
    for piece in pieces {
        texts.push(&piece[..piece.len() - 1]);
        wanted.extend(piece[1..].iter().map(|id| i64::from(*id)));
    }
    let logits = model.forward(&texts, None, mode).logits.expect("a language-model head");
    let count = wanted.len();
    let wanted = Tensor::<1, Int>::from_data(TensorData::new(wanted, [count]), device);
    cross_entropy(logits, wanted, CrossEntropy { smoothing, ignore: None })
}

/// Computes the likelihood of a text, cut into pieces of `context` tokens. The very first token has
/// no context and does not count.
pub(super) fn likelihood(model: &dyn TextModel, ids: &[u32], context: usize) -> Perplexity {
    let starts: Vec<usize> = (0..ids.len().saturating_sub(1)).step_by(context).collect();
    let piece = |start: &usize| &ids[*start..(start + context + 1).min(ids.len())];
    let mut all = Perplexity::new();
    for batch in starts.chunks((EVALUATED / context).max(1)) {
        let pieces: Vec<&[u32]> = batch.iter().map(piece).collect();
        let tokens: usize = pieces.iter().map(|piece| piece.len() - 1).sum();
        let mean = cost(model, &pieces, Mode::Eval, 0.0, &Device::flex()).into_scalar::<f32>();
        all.add_mean(f64::from(mean), tokens as u64);
    }
    all
}

/// Draws the offset by which all pieces are shifted in a step, so that cut positions vary.
fn shift(mode: Mode, room: usize) -> usize {
    let Mode::Train { seed, step } = mode else { return 0 };
    let share = f64::from(Stream::new(seed, step, SHIFT).uniform(0));
    ((share * (room + 1) as f64) as usize).min(room)
}

impl Objective for Language {
    type Model = dyn TextModel;

    fn lengths(&self) -> Vec<Lengths> {
        let context = self.recipe.context;
        vec![Lengths { source: context, target: context }; self.pieces()]
    }

    fn loss(&self, model: &dyn TextModel, examples: &[usize], mode: Mode) -> BatchLoss {
        let context = self.recipe.context;
        let room = self.train.len() - 1 - self.pieces() * context;
        let shift = shift(mode, room.min(context - 1));
        let piece = |i: &usize| &self.train[i * context + shift..][..context + 1];
        let pieces: Vec<&[u32]> = examples.iter().map(piece).collect();
        let smoothing = if mode == Mode::Eval { 0.0 } else { self.recipe.train.label_smoothing };
        let value = cost(model, &pieces, mode, smoothing, &device());
        BatchLoss { value, tokens: self.tokens(examples) }
    }

    fn tokens(&self, examples: &[usize]) -> usize {
        examples.len() * self.recipe.context
    }

    fn evaluate(&self, model: &dyn TextModel) -> Result<Evaluation> {
        let model = model.evaluation();
        let loss = likelihood(&*model, &self.valid, self.recipe.context).loss();
        let mut marks = vec![Metric { name: "loss", value: loss, unit: "nats per token" }];
        marks.extend(filling::marks(&*model, &self.gaps)?);
        let measures = evaluation::measures(&marks);
        let mut options = self.recipe.decode.clone();
        options.max_new_tokens = Some(options.max_new_tokens.unwrap_or(60).min(60));
        let defaults = GenerationConfig { options: options.clone(), ..Default::default() };
        let writer = Generator::new(model, self.lexicon.tokenizer.clone(), defaults)?;
        // The sample is for display only; a failure must not stop the run.
        let prompt = writer.prompt("", PromptOptions::default());
        let sample = |prompt| writer.generate(&prompt, &Generation::new(&options), &mut |_| true);
        let written = prompt.and_then(sample).unwrap_or_default();
        let sample = written.first().map(|text| text.text.replace('\n', " / "));
        Ok(Evaluation::new(measures, loss, Direction::Lower).with_sample(sample))
    }

    fn save_rest(&self, config: &Value, folder: &Path) -> Result<()> {
        self.lexicon.save(folder)?;
        if let Some(origin) = &self.origin {
            origin.save_rest(folder)?;
            if origin.save_options(folder)? {
                return generation::overlay(folder, &self.recipe.decode);
            }
        }
        generation::save(folder, &self.recipe.decode, config)
    }
}

/// Returns the model configuration for this vocabulary.
fn table<'a>(recipe: &'a Recipe, tokenizer: &Tokenizer) -> Result<ModelTable<'a>> {
    let mut table = ModelTable::new(&recipe.model)?;
    table.set("vocab_size", tokenizer.size());
    // The key of the longest text depends on the family.
    let known = text::keys(&recipe.model)?;
    let key = ["max_position_embeddings", "n_positions"].into_iter().find(|x| known.contains(x));
    table.set_default(key.unwrap_or("n_positions"), recipe.context);
    // A piece of a text has no beginning and no end token.
    table.set("bos_token_id", Value::Null);
    table.set("eos_token_id", Value::Null);
    Ok(table)
}
