//! Shared parts of the experiments: random batches, training, accuracy.

use super::layer::{LayerKind, SequenceLayer};
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use regard_attention::Stream;
use regard_attention::layers::{Embedding, EmbeddingConfig, Linear, LinearConfig, sinusoidal};
use regard_attention::ops::{CrossEntropy, cross_entropy};
use regard_attention::{AdamW, AdamWConfig, Init};

/// Returns the training device, with autodiff.
pub fn device() -> Device {
    Device::flex().autodiff()
}

/// Trains a module; `loss` is called with the number of the step, from 1.
pub fn train<M: Module>(model: M, steps: u64, rate: f64, loss: impl Fn(&M, u64) -> Tensor<1>) -> M {
    let config = AdamWConfig { weight_decay: 0.0, max_norm: Some(1.0), ..AdamWConfig::default() };
    let (mut model, mut adamw) = (model, AdamW::new(config));
    for step in 1..=steps {
        let grads = loss(&model, step).backward();
        // Warm-up over the first twentieth, then linear decay: compare converged models.
        let (done, warm) = (step as f64 / steps as f64, (steps as f64 / 20.0).max(1.0));
        let rate = rate * (step as f64 / warm).min(1.0) * (1.0 - done).max(0.02);
        model = adamw.step(rate, model, grads);
    }
    model
}

/// Random numbers of one batch.
pub struct Draws {
    stream: Stream,
    next: u64,
}

impl Draws {
    /// Creates the random numbers of a step.
    pub fn new(seed: u64, step: u64) -> Draws {
        Draws { stream: Stream::new(seed, step, 0xc0), next: 0 }
    }

    /// Draws an integer below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.next += 1;
        self.stream.bits(self.next) as usize % bound
    }

    /// Draws from the standard normal distribution.
    pub fn normal(&mut self) -> f32 {
        self.next += 1;
        // Other random bits than those of `below`.
        self.stream.normal(self.next | 1 << 40)
    }
}

/// Creates a tensor of integers.
pub fn integers<const D: usize>(values: &[usize], shape: [usize; D]) -> Tensor<D, Int> {
    let values: Vec<i64> = values.iter().map(|x| *x as i64).collect();
    Tensor::from_data(TensorData::new(values, shape), &device())
}

/// Computes the mean cross-entropy of logits `[N, V]`.
pub fn loss(logits: Tensor<2>, wanted: &[usize]) -> Tensor<1> {
    let wanted = integers(wanted, [wanted.len()]);
    cross_entropy(logits, wanted, CrossEntropy::default())
}

/// Computes the accuracy of logits `[N, V]`: the fraction of rows whose largest is the wanted one.
pub fn accuracy(logits: Tensor<2>, wanted: &[usize]) -> f64 {
    let [_, v] = logits.dims();
    let numbers = logits.into_data().try_to_vec::<f32>().expect("floats come as floats");
    let best = |row: &[f32]| {
        let places = row.iter().enumerate();
        places.max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(place, _)| place)
    };
    let right = numbers.chunks_exact(v).zip(wanted).filter(|(row, want)| best(row) == **want);
    right.count() as f64 / wanted.len() as f64
}

/// Classifies tokens with an embedding, one layer and a projection.
#[derive(Module, Debug)]
pub struct LayerClassifier {
    embedding: Embedding,
    layer: SequenceLayer,
    classes: Linear,
}

impl LayerClassifier {
    /// Creates a classifier with random weights.
    pub fn new(
        kind: LayerKind,
        words: usize,
        width: usize,
        classes: usize,
        seed: u64,
    ) -> LayerClassifier {
        let init = &mut Init::new(seed, &device());
        LayerClassifier {
            embedding: EmbeddingConfig::new(words, width).init(init),
            layer: kind.init(width, init),
            classes: LinearConfig::new(width, classes).init(init),
        }
    }

    /// Computes logits at every position. Attention gets sinusoidal position encodings, because it
    /// has no other information on order; the other layers do not need them.
    ///
    /// # Shapes
    /// `ids: [B, T]` → `[B, T, classes]`
    pub fn forward(&self, ids: Tensor<2, Int>) -> Tensor<3> {
        let x = self.embedding.forward(ids);
        let [_, t, m] = x.dims();
        let x = match self.layer.kind.mask() {
            Some(_) => x + sinusoidal(t, m, &device()).unsqueeze(),
            None => x,
        };
        // Residual connection, as in a Transformer block, for all layers.
        self.classes.forward(x.clone() + self.layer.forward(x))
    }

    /// Computes logits at the last position.
    ///
    /// # Shapes
    /// `ids: [B, T]` → `[B, classes]`
    pub fn last(&self, ids: Tensor<2, Int>) -> Tensor<2> {
        let [b, t] = ids.dims();
        let all = self.forward(ids);
        let [_, _, c] = all.dims();
        all.slice([0..b, t - 1..t, 0..c]).reshape([b, c])
    }
}

/// Formats a fraction in per cent.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
