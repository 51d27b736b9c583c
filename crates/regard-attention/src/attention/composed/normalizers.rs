//! From scores to weights. Masked cells and rows without allowed cells get exactly 0.

use burn::tensor::{Bool, Tensor, activation};
use regard_kernels::attention::normalize::{
    Entmax15, Sigmoid, Softmax, Softmax1, Sparsemax, Uniform,
};
use std::any::Any;

pub(super) fn knows(normalizer: &dyn Any) -> bool {
    normalizer.is::<Softmax>()
        || normalizer.is::<Softmax1>()
        || normalizer.is::<Sigmoid>()
        || normalizer.is::<Uniform>()
        || normalizer.is::<Sparsemax>()
        || normalizer.is::<Entmax15>()
}

pub(super) fn normalize(any: &dyn Any, s: Tensor<4>, allowed: Tensor<4, Bool>) -> Tensor<4> {
    let masked = allowed.clone().bool_not();
    // A finite number stands in for masked scores, so that nothing ever is ∞ − ∞.
    let s = s.mask_fill(masked.clone(), -1e30);
    let weights = if any.is::<Softmax>() {
        let e = (s.clone() - s.max_dim(3).detach()).exp().mask_fill(masked.clone(), 0.0);
        let sum = e.clone().sum_dim(3);
        e / above_zero(sum)
    } else if any.is::<Softmax1>() {
        let top = s.clone().max_dim(3).detach().clamp_min(0.0);
        let e = (s - top.clone()).exp().mask_fill(masked.clone(), 0.0);
        e.clone() / (e.sum_dim(3) + (-top).exp())
    } else if any.is::<Sigmoid>() {
        activation::sigmoid(s)
    } else if any.is::<Uniform>() {
        let ones = (s * 0.0 + 1.0).detach().mask_fill(masked.clone(), 0.0);
        ones.clone() / above_zero(ones.sum_dim(3))
    } else if any.is::<Sparsemax>() {
        threshold(s, &masked, false)
    } else if any.is::<Entmax15>() {
        threshold(s * 0.5, &masked, true)
    } else {
        unreachable!("only known normalisers are composed")
    };
    weights.mask_fill(masked, 0.0)
}

/// Sums of rows without allowed cells are 0; divided by 1 they stay so.
fn above_zero(sum: Tensor<4>) -> Tensor<4> {
    let empty = sum.clone().equal_elem(0.0);
    sum.mask_fill(empty, 1.0)
}

/// `max(z − τ, 0)`, or its square, with `τ` such that a row sums to 1 (Martins and Astudillo
/// 2016; Peters et al. 2019).
///
/// Which cells are above `τ` is found by Newton's method from below; given these, `τ` is a
/// formula of their `z`, and that formula is what Burn differentiates.
fn threshold(z: Tensor<4>, masked: &Tensor<4, Bool>, squared: bool) -> Tensor<4> {
    let fixed = z.clone().detach();
    let mut tau = fixed.clone().max_dim(3) - 1.0;
    for _ in 0..32 {
        let above = (fixed.clone() - tau.clone()).clamp_min(0.0).mask_fill(masked.clone(), 0.0);
        let (value, slope) = match squared {
            true => (above.clone() * above.clone(), above * 2.0),
            false => (above.clone(), above.greater_elem(0.0).float().cast(fixed.dtype())),
        };
        let slope = above_zero(slope.sum_dim(3));
        tau = tau + ((value.sum_dim(3) - 1.0) / slope).clamp_min(0.0);
    }
    let outside = (fixed.clone() - tau).lower_equal_elem(0.0).bool_or(masked.clone());
    let inside = (fixed * 0.0 + 1.0).mask_fill(outside.clone(), 0.0);
    let count = above_zero(inside.sum_dim(3));
    let mean = z.clone().mask_fill(outside.clone(), 0.0).sum_dim(3) / count.clone();
    if squared {
        // Σ (z − τ)² = 1 over the cells inside: τ = mean − √((1 − Σ (z − mean)²)/count)
        let apart = (z.clone() - mean.clone()).mask_fill(outside.clone(), 0.0);
        let left = -(apart.clone() * apart).sum_dim(3) + 1.0;
        let tau = mean - (left.clamp_min(1e-12) / count).sqrt();
        let above = (z - tau).mask_fill(outside, 0.0);
        return above.clone() * above;
    }
    // Σ (z − τ) = 1 over the cells inside: τ = mean − 1/count
    (z - (mean - count.recip())).mask_fill(outside, 0.0)
}
