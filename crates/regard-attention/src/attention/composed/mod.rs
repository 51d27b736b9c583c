//! Attention of Burn's own operations, for devices without kernels: the score matrix is made,
//! masked and normalised as a whole, and Burn derives the gradient.
//!
//! All scores, biases and normalisers of the library are here except two kinds, which are
//! computed by the kernels on the CPU instead, with copies there and back that Burn
//! differentiates too: a score, bias or normaliser of the caller's own, because it is code that
//! no other device can run, and hard choices, which no gradient of Burn's describes.

mod biases;
mod normalizers;
mod scores;

use super::{Attention, Kinds};
use crate::backend::{self, ok};
use crate::ops;
use burn::tensor::{Bool, Device, Int, Tensor, TensorData};
use regard_kernels::attention::mask::Rule;
use regard_kernels::attention::{self as spec, Dims, Grid};

/// Whether all of an attention can be composed.
pub(super) fn knows(kinds: &Kinds) -> bool {
    let biases = kinds.biases.iter().all(|bias| biases::knows(&**bias));
    biases && scores::knows(&*kinds.score) && normalizers::knows(&*kinds.normalizer)
}

/// Context and weights.
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
    let Attention { spec, params, kinds } = attention;
    let grid = grid(spec, &q, &k, v.as_ref());
    let of_score = spec.score.params(&grid.dims).len();
    let (of_score, mut of_biases) = params.split_at(of_score);
    let scale = spec.scale.unwrap_or_else(|| spec.score.default_scale(&grid.dims));
    let mut allowed = allowed(spec, &grid, &q.device());
    let operands = scores::Operands { grid: &grid, q, k, v, params: of_score, scale };
    let (mut s, also) = scores::scores(&*kinds.score, operands);
    if let Some(also) = also {
        allowed = allowed.bool_and(also);
    }
    let mut factors = vec![];
    for (bias, kind) in spec.biases.iter().zip(&kinds.biases) {
        let (params, rest) = of_biases.split_at(bias.params(&grid.dims).len());
        of_biases = rest;
        let (bias, after) = biases::bias(&**kind, &grid, params);
        match after {
            false => s = s + bias,
            true => factors.push(bias.exp()),
        }
    }
    let mut weights = normalizers::normalize(&*kinds.normalizer, s, allowed);
    for factor in factors {
        weights = weights * factor;
    }
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

/// The mask cell by cell, `[B, H, T, S]`.
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

/// `[B, Hk, S, D]` with each head as often as query heads share it.
fn for_each_query_head(x: Tensor<4>, h: usize) -> Tensor<4> {
    let [b, hk, s, d] = x.dims();
    if h == hk {
        return x;
    }
    x.reshape([b, hk, 1, s, d]).expand([b, hk, h / hk, s, d]).reshape([b, h, s, d])
}

/// The rows of edges spread over all cells, `[…, T·S, …]` along `axis`; zeros where there is none.
fn by_edge(indptr: &[i64], indices: &[i64], rows: Tensor<4>, axis: usize, s: usize) -> Tensor<4> {
    // Cells without an edge take a row of zeros behind the last edge.
    let t = indptr.len() - 1;
    let mut index = vec![indices.len() as i64; t * s];
    for i in 0..t {
        for edge in indptr[i]..indptr[i + 1] {
            index[i * s + indices[edge as usize] as usize] = edge;
        }
    }
    let index = Tensor::<1, Int>::from_data(TensorData::new(index, [t * s]), &rows.device());
    let mut one = rows.dims();
    one[axis] = 1;
    let none = backend::constant(vec![0.0; one.iter().product()], one, &rows);
    Tensor::cat(vec![rows, none], axis).select(axis, index)
}

/// A number for each batch row, query and key that is no parameter, `[B, 1, T, S]`.
fn by_place(grid: &Grid, like: &Tensor<4>, f: impl Fn(f32, usize) -> f32) -> Tensor<4> {
    let Dims { b, t, s, .. } = grid.dims;
    let mut cells = Vec::with_capacity(b * t * s);
    for b in 0..b {
        for i in 0..t {
            let position = grid.position(b, i);
            cells.extend((0..s).map(|j| f(position, j)));
        }
    }
    backend::constant(cells, [b, 1, t, s], like)
}
