//! Convex hulls: the corners of the hull of all points, counter-clockwise.

use super::problem::{
    EvaluatedPoints, PointProblem, accuracy, at, double_area, from_first, is_left,
};
use crate::evaluation::Metric;
use crate::train::Direction;
use regard_models::pointer::SelectionRule;
use std::ops::RangeInclusive;

pub struct Hull;

impl PointProblem for Hull {
    fn name(&self) -> &'static str {
        "hull"
    }

    fn about(&self) -> &'static str {
        "the corners of the convex hull, counter-clockwise, from the lowest index and back to it"
    }

    fn width(&self) -> usize {
        2
    }

    fn sizes(&self) -> RangeInclusive<usize> {
        3..=1000
    }

    fn choice(&self) -> SelectionRule {
        SelectionRule::Once
    }

    fn closed(&self) -> bool {
        true
    }

    /// Solves by Andrew's monotone chain, which begins at the left. Points on an edge are no
    /// corners.
    fn solve(&self, points: &[f64]) -> Vec<u32> {
        let mut order: Vec<u32> = (0..points.len() as u32 / 2).collect();
        order.sort_by(|a, b| at(points, *a).partial_cmp(&at(points, *b)).expect("numbers"));
        order.dedup_by(|a, b| at(points, *a) == at(points, *b));
        if order.len() < 3 {
            return order;
        }
        let mut chain = half(points, order.iter());
        chain.pop();
        let mut back = half(points, order.iter().rev());
        back.pop();
        chain.extend(back);
        chain
    }

    fn learned(&self, points: &[f64], answer: &[u32]) -> Vec<u32> {
        from_first(answer, |a, b| is_left(points, a, b))
    }

    fn written(&self, answer: &[u32]) -> Vec<u32> {
        from_first(answer, |a, b| a < b)
    }

    fn marks(&self, asked: &[EvaluatedPoints]) -> Vec<Metric> {
        let count = asked.len().max(1) as f64;
        let (mut area, mut crossed) = (0.0, 0);
        for EvaluatedPoints { points, right, said } in asked {
            if !is_simple(points, said) {
                crossed += 1;
                continue;
            }
            let whole = double_area(points, right).abs();
            area += if whole > 0.0 { double_area(points, said).abs() / whole } else { 1.0 };
        }
        vec![
            accuracy(asked),
            Metric { name: "area", value: 100.0 * area / count, unit: "% of the area covered" },
            Metric {
                name: "crossed",
                value: 100.0 * f64::from(crossed) / count,
                unit: "% that are no simple polygon, counted as area 0",
            },
        ]
    }

    fn decides(&self) -> (&'static str, Direction) {
        ("accuracy", Direction::Higher)
    }
}

/// Computes the cross product of `b - a` and `c - a`, scaled: positive if `c` is to the left of `a`
/// → `b`.
fn turn([a, b, c]: [[f64; 2]; 3]) -> f64 {
    // Scaled, so that very short or very long vectors do not underflow or overflow.
    let long = [b[0] - a[0], b[1] - a[1], c[0] - a[0], c[1] - a[1]];
    let most = long.iter().fold(0f64, |most, x| most.max(x.abs()));
    let [bx, by, cx, cy] = if most > 0.0 { long.map(|x| x / most) } else { long };
    bx * cy - by * cx
}

/// Returns the lower chain of points ordered to the right, or the upper chain of points ordered to
/// the left.
fn half<'a>(points: &[f64], order: impl Iterator<Item = &'a u32>) -> Vec<u32> {
    let mut chain: Vec<u32> = vec![];
    for next in order {
        while let [.., a, b] = chain[..]
            && turn([a, b, *next].map(|place| at(points, place))) <= 0.0
        {
            chain.pop();
        }
        chain.push(*next);
    }
    chain
}

/// Returns whether a polygon has at least 3 distinct corners and no crossing edges.
fn is_simple(points: &[f64], polygon: &[u32]) -> bool {
    let n = polygon.len();
    let corner = |i: usize| at(points, polygon[i % n]);
    let twice = (0..n).any(|i| polygon[..i].contains(&polygon[i]));
    let crosses = |i: usize, j: usize| {
        let (a, b, c, d) = (corner(i), corner(i + 1), corner(j), corner(j + 1));
        turn([a, b, c]) * turn([a, b, d]) < 0.0 && turn([c, d, a]) * turn([c, d, b]) < 0.0
    };
    n >= 3 && !twice && !(0..n).any(|i| (i + 1..n).any(|j| crosses(i, j)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_any_size_have_their_hull() {
        let set = [0.1, 0.0, 0.2, 0.1, 0.0, 0.5, 0.09, 0.2];
        let hull = Hull.solve(&set);
        assert_eq!(hull.len(), 3);
        for scale in [1e-300, 1e-9, 1e9, 1e200] {
            assert_eq!(Hull.solve(&set.map(|x| x * scale)), hull, "{scale}");
        }
    }

    /// A square with a point inside, one on an edge and a duplicate.
    const SQUARE: [f64; 14] =
        [0.5, 0.5, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.5, 0.0, 0.0, 0.0];

    #[test]
    fn corners_counter_clockwise() {
        let solved = Hull.solve(&SQUARE);
        assert_eq!(solved, [2, 4, 1, 3], "from the left");
        assert_eq!(Hull.written(&solved), [1, 3, 2, 4], "from the lowest number");
        assert_eq!(Hull.learned(&SQUARE, &[1, 3, 2, 4]), solved);
    }

    #[test]
    fn every_other_point_is_to_the_left_of_every_edge() {
        for index in 0..200 {
            let draw = regard_attention::Stream::new(5, index, 0);
            let n = 3 + index % 30;
            let points: Vec<f64> = (0..2 * n).map(|i| f64::from(draw.uniform(i))).collect();
            let hull = Hull.solve(&points);
            for (a, b) in hull.iter().zip(hull.iter().cycle().skip(1)) {
                let others = (0..n as u32).filter(|c| c != a && c != b);
                let turns = others.map(|c| turn([*a, *b, c].map(|place| at(&points, place))));
                assert!(turns.into_iter().all(|turn| turn > 0.0), "set {index}: {hull:?}");
            }
        }
    }

    #[test]
    fn marks() {
        let asked = |said: &[u32]| EvaluatedPoints {
            points: SQUARE.to_vec(),
            right: vec![1, 3, 2, 4],
            said: said.to_vec(),
        };
        let said = [
            asked(&[1, 3, 2, 4]),
            asked(&[1, 3, 2]),       // half of it
            asked(&[1, 2, 3, 4]),    // crossed
            asked(&[1, 3]),          // no polygon
            asked(&[1, 3, 2, 4, 3]), // through a corner twice
        ];
        let values: Vec<f64> = Hull.marks(&said).iter().map(|mark| mark.value).collect();
        assert_eq!(values, [20.0, 30.0, 60.0]);
    }
}
