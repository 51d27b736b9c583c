//! Inference of image classification.

use super::{AttentionMaps, Processor};
use crate::data::Image;
use crate::logits::{Label, ranked};
use crate::train;
use burn::tensor::{Device, Tensor, TensorData};
use regard_attention::{Mode, backend};
use regard_models::vit::Vit;
use regard_models::{Error, ModelFiles, Result, zoo};
use serde_json::Value;

/// Error for a model without labels.
pub(super) const NO_HEAD: &str = "config.json: the model has no classification head \
                                  (architectures: got ViTModel, need ViTForImageClassification)";

/// A preprocessed image.
#[derive(Clone, Debug, PartialEq)]
pub struct Ready(Vec<f32>);

/// Image classification model with its preprocessing.
pub struct ImageClassifier {
    model: Vit,
    processor: Processor,
    labels: Vec<String>,
}

impl ImageClassifier {
    /// Creates a classifier from a model, its preprocessing and the configuration that names the
    /// labels.
    pub fn new(model: Vit, processor: Processor, config: &Value) -> ImageClassifier {
        let name = |i: usize| config["id2label"][i.to_string()].as_str().map(str::to_string);
        ImageClassifier { model, processor, labels: (0..).map_while(name).collect() }
    }

    /// Opens a model: from a folder, which may be a training run's, or a built-in one.
    pub fn load(model: impl Into<ModelFiles>) -> Result<ImageClassifier> {
        let files = train::files(model)?;
        let model = *zoo::open::<Vit>(files.clone(), &Device::flex())?;
        let processor = Processor::load(&files, model.settings())?;
        Ok(ImageClassifier::new(model, processor, &files.config()?))
    }

    /// Returns the model.
    pub fn model(&self) -> &Vit {
        &self.model
    }

    /// Returns the preprocessing.
    pub fn processor(&self) -> &Processor {
        &self.processor
    }

    /// Returns channels, rows and columns of the model's input.
    pub(super) fn sides(&self) -> [usize; 3] {
        let config = self.model.settings();
        let [rows, columns] = config.image_size.both();
        [config.num_channels, rows, columns]
    }

    /// Returns the name of a label.
    pub(super) fn name(&self, label: usize) -> String {
        self.labels.get(label).cloned().unwrap_or_else(|| format!("LABEL_{label}"))
    }

    /// Preprocesses an image to the model's input size.
    pub fn prepare(&self, picture: &Image) -> Result<Ready> {
        Ok(Ready(self.processor.prepare(picture, self.model.settings())?))
    }

    /// Returns all labels of each image, the most probable first. All images form one batch.
    pub fn classify(&self, images: &[Ready]) -> Result<Vec<Vec<Label>>> {
        self.labels(self.model.forward(self.pixels(images), Mode::Eval).logits)
    }

    /// Returns all labels of an image, and the attention weights.
    pub fn look(&self, picture: &Image) -> Result<(Vec<Label>, AttentionMaps)> {
        let pixels = self.pixels(&[self.prepare(picture)?]);
        let (seen, weights) = self.model.forward_with_attention(pixels);
        let mut labels = self.labels(seen.logits)?;
        Ok((labels.remove(0), AttentionMaps::new(weights, self.model.settings())))
    }

    /// Stacks preprocessed images into model input, `[B, C, H, W]`.
    fn pixels(&self, images: &[Ready]) -> Tensor<4> {
        let [channels, rows, columns] = self.sides();
        let numbers: Vec<f32> = images.iter().flat_map(|Ready(numbers)| numbers).copied().collect();
        let shape = [images.len(), channels, rows, columns];
        Tensor::from_data(TensorData::new(numbers, shape), &Device::flex())
    }

    fn labels(&self, logits: Option<Tensor<2>>) -> Result<Vec<Vec<Label>>> {
        let logits = logits.ok_or_else(|| Error::invalid(NO_HEAD))?;
        let ([_, classes], mut numbers) = (logits.dims(), vec![]);
        backend::numbers(logits, &mut numbers);
        let name = |label: usize| self.name(label);
        numbers.chunks_exact(classes).map(|scores| ranked(scores, name)).collect()
    }
}
