//! AdamW (Loshchilov and Hutter 2019) with clipping by the global norm, over all tensors at once.
//!
//! With `g` the gradient after clipping and `t` the step, counted from 1:
//!
//! ```text
//! p ← p·(1 − lr·decay)
//! m ← β₁·m + (1 − β₁)·g
//! v ← β₂·v + (1 − β₂)·g²
//! p ← p − lr/(1 − β₁ᵗ) · m / (√v/√(1 − β₂ᵗ) + ε)
//! ```
//!
//! These are the formulas of `torch.optim.AdamW` and `torch.nn.utils.clip_grad_norm_`.

use super::{PIECE, Parts, lanes};
use crate::pool::parallel;
use crate::scratch::Scratch;
use crate::simd::{Kernel, Simd, dispatch};
use crate::view::{Error, bail};

/// Hyperparameters of AdamW, with PyTorch's defaults.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamW {
    /// Learning rate. Default 1e-3.
    pub lr: f32,
    /// `β₁`, the decay of the first moment. Default 0.9.
    pub beta1: f32,
    /// `β₂`, the decay of the second moment. Default 0.999.
    pub beta2: f32,
    /// `ε`, added to the denominator. Default 1e-8.
    pub eps: f32,
    /// Maximum global norm of the gradients; larger gradients are scaled down to it. `None`
    /// disables clipping.
    pub max_norm: Option<f32>,
}

impl Default for AdamW {
    fn default() -> AdamW {
        AdamW { lr: 1e-3, beta1: 0.9, beta2: 0.999, eps: 1e-8, max_norm: None }
    }
}

/// A parameter tensor with its gradient and its moments, all of one length.
pub struct Tensor<'a> {
    /// Parameter `p`.
    pub value: &'a mut [f32],
    /// Gradient `g`.
    pub gradient: &'a [f32],
    /// First moment `m`, zeros before the first step.
    pub first: &'a mut [f32],
    /// Second moment `v`, zeros before the first step.
    pub second: &'a mut [f32],
    /// Weight decay coefficient `decay`, usually 0 for biases and norms.
    pub decay: f32,
}

impl AdamW {
    /// Updates all tensors; `step` counts from 1. Returns the global norm of the gradients before
    /// clipping.
    ///
    /// If that norm is not finite, nothing is changed: such a step would turn the whole model into
    /// NaN.
    pub fn step(&self, step: u64, tensors: &mut [Tensor]) -> Result<f32, Error> {
        if step == 0 {
            bail!("adamw: steps count from 1, got 0");
        }
        for (i, t) in tensors.iter().enumerate() {
            let lengths = [t.value.len(), t.gradient.len(), t.first.len(), t.second.len()];
            if lengths.iter().any(|n| *n != lengths[0]) {
                bail!("adamw: tensor {i}: value, gradient and moments have lengths {lengths:?}");
            }
        }
        let pieces = pieces(tensors);
        let norm = norm(tensors, &pieces);
        if !norm.is_finite() {
            return Ok(norm);
        }
        let clip = self.max_norm.map_or(1.0, |max| (max / (norm + 1e-6)).min(1.0));
        // In double precision: with β₂ = 0.999 the first factor is 0.001, a difference of nearly
        // equal values.
        let bias1 = 1.0 - f64::from(self.beta1).powf(step as f64);
        let bias2 = 1.0 - f64::from(self.beta2).powf(step as f64);
        let factors = Factors {
            clip,
            beta1: self.beta1,
            beta2: self.beta2,
            rest1: (1.0 - f64::from(self.beta1)) as f32,
            rest2: (1.0 - f64::from(self.beta2)) as f32,
            rate: (f64::from(self.lr) / bias1) as f32,
            root: (1.0 / bias2.sqrt()) as f32,
            eps: self.eps,
        };
        let parts: Vec<_> = tensors
            .iter_mut()
            .map(|t| {
                let keep = 1.0 - self.lr * t.decay;
                let written = [&mut *t.value, &mut *t.first, &mut *t.second].map(Parts::new);
                (written, t.gradient, keep)
            })
            .collect();
        parallel(pieces.len(), &|p| {
            let (tensor, from, to) = pieces[p];
            let (written, g, keep) = &parts[tensor];
            // SAFETY: pieces do not overlap.
            let [p, m, v] = unsafe { written.each_ref().map(|x| x.slice(from, to)) };
            dispatch(Update { factors, keep: *keep, p, m, v, g: &g[from..to] });
        });
        Ok(norm)
    }
}

/// Ranges of all tensors: tensor, from, to.
fn pieces(tensors: &[Tensor]) -> Vec<(usize, usize, usize)> {
    let cut = |(i, t): (usize, &Tensor)| {
        let n = t.value.len();
        (0..n).step_by(PIECE).map(move |from| (i, from, (from + PIECE).min(n))).collect::<Vec<_>>()
    };
    tensors.iter().enumerate().flat_map(cut).collect()
}

/// The global norm: squares are summed range by range, and the ranges in order.
fn norm(tensors: &[Tensor], pieces: &[(usize, usize, usize)]) -> f32 {
    let gradients: Vec<&[f32]> = tensors.iter().map(|t| t.gradient).collect();
    let mut sums = Scratch::new(pieces.len());
    let parts = Parts::new(&mut sums);
    parallel(pieces.len(), &|p| {
        let (tensor, from, to) = pieces[p];
        // SAFETY: each piece has its own sum.
        let sum = unsafe { parts.slice(p, p + 1) };
        sum[0] = dispatch(Squares(&gradients[tensor][from..to]));
    });
    sums.iter().map(|x| f64::from(*x)).sum::<f64>().sqrt() as f32
}

struct Squares<'a>(&'a [f32]);

impl Kernel for Squares<'_> {
    type Out = f32;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> f32 {
        let x = self.0;
        let mut sums = [s.splat(0.0); 4];
        let mut i = 0;
        while i < x.len() {
            for sum in &mut sums {
                if i < x.len() {
                    let v = lanes::get(s, x, i);
                    *sum = s.fma(v, v, *sum);
                }
                i += S::LANES;
            }
        }
        s.sum(s.add(s.add(sums[0], sums[1]), s.add(sums[2], sums[3])))
    }
}

#[derive(Clone, Copy)]
struct Factors {
    clip: f32,
    beta1: f32,
    beta2: f32,
    rest1: f32,
    rest2: f32,
    rate: f32,
    root: f32,
    eps: f32,
}

struct Update<'a> {
    factors: Factors,
    keep: f32,
    p: &'a mut [f32],
    m: &'a mut [f32],
    v: &'a mut [f32],
    g: &'a [f32],
}

impl Kernel for Update<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Update { factors: f, keep, p, m, v, g } = self;
        let mut i = 0;
        while i < g.len() {
            let gradient = s.mul(lanes::get(s, g, i), s.splat(f.clip));
            let scaled = s.mul(gradient, s.splat(f.rest1));
            let first = s.fma(lanes::get(s, m, i), s.splat(f.beta1), scaled);
            let square = s.mul(s.mul(gradient, gradient), s.splat(f.rest2));
            let second = s.fma(lanes::get(s, v, i), s.splat(f.beta2), square);
            let below = s.fma(s.sqrt(second), s.splat(f.root), s.splat(f.eps));
            let value = s.mul(lanes::get(s, p, i), s.splat(keep));
            let value = s.fnma(s.splat(f.rate), s.div(first, below), value);
            lanes::put(s, m, i, first);
            lanes::put(s, v, i, second);
            lanes::put(s, p, i, value);
            i += S::LANES;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{close, random, wide};

    #[test]
    fn ten_steps_agree_with_double_precision() {
        let sizes = [1, 7, 33, 40_000];
        let a = AdamW { lr: 0.01, max_norm: Some(3.0), ..AdamW::default() };
        let decays = [0.1, 0.0, 0.01, 0.1];
        let zeros = || sizes.map(|n| vec![0f32; n]);
        let mut values = sizes.map(|n| random(n as u64, n));
        let (mut first, mut second) = (zeros(), zeros());
        let mut want: Vec<_> = values.iter().map(|v| wide(v)).collect();
        let mut moments: Vec<_> = sizes.iter().map(|n| vec![(0f64, 0f64); *n]).collect();
        for step in 1..=10 {
            let gradients = sizes.map(|n| random(100 * step + n as u64, n));
            let mut tensors: Vec<Tensor> = Vec::new();
            let all = values.iter_mut().zip(&gradients).zip(first.iter_mut().zip(&mut second));
            for (((value, gradient), (first, second)), decay) in all.zip(decays) {
                tensors.push(Tensor { value, gradient, first, second, decay });
            }
            let norm = f64::from(a.step(step, &mut tensors).unwrap());
            let squares = gradients.iter().flatten().map(|g| f64::from(*g).powi(2));
            let true_norm = squares.sum::<f64>().sqrt();
            assert!((norm / true_norm - 1.0).abs() < 1e-6);
            let clip = (3.0 / (true_norm + 1e-6)).min(1.0);
            let [lr, b1, b2] = [a.lr, a.beta1, a.beta2].map(f64::from);
            for t in 0..sizes.len() {
                for i in 0..sizes[t] {
                    let g = f64::from(gradients[t][i]) * clip;
                    let (m, v) = &mut moments[t][i];
                    *m = b1 * *m + (1.0 - b1) * g;
                    *v = b2 * *v + (1.0 - b2) * g * g;
                    let below = (*v / (1.0 - b2.powf(step as f64))).sqrt() + f64::from(a.eps);
                    let p = &mut want[t][i];
                    *p *= 1.0 - lr * f64::from(decays[t]);
                    *p -= lr * *m / (1.0 - b1.powf(step as f64)) / below;
                }
            }
        }
        for (value, want) in values.iter().zip(&want) {
            close("adamw", value, want, 2e-6);
        }
    }

    #[test]
    fn an_infinite_gradient_changes_nothing() {
        let (mut value, mut first, mut second) = ([1f32], [0f32], [0f32]);
        let mut tensor = [Tensor {
            value: &mut value,
            gradient: &[f32::INFINITY],
            first: &mut first,
            second: &mut second,
            decay: 0.1,
        }];
        assert!(!AdamW::default().step(1, &mut tensor).unwrap().is_finite());
        assert_eq!((value, first, second), ([1.0], [0.0], [0.0]));
        assert!(AdamW::default().step(0, &mut []).is_err());
    }
}
