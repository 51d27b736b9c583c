//! Cosine similarity with a learned scale for each head: `s = scale · β_h · (q·k)/(|q| |k|)`.
//!
//! Rows are divided by their norms once, before pairs are formed; a dot product remains. A norm
//! below 10⁻⁶ is replaced by 10⁻⁶, so that a row of zeros scores 0.

use super::*;
use crate::gemm::micro::Product;
use crate::memory::zeros;
use crate::pool::Parts;

pub(super) const ROW: Row<dyn Score> = Row {
    about: Variant {
        name: "scaled_cosine",
        params: &[("beta", "[H]")],
        settings: &[],
        formula: "scale · β_h · (q · k) / (|q| |k|), scale = 1 unless given",
        paper: "Graves et al. 2014, arXiv:1410.5401; Liu et al. 2022, arXiv:2111.09883",
    },
    new: |_| Ok(Arc::new(ScaledCosine)),
    trials: DEFAULTS,
};

/// Minimum norm that a row is divided by.
const SHORTEST: f64 = 1e-6;

/// Cosine score `s = scale · β_h · (q·k)/(|q| |k|)`.
#[derive(Clone, Copy, Debug)]
pub struct ScaledCosine;

impl Score for ScaledCosine {
    fn params(&self, dims: &Dims) -> Vec<Param> {
        vec![Param::new("beta", [1, dims.h, 1, 1], "1H11")]
    }
    fn formula(&self) -> Option<Expr> {
        let unit = |x: Expr| {
            let squared = x.clone().dot(x.clone()).at_least(SHORTEST * SHORTEST);
            x / squared.sqrt()
        };
        Some(scale() * param(0) * unit(queries()).dot(unit(keys())))
    }
}

impl Lower for ScaledCosine {
    fn lower<'a>(&'a self, _: &'a Grid, x: ScoreOperands<'a>, scale: f32) -> Lowered<'a> {
        let beta = x.params[0];
        let mut q = x.q.to_vec();
        each_row(&mut q, x.q.shape, |[_, h, _], row| {
            let by = f64::from(beta.get(0, h, 0, 0)) / length(row);
            row.iter_mut().for_each(|x| *x = (f64::from(*x) * by) as f32);
        });
        let mut k = x.k.to_vec();
        each_row(&mut k, x.k.shape, |_, row| {
            let by = 1.0 / length(row);
            row.iter_mut().for_each(|x| *x = (f64::from(*x) * by) as f32);
        });
        let (q, k) = (Operand::Made(q, x.q.shape), Operand::Made(k, x.k.shape));
        Lowered { pair: Box::new(Product), q, k, scale, weights: vec![], map: None, terms: vec![] }
    }
    fn raise(&self, grid: &Grid, x: ScoreOperands, _: f32, grads: Raise) -> Vec<Vec<f32>> {
        let (Dims { h: heads, t, .. }, beta) = (grid.dims, x.params[0]);
        // forward: q′ = β·q/|q|, so dβ = Σ dq′·q/|q|
        let mut along = zeros(&[x.q.shape[0], heads, t]);
        let parts = Parts::new(&mut along);
        let mut dq = grads.q;
        each_row(&mut dq, x.q.shape, |[b, h, i], gradient| {
            let along = through_unit(&x.q, [b, h, i], gradient, beta.get(0, h, 0, 0));
            // SAFETY: each row has a number of its own, and is visited once.
            unsafe { parts.part((b * heads + h) * t + i, 1)[0] = along };
        });
        spread(&dq, grads.dq, false);
        // forward: k′ = k/|k|
        let mut dk = grads.k;
        each_row(&mut dk, x.k.shape, |at, gradient| {
            through_unit(&x.k, at, gradient, 1.0);
        });
        spread(&dk, grads.dk, false);
        let mut dbeta = vec![0f64; heads];
        for (row, along) in along.iter().enumerate() {
            dbeta[row / t % heads] += f64::from(*along);
        }
        vec![dbeta.into_iter().map(|sum| sum as f32).collect()]
    }
}

/// `|row|`, at least [`SHORTEST`].
fn length(row: &[f32]) -> f64 {
    let squared: f64 = row.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
    if squared < SHORTEST * SHORTEST { SHORTEST } else { squared.sqrt() }
}

/// Replaces the gradient `g` of `factor · u`, with `u = x/|x|` for a row `x`, by that of `x`, which
/// is `factor · (g − (g·u) u)/|x|`, and returns `g·u`.
fn through_unit(rows: &View, [b, h, i]: [usize; 3], gradient: &mut [f32], factor: f32) -> f32 {
    // A masked key has no gradient, and may hold any values.
    if gradient.iter().all(|g| *g == 0.0) {
        return 0.0;
    }
    let row: Vec<f32> = (0..gradient.len()).map(|c| rows.get(b, h, i, c)).collect();
    let (length, factor) = (length(&row), f64::from(factor));
    let dot: f64 = row.iter().zip(&*gradient).map(|(x, g)| f64::from(*x) * f64::from(*g)).sum();
    let along = dot / length;
    // A row that is divided by a constant has no gradient through its norm.
    let back = if length > SHORTEST { along / length } else { 0.0 };
    for (g, x) in gradient.iter_mut().zip(row) {
        *g = (factor * (f64::from(*g) - back * f64::from(x)) / length) as f32;
    }
    along as f32
}

/// Calls `f([b, h, i], row)` for every row of a contiguous array.
fn each_row(data: &mut [f32], [b, h, n, d]: [usize; 4], f: impl Fn([usize; 3], &mut [f32]) + Sync) {
    let parts = Parts::new(data);
    parallel_ranges(b * h * n, ROWS_PER_TASK, &|first, last| {
        for row in first..last {
            // SAFETY: each task has its own rows, and they exist.
            let values = unsafe { parts.part(row * d, d) };
            f([row / (h * n), row / n % h, row % n], values);
        }
    });
}
