//! Training objective of permutation language modelling.

use super::cost::{PermutedExample, cost, draw_example};
use super::evaluate::{PermuteEvaluator, PermuteMetrics};
use super::sequences::{Form, Sequences};
use super::{Corpus, Recipe};
use crate::data::Lengths;
use crate::data::running::tokens;
use crate::evaluation;
use crate::recipe::ModelTable;
use crate::text::Tokenizer;
use crate::train::pretrained_embeddings::Lexicon;
use crate::train::trained::device;
use crate::train::{BatchLoss, Direction, Evaluation, Objective, Trained};
use regard_attention::Mode;
use regard_models::text::{Head, TextModel};
use regard_models::{Capability, Error, Result};
use serde_json::Value;
use std::path::Path;

/// Permutation language modelling objective.
pub struct Permutation {
    recipe: Recipe,
    lexicon: Lexicon,
    train: Sequences,
    /// Maximum number of tokens of each training example.
    lengths: Vec<usize>,
    valid: PermuteEvaluator,
}

impl Permutation {
    /// Creates a model with initial weights as a recipe configures it.
    pub fn new(recipe: &Recipe, corpus: &Corpus) -> Result<Trained<Permutation>> {
        let tokenizer = recipe.tokenizer(corpus)?;
        let [train, valid] = sequences(recipe, corpus, &tokenizer)?;
        for (part, sequences) in [("training", &train), ("validation", &valid)] {
            if sequences.len() == 0 {
                let message = format!("data: the {part} part has no text");
                return Err(Error::invalid(message));
            }
        }
        let table = table(recipe, &tokenizer)?;
        let mut model = table.create_text(Head::Words, recipe.seed)?;
        if model.permuting().is_none() {
            let kind = table.get("model_type");
            let message = format!("model_type: {kind} has no query stream; need xlnet");
            return Err(Error::invalid(message));
        }
        let valid = PermuteEvaluator::new(recipe, valid);
        let lexicon = Lexicon::new(tokenizer, &mut *model, recipe.vocabulary.vectors.as_deref())?;
        let lengths = train.lengths();
        let objective = Permutation { recipe: recipe.clone(), lexicon, train, lengths, valid };
        Ok(Trained::new(model, objective))
    }

    pub(super) fn about(&self, millions: f64) -> String {
        self.lexicon.about(self.train.len(), "sequences", millions)
    }

    fn drawn(&self, examples: &[usize], mode: Mode) -> Vec<PermutedExample> {
        let draw = |number: &usize| draw_example(&self.recipe, &self.train, *number, mode);
        examples.iter().map(draw).collect()
    }
}

impl Trained<Permutation> {
    /// Returns examples as a training step sees them: the same for the same step of a run, and for
    /// every evaluation.
    pub fn drawn(&self, examples: &[usize], mode: Mode) -> Vec<PermutedExample> {
        self.objective().drawn(examples, mode)
    }
}

impl Objective for Permutation {
    type Model = dyn TextModel;

    fn lengths(&self) -> Vec<Lengths> {
        self.lengths.iter().map(|source| Lengths { source: *source, target: 0 }).collect()
    }

    fn loss(&self, model: &dyn TextModel, examples: &[usize], mode: Mode) -> BatchLoss {
        let drawn = self.drawn(examples, mode);
        let cost = cost(&self.recipe, model, &drawn, mode, &device());
        BatchLoss { value: cost.mean, tokens: self.tokens(examples) }
    }

    fn tokens(&self, examples: &[usize]) -> usize {
        examples.iter().map(|i| self.lengths[*i]).sum()
    }

    fn evaluate(&self, model: &dyn TextModel) -> Result<Evaluation> {
        let model = model.evaluation();
        let PermuteMetrics { all, first } = self.valid.mark(&self.recipe, &*model)?;
        let shown = first.map(|said| self.valid.shown(&said, &self.lexicon.tokenizer));
        let (measures, loss) = (evaluation::measures(&all), all[0].value);
        let sample = shown.transpose()?;
        Ok(Evaluation::new(measures, loss, Direction::Lower).with_sample(sample))
    }

    fn save_rest(&self, _config: &Value, folder: &Path) -> Result<()> {
        self.lexicon.save(folder)
    }
}

/// Returns the training and the validation sequences.
pub(super) fn sequences(
    recipe: &Recipe,
    corpus: &Corpus,
    tokenizer: &Tokenizer,
) -> Result<[Sequences; 2]> {
    let form = form(recipe, corpus, tokenizer)?;
    match corpus {
        Corpus::Running(text) => {
            let documents = |texts: &[String]| -> Result<Sequences> {
                Ok(Sequences::documents(tokens(texts, tokenizer)?, form))
            };
            Ok([documents(&text.train)?, documents(&text.valid)?])
        }
        Corpus::Pairs(parts) => {
            let ids = |text: &str| -> Result<Vec<u32>> { Ok(tokenizer.encode(text)?.ids) };
            let [train, valid] = parts.each_ref().map(|pairs| -> Result<Sequences> {
                let pairs = pairs.iter().map(|pair| Ok([ids(&pair.source)?, ids(&pair.target)?]));
                Ok(Sequences::pairs(pairs.collect::<Result<_>>()?, form))
            });
            Ok([train?, valid?])
        }
    }
}

fn form(recipe: &Recipe, corpus: &Corpus, tokenizer: &Tokenizer) -> Result<Form> {
    let Recipe { context, memory, .. } = *recipe;
    let parts = match (corpus, recipe.parts) {
        (Corpus::Running(_), None) => return Ok(Form { context, memory, parts: None }),
        (_, parts) => parts.unwrap_or_default(),
    };
    if memory > 0 && matches!(corpus, Corpus::Pairs(_)) {
        let message = format!("memory: got {memory}, need 0: a pair has no preceding text");
        return Err(Error::invalid(message));
    }
    // Vocabularies without BERT's special tokens have BOS and EOS instead.
    let special = tokenizer.special();
    let around = special.sep.or(special.eos).zip(special.cls.or(special.bos));
    let (sep, cls) = around.ok_or_else(|| {
        Error::invalid("vocabulary: sequences of two parts need the special tokens SEP and CLS")
    })?;
    Ok(Form { context, memory, parts: Some((parts, [sep, cls])) })
}

/// Returns the model configuration for this vocabulary.
fn table<'a>(recipe: &'a Recipe, tokenizer: &Tokenizer) -> Result<ModelTable<'a>> {
    let mut table = ModelTable::new(&recipe.model)?;
    let special = tokenizer.special();
    table.set("vocab_size", tokenizer.size());
    table.set("pad_token_id", special.pad);
    table.set("bos_token_id", special.bos);
    table.set("eos_token_id", special.eos);
    table.set("mem_len", (recipe.memory > 0).then_some(recipe.memory));
    Ok(table)
}
