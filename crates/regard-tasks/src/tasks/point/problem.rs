//! Trait of problems whose answer is a sequence of points.

use super::{hull, sort, tsp};
use crate::evaluation::Metric;
use crate::train::Direction;
use regard_models::pointer::SelectionRule;
use regard_models::{Error, Result};
use std::ops::RangeInclusive;

/// A problem whose answer is a sequence of some of its points.
///
/// An answer has two canonical forms. The *written* form is that of users and files: a hull begins
/// with the point of the lowest index. The *learned* form depends only on the positions of points
/// and not on their indices, so that a model may treat them as a set.
pub trait PointProblem: Sync {
    /// Returns the name of the problem.
    fn name(&self) -> &'static str;
    /// Returns a one-sentence description of the answer.
    fn about(&self) -> &'static str;
    /// Returns the number of coordinates of a point.
    fn width(&self) -> usize;
    /// Returns the valid range of the number of points.
    fn sizes(&self) -> RangeInclusive<usize>;
    /// Returns the maximum number of points for which [`PointProblem::solve`] is feasible.
    fn most_solved(&self) -> usize {
        *self.sizes().end()
    }
    /// Returns the constraint on which points an answer has.
    fn choice(&self) -> SelectionRule;
    /// Whether a written answer ends with the point that it begins with.
    fn closed(&self) -> bool;
    /// Computes the solution, in the learned form.
    fn solve(&self, points: &[f64]) -> Vec<u32>;
    /// Converts an answer to the learned form.
    fn learned(&self, points: &[f64], answer: &[u32]) -> Vec<u32>;
    /// Converts an answer to the written form, without the repeated first point.
    fn written(&self, answer: &[u32]) -> Vec<u32>;
    /// Returns the index of the preferred one of several answers, given by decreasing probability.
    fn prefer(&self, _points: &[f64], _answers: &[Vec<u32>]) -> usize {
        0
    }
    /// Computes the metrics of answers.
    fn marks(&self, asked: &[EvaluatedPoints]) -> Vec<Metric>;
    /// Returns the model selection metric, and whether higher or lower is better.
    fn decides(&self) -> (&'static str, Direction);
}

/// A set of points with its solution and a prediction, both in the written form.
#[derive(Clone, Debug, PartialEq)]
pub struct EvaluatedPoints {
    /// Coordinates of all points, point by point.
    pub points: Vec<f64>,
    /// Solution, as indices from 0.
    pub right: Vec<u32>,
    /// Prediction, as indices from 0.
    pub said: Vec<u32>,
}

/// All problems.
pub const PROBLEMS: &[&dyn PointProblem] = &[&hull::Hull, &sort::Sort, &tsp::Tsp];

/// Returns a problem by name.
pub fn problem(name: &str) -> Result<&'static dyn PointProblem> {
    PROBLEMS.iter().find(|problem| problem.name() == name).copied().ok_or_else(|| {
        let names: Vec<_> = PROBLEMS.iter().map(|problem| problem.name()).collect();
        Error::invalid(format!("problem: got {name:?}, need one of {}", names.join(", ")))
    })
}

/// Computes the percentage of answers that equal the solution.
pub(super) fn accuracy(asked: &[EvaluatedPoints]) -> Metric {
    let right = asked.iter().filter(|asked| asked.right == asked.said).count();
    let value = 100.0 * right as f64 / asked.len().max(1) as f64;
    Metric { name: "accuracy", value, unit: "% of answers exactly right" }
}

/// Returns the coordinates of a point of the plane.
pub(super) fn at(points: &[f64], place: u32) -> [f64; 2] {
    [points[2 * place as usize], points[2 * place as usize + 1]]
}

/// Rotates a cycle so that it begins with its first element in an order.
pub(super) fn from_first(circle: &[u32], before: impl Fn(u32, u32) -> bool) -> Vec<u32> {
    let Some(first) = (1..circle.len()).fold(circle.first().map(|_| 0), |first, next| {
        first.map(|first| if before(circle[next], circle[first]) { next } else { first })
    }) else {
        return vec![];
    };
    [&circle[first..], &circle[..first]].concat()
}

/// Whether a point is left of another; of two at one position the one of the lower index is.
pub(super) fn is_left(points: &[f64], a: u32, b: u32) -> bool {
    (at(points, a), a) < (at(points, b), b)
}

/// Computes twice the signed area of a polygon, positive if it is counter-clockwise.
pub(super) fn double_area(points: &[f64], polygon: &[u32]) -> f64 {
    let next = polygon.iter().cycle().skip(1);
    let one = |(a, b): (&u32, &u32)| {
        let ([ax, ay], [bx, by]) = (at(points, *a), at(points, *b));
        ax * by - bx * ay
    };
    polygon.iter().zip(next).map(one).sum()
}
