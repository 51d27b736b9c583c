//! What small experiments share: batches of drawn numbers, training, right answers.

use super::layer::{Kind, SequenceLayer};
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use regard_attention::Stream;
use regard_attention::layers::{Embedding, EmbeddingConfig, Linear, LinearConfig, sinusoidal};
use regard_attention::ops::{CrossEntropy, cross_entropy};
use regard_attention::{AdamW, AdamWConfig, Init};

/// The device of what is trained.
pub fn device() -> Device {
    Device::flex().autodiff()
}

/// Trains a module by so many steps; `loss` is given the number of the step, from 1.
pub fn train<M: Module>(
    model: M,
    (steps, rate): (u64, f64),
    loss: impl Fn(&M, u64) -> Tensor<1>,
) -> M {
    let config = AdamWConfig { weight_decay: 0.0, max_norm: Some(1.0), ..AdamWConfig::default() };
    let (mut model, mut adamw) = (model, AdamW::new(config));
    for step in 1..=steps {
        let grads = loss(&model, step).backward();
        // Up over the first twentieth and down to 0: what is compared should be where it settles.
        let (done, warm) = (step as f64 / steps as f64, (steps as f64 / 20.0).max(1.0));
        let rate = rate * (step as f64 / warm).min(1.0) * (1.0 - done).max(0.02);
        model = adamw.step(rate, model, grads);
    }
    model
}

/// Draws of one batch: whole numbers below a bound, one after another.
pub struct Draws {
    stream: Stream,
    next: u64,
}

impl Draws {
    /// Those of a step.
    pub fn new(seed: u64, step: u64) -> Draws {
        Draws { stream: Stream::new(seed, step, 0xc0), next: 0 }
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.next += 1;
        self.stream.bits(self.next) as usize % bound
    }

    /// A standard normal number.
    pub fn normal(&mut self) -> f32 {
        self.next += 1;
        // Other words than those of `below`.
        self.stream.normal(self.next | 1 << 40)
    }
}

/// Whole numbers as a tensor.
pub fn integers<const D: usize>(values: &[usize], shape: [usize; D]) -> Tensor<D, Int> {
    let values: Vec<i64> = values.iter().map(|x| *x as i64).collect();
    Tensor::from_data(TensorData::new(values, shape), &device())
}

/// The mean cross-entropy of logits `[N, V]`.
pub fn loss(logits: Tensor<2>, wanted: &[usize]) -> Tensor<1> {
    let wanted = integers(wanted, [wanted.len()]);
    cross_entropy(logits, wanted, CrossEntropy::default())
}

/// The share of rows `[N, V]` whose largest number is the wanted one.
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

/// Words to classes by one layer.
#[derive(Module, Debug)]
pub struct Classifier {
    embedding: Embedding,
    layer: SequenceLayer,
    classes: Linear,
}

impl Classifier {
    /// With its first values.
    pub fn new(kind: Kind, words: usize, width: usize, classes: usize, seed: u64) -> Classifier {
        let init = &mut Init::new(seed, &device());
        Classifier {
            embedding: EmbeddingConfig::new(words, width).init(init),
            layer: kind.init(width, init),
            classes: LinearConfig::new(width, classes).init(init),
        }
    }

    /// Classes of every position. Attention is told the positions by sines, because it has no
    /// other way to know them; the others are given nothing that they have already.
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
        // Around the layer, as in a Transformer's block, for all alike.
        self.classes.forward(x.clone() + self.layer.forward(x))
    }

    /// Classes of the last position.
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

/// A share for people.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
