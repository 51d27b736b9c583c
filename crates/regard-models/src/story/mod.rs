//! Models that are told a story, sentence by sentence, and asked about it.
//!
//! A sentence is one vector, and attention goes from sentence to sentence, so that what a model
//! looked at can be read: these sentences, one after another.
//!
//! ```
//! use burn::tensor::Device;
//! use regard_attention::Mode;
//! use regard_models::story::{Stories, create};
//! use serde_json::json;
//!
//! let config = json!({
//!     "model_type": "story", "vocab_size": 30, "num_labels": 5, "hidden_size": 16,
//!     "num_attention_heads": 2, "intermediate_size": 32, "repetitions": 3,
//! });
//! let model = create(&config, 7, &Device::flex()).unwrap();
//! let mut stories = Stories::new();
//! stories.push(&[vec![4, 7, 9], vec![5, 7, 8, 3]], &[6, 2, 4]);
//! stories.push(&[[5, 7, 9]], &[6, 2, 5]);
//! assert_eq!(model.forward(&stories, Mode::Eval).dims(), [2, 5]);
//! ```

pub mod hops;
pub mod repeated;
mod sentences;
mod stories;

pub use sentences::Times;
pub use stories::Stories;

use crate::checkpoint::{Arrays, Binder, Fit};
use crate::text::label_count;
use crate::{Error, Result, memory};
use burn::module::Module;
use burn::tensor::{Device, Gradients, Tensor};
use regard_attention::{AdamW, Init, Mode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::Path;

/// What a model can be told and can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Sentences of a story at most, without the question.
    pub sentences: usize,
    /// Words of a sentence at most.
    pub words: usize,
    /// Words that it knows.
    pub vocabulary: usize,
    /// Answers that it can give.
    pub answers: usize,
}

/// The answers that a model can give, by the keys that Hugging Face has for labels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answers {
    /// The name of each.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub id2label: Map<String, Value>,
    /// The number of each.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub label2id: Map<String, Value>,
    /// How many there are, if they have no names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_labels: Option<usize>,
}

impl Answers {
    pub(crate) fn count(&self) -> Result<usize, String> {
        label_count(&serde_json::to_value(self).expect("it is plain data"))
    }
}

/// A model that answers questions about stories. Made by [`create`], [`load`] or [`open`],
/// trained and run through this.
pub trait StoryModel: Send {
    /// `config.json`
    fn config(&self) -> Value;

    /// What it can be told and can say.
    fn limits(&self) -> Limits;

    /// Reads stories, and scores every answer to each question, before the softmax: `[B, answers]`
    ///
    /// # Panics
    /// If a story or a sentence is longer than the model can read.
    fn forward(&self, stories: &Stories, mode: Mode) -> Tensor<2>;

    /// Reads one story, and tells where it looked: for each time that it looked `[H, T, S]`, from
    /// each sentence (the question is the last of them) to each.
    ///
    /// # Panics
    /// As [`StoryModel::forward`], or if there is more than one story.
    fn look_inside(&self, story: &Stories) -> (Tensor<2>, Vec<Tensor<3>>);

    /// How it attends, in words.
    fn attention(&self) -> Vec<String>;

    /// Its weights by name.
    fn weights(&self) -> Arrays;

    /// Numbers that training changes.
    fn parameters(&self) -> usize;

    /// The same without a tape, for running.
    fn frozen(&self) -> Box<dyn StoryModel>;

    /// Keeps the gradients of a part of a batch for the next step.
    fn gather(&self, adamw: &mut AdamW, grads: Gradients);

    /// One step of the optimiser.
    fn update(self: Box<Self>, adamw: &mut AdamW, lr: f64, grads: Gradients)
    -> Box<dyn StoryModel>;
}

/// What a model's own file says of it; [`StoryModel`] follows.
pub(crate) trait Described: Module + 'static {
    fn config(&self) -> Value;
    fn limits(&self) -> Limits;
    /// How it attends, in words.
    fn attention(&self) -> Vec<String>;
    fn bind(&mut self, b: &mut Binder);
    /// Keeps where it looked if somebody wants to know.
    fn read(&self, stories: &Stories, mode: Mode, looks: Option<&mut Vec<Tensor<3>>>) -> Tensor<2>;
}

impl<M: Described> StoryModel for M {
    fn config(&self) -> Value {
        Described::config(self)
    }

    fn limits(&self) -> Limits {
        Described::limits(self)
    }

    fn forward(&self, stories: &Stories, mode: Mode) -> Tensor<2> {
        stories.check(&Described::limits(self));
        self.read(stories, mode, None)
    }

    fn look_inside(&self, story: &Stories) -> (Tensor<2>, Vec<Tensor<3>>) {
        assert_eq!(story.len(), 1, "look_inside: need one story");
        story.check(&Described::limits(self));
        let mut looks = vec![];
        let scores = self.read(story, Mode::Eval, Some(&mut looks));
        (scores, looks)
    }

    fn attention(&self) -> Vec<String> {
        Described::attention(self)
    }

    fn weights(&self) -> Arrays {
        let mut arrays = Arrays::new();
        // Writing changes nothing, but the names are said once, for both directions.
        self.clone().bind(&mut Binder::write(&mut arrays));
        arrays
    }

    fn parameters(&self) -> usize {
        self.num_params()
    }

    fn frozen(&self) -> Box<dyn StoryModel> {
        Box::new(self.valid())
    }

    fn gather(&self, adamw: &mut AdamW, grads: Gradients) {
        adamw.gather(self, grads);
    }

    fn update(
        self: Box<Self>,
        adamw: &mut AdamW,
        lr: f64,
        grads: Gradients,
    ) -> Box<dyn StoryModel> {
        Box::new(adamw.step(lr, *self, grads))
    }
}

/// How a kind of model is made from its configuration.
type Make = fn(&Value, &mut Init, Option<&mut Binder>) -> Result<Box<dyn StoryModel>, String>;

/// Every kind.
const KINDS: &[(&str, Make)] = &[
    (repeated::MODEL_TYPE, |json, init, binder| {
        let config: repeated::Config = crate::parse(json)?;
        config.check()?;
        Ok(filled(repeated::Repeated::new(&config, init), binder))
    }),
    (hops::MODEL_TYPE, |json, init, binder| {
        let config: hops::Config = crate::parse(json)?;
        config.check()?;
        Ok(filled(hops::Hops::new(&config, init), binder))
    }),
];

fn filled<M: Described>(mut model: M, binder: Option<&mut Binder>) -> Box<dyn StoryModel> {
    if let Some(binder) = binder {
        model.bind(binder);
    }
    Box::new(model)
}

/// Whether a configuration is of a model that is told stories.
pub fn is_story(config: &Value) -> bool {
    KINDS.iter().any(|(name, _)| config["model_type"] == *name)
}

/// The names of all kinds.
pub fn model_types() -> Vec<&'static str> {
    KINDS.iter().map(|(name, _)| *name).collect()
}

fn make(
    config: &Value,
    init: &mut Init,
    binder: Option<&mut Binder>,
) -> Result<Box<dyn StoryModel>> {
    let asked = config["model_type"].as_str().unwrap_or("");
    let kind = KINDS.iter().find(|(name, _)| *name == asked).ok_or_else(|| {
        let names = model_types().join(", ");
        Error::invalid(format!("model_type: got {asked:?}, need one of {names}"))
    })?;
    (kind.1)(config, init, binder).map_err(Error::Invalid)
}

/// A model with first values that are a function of the seed.
pub fn create(config: &Value, seed: u64, device: &Device) -> Result<Box<dyn StoryModel>> {
    memory::create(seed, device, |init| make(config, init, None))
}

/// A model with weights from a checkpoint. All names and shapes that do not fit are told at once.
pub fn load(config: &Value, weights: Arrays, device: &Device) -> Result<Box<dyn StoryModel>> {
    fill(config, weights, device)?.whole()
}

/// The model, and what of the weights did not fit it.
fn fill(config: &Value, mut weights: Arrays, device: &Device) -> Result<Fit<Box<dyn StoryModel>>> {
    let mut binder = Binder::read(&mut weights, device);
    let model = make(config, &mut Init::blank(device), Some(&mut binder))?;
    let mut problems: Vec<String> = binder.problems().iter().map(|p| p.to_string()).collect();
    problems.extend(weights.keys().map(|name| format!("{name} has no place in this model")));
    Ok(Fit { model, problems })
}

/// The model of a folder with `config.json` and `model.safetensors`. What is wrong with it is told
/// with the file that it is wrong with.
pub fn open(folder: &Path, device: &Device) -> Result<Box<dyn StoryModel>> {
    Fit::open(folder, |config, weights| fill(config, weights, device))
}
