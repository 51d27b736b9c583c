//! A model that says what is on an image.

use super::{Looks, Processor};
use crate::data::Picture;
use crate::logits::{Label, ranked};
use crate::train;
use burn::tensor::{Device, Tensor, TensorData};
use regard_attention::{Mode, backend};
use regard_models::vit::Vit;
use regard_models::{Error, ModelFiles, Result, zoo};
use serde_json::Value;

/// An image as a model reads it.
#[derive(Clone, Debug, PartialEq)]
pub struct Ready(Vec<f32>);

/// A model that looks at images, with what it takes to show them to it.
pub struct Viewer {
    model: Vit,
    processor: Processor,
    labels: Vec<String>,
}

impl Viewer {
    /// From a model, what is done with images, and the configuration that names the labels.
    pub fn new(model: Vit, processor: Processor, config: &Value) -> Viewer {
        let name = |i: usize| config["id2label"][i.to_string()].as_str().map(str::to_string);
        Viewer { model, processor, labels: (0..).map_while(name).collect() }
    }

    /// Opens a model: of a folder, which may be a training run's, or of a part of the program.
    pub fn load(model: impl Into<ModelFiles>) -> Result<Viewer> {
        let files = train::files(model)?;
        let model = *zoo::open::<Vit>(files.clone(), &Device::flex())?;
        let processor = Processor::load(&files, model.settings())?;
        Ok(Viewer::new(model, processor, &files.config()?))
    }

    /// Its model.
    pub fn model(&self) -> &Vit {
        &self.model
    }

    /// What is done with images before the model reads them.
    pub fn processor(&self) -> &Processor {
        &self.processor
    }

    /// Channels, rows and columns that the model reads.
    pub(super) fn sides(&self) -> [usize; 3] {
        let config = self.model.settings();
        let [rows, columns] = config.image_size.both();
        [config.num_channels, rows, columns]
    }

    /// An image as the model reads it, of the size that it reads.
    pub fn prepare(&self, picture: &Picture) -> Result<Ready> {
        Ok(Ready(self.processor.prepare(picture, self.model.settings())?))
    }

    /// All labels of each image, the likeliest first. They are looked at all at once.
    pub fn classify(&self, images: &[Ready]) -> Result<Vec<Vec<Label>>> {
        self.labels(self.model.forward(self.pixels(images), Mode::Eval).logits)
    }

    /// All labels of an image, and where the model looked.
    pub fn look(&self, picture: &Picture) -> Result<(Vec<Label>, Looks)> {
        let pixels = self.pixels(&[self.prepare(picture)?]);
        let (seen, weights) = self.model.look_inside(pixels);
        let mut labels = self.labels(seen.logits)?;
        Ok((labels.remove(0), Looks::new(weights, self.model.settings())))
    }

    /// Images as the model reads them: `[B, C, H, W]`
    fn pixels(&self, images: &[Ready]) -> Tensor<4> {
        let [channels, rows, columns] = self.sides();
        let numbers: Vec<f32> = images.iter().flat_map(|Ready(numbers)| numbers).copied().collect();
        let shape = [images.len(), channels, rows, columns];
        Tensor::from_data(TensorData::new(numbers, shape), &Device::flex())
    }

    fn labels(&self, logits: Option<Tensor<2>>) -> Result<Vec<Vec<Label>>> {
        let logits = logits.ok_or_else(|| Error::invalid("a model without labels"))?;
        let ([_, classes], mut numbers) = (logits.dims(), vec![]);
        backend::numbers(logits, &mut numbers);
        let name = |i: usize| self.labels.get(i).cloned().unwrap_or_else(|| format!("LABEL_{i}"));
        numbers.chunks_exact(classes).map(|scores| ranked(scores, name)).collect()
    }
}
