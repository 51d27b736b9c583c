//! Connectionist temporal classification: `loss = −ln Σ_π Π_t softmax(x_t)_{π_t}`, over all paths
//! `π` that collapse to the target labels.

use crate::backend::{self, Buffer, Dense, Operands, Operation, ok};
use burn::backend::{Flex, TensorMetadata};
use burn::tensor::{Int, Tensor, TensorData, activation};
use burn_flex::FlexTensor;
pub use regard_kernels::ops::ctc::Ctc;
use regard_kernels::ops::ctc::{CtcBatch, SavedCtc};
use std::sync::Arc;

/// Target labels of a batch: for each sequence, its number of logit rows and its labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CtcTargets {
    rows: Vec<usize>,
    letters: Vec<i64>,
    counts: Vec<usize>,
}

impl CtcTargets {
    /// Creates an empty batch.
    pub fn new() -> CtcTargets {
        CtcTargets::default()
    }

    /// Adds a sequence of `rows` logit rows with these labels.
    pub fn push(&mut self, rows: usize, letters: &[i64]) {
        self.rows.push(rows);
        self.letters.extend_from_slice(letters);
        self.counts.push(letters.len());
    }
}

#[derive(Clone, Debug)]
struct Losses(Ctc, Arc<CtcTargets>);

/// Computes the CTC loss of each sequence. The logit rows of the sequences are concatenated,
/// without padding. If a sequence has too few rows for its labels, its loss is infinity, or 0 with
/// `zero_infinity`, and it has no gradient.
///
/// # Shapes
/// `logits: [N, V]`, `N` the number of rows of all sequences → `[B]`
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use regard_attention::ops::{Ctc, CtcTargets, ctc_loss};
///
/// let logits = Tensor::<2>::zeros([3, 2], &Device::flex());
/// let mut targets = CtcTargets::new();
/// targets.push(2, &[1]);
/// targets.push(1, &[]);
/// let losses = ctc_loss(logits, targets, Ctc::default()).to_data().try_to_vec::<f32>().unwrap();
/// // Three of four paths collapse to the label; one of two is all blank.
/// assert!((losses[0] - (4f32 / 3.0).ln()).abs() < 1e-6);
/// assert!((losses[1] - 2f32.ln()).abs() < 1e-6);
/// ```
pub fn ctc_loss(logits: Tensor<2>, targets: CtcTargets, options: Ctc) -> Tensor<1> {
    if !backend::fused(&logits) {
        return composed(logits, &targets, options);
    }
    backend::apply(Losses(options, Arc::new(targets)), vec![logits.into_dispatch()], vec![])
}

impl Losses {
    fn spoken<'a>(&'a self, logits: &'a [f32], classes: usize) -> CtcBatch<'a> {
        let CtcTargets { rows, letters, counts } = &*self.1;
        CtcBatch { logits, classes, rows, letters, counts }
    }
}

impl Operation for Losses {
    type Saved = Arc<SavedCtc>;

    fn forward(&self, x: &Operands<Flex>, _: bool) -> (FlexTensor, Self::Saved) {
        let (logits, classes) = (Dense::new(&x.floats[0]), x.floats[0].shape()[1]);
        let mut y = Buffer::new(self.1.rows.len());
        let saved = ok(self.0.forward(self.spoken(&logits, classes), &mut y));
        let losses = y.len();
        (y.tensor([losses]), Arc::new(saved))
    }

    fn backward(
        &self,
        x: &Operands<Flex>,
        saved: Self::Saved,
        dy: FlexTensor,
        _: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        let shape = x.floats[0].shape();
        let logits = Dense::new(&x.floats[0]);
        let mut dx = Buffer::new(logits.len());
        let spoken = self.spoken(&logits, shape[1]);
        ok(self.0.backward(spoken, &saved, &Dense::new(&dy), &mut dx));
        vec![Some(dx.tensor(shape))]
    }
}

/// Stands in for −∞, whose differences would be NaN.
const NEVER: f64 = -1e30;

/// The forward, one sequence and one row at a time; Burn derives the backward.
fn composed(logits: Tensor<2>, targets: &CtcTargets, options: Ctc) -> Tensor<1> {
    let (mut row, mut letter) = (0, 0);
    let logs = activation::log_softmax(logits, 1);
    let [_, classes] = logs.dims();
    let each = targets.rows.iter().zip(&targets.counts).map(|(rows, count)| {
        let x = logs.clone().slice([row..row + rows, 0..classes]);
        let letters = &targets.letters[letter..letter + count];
        (row, letter) = (row + rows, letter + count);
        // A repeated label needs a blank row between.
        let needed = count + letters.windows(2).filter(|pair| pair[0] == pair[1]).count();
        match (needed > *rows, options.zero_infinity) {
            (false, _) => one(x, letters, options.blank),
            (true, true) => Tensor::zeros([1], (&logs.device(), logs.dtype())),
            (true, false) => Tensor::full([1], f64::INFINITY, (&logs.device(), logs.dtype())),
        }
    });
    Tensor::cat(each.collect(), 0)
}

/// The loss of one sequence, `[1]`.
fn one(logs: Tensor<2>, letters: &[i64], blank: usize) -> Tensor<1> {
    let ([rows, _], states) = (logs.dims(), 2 * letters.len() + 1);
    if rows == 0 {
        return Tensor::zeros([1], (&logs.device(), logs.dtype()));
    }
    let class = |s: usize| if s.is_multiple_of(2) { blank as i64 } else { letters[s / 2] };
    let classes: Vec<i64> = (0..states).map(class).collect();
    let classes = TensorData::new(classes.clone(), [states]);
    let classes = Tensor::<1, Int>::from_data(classes, &logs.device());
    let y = logs.clone().select(1, classes);
    let barred = |allowed: &dyn Fn(usize) -> bool| {
        let cost = (0..states).map(|s| if allowed(s) { 0.0 } else { NEVER as f32 }).collect();
        backend::constant(cost, [1, states], &logs)
    };
    let never = |n: usize| Tensor::<2>::full([1, n], NEVER, (&logs.device(), logs.dtype()));
    let jumps = barred(&|s| s >= 2 && s % 2 == 1 && letters[s / 2] != letters[s / 2 - 1]);
    let mut alpha = y.clone().slice([0..1, 0..states]) + barred(&|s| s < 2);
    for t in 1..rows {
        let back = |n: usize| match n.min(states) {
            0 => alpha.clone(),
            n if n == states => never(n),
            n => Tensor::cat(vec![never(n), alpha.clone().slice([0..1, 0..states - n])], 1),
        };
        let came = Tensor::cat(vec![back(0), back(1), back(2) + jumps.clone()], 0);
        alpha = log_sum(came, 0) + y.clone().slice([t..t + 1, 0..states]);
    }
    let last = alpha.slice([0..1, states.saturating_sub(2)..states]);
    -log_sum(last, 1).reshape([1])
}

fn log_sum(x: Tensor<2>, dim: usize) -> Tensor<2> {
    let top = x.clone().detach().max_dim(dim);
    (x - top.clone()).exp().sum_dim(dim).log() + top
}
