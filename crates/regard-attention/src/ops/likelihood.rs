//! Log-likelihood of targets: from probabilities, such as attention weights, instead of logits; and
//! per row, for mixtures of distributions.

use crate::backend::{self, Buffer, Dense, Operands, Operation, integers, ok};
use burn::backend::{Flex, TensorMetadata};
use burn::tensor::{Int, Tensor, activation};
use burn_flex::FlexTensor;
use regard_kernels::ops::loss::{CrossEntropy, LossRows as Losses};
use std::sync::Arc;

/// Probabilities are clamped to at least this, so that their logarithm is finite. The engine's
/// weights are exactly 0 below e⁻⁸⁷.
const LEAST: f32 = 1e-30;

/// Computes the negative log-likelihood of probabilities, `−mean ln p[target]` over the counted
/// rows. Rows with the target `ignore` are not counted; without counted rows the result is 0. A
/// probability of 0 has a finite loss and no gradient.
///
/// # Shapes
/// `probabilities: [N, V]`, `targets: [N]` → `[1]`
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use regard_attention::ops::negative_log_likelihood;
///
/// let device = Device::flex();
/// let p = Tensor::<2>::from_floats([[0.25, 0.75], [0.5, 0.5]], &device);
/// let targets = Tensor::<1, Int>::from_ints([0, -1], &device);
/// let cost = negative_log_likelihood(p, targets, -1).into_scalar::<f32>();
/// assert!((cost - 4f32.ln()).abs() < 1e-6);
/// ```
pub fn negative_log_likelihood(
    probabilities: Tensor<2>,
    targets: Tensor<1, Int>,
    ignore: i64,
) -> Tensor<1> {
    let ([n, _], dtype) = (probabilities.dims(), probabilities.dtype());
    let ignored = targets.clone().equal_elem(ignore);
    let counted = ignored.clone().bool_not().float().cast(dtype);
    let count = counted.clone().sum().clamp_min(1.0);
    // Ignored rows may have any target; class 0 stands in.
    let safe = targets.mask_fill(ignored, 0).reshape([n, 1]);
    let right = probabilities.gather(1, safe).reshape([n]);
    (right.clamp_min(LEAST).log() * counted).sum().neg() / count
}

/// The cross-entropy kernel, row by row.
#[derive(Clone, Copy, Debug)]
struct Rowwise;

const PLAIN: CrossEntropy = CrossEntropy { smoothing: 0.0, ignore: None };

/// Computes the log-likelihood `ln softmax(x)[target]` of each row.
///
/// # Shapes
/// `logits: [N, V]`, `targets: [N]` → `[N]`
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use regard_attention::ops::log_likelihoods;
///
/// let device = Device::flex();
/// let logits = Tensor::<2>::zeros([2, 4], &device);
/// let targets = Tensor::<1, Int>::from_ints([3, 0], &device);
/// let logs = log_likelihoods(logits, targets).to_data().try_to_vec::<f32>().unwrap();
/// assert!(logs.iter().all(|x| (x + 4f32.ln()).abs() < 1e-6));
/// ```
pub fn log_likelihoods(logits: Tensor<2>, targets: Tensor<1, Int>) -> Tensor<1> {
    if !backend::fused(&logits) {
        let [n, _] = logits.dims();
        let logs = activation::log_softmax(logits, 1);
        return logs.gather(1, targets.reshape([n, 1])).reshape([n]);
    }
    backend::apply(Rowwise, vec![logits.into_dispatch()], vec![targets.into_dispatch()])
}

impl Operation for Rowwise {
    /// Log-sum-exp of each row.
    type Saved = Arc<Vec<f32>>;

    fn forward(&self, x: &Operands<Flex>, _: bool) -> (FlexTensor, Self::Saved) {
        let (logits, targets) = (Dense::new(&x.floats[0]), integers(&x.ints[0]));
        let (n, v) = (targets.len(), x.floats[0].shape()[1]);
        let mut lse = vec![0.0; n];
        let rows = Losses { logits: &logits, targets: &targets };
        ok(PLAIN.forward(rows, &mut lse));
        let mut y = Buffer::new(n);
        for (row, y) in y.iter_mut().enumerate() {
            *y = logits[row * v + targets[row] as usize] - lse[row];
        }
        (y.tensor([n]), Arc::new(lse))
    }

    fn backward(
        &self,
        x: &Operands<Flex>,
        lse: Self::Saved,
        dy: FlexTensor,
        _: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        let (logits, targets) = (Dense::new(&x.floats[0]), integers(&x.ints[0]));
        let v = x.floats[0].shape()[1];
        let mut dx = Buffer::new(logits.len());
        let rows = Losses { logits: &logits, targets: &targets };
        // y = x_t − lse is minus the loss of its row. With the count set to the number of rows, the
        // kernel gives softmax − target, which is then multiplied by each row's own −dy.
        ok(PLAIN.backward(rows, &lse, targets.len() as f32, &mut dx));
        for (dx, dy) in dx.chunks_exact_mut(v.max(1)).zip(Dense::new(&dy).iter()) {
            dx.iter_mut().for_each(|dx| *dx *= -dy);
        }
        vec![Some(dx.tensor(x.floats[0].shape()))]
    }
}
