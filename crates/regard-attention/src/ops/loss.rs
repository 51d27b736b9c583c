//! Softmax cross-entropy: `loss = mean over counted rows of −Σ_c target_c · log softmax(x)_c`.

use crate::backend::{self, Buffer, Dense, Operands, Operation, integers, ok};
use burn::backend::{Flex, TensorMetadata};
use burn::tensor::{Int, Tensor, activation};
use burn_flex::FlexTensor;
pub use regard_kernels::ops::loss::CrossEntropy;
use regard_kernels::ops::loss::LossRows;
use std::sync::Arc;

#[derive(Clone, Copy, Debug)]
struct MeanLoss(CrossEntropy);

/// Computes the mean cross-entropy between logits and targets, with label smoothing `ε`. Rows whose
/// target is the ignored one are not counted; if no row is counted, the result is 0.
///
/// # Shapes
/// `logits: [N, V]`, `targets: [N]` → `[1]`
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use regard_attention::ops::{CrossEntropy, cross_entropy};
///
/// let device = Device::flex();
/// let logits = Tensor::<2>::zeros([2, 4], &device);
/// let targets = Tensor::<1, Int>::from_ints([3, -100], &device);
/// let options = CrossEntropy { ignore: Some(-100), ..Default::default() };
/// let loss = cross_entropy(logits, targets, options).into_scalar::<f32>();
/// assert!((loss - 4f32.ln()).abs() < 1e-6);
/// ```
pub fn cross_entropy(
    logits: Tensor<2>,
    targets: Tensor<1, Int>,
    options: CrossEntropy,
) -> Tensor<1> {
    if !backend::fused(&logits) {
        return composed(logits, targets, options);
    }
    backend::apply(MeanLoss(options), vec![logits.into_dispatch()], vec![targets.into_dispatch()])
}

fn composed(logits: Tensor<2>, targets: Tensor<1, Int>, options: CrossEntropy) -> Tensor<1> {
    let ([n, _], dtype) = (logits.dims(), logits.dtype());
    let counted = match options.ignore {
        Some(ignore) => targets.clone().equal_elem(ignore).bool_not(),
        None => Tensor::<1>::ones([n], &logits.device()).greater_elem(0.0),
    };
    // Ignored rows may have any target; class 0 stands in.
    let safe = targets.mask_fill(counted.clone().bool_not(), 0);
    let logs = activation::log_softmax(logits, 1);
    let right = logs.clone().gather(1, safe.reshape([n, 1])).reshape([n]);
    let spread = logs.mean_dim(1).reshape([n]);
    let rows = -(right * (1.0 - options.smoothing) + spread * options.smoothing);
    let counted = counted.float().cast(dtype);
    let count = counted.clone().sum().clamp_min(1.0);
    (rows * counted).sum() / count
}

impl Operation for MeanLoss {
    /// Log-sum-exp of each row.
    type Saved = Arc<Vec<f32>>;

    fn forward(&self, x: &Operands<Flex>, _: bool) -> (FlexTensor, Self::Saved) {
        let (logits, targets) = (Dense::new(&x.floats[0]), integers(&x.ints[0]));
        let mut lse = vec![0.0; targets.len()];
        let rows = LossRows { logits: &logits, targets: &targets };
        let loss = ok(self.0.forward(rows, &mut lse));
        let mut y = Buffer::new(1);
        y[0] = loss.loss;
        (y.tensor([1]), Arc::new(lse))
    }

    fn backward(
        &self,
        x: &Operands<Flex>,
        lse: Self::Saved,
        dy: FlexTensor,
        _: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        let (logits, targets) = (Dense::new(&x.floats[0]), integers(&x.ints[0]));
        let mut dx = Buffer::new(logits.len());
        let rows = LossRows { logits: &logits, targets: &targets };
        ok(self.0.backward(rows, &lse, Dense::new(&dy)[0], &mut dx));
        vec![Some(dx.tensor(x.floats[0].shape()))]
    }
}
