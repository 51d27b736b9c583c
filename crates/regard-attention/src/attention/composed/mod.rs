//! Attention composed of Burn's own operations, for devices without kernels: the score matrix is
//! materialised, masked and normalised as a whole, and Burn derives the gradient.
//!
//! The formulas are those of the library's scores, biases and normalisers, evaluated with tensors
//! (`tensors.rs`). A custom score or normaliser without a formula is computed by the kernels on the
//! CPU instead, with copies there and back that Burn differentiates.

mod tensors;

use super::Attention;
use crate::backend::ok;
use crate::ops;
use burn::tensor::{Bool, Device, Tensor, TensorData};
use regard_kernels::attention::formula::{self, FormulaInputs};
use regard_kernels::attention::mask::Rule;
use regard_kernels::attention::{self as spec, Dims, Grid};
use tensors::{Tensors, of_param};

/// Whether every part of an attention has a formula.
pub(super) fn knows(spec: &spec::Attention) -> bool {
    formula::known(spec)
}

/// The context and the weights.
pub(super) fn attend(attention: &Attention, [q, k, v]: [Tensor<4>; 3]) -> (Tensor<4>, Tensor<4>) {
    let h = q.dims()[1];
    let weights = weights(attention, q, k, Some(v.clone()));
    (weights.clone().matmul(for_each_query_head(v, h)), weights)
}

/// The weights, `[B, H, T, S]`.
pub(super) fn weights(
    attention: &Attention,
    q: Tensor<4>,
    k: Tensor<4>,
    v: Option<Tensor<4>>,
) -> Tensor<4> {
    let Attention { spec, params } = attention;
    let grid = grid(spec, &q, &k, v.as_ref());
    let Dims { b, h, t, s, .. } = grid.dims;
    let allowed = allowed(spec, &grid, &q.device());
    let asked = spec.params(&grid.dims);
    let mut tensors = Tensors { allowed, like: q.clone() };
    let given = FormulaInputs {
        q: q.unsqueeze_dim(3),
        k: for_each_query_head(k, h).unsqueeze_dim(2),
        v: v.map(|v| for_each_query_head(v, h).unsqueeze_dim(2)),
        params: asked.iter().zip(params).map(|(param, x)| of_param(param, x.clone())).collect(),
    };
    let found = ok(formula::weights(spec, &grid, &mut tensors, given));
    let weights = found.weights.reshape([b, h, t, s]);
    match spec.dropout {
        Some(dropout) => ops::dropout(weights, dropout.p, dropout.noise),
        None => weights,
    }
}

fn grid(spec: &spec::Attention, q: &Tensor<4>, k: &Tensor<4>, v: Option<&Tensor<4>>) -> Grid {
    let [b, hk, s, d] = k.dims();
    let v = v.map_or([b, hk, s, d], |v| v.dims());
    let grid =
        ok(Grid::new(ok(spec::Attention::dims(q.dims(), k.dims(), v)), spec.positions.clone()));
    ok(spec.score.check(&grid));
    ok(spec.mask.check(&grid));
    spec.biases.iter().for_each(|bias| ok(bias.check(&grid)));
    grid
}

/// The mask as a dense tensor, `[B, H, T, S]`.
fn allowed(spec: &spec::Attention, grid: &Grid, device: &Device) -> Tensor<4, Bool> {
    let Dims { b, h, t, s, .. } = grid.dims;
    let heads = if spec.mask.per_head() { h } else { 1 };
    let mut cells = Vec::with_capacity(b * heads * t * s);
    for b in 0..b {
        for h in 0..heads {
            for i in 0..t {
                cells.extend((0..s).map(|j| spec.mask.allows(grid, b, h, i, j)));
            }
        }
    }
    let cells = Tensor::<4, Bool>::from_data(TensorData::new(cells, [b, heads, t, s]), device);
    cells.expand([b, h, t, s])
}

/// `[B, Hk, S, D]` with each key-value head repeated for the query heads that share it.
fn for_each_query_head(x: Tensor<4>, h: usize) -> Tensor<4> {
    let [b, hk, s, d] = x.dims();
    if h == hk {
        return x;
    }
    x.reshape([b, hk, 1, s, d]).expand([b, hk, h / hk, s, d]).reshape([b, h, s, d])
}
