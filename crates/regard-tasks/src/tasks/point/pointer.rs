//! Inference with pointer networks.

use super::{EvaluatedPoints, Instances, PointProblem, problem};
use crate::decode::{DecodeInput, Ids, Options, StepAttention, Stepper, decode, generation};
use crate::train;
use burn::tensor::Device;
use regard_attention::backend;
use regard_models::pointer::{MARKER, PointerDecoding, PointerNet, Points};
use regard_models::{Error, ModelFiles, Network, Result, zoo};

/// Sets per batch.
const AT_ONCE: usize = 128;

/// Prediction for a set of points.
#[derive(Clone, Debug, PartialEq)]
pub struct PointPrediction {
    /// Indices of points, from 0, in the written form, without the repeated first point.
    pub answer: Vec<u32>,
    /// Log-probability of the whole answer, in nats.
    pub log_prob: f64,
    /// Indices of points in the order in which the model selected them.
    pub steps: Vec<u32>,
    /// Attention of each step, the final one included: the weight of the end marker, then of each
    /// point.
    pub weights: Vec<Vec<f32>>,
}

/// Pointer network with its problem.
pub struct Pointer {
    net: PointerNet,
    problem: &'static dyn PointProblem,
    defaults: Options,
}

impl Pointer {
    /// Creates a pointer from a model whose configuration names its problem.
    pub fn new(net: PointerNet, defaults: Options) -> Result<Pointer> {
        let problem = problem(&net.settings().problem)?;
        let (got, wanted) = (net.settings().input_size, problem.width());
        if got != wanted {
            return Err(Error::invalid(format!(
                "input_size: got {got}, a point of {} has {wanted} numbers",
                problem.name()
            )));
        }
        Ok(Pointer { net, problem, defaults })
    }

    /// Opens a model: from a folder, which may be a training run's, or a built-in one.
    pub fn load(model: impl Into<ModelFiles>) -> Result<Pointer> {
        let files = train::files(model)?;
        let net = *zoo::open::<PointerNet>(files.clone(), &Device::flex())?;
        Pointer::new(net, generation::load(&files)?)
            .map_err(|e| Error::file(files.place(), e.to_string()))
    }

    /// Returns the problem that the model was trained for.
    pub fn problem(&self) -> &'static dyn PointProblem {
        self.problem
    }

    /// Returns the model's default search options.
    pub fn defaults(&self) -> &Options {
        &self.defaults
    }

    /// Returns the number of parameters.
    pub fn parameters(&self) -> usize {
        self.net.parameters()
    }

    /// Predicts the answer for each set of points.
    ///
    /// # Errors
    /// If the options are invalid.
    pub fn ask(&self, sets: &[&[f64]], options: &Options) -> Result<Vec<PointPrediction>> {
        let mut points = Points::new(self.problem.width());
        sets.iter().for_each(|set| points.push(&within_unit(set)));
        let sentences: Vec<DecodeInput> = points
            .counts()
            .iter()
            .enumerate()
            .map(|(index, n)| DecodeInput {
                index: index as u64,
                source: n + 1,
                ..DecodeInput::default()
            })
            .collect();
        // If the problem can compare answers, it chooses among all beams.
        let options = Options {
            // The start marker, a step for each point, and the end marker.
            max_length: points.most() + 2,
            num_return_sequences: options.num_beams,
            max_new_tokens: None,
            max_len_a: 0.0,
            max_len_b: 0,
            ..options.clone()
        };
        let ids = Ids { bos: MARKER, eos: vec![MARKER], pad: None };
        let mut stepping = Stepping(self.net.walk(&points));
        let found = decode(&mut stepping, &sentences, &options, &ids)?;
        let one = |(set, found): (&&[f64], Vec<crate::decode::Hypothesis>)| {
            let places = |tokens: &[u32]| tokens.iter().map(|at| at - 1).collect::<Vec<u32>>();
            let answers: Vec<Vec<u32>> = found.iter().map(|each| places(&each.tokens)).collect();
            let best = self.problem.prefer(set, &answers);
            let (steps, best) = (answers[best].clone(), &found[best]);
            PointPrediction {
                answer: self.problem.written(&steps),
                log_prob: f64::from(best.log_prob),
                steps,
                weights: best.attention.clone(),
            }
        };
        Ok(sets.iter().zip(found).map(one).collect())
    }

    /// Predicts the answers for many sets, paired with their solutions.
    pub fn exam(&self, instances: &Instances, options: &Options) -> Result<Vec<EvaluatedPoints>> {
        let mut asked = Vec::with_capacity(instances.len());
        let all: Vec<_> = instances.iter().collect();
        for some in all.chunks(AT_ONCE) {
            let sets: Vec<&[f64]> = some.iter().map(|instance| &instance.points[..]).collect();
            let said = self.ask(&sets, options)?;
            asked.extend(some.iter().zip(said).map(|(instance, said)| EvaluatedPoints {
                points: instance.points.clone(),
                right: self.problem.written(&instance.answer),
                said: said.answer,
            }));
        }
        Ok(asked)
    }
}

/// Normalises points to the distribution of training: within the unit square, and filling it.
/// Others are translated and scaled as a whole, which changes neither hulls nor orders nor the
/// shortest tour.
pub(super) fn within_unit(set: &[f64]) -> Vec<f32> {
    let (low, high) = set
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(*x), high.max(*x)));
    let wide = if high > low { high - low } else { 1.0 };
    // Points that fill the square well enough are like those of training.
    if low >= 0.0 && high <= 1.0 && wide >= 0.5 {
        return set.iter().map(|x| *x as f32).collect();
    }
    set.iter().map(|x| ((x - low) / wide) as f32).collect()
}

/// Decoding state as seen by the search.
struct Stepping<'a>(PointerDecoding<'a>);

impl Stepper for Stepping<'_> {
    fn vocabulary(&self) -> usize {
        self.0.width()
    }

    fn step(&mut self, tokens: &[u32], logits: &mut Vec<f32>) -> Option<StepAttention> {
        let mut weights = vec![];
        backend::numbers(self.0.step(tokens), &mut weights);
        logits.clear();
        // Weights sum to one, so the softmax of their logarithms restores them.
        logits.extend(weights.iter().map(|weight| weight.ln()));
        Some(StepAttention { weights, keys: self.0.width() })
    }

    fn reorder(&mut self, parents: &[usize]) {
        self.0.reorder(parents);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_elsewhere_are_moved_as_a_whole() {
        assert_eq!(within_unit(&[0.25, 0.75]), [0.25, 0.75]);
        assert_eq!(within_unit(&[0.5, 0.25, 0.375]), [1.0, 0.0, 0.5]);
        assert_eq!(within_unit(&[-10.0, 0.0, 10.0, 5.0]), [0.0, 0.5, 1.0, 0.75]);
        assert_eq!(within_unit(&[7.0, 7.0]), [0.0, 0.0]);
    }
}
