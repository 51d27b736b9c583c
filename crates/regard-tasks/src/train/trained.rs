//! A model in training with its objective, for every task.

use super::{BatchLoss, Evaluation, Learner};
use crate::data::Lengths;
use burn::tensor::Device;
use regard_attention::Mode;
use regard_models::adapter::{self, AdapterConfig};
use regard_models::checkpoint::{self, Arrays, Precision};
use regard_models::{Capability, Network, Result};
use serde_json::Value;
use std::path::Path;

/// The training objective of a task: its examples, their loss, and how a model is evaluated.
pub trait Objective {
    /// The kind of network that is trained.
    type Model: Capability + ?Sized;

    /// Returns the lengths of all training examples, for batching.
    fn lengths(&self) -> Vec<Lengths>;

    /// Computes the loss of these examples; tensors are on the training device.
    fn loss(&self, model: &Self::Model, examples: &[usize], mode: Mode) -> BatchLoss;

    /// Returns the number of tokens that the loss of these examples averages over, without
    /// computing it.
    fn tokens(&self, examples: &[usize]) -> usize;

    /// Returns the unit that [`Objective::tokens`] counts, for reports of the speed.
    fn counts(&self) -> &'static str {
        "tokens"
    }

    /// Evaluates a model on the validation set.
    fn evaluate(&self, model: &Self::Model) -> Result<Evaluation>;

    /// Adds to `config.json` of the model's folder.
    fn configure(&self, _config: &mut Value) {}

    /// Writes the files of a model's folder besides configuration and weights: tokenizer,
    /// generation options.
    fn save_rest(&self, _config: &Value, _folder: &Path) -> Result<()> {
        Ok(())
    }
}

/// A model in training, and its objective.
pub struct Trained<O: Objective> {
    model: Box<O::Model>,
    objective: O,
    /// The adapter that is trained in place of the weights.
    adapter: Option<AdapterConfig>,
}

/// Returns the device of models in training, with autodiff.
pub(crate) fn device() -> Device {
    Device::flex().autodiff()
}

impl<O: Objective> Trained<O> {
    /// Creates a training model; `model` must be on the training device ([`device`]).
    pub(crate) fn new(model: Box<O::Model>, objective: O) -> Trained<O> {
        Trained { model, objective, adapter: None }
    }

    /// Freezes the model, and trains an adapter of it. Returns the number of its parameters too.
    ///
    /// # Errors
    /// If the adapter does not fit the model.
    pub(crate) fn adapted(mut self, config: AdapterConfig, seed: u64) -> Result<(Self, usize)> {
        let count = self.model.network_mut().adapt(&config, seed)?;
        self.adapter = Some(config);
        Ok((self, count))
    }

    /// Returns the model.
    pub fn model(&self) -> &O::Model {
        &self.model
    }

    /// Returns the objective.
    pub fn objective(&self) -> &O {
        &self.objective
    }

    /// Returns the objective, mutable.
    pub(crate) fn objective_mut(&mut self) -> &mut O {
        &mut self.objective
    }

    /// Returns the number of parameters in millions.
    pub(crate) fn millions(&self) -> f64 {
        self.network().parameters() as f64 / 1e6
    }
}

impl<O: Objective> Learner for Trained<O> {
    fn network(&self) -> &dyn Network {
        self.model.network()
    }

    fn network_mut(&mut self) -> &mut dyn Network {
        self.model.network_mut()
    }

    fn lengths(&self) -> Vec<Lengths> {
        self.objective.lengths()
    }

    fn loss(&self, examples: &[usize], mode: Mode) -> BatchLoss {
        self.objective.loss(&self.model, examples, mode)
    }

    fn tokens(&self, examples: &[usize]) -> usize {
        self.objective.tokens(examples)
    }

    fn counts(&self) -> &'static str {
        self.objective.counts()
    }

    fn evaluate(&self) -> Result<Evaluation> {
        self.objective.evaluate(&self.model)
    }

    fn read(&self, folder: &Path) -> Result<Arrays> {
        match self.adapter {
            Some(_) => checkpoint::read_arrays(&folder.join(adapter::WEIGHTS)),
            None => checkpoint::read_weights(folder),
        }
    }

    fn restore(&mut self, trained: Arrays) -> Result<()> {
        match self.adapter {
            Some(_) => self.network_mut().restore_adapter(trained),
            None => self.network_mut().restore(trained),
        }
    }

    fn save(&self, folder: &Path) -> Result<()> {
        let (config, single) = (Learner::config(self), Precision::Single);
        match &self.adapter {
            None => checkpoint::write(folder, &config, &self.network().weights(), single)?,
            Some(adapter) => {
                let (updates, by_inputs) = self.network().adapter();
                adapter::write(folder, adapter, &updates, by_inputs)?;
                checkpoint::write_config(folder, &config, single)?;
            }
        }
        self.save_rest(folder)
    }

    fn config(&self) -> Value {
        let mut config = self.network().config();
        self.objective.configure(&mut config);
        config
    }

    fn save_rest(&self, folder: &Path) -> Result<()> {
        self.objective.save_rest(&self.config(), folder)
    }
}
