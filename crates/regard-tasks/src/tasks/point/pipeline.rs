//! Pointing at points as a pipeline.

use super::file::check;
use super::{Pointed, Pointer};
use crate::decode::SearchParameters;
use crate::pipeline::Pipeline;
use regard_models::{Error, ModelFiles, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A set of points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Inputs {
    /// The numbers of each point: x and y, or one number to sort.
    pub points: Vec<Vec<f64>>,
}

/// Settings of an answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Also return the attention of each step: the end, then each point.
    pub output_attentions: bool,
    /// How to search.
    #[serde(flatten)]
    pub search: SearchParameters,
}

/// The points that the model points at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// Problem that the model was trained for: hull, sort or tsp.
    pub problem: String,
    /// Numbers of the points, from 1; a closed way ends with its first.
    pub answer: Vec<u32>,
    /// Log-probability of the answer.
    pub log_prob: f64,
    /// Answer of an exact algorithm; null where there are too many points for one.
    pub solution: Option<Vec<u32>>,
    /// Whether answer and solution agree.
    pub right: Option<bool>,
    /// The attention of each step, if it was asked for.
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
    /// The exact answer for a set of points, if there are few enough for an exact algorithm.
    pub fn solution(&self, points: &[f64]) -> Option<Vec<u32>> {
        let problem = self.problem();
        let solvable = points.len() / problem.width() <= problem.most_solved();
        solvable.then(|| problem.written(&problem.solve(points)))
    }

    /// The response for a set of points and the answer to it.
    pub fn response(&self, points: &[f64], said: &Pointed, parameters: &Parameters) -> Response {
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

    /// Points as people count them, from 1, back to the first if answers of the problem are closed.
    pub fn numbered(&self, answer: &[u32]) -> Vec<u32> {
        let back = answer.first().filter(|_| self.problem().closed());
        answer.iter().chain(back).map(|at| at + 1).collect()
    }
}
