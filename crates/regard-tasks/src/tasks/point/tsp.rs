//! Travelling salesman: the shortest closed tour through all points.

use super::problem::{
    EvaluatedPoints, PointProblem, accuracy, at, double_area, from_first, is_left,
};
use crate::evaluation::Metric;
use crate::train::Direction;
use regard_models::pointer::SelectionRule;
use std::ops::RangeInclusive;

pub struct Tsp;

/// Largest number of points of an exact solution, which takes `n²·2ⁿ` steps.
const MOST: usize = 13;

impl PointProblem for Tsp {
    fn name(&self) -> &'static str {
        "tsp"
    }

    fn about(&self) -> &'static str {
        "the shortest tour through all points, from the first and back to it"
    }

    fn width(&self) -> usize {
        2
    }

    fn sizes(&self) -> RangeInclusive<usize> {
        2..=1000
    }

    fn most_solved(&self) -> usize {
        MOST
    }

    fn choice(&self) -> SelectionRule {
        SelectionRule::All
    }

    fn closed(&self) -> bool {
        true
    }

    /// Solves by Held and Karp 1962: the shortest path through each subset of the points to each of
    /// its points, from those of the subsets with one point less.
    fn solve(&self, points: &[f64]) -> Vec<u32> {
        let n = points.len() / 2;
        assert!(n <= MOST, "tsp: exact tours of at most {MOST} points, got {n}");
        if n < 3 {
            return self.learned(points, &(0..n as u32).collect::<Vec<_>>());
        }
        // All points but the last, where the tour begins.
        let m = n - 1;
        let far: Vec<f64> =
            (0..n * n).map(|cell| distance(points, (cell / n) as u32, (cell % n) as u32)).collect();
        let mut best = vec![(f64::INFINITY, 0u8); m << m];
        for to in 0..m {
            best[(1 << to) * m + to].0 = far[m * n + to];
        }
        for set in 1usize..1 << m {
            for to in (0..m).filter(|to| set & (1 << to) != 0) {
                let before = set & !(1 << to);
                for from in (0..m).filter(|from| before & (1 << from) != 0) {
                    let way = best[before * m + from].0 + far[from * n + to];
                    if way < best[set * m + to].0 {
                        best[set * m + to] = (way, from as u8);
                    }
                }
            }
        }
        let mut set = (1 << m) - 1;
        let back = |to: &usize| best[set * m + to].0 + far[to * n + m];
        let mut to = (0..m).min_by(|a, b| back(a).total_cmp(&back(b))).expect("there are two");
        let mut tour = vec![m as u32];
        while set != 0 {
            tour.push(to as u32);
            let from = best[set * m + to].1;
            set &= !(1 << to);
            to = usize::from(from);
        }
        self.learned(points, &tour)
    }

    /// Converts to counter-clockwise order from the leftmost point.
    fn learned(&self, points: &[f64], answer: &[u32]) -> Vec<u32> {
        let mut tour = answer.to_vec();
        if double_area(points, &tour) < 0.0 {
            tour.reverse();
        }
        from_first(&tour, |a, b| is_left(points, a, b))
    }

    /// Converts to begin with the lowest index, in the direction of the lower of its two
    /// neighbours.
    fn written(&self, answer: &[u32]) -> Vec<u32> {
        let mut tour = from_first(answer, |a, b| a < b);
        if let [_, next, .., last] = tour[..]
            && last < next
        {
            tour[1..].reverse();
        }
        tour
    }

    /// Prefers the shortest complete tour, whose length is known without the solution.
    fn prefer(&self, points: &[f64], answers: &[Vec<u32>]) -> usize {
        let whole = |at: &usize| answers[*at].len() * 2 == points.len();
        let length = |at: &usize| length(points, &answers[*at]);
        let all = (0..answers.len()).filter(whole);
        all.min_by(|a, b| length(a).total_cmp(&length(b))).unwrap_or(0)
    }

    fn marks(&self, asked: &[EvaluatedPoints]) -> Vec<Metric> {
        let mean = |tour: fn(&EvaluatedPoints) -> &[u32]| {
            let all = asked.iter().map(|asked| length(&asked.points, tour(asked)));
            all.sum::<f64>() / asked.len().max(1) as f64
        };
        let (ours, shortest) = (mean(|asked| &asked.said), mean(|asked| &asked.right));
        vec![
            Metric { name: "length", value: ours, unit: "mean length of tours" },
            Metric { name: "shortest", value: shortest, unit: "mean length of the shortest tours" },
            Metric { name: "gap", value: 100.0 * (ours / shortest - 1.0), unit: "% longer" },
            accuracy(asked),
        ]
    }

    fn decides(&self) -> (&'static str, Direction) {
        ("length", Direction::Lower)
    }
}

fn distance(points: &[f64], a: u32, b: u32) -> f64 {
    let ([ax, ay], [bx, by]) = (at(points, a), at(points, b));
    (ax - bx).hypot(ay - by)
}

/// Computes the length of a closed tour.
fn length(points: &[f64], tour: &[u32]) -> f64 {
    let next = tour.iter().cycle().skip(1);
    tour.iter().zip(next).map(|(a, b)| distance(points, *a, *b)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use regard_attention::Stream;

    fn draw(index: u64, n: usize) -> Vec<f64> {
        let draw = Stream::new(9, index, 0);
        (0..2 * n as u64).map(|i| f64::from(draw.uniform(i))).collect()
    }

    /// Finds the shortest tour by enumeration.
    fn tried(points: &[f64], tour: &mut Vec<u32>, from: usize) -> f64 {
        if from == tour.len() {
            return length(points, tour);
        }
        let mut best = f64::INFINITY;
        for i in from..tour.len() {
            tour.swap(from, i);
            best = best.min(tried(points, tour, from + 1));
            tour.swap(from, i);
        }
        best
    }

    #[test]
    fn no_tour_is_shorter() {
        for n in 2..=7 {
            for index in 0..10 {
                let points = draw(index, n);
                let tour = Tsp.solve(&points);
                let mut all: Vec<u32> = (0..n as u32).collect();
                let best = tried(&points, &mut all, 1);
                assert!((length(&points, &tour) - best).abs() < 1e-12, "{n} points, set {index}");
                let mut sorted = tour.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, all, "each once");
            }
        }
    }

    #[test]
    fn a_tour_has_one_form_of_each_kind() {
        let points = draw(3, 8);
        let tour = Tsp.solve(&points);
        let written = Tsp.written(&tour);
        for turned in 0..8 {
            let mut other = [&tour[turned..], &tour[..turned]].concat();
            assert_eq!(Tsp.learned(&points, &other), tour);
            assert_eq!(Tsp.written(&other), written);
            other.reverse();
            assert_eq!(Tsp.learned(&points, &other), tour);
            assert_eq!(Tsp.written(&other), written);
        }
        assert_eq!(written[0], 0);
        assert!(written[1] < written[7]);
    }

    #[test]
    fn the_shorter_is_taken() {
        let square = [0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0];
        let answers = [vec![0, 1, 2, 3], vec![0, 3, 1, 2], vec![0, 3]];
        assert_eq!(Tsp.prefer(&square, &answers), 1);
        let asked = EvaluatedPoints {
            points: square.to_vec(),
            right: vec![0, 2, 1, 3],
            said: vec![0, 1, 2, 3],
        };
        let marks = Tsp.marks(&[asked]);
        assert!((marks[1].value - 4.0).abs() < 1e-12);
        assert!((marks[2].value - 100.0 * (2f64.sqrt() - 1.0) / 2.0).abs() < 1e-9);
    }
}
