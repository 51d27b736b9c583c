//! Numbers in ascending order.

use super::problem::{EvaluatedPoints, PointProblem, accuracy};
use crate::evaluation::Metric;
use crate::train::Direction;
use regard_models::pointer::SelectionRule;
use std::ops::RangeInclusive;

pub struct Sort;

impl PointProblem for Sort {
    fn name(&self) -> &'static str {
        "sort"
    }

    fn about(&self) -> &'static str {
        "numbers, the smallest first"
    }

    fn width(&self) -> usize {
        1
    }

    fn sizes(&self) -> RangeInclusive<usize> {
        1..=1000
    }

    fn choice(&self) -> SelectionRule {
        SelectionRule::All
    }

    fn closed(&self) -> bool {
        false
    }

    /// Solves by a stable sort: of equal numbers, that of the lower index comes first.
    fn solve(&self, points: &[f64]) -> Vec<u32> {
        let mut order: Vec<u32> = (0..points.len() as u32).collect();
        order.sort_by(|a, b| points[*a as usize].total_cmp(&points[*b as usize]));
        order
    }

    fn learned(&self, _: &[f64], answer: &[u32]) -> Vec<u32> {
        answer.to_vec()
    }

    fn written(&self, answer: &[u32]) -> Vec<u32> {
        answer.to_vec()
    }

    fn marks(&self, asked: &[EvaluatedPoints]) -> Vec<Metric> {
        let (mut right, mut all) = (0, 0);
        for asked in asked {
            right += asked.right.iter().zip(&asked.said).filter(|(a, b)| a == b).count();
            all += asked.right.len();
        }
        let share = 100.0 * right as f64 / all.max(1) as f64;
        let unit = "% of positions with the right number";
        vec![accuracy(asked), Metric { name: "places", value: share, unit }]
    }

    fn decides(&self) -> (&'static str, Direction) {
        ("accuracy", Direction::Higher)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascending_and_marked() {
        let points = vec![0.5, 0.1, 0.5, 0.0];
        assert_eq!(Sort.solve(&points), [3, 1, 0, 2]);
        let asked = |said: [u32; 4]| EvaluatedPoints {
            points: points.clone(),
            right: vec![3, 1, 0, 2],
            said: said.to_vec(),
        };
        let marks = Sort.marks(&[asked([3, 1, 0, 2]), asked([1, 3, 0, 2])]);
        assert_eq!((marks[0].value, marks[1].value), (50.0, 75.0));
    }
}
