//! Additive scores: `s = scale · Σ_d v_d f(q_d + k_d)`, with `f` = tanh (Bahdanau) or LeakyReLU
//! (GATv2). No `[T, S, D]` array is ever made.
//!
//! For tanh the sum is not formed at all: with `E = e^{2q}` and `F = e^{2k}`, made once per row,
//! `tanh(q + k) = 1 − 2/(E·F + 1)`, which costs a pair one multiply-add and one reciprocal.

use super::*;
use crate::attention::pair::{ByFeature, Feature};
use crate::gemm::micro::Pair;
use crate::simd::{Simd, tanh};

pub(super) const VARIANT: Variant = Variant {
    name: "additive",
    params: &[("v", "[H,D]")],
    formula: "scale · Σ v_d tanh(q_d + k_d), scale = 1 unless given",
    paper: "Bahdanau et al. 2015, arXiv:1409.0473",
};
pub(super) const GATV2: Variant = Variant {
    name: "gatv2",
    params: &[("v", "[H,D]")],
    formula: "scale · Σ v_d LeakyReLU(q_d + k_d; 0.2), scale = 1 unless given",
    paper: "Brody et al. 2022, arXiv:2105.14491",
};

/// `s = scale · Σ_d v_d tanh(q_d + k_d)`; the projections of query and key are outside.
#[derive(Clone, Copy, Debug)]
pub struct Additive;

/// `s = scale · Σ_d v_d LeakyReLU(q_d + k_d)`
#[derive(Clone, Copy, Debug)]
pub struct Gatv2 {
    /// Of the negative side.
    pub slope: f32,
}

/// Beyond this a product of two exponentials might leave the range of `f32`.
const LARGEST: f32 = 20.0;

fn weights(x: Operands, dims: &Dims, scale: f32) -> Vec<f32> {
    let v = &x.params[0];
    (0..dims.h).flat_map(|h| (0..dims.d).map(move |d| scale * v.get(0, h, 0, d))).collect()
}

impl Score for Additive {
    fn params(&self, dims: &Dims) -> Vec<Param> {
        vec![Param { name: "v", shape: [1, dims.h, 1, dims.d] }]
    }
    #[allow(private_interfaces)]
    fn lower<'a>(&'a self, grid: &'a Grid, x: Operands<'a>, scale: f32) -> Lowered<'a> {
        let weights = weights(x, &grid.dims, scale);
        let (q, k) = (x.q.to_vec(), x.k.to_vec());
        let small = |rows: &[f32]| rows.iter().all(|x| x.abs() <= LARGEST);
        let (map, terms) = (None, vec![]);
        if small(&q) && small(&k) {
            let e = |rows: Vec<f32>| rows.into_iter().map(|x| (2.0 * x).exp()).collect();
            let (q, k) = (Operand::Made(e(q), x.q.shape), Operand::Made(e(k), x.k.shape));
            let pair = Box::new(ByFeature(TanhOfProduct));
            return Lowered { pair, q, k, scale: 1.0, weights, map, terms };
        }
        let (q, k) = (Operand::Given(x.q), Operand::Given(x.k));
        Lowered { pair: Box::new(ByFeature(TanhOfSum)), q, k, scale: 1.0, weights, map, terms }
    }
    #[allow(private_interfaces)]
    fn raise(&self, _: &Grid, _: Operands, scale: f32, grads: Raise) -> Vec<Vec<f32>> {
        // The slopes are by q and k themselves, not by their exponentials.
        if !grads.q.is_empty() {
            spread(&grads.q, grads.dq, false);
            spread(&grads.k, grads.dk, false);
        }
        vec![grads.weights.iter().map(|dv| scale * dv).collect()]
    }
}

impl Score for Gatv2 {
    fn params(&self, dims: &Dims) -> Vec<Param> {
        vec![Param { name: "v", shape: [1, dims.h, 1, dims.d] }]
    }
    #[allow(private_interfaces)]
    fn lower<'a>(&'a self, grid: &'a Grid, x: Operands<'a>, scale: f32) -> Lowered<'a> {
        let weights = weights(x, &grid.dims, scale);
        let pair = Box::new(ByFeature(LeakyOfSum { slope: self.slope }));
        let (q, k) = (Operand::Given(x.q), Operand::Given(x.k));
        Lowered { pair, q, k, scale: 1.0, weights, map: None, terms: vec![] }
    }
    #[allow(private_interfaces)]
    fn raise(&self, _: &Grid, _: Operands, scale: f32, grads: Raise) -> Vec<Vec<f32>> {
        vec![grads.weights.iter().map(|dv| scale * dv).collect()]
    }
}

/// `w · tanh(k + q)`, from `e^{2k}` and `e^{2q}`.
#[derive(Clone, Copy)]
struct TanhOfProduct;

impl TanhOfProduct {
    /// `r = 1/(e^{2(k + q)} + 1)`, so that `tanh = 1 − 2r` and its derivative is `4r(1 − r)`.
    #[inline(always)]
    fn r<S: Simd>(s: S, k: S::V, q: S::V) -> S::V {
        s.recip(s.fma(k, q, s.splat(1.0)))
    }
}

impl Pair for TanhOfProduct {
    const WEIGHTED: bool = true;
    #[inline(always)]
    fn step<S: Simd>(self, s: S, acc: S::V, k: S::V, q: S::V, w: S::V) -> S::V {
        s.fma(w, self.value(s, k, q), acc)
    }
}

impl Feature for TanhOfProduct {
    #[inline(always)]
    fn value<S: Simd>(self, s: S, k: S::V, q: S::V) -> S::V {
        s.fnma(s.splat(2.0), TanhOfProduct::r(s, k, q), s.splat(1.0))
    }
    #[inline(always)]
    fn slopes<S: Simd>(self, s: S, k: S::V, q: S::V, w: S::V) -> (S::V, S::V) {
        let r = TanhOfProduct::r(s, k, q);
        let slope = s.mul(s.mul(w, s.splat(4.0)), s.fnma(r, r, r));
        (slope, slope)
    }
}

/// `w · tanh(k + q)`, for rows whose exponentials might overflow.
#[derive(Clone, Copy)]
struct TanhOfSum;

impl Pair for TanhOfSum {
    const WEIGHTED: bool = true;
    #[inline(always)]
    fn step<S: Simd>(self, s: S, acc: S::V, k: S::V, q: S::V, w: S::V) -> S::V {
        s.fma(w, tanh(s, s.add(k, q)), acc)
    }
}

impl Feature for TanhOfSum {
    #[inline(always)]
    fn value<S: Simd>(self, s: S, k: S::V, q: S::V) -> S::V {
        tanh(s, s.add(k, q))
    }
    #[inline(always)]
    fn slopes<S: Simd>(self, s: S, k: S::V, q: S::V, w: S::V) -> (S::V, S::V) {
        let t = tanh(s, s.add(k, q));
        let slope = s.mul(w, s.fnma(t, t, s.splat(1.0)));
        (slope, slope)
    }
}

/// `w · LeakyReLU(k + q)`
#[derive(Clone, Copy)]
pub(super) struct LeakyOfSum {
    pub slope: f32,
}

impl Pair for LeakyOfSum {
    const WEIGHTED: bool = true;
    #[inline(always)]
    fn step<S: Simd>(self, s: S, acc: S::V, k: S::V, q: S::V, w: S::V) -> S::V {
        s.fma(w, self.value(s, k, q), acc)
    }
}

impl Feature for LeakyOfSum {
    #[inline(always)]
    fn value<S: Simd>(self, s: S, k: S::V, q: S::V) -> S::V {
        let x = s.add(k, q);
        s.select(s.lt(x, s.splat(0.0)), s.mul(x, s.splat(self.slope)), x)
    }
    #[inline(always)]
    fn slopes<S: Simd>(self, s: S, k: S::V, q: S::V, w: S::V) -> (S::V, S::V) {
        let negative = s.lt(s.add(k, q), s.splat(0.0));
        let slope = s.select(negative, s.mul(w, s.splat(self.slope)), w);
        (slope, slope)
    }
}
