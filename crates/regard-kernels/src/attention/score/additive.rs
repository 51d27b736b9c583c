//! Additive scores: `s = scale · Σ_d v_d f(q_d + k_d)`, with `f` = tanh (Bahdanau) or LeakyReLU
//! (GATv2). No `[T, S, D]` array is materialised.
//!
//! For tanh the sum is not computed: with `E = e^{2q}` and `F = e^{2k}`, computed once per row,
//! `tanh(q + k) = 1 − 2/(E·F + 1)`, which costs one multiply-add and one reciprocal per pair.

use super::*;
use crate::attention::pair::{ByFeature, Feature, Pairwise, WithEdges};
use crate::gemm::micro::PairFunction;
use crate::pool::{Parts, parallel_ranges};
use crate::simd::{Simd, dispatch, exp, tanh};
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) const ROW: Row<dyn Score> = Row {
    about: Variant {
        name: "additive",
        params: &[("v", "[H,D]")],
        settings: &[],
        formula: "scale · Σ v_d tanh(q_d + k_d), scale = 1 unless given",
        paper: "Bahdanau et al. 2015, arXiv:1409.0473",
    },
    new: |_| Ok(Arc::new(Additive)),
    trials: DEFAULTS,
};
pub(super) const GATV2: Row<dyn Score> = Row {
    about: Variant {
        name: "gatv2",
        params: &[("v", "[H,D]"), ("edge", "[H,nnz,D], if a graph is given")],
        settings: &[Setting::Number("slope", SLOPE), Setting::Graph(Some("edge"))],
        formula: "scale · Σ v_d LeakyReLU(q_d + k_d [+ edge_d]; 0.2), scale = 1 unless given",
        paper: "Brody et al. 2022, arXiv:2105.14491",
    },
    new: |settings| {
        Ok(Arc::new(Gatv2 { slope: settings.of("slope"), graph: settings.graph.clone() }))
    },
    trials: DEFAULTS,
};

/// Additive score `s = scale · Σ_d v_d tanh(q_d + k_d)`, of projected queries and keys.
#[derive(Clone, Copy, Debug)]
pub struct Additive;

/// GATv2 score `s = scale · Σ_d v_d LeakyReLU(q_d + k_d + edge_d)`; `edge` is 0 without a graph.
#[derive(Clone, Debug)]
pub struct Gatv2 {
    /// Negative slope of LeakyReLU.
    pub slope: f32,
    /// Graph whose edges have features, usually the mask's. Pairs that are not edges have zeros.
    pub graph: Option<Arc<Graph>>,
}

/// Beyond this a product of two exponentials might overflow `f32`.
const LARGEST: f32 = 20.0;

fn weights(x: ScoreOperands, dims: &Dims, scale: f32) -> Vec<f32> {
    let v = &x.params[0];
    (0..dims.h).flat_map(|h| (0..dims.d).map(move |d| scale * v.get(0, h, 0, d))).collect()
}

/// `e^{2x}` of all rows; `None` if one is too large.
fn exponentials(rows: &View) -> Option<Vec<f32>> {
    let mut out = rows.to_vec();
    let small = AtomicBool::new(true);
    let (parts, len) = (Parts::new(&mut out), rows.shape.iter().product());
    parallel_ranges(len, 1 << 14, &|from, to| {
        // SAFETY: each task has its own range.
        let part = unsafe { parts.part(from, to - from) };
        small.fetch_and(dispatch(Exponentials(part)), Ordering::Relaxed);
    });
    small.into_inner().then_some(out)
}

struct Exponentials<'a>(&'a mut [f32]);

impl crate::simd::Kernel for Exponentials<'_> {
    type Out = bool;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> bool {
        let mut largest = s.splat(0.0);
        for x in self.0.chunks_mut(S::LANES) {
            // SAFETY: `x` has as many floats as are loaded and stored.
            unsafe {
                let v = s.load_part(x.as_ptr(), x.len());
                largest = s.max(s.abs(v), largest);
                s.store_part(x.as_mut_ptr(), x.len(), exp(s, s.add(v, v)));
            }
        }
        s.largest(largest) <= LARGEST
    }
}

impl Score for Additive {
    fn params(&self, dims: &Dims) -> Vec<Param> {
        vec![Param::new("v", [1, dims.h, 1, dims.d], "1H1D")]
    }
    fn formula(&self) -> Option<Expr> {
        Some(scale() * param(0).dot((queries() + keys()).tanh()))
    }
}

impl Lower for Additive {
    fn lower<'a>(&'a self, grid: &'a Grid, x: ScoreOperands<'a>, scale: f32) -> Lowered<'a> {
        let weights = weights(x, &grid.dims, scale);
        let (map, terms) = (None, vec![]);
        if let (Some(q), Some(k)) = (exponentials(&x.q), exponentials(&x.k)) {
            let (q, k) = (Operand::Made(q, x.q.shape), Operand::Made(k, x.k.shape));
            let pair = Box::new(ByFeature(TanhOfProduct));
            return Lowered { pair, q, k, scale: 1.0, weights, map, terms };
        }
        let (q, k) = (Operand::Given(x.q), Operand::Given(x.k));
        Lowered { pair: Box::new(ByFeature(TanhOfSum)), q, k, scale: 1.0, weights, map, terms }
    }
    fn raise(&self, _: &Grid, _: ScoreOperands, scale: f32, grads: Raise) -> Vec<Vec<f32>> {
        // The slopes are by q and k themselves, not by their exponentials. Both were computed, or
        // neither. Without queries there are still keys to write zeros to.
        if !(grads.q.is_empty() && grads.k.is_empty()) {
            spread(&grads.q, grads.dq, false);
            spread(&grads.k, grads.dk, false);
        }
        vec![grads.weights.iter().map(|dv| scale * dv).collect()]
    }
}

impl Score for Gatv2 {
    fn params(&self, dims: &Dims) -> Vec<Param> {
        let edge =
            |graph: &Arc<Graph>| Param::new("edge", [1, dims.h, graph.edges(), dims.d], "1HRD");
        let v = Param::new("v", [1, dims.h, 1, dims.d], "1H1D");
        [v].into_iter().chain(self.graph.as_ref().map(edge)).collect()
    }
    fn check(&self, grid: &Grid) -> Result<(), Error> {
        same_width(grid)?;
        fits(&self.graph, grid)
    }
    fn formula(&self) -> Option<Expr> {
        let mut sum = queries() + keys();
        if let Some(graph) = &self.graph {
            sum = sum + param(1).by_edge(graph.clone());
        }
        Some(scale() * param(0).dot(sum.leaky_relu(self.slope)))
    }
    fn extended(&self, more: More) -> Option<Arc<dyn Score>> {
        match (more, &self.graph) {
            (More::Graph(graph), None) => {
                Some(Arc::new(Gatv2 { slope: self.slope, graph: Some(graph) }))
            }
            _ => None,
        }
    }
}

impl Lower for Gatv2 {
    fn lower<'a>(&'a self, grid: &'a Grid, x: ScoreOperands<'a>, scale: f32) -> Lowered<'a> {
        let weights = weights(x, &grid.dims, scale);
        let feature = LeakyOfSum { slope: self.slope };
        let (q, k) = (Operand::Given(x.q), Operand::Given(x.k));
        let pair = leaky(feature, &self.graph, || x.params[1]);
        Lowered { pair, q, k, scale: 1.0, weights, map: None, terms: vec![] }
    }
    fn raise(&self, _: &Grid, _: ScoreOperands, scale: f32, grads: Raise) -> Vec<Vec<f32>> {
        let dv = grads.weights.iter().map(|dv| scale * dv).collect();
        [dv].into_iter().chain(self.graph.as_ref().map(|_| grads.added)).collect()
    }
}

/// Checks that a score's graph matches the sizes.
pub(super) fn fits(graph: &Option<Arc<Graph>>, grid: &Grid) -> Result<(), Error> {
    match graph.as_ref().map(|graph| graph.check(grid)) {
        Some(Err(Error(message))) => bail!("score: {message}"),
        _ => Ok(()),
    }
}

/// The pair of graph attention, with `rows` of edge features, `[1, H, edges, D′]`, if there are
/// any.
pub(super) fn leaky<'a>(
    feature: LeakyOfSum,
    graph: &'a Option<Arc<Graph>>,
    rows: impl FnOnce() -> View<'a>,
) -> Box<dyn Pairwise + 'a> {
    match graph {
        Some(graph) => Box::new(WithEdges { feature, graph, rows: rows() }),
        None => Box::new(ByFeature(feature)),
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

impl PairFunction for TanhOfProduct {
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

impl PairFunction for TanhOfSum {
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

impl PairFunction for LeakyOfSum {
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
