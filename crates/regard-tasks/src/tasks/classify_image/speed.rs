//! Timing of image models: inference and training steps on random pixels.

use crate::train;
use burn::tensor::{Device, Tensor, TensorData};
use regard_attention::Stream;
use regard_attention::ops::{CrossEntropy, cross_entropy};
use regard_attention::{AdamW, AdamWConfig, Mode};
use regard_models::vit::Vit;
use regard_models::{Error, ModelFiles, Network, Result, zoo};
use std::time::Instant;

/// A model to be timed.
pub struct ImageBenchmark {
    model: Box<Vit>,
    adamw: AdamW,
    device: Device,
    step: u64,
}

impl ImageBenchmark {
    /// Opens a model. A configuration without weights gets random ones: the timing does not depend
    /// on them.
    pub fn open(model: impl Into<ModelFiles>, learning: bool) -> Result<ImageBenchmark> {
        let files = train::files(model)?;
        let device = if learning { Device::flex().autodiff() } else { Device::flex() };
        let model = match files.has_weights() {
            true => zoo::open::<Vit>(files.clone(), &device)?,
            false => zoo::create::<Vit>(&files.config()?, 0, &device)?,
        };
        if learning && !model.has_labels() {
            return Err(Error::file(
                files.place(),
                "the model has no classification head to train (architectures: got ViTModel, need \
                 ViTForImageClassification)",
            ));
        }
        let adamw = AdamW::new(AdamWConfig { max_norm: Some(1.0), ..AdamWConfig::default() });
        Ok(ImageBenchmark { model, adamw, device, step: 0 })
    }

    fn model(&self) -> &Vit {
        &self.model
    }

    /// Returns the number of trainable parameters.
    pub fn parameters(&self) -> usize {
        self.model().parameters()
    }

    /// Returns a batch of random images, `[B, C, H, W]`.
    pub fn images(&self, count: usize) -> Tensor<4> {
        let config = self.model().settings();
        let [rows, columns] = config.image_size.both();
        let shape = [count, config.num_channels, rows, columns];
        let draw = Stream::new(0, 0, 0);
        let numbers = (0..shape.iter().product::<usize>() as u64).map(|i| draw.normal(i)).collect();
        Tensor::from_data(TensorData::new(numbers, shape), &self.device)
    }

    /// Measures inference on images, in seconds.
    pub fn read(&self, images: &Tensor<4>) -> f64 {
        let began = Instant::now();
        let seen = self.model().forward(images.clone(), Mode::Eval);
        match seen.logits.or(seen.pooled) {
            Some(said) => drop(said.into_data()),
            None => drop(seen.hidden.into_data()),
        }
        began.elapsed().as_secs_f64()
    }

    /// Measures a training step, in seconds: forward, loss, backward, clipping, AdamW.
    pub fn learn(&mut self, images: &Tensor<4>) -> f64 {
        let began = Instant::now();
        self.step += 1;
        let mode = Mode::Train { seed: 0, step: self.step };
        let logits = self.model().forward(images.clone(), mode).logits.expect("it has labels");
        let [rows, classes] = logits.dims();
        let labels: Vec<i64> = (0..rows).map(|row| (row % classes) as i64).collect();
        let labels = Tensor::from_data(TensorData::new(labels, [rows]), &self.device);
        let loss = cross_entropy(logits, labels, CrossEntropy::default());
        let grads = loss.backward();
        self.model.step(&mut self.adamw, 1e-4, grads);
        drop(loss.into_data());
        began.elapsed().as_secs_f64()
    }
}
