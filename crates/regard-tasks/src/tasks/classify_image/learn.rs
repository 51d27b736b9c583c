//! Training objective of image classification.

use super::evaluate::{batch, mark};
use super::{Corpus, ImageAugment, LabelledImages, Processor, Recipe};
use crate::data::Lengths;
use crate::recipe::ModelTable;
use crate::train::trained::device;
use crate::train::{BatchLoss, Direction, Evaluation, Objective, Trained};
use burn::tensor::{Int, Tensor, TensorData};
use regard_attention::Mode;
use regard_attention::ops::{CrossEntropy, cross_entropy};
use regard_models::vit::Vit;
use regard_models::{Capability, Error, Result};
use serde_json::{Value, json};
use std::path::Path;

/// Training objective of image classification.
pub struct ImageObjective {
    processor: Processor,
    /// Normalised value of each pixel byte.
    table: [f32; 256],
    augment: ImageAugment,
    train: LabelledImages,
    valid: LabelledImages,
    smoothing: f32,
}

impl ImageObjective {
    /// Creates a model with initial weights as a recipe configures it.
    pub fn new(recipe: &Recipe, corpus: Corpus) -> Result<Trained<ImageObjective>> {
        let model = table(recipe, &corpus)?.create::<Vit>(recipe.seed)?;
        recipe.augment.check(corpus.train.size)?;
        let (mean, std) = moments(&corpus.train);
        let processor = Processor::new(corpus.train.size, vec![mean], vec![std]);
        let objective = ImageObjective {
            table: processor.table(0),
            processor,
            augment: recipe.augment,
            train: corpus.train,
            valid: corpus.valid,
            smoothing: recipe.train.label_smoothing,
        };
        Ok(Trained::new(model, objective))
    }

    /// Returns a training batch, augmented in training mode, `[B, 1, H, W]`.
    fn pixels(&self, examples: &[usize], mode: Mode) -> Tensor<4> {
        let [rows, columns] = self.train.size;
        let mut numbers = Vec::with_capacity(examples.len() * rows * columns);
        let (augment, seed, step) = match mode {
            Mode::Train { seed, step } => (self.augment, seed, step),
            Mode::Eval => (ImageAugment::default(), 0, 0),
        };
        for number in examples {
            let image = (self.train.pixels(*number), self.train.size);
            augment.look(image, (seed, step, *number), &self.table, &mut numbers);
        }
        batch(numbers, self.train.size, &device())
    }
}

impl Trained<ImageObjective> {
    /// Returns a summary of the sizes.
    pub(super) fn about(&self) -> String {
        let [rows, columns] = self.model().settings().grid();
        let (train, valid) = (self.objective().train.len(), self.objective().valid.len());
        format!(
            "{train} training and {valid} validation images, {rows}×{columns} patches, \
             {:.3} M parameters",
            self.millions()
        )
    }
}

impl Objective for ImageObjective {
    type Model = Vit;

    /// A batch is a number of images.
    fn lengths(&self) -> Vec<Lengths> {
        vec![Lengths { source: 1, target: 0 }; self.train.len()]
    }

    fn loss(&self, model: &Vit, examples: &[usize], mode: Mode) -> BatchLoss {
        let logits = model.forward(self.pixels(examples, mode), mode).logits;
        let logits = logits.expect("a model with labels was made");
        let wanted: Vec<i64> = examples.iter().map(|i| self.train.labels[*i] as i64).collect();
        let wanted = TensorData::new(wanted, [examples.len()]);
        let wanted = Tensor::<1, Int>::from_data(wanted, &device());
        let options = CrossEntropy { smoothing: self.smoothing, ignore: None };
        BatchLoss { value: cross_entropy(logits, wanted, options), tokens: examples.len() }
    }

    fn tokens(&self, examples: &[usize]) -> usize {
        examples.len()
    }

    fn counts(&self) -> &'static str {
        "images"
    }

    fn evaluate(&self, model: &Vit) -> Result<Evaluation> {
        let marks = mark(&model.evaluation(), &self.valid, &self.table)?;
        let measures = vec![
            ("valid_loss".to_string(), marks.loss),
            ("valid_accuracy".to_string(), marks.accuracy),
        ];
        Ok(Evaluation::new(measures, marks.accuracy, Direction::Higher))
    }

    fn save_rest(&self, _config: &Value, folder: &Path) -> Result<()> {
        self.processor.save(folder)
    }
}

/// Returns the model configuration for these images and labels.
fn table<'a>(recipe: &'a Recipe, corpus: &Corpus) -> Result<ModelTable<'a>> {
    let mut table = ModelTable::new(&recipe.model)?;
    table.set_labels(&recipe.data.names(corpus.classes())?);
    let size = match corpus.train.size {
        [rows, columns] if rows == columns => json!(rows),
        sides => json!(sides),
    };
    for (key, found) in [("image_size", size), ("num_channels", json!(1))] {
        let asked = table.get(key);
        if !asked.is_null() && *asked != found {
            return Err(Error::invalid(format!(
                "model.{key}: got {asked}, the images have {found}"
            )));
        }
        table.set(key, found);
    }
    Ok(table)
}

/// Returns the mean and standard deviation of all pixels, scaled to 0 to 1.
fn moments(pile: &LabelledImages) -> (f64, f64) {
    let mut counts = [0u64; 256];
    pile.pixels.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    let all = pile.pixels.len().max(1) as f64;
    let of = |power: i32| {
        let each = counts.iter().enumerate();
        each.map(|(byte, count)| (byte as f64 / 255.0).powi(power) * *count as f64).sum::<f64>()
            / all
    };
    let (mean, square) = (of(1), of(2));
    // Avoids a division by zero for images of a single colour.
    (mean, (square - mean * mean).sqrt().max(1e-3))
}
