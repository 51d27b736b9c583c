//! The interface of every network, whatever its input.
//!
//! A model's own file implements `Definition`: how it is made from `config.json`, the names of its
//! tensors, a description in words. [`Network`] is implemented for every `Definition`. The
//! computation is a capability, a small trait that a network may have: [`TextModel`], [`Seq2Seq`],
//! [`StoryModel`], or the type itself where only one model has it.

use crate::adapter::{self, AdapterConfig, LinearLayer};
use crate::checkpoint::{Arrays, Binder, LinearPart};
use crate::seq2seq::Seq2Seq;
use crate::story::StoryModel;
use crate::text::{self, Family, TextModel};
use crate::{Error, Result, misfit, zoo};
use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, Gradients, Tensor};
use regard_attention::layers::Weight;
use regard_attention::quant::Bits;
use regard_attention::{AdamW, Init};
use serde_json::Value;
use std::any::Any;

/// A network, created by [`zoo`]: training, saving and description.
pub trait Network: Any + Send + Sync {
    /// Configuration, as in `config.json`.
    fn config(&self) -> Value;

    /// Weights, by their names in a checkpoint.
    fn weights(&self) -> Arrays;

    /// Gradients of the weights, by the same names; zeros for those without a gradient. Those of an
    /// adapter in training have the names of [`Network::adapter`].
    ///
    /// # Panics
    /// If the network is not on a device with autodiff: there are no gradients then.
    fn gradients(&self, grads: &mut Gradients) -> Arrays;

    /// Number of trainable parameters.
    fn parameters(&self) -> usize;

    /// Describes it in words: input, vocabulary, attention of each layer.
    fn describe(&self) -> Description;

    /// Whether training may leave a parameter of this name without a gradient.
    fn allows_missing_gradient(&self, name: &str) -> bool;

    /// Returns a copy without autodiff, for evaluation and prediction. It shares the weights.
    fn inference(&self) -> Box<dyn Network>;

    /// Accumulates the gradients of a part of a batch for the next step.
    fn accumulate(&self, adamw: &mut AdamW, grads: Gradients);

    /// One step of the optimiser, in place.
    fn step(&mut self, adamw: &mut AdamW, lr: f64, grads: Gradients);

    /// Replaces all weights.
    ///
    /// # Errors
    /// Lists all tensors that are missing, have another shape or are unexpected. The weights that
    /// fit have been replaced then.
    fn restore(&mut self, weights: Arrays) -> Result<()>;

    /// Replaces weight matrices by quantised ones, for inference. `bits` gives the number of bits
    /// for the name of a weight; `None` leaves it as it is. Matrices with fewer than 32 rows or
    /// columns stay as they are.
    ///
    /// # Panics
    /// If the network is on a device with autodiff, or on one that the kernels do not run on.
    fn quantize(&mut self, _bits: &dyn Fn(&str) -> Option<Bits>) {}

    /// Freezes all weights, and adds trainable updates of low rank to the linear layers that the
    /// configuration names. An inference copy has them added to its weights. Returns the number of
    /// their parameters.
    ///
    /// # Errors
    /// If the configuration names no linear layer of the network.
    fn adapt(&mut self, _config: &AdapterConfig, _seed: u64) -> Result<usize> {
        Err(Error::invalid("this network has no linear layers that can be adapted"))
    }

    /// Returns the tensors of the updates, with PEFT's names, and whether all are of weights whose
    /// rows are inputs.
    fn adapter(&self) -> (Arrays, bool) {
        (Arrays::new(), false)
    }

    /// Replaces all updates.
    ///
    /// # Errors
    /// If there are others, or in other sizes.
    fn restore_adapter(&mut self, _updates: Arrays) -> Result<()> {
        Err(Error::invalid("this network has no adapter"))
    }

    /// Converts to a text model, if it is one.
    fn into_text(self: Box<Self>) -> Option<Box<dyn TextModel>> {
        None
    }

    /// Converts to an encoder–decoder, if it is one.
    fn into_seq2seq(self: Box<Self>) -> Option<Box<dyn Seq2Seq>> {
        None
    }

    /// Converts to a model that answers questions about stories, if it is one.
    fn into_story(self: Box<Self>) -> Option<Box<dyn StoryModel>> {
        None
    }
}

/// Description of a network in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Description {
    /// Kind of input: texts, images, graphs.
    pub reads: String,
    /// Size of the vocabulary; `None` if it has none.
    pub vocabulary: Option<usize>,
    /// Longest sequence in tokens; `None` if there is no limit.
    pub longest: Option<usize>,
    /// Attention of each layer.
    pub attention: Vec<String>,
}

impl Description {
    /// Describes a text model, without its attention.
    pub(crate) fn of_texts(vocabulary: Option<usize>, longest: Option<usize>) -> Description {
        let words = vocabulary.map_or("any words".into(), |words| format!("vocabulary of {words}"));
        let most = longest.map_or("of any length".into(), |most| format!("of up to {most} tokens"));
        let reads = format!("texts {most}; {words}");
        Description { reads, vocabulary, longest, attention: vec![] }
    }
}

/// Kind of input of a network, which determines its capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputKind {
    /// Texts: [`TextModel`].
    Texts,
    /// Pairs of a source and a target sequence: [`Seq2Seq`].
    Pairs,
    /// Stories and questions: [`StoryModel`].
    Stories,
    /// Any other input; the capability is the type itself.
    Other,
}

/// The definition of a model, in its own file; [`Network`] is implemented from it.
pub(crate) trait Definition: Module + Sync + 'static {
    const READS: InputKind;

    /// Values of `model_type` in `config.json`.
    fn types() -> Vec<&'static str>;

    /// Families of text models, which differ in names.
    fn families() -> &'static [&'static Family] {
        &[]
    }

    /// Task that a model of this configuration is for, by its name in recipes.
    fn task(_config: &Value) -> Result<&'static str, String> {
        match Self::READS {
            InputKind::Pairs => Ok("translate"),
            InputKind::Stories => Ok("answer-story"),
            InputKind::Texts | InputKind::Other => {
                Err("the configuration does not name a task".into())
            }
        }
    }

    /// Makes a model from a configuration of one of the types. `weights` are those that will be
    /// loaded, if any: old checkpoints imply by their tensors what newer ones say in `config.json`.
    fn make(config: &Value, weights: Option<&Arrays>, init: &mut Init) -> Result<Self, String>;

    /// Configuration, as in `config.json`.
    fn config(&self) -> Value;

    /// Visits every tensor with its name, for reading and for writing.
    fn bind(&mut self, b: &mut Binder);

    fn describe(&self) -> Description;

    /// Renames tensors of a checkpoint to the names that [`Definition::bind`] uses.
    fn rename_on_load(&mut self, weights: Arrays) -> Arrays {
        weights
    }

    /// Renames tensors to their names in a checkpoint.
    fn rename_on_save(&self, weights: Arrays) -> Arrays {
        weights
    }

    /// Whether an unexpected tensor of a checkpoint can be ignored: a buffer, or part of another
    /// head.
    fn ignores(&self, _name: &str) -> bool {
        false
    }

    fn allows_missing_gradient(&self, _name: &str) -> bool {
        false
    }

    /// Whether a linear layer belongs to the body of the model, not to its head.
    fn is_body(&self, _name: &str) -> bool {
        true
    }

    fn into_text(self: Box<Self>) -> Option<Box<dyn TextModel>> {
        None
    }

    fn into_seq2seq(self: Box<Self>) -> Option<Box<dyn Seq2Seq>> {
        None
    }

    fn into_story(self: Box<Self>) -> Option<Box<dyn StoryModel>> {
        None
    }
}

impl<M: Definition> Network for M {
    fn config(&self) -> Value {
        Definition::config(self)
    }

    fn weights(&self) -> Arrays {
        let mut arrays = Arrays::new();
        // Writing does not modify the model, but `bind` serves both directions.
        self.clone().bind(&mut Binder::write(&mut arrays));
        self.rename_on_save(arrays)
    }

    fn gradients(&self, grads: &mut Gradients) -> Arrays {
        // A stored matrix has no gradient: mapping it would return its values.
        let trains = self.devices().iter().all(|device| device.is_autodiff());
        assert!(trains, "gradients: the network is an inference copy, which has none");
        let gradients = self.clone().map(&mut AsGradients(grads));
        let mut all = Network::weights(&gradients);
        all.extend(gradients.adapter().0);
        all
    }

    fn parameters(&self) -> usize {
        self.num_params()
    }

    fn describe(&self) -> Description {
        Definition::describe(self)
    }

    fn allows_missing_gradient(&self, name: &str) -> bool {
        Definition::allows_missing_gradient(self, name)
    }

    fn inference(&self) -> Box<dyn Network> {
        Box::new(self.valid())
    }

    fn accumulate(&self, adamw: &mut AdamW, grads: Gradients) {
        adamw.accumulate(self, grads);
    }

    fn step(&mut self, adamw: &mut AdamW, lr: f64, grads: Gradients) {
        // The optimiser updates weights in place only if there is no other reference to them.
        let hollow = self.clone().map(&mut Hollow);
        let module = std::mem::replace(self, hollow);
        *self = adamw.step(lr, module, grads);
    }

    fn restore(&mut self, weights: Arrays) -> Result<()> {
        let weights = self.rename_on_load(weights);
        let device = device_of(self);
        let problems = put(self, weights, &|_| false, &device);
        match problems.is_empty() {
            true => Ok(()),
            false => Err(Error::invalid(misfit(&problems))),
        }
    }

    fn quantize(&mut self, bits: &dyn Fn(&str) -> Option<Bits>) {
        let device = device_of(self);
        assert!(Weight::can_be_stored(&device), "quantize: need a CPU device without autodiff");
        self.bind(&mut Binder::quantize(bits));
    }

    fn adapt(&mut self, config: &AdapterConfig, seed: u64) -> Result<usize> {
        let device = device_of(self);
        adapter::adapt(self, config, seed, &device).map_err(Error::Invalid)
    }

    fn adapter(&self) -> (Arrays, bool) {
        adapter::trained(self)
    }

    fn restore_adapter(&mut self, updates: Arrays) -> Result<()> {
        let device = device_of(self);
        adapter::restore(self, updates, &device).map_err(Error::Invalid)
    }

    fn into_text(self: Box<Self>) -> Option<Box<dyn TextModel>> {
        Definition::into_text(self)
    }

    fn into_seq2seq(self: Box<Self>) -> Option<Box<dyn Seq2Seq>> {
        Definition::into_seq2seq(self)
    }

    fn into_story(self: Box<Self>) -> Option<Box<dyn StoryModel>> {
        Definition::into_story(self)
    }
}

/// Device of a module.
fn device_of(module: &impl Module) -> Device {
    module.devices().into_iter().next().unwrap_or_default()
}

/// Lists the linear layers of a model.
pub(crate) fn linear_layers<M: Definition>(mut model: M) -> Vec<LinearLayer> {
    let own = model.clone();
    let mut layers = vec![];
    let mut visit =
        |part: LinearPart| layers.push(LinearLayer::of(&part, !own.is_body(&part.name)));
    model.bind(&mut Binder::linear_parts(&mut visit));
    layers
}

/// Beginning of the problem of a tensor that a model does not have.
pub(crate) const UNEXPECTED: &str = "unexpected tensor";

/// Loads weights into a model, and returns what does not fit. Parameters that are `new` need no
/// weights.
pub(crate) fn put<M: Definition>(
    model: &mut M,
    mut weights: Arrays,
    new: &dyn Fn(&str) -> bool,
    device: &Device,
) -> Vec<String> {
    let mut binder = Binder::read(&mut weights, device);
    model.bind(&mut binder);
    let wrong = binder.problems().into_iter().filter(|problem| !problem.is_missing(new));
    let mut problems: Vec<String> = wrong.map(|problem| problem.to_string()).collect();
    for (name, array) in &weights {
        // Integers may be quantised weights, whatever their names: only buffers can be ignored.
        match array.is_float() {
            true if model.ignores(name) => {}
            false if model.ignores(name) && text::is_buffer(name) => {}
            true => problems.push(format!("{UNEXPECTED} {name}")),
            false => problems.push(format!("{UNEXPECTED} {name} ({})", array.dtype())),
        }
    }
    problems
}

/// Replaces each parameter by its gradient, so that gradients have the names of the weights.
struct AsGradients<'a>(&'a mut Gradients);

impl ModuleMapper for AsGradients<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let value = param.val();
        let gradient = value.grad_remove(self.0).unwrap_or_else(|| value.clone().inner() * 0.0);
        Param::initialized(param.id, gradient)
    }
}

/// Replaces each parameter by a tensor of one element.
struct Hollow;

impl ModuleMapper for Hollow {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let device = param.val().device();
        Param::initialized(param.id, Tensor::zeros([1; D], &device))
    }
}

/// A capability of a network: `dyn TextModel`, `dyn Seq2Seq`, `dyn StoryModel`, the type of a
/// model, or `dyn Network`, which every network has.
pub trait Capability {
    /// Converts a network, if it has this capability.
    fn of(network: Box<dyn Network>) -> Option<Box<Self>>;

    /// Values of `model_type` of networks with this capability.
    fn types() -> Vec<&'static str>;

    /// Returns it as a network.
    fn network(&self) -> &dyn Network;

    /// Returns it as a mutable network.
    fn network_mut(&mut self) -> &mut dyn Network;

    /// Returns [`Network::inference`] with this capability.
    fn evaluation(&self) -> Box<Self> {
        Self::of(self.network().inference()).expect("a copy is of the same type")
    }
}

impl<M: Definition> Capability for M {
    fn of(network: Box<dyn Network>) -> Option<Box<M>> {
        let any: Box<dyn Any> = network;
        any.downcast().ok()
    }

    fn types() -> Vec<&'static str> {
        <M as Definition>::types()
    }

    fn network(&self) -> &dyn Network {
        self
    }

    fn network_mut(&mut self) -> &mut dyn Network {
        self
    }
}

macro_rules! capability {
    ($trait:ident, $of:ident, $reads:ident) => {
        impl Capability for dyn $trait {
            fn of(network: Box<dyn Network>) -> Option<Box<dyn $trait>> {
                network.$of()
            }

            fn types() -> Vec<&'static str> {
                zoo::types_of(InputKind::$reads)
            }

            fn network(&self) -> &dyn Network {
                self
            }

            fn network_mut(&mut self) -> &mut dyn Network {
                self
            }
        }
    };
}

capability!(TextModel, into_text, Texts);
capability!(Seq2Seq, into_seq2seq, Pairs);
capability!(StoryModel, into_story, Stories);

impl Capability for dyn Network {
    fn of(network: Box<dyn Network>) -> Option<Box<dyn Network>> {
        Some(network)
    }

    fn types() -> Vec<&'static str> {
        zoo::model_types()
    }

    fn network(&self) -> &dyn Network {
        self
    }

    fn network_mut(&mut self) -> &mut dyn Network {
        self
    }
}
