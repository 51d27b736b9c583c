//! Pooling: one vector per sequence.
//!
//! | pooling | `y` |
//! |---|---|
//! | attention | `Σ_n softmax_n(v·tanh(W x_n + q)) · x_n` with a learned `q` (Bahdanau's score; over words Yang et al. 2016) |
//! | mean | the mean of all rows, which is attention with uniform weights |
//! | max | the maximum of each column |
//! | last | the final state; with two directions, the last row of the forward half and the first row of the backward half |

use super::{Linear, LinearConfig, Sequences};
use crate::attention::{Attention, mask::lengths, normalize::Uniform};
use crate::backend;
use crate::init::Init;
use crate::ops;
use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor, TensorData};

/// Pooling method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// Weighted mean of the rows with learned additive attention.
    Attention {
        /// `A`, the width that the query and the rows are projected to.
        hidden: usize,
    },
    /// Mean of the rows.
    Mean,
    /// Maximum of each column.
    Max,
    /// Last row.
    Last {
        /// Whether the second half of the columns comes from a backward direction, whose final
        /// state is the first row.
        both_ways: bool,
    },
}

/// Configuration of [`Pooling`].
#[derive(Clone, Debug)]
pub struct PoolingConfig {
    /// `M`, the width of a row.
    pub width: usize,
    /// Pooling method.
    pub pool: Pool,
}

/// Pools each sequence to one vector.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use regard_attention::{Init, layers::{Pool, PoolingConfig, Sequences}};
///
/// let config = PoolingConfig { width: 4, pool: Pool::Attention { hidden: 8 } };
/// let layer = config.init(&mut Init::new(0, &Device::flex()));
/// let x = Tensor::<2>::ones([5, 4], &Device::flex());
/// let sequences = Sequences::new(&[3, 2]);
/// assert_eq!(layer.forward(x.clone(), &sequences).dims(), [2, 4]);
/// let weights = layer.weights(x, &sequences).unwrap();
/// assert_eq!(weights.to_data().try_to_vec::<f32>().unwrap()[3..], [0.5, 0.5]);
/// ```
#[derive(Module, Debug)]
pub struct Pooling {
    /// Parameters of attention pooling; `None` for the other methods.
    pub attention: Option<PoolingAttention>,
    /// Pooling method.
    #[module(skip)]
    pub pool: Pool,
}

/// Parameters of attention pooling, which has one learned query for all sequences.
#[derive(Module, Debug)]
pub struct PoolingAttention {
    /// `W`, `[M, A]`, without a bias, since `q` acts as one.
    pub key: Linear,
    /// `q`, `[1, A]`.
    pub query: Param<Tensor<2>>,
    /// `v`, `[1, A]`.
    pub v: Param<Tensor<2>>,
}

impl PoolingConfig {
    /// Initialises the layer.
    pub fn init(&self, init: &mut Init) -> Pooling {
        let attention = match self.pool {
            Pool::Attention { hidden } => {
                let bound = 1.0 / (hidden as f32).sqrt();
                Some(PoolingAttention {
                    key: LinearConfig { bias: false, ..LinearConfig::new(self.width, hidden) }
                        .init(init),
                    query: init.uniform([1, hidden], bound),
                    v: init.uniform([1, hidden], bound),
                })
            }
            _ => None,
        };
        Pooling { attention, pool: self.pool }
    }
}

impl Pooling {
    /// Pools the rows of each sequence.
    ///
    /// # Shapes
    /// `x: [N, M]` → `[S, M]`
    pub fn forward(&self, x: Tensor<2>, sequences: &Sequences) -> Tensor<2> {
        match (&self.attention, self.pool) {
            (Some(attention), _) => sequences.whole(x, |x, lengths| attention.pool(x, lengths)),
            (None, Pool::Max) => ops::largest(x, sequences.lengths()),
            (None, Pool::Last { both_ways }) => ends(x, sequences, both_ways),
            (None, _) => sequences.whole(x, mean),
        }
    }

    /// Returns the attention weight of each row within its sequence; `None` if pooling is not by
    /// attention.
    ///
    /// # Shapes
    /// `x: [N, M]` → `[N]`
    pub fn weights(&self, x: Tensor<2>, sequences: &Sequences) -> Option<Tensor<1>> {
        let attention = self.attention.as_ref()?;
        let weights = sequences.rows(x, |x, lengths| attention.weights(x, lengths));
        let [n, _] = weights.dims();
        Some(weights.reshape([n]))
    }
}

/// State of attention pooling over a sequence that arrives in parts. Its size does not depend on
/// the number of rows.
#[derive(Clone, Debug, Default)]
pub struct PoolingState {
    /// Largest score so far.
    largest: f64,
    /// `Σ_n exp(score_n − largest)`
    sum: f64,
    /// `Σ_n exp(score_n − largest) · x_n`; empty before the first row.
    weighted: Vec<f64>,
}

impl PoolingState {
    /// Returns the pooled vector of all rows so far, `[1, M]`; `None` before the first row.
    pub fn vector(&self, device: &Device) -> Option<Tensor<2>> {
        let mean: Vec<f32> = self.weighted.iter().map(|x| (x / self.sum) as f32).collect();
        let shape = [1, mean.len()];
        (!mean.is_empty()).then(|| Tensor::from_data(TensorData::new(mean, shape), device))
    }

    fn take(&mut self, score: f64, row: &[f32]) {
        if self.weighted.is_empty() {
            (self.largest, self.weighted) = (score, vec![0.0; row.len()]);
        }
        if score > self.largest {
            let smaller = (self.largest - score).exp();
            self.sum *= smaller;
            self.weighted.iter_mut().for_each(|x| *x *= smaller);
            self.largest = score;
        }
        let weight = (score - self.largest).exp();
        self.sum += weight;
        self.weighted.iter_mut().zip(row).for_each(|(sum, x)| *sum += weight * f64::from(*x));
    }
}

impl Pooling {
    /// Adds rows of one sequence to the pooled state. After the last row, [`PoolingState::vector`] equals
    /// [`Pooling::forward`] over all rows. The time per row does not depend on how many came
    /// before.
    ///
    /// # Shapes
    /// `x: [n, M]`
    ///
    /// # Panics
    /// If pooling is not by attention.
    pub fn update(&self, x: Tensor<2>, pooled: &mut PoolingState) {
        let attention = self.attention.as_ref().expect("update: need pooling by attention");
        let [_, width] = x.dims();
        let scores = attention.key.forward(x.clone()) + attention.query.val();
        let scores = scores.tanh().matmul(attention.v.val().transpose());
        let (mut rows, mut each) = (vec![], vec![]);
        backend::numbers(x, &mut rows);
        backend::numbers(scores, &mut each);
        for (row, score) in rows.chunks_exact(width).zip(each) {
            pooled.take(f64::from(score), row);
        }
    }
}

fn valid(lengths: &[usize]) -> Vec<i64> {
    lengths.iter().map(|n| *n as i64).collect()
}

impl PoolingAttention {
    /// The attention, its queries `[B, 1, 1, A]` and its keys `[B, 1, T, A]`.
    fn prepare(&self, x: &Tensor<3>, valid_rows: &[usize]) -> (Attention, Tensor<4>, Tensor<4>) {
        let ([b, ..], [_, a]) = (x.dims(), self.query.dims());
        let queries = self.query.val().reshape([1, 1, 1, a]).expand([b, 1, 1, a]);
        let attention = Attention::additive(self.v.val()).mask(lengths(&valid(valid_rows)));
        (attention, queries, self.key.forward(x.clone()).unsqueeze_dim(1))
    }

    fn pool(&self, x: Tensor<3>, lengths: &[usize]) -> Tensor<2> {
        let [b, _, m] = x.dims();
        let (attention, queries, keys) = self.prepare(&x, lengths);
        attention.attend(queries, keys, x.unsqueeze_dim(1)).reshape([b, m])
    }

    /// `[B, T, 1]`
    fn weights(&self, x: Tensor<3>, lengths: &[usize]) -> Tensor<3> {
        let [b, t, _] = x.dims();
        let (attention, queries, keys) = self.prepare(&x, lengths);
        attention.weights(queries, keys).reshape([b, t, 1])
    }
}

/// Attention with uniform weights.
fn mean(x: Tensor<3>, valid_rows: &[usize]) -> Tensor<2> {
    let [b, t, m] = x.dims();
    let attention = Attention::dot().normalize(Uniform).mask(lengths(&valid(valid_rows)));
    let nothing = |rows| Tensor::<4>::zeros([b, 1, rows, 1], (&x.device(), x.dtype()));
    attention.attend(nothing(1), nothing(t), x.clone().unsqueeze_dim(1)).reshape([b, m])
}

fn ends(x: Tensor<2>, sequences: &Sequences, both_ways: bool) -> Tensor<2> {
    let ([_, m], s) = (x.dims(), sequences.len());
    let pick = |rows: &[usize]| {
        let rows: Vec<i64> = rows.iter().map(|row| *row as i64).collect();
        let rows = Tensor::<1, Int>::from_data(TensorData::new(rows, [s]), &x.device());
        x.clone().select(0, rows)
    };
    let last = pick(&sequences.lasts());
    if !both_ways {
        return last;
    }
    let first = pick(sequences.firsts());
    Tensor::cat(vec![last.slice([0..s, 0..m / 2]), first.slice([0..s, m / 2..m])], 1)
}
