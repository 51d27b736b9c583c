//! What all learners have in common whose model reads texts.

use crate::begin;
use crate::data::Lengths;
use crate::text::Tokenizer;
use crate::train::{Evaluation, Learner, Loss};
use burn::tensor::{Device, Gradients};
use regard_attention::{AdamW, Mode};
use regard_models::Result;
use regard_models::checkpoint::{self, Arrays, Precision};
use regard_models::text::{self, TextModel};
use std::path::Path;

/// A model that is being taught, with its tokenizer.
pub(crate) struct Taught {
    /// Absent only while the optimiser has it.
    model: Option<Box<dyn TextModel>>,
    pub tokenizer: Tokenizer,
    pub device: Device,
    /// How many words began with vectors of others.
    begun: Option<usize>,
}

impl Taught {
    pub fn new(model: Box<dyn TextModel>, tokenizer: Tokenizer, device: Device) -> Taught {
        Taught { model: Some(model), tokenizer, device, begun: None }
    }

    /// Gives those words that others have vectors for these vectors.
    pub fn begin_with(&mut self, vectors: &str) -> Result<()> {
        let known = begin::known(&self.tokenizer, vectors)?;
        let rows: Vec<(usize, &[f32])> = known.iter().map(|(id, row)| (*id, &row[..])).collect();
        self.model.as_mut().expect("it is only away within `update`").set_words(&rows)?;
        self.begun = Some(rows.len());
        Ok(())
    }

    pub fn model(&self) -> &dyn TextModel {
        self.model.as_deref().expect("it is only away within `update`")
    }

    /// So many examples of a kind, and the sizes.
    pub fn about(&self, count: usize, what: &str) -> String {
        let (words, parameters) = (self.tokenizer.size(), self.model().parameters());
        let begun = self.begun.map(|n| format!(" ({n} with vectors, {} without)", words - n));
        format!(
            "{count} {what}, a vocabulary of {words}{}, {:.2} M parameters",
            begun.unwrap_or_default(),
            parameters as f64 / 1e6,
        )
    }
}

/// What a task says of its learning; [`Learner`] follows.
pub(crate) trait Teaching {
    fn taught(&self) -> &Taught;
    fn taught_mut(&mut self) -> &mut Taught;
    fn lengths(&self) -> Vec<Lengths>;
    fn loss(&self, examples: &[usize], mode: Mode) -> Loss;
    fn tokens(&self, examples: &[usize]) -> usize;
    /// What `tokens` counts.
    fn counts(&self) -> &'static str {
        "tokens"
    }
    fn evaluate(&self) -> Result<Evaluation>;
    /// Writes what belongs to a model's folder besides the model and its tokenizer.
    fn save_more(&self, _folder: &Path) -> Result<()> {
        Ok(())
    }
}

impl<T: Teaching> Learner for T {
    fn lengths(&self) -> Vec<Lengths> {
        Teaching::lengths(self)
    }

    fn loss(&self, examples: &[usize], mode: Mode) -> Loss {
        Teaching::loss(self, examples, mode)
    }

    fn tokens(&self, examples: &[usize]) -> usize {
        Teaching::tokens(self, examples)
    }

    fn counts(&self) -> &'static str {
        Teaching::counts(self)
    }

    fn gather(&mut self, adamw: &mut AdamW, grads: Gradients) {
        self.taught().model().gather(adamw, grads);
    }

    fn update(&mut self, adamw: &mut AdamW, lr: f64, grads: Gradients) {
        let taught = self.taught_mut();
        let model = taught.model.take().expect("it is only away within `update`");
        taught.model = Some(model.update(adamw, lr, grads));
    }

    fn evaluate(&self) -> Result<Evaluation> {
        Teaching::evaluate(self)
    }

    fn weights(&self) -> Arrays {
        self.taught().model().weights()
    }

    fn restore(&mut self, weights: Arrays) -> Result<()> {
        let taught = self.taught_mut();
        let config = taught.model().config();
        taught.model = Some(text::load(&config, weights, None, 0, &taught.device)?);
        Ok(())
    }

    fn may_rest(&self, name: &str) -> bool {
        self.taught().model().may_rest(name)
    }

    fn save(&self, folder: &Path) -> Result<()> {
        let (taught, weights) = (self.taught(), self.weights());
        checkpoint::write(folder, &taught.model().config(), &weights, Precision::Single)?;
        taught.tokenizer.save(folder.join("tokenizer.json"))?;
        self.save_more(folder)
    }
}
