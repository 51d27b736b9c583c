//! Every operation: kernels, composition, finite differences, a second backend.

use crate::close::{Inputs, Limits, USUAL, check, random};
use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use regard_attention::ops::*;
use regard_kernels::rng::Stream;

const KINKED: Limits = Limits { differences: None, ..USUAL };

#[test]
fn linear_layers() {
    for f in Activation::ALL {
        for (n, i, o) in [(1, 1, 1), (5, 3, 7), (33, 17, 40)] {
            let limits = if f == Activation::Relu { KINKED } else { USUAL };
            let arrays = [random(1, &[n, i]), random(2, &[i, o]), random(3, &[o])];
            check(&format!("{f:?} {n} {i} {o}"), &arrays, limits, |x| {
                linear(x.two(0), x.two(1), Some(x.one(2)), f)
            });
            check(&format!("{f:?} {n} {i} {o}, no bias"), &arrays[..2], limits, |x| {
                linear(x.two(0), x.two(1), None, f)
            });
        }
    }
}

#[test]
fn linear_layers_of_views() {
    // A transposed weight, and rows that are a part of wider rows.
    let arrays = [random(1, &[2, 4, 9]), random(2, &[6, 5])];
    check("views", &arrays, USUAL, |x| {
        let part = x.three(0).slice([0..2, 0..4, 2..7]);
        linear(part, x.two(1).transpose(), None, Activation::GeluTanh)
    });
    check("swapped", &[random(1, &[4, 3, 5]), random(2, &[5, 6])], USUAL, |x| {
        linear(x.three(0).swap_dims(0, 1), x.two(1), None, Activation::Identity)
    });
}

#[test]
fn activations() {
    for f in Activation::ALL {
        let limits = if f == Activation::Relu { KINKED } else { USUAL };
        check(&format!("{f:?}"), &[random(1, &[3, 50])], limits, |x| activate(x.two(0), f));
    }
}

fn norm_of(x: &Inputs, from: usize, kind: NormKind) -> NormParams {
    let beta = (kind == NormKind::Layer).then(|| x.one(from + 1));
    NormParams { kind, eps: 1e-5, gamma: x.one(from), beta }
}

#[test]
fn norms() {
    for kind in [NormKind::Layer, NormKind::Rms] {
        for (n, m) in [(1, 2), (7, 5), (40, 33)] {
            let arrays = [random(1, &[n, m]), random(4, &[n, m]), random(2, &[m]), random(3, &[m])];
            let case = format!("{kind:?} {n} {m}");
            let alone = [arrays[0].clone(), arrays[2].clone(), arrays[3].clone()];
            check(&case, &alone, USUAL, |x| norm(x.two(0), &norm_of(x, 1, kind)));
            check(&format!("{case}, sum"), &arrays, USUAL, |x| {
                let (sum, y) = add_norm(x.two(0), x.two(1), &norm_of(x, 2, kind));
                sum * 0.5 + y
            });
            check(&format!("{case}, sum unused"), &arrays, USUAL, |x| {
                add_norm(x.two(0), x.two(1), &norm_of(x, 2, kind)).1
            });
        }
    }
}

fn ints<const D: usize>(values: &[i64], shape: [usize; D], device: &Device) -> Tensor<D, Int> {
    Tensor::from_data(TensorData::new(values.to_vec(), shape), (device, DType::I64))
}

#[test]
fn losses() {
    for smoothing in [0.0, 0.1] {
        for ignore in [None, Some(-100), Some(2)] {
            let options = CrossEntropy { smoothing, ignore };
            let last = if ignore == Some(-100) { -100 } else { 0 };
            check(&format!("{options:?}"), &[random(1, &[5, 7])], USUAL, |x| {
                cross_entropy(x.two(0), ints(&[6, 2, 0, 2, last], [5], &x.device), options)
            });
        }
    }
}

#[test]
fn losses_of_letters() {
    for (blank, texts) in [(0, [&[1, 1, 2][..], &[], &[3]]), (2, [&[0, 1], &[3, 3], &[0, 1, 0]])] {
        check(&format!("{texts:?}"), &[random(1, &[16, 4])], USUAL, |x| {
            let mut said = CtcTargets::new();
            [7, 4, 5].iter().zip(texts).for_each(|(rows, text)| said.push(*rows, text));
            ctc_loss(x.two(0), said, Ctc { blank, zero_infinity: false })
        });
    }
    // The second has fewer rows than its letters need: nothing, and nothing to learn.
    check("impossible", &[random(1, &[6, 3])], USUAL, |x| {
        let mut said = CtcTargets::new();
        said.push(4, &[2, 1]);
        said.push(2, &[1, 1]);
        ctc_loss(x.two(0), said, Ctc { blank: 0, zero_infinity: true })
    });
}

#[test]
fn likelihoods() {
    check("row by row", &[random(1, &[5, 7])], USUAL, |x| {
        log_likelihoods(x.two(0), ints(&[6, 2, 0, 2, 1], [5], &x.device))
    });
    for targets in [[6, 2, -1, 2, 0], [-1; 5]] {
        check(&format!("{targets:?}"), &[random(1, &[5, 7])], USUAL, |x| {
            let p = burn::tensor::activation::sigmoid(x.two(0));
            negative_log_likelihood(p, ints(&targets, [5], &x.device), -1)
        });
    }
}

#[test]
fn embeddings() {
    for padding in [None, Some(1)] {
        // The gradient of a padding row is 0 by decree, not by calculus.
        let limits = if padding.is_some() { KINKED } else { USUAL };
        check(&format!("{padding:?}"), &[random(1, &[6, 5])], limits, |x| {
            embedding(x.two(0), ints(&[1, 5, 5, 0, 1, 2], [2, 3], &x.device), padding)
        });
    }
}

#[test]
fn windows_of_images() {
    for (size, stride, padding) in
        [([3, 3], [2, 2], [1, 1]), ([2, 3], [2, 3], [0, 0]), ([1, 2], [1, 1], [0, 1])]
    {
        let windows = Windows { size, stride, padding };
        check(&format!("{windows:?}"), &[random(1, &[2, 5, 7, 3])], USUAL, |x| {
            unfold(x.four(0), windows)
        });
    }
}

#[test]
fn dropped_numbers() {
    for p in [0.0, 0.3, 0.9] {
        check(&format!("dropout {p}"), &[random(1, &[9, 31])], USUAL, |x| {
            dropout(x.two(0), p, Stream::new(3, 1, 4))
        });
    }
}

#[test]
fn rotations() {
    for pairs in [Pairs::Halves, Pairs::Neighbours] {
        let whole = Angles::new(20, 6, 100.0, pairs);
        let partial = Angles::with_frequencies(20, 6, vec![1.0, 0.3], pairs);
        let each = TokenPositions::Each([3, 4, 0, 1, 2, 0, 0, 19, 7, 8].into());
        for (heads, places) in [
            (1, TokenPositions::From(vec![0])),
            (3, TokenPositions::From(vec![2, 7])),
            (2, TokenPositions::From(vec![11])),
            (2, each),
        ] {
            for angles in [&whole, &partial] {
                check(&format!("{pairs:?} {heads}"), &[random(1, &[2, 5, 18])], USUAL, |x| {
                    rotate(x.three(0), angles, heads, &places)
                });
            }
        }
    }
}

#[test]
fn recurrences() {
    let (b, t, i, h) = (3, 5, 4, 6);
    for cell in [Cell::Rnn, Cell::Gru, Cell::Lstm] {
        for directions in [1, 2] {
            for (biased, started, lengths) in [
                (true, false, None),
                (true, true, Some(vec![5, 2, 0])),
                (false, true, None),
                (false, false, Some(vec![1, 5, 3])),
            ] {
                let g = cell.gates() * h;
                let mut arrays = vec![random(1, &[b, t, i])];
                for d in 0..directions {
                    arrays.push(random(10 + d, &[g, i]));
                    arrays.push(random(20 + d, &[g, h]));
                    if biased {
                        arrays.extend([random(30 + d, &[g]), random(40 + d, &[g])]);
                    }
                }
                let wide = directions as usize * h;
                if started {
                    arrays.push(random(50, &[b, wide]));
                    if cell == Cell::Lstm {
                        arrays.push(random(51, &[b, wide]));
                    }
                }
                let run = |x: &Inputs| {
                    let mut at = 0..;
                    let mut next = || at.next().unwrap();
                    let input = x.three(next());
                    let directions: Vec<_> = (0..directions)
                        .map(|_| DirectionWeights {
                            input: x.two(next()),
                            hidden: x.two(next()),
                            biases: biased.then(|| [x.one(next()), x.one(next())]),
                        })
                        .collect();
                    let start = started.then(|| States {
                        h: x.two(next()),
                        c: (cell == Cell::Lstm).then(|| x.two(next())),
                    });
                    let (y, last) = recurrent(cell, input, &directions, start, lengths.as_deref());
                    let mut all = vec![y.reshape([b * t, wide]), last.h * 2.0];
                    all.extend(last.c.map(|c| c * 3.0));
                    Tensor::cat(all, 0)
                };
                let case = format!("{cell:?} {directions} {biased} {started} {lengths:?}");
                check(&case, &arrays, USUAL, run);
            }
        }
    }
}

#[test]
fn largest_of_runs() {
    for (lengths, width) in [(vec![1], 1), (vec![3, 1, 5], 4), (vec![2, 30, 7, 1], 19)] {
        let n = lengths.iter().sum();
        check(&format!("{lengths:?} {width}"), &[random(1, &[n, width])], USUAL, |x| {
            largest(x.two(0), &lengths)
        });
    }
}
