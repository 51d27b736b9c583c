//! Softmax cross-entropy with integer targets.
//!
//! `loss = 1/count · Σ_n [ lse_n − (1 − ε)·x_{n,t_n} − ε/V·Σ_v x_{n,v} ]`, over the rows whose
//! target is not the ignored one; `lse` is the log-sum-exp and `ε` the label smoothing (Szegedy et
//! al. 2016, sec. 7). If no row is counted, the loss is 0.

use super::{Parts, lanes};
use crate::pool::parallel_ranges;
use crate::scratch::Scratch;
use crate::simd::{Kernel, Simd, dispatch, exp};
use crate::view::{Error, bail};

/// Options of the cross-entropy loss.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CrossEntropy {
    /// Label smoothing `ε`: the fraction of the target that is spread over all classes, in `0..=1`.
    pub smoothing: f32,
    /// Target of rows that are not counted. It need not be a class. `None` to count all rows.
    pub ignore: Option<i64>,
}

/// Logits with their targets.
///
/// # Shapes
/// `logits: [N, V]`, `targets: [N]`.
#[derive(Clone, Copy)]
pub struct LossRows<'a> {
    /// Unnormalised scores, row-major.
    pub logits: &'a [f32],
    /// Target class of each row.
    pub targets: &'a [i64],
}

/// Result of the forward.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// Mean loss over the counted rows, or 0 if there are none.
    pub loss: f32,
    /// Number of counted rows.
    pub count: usize,
}

impl CrossEntropy {
    /// Computes the mean loss; `lse: [N]` receives the log-sum-exp of each row, for the backward.
    ///
    /// # Errors
    /// If shapes do not match, or if a target is neither a class nor the ignored one.
    pub fn forward(&self, rows: LossRows, lse: &mut [f32]) -> Result<Loss, Error> {
        let (n, classes) = self.check(rows)?;
        if lse.len() != n {
            bail!("cross-entropy: {n} rows, but room for the sums of {}", lse.len());
        }
        let mut losses = Scratch::new(n);
        let (parts, sums) = (Parts::new(&mut losses), Parts::new(lse));
        let spread = self.smoothing / classes.max(1) as f32;
        parallel_ranges(n, (super::PIECE / classes.max(1)).max(1), &|from, to| {
            for row in from..to {
                let x = &rows.logits[row * classes..(row + 1) * classes];
                let (lse, sum) = dispatch(Reduce(x));
                let mut loss = 0.0;
                if Some(rows.targets[row]) != self.ignore {
                    loss = lse - (1.0 - self.smoothing) * x[rows.targets[row] as usize];
                    if self.smoothing != 0.0 {
                        loss -= spread * sum;
                    }
                }
                // SAFETY: each row is one task's.
                unsafe {
                    sums.slice(row, row + 1)[0] = lse;
                    parts.slice(row, row + 1)[0] = loss;
                }
            }
        });
        let count = rows.targets.iter().filter(|t| Some(**t) != self.ignore).count();
        let total: f64 = losses.iter().map(|l| f64::from(*l)).sum();
        Ok(Loss { loss: (total / count.max(1) as f64) as f32, count })
    }

    /// Computes `dlogits = dloss/count · (softmax(x) − target)` for counted rows and 0 for others,
    /// where the target is `1 − ε + ε/V` at the right class and `ε/V` elsewhere.
    pub fn backward(
        &self,
        rows: LossRows,
        lse: &[f32],
        dloss: f32,
        dlogits: &mut [f32],
    ) -> Result<(), Error> {
        let (n, classes) = self.check(rows)?;
        if lse.len() != n || dlogits.len() != rows.logits.len() {
            let (sums, out) = (lse.len(), dlogits.len());
            bail!("cross-entropy: [{n}, {classes}] logits, {sums} sums and {out} gradients differ");
        }
        let count = rows.targets.iter().filter(|t| Some(**t) != self.ignore).count();
        let scale = dloss / count.max(1) as f32;
        let spread = self.smoothing / classes.max(1) as f32;
        let out = Parts::new(dlogits);
        parallel_ranges(n, (super::PIECE / classes.max(1)).max(1), &|from, to| {
            for row in from..to {
                let at = row * classes..(row + 1) * classes;
                // SAFETY: each row is one task's.
                let dx = unsafe { out.slice(at.start, at.end) };
                if Some(rows.targets[row]) == self.ignore {
                    dx.fill(0.0);
                    continue;
                }
                // loss = lse − (1 − ε)·x_t − ε/V·Σx
                dispatch(Gradient { x: &rows.logits[at], lse: lse[row], spread, scale, dx });
                dx[rows.targets[row] as usize] -= scale * (1.0 - self.smoothing);
            }
        });
        Ok(())
    }

    fn check(&self, rows: LossRows) -> Result<(usize, usize), Error> {
        let (n, len) = (rows.targets.len(), rows.logits.len());
        if n == 0 && len == 0 {
            return Ok((0, 0));
        }
        if n == 0 || len == 0 || !len.is_multiple_of(n) {
            bail!("cross-entropy: {len} logits cannot be rows for {n} targets");
        }
        if !(0.0..=1.0).contains(&self.smoothing) {
            bail!("cross-entropy: a label smoothing of {} is not in 0..=1", self.smoothing);
        }
        let classes = len / n;
        let wrong = |t: &i64| Some(*t) != self.ignore && !(0..classes as i64).contains(t);
        if let Some(row) = rows.targets.iter().position(wrong) {
            let target = rows.targets[row];
            bail!("cross-entropy: row {row} has target {target}, but there are {classes} classes");
        }
        Ok((n, classes))
    }
}

/// The log-sum-exp of a row, and its sum.
struct Reduce<'a>(&'a [f32]);

impl Kernel for Reduce<'_> {
    type Out = (f32, f32);
    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> (f32, f32) {
        let x = self.0;
        let mut top = s.splat(f32::NEG_INFINITY);
        let mut i = 0;
        while i < x.len() {
            top = s.max(lanes::get_or(s, x, i, f32::NEG_INFINITY), top);
            i += S::LANES;
        }
        let mut top = s.largest(top);
        if !top.is_finite() {
            top = 0.0; // no finite logit: the sum below is then 0 or infinite, as it should be
        }
        let shift = s.splat(top);
        let (mut total, mut sum) = (s.splat(0.0), s.splat(0.0));
        let mut i = 0;
        while i < x.len() {
            let v = lanes::get_or(s, x, i, f32::NEG_INFINITY);
            total = s.add(total, exp(s, s.sub(v, shift)));
            sum = s.add(sum, lanes::get(s, x, i));
            i += S::LANES;
        }
        (top + s.sum(total).ln(), s.sum(sum))
    }
}

/// `dx = scale·(e^{x − lse} − spread)`
struct Gradient<'a> {
    x: &'a [f32],
    lse: f32,
    spread: f32,
    scale: f32,
    dx: &'a mut [f32],
}

impl Kernel for Gradient<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Gradient { x, lse, spread, scale, dx } = self;
        let (lse, spread, scale) = (s.splat(lse), s.splat(spread), s.splat(scale));
        let mut i = 0;
        while i < x.len() {
            let p = exp(s, s.sub(lanes::get(s, x, i), lse));
            lanes::put(s, dx, i, s.mul(s.sub(p, spread), scale));
            i += S::LANES;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{close, numeric, random, wide};

    fn reference(c: CrossEntropy, x: &[f64], targets: &[i64]) -> Vec<f64> {
        let classes = x.len() / targets.len();
        let (mut total, mut count) = (0.0, 0.0);
        for (row, t) in x.chunks(classes).zip(targets) {
            if Some(*t) == c.ignore {
                continue;
            }
            let lse = row.iter().map(|x| x.exp()).sum::<f64>().ln();
            let e = f64::from(c.smoothing);
            let sum: f64 = row.iter().sum();
            total += lse - (1.0 - e) * row[*t as usize] - e / classes as f64 * sum;
            count += 1.0;
        }
        vec![if count > 0.0 { total / count } else { 0.0 }]
    }

    fn check(n: usize, classes: usize, smoothing: f32, ignore: Option<i64>) {
        let x: Vec<f32> = random(1, n * classes).iter().map(|x| x * 4.0).collect();
        let targets: Vec<i64> = (0..n).map(|i| (i * 7 % classes) as i64).collect();
        let c = CrossEntropy { smoothing, ignore };
        let rows = LossRows { logits: &x, targets: &targets };
        let (mut lse, mut dx) = (vec![0f32; n], vec![0f32; x.len()]);
        let loss = c.forward(rows, &mut lse).unwrap();
        let case = format!("{n} {classes} {smoothing} {ignore:?}");
        close(&case, &[loss.loss], &reference(c, &wide(&x), &targets), 2e-6);
        c.backward(rows, &lse, 1.5, &mut dx).unwrap();
        let want = numeric(&wide(&x), &[1.5], |x| reference(c, x, &targets));
        close(&case, &dx, &want, 2e-6);
    }

    #[test]
    fn forward_and_backward_agree_with_double_precision() {
        for (n, classes) in [(1, 1), (3, 7), (17, 16), (5, 33), (40, 3)] {
            check(n, classes, 0.0, None);
            check(n, classes, 0.1, None);
            check(n, classes, 0.1, Some(0));
        }
    }

    #[test]
    fn without_a_counted_row_all_is_zero() {
        let c = CrossEntropy { smoothing: 0.1, ignore: Some(-100) };
        let rows = LossRows { logits: &[1.0, 2.0, f32::NAN, 4.0], targets: &[-100, -100] };
        let (mut lse, mut dx) = ([0f32; 2], [1f32; 4]);
        assert_eq!(c.forward(rows, &mut lse).unwrap(), Loss { loss: 0.0, count: 0 });
        c.backward(rows, &lse, 1.0, &mut dx).unwrap();
        assert_eq!(dx, [0.0; 4]);
        let none = LossRows { logits: &[], targets: &[] };
        assert_eq!(c.forward(none, &mut []).unwrap(), Loss { loss: 0.0, count: 0 });
    }

    #[test]
    fn large_logits_do_not_overflow() {
        let rows = LossRows { logits: &[1000.0, 0.0, -1000.0, f32::NEG_INFINITY], targets: &[0] };
        let (mut lse, mut dx) = ([0f32], [0f32; 4]);
        let loss = CrossEntropy::default().forward(rows, &mut lse).unwrap();
        assert_eq!(loss.loss, 0.0);
        CrossEntropy::default().backward(rows, &lse, 1.0, &mut dx).unwrap();
        assert_eq!(dx, [0.0; 4]);
    }

    #[test]
    fn a_target_out_of_range_is_told() {
        let rows = LossRows { logits: &[0.0; 6], targets: &[1, 3] };
        let error = CrossEntropy::default().forward(rows, &mut [0.0; 2]).unwrap_err();
        assert_eq!(error.0, "cross-entropy: row 1 has target 3, but there are 3 classes");
    }
}
