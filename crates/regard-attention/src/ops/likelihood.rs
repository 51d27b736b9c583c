//! How likely what was right is, where a model gives probabilities and not logits: weights of an
//! attention, or a mixture of distributions.

use burn::tensor::{Int, Tensor};

/// Smaller probabilities count as this one, whose logarithm is finite. The engine's weights are
/// exactly 0 below e⁻⁸⁷.
const LEAST: f32 = 1e-30;

/// `−mean over counted rows of ln p[target]`. Rows with the target `ignore` do not count; without
/// counted rows it is 0. A probability of 0 has a finite cost and no gradient.
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
    // Rows that do not count may have any target; class 0 stands in.
    let safe = targets.mask_fill(ignored, 0).reshape([n, 1]);
    let right = probabilities.gather(1, safe).reshape([n]);
    (right.clamp_min(LEAST).log() * counted).sum().neg() / count
}
