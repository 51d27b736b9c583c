//! Graph attention: `s = scale · LeakyReLU(a_q · q + a_k · k)`, optionally with a scalar per edge.

use super::additive::{LeakyOfSum, fits, leaky};
use super::*;
use crate::attention::rows::{Rows, add_dots, load};
use crate::attention::term::sum_over_batch;
use crate::memory::zeros;
use crate::pool::{Parts, parallel};
use crate::simd::{self, Simd, dispatch};
use std::ops::Range;

pub(super) const ROW: Row<dyn Score> = Row {
    about: Variant {
        name: "edge",
        params: &[("a_q", "[H,D]"), ("a_k", "[H,D]"), ("edge", "[H,nnz], if a graph is given")],
        settings: &[Setting::Number("slope", SLOPE), Setting::Graph(Some("edge"))],
        formula: "scale · LeakyReLU(a_q · q + a_k · k [+ edge]; 0.2), scale = 1 unless given",
        paper: "Veličković et al. 2018, arXiv:1710.10903",
    },
    new: |settings| {
        Ok(Arc::new(Edge { slope: settings.of("slope"), graph: settings.graph.clone() }))
    },
    trials: DEFAULTS,
};

/// GAT score `s = scale · LeakyReLU(a_q·q + a_k·k + edge)`: rows are reduced to scalars before
/// pairs are formed. `edge` is 0 without a graph; it is `a_e·e` of later papers, computed by the
/// caller.
#[derive(Clone, Debug)]
pub struct Edge {
    /// Negative slope of LeakyReLU.
    pub slope: f32,
    /// Graph whose edges have a scalar, usually the mask's. Pairs that are not edges have 0.
    pub graph: Option<Arc<Graph>>,
}

/// `a_h · row` for every row; `group` query heads share a head of rows. All heads of some rows at a
/// time, since they are often adjacent in memory.
fn project(rows: &View, a: &View, group: usize) -> (Vec<f32>, [usize; 4]) {
    let [b, h, n, _] = rows.shape;
    let heads = h * group;
    let mut out = zeros(&[b, heads, n]);
    let parts = Parts::new(&mut out);
    let pieces = n.div_ceil(ROWS_PER_TASK);
    parallel(b * pieces, &|task| {
        let (b, i0) = (task / pieces, task % pieces * ROWS_PER_TASK);
        for head in 0..heads {
            let a = Rows { row: 0, ..Rows::of(a, 0, head) };
            // SAFETY: each task has its own rows, and they exist; those of `a` are one and the same.
            unsafe {
                let to = parts.part((b * heads + head) * n + i0, ROWS_PER_TASK.min(n - i0));
                add_dots(Rows::of(rows, b, head / group).from(i0), a, to);
            }
        }
    });
    (out, [b, heads, n, 1])
}

/// From the gradient of `a_h · row`: writes that of the rows and returns that of `a`.
fn unproject(rows: &View, a: &View, group: usize, dp: &[f32], to: &ViewMut) -> Vec<f32> {
    let [b, h, n, d] = rows.shape;
    let pieces = n.div_ceil(ROWS_PER_TASK);
    let mut each = zeros(&[b, pieces, h, group, d]);
    let parts = Parts::new(&mut each);
    parallel(b * pieces, &|task| {
        let (b, i0) = (task / pieces, task % pieces * ROWS_PER_TASK);
        for head in 0..h {
            // SAFETY: each task has its own rows and sums.
            let da = unsafe { parts.part((task * h + head) * group * d, group * d) };
            let rows = Rows::of(rows, b, head);
            let a = Rows { row: a.strides[1], ..Rows::of(a, 0, head * group) };
            let dp = &dp[(b * h + head) * group * n..][..group * n];
            let piece = i0..(i0 + ROWS_PER_TASK).min(n);
            dispatch(Unproject { rows, a, dp, da, to, at: (b, head), piece });
        }
    });
    sum_over_batch(&each, h * group, d)
}

/// Some rows of one head, which exist in `rows` and `to`.
struct Unproject<'a> {
    rows: Rows,
    /// A row for each query head of the group.
    a: Rows,
    /// `[group, n]`
    dp: &'a [f32],
    /// `[group, d]`
    da: &'a mut [f32],
    to: &'a ViewMut<'a>,
    at: (usize, usize),
    piece: Range<usize>,
}

impl simd::Kernel for Unproject<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let width = self.rows.width;
        let (group, n) = (self.da.len() / width, self.dp.len() * width / self.da.len());
        for d in (0..width).step_by(S::LANES) {
            let wide = (width - d).min(S::LANES);
            // SAFETY: rows and features exist, as whoever makes an `Unproject` vouches.
            unsafe {
                // forward: p += a[c] · row[c]
                for g in 0..group {
                    let mut sum = s.splat(0.0);
                    for i in self.piece.clone() {
                        let dp = self.dp[g * n + i];
                        // A masked key has no gradient, and may hold any values.
                        if dp != 0.0 {
                            sum = s.fma(s.splat(dp), load(s, self.rows, i, d, wide), sum);
                        }
                    }
                    s.store_part(self.da[g * width + d..][..wide].as_mut_ptr(), wide, sum);
                }
                for i in self.piece.clone() {
                    let mut sum = s.splat(0.0);
                    for g in 0..group {
                        let dp = s.splat(self.dp[g * n + i]);
                        sum = s.fma(dp, load(s, self.a, g, d, wide), sum);
                    }
                    store(s, self.to, [self.at.0, self.at.1, i, d], sum, wide);
                }
            }
        }
    }
}

/// Stores `n` features of a row.
///
/// # Safety
/// They must exist, and no other task may use them.
#[inline(always)]
unsafe fn store<S: Simd>(s: S, to: &ViewMut, [b, h, i, d]: [usize; 4], x: S::V, n: usize) {
    let (to, step) = (to.at(b, h, i, d), to.strides[3]);
    // SAFETY: the caller vouches for the features; a line holds the widest vector.
    unsafe {
        if step == 1 {
            return s.store_part(to, n, x);
        }
        let mut line = [0f32; 16];
        s.store(line.as_mut_ptr(), x);
        for (c, x) in line.iter().enumerate().take(n) {
            *to.offset(c as isize * step) = *x;
        }
    }
}

impl Score for Edge {
    fn params(&self, dims: &Dims) -> Vec<Param> {
        let edge = |graph: &Arc<Graph>| Param::new("edge", [1, dims.h, graph.edges(), 1], "1HR1");
        let a = ["a_q", "a_k"].map(|name| Param::new(name, [1, dims.h, 1, dims.d], "1H1D"));
        a.into_iter().chain(self.graph.as_ref().map(edge)).collect()
    }
    fn check(&self, grid: &Grid) -> Result<(), Error> {
        same_width(grid)?;
        fits(&self.graph, grid)
    }
    fn formula(&self) -> Option<Expr> {
        let mut sum = param(0).dot(queries()) + param(1).dot(keys());
        if let Some(graph) = &self.graph {
            sum = sum + param(2).by_edge(graph.clone());
        }
        Some(scale() * sum.leaky_relu(self.slope))
    }
    fn extended(&self, more: More) -> Option<Arc<dyn Score>> {
        match (more, &self.graph) {
            (More::Graph(graph), None) => {
                Some(Arc::new(Edge { slope: self.slope, graph: Some(graph) }))
            }
            _ => None,
        }
    }
}

impl Lower for Edge {
    fn lower<'a>(&'a self, grid: &'a Grid, x: ScoreOperands<'a>, scale: f32) -> Lowered<'a> {
        let (q, q_shape) = project(&x.q, &x.params[0], 1);
        let (k, k_shape) = project(&x.k, &x.params[1], grid.dims.group());
        Lowered {
            pair: leaky(LeakyOfSum { slope: self.slope }, &self.graph, || x.params[2]),
            q: Operand::Made(q, q_shape),
            k: Operand::Made(k, k_shape),
            scale: 1.0,
            weights: vec![scale; grid.dims.h],
            map: None,
            terms: vec![],
        }
    }
    fn raise(&self, grid: &Grid, x: ScoreOperands, _: f32, grads: Raise) -> Vec<Vec<f32>> {
        let a = [
            unproject(&x.q, &x.params[0], 1, &grads.q, grads.dq),
            unproject(&x.k, &x.params[1], grid.dims.group(), &grads.k, grads.dk),
        ];
        a.into_iter().chain(self.graph.as_ref().map(|_| grads.added)).collect()
    }
}
