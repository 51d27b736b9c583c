//! Pointer networks as a pipeline.

use super::file::check;
use super::{PointPrediction, Pointer};
use crate::decode::SearchParameters;
use crate::pipeline::Pipeline;
use regard_models::{Error, ModelFiles, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A set of points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Inputs {
    /// Coordinates of each point: `[x, y]`, or `[x]` for a number to sort.
    pub points: Vec<Vec<f64>>,
}

/// Parameters of a pointing request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Whether to return the attention of each step: the weight of the end marker, then of each
    /// point.
    pub output_attentions: bool,
    /// Search parameters.
    #[serde(flatten)]
    pub search: SearchParameters,
}

/// Points selected by the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// Problem that the model was trained for: hull, sort or tsp.
    pub problem: String,
    /// Indices of the selected points, from 1; a closed polygon or tour ends with its first point.
    pub answer: Vec<u32>,
    /// Log-probability of the answer, in nats.
    pub log_prob: f64,
    /// Solution of an exact algorithm, as indices from 1; null if there are too many points for it.
    pub solution: Option<Vec<u32>>,
    /// Whether the answer equals the solution; null if there is no solution.
    pub right: Option<bool>,
    /// Attention of each step: the weight of the end marker, then of each point. Only present if
    /// `output_attentions` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<Vec<Vec<f32>>>,
}

impl Pipeline for Pointer {
    const TASK: &'static str = "point";

    type Inputs = Inputs;
    type Parameters = Parameters;
    type Response = Response;

    fn open(files: ModelFiles) -> Result<Pointer> {
        Pointer::load(files)
    }

    fn run(&self, inputs: &[Inputs], parameters: &Parameters) -> Result<Vec<Result<Response>>> {
        // The number of points fixes the length of the answer, and there is one answer.
        let length = [
            "num_return_sequences",
            "max_length",
            "max_new_tokens",
            "min_length",
            "min_new_tokens",
        ];
        parameters.search.refuse(&length)?;
        let options = parameters.search.over(self.defaults())?;
        let one = |Inputs { points }: &Inputs| {
            let width = self.problem().width();
            if let Some(at) = points.iter().position(|point| point.len() != width) {
                return Err(Error::invalid(format!(
                    "point {}: got {} numbers, need {width}",
                    at + 1,
                    points[at].len()
                )));
            }
            let points: Vec<f64> = points.iter().flatten().copied().collect();
            check(&points, self.problem()).map_err(Error::Invalid)?;
            let said = self.ask(&[&points], &options)?.remove(0);
            Ok(self.response(&points, &said, parameters))
        };
        Ok(inputs.iter().map(one).collect())
    }
}

impl Pointer {
    /// Returns the exact solution for a set of points; `None` if there are too many points.
    pub fn solution(&self, points: &[f64]) -> Option<Vec<u32>> {
        let problem = self.problem();
        let solvable = points.len() / problem.width() <= problem.most_solved();
        solvable.then(|| problem.written(&problem.solve(points)))
    }

    /// Creates the response for a set of points and its prediction.
    pub fn response(
        &self,
        points: &[f64],
        said: &PointPrediction,
        parameters: &Parameters,
    ) -> Response {
        let solution = self.solution(points);
        Response {
            problem: self.problem().name().to_string(),
            answer: self.numbered(&said.answer),
            log_prob: said.log_prob,
            right: solution.as_ref().map(|solution| *solution == said.answer),
            solution: solution.map(|solution| self.numbered(&solution)),
            weights: parameters.output_attentions.then(|| said.weights.clone()),
        }
    }

    /// Converts to indices from 1, with the first point repeated at the end of closed answers.
    pub fn numbered(&self, answer: &[u32]) -> Vec<u32> {
        let back = answer.first().filter(|_| self.problem().closed());
        answer.iter().chain(back).map(|at| at + 1).collect()
    }
}
