//! What the loop needs to know of a task.

use crate::data::Lengths;
use burn::tensor::Tensor;
use regard_attention::Mode;
use regard_models::checkpoint::{self, Precision};
use regard_models::{Network, Result};
use serde_json::Value;
use std::path::Path;

/// What a batch costs.
pub struct Loss {
    /// `[1]`: the mean over what counts, to be made small.
    pub value: Tensor<1>,
    /// What the mean is taken over.
    pub tokens: usize,
}

/// Which way a measure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// BLEU, accuracy.
    Higher,
    /// Loss, error rate.
    Lower,
}

/// How good a model is.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// By name, for the log.
    pub measures: Vec<(String, f64)>,
    /// The one that decides which model is best.
    pub decides: f64,
    /// Which way it is better.
    pub better: Better,
    /// A second measure, the lower the better: with one, a model is the best only if it is worse
    /// in neither, and there is hope as long as one of them gets better.
    pub also: Option<f64>,
    /// Something to look at.
    pub sample: Option<String>,
}

impl Evaluation {
    /// Measures, and the one of them that decides.
    pub fn new(measures: Vec<(String, f64)>, decides: f64, better: Better) -> Evaluation {
        Evaluation { measures, decides, better, also: None, sample: None }
    }

    /// With something to look at.
    pub fn with_sample(self, sample: Option<String>) -> Evaluation {
        Evaluation { sample, ..self }
    }

    /// Whether this is worse than an earlier one's decisive measure, or no number.
    pub fn is_worse(&self, earlier: f64) -> bool {
        match self.better {
            _ if self.decides.is_nan() => true,
            Better::Higher => self.decides < earlier,
            Better::Lower => self.decides > earlier,
        }
    }

    /// Whether this is better than an earlier one's decisive measure.
    pub fn beats(&self, best: Option<f64>) -> bool {
        match (best, self.better) {
            (_, _) if self.decides.is_nan() => false,
            (None, _) => true,
            (Some(best), Better::Higher) => self.decides > best,
            (Some(best), Better::Lower) => self.decides < best,
        }
    }
}

/// A model with something to learn from.
pub trait Learner {
    /// The model.
    fn network(&self) -> &dyn Network;

    /// The model, to be changed.
    fn network_mut(&mut self) -> &mut dyn Network;

    /// The lengths of all examples.
    fn lengths(&self) -> Vec<Lengths>;

    /// What these examples cost.
    fn loss(&self, examples: &[usize], mode: Mode) -> Loss;

    /// How many of the examples' tokens count, without computing anything.
    fn tokens(&self, examples: &[usize]) -> usize;

    /// What [`Learner::tokens`] counts, for whoever is told the speed.
    fn counts(&self) -> &'static str {
        "tokens"
    }

    /// How good it is on what it does not learn from.
    fn evaluate(&self) -> Result<Evaluation>;

    /// `config.json` of the model's folder.
    fn config(&self) -> Value {
        self.network().config()
    }

    /// Writes what a model's folder needs besides configuration and weights: its tokenizer, how it
    /// generates.
    fn save_rest(&self, folder: &Path) -> Result<()>;

    /// Writes a folder that can be loaded without the run.
    fn save(&self, folder: &Path) -> Result<()> {
        checkpoint::write(folder, &self.config(), &self.network().weights(), Precision::Single)?;
        self.save_rest(folder)
    }
}
