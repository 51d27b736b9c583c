//! What every model of a type of its own can do, whatever it reads. The model's file says how it
//! is made, what its weights are called and what it is; the rest follows.

use crate::checkpoint::{Arrays, Binder, Fit};
use crate::{Error, Result, memory};
use burn::module::Module;
use burn::tensor::{Device, Gradients};
use regard_attention::{AdamW, Init};
use serde_json::Value;
use std::path::Path;

/// A model that is one type: [`Gat`](crate::gat::Gat), [`Vit`](crate::vit::Vit),
/// [`Speech`](crate::speech::Speech), [`PointerNet`](crate::pointer::PointerNet),
/// [`PointerGenerator`](crate::copying::PointerGenerator).
pub trait Model: Sized {
    /// Its names in `config.json`.
    fn types() -> &'static [&'static str];

    /// Whether a configuration is of such a model.
    fn is_of(config: &Value) -> bool {
        Self::types().iter().any(|name| config["model_type"] == *name)
    }

    /// A model with first values that are a function of the seed.
    fn create(config: &Value, seed: u64, device: &Device) -> Result<Self>;

    /// A model with weights from a checkpoint. All names and shapes that do not fit are told at
    /// once.
    fn load(config: &Value, weights: Arrays, device: &Device) -> Result<Self>;

    /// The model of a folder with `config.json` and `model.safetensors`. What is wrong with it is
    /// told with the file that it is wrong with.
    fn open(folder: &Path, device: &Device) -> Result<Self>;

    /// `config.json`
    fn json(&self) -> Value;

    /// Its weights by name.
    fn weights(&self) -> Arrays;

    /// Numbers that training changes.
    fn parameters(&self) -> usize;

    /// What it reads, in words.
    fn reads(&self) -> String;

    /// How each of its parts attends, in words.
    fn attention(&self) -> Vec<String>;

    /// The same without a tape, for running.
    fn frozen(&self) -> Self;

    /// Keeps the gradients of a part of a batch for the next step.
    fn gather(&self, adamw: &mut AdamW, grads: Gradients);

    /// One step of the optimiser.
    fn update(self, adamw: &mut AdamW, lr: f64, grads: Gradients) -> Self;
}

/// What a model's own file says of it; [`Model`] follows.
pub(crate) trait Definition: Module {
    const TYPES: &'static [&'static str];

    /// From a configuration that names one of the types.
    fn make(config: &Value, init: &mut Init) -> Result<Self, String>;

    /// Every weight with its name.
    fn bind(&mut self, b: &mut Binder);

    fn json(&self) -> Value;

    fn reads(&self) -> String;

    fn attention(&self) -> Vec<String>;

    /// Weights that come, with the names that [`Definition::bind`] says, before they are put in.
    fn expect(&mut self, weights: Arrays) -> Arrays {
        weights
    }

    /// Weights that go, with the names that a file has.
    fn named(&self, weights: Arrays) -> Arrays {
        weights
    }

    /// Whether a name that [`Definition::bind`] does not say may be in a file: what others need.
    fn is_others(_name: &str) -> bool {
        false
    }
}

impl<M: Definition> Model for M {
    fn types() -> &'static [&'static str] {
        M::TYPES
    }

    fn create(config: &Value, seed: u64, device: &Device) -> Result<M> {
        memory::create(seed, device, |init| make(config, init))
    }

    fn load(config: &Value, weights: Arrays, device: &Device) -> Result<M> {
        fill::<M>(config, weights, device)?.whole()
    }

    fn open(folder: &Path, device: &Device) -> Result<M> {
        Fit::open(folder, |config, weights| fill(config, weights, device))
    }

    fn json(&self) -> Value {
        Definition::json(self)
    }

    fn weights(&self) -> Arrays {
        let mut arrays = Arrays::new();
        // Writing changes nothing, but the names are said once, for both directions.
        self.clone().bind(&mut Binder::write(&mut arrays));
        self.named(arrays)
    }

    fn parameters(&self) -> usize {
        self.num_params()
    }

    fn reads(&self) -> String {
        Definition::reads(self)
    }

    fn attention(&self) -> Vec<String> {
        Definition::attention(self)
    }

    fn frozen(&self) -> M {
        self.valid()
    }

    fn gather(&self, adamw: &mut AdamW, grads: Gradients) {
        adamw.gather(self, grads);
    }

    fn update(self, adamw: &mut AdamW, lr: f64, grads: Gradients) -> M {
        adamw.step(lr, self, grads)
    }
}

fn make<M: Definition>(config: &Value, init: &mut Init) -> Result<M> {
    if !M::is_of(config) {
        let (got, names) = (&config["model_type"], M::TYPES.join(" or "));
        return Err(Error::invalid(format!("model_type: got {got}, need {names}")));
    }
    M::make(config, init).map_err(Error::Invalid)
}

/// The model, and what of the weights did not fit it.
fn fill<M: Definition>(config: &Value, weights: Arrays, device: &Device) -> Result<Fit<M>> {
    let mut model: M = make(config, &mut Init::blank(device))?;
    let weights = model.expect(weights);
    Ok(Fit::new(model, M::bind, weights, M::is_others, device))
}
