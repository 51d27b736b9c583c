//! Every score × mask × normaliser, on odd shapes, forward and backward, against the reference.

use super::problem::*;
use regard_kernels::attention::{Positions, bias, mask, score};
use regard_kernels::rng::Stream;
use std::sync::Arc;

const TOLERANCE: f64 = 2e-5;

/// Small and odd: T ≠ S, T = 1, S = 1, D = 1, grouped heads, E ≠ D.
const SHAPES: [Shape; 6] = [
    [2, 2, 2, 5, 7, 4, 3],
    [1, 2, 1, 7, 7, 17, 5],
    [2, 1, 1, 1, 6, 3, 17],
    [1, 2, 2, 4, 1, 5, 2],
    [1, 1, 1, 6, 9, 1, 1],
    [1, 4, 2, 3, 18, 8, 16],
];

#[test]
fn every_score_mask_and_normalizer() {
    let mut checked = 0;
    for shape in SHAPES {
        for score in scores(shape) {
            let [_, _, _, t, s, ..] = shape;
            if score.0.starts_with("relative") && t > s {
                continue;
            }
            for (mask, rule) in masks(shape) {
                for norm in normalizers() {
                    Problem::new(shape, score.clone(), (mask, rule.clone()), norm).check(TOLERANCE);
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 10_000, "{checked} combinations");
}

/// Wider and longer, across several blocks: the usual widths, ragged ends, one long row.
#[test]
fn several_blocks() {
    let shapes: [Shape; 7] = [
        [1, 1, 1, 70, 150, 17, 9],
        [1, 2, 1, 65, 65, 64, 64],
        [1, 1, 1, 130, 130, 80, 80],
        [1, 1, 1, 33, 129, 128, 128],
        [1, 1, 1, 1, 300, 64, 64],
        [1, 1, 1, 140, 60, 32, 16],
        [1, 1, 1, 129, 257, 8, 8],
    ];
    for shape in shapes {
        for (mask, rule) in masks(shape) {
            for norm in normalizers() {
                let score = scores(shape)[0].clone();
                Problem::new(shape, score, (mask, rule.clone()), norm).check(TOLERANCE);
            }
        }
    }
    // The other scores across blocks, under one mask of each walk.
    for shape in [[1, 1, 1, 70, 140, 5, 4], [1, 2, 1, 66, 131, 16, 16]] as [Shape; 2] {
        for score in scores(shape) {
            for (mask, rule) in masks(shape) {
                if ["causal", "edges", "dense"].contains(&mask) {
                    let norm = normalizers()[0].clone();
                    Problem::new(shape, score.clone(), (mask, rule), norm).check(TOLERANCE);
                }
            }
        }
    }
}

#[test]
fn biases() {
    for shape in
        [[2, 2, 2, 5, 7, 4, 3], [1, 2, 1, 3, 6, 3, 2], [1, 2, 2, 66, 130, 4, 4]] as [Shape; 3]
    {
        for (mask, rule) in masks(shape) {
            for norm in normalizers().into_iter().take(4) {
                let plain = || {
                    Problem::new(
                        shape,
                        scores(shape)[0].clone(),
                        (mask, rule.clone()),
                        norm.clone(),
                    )
                };
                for bias in all_biases(shape) {
                    let one = with_bias(plain(), bias);
                    one.check(TOLERANCE);
                    // Biases add up.
                    with_bias(one, Arc::new(bias::Alibi)).check(TOLERANCE);
                }
            }
        }
    }
}

#[test]
fn weights_as_an_output() {
    for shape in [[2, 2, 1, 5, 7, 4, 3], [1, 1, 1, 66, 130, 8, 8]] as [Shape; 2] {
        for (mask, rule) in masks(shape) {
            for norm in normalizers() {
                let mut problem =
                    Problem::new(shape, scores(shape)[1].clone(), (mask, rule.clone()), norm);
                let [b, h, _, t, s, ..] = shape;
                problem.dweights = Some(random(6, b * h * t * s));
                problem.check(TOLERANCE);
            }
        }
    }
}

#[test]
fn dropout_is_replayed() {
    let shape = [2, 2, 1, 66, 70, 8, 8];
    for (mask, rule) in masks(shape) {
        for norm in normalizers() {
            let mut problem =
                Problem::new(shape, scores(shape)[0].clone(), (mask, rule.clone()), norm);
            problem.fast = problem.fast.dropout(0.3, Stream::new(8, 1, 2));
            problem.check(TOLERANCE);
        }
    }
}

#[test]
fn positions_and_scale_are_used() {
    let shape = [2, 2, 2, 5, 9, 4, 3];
    for positions in [Positions::Offsets(vec![0, 3]), Positions::Centres(random(3, 10))] {
        for (name, rule) in masks(shape) {
            let norm = normalizers()[0].clone();
            let problem = Problem::new(shape, scores(shape)[0].clone(), (name, rule), norm);
            let mut problem = with_positions(problem, positions.clone());
            problem.fast = problem.fast.scale(0.9);
            problem.check(TOLERANCE);
        }
    }
}

#[test]
fn relative_positions_are_those_of_a_few_places() {
    // In order and not, across blocks and vectors, with a memory that nobody stands in.
    for (shape, last) in [
        ([2, 2, 2, 5, 9, 4, 3], 9),
        ([2, 2, 1, 3, 18, 8, 5], 12),
        ([1, 2, 2, 70, 160, 5, 4], 140),
        ([1, 1, 1, 33, 400, 16, 16], 300),
    ] as [(Shape, usize); 4]
    {
        let [b, _, _, t, s, ..] = shape;
        let stream = Stream::new(4, t as u64, s as u64);
        let drawn = |at: usize| s - 1 - stream.bits(at as u64) as usize % last;
        let spread = |at: usize| s - last + at % t * (last / t);
        for places in [(0..b * t).map(drawn).collect(), (0..b * t).map(spread).collect()] {
            let places: Vec<usize> = places;
            let centres: Vec<f32> = places.iter().map(|place| *place as f32).collect();
            let ids: Vec<i64> = (0..(b * s) as i64).map(|i| i / 3 % 2).collect();
            for (name, segments) in [("relative", None), ("relative, segments", Some(ids))] {
                let score: ScoreRow =
                    (name.into(), Arc::new(score::Relative { segments, last: Some(last) }));
                for (name, rule) in masks(shape) {
                    let norm = normalizers()[0].clone();
                    let problem = Problem::new(shape, score.clone(), (name, rule), norm);
                    with_positions(problem, Positions::Centres(centres.clone())).check(TOLERANCE);
                }
            }
        }
    }
}

#[test]
fn far_apart_rows_of_the_additive_score() {
    // Beyond ±20 the exponentials of the fast form would overflow.
    let shape = [1, 1, 1, 5, 7, 4, 3];
    let norm = normalizers()[0].clone();
    let mut problem = Problem::new(shape, scores(shape)[1].clone(), ("full", mask::full()), norm);
    problem.q.iter_mut().for_each(|x| *x = *x * 0.3 + 60.0);
    problem.k.iter_mut().for_each(|x| *x = *x * 0.3 - 60.0);
    problem.check(TOLERANCE);
}
