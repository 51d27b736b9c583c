//! Self-test of the kernels of the chosen instruction set: forward and backward of several kinds of
//! attention, compared with the float64 reference.

use crate::choice::parse_mask;
use crate::problem::OwnedInputs;
use anyhow::Result;
use regard_kernels::attention::normalize::{Entmax15, Normalizer, Sigmoid, Softmax};
use regard_kernels::attention::reference;
use regard_kernels::attention::reference::tape::{Number, Var};
use regard_kernels::attention::score::{Additive, Dot, KernelFunction, KernelScore, Score};
use regard_kernels::attention::{Attention, Dims, Grid, Positions};
use regard_kernels::simd;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Largest accepted error, relative to the largest absolute value; the same as in the kernels'
/// contract.
const TOLERANCE: f64 = 2e-5;

/// Result of the self-test.
#[derive(Serialize, Deserialize)]
pub struct SelfTestReport {
    /// Instruction set that was tested.
    pub isa: String,
    /// Number of attention problems computed.
    pub problems: usize,
    /// Largest relative error of an output.
    pub forward: f64,
    /// Largest relative error of a gradient.
    pub backward: f64,
    /// Whether both are within the tolerance.
    pub ok: bool,
}

/// Runs the self-test.
pub fn run() -> Result<SelfTestReport> {
    let scores: [Arc<dyn Score>; 3] =
        [Arc::new(Dot), Arc::new(Additive), Arc::new(KernelScore(KernelFunction::Gaussian))];
    let normalizers: [Arc<dyn Normalizer>; 3] =
        [Arc::new(Softmax), Arc::new(Entmax15), Arc::new(Sigmoid)];
    // Odd sizes: more than one block of queries and of keys, and none a multiple of the lanes.
    let shapes = [[1, 2, 1, 67, 131, 17, 9], [2, 1, 1, 1, 5, 64, 64], [1, 1, 1, 9, 3, 1, 3]];
    let mut report = SelfTestReport {
        isa: simd::isa().name().into(),
        problems: 0,
        forward: 0.0,
        backward: 0.0,
        ok: false,
    };
    for [b, h, hk, t, s, d, e] in shapes {
        for score in &scores {
            for normalizer in &normalizers {
                for mask in ["full", "causal & window(5, 0)", "expanded(2, 1, 3)"] {
                    let mut attention = Attention::dot().mask(parse_mask(mask, None)?);
                    attention.score = score.clone();
                    attention.normalizer = normalizer.clone();
                    let dims = Dims { b, h, hk, t, s, d, dk: d, e };
                    let (forward, backward) = errors(&attention, dims)?;
                    report.problems += 1;
                    report.forward = worse(report.forward, forward);
                    report.backward = worse(report.backward, backward);
                }
            }
        }
    }
    report.ok = report.forward <= TOLERANCE && report.backward <= TOLERANCE;
    Ok(report)
}

/// Returns the larger error; NaN counts as infinite.
fn worse(x: f64, y: f64) -> f64 {
    if y.is_nan() { f64::INFINITY } else { x.max(y) }
}

/// Largest relative errors of the output and of the gradients.
fn errors(attention: &Attention, dims: Dims) -> Result<(f64, f64)> {
    let problem = OwnedInputs::random(attention, dims, 1)?;
    let mut out = problem.room()?;
    let saved = problem.forward(attention, &mut out)?;
    // Any upstream gradient will do: repeated values of v.
    let dout: Vec<f32> = problem.v.iter().cycle().take(out.len()).copied().collect();
    let mut grads = problem.gradient_room()?;
    let params = problem.backward(attention, &out, &saved, &dout, &mut grads)?.params;

    let grid = Grid::new(dims, Positions::End)?;
    Var::start();
    let leaves = |x: &[f32]| -> Vec<Var> { x.iter().map(|x| Var::leaf(f64::from(*x))).collect() };
    let (q, k, v) = (leaves(&problem.q), leaves(&problem.k), leaves(&problem.v));
    let slow_params: Vec<Vec<Var>> = problem.params.iter().map(|(p, _)| leaves(p)).collect();
    let want = reference::run(attention, &grid, [&q, &k, &v], &slow_params)?.out;
    let terms = want.iter().zip(&dout).map(|(x, by)| *x * Var::of(f64::from(*by)));
    let slopes = terms.fold(Var::of(0.0), |x, y| x + y).gradients();

    let values: Vec<f64> = want.iter().map(|x| x.value()).collect();
    let forward = off(&out, &values);
    let mut backward = 0.0;
    let fast = grads.iter().chain(&params);
    for (got, leaves) in fast.zip([&q, &k, &v].into_iter().chain(&slow_params)) {
        let want: Vec<f64> = leaves.iter().map(|x| slopes.of(*x)).collect();
        backward = worse(backward, off(got, &want));
    }
    Ok((forward, backward))
}

/// Largest difference, relative to the largest absolute value, or to 1 if that is larger.
fn off(got: &[f32], want: &[f64]) -> f64 {
    if got.len() != want.len() {
        return f64::INFINITY;
    }
    let scale = want.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
    got.iter()
        .zip(want)
        .fold(0.0, |m, (got, want)| worse(m, (f64::from(*got) - want).abs() / scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_right() {
        let report = run().unwrap();
        assert!(report.ok, "forward {}, backward {}", report.forward, report.backward);
        assert!(report.problems >= 80);
    }

    #[test]
    fn a_nan_or_a_lost_number_is_an_error() {
        assert_eq!(off(&[f32::NAN], &[1.0]), f64::INFINITY);
        assert_eq!(off(&[], &[1.0]), f64::INFINITY);
        assert_eq!(off(&[1.0, 4.0], &[1.0, 8.0]), 0.5);
    }
}
