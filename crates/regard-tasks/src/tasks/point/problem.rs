//! What a problem is.

use super::{hull, sort, tsp};
use crate::examine::Mark;
use crate::train::Better;
use regard_models::pointer::Choice;
use regard_models::{Error, Result};
use std::ops::RangeInclusive;

/// A problem whose answer is some of its points, in an order.
///
/// An answer has two forms. The *written* one is what people and files have: a hull begins with
/// the point of the lowest number. The *learned* one is a function of where points are alone,
/// and not of the numbers that they happen to have, so that a model may take them for a set.
pub trait Problem: Sync {
    /// What it is called.
    fn name(&self) -> &'static str;
    /// In a sentence.
    fn about(&self) -> &'static str;
    /// Numbers of a point.
    fn width(&self) -> usize;
    /// How many points a set may have.
    fn sizes(&self) -> RangeInclusive<usize>;
    /// How many points a set may have whose true answer is computed.
    fn most_solved(&self) -> usize {
        *self.sizes().end()
    }
    /// Which points an answer has.
    fn choice(&self) -> Choice;
    /// Whether a written answer ends with the point that it begins with.
    fn closed(&self) -> bool;
    /// The true answer, in the learned form.
    fn solve(&self, points: &[f64]) -> Vec<u32>;
    /// Any answer in the learned form.
    fn learned(&self, points: &[f64], answer: &[u32]) -> Vec<u32>;
    /// Any answer in the written form, without the end of a closed one.
    fn written(&self, answer: &[u32]) -> Vec<u32>;
    /// Which of several answers is taken, the likeliest first.
    fn prefer(&self, _points: &[f64], _answers: &[Vec<u32>]) -> usize {
        0
    }
    /// How good answers are.
    fn marks(&self, asked: &[Asked]) -> Vec<Mark>;
    /// The mark that decides between models.
    fn decides(&self) -> (&'static str, Better);
}

/// A set of points with the true answer and a model's, both in the written form.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The numbers of all points.
    pub points: Vec<f64>,
    /// What is right.
    pub right: Vec<u32>,
    /// What was said.
    pub said: Vec<u32>,
}

/// Every problem there is.
pub const PROBLEMS: &[&dyn Problem] = &[&hull::Hull, &sort::Sort, &tsp::Tsp];

/// The problem of a name.
pub fn problem(name: &str) -> Result<&'static dyn Problem> {
    PROBLEMS.iter().find(|problem| problem.name() == name).copied().ok_or_else(|| {
        let names: Vec<_> = PROBLEMS.iter().map(|problem| problem.name()).collect();
        Error::invalid(format!("problem: got {name:?}, need one of {}", names.join(", ")))
    })
}

/// Percent of answers that are right, point by point.
pub(super) fn accuracy(asked: &[Asked]) -> Mark {
    let right = asked.iter().filter(|asked| asked.right == asked.said).count();
    let value = 100.0 * right as f64 / asked.len().max(1) as f64;
    Mark { name: "accuracy", value, unit: "% of answers exactly right" }
}

/// The coordinates of a point of a plane.
pub(super) fn at(points: &[f64], place: u32) -> [f64; 2] {
    [points[2 * place as usize], points[2 * place as usize + 1]]
}

/// The same circle, beginning with the one that comes first in an order.
pub(super) fn from_first(circle: &[u32], before: impl Fn(u32, u32) -> bool) -> Vec<u32> {
    let Some(first) = (1..circle.len()).fold(circle.first().map(|_| 0), |first, next| {
        first.map(|first| if before(circle[next], circle[first]) { next } else { first })
    }) else {
        return vec![];
    };
    [&circle[first..], &circle[..first]].concat()
}

/// Whether a point is left of another; of two at one place that of the lower number is.
pub(super) fn is_left(points: &[f64], a: u32, b: u32) -> bool {
    (at(points, a), a) < (at(points, b), b)
}

/// Twice the area of a polygon, above 0 if it goes counter-clockwise.
pub(super) fn double_area(points: &[f64], polygon: &[u32]) -> f64 {
    let next = polygon.iter().cycle().skip(1);
    let one = |(a, b): (&u32, &u32)| {
        let ([ax, ay], [bx, by]) = (at(points, *a), at(points, *b));
        ax * by - bx * ay
    };
    polygon.iter().zip(next).map(one).sum()
}
