//! The interface of every network, whatever its input.
//!
//! A model's own file implements `Definition`: how it is made from `config.json`, what its
//! tensors are called, what it is in words. [`Network`] follows from that. What it computes is a
//! capability, a small trait that is found by asking: [`TextModel`], [`Seq2Seq`], [`StoryModel`],
//! or the type itself where only one model has it.

use crate::checkpoint::{Arrays, Binder};
use crate::seq2seq::Seq2Seq;
use crate::story::StoryModel;
use crate::text::{self, Family, TextModel};
use crate::{Error, Result, misfit, zoo};
use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, Gradients, Tensor};
use regard_attention::{AdamW, Init};
use serde_json::Value;
use std::any::Any;

/// A network: made by [`zoo`], trained, saved and described through this.
pub trait Network: Any + Send {
    /// `config.json`
    fn config(&self) -> Value;

    /// Its weights, by the names that they have in a file.
    fn weights(&self) -> Arrays;

    /// The gradients of its weights, by the same names; 0 for those that have none.
    fn gradients(&self, grads: &mut Gradients) -> Arrays;

    /// How many parameters training changes.
    fn parameters(&self) -> usize;

    /// Describes it in words: input, vocabulary, attention of each layer.
    fn describe(&self) -> Description;

    /// Whether training may leave a parameter of this name without a gradient.
    fn allows_missing_gradient(&self, name: &str) -> bool;

    /// A copy that records nothing for a backward pass, for evaluation and prediction. It shares
    /// the weights.
    fn inference(&self) -> Box<dyn Network>;

    /// Adds the gradients of a part of a batch to those of the next step.
    fn accumulate(&self, adamw: &mut AdamW, grads: Gradients);

    /// One step of the optimiser, in place.
    fn step(&mut self, adamw: &mut AdamW, lr: f64, grads: Gradients);

    /// Replaces all its weights.
    ///
    /// # Errors
    /// All tensors that are missing, have another shape or have no place in it. The weights that
    /// fit were replaced then.
    fn restore(&mut self, weights: Arrays) -> Result<()>;

    /// As a model that reads texts, if it is one.
    fn into_text(self: Box<Self>) -> Option<Box<dyn TextModel>> {
        None
    }

    /// As an encoder–decoder, if it is one.
    fn into_seq2seq(self: Box<Self>) -> Option<Box<dyn Seq2Seq>> {
        None
    }

    /// As a model that answers questions about stories, if it is one.
    fn into_story(self: Box<Self>) -> Option<Box<dyn StoryModel>> {
        None
    }
}

/// A network in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// Its input: texts, images, graphs.
    pub reads: String,
    /// Size of the vocabulary, if it has one.
    pub vocabulary: Option<usize>,
    /// The longest sequence that it reads, in tokens, if there is a limit.
    pub longest: Option<usize>,
    /// How each layer attends.
    pub attention: Vec<String>,
}

impl Description {
    /// Describes a model that reads texts, without its attention.
    pub(crate) fn of_texts(vocabulary: Option<usize>, longest: Option<usize>) -> Description {
        let words = vocabulary.map_or("any words".into(), |words| format!("{words} words"));
        let most = longest.map_or("of any length".into(), |most| format!("of up to {most} tokens"));
        let reads = format!("texts {most}; {words}");
        Description { reads, vocabulary, longest, attention: vec![] }
    }
}

/// The input of a network, which decides its capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    /// Texts: [`TextModel`].
    Texts,
    /// One sequence, and writes another: [`Seq2Seq`].
    Pairs,
    /// Stories and questions: [`StoryModel`].
    Stories,
    /// An input that no other kind reads; its capability is the type itself.
    Other,
}

/// The definition of a model, in its own file; [`Network`] is implemented from it.
pub(crate) trait Definition: Module + 'static {
    const READS: Reads;

    /// Its values of `model_type` in `config.json`.
    fn types() -> Vec<&'static str>;

    /// The families of models that read texts, which differ in names.
    fn families() -> &'static [&'static Family] {
        &[]
    }

    /// The task that a model of this configuration is for, as recipes call it.
    fn task(_config: &Value) -> Result<&'static str, String> {
        match Self::READS {
            Reads::Pairs => Ok("translate"),
            Reads::Stories => Ok("answer-story"),
            Reads::Texts | Reads::Other => Err("the model does not say what it is for".into()),
        }
    }

    /// From a configuration of one of the types. `weights` are those that will be put into it, if
    /// there are some: old checkpoints say by their tensors what newer ones say in `config.json`.
    fn make(config: &Value, weights: Option<&Arrays>, init: &mut Init) -> Result<Self, String>;

    /// `config.json`
    fn config(&self) -> Value;

    /// Every tensor with its name, for reading and for writing.
    fn bind(&mut self, b: &mut Binder);

    fn describe(&self) -> Description;

    /// Gives tensors of a checkpoint the names that [`Definition::bind`] uses.
    fn rename_on_load(&mut self, weights: Arrays) -> Arrays {
        weights
    }

    /// Gives tensors the names that a checkpoint has.
    fn rename_on_save(&self, weights: Arrays) -> Arrays {
        weights
    }

    /// Whether a tensor of a checkpoint without a place here is no mistake: a buffer, or what
    /// another head needs.
    fn ignores(&self, _name: &str) -> bool {
        false
    }

    fn allows_missing_gradient(&self, _name: &str) -> bool {
        false
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
        // Writing changes nothing, but the names are said once, for both directions.
        self.clone().bind(&mut Binder::write(&mut arrays));
        self.rename_on_save(arrays)
    }

    fn gradients(&self, grads: &mut Gradients) -> Arrays {
        Network::weights(&self.clone().map(&mut AsGradients(grads)))
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
        adamw.gather(self, grads);
    }

    fn step(&mut self, adamw: &mut AdamW, lr: f64, grads: Gradients) {
        // The optimiser updates weights in place only if nobody else holds them.
        let hollow = self.clone().map(&mut Hollow);
        let module = std::mem::replace(self, hollow);
        *self = adamw.step(lr, module, grads);
    }

    fn restore(&mut self, weights: Arrays) -> Result<()> {
        let weights = self.rename_on_load(weights);
        let device = self.devices().into_iter().next().unwrap_or_default();
        let problems = put(self, weights, &|_| false, &device);
        match problems.is_empty() {
            true => Ok(()),
            false => Err(Error::invalid(misfit(&problems))),
        }
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

/// Puts weights into a model, and says what does not fit. Parameters that are `new` need no weights.
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
        // Integers may be weights that were quantised, whatever their names: only buffers are not.
        match array.is_float() {
            true if model.ignores(name) => {}
            false if model.ignores(name) && text::is_buffer(name) => {}
            true => problems.push(format!("{name} has no place in this model")),
            false => {
                problems.push(format!("{name} ({}) has no place in this model", array.dtype()));
            }
        }
    }
    problems
}

/// Puts the gradient of each parameter in the place of its value, so that the names of tensors
/// are those of gradients too.
struct AsGradients<'a>(&'a mut Gradients);

impl ModuleMapper for AsGradients<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let value = param.val();
        let gradient = value.grad_remove(self.0).unwrap_or_else(|| value.clone().inner() * 0.0);
        Param::initialized(param.id, gradient)
    }
}

/// Puts a single number in the place of each parameter.
struct Hollow;

impl ModuleMapper for Hollow {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let device = param.val().device();
        Param::initialized(param.id, Tensor::zeros([1; D], &device))
    }
}

/// A capability of a network: `dyn TextModel`, `dyn Seq2Seq`, `dyn StoryModel`, the type of a
/// model, or `dyn Network`, which every network is.
pub trait Capability {
    /// The network as this, if it is one.
    fn of(network: Box<dyn Network>) -> Option<Box<Self>>;

    /// The values of `model_type` of such networks.
    fn types() -> Vec<&'static str>;

    /// The network that it is.
    fn network(&self) -> &dyn Network;

    /// The network that it is, to be changed.
    fn network_mut(&mut self) -> &mut dyn Network;

    /// [`Network::inference`], as this.
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
                zoo::types_of(Reads::$reads)
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
