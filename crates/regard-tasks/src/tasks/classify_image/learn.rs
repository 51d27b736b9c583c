//! Learning what is on images.

use super::measure::{batch, mark};
use super::{Augment, Corpus, Pile, Processor, Recipe};
use crate::data::Lengths;
use crate::recipe::known_keys;
use crate::train::{Better, Evaluation, Learner, Loss};
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use regard_attention::Mode;
use regard_attention::ops::{CrossEntropy, cross_entropy};
use regard_models::vit::Vit;
use regard_models::{Error, Network, Result, zoo};
use serde_json::{Value, json};
use std::path::Path;

/// A model that is being taught.
pub struct Lesson {
    model: Box<Vit>,
    processor: Processor,
    /// The numbers that stand for pixels.
    table: [f32; 256],
    augment: Augment,
    train: Pile,
    valid: Pile,
    smoothing: f32,
    device: Device,
}

impl Lesson {
    /// Makes a model with first values for what a recipe wants.
    pub fn new(recipe: &Recipe, corpus: Corpus) -> Result<Lesson> {
        let device = Device::flex().autodiff();
        let config = config(recipe, &corpus)?;
        let model = zoo::create::<Vit>(&config, recipe.seed, &device)?;
        known_keys(&recipe.model, &model.config())?;
        recipe.augment.check(corpus.train.size)?;
        let (mean, std) = moments(&corpus.train);
        let processor = Processor::new(corpus.train.size, vec![mean], vec![std]);
        Ok(Lesson {
            model,
            table: processor.table(0),
            processor,
            augment: recipe.augment,
            train: corpus.train,
            valid: corpus.valid,
            smoothing: recipe.train.label_smoothing,
            device,
        })
    }

    /// The model.
    pub fn model(&self) -> &Vit {
        &self.model
    }

    /// Sizes, in words.
    pub fn about(&self) -> String {
        let [rows, columns] = self.model().settings().grid();
        format!(
            "{} images to learn from and {} to decide by, {rows}×{columns} patches, {:.3} M \
             parameters",
            self.train.len(),
            self.valid.len(),
            self.model().parameters() as f64 / 1e6,
        )
    }

    /// What a step sees of some images.
    fn pixels(&self, examples: &[usize], mode: Mode) -> Tensor<4> {
        let [rows, columns] = self.train.size;
        let mut numbers = Vec::with_capacity(examples.len() * rows * columns);
        let (augment, seed, step) = match mode {
            Mode::Train { seed, step } => (self.augment, seed, step),
            Mode::Eval => (Augment::default(), 0, 0),
        };
        for number in examples {
            let image = (self.train.pixels(*number), self.train.size);
            augment.look(image, (seed, step, *number), &self.table, &mut numbers);
        }
        batch(numbers, self.train.size, &self.device)
    }
}

impl Learner for Lesson {
    fn network(&self) -> &dyn Network {
        &*self.model
    }

    fn network_mut(&mut self) -> &mut dyn Network {
        &mut *self.model
    }

    /// A batch is a number of images.
    fn lengths(&self) -> Vec<Lengths> {
        vec![Lengths { source: 1, target: 0 }; self.train.len()]
    }

    fn loss(&self, examples: &[usize], mode: Mode) -> Loss {
        let logits = self.model().forward(self.pixels(examples, mode), mode).logits;
        let logits = logits.expect("a model with labels was made");
        let wanted: Vec<i64> = examples.iter().map(|i| self.train.labels[*i] as i64).collect();
        let wanted = TensorData::new(wanted, [examples.len()]);
        let wanted = Tensor::<1, Int>::from_data(wanted, &self.device);
        let options = CrossEntropy { smoothing: self.smoothing, ignore: None };
        Loss { value: cross_entropy(logits, wanted, options), tokens: examples.len() }
    }

    fn tokens(&self, examples: &[usize]) -> usize {
        examples.len()
    }

    fn counts(&self) -> &'static str {
        "images"
    }

    fn evaluate(&self) -> Result<Evaluation> {
        let marks = mark(&self.model().valid(), &self.valid, &self.table)?;
        let measures = vec![
            ("valid_loss".to_string(), marks.loss),
            ("valid_accuracy".to_string(), marks.accuracy),
        ];
        Ok(Evaluation {
            measures,
            decides: marks.accuracy,
            better: Better::Higher,
            also: None,
            sample: None,
        })
    }

    fn save_rest(&self, folder: &Path) -> Result<()> {
        self.processor.save(folder)
    }
}

/// `config.json` of what a recipe wants, for these images and labels.
fn config(recipe: &Recipe, corpus: &Corpus) -> Result<Value> {
    let mut config = recipe.model.clone();
    if !config.is_object() {
        return Err(Error::invalid("model: need a table with at least model_type"));
    }
    let names = recipe.data.names(corpus.classes())?;
    let named = names.iter().enumerate();
    let by_number = named.clone().map(|(i, name)| (i.to_string(), json!(name)));
    let by_name = named.map(|(i, name)| (name.clone(), json!(i)));
    config["id2label"] = Value::Object(by_number.collect());
    config["label2id"] = Value::Object(by_name.collect());
    let size = match corpus.train.size {
        [rows, columns] if rows == columns => json!(rows),
        sides => json!(sides),
    };
    for (key, found) in [("image_size", size), ("num_channels", json!(1))] {
        if let Some(asked) = config.get(key).filter(|asked| **asked != found) {
            return Err(Error::invalid(format!(
                "model.{key}: got {asked}, the images have {found}"
            )));
        }
        config[key] = found;
    }
    Ok(config)
}

/// The mean and the deviation of all pixels, as shares of 255.
fn moments(pile: &Pile) -> (f64, f64) {
    let mut counts = [0u64; 256];
    pile.pixels.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    let all = pile.pixels.len().max(1) as f64;
    let of = |power: i32| {
        let each = counts.iter().enumerate();
        each.map(|(byte, count)| (byte as f64 / 255.0).powi(power) * *count as f64).sum::<f64>()
            / all
    };
    let (mean, square) = (of(1), of(2));
    // Images of one colour alone have no deviation to divide by.
    (mean, (square - mean * mean).sqrt().max(1e-3))
}
