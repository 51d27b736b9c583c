//! Learning from texts that nobody labelled.

use super::Recipe;
use super::exam::{Asked, Cut, Exercise, Row};
use super::overlap::Overlap;
use crate::data::Lengths;
use crate::data::documents::Document;
use crate::examine;
use crate::recipe::known_text_keys;
use crate::train::taught::Taught;
use crate::train::{Better, Evaluation, Learner, Loss};
use burn::tensor::Device;
use regard_attention::Mode;
use regard_models::text::{self, Head};
use regard_models::{Error, Network, Result};
use serde_json::json;
use std::path::Path;

/// A model that is being pretrained.
pub struct Pretraining {
    taught: Taught,
    exercise: Exercise,
    train: Vec<Row>,
    valid: Vec<Row>,
    by_words: Vec<Overlap>,
}

impl Pretraining {
    /// Makes a model with first values for what a recipe wants.
    pub fn new(recipe: &Recipe, [train, valid]: [Vec<Document>; 2]) -> Result<Pretraining> {
        let tokenizer = recipe.tokenizer(&train)?;
        let exercise = Exercise::new(&tokenizer, recipe.hiding)?;
        let once = recipe.cut();
        let train = exercise.rows(&train, &tokenizer, Cut { copies: recipe.copies, ..once })?;
        let valid = exercise.rows(&valid, &tokenizer, once)?;
        for (part, rows) in [("learn from", &train), ("hold out", &valid)] {
            if rows.is_empty() {
                let message = format!("there is no pair of sentences to {part}: look at the data");
                return Err(Error::invalid(message));
            }
        }
        let device = Device::flex().autodiff();
        let mut config = recipe.model.clone();
        if !config.is_object() {
            return Err(Error::invalid("model: need a table with at least model_type"));
        }
        config["vocab_size"] = json!(tokenizer.size());
        config["pad_token_id"] = json!(tokenizer.special().pad);
        known_text_keys(&recipe.model, &config)?;
        let model = text::create(&config, Head::Pretraining, recipe.seed, &device)?;
        if let Some(longest) = model.longest().filter(|longest| *longest < recipe.context) {
            let asked = recipe.context;
            return Err(Error::invalid(format!("context: got {asked}, the model has {longest}")));
        }
        let mut taught = Taught::new(model, tokenizer, device);
        if let Some(vectors) = &recipe.vocabulary.vectors {
            taught.begin_with(vectors)?;
        }
        let by_words = Overlap::both(&train);
        Ok(Pretraining { taught, exercise, train, valid, by_words })
    }

    /// What some examples are in a step: the same for the same step of a run, and for every
    /// evaluation.
    pub fn drawn(&self, examples: &[usize], mode: Mode) -> Vec<Asked> {
        let one = |i: &usize| {
            let row = &self.train[*i];
            row.asked(self.exercise.hidden(row, *i, mode))
        };
        examples.iter().map(one).collect()
    }

    pub(super) fn about(&self) -> String {
        self.taught.about(self.train.len(), "pairs")
    }
}

impl Learner for Pretraining {
    fn network(&self) -> &dyn Network {
        &*self.taught.model
    }

    fn network_mut(&mut self) -> &mut dyn Network {
        &mut *self.taught.model
    }

    fn lengths(&self) -> Vec<Lengths> {
        self.train.iter().map(|row| Lengths { source: row.ids.len(), target: 0 }).collect()
    }

    fn loss(&self, examples: &[usize], mode: Mode) -> Loss {
        let rows: Vec<(usize, &Row)> = examples.iter().map(|i| (*i, &self.train[*i])).collect();
        let model = self.taught.model();
        let cost = self.exercise.cost(model, &rows, mode, &self.taught.device);
        let follows = cost.follows.expect("a head for pretraining");
        Loss { value: cost.words + follows, tokens: self.tokens(examples) }
    }

    fn tokens(&self, examples: &[usize]) -> usize {
        examples.iter().map(|i| self.train[*i].ids.len()).sum()
    }

    fn evaluate(&self) -> Result<Evaluation> {
        let model = self.taught.model().evaluation();
        let marks = self.exercise.mark(&*model, &self.valid, &self.by_words);
        let decides = marks.iter().find(|mark| mark.name == "loss").map_or(f64::NAN, |m| m.value);
        let measures = examine::measures(&marks);
        Ok(Evaluation { decides, measures, better: Better::Lower, also: None, sample: None })
    }

    fn save_rest(&self, folder: &Path) -> Result<()> {
        self.taught.save_tokenizer(folder)
    }
}
