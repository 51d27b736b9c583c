//! Evaluation of image classification.

use super::processor::planes;
use super::viewer::NO_HEAD;
use super::{ImageClassifier, LabelledImages};
use crate::evaluation::Details;
use crate::metrics::PrecisionRecall;
use crate::recipe::details::{JudgedLabel, ShownInput};
use crate::say;
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

/// Numbers of images of one class. A table of all pairs of classes would be too large for
/// thousands of them.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Images that have the class and were predicted to.
    both: u64,
    /// Images that were predicted to have it.
    said: u64,
    /// Images that have it.
    right: u64,
}

/// Evaluates a model on all images.
pub fn measure(viewer: &ImageClassifier, pile: &LabelledImages) -> Result<ImageMetrics> {
    judge(viewer, pile, &mut |_, _, _| {})
}

/// As [`measure`], with details. `show` returns the input of an image by index.
pub(super) fn measure_in_detail(
    viewer: &ImageClassifier,
    pile: &LabelledImages,
    show: impl Fn(usize) -> ShownInput,
) -> Result<(ImageMetrics, Details)> {
    let (mut judged, mut classes) = (vec![], 0);
    let marks = judge(viewer, pile, &mut |scores, said, right| {
        classes = scores.len();
        judged.push(JudgedLabel::new(scores, said, right));
    })?;
    let names: Vec<String> = (0..classes).map(|label| viewer.name(label)).collect();
    Ok((marks, Details::of_labels(&names, &judged, show)))
}

/// Called with the scores, the predicted and the true class of each image.
type Judge<'a> = &'a mut dyn FnMut(&[f32], usize, usize);

fn judge(viewer: &ImageClassifier, pile: &LabelledImages, see: Judge) -> Result<ImageMetrics> {
    if viewer.sides() != pile.sides() {
        let ([channels, rows, columns], got) = (viewer.sides(), pile.kind());
        return Err(Error::invalid(format!(
            "got images of {got}, the model takes {rows}×{columns} pixels of {}",
            say::many(channels, "channel")
        )));
    }
    mark_each(viewer.model(), pile, &viewer.processor().tables(pile.channels), see)
}

/// Evaluates a model with a table of normalised pixel values for each channel.
pub(super) fn mark(
    model: &Vit,
    pile: &LabelledImages,
    tables: &[[f32; 256]],
) -> Result<ImageMetrics> {
    mark_each(model, pile, tables, &mut |_, _, _| {})
}

fn mark_each(
    model: &Vit,
    pile: &LabelledImages,
    tables: &[[f32; 256]],
    see: Judge,
) -> Result<ImageMetrics> {
    if pile.is_empty() {
        return Err(Error::invalid("there are no images"));
    }
    let area = pile.area();
    let (mut cost, mut scores, mut counts) = (0.0, vec![], vec![]);
    for (labels, pixels) in pile.labels.chunks(AT_ONCE).zip(pile.pixels.chunks(AT_ONCE * area)) {
        let mut numbers = Vec::with_capacity(pixels.len());
        pixels.chunks_exact(area).for_each(|image| planes(image, tables, &mut numbers));
        let images = batch(numbers, pile.sides(), &Device::flex());
        let logits = model.forward(images, Mode::Eval).logits;
        let logits = logits.ok_or_else(|| Error::invalid(NO_HEAD))?;
        let [_, classes] = logits.dims();
        backend::numbers(logits, &mut scores);
        counts.resize(classes, Counts::default());
        for (label, scores) in labels.iter().zip(scores.chunks_exact(classes)) {
            if *label >= classes {
                return Err(Error::invalid(format!(
                    "got an image of class {label}, the model has classes 0 to {}",
                    classes - 1
                )));
            }
            let best = (0..classes).max_by(|a, b| scores[*a].total_cmp(&scores[*b]));
            let best = best.expect("a model has at least one class");
            counts[best].said += 1;
            counts[best].both += u64::from(best == *label);
            counts[*label].right += 1;
            cost -= log_share(scores, *label);
            see(scores, best, *label);
        }
    }
    let (told, all) = (counts.iter().map(|class| class.both).sum::<u64>(), pile.len() as f64);
    let occur = counts.iter().filter(|class| class.said + class.right > 0);
    let each: Vec<_> = occur.map(|c| PrecisionRecall::of(c.both, c.said, c.right)).collect();
    Ok(ImageMetrics {
        accuracy: 100.0 * (told as f64 / all),
        macro_f1: 100.0 * PrecisionRecall::mean(&each).f1,
        loss: cost / all,
    })
}

/// Converts normalised images, each `[C, H, W]`, to model input, `[B, C, H, W]`.
pub(super) fn batch(numbers: Vec<f32>, sides: [usize; 3], device: &Device) -> Tensor<4> {
    let [channels, rows, columns] = sides;
    let count = numbers.len() / (channels * rows * columns);
    Tensor::from_data(TensorData::new(numbers, [count, channels, rows, columns]), device)
}

/// Computes the log-probability of a label.
fn log_share(scores: &[f32], label: usize) -> f64 {
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = scores.iter().map(|x| f64::from(x - most).exp()).sum();
    f64::from(scores[label] - most) - sum.ln()
}
