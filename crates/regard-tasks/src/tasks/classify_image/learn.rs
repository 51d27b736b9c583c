//! Training objective of image classification.

use super::evaluate::{batch, mark};
use super::{Corpus, ImageAugment, LabelledImages, Processor, Recipe, TrainingImage};
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
    /// Normalised value of each pixel byte, for each channel.
    tables: Vec<[f32; 256]>,
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
        let (mean, std) = (0..corpus.train.channels).map(|c| moments(&corpus.train, c)).unzip();
        let processor = Processor::new(corpus.train.size, mean, std);
        let objective = ImageObjective {
            tables: processor.tables(corpus.train.channels),
            processor,
            augment: recipe.augment,
            train: corpus.train,
            valid: corpus.valid,
            smoothing: recipe.train.label_smoothing,
        };
        Ok(Trained::new(model, objective))
    }

    /// Returns a training batch, augmented in training mode, `[B, C, H, W]`.
    fn pixels(&self, examples: &[usize], mode: Mode) -> Tensor<4> {
        let mut numbers = Vec::with_capacity(examples.len() * self.train.area());
        let (augment, seed, step) = match mode {
            Mode::Train { seed, step } => (self.augment, seed, step),
            Mode::Eval => (ImageAugment::default(), 0, 0),
        };
        for number in examples {
            let (pixels, size) = (self.train.pixels(*number), self.train.size);
            let image = TrainingImage { pixels, size, number: *number, seed, step };
            augment.look(&image, &self.tables, &mut numbers);
        }
        batch(numbers, self.train.sides(), &device())
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
        let marks = mark(&model.evaluation(), &self.valid, &self.tables)?;
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
    let channels = json!(corpus.train.channels);
    for (key, found) in [("image_size", size), ("num_channels", channels)] {
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

/// Returns the mean and standard deviation of a channel over all images, scaled to 0 to 1.
fn moments(pile: &LabelledImages, channel: usize) -> (f64, f64) {
    let mut counts = [0u64; 256];
    let bytes = pile.pixels.iter().skip(channel).step_by(pile.channels);
    bytes.for_each(|byte| counts[usize::from(*byte)] += 1);
    let all = (pile.pixels.len() / pile.channels).max(1) as f64;
    let of = |power: i32| {
        let each = counts.iter().enumerate();
        each.map(|(byte, count)| (byte as f64 / 255.0).powi(power) * *count as f64).sum::<f64>()
            / all
    };
    let (mean, square) = (of(1), of(2));
    // Avoids a division by zero for images of a single colour.
    (mean, (square - mean * mean).sqrt().max(1e-3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Image;
    use crate::recipe;
    use regard_attention::backend;

    /// Images of 4×4 pixels, whose channels have different means, in all parts.
    fn corpus(channels: usize) -> Corpus {
        let pixel = |i: usize| (i * 37 % 80 + 60 * (i % channels)) as u8;
        let pixels = (0..6 * 16 * channels).map(pixel).collect();
        let pile =
            LabelledImages { size: [4, 4], channels, pixels, labels: vec![0, 1, 0, 1, 1, 0] };
        let [train, valid, test] = [pile.clone(), pile.clone(), pile];
        Corpus { train, valid, test, ..Corpus::default() }
    }

    fn recipe(more: &str) -> Recipe {
        let text = format!(
            "name = 'x'\ntask = 'classify-image'\n[data]\nset = 'files'\n[model]\n\
             model_type = 'vit'\npatch_size = 2\nhidden_size = 8\nnum_hidden_layers = 1\n\
             num_attention_heads = 1\nintermediate_size = 8\n{more}"
        );
        Recipe::from_table(recipe::parse(&text, &[], &|_| None).unwrap()).unwrap()
    }

    #[test]
    fn a_batch_is_what_the_saved_processor_makes_of_the_images() {
        for channels in [1, 3] {
            let images = corpus(channels);
            let learner = ImageObjective::new(&recipe(""), images.clone()).unwrap();
            let (objective, config) = (learner.objective(), learner.model().settings());
            assert_eq!(config.num_channels, channels);
            let image = |i: usize| Image {
                size: [4, 4],
                channels,
                pixels: images.train.pixels(i).to_vec(),
            };
            let wanted: Vec<f32> = [3, 0]
                .into_iter()
                .flat_map(|i| objective.processor.prepare(&image(i), config).unwrap())
                .collect();
            for mode in [Mode::Eval, Mode::Train { seed: 1, step: 2 }] {
                let (pixels, mut got) = (objective.pixels(&[3, 0], mode), vec![]);
                assert_eq!(pixels.dims(), [2, channels, 4, 4]);
                backend::numbers(pixels, &mut got);
                assert_eq!(got, wanted, "{channels} channels");
            }
            // Each channel is normalised by its own numbers.
            let all: Vec<usize> = (0..6).collect();
            let mut got = vec![];
            backend::numbers(objective.pixels(&all, Mode::Eval), &mut got);
            for channel in 0..channels {
                let of = got.chunks_exact(16).skip(channel).step_by(channels).flatten();
                let numbers: Vec<f64> = of.map(|x| f64::from(*x)).collect();
                let mean = |power: i32| numbers.iter().map(|x| x.powi(power)).sum::<f64>() / 96.0;
                assert!(numbers.len() == 96 && mean(1).abs() < 1e-6, "channel {channel}");
                assert!((mean(2) - 1.0).abs() < 1e-5, "channel {channel}: {}", mean(2));
            }
        }
    }

    #[test]
    fn channels_that_the_images_do_not_have_are_told() {
        let told = ImageObjective::new(&recipe("num_channels = 1"), corpus(3)).err().unwrap();
        assert!(
            told.to_string().contains("model.num_channels: got 1, the images have 3"),
            "{told}"
        );
    }
}
