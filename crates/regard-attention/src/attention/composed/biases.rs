//! The biases as matrices.

use super::{by_edge, by_place};
use burn::tensor::Tensor;
use regard_kernels::attention::bias::{Alibi, Dense, EdgeBias, Gaussian, Table};
use regard_kernels::attention::{Dims, Grid};
use std::any::Any;

pub(super) fn knows(bias: &dyn Any) -> bool {
    bias.is::<Alibi>()
        || bias.is::<Table>()
        || bias.is::<Dense>()
        || bias.is::<EdgeBias>()
        || bias.is::<Gaussian>()
}

/// What is added to the scores, or, if the second is true, the logarithm of what multiplies the
/// weights. Broadcasts to `[B, H, T, S]`.
pub(super) fn bias(any: &dyn Any, grid: &Grid, params: &[Tensor<4>]) -> (Tensor<4>, bool) {
    let Dims { b, h, t, s, .. } = grid.dims;
    if any.is::<Alibi>() {
        let away = by_place(grid, &params[0], |p, j| -(p - j as f32).abs());
        (away * params[0].clone(), false)
    } else if any.is::<Dense>() {
        (params[0].clone(), false)
    } else if let Some(Table { reach }) = any.downcast_ref() {
        let limit = *reach as f32;
        let place = |p: f32, j: usize| (j as f32 - p).round().clamp(-limit, limit) + limit;
        let index = by_place(grid, &params[0], place).int().reshape([b * t * s]);
        let table = params[0].clone().reshape([h, 2 * reach + 1]);
        (table.select(1, index).reshape([h, b, t, s]).swap_dims(0, 1), false)
    } else if let Some(EdgeBias { indptr, indices }) = any.downcast_ref() {
        let values = by_edge(indptr, indices, params[0].clone(), 2, s);
        (values.reshape([1, t, s, h]).permute([0, 3, 1, 2]), false)
    } else if let Some(Gaussian { after }) = any.downcast_ref() {
        let keys = by_place(grid, &params[0], |_, j| j as f32);
        let away = keys - params[0].clone().reshape([b, 1, t, 1]);
        let sigma = params[1].clone();
        (away.clone() * away / (sigma.clone() * sigma) * -0.5, *after)
    } else {
        unreachable!("only known biases are composed")
    }
}
