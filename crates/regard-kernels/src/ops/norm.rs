//! Layer norm and RMS norm of rows, alone or after a residual addition.
//!
//! | | `y` | |
//! |---|---|---|
//! | [`NormKind::Layer`] | `γ·(x − mean)·rstd + β`, `rstd = 1/√(variance + ε)` | Ba et al. 2016 |
//! | [`NormKind::Rms`] | `γ·x·rstd`, `rstd = 1/√(mean of x² + ε)` | Zhang and Sennrich 2019 |

use super::chunks::sum_over_rows;
use super::{Parts, lanes};
use crate::pool::parallel_ranges;
use crate::simd::{Kernel, Simd, dispatch};
use crate::view::{Error, bail};

/// Kind of normalisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormKind {
    /// Layer norm: by mean and variance.
    Layer,
    /// RMS norm: by the mean of the squares.
    Rms,
}

/// Parameters of a norm.
///
/// # Shapes
/// `gamma, beta: [M]`.
#[derive(Clone, Copy)]
pub struct Norm<'a> {
    /// Layer norm or RMS norm.
    pub kind: NormKind,
    /// Scale `γ`.
    pub gamma: &'a [f32],
    /// Bias `β`; `None` for none.
    pub beta: Option<&'a [f32]>,
    /// `ε`, added to the variance or mean square.
    pub eps: f32,
}

/// Outputs of the forward.
///
/// # Shapes
/// `y, sum: [N, M]`, `mean, rstd: [N]`.
pub struct Outputs<'a> {
    /// Normalised rows, `[N, M]`.
    pub y: &'a mut [f32],
    /// `x + residual`, the rows that are normalised; `Some` exactly if there is a residual.
    pub sum: Option<&'a mut [f32]>,
    /// Mean of each row, for the backward (0 for [`NormKind::Rms`]).
    pub mean: &'a mut [f32],
    /// Reciprocal standard deviation of each row, for the backward.
    pub rstd: &'a mut [f32],
}

/// Values saved by the forward for the backward.
#[derive(Clone, Copy)]
pub struct SavedNorm<'a> {
    /// Rows that were normalised, `[N, M]`: the input, or `sum`.
    pub x: &'a [f32],
    /// Mean of each row, `[N]`, from the forward.
    pub mean: &'a [f32],
    /// Reciprocal standard deviation of each row, `[N]`, from the forward.
    pub rstd: &'a [f32],
}

/// Outputs of the backward, overwritten.
pub struct NormGradients<'a> {
    /// Gradient of `x`, `[N, M]`; with a residual it is the gradient of both summands.
    pub x: &'a mut [f32],
    /// Gradient of `γ`, `[M]`.
    pub gamma: &'a mut [f32],
    /// Gradient of `β`, `[M]`; `None` without `β`.
    pub beta: Option<&'a mut [f32]>,
}

impl Norm<'_> {
    /// Normalises each row of `x`, or of `x + residual`.
    ///
    /// # Shapes
    /// `x, residual: [N, M]`.
    pub fn forward(&self, x: &[f32], residual: Option<&[f32]>, to: Outputs) -> Result<(), Error> {
        let rows = self.rows("x", x)?;
        let Outputs { y, sum, mean, rstd } = to;
        let same = |len: usize| len == x.len();
        if !same(y.len()) || mean.len() != rows || rstd.len() != rows {
            let (y, mean, rstd) = (y.len(), mean.len(), rstd.len());
            bail!("norm: {rows} rows of {}, but y {y}, mean {mean}, rstd {rstd}", self.width());
        }
        let mut none = [];
        let sum = match (residual, sum) {
            (Some(r), Some(sum)) if same(r.len()) && same(sum.len()) => sum,
            (None, None) => &mut none[..],
            _ => bail!("norm: need a residual and its sum, or neither, as long as x"),
        };
        let width = self.width();
        let (y, sum) = (Parts::new(y), Parts::new(sum));
        let (mean, rstd) = (Parts::new(mean), Parts::new(rstd));
        parallel_ranges(rows, (super::PIECE / width).max(1), &|from, to| {
            for row in from..to {
                let at = row * width..(row + 1) * width;
                // SAFETY: each row is one task's.
                let (y, mean, rstd) = unsafe {
                    let statistic = (mean.slice(row, row + 1), rstd.slice(row, row + 1));
                    (y.slice(at.start, at.end), statistic.0, statistic.1)
                };
                let mut x = &x[at.clone()];
                if let Some(residual) = residual {
                    // SAFETY: as above; without a residual there is no sum.
                    let sum = unsafe { sum.slice(at.start, at.end) };
                    dispatch(Sum(x, &residual[at], sum));
                    x = sum;
                }
                (mean[0], rstd[0]) = dispatch(Forward { norm: *self, x, y });
            }
        });
        Ok(())
    }

    /// Computes the gradients for `dy`. If the sum with a residual is also used elsewhere, `dsum`
    /// is its gradient from there, which is added to the gradient of `x`.
    pub fn backward(
        &self,
        saved: SavedNorm,
        dy: &[f32],
        dsum: Option<&[f32]>,
        to: NormGradients,
    ) -> Result<(), Error> {
        let (rows, width) = (self.rows("x", saved.x)?, self.width());
        let long = [Some(dy.len()), Some(to.x.len()), dsum.map(<[f32]>::len)];
        let beta = to.beta.as_ref().map_or(width, |b| b.len());
        if long.into_iter().flatten().any(|n| n != rows * width)
            || saved.mean.len() != rows
            || saved.rstd.len() != rows
            || to.gamma.len() != width
            || beta != width
        {
            bail!("norm: saved rows [{rows}, {width}] and the gradients differ in shape");
        }
        let dx = Parts::new(to.x);
        // Gradients of γ and β, concatenated.
        let mut both = crate::scratch::Scratch::new(2 * width);
        sum_over_rows(rows, &mut both, &|chunk, partial| {
            let (dgamma, dbeta) = partial.split_at_mut(width);
            for row in chunk {
                let at = row * width..(row + 1) * width;
                // SAFETY: each row is one task's.
                let dx = unsafe { dx.slice(at.start, at.end) };
                dispatch(Backward {
                    norm: *self,
                    x: &saved.x[at.clone()],
                    statistics: (saved.mean[row], saved.rstd[row]),
                    dy: &dy[at.clone()],
                    dsum: dsum.map(|d| &d[at]),
                    to: (dx, dgamma, dbeta),
                });
            }
        });
        to.gamma.copy_from_slice(&both[..width]);
        if let Some(beta) = to.beta {
            beta.copy_from_slice(&both[width..]);
        }
        Ok(())
    }

    fn width(&self) -> usize {
        self.gamma.len()
    }

    fn rows(&self, name: &str, x: &[f32]) -> Result<usize, Error> {
        let width = self.width();
        if width == 0 || !x.len().is_multiple_of(width) {
            bail!("norm: {name} has {} floats, which are not rows of {width}", x.len());
        }
        if let Some(beta) = self.beta
            && beta.len() != width
        {
            bail!("norm: gamma has {width} floats, beta {}", beta.len());
        }
        Ok(x.len() / width)
    }
}

/// `sum = x + r`
struct Sum<'a>(&'a [f32], &'a [f32], &'a mut [f32]);

impl Kernel for Sum<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Sum(x, r, sum) = self;
        let mut i = 0;
        while i < x.len() {
            let v = s.add(lanes::get(s, x, i), lanes::get(s, r, i));
            lanes::put(s, sum, i, v);
            i += S::LANES;
        }
    }
}

/// One row; returns its mean and reciprocal standard deviation.
struct Forward<'a> {
    norm: Norm<'a>,
    x: &'a [f32],
    y: &'a mut [f32],
}

impl Kernel for Forward<'_> {
    type Out = (f32, f32);
    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> (f32, f32) {
        let Forward { norm, x, y } = self;
        let n = x.len() as f32;
        let mut mean = 0.0;
        if norm.kind == NormKind::Layer {
            let mut sum = [s.splat(0.0); 2];
            let mut i = 0;
            while i + 2 * S::LANES <= x.len() {
                sum[0] = s.add(sum[0], lanes::get(s, x, i));
                sum[1] = s.add(sum[1], lanes::get(s, x, i + S::LANES));
                i += 2 * S::LANES;
            }
            while i < x.len() {
                sum[0] = s.add(sum[0], lanes::get(s, x, i));
                i += S::LANES;
            }
            mean = s.sum(s.add(sum[0], sum[1])) / n;
        }
        let center = s.splat(mean);
        let mut squares = [s.splat(0.0); 2];
        let mut i = 0;
        while i + 2 * S::LANES <= x.len() {
            for (v, squares) in squares.iter_mut().enumerate() {
                let d = s.sub(lanes::get(s, x, i + v * S::LANES), center);
                *squares = s.fma(d, d, *squares);
            }
            i += 2 * S::LANES;
        }
        while i < x.len() {
            // Lanes past the end of the row must add nothing, so they hold the mean.
            let d = s.sub(lanes::get_or(s, x, i, mean), center);
            squares[0] = s.fma(d, d, squares[0]);
            i += S::LANES;
        }
        let rstd = 1.0 / (s.sum(s.add(squares[0], squares[1])) / n + norm.eps).sqrt();
        let scale = s.splat(rstd);
        let mut i = 0;
        while i < x.len() {
            let hat = s.mul(s.sub(lanes::get(s, x, i), center), scale);
            let mut v = s.mul(hat, lanes::get(s, norm.gamma, i));
            if let Some(beta) = norm.beta {
                v = s.add(v, lanes::get(s, beta, i));
            }
            lanes::put(s, y, i, v);
            i += S::LANES;
        }
        (mean, rstd)
    }
}

/// One row. `y = γ·x̂ + β` with `x̂ = (x − mean)·rstd`: with `g = dy·γ`,
/// `dx = rstd·(g − mean(g) − x̂·mean(g·x̂))`, where the middle term is that of the mean.
struct Backward<'a> {
    norm: Norm<'a>,
    x: &'a [f32],
    statistics: (f32, f32),
    dy: &'a [f32],
    dsum: Option<&'a [f32]>,
    /// `dx`, and the sums for `dγ` and `dβ`.
    to: (&'a mut [f32], &'a mut [f32], &'a mut [f32]),
}

impl Kernel for Backward<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Backward { norm, x, statistics: (mean, rstd), dy, dsum, to } = self;
        let (dx, dgamma, dbeta) = to;
        let n = x.len() as f32;
        let (center, scale) = (s.splat(mean), s.splat(rstd));
        let (mut sum_g, mut sum_gx) = (s.splat(0.0), s.splat(0.0));
        let mut i = 0;
        while i < x.len() {
            let hat = s.mul(s.sub(lanes::get(s, x, i), center), scale);
            let d = lanes::get(s, dy, i);
            let g = s.mul(d, lanes::get(s, norm.gamma, i));
            sum_g = s.add(sum_g, g);
            sum_gx = s.fma(g, hat, sum_gx);
            let sums = (lanes::get(s, dgamma, i), lanes::get(s, dbeta, i));
            lanes::put(s, dgamma, i, s.fma(d, hat, sums.0));
            lanes::put(s, dbeta, i, s.add(sums.1, d));
            i += S::LANES;
        }
        let mean_g = if norm.kind == NormKind::Layer { s.sum(sum_g) / n } else { 0.0 };
        let (mean_g, mean_gx) = (s.splat(mean_g), s.splat(s.sum(sum_gx) / n));
        let mut i = 0;
        while i < x.len() {
            let hat = s.mul(s.sub(lanes::get(s, x, i), center), scale);
            let g = s.mul(lanes::get(s, dy, i), lanes::get(s, norm.gamma, i));
            let mut d = s.mul(s.fnma(hat, mean_gx, s.sub(g, mean_g)), scale);
            if let Some(dsum) = dsum {
                d = s.add(d, lanes::get(s, dsum, i));
            }
            lanes::put(s, dx, i, d);
            i += S::LANES;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{close, numeric, random, wave, wide};

    fn reference(kind: NormKind, x: &[f64], gamma: &[f64], beta: &[f64], eps: f64) -> Vec<f64> {
        let mut out = Vec::new();
        for row in x.chunks(gamma.len()) {
            let n = row.len() as f64;
            let mean = if kind == NormKind::Layer { row.iter().sum::<f64>() / n } else { 0.0 };
            let var = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
            let hat = row.iter().map(|x| (x - mean) / (var + eps).sqrt());
            out.extend(hat.zip(gamma.iter().zip(beta)).map(|(h, (g, b))| h * g + b));
        }
        out
    }

    fn check(kind: NormKind, rows: usize, width: usize, numeric_too: bool) {
        let (x, r) = (random(1, rows * width), random(2, rows * width));
        let (gamma, beta) = (random(3, width), random(4, width));
        let (dy, dsum) = (wave(rows * width), random(5, rows * width));
        let eps = 1e-3f32;
        let norm = Norm { kind, gamma: &gamma, beta: Some(&beta), eps };
        let mut buffers = [0; 3].map(|_| vec![0f32; rows * width]);
        let [y, sum, dx] = &mut buffers;
        let (mut mean, mut rstd) = (vec![0f32; rows], vec![0f32; rows]);
        let to = Outputs { y, sum: Some(sum), mean: &mut mean, rstd: &mut rstd };
        norm.forward(&x, Some(&r), to).unwrap();
        let s64: Vec<f64> = x.iter().zip(&r).map(|(x, r)| f64::from(x + r)).collect();
        let [g64, b64] = [&gamma, &beta].map(|v| wide(v));
        let f = |x: &[f64], g: &[f64], b: &[f64]| reference(kind, x, g, b, f64::from(eps));
        let case = format!("{kind:?} {rows} {width}");
        close(&case, y, &f(&s64, &g64, &b64), 1e-5);
        close(&case, sum, &s64, 1e-7);
        if !numeric_too {
            return;
        }
        let (mut dgamma, mut dbeta) = (vec![0f32; width], vec![0f32; width]);
        let to = NormGradients { x: dx, gamma: &mut dgamma, beta: Some(&mut dbeta) };
        let saved = SavedNorm { x: sum, mean: &mean, rstd: &rstd };
        norm.backward(saved, &dy, Some(&dsum), to).unwrap();
        let mut want = numeric(&s64, &dy, |x| f(x, &g64, &b64));
        want.iter_mut().zip(&dsum).for_each(|(w, d)| *w += f64::from(*d));
        close(&case, dx, &want, 5e-4);
        close(&case, &dgamma, &numeric(&g64, &dy, |g| f(&s64, g, &b64)), 1e-4);
        close(&case, &dbeta, &numeric(&b64, &dy, |b| f(&s64, &g64, b)), 1e-4);
    }

    #[test]
    fn forward_and_backward_agree_with_double_precision() {
        for kind in [NormKind::Layer, NormKind::Rms] {
            for (rows, width) in [(1, 1), (3, 7), (17, 16), (3, 33), (40, 5)] {
                check(kind, rows, width, true);
            }
            check(kind, 100, 384, false);
            check(kind, 1, 1000, false);
        }
    }

    #[test]
    fn shapes_that_do_not_fit_are_told() {
        let norm = Norm { kind: NormKind::Layer, gamma: &[1.0; 4], beta: None, eps: 1e-5 };
        let mut y = [0f32; 7];
        let to = Outputs { y: &mut y, sum: None, mean: &mut [], rstd: &mut [] };
        let error = norm.forward(&[0.0; 7], None, to).unwrap_err();
        assert_eq!(error.0, "norm: x has 7 floats, which are not rows of 4");
    }
}
