//! What the loop needs to know of a task.

use crate::data::Lengths;
use burn::tensor::{Gradients, Tensor};
use regard_attention::{AdamW, Mode};
use regard_models::Result;
use regard_models::checkpoint::Arrays;
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

    /// Keeps the gradients of a part of a batch.
    fn gather(&mut self, adamw: &mut AdamW, grads: Gradients);

    /// One step of the optimiser.
    fn update(&mut self, adamw: &mut AdamW, lr: f64, grads: Gradients);

    /// How good it is on what it does not learn from.
    fn evaluate(&self) -> Result<Evaluation>;

    /// Its weights by name.
    fn weights(&self) -> Arrays;

    /// Goes on with other weights.
    fn restore(&mut self, weights: Arrays) -> Result<()>;

    /// Whether a parameter of this name may go without a gradient.
    fn may_rest(&self, _name: &str) -> bool {
        false
    }

    /// Writes a folder that can be loaded without the run: configuration, weights, vocabulary.
    fn save(&self, folder: &Path) -> Result<()>;
}
