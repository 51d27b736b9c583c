//! Motivation of attention: predict `y` at `x` from noisy points.
//!
//! Pooling that ignores the query predicts the same everywhere. A layer of the query alone does
//! not use the points. Attention weights the points by their distance to the query, with a width
//! that can be learned.

use crate::regression::{KernelRegression, LeftOut, RegressionData, RegressionKernel};
use burn::tensor::{Device, Tensor, TensorData};
use regard_attention::Stream;
use regard_attention::layers::LinearConfig;
use regard_attention::{AdamW, AdamWConfig, Init};
use regard_models::Result;

/// Number of training points, and of queries.
const COUNT: usize = 50;
/// Standard deviation of the noise.
const NOISE: f32 = 0.5;

/// Computes the function without noise: `2 sin x + x^0.8`.
pub fn truth(x: f32) -> f32 {
    2.0 * x.sin() + x.powf(0.8)
}

/// Inputs of a prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sees {
    /// The values of all points, without the query.
    Values,
    /// The query, without the points once it is trained.
    Query,
    /// Query and points: attention.
    Both,
}

/// A method of prediction with its results.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolingMethod {
    /// Name of the method.
    pub name: &'static str,
    /// Formula of the prediction, for display.
    pub formula: &'static str,
    /// Inputs of the prediction.
    pub sees: Sees,
    /// Width of its kernel; `None` if it has none.
    pub width: Option<f32>,
    /// Predictions at the queries.
    pub said: Vec<f32>,
    /// Mean squared error against the function without noise.
    pub error: f64,
    /// Attention weights `[queries, points]`, row by row; `None` if it does not attend.
    pub weights: Option<Vec<f32>>,
}

/// Data and results of the experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolingExperiment {
    /// Positions `x` of the points, ascending.
    pub keys: Vec<f32>,
    /// Noisy values `y` of the points.
    pub values: Vec<f32>,
    /// Positions to predict at: 0 to 5 in steps of 0.1.
    pub queries: Vec<f32>,
    /// Values of the function without noise at the queries.
    pub truth: Vec<f32>,
    /// Methods, in the order of presentation.
    pub methods: Vec<PoolingMethod>,
    /// Width and leave-one-out error at each step of learning the width.
    pub learning: Vec<LeftOut>,
    /// Candidate widths with their leave-one-out errors.
    pub tried: Vec<LeftOut>,
}

/// Names of methods that drawings and tests look up.
pub mod names {
    /// Average pooling: the mean of all values.
    pub const AVERAGE: &str = "average pooling";
    /// Attention with a Gaussian kernel of width 1.
    pub const FIXED: &str = "Gaussian, width 1";
    /// Attention with a Gaussian kernel whose width was learned by gradient descent.
    pub const LEARNED: &str = "Gaussian, learned width";
}

impl PoolingExperiment {
    /// Draws the points from a seed and runs all methods.
    pub fn new(seed: u64) -> Result<PoolingExperiment> {
        let stream = Stream::new(seed, 0, 0);
        let mut keys: Vec<f32> = (0..COUNT as u64).map(|i| 5.0 * stream.uniform(i)).collect();
        keys.sort_by(f32::total_cmp);
        let noise = |i: usize| NOISE * stream.normal((COUNT + i) as u64);
        let values: Vec<f32> = keys.iter().enumerate().map(|(i, x)| truth(*x) + noise(i)).collect();
        let queries: Vec<f32> = (0..COUNT).map(|i| i as f32 / 10.0).collect();
        let right = queries.iter().map(|x| truth(*x)).collect();
        let mut lesson = PoolingExperiment {
            keys,
            values,
            queries,
            truth: right,
            methods: vec![],
            learning: vec![],
            tried: vec![],
        };
        lesson.without_queries()?;
        lesson.layer(seed);
        lesson.kernels()?;
        Ok(lesson)
    }

    /// Returns a method by its name.
    pub fn method(&self, name: &str) -> Option<&PoolingMethod> {
        self.methods.iter().find(|method| method.name == name)
    }

    fn add(&mut self, name: &'static str, formula: &'static str, sees: Sees, said: Vec<f32>) {
        let square = |(said, right): (&f32, &f32)| f64::from(said - right).powi(2);
        let error = said.iter().zip(&self.truth).map(square).sum::<f64>() / said.len() as f64;
        self.methods.push(PoolingMethod {
            name,
            formula,
            sees,
            width: None,
            said,
            error,
            weights: None,
        });
    }

    fn without_queries(&mut self) -> Result<()> {
        let model = self.regression(RegressionKernel::Constant)?;
        self.attend(names::AVERAGE, "Σ y_i / n", &model, false)?;
        let largest = self.values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        self.add("max pooling", "max y_i", Sees::Values, vec![largest; COUNT]);
        Ok(())
    }

    /// Trains a fully connected layer on the points.
    fn layer(&mut self, seed: u64) {
        const STEPS: usize = 400;
        let device = Device::flex().autodiff();
        let column = |numbers: &[f32]| {
            Tensor::<2>::from_data(TensorData::new(numbers.to_vec(), [numbers.len(), 1]), &device)
        };
        let (x, y) = (column(&self.keys), column(&self.values));
        let mut layer = LinearConfig::new(1, 1).init(&mut Init::new(seed, &device));
        let mut adamw = AdamW::new(AdamWConfig { weight_decay: 0.0, ..AdamWConfig::default() });
        for step in 0..STEPS {
            let apart = layer.forward(x.clone()) - y.clone();
            let loss = (apart.clone() * apart).mean();
            // Decays to 0, so that the last steps do not oscillate around the optimum.
            let rate = 0.1 * (1.0 - step as f64 / STEPS as f64);
            layer = adamw.step(rate, layer, loss.backward());
        }
        let said = layer.forward(column(&self.queries)).into_data();
        let said = said.try_to_vec::<f32>().expect("floats come as floats");
        self.add("fully connected layer", "w·x + b, trained", Sees::Query, said);
    }

    fn kernels(&mut self) -> Result<()> {
        let fixed = [
            ("boxcar, width 1", "K = 1[u ≤ 1]", RegressionKernel::Boxcar),
            ("Epanechnikov, width 1", "K = max(1 − u², 0)", RegressionKernel::Epanechnikov),
            (names::FIXED, "softmax(−(x − x_i)²/2)", RegressionKernel::Gaussian),
        ];
        for (name, formula, kernel) in fixed {
            let mut model = self.regression(kernel)?;
            model.set_width(1.0)?;
            self.attend(name, formula, &model, true)?;
        }
        let mut model = self.regression(RegressionKernel::Gaussian)?;
        model.set_width(1.0)?;
        self.learning = model.learn_width(200, 0.05)?;
        self.attend(names::LEARNED, "softmax(−((x − x_i)/w)²/2), w by gradient", &model, true)?;
        let widths: Vec<f32> = (0..32).map(|i| 0.05 * 1.1f32.powi(i)).collect();
        self.tried = model.choose_width(&widths)?;
        let formula = "the same, w of 32 by leaving one out";
        self.attend("Gaussian, chosen width", formula, &model, true)
    }

    fn regression(&self, kernel: RegressionKernel) -> Result<KernelRegression> {
        KernelRegression::fit(kernel, RegressionData::new(&self.keys, 1, &self.values, 1)?)
    }

    fn attend(
        &mut self,
        name: &'static str,
        formula: &'static str,
        model: &KernelRegression,
        by_distance: bool,
    ) -> Result<()> {
        let (said, weights) = (model.predict(&self.queries)?, model.weights(&self.queries)?);
        let sees = if by_distance { Sees::Both } else { Sees::Values };
        self.add(name, formula, sees, said);
        let added = self.methods.last_mut().expect("it was just added");
        added.weights = Some(weights);
        added.width = by_distance.then_some(model.width());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sees_the_query_and_the_points_is_better_and_a_learned_width_best() {
        for seed in 0..8 {
            let lesson = PoolingExperiment::new(seed).unwrap();
            let error = |name: &str| lesson.method(name).unwrap().error;
            let (fixed, learned) = (error(names::FIXED), error(names::LEARNED));
            assert!(learned < 0.6 * fixed, "seed {seed}: {learned} of {fixed}");
            for method in lesson.methods.iter().filter(|m| m.sees != Sees::Both) {
                assert!(method.error > fixed, "seed {seed}: {} {}", method.name, method.error);
            }
            assert!(error("max pooling") > error(names::AVERAGE));
            let chosen = lesson.methods.last().unwrap();
            assert!(chosen.error < 0.7 * fixed, "seed {seed}: {}", chosen.error);
        }
    }

    #[test]
    fn predictions_are_means_by_the_weights() {
        let lesson = PoolingExperiment::new(3).unwrap();
        for method in &lesson.methods {
            let Some(weights) = &method.weights else { continue };
            for (row, said) in weights.chunks(COUNT).zip(&method.said) {
                let sum: f32 = row.iter().sum();
                let mean: f32 = row.iter().zip(&lesson.values).map(|(w, y)| w * y).sum();
                assert!((sum - 1.0).abs() < 1e-4, "{}: {sum}", method.name);
                assert!((mean - said).abs() < 1e-4, "{}: {mean} {said}", method.name);
            }
        }
    }
}
