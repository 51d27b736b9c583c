//! The score matrices.

use super::{by_edge, for_each_query_head};
use burn::tensor::{Bool, Int, Tensor, TensorData, activation};
use regard_kernels::attention::score::{
    Additive, Dot, Edge, Gatv2, General, Kernel, KeyValue, Relative, Shape,
};
use regard_kernels::attention::{Dims, Grid};
use std::any::Any;

/// What a score is computed from.
pub(super) struct Operands<'a> {
    pub grid: &'a Grid,
    pub q: Tensor<4>,
    pub k: Tensor<4>,
    pub v: Option<Tensor<4>>,
    pub params: &'a [Tensor<4>],
    pub scale: f32,
}

pub(super) fn knows(score: &dyn Any) -> bool {
    score.is::<Dot>()
        || score.is::<Additive>()
        || score.is::<Gatv2>()
        || score.is::<General>()
        || score.is::<Kernel>()
        || score.is::<KeyValue>()
        || score.is::<Edge>()
        || score.is::<Relative>()
}

/// The scores, `[B, H, T, S]`, and which of them are not −∞ if some may be.
pub(super) fn scores(any: &dyn Any, x: Operands) -> (Tensor<4>, Option<Tensor<4, Bool>>) {
    let Operands { grid, q, k, v, params, scale } = x;
    let h = grid.dims.h;
    let k = for_each_query_head(k, h);
    let product = |q: Tensor<4>, k: Tensor<4>| q.matmul(k.transpose()) * scale;
    if any.is::<Dot>() {
        (product(q, k), None)
    } else if any.is::<General>() {
        (product(q.matmul(params[0].clone()), k), None)
    } else if any.is::<KeyValue>() {
        let v = for_each_query_head(v.expect("this score needs values"), h);
        (product(q, k * params[0].clone() + v * params[1].clone()), None)
    } else if any.is::<Additive>() {
        (by_feature(q, k, &params[0], |x| x.tanh()) * scale, None)
    } else if let Some(Gatv2 { slope, graph }) = any.downcast_ref() {
        let Dims { t, s, d, .. } = grid.dims;
        let edge = graph.as_ref().map(|graph| {
            let rows = by_edge(graph.indptr(), graph.indices(), params[1].clone(), 2, s);
            rows.reshape([1, h, t, s, d])
        });
        let leaky = |x: Tensor<5>| {
            let x = edge.clone().map_or(x.clone(), |edge| x + edge);
            activation::leaky_relu(x, f64::from(*slope))
        };
        (by_feature(q, k, &params[0], leaky) * scale, None)
    } else if let Some(Edge { slope, graph }) = any.downcast_ref() {
        let Dims { t, s, .. } = grid.dims;
        let q = (q * params[0].clone()).sum_dim(3);
        let k = (k * params[1].clone()).sum_dim(3).transpose();
        let mut sum = q + k;
        if let Some(graph) = graph {
            let edge = by_edge(graph.indptr(), graph.indices(), params[2].clone(), 3, s);
            sum = sum + edge.reshape([1, h, t, s]);
        }
        (activation::leaky_relu(sum, f64::from(*slope)) * scale, None)
    } else if let Some(Kernel(shape)) = any.downcast_ref() {
        kernel(*shape, q, k, params[0].clone(), scale)
    } else if let Some(relative) = any.downcast_ref::<Relative>() {
        (positions(relative, grid, q, k, params) * scale, None)
    } else {
        unreachable!("only known scores are composed")
    }
}

/// `[B, H, T, S, D]`: the one place where memory grows with all five.
fn pairs(q: Tensor<4>, k: Tensor<4>, f: impl Fn(Tensor<5>, Tensor<5>) -> Tensor<5>) -> Tensor<5> {
    f(q.unsqueeze_dim(3), k.unsqueeze_dim(2))
}

/// `Σ_d v_d f(q_d + k_d)`
fn by_feature(
    q: Tensor<4>,
    k: Tensor<4>,
    v: &Tensor<4>,
    f: impl Fn(Tensor<5>) -> Tensor<5>,
) -> Tensor<4> {
    let ([b, h, t, _], s) = (q.dims(), k.dims()[2]);
    let v: Tensor<5> = v.clone().unsqueeze_dim(3);
    (pairs(q, k, |q, k| f(q + k)) * v).sum_dim(4).reshape([b, h, t, s])
}

/// `scale·ln K(|q − k|/σ)`; where the kernel is 0 the score is −∞, said by the second.
fn kernel(
    shape: Shape,
    q: Tensor<4>,
    k: Tensor<4>,
    sigma: Tensor<4>,
    scale: f32,
) -> (Tensor<4>, Option<Tensor<4, Bool>>) {
    let ([b, h, t, _], s) = (q.dims(), k.dims()[2]);
    let apart = pairs(q, k, |q, k| {
        let apart = q - k;
        apart.clone() * apart
    });
    let u = apart.sum_dim(4).reshape([b, h, t, s]) / (sigma.clone() * sigma);
    match shape {
        Shape::Gaussian => (u * (-0.5 * scale), None),
        Shape::Boxcar => {
            let inside = u.clone().lower_equal_elem(1.0);
            (u * 0.0, Some(inside))
        }
        Shape::Epanechnikov => {
            let inside = u.clone().lower_elem(1.0);
            // Outside the logarithm is of 1, so that neither it nor its gradient is infinite.
            let left = (-u + 1.0).mask_fill(inside.clone().bool_not(), 1.0);
            (left.log() * scale, Some(inside))
        }
    }
}

/// `(q + u)·k_j + (q + w)·r_{p−j} + (q + x)·g_{same segment?}`
fn positions(
    relative: &Relative,
    grid: &Grid,
    q: Tensor<4>,
    k: Tensor<4>,
    params: &[Tensor<4>],
) -> Tensor<4> {
    let (Dims { b, h, t, s, .. }, device) = (grid.dims, q.device());
    let mut all = (q.clone() + params[1].clone()).matmul(k.transpose());
    // Row S − (p − j) for the distance p − j.
    let rows = (q.clone() + params[2].clone()).matmul(params[0].clone().transpose());
    let shear: Vec<i64> = (0..b * t)
        .flat_map(|at| {
            let place = grid.key_at(at / t, at % t).expect("places were checked");
            (0..s).map(move |j| (s - place + j) as i64)
        })
        .collect();
    let shear = Tensor::<4, Int>::from_data(TensorData::new(shear, [b, 1, t, s]), &device);
    all = all + rows.gather(3, shear.expand([b, h, t, s]));
    if let Some(ids) = &relative.segments {
        let both = (q + params[4].clone()).matmul(params[3].clone().transpose());
        let mut other = Vec::with_capacity(b * t * s);
        for b in 0..b {
            for i in 0..t {
                let own = grid.key_at(b, i).map(|p| ids[b * s + p]);
                other.extend((0..s).map(|j| i64::from(own != Some(ids[b * s + j]))));
            }
        }
        let other = Tensor::<4, Int>::from_data(TensorData::new(other, [b, 1, t, s]), &device);
        all = all + both.gather(3, other.expand([b, h, t, s]));
    }
    all
}
