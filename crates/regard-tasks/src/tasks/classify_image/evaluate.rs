//! Evaluation of image classification.

use super::{ImageClassifier, LabelledImages};
use crate::metrics::Confusion;
use burn::tensor::{Device, Tensor, TensorData};
use regard_attention::{Mode, backend};
use regard_models::vit::Vit;
use regard_models::{Error, Result};

/// Images per evaluation batch.
pub(super) const AT_ONCE: usize = 250;

/// Metrics of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ImageMetrics {
    /// Accuracy, percent of images.
    pub accuracy: f64,
    /// Mean of the classes' F1 scores, percent.
    pub macro_f1: f64,
    /// Mean negative log-likelihood of the correct labels, in nats.
    pub loss: f64,
}

/// Evaluates a model on all images.
pub fn measure(viewer: &ImageClassifier, pile: &LabelledImages) -> Result<ImageMetrics> {
    let ([channels, rows, columns], size) = (viewer.sides(), pile.size);
    if channels != 1 || size != [rows, columns] {
        return Err(Error::invalid(format!(
            "got grey images of {size:?}, the model takes {channels} channels of {:?}",
            [rows, columns]
        )));
    }
    mark(viewer.model(), pile, &viewer.processor().table(0))
}

/// Evaluates a model with a table of normalised pixel values.
pub(super) fn mark(model: &Vit, pile: &LabelledImages, table: &[f32; 256]) -> Result<ImageMetrics> {
    let area = pile.size[0] * pile.size[1];
    let mut table_of = None;
    let (mut cost, mut scores) = (0.0, vec![]);
    for (labels, pixels) in pile.labels.chunks(AT_ONCE).zip(pile.pixels.chunks(AT_ONCE * area)) {
        let numbers = pixels.iter().map(|byte| table[usize::from(*byte)]).collect();
        let logits = model.forward(batch(numbers, pile.size, &Device::flex()), Mode::Eval).logits;
        let logits = logits.ok_or_else(|| Error::invalid("the model has no labels"))?;
        let [_, classes] = logits.dims();
        backend::numbers(logits, &mut scores);
        let confusion = table_of.get_or_insert_with(|| Confusion::new(classes));
        for (label, scores) in labels.iter().zip(scores.chunks_exact(classes)) {
            if *label >= classes {
                return Err(Error::invalid(format!(
                    "got an image of class {label}, the model has classes 0 to {}",
                    classes - 1
                )));
            }
            let best = (0..classes).max_by(|a, b| scores[*a].total_cmp(&scores[*b]));
            confusion.add(best.expect("a model has at least one class"), *label);
            cost -= log_share(scores, *label);
        }
    }
    let confusion = table_of.ok_or_else(|| Error::invalid("there are no images"))?;
    let loss = cost / pile.len() as f64;
    Ok(ImageMetrics {
        accuracy: 100.0 * confusion.accuracy(),
        macro_f1: 100.0 * confusion.macro_mean().f1,
        loss,
    })
}

/// Converts normalised grey images to model input, `[B, 1, H, W]`.
pub(super) fn batch(numbers: Vec<f32>, [rows, columns]: [usize; 2], device: &Device) -> Tensor<4> {
    let count = numbers.len() / (rows * columns);
    Tensor::from_data(TensorData::new(numbers, [count, 1, rows, columns]), device)
}

/// Computes the log-probability of a label.
fn log_share(scores: &[f32], label: usize) -> f64 {
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = scores.iter().map(|x| f64::from(x - most).exp()).sum();
    f64::from(scores[label] - most) - sum.ln()
}
