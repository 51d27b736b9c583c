//! Attention on tensors: every score, bias and normaliser.
//!
//! The engine's own laws are tested with the kernels. Here it is what stands between them and
//! Burn: operands, strides, outputs, gradients of parameters, and the composition.

use crate::close::{Array, Inputs, Limits, USUAL, check, random};
use burn::tensor::Tensor;
use regard_attention::normalize::*;
use regard_attention::{
    Attention, Dims, Graph, Heads, Param, Positions, Row, Setting, Settings, Values, bias, mask,
    mask::*, normalize, score,
};
use regard_kernels::rng::Stream;
use std::sync::Arc;

const KINKED: Limits = Limits { differences: None, ..USUAL };

const B: usize = 2;
const H: usize = 4;
const HK: usize = 2;
const T: usize = 5;
const S: usize = 7;
const D: usize = 6;

/// q, k and v, and what comes after.
fn arrays(more: &[&[usize]]) -> Vec<Array> {
    let mut all =
        vec![random(1, &[B, H, T, D]), random(2, &[B, HK, S, D]), random(3, &[B, HK, S, D])];
    all.extend(more.iter().zip(4..).map(|(shape, seed)| random(seed, shape)));
    all
}

fn attend(x: &Inputs, attention: Attention) -> Tensor<4> {
    attention.attend(x.four(0), x.four(1), x.four(2))
}

#[test]
fn scores() {
    let mask = || causal() & lengths(&[7, 4]);
    check("dot", &arrays(&[]), USUAL, |x| attend(x, Attention::dot().mask(mask())));
    check("scaled", &arrays(&[]), USUAL, |x| attend(x, Attention::dot().scale(0.3)));
    check("soft_cap", &arrays(&[]), USUAL, |x| attend(x, Attention::soft_cap(1.5).mask(mask())));
    check("additive", &arrays(&[&[H, D]]), USUAL, |x| {
        attend(x, Attention::additive(x.two(3)).mask(mask()))
    });
    check("gatv2", &arrays(&[&[H, D]]), KINKED, |x| {
        attend(x, Attention::gatv2(x.two(3), 0.2).mask(mask()))
    });
    check("edge", &arrays(&[&[H, D], &[H, D]]), KINKED, |x| {
        attend(x, Attention::edge(x.two(3), x.two(4), 0.2).mask(mask()))
    });
    // Under the graph's own mask, and under one that has pairs without an edge.
    let (indptr, indices) = (vec![0, 2, 3, 3, 6, 7], vec![0, 4, 6, 1, 2, 3, 5]);
    for own in [true, false] {
        let mask = || if own { edges(&indptr, &indices) } else { mask() };
        let graph = || Graph::new(&indptr, &indices);
        check("gatv2, edge features", &arrays(&[&[H, D], &[H, 7, D]]), KINKED, |x| {
            let attention = Attention::gatv2(x.two(3), 0.2).edge_features(graph(), x.three(4));
            attend(x, attention.mask(mask()))
        });
        check("edge, edge features", &arrays(&[&[H, D], &[H, D], &[H, 7, 1]]), KINKED, |x| {
            let attention = Attention::edge(x.two(3), x.two(4), 0.2);
            attend(x, attention.edge_features(graph(), x.three(5)).mask(mask()))
        });
    }
    check("general", &arrays(&[&[H, D, D]]), USUAL, |x| {
        attend(x, Attention::general(x.three(3)).scale(0.2).mask(mask()))
    });
    check("keyvalue", &arrays(&[&[1], &[1]]), USUAL, |x| {
        attend(x, Attention::key_value(x.one(3), x.one(4)).mask(mask()))
    });
    check("relative", &arrays(&[&[H, S + T, D], &[H, D], &[H, D]]), USUAL, |x| {
        attend(x, Attention::relative(x.three(3), x.two(4), x.two(5)).mask(mask()))
    });
    let more: &[&[usize]] = &[&[H, S + T, D], &[H, D], &[H, D], &[H, 2, D], &[H, D]];
    check("relative, segments", &arrays(more), USUAL, |x| {
        let ids = (0..(B * S) as i64).map(|i| i / 3 % 2).collect();
        let attention = Attention::relative(x.three(3), x.two(4), x.two(5));
        attend(x, attention.segment(ids, x.three(6), x.two(7)).mask(mask()))
    });
    // At a few places among the last six keys, in no order.
    let more: &[&[usize]] = &[&[H, S + 6, D], &[H, D], &[H, D], &[H, 2, D], &[H, D]];
    check("relative, among the last", &arrays(more), USUAL, |x| {
        let ids = (0..(B * S) as i64).map(|i| i / 3 % 2).collect();
        let attention = Attention::relative(x.three(3), x.two(4), x.two(5));
        let attention = attention.segment(ids, x.three(6), x.two(7));
        let attention = attention.among_last(6, &[1, 6, 4, 4, 2, 3, 4, 5, 6, 1]);
        attend(x, attention.mask(mask()))
    });
    for (shape, limits) in [
        (score::KernelFunction::Gaussian, USUAL),
        (score::KernelFunction::Epanechnikov, KINKED),
        (score::KernelFunction::Boxcar, KINKED),
    ] {
        check(&format!("{shape:?}"), &arrays(&[&[1]]), limits, |x| {
            let sigma = x.one(3).abs() + 3.0;
            attend(x, Attention::kernel(shape, sigma).mask(mask()))
        });
    }
}

#[test]
fn normalizers() {
    // The second batch row has no keys at all.
    let masks =
        [("causal", causal() & lengths(&[7, 0])), ("window", window(1, 1)), ("full", full())];
    for (name, mask) in masks {
        let with = |attention: Attention| attention.mask(mask.clone());
        check(&format!("softmax {name}"), &arrays(&[]), USUAL, |x| {
            attend(x, with(Attention::dot()))
        });
        check(&format!("softmax1 {name}"), &arrays(&[]), USUAL, |x| {
            attend(x, with(Attention::dot().normalize(Softmax1)))
        });
        check(&format!("sigmoid {name}"), &arrays(&[]), USUAL, |x| {
            attend(x, with(Attention::dot().normalize(Sigmoid)))
        });
        check(&format!("uniform {name}"), &arrays(&[]), USUAL, |x| {
            attend(x, with(Attention::dot().normalize(Uniform)))
        });
        check(&format!("sparsemax {name}"), &arrays(&[]), KINKED, |x| {
            attend(x, with(Attention::dot().normalize(Sparsemax)))
        });
        check(&format!("entmax {name}"), &arrays(&[]), KINKED, |x| {
            attend(x, with(Attention::dot().normalize(Entmax15)))
        });
    }
}

#[test]
fn biases() {
    let mask = || causal() & lengths(&[7, 4]);
    check("alibi", &arrays(&[&[H]]), USUAL, |x| attend(x, Attention::dot().alibi(x.one(3))));
    check("table", &arrays(&[&[H, 5]]), USUAL, |x| {
        attend(x, Attention::dot().table(x.two(3)).mask(mask()))
    });
    let offsets = || Positions::Offsets(vec![1, 2]);
    check("table, offsets", &arrays(&[&[H, 5], &[H]]), USUAL, |x| {
        let attention = Attention::dot().table(x.two(3)).alibi(x.one(4));
        attend(x, attention.mask(mask()).positions(offsets()))
    });
    for shape in [[B, H, T, S], [1, H, T, S], [B, 1, T, S], [1, 1, T, S]] {
        check(&format!("dense {shape:?}"), &arrays(&[&shape]), USUAL, |x| {
            attend(x, Attention::dot().dense_bias(x.four(3)).mask(mask()))
        });
    }
    for after in [false, true] {
        check(&format!("gaussian, after: {after}"), &arrays(&[&[B, T], &[1]]), USUAL, |x| {
            let (centres, sigma) = (x.two(3) * 2.0 + 3.0, x.one(4).abs() + 1.0);
            attend(x, Attention::dot().gaussian_bias(centres, sigma, after).mask(mask()))
        });
    }
    let (indptr, indices) = (vec![0, 2, 3, 3, 6, 7], vec![0, 4, 6, 1, 2, 3, 5]);
    check("edges", &arrays(&[&[1, 1, 7, H]]), USUAL, |x| {
        let bias =
            regard_attention::bias::EdgeBias { indptr: indptr.clone(), indices: indices.clone() };
        let attention = Attention::dot().bias(bias, vec![x.four(3)]);
        attend(x, attention.mask(mask::edges(&indptr, &indices)))
    });
}

const DIMS: Dims = Dims { b: B, h: H, hk: HK, t: T, s: S, d: D, dk: D, e: D };

/// The settings that a row is tried with: its numbers, and without and with all others.
fn trials<R: ?Sized + 'static>(row: &Row<R>) -> Vec<Settings> {
    let mut all = vec![];
    for numbers in row.trials {
        let numbers = numbers.iter().map(|(name, x)| (name.to_string(), *x)).collect();
        let noise = Some(Stream::new(3, 1, 4));
        let plain = Settings { numbers, noise, ..Settings::default() };
        if !row.about.settings.contains(&Setting::Graph(None)) {
            all.push(plain.clone());
        }
        for setting in row.about.settings {
            match setting {
                Setting::Segments => {
                    let segments = Some((0..(B * S) as i64).map(|i| i / 3 % 2).collect());
                    all.push(Settings { segments, ..plain.clone() });
                }
                Setting::Graph(_) => {
                    let graph = Graph::new(&[0, 2, 3, 3, 6, 7], &[0, 4, 6, 1, 2, 3, 5]);
                    all.push(Settings { graph: Some(Arc::new(graph)), ..plain.clone() });
                }
                Setting::Number(..) | Setting::Size(_) | Setting::Seed => {}
            }
        }
    }
    all
}

/// Parameters from inputs of their shapes, from the fourth on.
fn parameters(x: &Inputs, asked: &[Param]) -> Vec<Tensor<4>> {
    let one = |(at, param): (usize, &Param)| match param.values {
        Values::Any => x.four(3 + at),
        Values::Width => x.four(3 + at).abs() + 3.0,
        Values::Centres => x.four(3 + at) * 2.0 + 3.0,
    };
    asked.iter().enumerate().map(one).collect()
}

fn with_parameters(asked: &[Param]) -> Vec<Array> {
    let shapes: Vec<&[usize]> = asked.iter().map(|param| &param.shape[..]).collect();
    arrays(&shapes)
}

#[test]
fn every_score_of_the_catalogue() {
    for row in score::ROWS {
        for settings in trials(row) {
            let made = row.make(&settings).unwrap();
            let asked = made.params(&DIMS);
            check(&format!("{made:?}"), &with_parameters(&asked), USUAL, |x| {
                let attention = Attention::of(made.clone(), parameters(x, &asked));
                attend(x, attention.mask(causal() & lengths(&[7, 4])))
            });
        }
    }
}

#[test]
fn every_bias_of_the_catalogue() {
    for row in bias::ROWS {
        for settings in trials(row) {
            let made = row.make(&settings).unwrap();
            let asked = made.params(&DIMS);
            check(&format!("{made:?}"), &with_parameters(&asked), USUAL, |x| {
                let attention = Attention::dot().with_bias(made.clone(), parameters(x, &asked));
                attend(x, attention.mask(causal() & lengths(&[7, 4])))
            });
        }
    }
}

#[test]
fn every_normalizer_of_the_catalogue() {
    // The second batch row has no keys at all.
    for mask in [causal() & lengths(&[7, 0]), window(1, 1), full()] {
        for row in normalize::ROWS {
            for settings in trials(row) {
                let made = row.make(&settings).unwrap();
                // The gradient of a choice is that of another function.
                let limits = if made.chooses() { KINKED } else { USUAL };
                check(&format!("{made:?}"), &arrays(&[]), limits, |x| {
                    let attention = Attention::dot().with_normalizer(made.clone());
                    attend(x, attention.mask(mask.clone()))
                });
            }
        }
    }
}

#[test]
fn dropped_weights() {
    check("dropout", &arrays(&[]), USUAL, |x| {
        attend(x, Attention::dot().mask(causal()).dropout(0.4, Stream::new(1, 2, 3)))
    });
}

#[test]
fn weights_as_outputs() {
    check("both", &arrays(&[]), USUAL, |x| {
        let attention = Attention::dot().mask(causal() & lengths(&[7, 0]));
        let (out, weights) = attention.attend_with_weights(x.four(0), x.four(1), x.four(2));
        Tensor::cat(vec![out, weights * 2.0], 3)
    });
    check("weights only", &arrays(&[])[..2], USUAL, |x| {
        Attention::dot().mask(causal()).weights(x.four(0), x.four(1))
    });
}

/// `c·tanh(x/c)`
#[derive(Debug)]
struct SoftCap(f32);

impl score::ScoreMod for SoftCap {
    fn apply(&self, s: f32, _: score::ScoreCell) -> f32 {
        self.0 * (s / self.0).tanh()
    }
    fn derivative(&self, s: f32, _: score::ScoreCell) -> f32 {
        1.0 - (s / self.0).tanh().powi(2)
    }
}

#[test]
fn scores_of_the_callers_own_go_to_the_cpu_and_back() {
    let limits = Limits { kernels: 1e-4, differences: None };
    check("score_mod", &arrays(&[]), limits, |x| {
        attend(x, Attention::modified(std::sync::Arc::new(SoftCap(2.0))).mask(causal()))
    });
}

#[test]
fn packed_operands() {
    let heads = Heads { queries: H, keys: HK };
    let wide = (H + 2 * HK) * D;
    check("self", &[random(1, &[B, T, wide])], USUAL, |x| {
        Attention::dot().mask(causal()).attend_packed(x.three(0), heads)
    });
    let arrays = [random(1, &[B, T, H * D]), random(2, &[B, S, 2 * HK * D])];
    check("cross", &arrays, USUAL, |x| {
        Attention::dot().mask(lengths(&[7, 4])).attend_packed_kv(x.three(0), x.three(1), heads)
    });
}

#[test]
fn heads_that_are_views() {
    let arrays = [random(1, &[B, T, H, D]), random(2, &[B, S, HK, D])];
    check("views", &arrays, USUAL, |x| {
        let (q, k) = (x.four(0).swap_dims(1, 2), x.four(1).swap_dims(1, 2));
        let out = Attention::dot().attend(q, k.clone(), k);
        out.swap_dims(1, 2)
    });
}

#[test]
fn choices() {
    use burn::tensor::{Device, Tensor};
    let device = Device::flex().autodiff();
    let values = |seed| {
        let array = random(seed, &[1, 2, 4, 3]);
        let values: Vec<f32> = array.values.iter().map(|x| *x as f32).collect();
        Tensor::<4>::from_data(burn::tensor::TensorData::new(values, [1, 2, 4, 3]), &device)
    };
    let (q, k, v) = (values(1).require_grad(), values(2), values(3).require_grad());
    let noise = Stream::new(4, 0, 0);
    let hard = Hard(Estimator::Reinforce { noise });
    let attention = Attention::dot().mask(causal() & lengths(&[2])).normalize(hard);
    let chosen = attention.choose(q.clone(), k.clone(), v.clone());
    let index = chosen.index.clone().into_data().convert::<i64>().try_to_vec::<i64>().unwrap();
    assert!(index.iter().all(|j| (0..2).contains(j)), "{index:?}");
    // The first query sees one key only: it is chosen with certainty.
    let log_prob = chosen.log_prob.clone().into_data().try_to_vec::<f32>().unwrap();
    assert!(log_prob[0] == 0.0 && index[0] == 0 && log_prob.iter().all(|x| *x <= 0.0));
    let grads = chosen.log_prob.sum().backward();
    let dq = q.grad(&grads).unwrap().into_data().try_to_vec::<f32>().unwrap();
    assert!(dq[..3] == [0.0; 3] && dq.iter().any(|x| *x != 0.0));
    // Against the softmax's own: d log p_j = Σ over keys of (1[j] − p)·k/√D.
    let softmax = Attention::dot().mask(causal() & lengths(&[2]));
    let weights = softmax.weights(q.clone().detach().require_grad(), k);
    let p = weights.into_data().try_to_vec::<f32>().unwrap();
    for (row, (j, log_prob)) in index.iter().zip(&log_prob).enumerate() {
        let p = p[row * 4 + *j as usize];
        assert!((p.ln() - log_prob).abs() < 1e-5, "{row}: {p} {log_prob}");
    }
}
