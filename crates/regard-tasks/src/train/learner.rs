//! Interface between the training loop and a task.

use crate::data::Lengths;
use burn::tensor::Tensor;
use regard_attention::Mode;
use regard_models::checkpoint::{self, Arrays, Precision};
use regard_models::{Network, Result};
use serde_json::Value;
use std::path::Path;

/// Loss of a batch.
pub struct BatchLoss {
    /// Mean loss over `tokens`, shape `[1]`.
    pub value: Tensor<1>,
    /// Number of tokens (or other units, see [`Learner::counts`]) the mean is taken over.
    pub tokens: usize,
}

/// Direction in which a metric improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Higher is better: BLEU, accuracy.
    Higher,
    /// Lower is better: loss, error rate.
    Lower,
}

/// Result of an evaluation on the validation set.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// Metrics by name, for the log.
    pub measures: Vec<(String, f64)>,
    /// Value of the model selection metric.
    pub decides: f64,
    /// Direction in which the model selection metric improves.
    pub better: Direction,
    /// Second model selection metric, lower is better. If given, a model is the best only if
    /// neither metric is worse than before, and early stopping counts an improvement of either.
    pub also: Option<f64>,
    /// Example output to print.
    pub sample: Option<String>,
}

impl Evaluation {
    /// Creates an evaluation from its metrics and the model selection metric.
    pub fn new(measures: Vec<(String, f64)>, decides: f64, better: Direction) -> Evaluation {
        Evaluation { measures, decides, better, also: None, sample: None }
    }

    /// Sets the example output.
    pub fn with_sample(self, sample: Option<String>) -> Evaluation {
        Evaluation { sample, ..self }
    }

    /// Whether the model selection metric is worse than an earlier value, or NaN.
    pub fn is_worse(&self, earlier: f64) -> bool {
        match self.better {
            _ if self.decides.is_nan() => true,
            Direction::Higher => self.decides < earlier,
            Direction::Lower => self.decides > earlier,
        }
    }

    /// Whether the model selection metric is better than an earlier value (`None`: any number is).
    pub fn beats(&self, best: Option<f64>) -> bool {
        match (best, self.better) {
            (_, _) if self.decides.is_nan() => false,
            (None, _) => true,
            (Some(best), Direction::Higher) => self.decides > best,
            (Some(best), Direction::Lower) => self.decides < best,
        }
    }
}

/// A model with its training data and evaluation.
pub trait Learner {
    /// Returns the model.
    fn network(&self) -> &dyn Network;

    /// Returns the model mutably.
    fn network_mut(&mut self) -> &mut dyn Network;

    /// Returns the lengths of all training examples, for batching.
    fn lengths(&self) -> Vec<Lengths>;

    /// Computes the loss of the examples with these indices.
    fn loss(&self, examples: &[usize], mode: Mode) -> BatchLoss;

    /// Returns the number of tokens that the loss of these examples averages over, without
    /// computing it.
    fn tokens(&self, examples: &[usize]) -> usize;

    /// Returns the unit that [`Learner::tokens`] counts, for reports of the speed.
    fn counts(&self) -> &'static str {
        "tokens"
    }

    /// Evaluates the model on the validation set.
    fn evaluate(&self) -> Result<Evaluation>;

    /// Returns `config.json` of the model's folder.
    fn config(&self) -> Value {
        self.network().config()
    }

    /// Writes the files of a model's folder besides configuration and weights: tokenizer,
    /// generation options.
    fn save_rest(&self, folder: &Path) -> Result<()>;

    /// Reads what is trained from a folder that [`Learner::save`] wrote.
    fn read(&self, folder: &Path) -> Result<Arrays> {
        checkpoint::read_weights(folder)
    }

    /// Replaces what is trained.
    fn restore(&mut self, trained: Arrays) -> Result<()> {
        self.network_mut().restore(trained)
    }

    /// Writes a folder that can be loaded without the run.
    fn save(&self, folder: &Path) -> Result<()> {
        checkpoint::write(folder, &self.config(), &self.network().weights(), Precision::Single)?;
        self.save_rest(folder)
    }
}
