//! Nadaraya–Watson regression (1964), an early form of attention: the prediction for a query is the
//! mean of all values, weighted by the distance of their keys.
//!
//! ```
//! use regard_tasks::regression::{RegressionKernel, KernelRegression, RegressionData};
//!
//! let x: Vec<f32> = (0..200).map(|i| i as f32 / 40.0).collect();
//! let y: Vec<f32> = x.iter().map(|x| 2.0 * x.sin() + x.powf(0.8)).collect();
//! let points = RegressionData::new(&x, 1, &y, 1).unwrap();
//! let mut model = KernelRegression::fit(RegressionKernel::Gaussian, points).unwrap();
//! model.choose_width(&[0.03, 0.1, 0.3, 1.0, 3.0]).unwrap();
//! let wanted = 2.0 * 2.5f32.sin() + 2.5f32.powf(0.8);
//! assert!((model.predict(&[2.5]).unwrap()[0] - wanted).abs() < 0.01);
//! ```
//!
//! The engine processes blocks of queries and keys: 100,000 points need no matrix of their pairs.

use regard_kernels::attention::mask::window;
use regard_kernels::attention::normalize::Uniform;
use regard_kernels::attention::score::{KernelFunction, KernelScore as Score};
use regard_kernels::attention::{
    Attention, AttentionInputs, InputGradients, SavedAttention, Selection, Upstream,
};
use regard_kernels::view::{View, ViewMut};
use regard_models::{Error, Result};
use serde::Serialize;
use std::sync::Arc;

/// Kernel: weight of a key as a function of its distance `u`, in widths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegressionKernel {
    /// `1`: the mean of all values, for every query.
    Constant,
    /// `1` up to a width, then 0.
    Boxcar,
    /// `1 − u²` up to a width, then 0.
    Epanechnikov,
    /// `e^{−u²/2}`
    Gaussian,
}

/// Keys and values, one row per point.
#[derive(Clone, Debug, PartialEq)]
pub struct RegressionData {
    keys: Vec<f32>,
    values: Vec<f32>,
    features: usize,
    outputs: usize,
}

impl RegressionData {
    /// Creates points from keys `[N, features]` and values `[N, outputs]`, row by row.
    ///
    /// # Errors
    /// If the numbers of rows differ or are 0, or a number is not finite.
    pub fn new(
        keys: &[f32],
        features: usize,
        values: &[f32],
        outputs: usize,
    ) -> Result<RegressionData> {
        let rows = |name: &str, numbers: &[f32], width: usize| -> Result<usize> {
            if width == 0 || !numbers.len().is_multiple_of(width) {
                let got = numbers.len();
                return Err(Error::invalid(format!(
                    "{name}: got {got} numbers, need rows of {width}"
                )));
            }
            match numbers.iter().position(|x| !x.is_finite()) {
                Some(at) => {
                    let (row, value) = (at / width, numbers[at]);
                    Err(Error::invalid(format!("{name}: got {value} in row {row}, need a number")))
                }
                None => Ok(numbers.len() / width),
            }
        };
        let (n, m) = (rows("keys", keys, features)?, rows("values", values, outputs)?);
        if n != m || n == 0 {
            return Err(Error::invalid(format!("{n} keys and {m} values: need equal numbers > 0")));
        }
        Ok(RegressionData { keys: keys.to_vec(), values: values.to_vec(), features, outputs })
    }

    /// Returns the number of points.
    pub fn count(&self) -> usize {
        self.keys.len() / self.features
    }
}

/// A kernel regression, which stores its points.
#[derive(Clone, Debug)]
pub struct KernelRegression {
    kernel: RegressionKernel,
    points: RegressionData,
    width: f32,
    /// Mean of each output, predicted where no key is near enough.
    mean: Vec<f32>,
}

/// Leave-one-out error of a width.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LeftOut {
    /// Width of the kernel.
    pub width: f32,
    /// Mean squared error of predicting each point from all others.
    #[serde(rename = "left_out_error")]
    pub error: f64,
}

impl KernelRegression {
    /// Stores points. The initial width follows Scott's rule: the mean standard deviation of the
    /// features times `n^(−1/(d + 4))`.
    pub fn fit(kernel: RegressionKernel, points: RegressionData) -> Result<KernelRegression> {
        let (n, d) = (points.count() as f64, points.features);
        let column = |of: &[f32], width: usize, j: usize| -> (f64, f64) {
            let all = || of.iter().skip(j).step_by(width).map(|x| f64::from(*x));
            let mean = all().sum::<f64>() / n;
            (mean, (all().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n).sqrt())
        };
        let spread = (0..d).map(|j| column(&points.keys, d, j).1).sum::<f64>() / d as f64;
        let rule = spread * n.powf(-1.0 / (d as f64 + 4.0));
        let width = if rule > 0.0 { rule as f32 } else { 1.0 };
        let outputs = points.outputs;
        let mean = (0..outputs).map(|j| column(&points.values, outputs, j).0 as f32).collect();
        Ok(KernelRegression { kernel, points, width, mean })
    }

    /// Returns the width of the kernel.
    pub fn width(&self) -> f32 {
        self.width
    }

    /// Sets the width.
    pub fn set_width(&mut self, width: f32) -> Result<()> {
        self.width = checked(width)?;
        Ok(())
    }

    /// Predicts `outputs` values for each query (one row each). Where no key is near enough, the
    /// prediction is the mean of all values.
    pub fn predict(&self, queries: &[f32]) -> Result<Vec<f32>> {
        Ok(self.asked(queries, self.width, false)?.0)
    }

    /// Returns the weights of all points for each query, with which [`KernelRegression::predict`]
    /// takes the mean. A row is 0 where no key is near enough.
    pub fn weights(&self, queries: &[f32]) -> Result<Vec<f32>> {
        let width = [self.width];
        let inputs = self.inputs(queries, &width)?;
        let (n, s, e) = (inputs.q.shape[2], self.points.count(), self.points.outputs);
        let (mut said, mut weights) = (vec![0.0; n * e], vec![0.0; n * s]);
        let attention = self.attention(false);
        let out = ViewMut::new(&mut said, [1, 1, n, e]).map_err(invalid)?;
        let saved = attention.forward(&inputs, &out).map_err(invalid)?;
        let to = ViewMut::new(&mut weights, [1, 1, n, s]).map_err(invalid)?;
        attention.weights(&inputs, &saved, Selection::default(), &to).map_err(invalid)?;
        Ok(weights)
    }

    /// Computes the leave-one-out error: each point is predicted from the others.
    pub fn leave_one_out(&self, width: f32) -> Result<LeftOut> {
        if self.points.count() == 1 {
            return Err(Error::invalid("one point: need others to predict it from"));
        }
        let (said, _) = self.asked(&self.points.keys, checked(width)?, true)?;
        let square = |(a, b): (&f32, &f32)| f64::from(a - b) * f64::from(a - b);
        let sum: f64 = said.iter().zip(&self.points.values).map(square).sum();
        Ok(LeftOut { width, error: sum / said.len() as f64 })
    }

    /// Sets the width with the least leave-one-out error, and returns the error of each.
    pub fn choose_width(&mut self, widths: &[f32]) -> Result<Vec<LeftOut>> {
        let mut tried = vec![];
        for width in widths {
            tried.push(self.leave_one_out(*width)?);
        }
        let best = tried.iter().min_by(|a, b| a.error.total_cmp(&b.error));
        let best =
            best.ok_or_else(|| Error::invalid("widths: got none, need some to choose from"))?;
        self.width = best.width;
        Ok(tried)
    }

    /// Learns the width by gradient descent on the leave-one-out error, as the parametric attention
    /// pooling of textbooks, and returns width and error of each step.
    ///
    /// # Errors
    /// If the kernel has no gradient: the constant one and the boxcar.
    pub fn learn_width(&mut self, steps: usize, rate: f32) -> Result<Vec<LeftOut>> {
        if matches!(self.kernel, RegressionKernel::Constant | RegressionKernel::Boxcar) {
            return Err(Error::invalid("kernel: its width has no gradient; choose it instead"));
        }
        if !(rate.is_finite() && rate > 0.0) {
            return Err(Error::invalid(format!("rate: got {rate}, need a positive number")));
        }
        let mut log = vec![];
        // Adam on the logarithm of the width, which keeps it positive.
        let (mut first, mut second) = (0.0f64, 0.0f64);
        for step in 1..=steps {
            let (error, slope) = self.slope()?;
            log.push(LeftOut { width: self.width, error });
            let slope = slope * f64::from(self.width);
            first = 0.9 * first + 0.1 * slope;
            second = 0.99 * second + 0.01 * slope * slope;
            let n = step as i32;
            let (m, v) = (first / (1.0 - 0.9f64.powi(n)), second / (1.0 - 0.99f64.powi(n)));
            let next = self.width * (-f64::from(rate) * m / (v.sqrt() + 1e-12)).exp() as f32;
            self.set_width(next).map_err(|e| Error::invalid(format!("step {step}: {e}")))?;
        }
        Ok(log)
    }

    /// Computes the leave-one-out error and its derivative with respect to the width.
    fn slope(&self) -> Result<(f64, f64)> {
        let RegressionData { keys, values, outputs, .. } = &self.points;
        let (said, saved) = self.asked(keys, self.width, true)?;
        let scale = 2.0 / said.len() as f32;
        let mut error = 0.0;
        let up: Vec<f32> = (said.iter().zip(values))
            .map(|(said, value)| {
                error += f64::from(said - value) * f64::from(said - value);
                scale * (said - value)
            })
            .collect();
        let (n, e) = (self.points.count(), *outputs);
        let width = [self.width];
        let inputs = self.inputs(keys, &width)?;
        let view = |x| View::new(x, [1, 1, n, e]).map_err(invalid);
        let upstream = Upstream { out: Some((view(&said)?, view(&up)?)), ..Upstream::default() };
        let mut room = [vec![0.0; keys.len()], vec![0.0; keys.len()], vec![0.0; values.len()]];
        let [dq, dk, dv] = &mut room;
        let shape = inputs.q.shape;
        let to = InputGradients {
            dq: ViewMut::new(dq, shape).map_err(invalid)?,
            dk: ViewMut::new(dk, shape).map_err(invalid)?,
            dv: ViewMut::new(dv, [1, 1, n, e]).map_err(invalid)?,
        };
        let gradients =
            self.attention(true).backward(&inputs, &saved, &upstream, &to).map_err(invalid)?;
        Ok((error / said.len() as f64, f64::from(gradients.params[0][0])))
    }

    fn attention(&self, leave_out: bool) -> Attention {
        let shape = match self.kernel {
            RegressionKernel::Constant | RegressionKernel::Gaussian => KernelFunction::Gaussian,
            RegressionKernel::Boxcar => KernelFunction::Boxcar,
            RegressionKernel::Epanechnikov => KernelFunction::Epanechnikov,
        };
        let mut attention = Attention::with_score(Score(shape));
        if self.kernel == RegressionKernel::Constant {
            attention.normalizer = Arc::new(Uniform);
        }
        if leave_out { attention.mask(!window(0, 0)) } else { attention }
    }

    fn inputs<'a>(
        &'a self,
        queries: &'a [f32],
        width: &'a [f32; 1],
    ) -> Result<AttentionInputs<'a>> {
        let RegressionData { keys, values, features, outputs } = &self.points;
        if !queries.len().is_multiple_of(*features) {
            let got = queries.len();
            let message = format!("queries: got {got} numbers, need rows of {features}");
            return Err(Error::invalid(message));
        }
        let rows = |x: &'a [f32], width: usize| {
            View::new(x, [1, 1, x.len() / width, width]).map_err(invalid)
        };
        let params = vec![View::new(width, [1, 1, 1, 1]).map_err(invalid)?];
        let (q, k, v) =
            (rows(queries, *features)?, rows(keys, *features)?, rows(values, *outputs)?);
        Ok(AttentionInputs { q, k, v, params })
    }

    fn asked(
        &self,
        queries: &[f32],
        width: f32,
        leave_out: bool,
    ) -> Result<(Vec<f32>, SavedAttention)> {
        let width = [width];
        let inputs = self.inputs(queries, &width)?;
        let (n, e) = (inputs.q.shape[2], self.points.outputs);
        let mut said = vec![0.0; n * e];
        let to = ViewMut::new(&mut said, [1, 1, n, e]).map_err(invalid)?;
        let saved = self.attention(leave_out).forward(&inputs, &to).map_err(invalid)?;
        // A query without a near key has zero weights.
        let none =
            (0..n).filter(|i| self.kernel != RegressionKernel::Constant && saved.factor[*i] == 0.0);
        let all = self.points.count() as f32;
        for i in none {
            for j in 0..e {
                // The mean of all other points, if this is one of them.
                said[i * e + j] = match leave_out {
                    true => (all * self.mean[j] - self.points.values[i * e + j]) / (all - 1.0),
                    false => self.mean[j],
                };
            }
        }
        Ok((said, saved))
    }
}

fn checked(width: f32) -> Result<f32> {
    match width.is_finite() && width > 0.0 {
        true => Ok(width),
        false => Err(Error::invalid(format!("width: got {width}, need a positive number"))),
    }
}

fn invalid(error: regard_kernels::view::Error) -> Error {
    Error::invalid(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use regard_attention::Stream;

    const ALL: [RegressionKernel; 4] = [
        RegressionKernel::Constant,
        RegressionKernel::Boxcar,
        RegressionKernel::Epanechnikov,
        RegressionKernel::Gaussian,
    ];

    /// Points of a noisy sine, as in Dive into Deep Learning.
    fn sine(n: usize) -> RegressionData {
        let stream = Stream::new(1, 0, 0);
        let x: Vec<f32> = (0..n).map(|i| 5.0 * stream.uniform(i as u64)).collect();
        let noise = |i: usize| 0.5 * stream.normal((n + i) as u64);
        let y: Vec<f32> =
            x.iter().enumerate().map(|(i, x)| 2.0 * x.sin() + x.powf(0.8) + noise(i)).collect();
        RegressionData::new(&x, 1, &y, 1).unwrap()
    }

    /// Predicts by the definition, in double precision.
    fn defined(
        kernel: RegressionKernel,
        points: &RegressionData,
        query: &[f32],
        width: f32,
        but: usize,
    ) -> Vec<f64> {
        let RegressionData { keys, values, features, outputs } = points;
        let (mut sum, mut out) = (0.0, vec![0.0; *outputs]);
        for (i, key) in keys.chunks(*features).enumerate().filter(|(i, _)| *i != but) {
            let square: f64 =
                key.iter().zip(query).map(|(k, q)| f64::from(k - q) * f64::from(k - q)).sum();
            let u = square.sqrt() / f64::from(width);
            let weight = match kernel {
                RegressionKernel::Constant => 1.0,
                RegressionKernel::Boxcar => f64::from(u <= 1.0),
                RegressionKernel::Epanechnikov => (1.0 - u * u).max(0.0),
                RegressionKernel::Gaussian => (-0.5 * u * u).exp(),
            };
            sum += weight;
            let value = &values[i * outputs..];
            out.iter_mut().zip(value).for_each(|(out, v)| *out += weight * f64::from(*v));
        }
        if sum == 0.0 {
            let others = || values.chunks(*outputs).enumerate().filter(|(i, _)| *i != but);
            let n = others().count() as f64;
            let sum = |j: usize| others().map(|(_, row)| f64::from(row[j])).sum::<f64>();
            return (0..*outputs).map(|j| sum(j) / n).collect();
        }
        out.iter().map(|x| x / sum).collect()
    }

    #[test]
    fn predictions_are_those_of_the_definition() {
        let stream = Stream::new(2, 0, 0);
        let numbers = |n: usize| -> Vec<f32> { (0..n as u64).map(|i| stream.normal(i)).collect() };
        let points = RegressionData::new(&numbers(3 * 131), 3, &numbers(2 * 131), 2).unwrap();
        // The last query is far from all points.
        let queries = [numbers(3 * 20), vec![50.0; 3]].concat();
        for kernel in ALL {
            let mut model = KernelRegression::fit(kernel, points.clone()).unwrap();
            model.set_width(0.9).unwrap();
            let said = model.predict(&queries).unwrap();
            let far = if kernel == RegressionKernel::Gaussian { 20 } else { 21 };
            for (query, said) in queries.chunks(3).zip(said.chunks(2)).take(far) {
                let wanted = defined(kernel, &points, query, 0.9, usize::MAX);
                for (said, wanted) in said.iter().zip(wanted) {
                    assert!((f64::from(*said) - wanted).abs() < 1e-4, "{kernel:?} {said} {wanted}");
                }
            }
        }
    }

    #[test]
    fn each_point_is_predicted_from_the_others() {
        let points = sine(150);
        for kernel in ALL {
            let model = KernelRegression::fit(kernel, points.clone()).unwrap();
            for width in [0.02, 0.3] {
                let one = |i: usize| {
                    let query = &points.keys[i..i + 1];
                    let said = defined(kernel, &points, query, width, i)[0];
                    (said - f64::from(points.values[i])).powi(2)
                };
                let wanted = (0..150).map(one).sum::<f64>() / 150.0;
                let LeftOut { error, .. } = model.leave_one_out(width).unwrap();
                assert!((error - wanted).abs() < 1e-3 * wanted, "{kernel:?} {error} {wanted}");
            }
        }
    }

    #[test]
    fn a_width_that_is_learned_is_the_one_that_would_be_chosen() {
        for kernel in [RegressionKernel::Gaussian, RegressionKernel::Epanechnikov] {
            let mut chosen = KernelRegression::fit(kernel, sine(300)).unwrap();
            let widths: Vec<f32> = (0..40).map(|i| 0.05 * 1.08f32.powi(i)).collect();
            let tried = chosen.choose_width(&widths).unwrap();
            let least = tried.iter().map(|t| t.error).fold(f64::INFINITY, f64::min);
            let mut learned = chosen.clone();
            learned.set_width(1.5).unwrap();
            let log = learned.learn_width(150, 0.05).unwrap();
            assert!(log[0].error > 1.2 * least, "{kernel:?}");
            let error = learned.leave_one_out(learned.width()).unwrap().error;
            assert!(error < 1.01 * least, "{kernel:?}: {error} of {least}");
        }
        let mut boxcar = KernelRegression::fit(RegressionKernel::Boxcar, sine(20)).unwrap();
        let mut fast = KernelRegression::fit(RegressionKernel::Gaussian, sine(20)).unwrap();
        assert!(fast.learn_width(10, 200.0).unwrap_err().to_string().contains("step 1: width"));
        assert!(fast.leave_one_out(0.0).is_err() && fast.learn_width(1, f32::NAN).is_err());
        assert!(boxcar.learn_width(1, 0.1).unwrap_err().to_string().contains("no gradient"));
    }

    #[test]
    fn what_cannot_be_is_told() {
        let error = |keys: &[f32], values: &[f32]| {
            RegressionData::new(keys, 2, values, 1).unwrap_err().to_string()
        };
        assert!(error(&[1.0], &[1.0]).contains("keys: got 1 numbers, need rows of 2"));
        assert!(error(&[1.0, f32::NAN], &[1.0]).contains("keys: got NaN in row 0"));
        assert!(error(&[1.0, 2.0], &[]).contains("1 keys and 0 values"));
        assert!(error(&[], &[]).contains("need equal numbers > 0"));
        let points = RegressionData::new(&[1.0, 2.0], 2, &[3.0], 1).unwrap();
        let mut model = KernelRegression::fit(RegressionKernel::Gaussian, points).unwrap();
        assert!(model.set_width(0.0).is_err() && model.choose_width(&[]).is_err());
        assert!(model.predict(&[1.0]).unwrap_err().to_string().contains("need rows of 2"));
        assert_eq!(model.predict(&[9.0, 9.0]).unwrap(), [3.0]);
        assert!(model.leave_one_out(1.0).unwrap_err().to_string().contains("one point"));
    }
}
