//! Kernels of the distance (Nadaraya–Watson): the score is `ln K(u)` with `u = |q − k|/σ`, so that
//! a softmax gives the weights `K(u)/ΣK(u)`. Where a kernel is 0 the score is −∞.

use super::*;
use crate::attention::formula::{Limit, number};
use crate::attention::pair::{ByFeature, Feature, Pairwise};
use crate::gemm::micro::PairFunction;
use crate::simd::Simd;

pub(super) const GAUSSIAN: Row<dyn Score> = Row {
    about: Variant {
        name: "gaussian",
        params: &[("sigma", "scalar")],
        settings: &[],
        formula: "−|q − k|²/(2σ²)",
        paper: "Nadaraya 1964; Watson 1964",
    },
    new: |_| Ok(Arc::new(KernelScore(KernelFunction::Gaussian))),
    trials: DEFAULTS,
};
pub(super) const BOXCAR: Row<dyn Score> = Row {
    about: Variant {
        name: "boxcar",
        params: &[("sigma", "scalar")],
        settings: &[],
        formula: "ln 1[|q − k| ≤ σ]; σ has no gradient",
        paper: "Nadaraya 1964; Watson 1964",
    },
    new: |_| Ok(Arc::new(KernelScore(KernelFunction::Boxcar))),
    trials: DEFAULTS,
};
pub(super) const EPANECHNIKOV: Row<dyn Score> = Row {
    about: Variant {
        name: "epanechnikov",
        params: &[("sigma", "scalar")],
        settings: &[],
        formula: "ln max(1 − |q − k|²/σ², 0)",
        paper: "Epanechnikov 1969",
    },
    new: |_| Ok(Arc::new(KernelScore(KernelFunction::Epanechnikov))),
    trials: DEFAULTS,
};

/// Kernel function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelFunction {
    /// `K(u) = e^{−u²/2}`
    Gaussian,
    /// `K(u) = 1[u ≤ 1]`
    Boxcar,
    /// `K(u) = max(1 − u², 0)`
    Epanechnikov,
}

/// Kernel score `s = scale · ln K(|q − k|/σ)`, with a fixed or learned width σ.
#[derive(Clone, Copy, Debug)]
pub struct KernelScore(pub KernelFunction);

impl Score for KernelScore {
    fn params(&self, _: &Dims) -> Vec<Param> {
        vec![Param::width("sigma")]
    }
    fn formula(&self) -> Option<Expr> {
        let apart = queries() - keys();
        let u = apart.clone().dot(apart) / (param(0) * param(0));
        Some(match self.0 {
            KernelFunction::Gaussian => scale() * number(-0.5) * u,
            KernelFunction::Boxcar => (u.clone() * number(0.0)).inside(u, Limit::AtMost(1.0)),
            KernelFunction::Epanechnikov => {
                let k = (number(1.0) - u.clone()).inside(u, Limit::Below(1.0));
                scale() * k.ln()
            }
        })
    }
}

impl Lower for KernelScore {
    fn lower<'a>(&'a self, grid: &'a Grid, x: ScoreOperands<'a>, scale: f32) -> Lowered<'a> {
        let sigma = x.params[0].get(0, 0, 0, 0);
        let (q, k) = (Operand::Given(x.q), Operand::Given(x.k));
        let (pair, weights, map): (Box<dyn Pairwise>, _, Option<Box<dyn Map>>) = match self.0 {
            // Its logarithm is a sum over features, so it needs no separate pass over the scores.
            KernelFunction::Gaussian => {
                let weights = vec![-0.5 * scale / (sigma * sigma); grid.dims.h * grid.dims.d];
                (Box::new(ByFeature(SquaredDifference::<true>)), weights, None)
            }
            shape => {
                let map = LogKernel { shape, sigma, scale };
                (Box::new(ByFeature(SquaredDifference::<false>)), vec![], Some(Box::new(map)))
            }
        };
        Lowered { pair, q, k, scale: 1.0, weights, map, terms: vec![] }
    }
    fn raise(&self, _: &Grid, x: ScoreOperands, scale: f32, grads: Raise) -> Vec<Vec<f32>> {
        match self.0 {
            KernelFunction::Gaussian => {
                // forward: w = −scale/(2σ²)
                let sigma = f64::from(x.params[0].get(0, 0, 0, 0));
                let sum: f64 = grads.weights.iter().map(|dw| f64::from(*dw)).sum();
                vec![vec![(sum * f64::from(scale) / sigma.powi(3)) as f32]]
            }
            KernelFunction::Boxcar | KernelFunction::Epanechnikov => vec![vec![grads.map]],
        }
    }
}

/// `(q − k)²`, or `w·(q − k)²`.
#[derive(Clone, Copy)]
struct SquaredDifference<const WEIGHTED: bool>;

impl<const WEIGHTED: bool> PairFunction for SquaredDifference<WEIGHTED> {
    const WEIGHTED: bool = WEIGHTED;
    #[inline(always)]
    fn step<S: Simd>(self, s: S, acc: S::V, k: S::V, q: S::V, w: S::V) -> S::V {
        let difference = s.sub(q, k);
        let other = if WEIGHTED { s.mul(difference, w) } else { difference };
        s.fma(other, difference, acc)
    }
}

impl<const WEIGHTED: bool> Feature for SquaredDifference<WEIGHTED> {
    #[inline(always)]
    fn value<S: Simd>(self, s: S, k: S::V, q: S::V) -> S::V {
        let difference = s.sub(q, k);
        s.mul(difference, difference)
    }
    #[inline(always)]
    fn slopes<S: Simd>(self, s: S, k: S::V, q: S::V, w: S::V) -> (S::V, S::V) {
        let twice = s.mul(s.splat(2.0), s.sub(q, k));
        let twice = if WEIGHTED { s.mul(twice, w) } else { twice };
        (s.sub(s.splat(0.0), twice), twice)
    }
}

/// From a squared distance to `scale · ln K`.
struct LogKernel {
    shape: KernelFunction,
    sigma: f32,
    scale: f32,
}

impl Map for LogKernel {
    fn apply(&self, _: &At, tile: &mut Tile) {
        let (by, scale) = (1.0 / (self.sigma * self.sigma), self.scale);
        let cells = tile.data[..tile.keys * tile.lanes].iter_mut();
        match self.shape {
            KernelFunction::Gaussian => unreachable!("its features have weights instead"),
            // −∞ marks a cell without a key; a squared distance is never negative.
            KernelFunction::Boxcar => cells.for_each(|x| {
                *x = if x.abs() * by > 1.0 { f32::NEG_INFINITY } else { *x * 0.0 };
            }),
            KernelFunction::Epanechnikov => cells.for_each(|x| {
                let k = 1.0 - x.abs() * by;
                *x = if k > 0.0 || k.is_nan() { scale * k.ln() } else { f32::NEG_INFINITY };
            }),
        }
    }

    fn gradient(&self, _: &At, before: &Tile, ds: &mut Tile, dsigma: &mut f32) {
        let (by, scale) = (1.0 / (self.sigma * self.sigma), self.scale);
        let mut sum = 0f64;
        let n = before.keys * before.lanes;
        for (x, ds) in before.data[..n].iter().zip(&mut ds.data[..n]) {
            // d(scale · ln K)/dx for x = |q − k|²; by σ it is −2x/σ of that
            let slope = match self.shape {
                KernelFunction::Gaussian => unreachable!("its features have weights instead"),
                KernelFunction::Boxcar => 0.0,
                KernelFunction::Epanechnikov => {
                    let k = 1.0 - x * by;
                    if k > 0.0 { -by * scale / k } else { 0.0 }
                }
            };
            if *ds != 0.0 {
                *ds *= slope;
                sum += f64::from(*ds * x);
            }
        }
        *dsigma -= (2.0 / self.sigma) * sum as f32;
    }
}
