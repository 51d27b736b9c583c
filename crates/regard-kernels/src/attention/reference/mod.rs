//! Reference implementation: the formula, cell by cell in `f64`.
//!
//! It evaluates the [formulas](super::formula) of score, biases and normaliser one element at a
//! time. It shares only the definition of masks with the fast path, and it has no backward: run on
//! [`tape::Var`] it gives gradients by automatic differentiation. The fast path is tested against
//! it.

mod array;
pub mod tape;

use super::Attention;
use super::formula::{self, FormulaInputs};
use super::grid::{Dims, Grid};
use super::mask::Rule;
use crate::view::Error;
use array::{Array, Cells};
use tape::Number;

/// Result of an attention.
pub struct ReferenceOutput<N> {
    /// Context, `[B, H, T, E]`.
    pub out: Vec<N>,
    /// Weights, `[B, H, T, S]`.
    pub weights: Vec<N>,
    /// Log-probabilities of hard choices, `[B, H, T]`.
    pub log_prob: Vec<N>,
}

/// Computes context, weights and log-probabilities. Inputs are contiguous, parameters in the fast
/// path's order.
///
/// # Errors
/// If the score or the normaliser has no formula.
///
/// # Shapes
/// `q: [B, H, T, D]`, `k: [B, Hk, S, Dk]`, `v: [B, Hk, S, E]`
pub fn run<N: Number>(
    attention: &Attention,
    grid: &Grid,
    [q, k, v]: [&[N]; 3],
    params: &[Vec<N>],
) -> Result<ReferenceOutput<N>, Error> {
    let Dims { b, h, hk, t, s, d, dk, e } = grid.dims;
    // Each key head is repeated for the query heads that share it.
    let shared = |rows: &[N], width: usize| -> Array<N> {
        let head = |at: usize| (at / h * hk + at % h / grid.dims.group()) * s * width;
        let data = (0..b * h).flat_map(|at| &rows[head(at)..][..s * width]).copied().collect();
        Array { data, shape: [b, h, 1, s, width] }
    };
    let asked = attention.params(&grid.dims);
    let given = FormulaInputs {
        q: Array { data: q.to_vec(), shape: [b, h, t, 1, d] },
        k: shared(k, dk),
        v: Some(shared(v, e)),
        params: asked.iter().zip(params).map(|(param, x)| Array::of_param(param, x)).collect(),
    };
    let place = |at: usize| [at / (h * t * s), at / (t * s) % h, at / s % t, at % s];
    let sees = |[b, h, i, j]: [usize; 4]| attention.mask.allows(grid, b, h, i, j);
    let allowed = (0..b * h * t * s).map(|at| sees(place(at))).collect();
    let mut cells = Cells { allowed, grid, of: std::marker::PhantomData };
    let found = formula::weights(attention, grid, &mut cells, given)?;
    let mut weights = found.weights.data;
    if let Some(dropout) = attention.dropout {
        let p = f64::from(dropout.p);
        for (at, w) in weights.iter_mut().enumerate() {
            let keep = f64::from(dropout.noise.uniform(at as u64)) >= p;
            *w = *w * N::of(if keep { 1.0 / (1.0 - p) } else { 0.0 });
        }
    }
    let mut out = Vec::with_capacity(b * h * t * e);
    for row in 0..b * h * t {
        let head = (row / (h * t) * hk + row / t % h / grid.dims.group()) * s;
        let seen: Vec<usize> = (0..s).filter(|j| cells.allowed[row * s + j]).collect();
        for c in 0..e {
            let terms = seen.iter().map(|j| weights[row * s + j] * v[(head + j) * e + c]);
            out.push(tape::sum(terms));
        }
    }
    let log_prob = found.log_prob.map_or(vec![N::of(0.0); b * h * t], |found| found.data);
    Ok(ReferenceOutput { out, weights, log_prob })
}
