//! Learning to go on with a text.

use super::{Recipe, Writer};
use crate::data::running::tokens;
use crate::data::{Lengths, Running};
use crate::decode::generation;
use crate::examine::{self, Mark};
use crate::generate::filling::{self, Gap, Passage};
use crate::metrics::Perplexity;
use crate::recipe::known_text_keys;
use crate::text::Tokenizer;
use crate::train::taught::Taught;
use crate::train::{Better, Evaluation, Learner, Loss};
use burn::tensor::{Device, Int, Tensor, TensorData};
use regard_attention::Mode;
use regard_attention::ops::{CrossEntropy, cross_entropy};
use regard_kernels::rng::Stream;
use regard_models::text::{self, Head, TextModel, Texts};
use regard_models::{Error, Network, Result};
use serde_json::{Value, json};
use std::path::Path;

/// Where a step's shift comes from, among the sites of the generator.
const SHIFT: u64 = 0x6c61_6e67_7561_6765;
/// Tokens that are evaluated at a time.
const EVALUATED: usize = 8192;

/// A language model that is being trained.
pub struct Language {
    recipe: Recipe,
    taught: Taught,
    train: Vec<u32>,
    valid: Vec<u32>,
    /// Spans of the held-out text to fill.
    gaps: Vec<Gap>,
}

impl Language {
    /// Makes a model with first values for what a recipe wants.
    pub fn new(recipe: &Recipe, text: &Running) -> Result<Language> {
        recipe.decode.check()?;
        let tokenizer = recipe.vocabulary.train(&text.train)?;
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
        let device = Device::flex().autodiff();
        let config = config(recipe, &tokenizer)?;
        known_text_keys(&recipe.model, &config)?;
        let model = text::create(&config, Head::Words, recipe.seed, &device)?;
        if model.decode(&[&[]]).is_none() {
            let kind = &config["model_type"];
            return Err(Error::invalid(format!("model_type: {kind} does not go on with a text")));
        }
        if let Some(longest) = model.longest().filter(|longest| *longest < recipe.context) {
            let asked = recipe.context;
            return Err(Error::invalid(format!("context: got {asked}, the model has {longest}")));
        }
        let taught = Taught::new(model, tokenizer, device);
        Ok(Language { recipe: recipe.clone(), taught, train, valid, gaps })
    }

    pub(super) fn about(&self) -> String {
        self.taught.about(self.train.len(), "tokens")
    }

    /// Pieces that the training text has, whatever the shift.
    fn pieces(&self) -> usize {
        let context = self.recipe.context;
        (self.train.len().saturating_sub(context) / context).max(1)
    }
}

/// The mean cost of each token of some pieces of a text, each `context + 1` long or less.
fn cost(
    model: &dyn TextModel,
    pieces: &[&[u32]],
    (mode, smoothing): (Mode, f32),
    device: &Device,
) -> Tensor<1> {
    let mut texts = Texts::new();
    let mut wanted: Vec<i64> = vec![];
    for piece in pieces {
        texts.push(&piece[..piece.len() - 1]);
        wanted.extend(piece[1..].iter().map(|id| i64::from(*id)));
    }
    let logits = model.forward(&texts, None, mode).logits.expect("a head for words");
    let count = wanted.len();
    let wanted = Tensor::<1, Int>::from_data(TensorData::new(wanted, [count]), device);
    cross_entropy(logits, wanted, CrossEntropy { smoothing, ignore: None })
}

/// How likely a model finds a text, cut into pieces of `context` tokens. The first token of all
/// is not told from anything, and does not count.
pub(super) fn likelihood(model: &dyn TextModel, ids: &[u32], context: usize) -> Perplexity {
    let starts: Vec<usize> = (0..ids.len().saturating_sub(1)).step_by(context).collect();
    let piece = |start: &usize| &ids[*start..(start + context + 1).min(ids.len())];
    let mut all = Perplexity::new();
    for batch in starts.chunks((EVALUATED / context).max(1)) {
        let pieces: Vec<&[u32]> = batch.iter().map(piece).collect();
        let tokens: usize = pieces.iter().map(|piece| piece.len() - 1).sum();
        let mean = cost(model, &pieces, (Mode::Eval, 0.0), &Device::flex()).into_scalar::<f32>();
        all.add_mean(f64::from(mean), tokens as u64);
    }
    all
}

/// How far all pieces are moved in a step, so that a text is cut everywhere in time.
fn shift(mode: Mode, room: usize) -> usize {
    let Mode::Train { seed, step } = mode else { return 0 };
    let share = f64::from(Stream::new(seed, step, SHIFT).uniform(0));
    ((share * (room + 1) as f64) as usize).min(room)
}

impl Learner for Language {
    fn network(&self) -> &dyn Network {
        &*self.taught.model
    }

    fn network_mut(&mut self) -> &mut dyn Network {
        &mut *self.taught.model
    }

    fn lengths(&self) -> Vec<Lengths> {
        let context = self.recipe.context;
        vec![Lengths { source: context, target: context }; self.pieces()]
    }

    fn loss(&self, examples: &[usize], mode: Mode) -> Loss {
        let context = self.recipe.context;
        let room = self.train.len() - 1 - self.pieces() * context;
        let shift = shift(mode, room.min(context - 1));
        let piece = |i: &usize| &self.train[i * context + shift..][..context + 1];
        let pieces: Vec<&[u32]> = examples.iter().map(piece).collect();
        let smoothing = if mode == Mode::Eval { 0.0 } else { self.recipe.train.label_smoothing };
        let value = cost(self.taught.model(), &pieces, (mode, smoothing), &self.taught.device);
        Loss { value, tokens: self.tokens(examples) }
    }

    fn tokens(&self, examples: &[usize]) -> usize {
        examples.len() * self.recipe.context
    }

    fn evaluate(&self) -> Result<Evaluation> {
        let model = self.taught.model().evaluation();
        let loss = likelihood(&*model, &self.valid, self.recipe.context).loss();
        let mut marks = vec![Mark { name: "loss", value: loss, unit: "nats a token" }];
        marks.extend(filling::marks(&*model, &self.gaps)?);
        let measures = examine::measures(&marks);
        let mut options = self.recipe.decode.clone();
        options.max_new_tokens = Some(options.max_new_tokens.unwrap_or(60).min(60));
        let writer = Writer::new(model, self.taught.tokenizer.clone(), options.clone())?;
        // Something to look at, and no reason to stop a run.
        let written = writer.generate("", &options, 0, &[], &mut |_| {}).unwrap_or_default();
        let sample = written.first().map(|text| text.text.replace('\n', " / "));
        Ok(Evaluation { measures, decides: loss, better: Better::Lower, also: None, sample })
    }

    fn save_rest(&self, folder: &Path) -> Result<()> {
        self.taught.save_tokenizer(folder)?;
        generation::save(folder, &self.recipe.decode, &self.config())
    }
}

/// `config.json` of what a recipe wants, for this vocabulary.
fn config(recipe: &Recipe, tokenizer: &Tokenizer) -> Result<Value> {
    let mut config = recipe.model.clone();
    let Value::Object(map) = &mut config else {
        return Err(Error::invalid("model: need a table with at least model_type"));
    };
    map.insert("vocab_size".into(), json!(tokenizer.size()));
    map.entry("n_positions").or_insert(json!(recipe.context));
    // A piece of a text has no beginning and no end.
    map.insert("bos_token_id".into(), Value::Null);
    map.insert("eos_token_id".into(), Value::Null);
    Ok(config)
}
