//! The options of an attention layer, alone and combined, against a slow composition.

use crate::close::{close, numbers};
use crate::layers::{device, input};
use burn::tensor::{Tensor, activation};
use regard_attention::layers::*;
use regard_attention::mask::{causal, segments, window};
use regard_attention::normalize::Softmax1;
use regard_attention::ops::TokenPositions;
use regard_attention::{Attention, BLOCK, Heads, Init};

const WIDTH: usize = 24;
const HEAD: usize = 6;

fn made(keys: usize) -> SelfAttention {
    let config = SelfAttentionConfig {
        heads: Heads { queries: 4, keys },
        head_width: HEAD,
        ..SelfAttentionConfig::new(WIDTH, 4)
    };
    config.init(&mut Init::new(5, &device()))
}

/// A text among others in one row has the numbers that it has alone: bit for bit where it lies
/// within a block of keys, or fills whole ones. Elsewhere its sums are made in other parts, with
/// rotary positions or without.
#[test]
fn packed_texts_rotate_as_each_alone() {
    for (lengths, same_bits) in [
        (vec![7, 1, BLOCK - 24, 16, BLOCK, 3, BLOCK - 3, 5], true),
        (vec![7, 1, BLOCK, 3, BLOCK + 6, 5], false),
    ] {
        packed(&lengths, same_bits);
    }
}

fn packed(lengths: &[usize], same_bits: bool) {
    let layer = made(2);
    let rotary = RotaryConfig { rotary_dim: 4, base: 500.0, ..RotaryConfig::new(80, HEAD) }.init();
    let all: usize = lengths.iter().sum();
    let x = input(3, [1, all, WIDTH]);
    let rows = lengths.iter().enumerate();
    let of: Vec<i64> = rows.flat_map(|(row, n)| std::iter::repeat_n(row as i64, *n)).collect();
    let places = TokenPositions::Each(lengths.iter().flat_map(|n| 0..*n).collect());
    let attention = Attention::dot().mask(segments(&of));
    let call = Call::new(&attention).rotary(&rotary).positions(&places);
    let together = numbers(layer.forward(x.clone(), call));
    let (mut from, full) = (0, Attention::dot());
    for n in lengths {
        let text = x.clone().slice([0..1, from..from + n, 0..WIDTH]);
        let alone = numbers(layer.forward(text, Call::new(&full).rotary(&rotary)));
        let among = &together[from * WIDTH..(from + n) * WIDTH];
        close("packed", &alone, among, 1e-6);
        assert!(!same_bits || alone == among, "{n} tokens at {from} have other bits");
        from += n;
    }
}

/// Scores and values of Burn's own operations: each head of keys and values is repeated for the
/// query heads that share it, and the rotation is a formula.
fn slow(layer: &SelfAttention, x: Tensor<3>, rotary_dim: Option<&RotaryConfig>) -> [Tensor<4>; 2] {
    let Heads { queries: h, keys: hk } = layer.heads;
    let [b, t, _] = x.dims();
    let qkv = layer.qkv.forward(x);
    let heads = |from: usize, count: usize| {
        let part = qkv.clone().slice([0..b, 0..t, from * HEAD..(from + count) * HEAD]);
        let part = part.reshape([b, t, count, HEAD]).swap_dims(1, 2);
        let part: Tensor<4> = match rotary_dim {
            Some(config) if from < h + hk => turn(part, config),
            _ => part,
        };
        let each = part.reshape([b, count, 1, t, HEAD]).expand([b, count, h / count, t, HEAD]);
        each.reshape([b, h, t, HEAD])
    };
    let scores = heads(0, h).matmul(heads(h, hk).swap_dims(2, 3)) / (HEAD as f32).sqrt();
    let later: Vec<f32> = (0..t * t).map(|at| if at % t > at / t { -1e9 } else { 0.0 }).collect();
    let later: Tensor<4> = Tensor::<1>::from_floats(&later[..], &device()).reshape([1, 1, t, t]);
    [scores + later, heads(h + hk, hk)]
}

fn turn(x: Tensor<4>, config: &RotaryConfig) -> Tensor<4> {
    let ([b, h, t, d], half) = (x.dims(), config.rotary_dim / 2);
    let angles: Vec<f32> = (0..t * half)
        .map(|at| {
            let exponent = -2.0 * (at % half) as f32 / config.rotary_dim as f32;
            (at / half) as f32 * config.base.powf(exponent)
        })
        .collect();
    let angles: Tensor<4> =
        Tensor::<1>::from_floats(&angles[..], &device()).reshape([1, 1, t, half]);
    let part = |from: usize, to: usize| x.clone().slice([0..b, 0..h, 0..t, from..to]);
    let (one, other) = (part(0, half), part(half, 2 * half));
    let (cos, sin) = (angles.clone().cos(), angles.sin());
    let first = one.clone() * cos.clone() - other.clone() * sin.clone();
    let second = other * cos + one * sin;
    Tensor::cat(vec![first, second, part(2 * half, d)], 3)
}

fn merged(layer: &SelfAttention, context: Tensor<4>) -> Tensor<3> {
    let [b, h, t, d] = context.dims();
    layer.out.forward(context.swap_dims(1, 2).reshape([b, t, h * d]))
}

/// Every combination of grouped heads, rotary positions, a cache that is filled part by part, and
/// weights.
#[test]
fn options_combine() {
    for keys in [1, 2, 4] {
        combined(&made(keys));
    }
}

fn combined(layer: &SelfAttention) {
    let config = RotaryConfig { rotary_dim: 4, base: 100.0, ..RotaryConfig::new(30, HEAD) };
    let (rotary, attention) = (config.init(), Attention::dot().mask(causal()));
    let (t, keys) = (12, layer.heads.keys);
    let x = input(7, [2, t, WIDTH]);
    for rotary_dim in [None, Some(&config)] {
        let [scores, v] = slow(layer, x.clone(), rotary_dim);
        let weights = activation::softmax(scores, 3);
        let want = numbers(merged(layer, weights.clone().matmul(v)));
        for parts in [vec![], vec![12], vec![5, 1, 1, 5]] {
            for tapped in [false, true] {
                let case = format!("{keys} {rotary_dim:?} {parts:?} {tapped}");
                let (mut cache, mut got, mut from) = (KvCache::new(), vec![], 0);
                let cached = !parts.is_empty();
                for new in if cached { parts.clone() } else { vec![t] } {
                    let mut tap = Tap::new();
                    let call = Call::new(&attention)
                        .rotary(rotary_dim.map(|_| &rotary))
                        .cache(cached.then_some(&mut cache))
                        .tap(tapped.then_some(&mut tap));
                    let rows = x.clone().slice([0..2, from..from + new, 0..WIDTH]);
                    got.push(layer.forward(rows, call));
                    if tapped {
                        let seen = from + new;
                        let rows = weights.clone().slice([0..2, 0..4, from..seen, 0..seen]);
                        let tap = tap.into_weights().unwrap();
                        close(&case, &numbers(tap), &numbers(rows), 1e-5);
                    }
                    from += new;
                }
                close(&case, &numbers(Tensor::cat(got, 1)), &want, 1e-5);
            }
        }
    }
}

/// One change of each kind, and all of them.
fn changes() -> Vec<(&'static str, Intervention)> {
    let none = Intervention::new;
    vec![
        ("none", none()),
        ("a head off", none().scale_head(2, 0.0)),
        ("heads scaled", none().scale_head(0, -1.5).scale_head(3, 0.25)),
        ("mask", none().mask(window(3, 0))),
        ("masks", none().mask(window(3, 9)).mask(window(9, 0))),
        ("temperature", none().temperature(0.4)),
        ("normalizer", none().normalize(Softmax1)),
        ("all", none().scale_head(1, 0.0).mask(window(3, 0)).temperature(2.5).normalize(Softmax1)),
    ]
}

/// The weights and the factors of heads that a change of [`changes`] comes to.
fn changed(name: &str, mut scores: Tensor<4>) -> (Tensor<4>, [f32; 4]) {
    let all = name == "all";
    let [_, _, t, _] = scores.dims();
    if all || name.starts_with("mask") {
        let far: Vec<f32> =
            (0..t * t).map(|at| if at % t + 3 < at / t { -1e9 } else { 0.0 }).collect();
        let far: Tensor<4> = Tensor::<1>::from_floats(&far[..], &device()).reshape([1, 1, t, t]);
        scores = scores + far;
    }
    let temperature = if all { 2.5 } else { 0.4 };
    if all || name == "temperature" {
        scores = scores / temperature;
    }
    let weights = match all || name == "normalizer" {
        true => {
            let e = scores.exp();
            e.clone() / (e.sum_dim(3) + 1.0)
        }
        false => activation::softmax(scores, 3),
    };
    let factors = match name {
        "a head off" => [1.0, 1.0, 0.0, 1.0],
        "heads scaled" => [-1.5, 1.0, 1.0, 0.25],
        "all" => [1.0, 0.0, 1.0, 1.0],
        _ => [1.0; 4],
    };
    (weights, factors)
}

/// Every change with every combination of rotary positions, cache and tap.
#[test]
fn interventions_combine() {
    let config = RotaryConfig::new(30, HEAD);
    let (rotary, attention) = (config.init(), Attention::dot().mask(causal()));
    let (layer, t) = (made(2), 9);
    let x = input(7, [2, t, WIDTH]);
    for (name, change) in changes() {
        for rotary_dim in [None, Some(&config)] {
            let [scores, v] = slow(&layer, x.clone(), rotary_dim);
            let (weights, factors) = changed(name, scores);
            let factors = Tensor::<1>::from_floats(factors, &device()).reshape([1, 4, 1, 1]);
            let want = numbers(merged(&layer, weights.clone().matmul(v) * factors));
            for cached in [false, true] {
                for tap in [None, Some(Tap::new()), Some(Tap::with_gradient())] {
                    let case = format!("{name} {rotary_dim:?} {cached} {}", tap.is_some());
                    let (mut cache, mut tap) = (KvCache::new(), tap);
                    let (mut got, mut from) = (vec![], 0);
                    for new in if cached { vec![4, 1, 4] } else { vec![t] } {
                        let call = Call::new(&attention)
                            .rotary(rotary_dim.map(|_| &rotary))
                            .cache(cached.then_some(&mut cache))
                            .intervention(&change)
                            .tap(tap.as_mut());
                        let rows = x.clone().slice([0..2, from..from + new, 0..WIDTH]);
                        got.push(layer.forward(rows, call));
                        if let Some(tap) = &tap {
                            let seen = from + new;
                            let rows = weights.clone().slice([0..2, 0..4, from..seen, 0..seen]);
                            let tap = tap.weights().unwrap().clone();
                            close(&case, &numbers(tap), &numbers(rows), 1e-5);
                        }
                        from += new;
                    }
                    close(&case, &numbers(Tensor::cat(got, 1)), &want, 1e-5);
                }
            }
        }
    }
}

/// Attention to another sequence takes the same changes.
#[test]
fn interventions_reach_cross_attention() {
    let config = CrossAttentionConfig {
        heads: Heads { queries: 4, keys: 2 },
        head_width: HEAD,
        ..CrossAttentionConfig::new(WIDTH, 4)
    };
    let (layer, itself) = (config.init(&mut Init::new(3, &device())), made(2));
    let (x, y) = (input(1, [2, 9, WIDTH]), input(2, [2, 9, WIDTH]));
    let attention = Attention::dot().mask(causal());
    let [q, k, v] = layer.split(x.clone(), layer.remember(y.clone()));
    let each = |x: Tensor<4>| {
        let x: Tensor<5> = x.reshape([2, 2, 1, 9, HEAD]).expand([2, 2, 2, 9, HEAD]);
        x.reshape([2, 4, 9, HEAD])
    };
    let later = slow(&itself, x.clone(), None)[0].clone();
    let later = later.lower_elem(-1e8).float() * -1e9;
    let scores = q.matmul(each(k).swap_dims(2, 3)) / (HEAD as f32).sqrt() + later;
    for (name, change) in changes() {
        let (weights, factors) = changed(name, scores.clone());
        let factors = Tensor::<1>::from_floats(factors, &device()).reshape([1, 4, 1, 1]);
        let want = layer.merge(weights.matmul(each(v.clone())) * factors);
        for tap in [None, Some(&mut Tap::new())] {
            let call = Call::new(&attention).intervention(&change).tap(tap);
            let got = layer.forward(x.clone(), layer.remember(y.clone()), call);
            close(name, &numbers(got), &numbers(want.clone()), 1e-5);
        }
    }
}

/// The loss is quadratic in the weights, so that central differences are exact but for rounding.
#[test]
fn the_gradient_of_weights_is_that_of_differences() {
    let attention = Attention::dot().mask(causal());
    let (layer, t) = (made(2), 5);
    let x = input(4, [1, t, WIDTH]);
    let mut tap = Tap::with_gradient();
    let y = layer.forward(x.clone(), Call::new(&attention).tap(&mut tap));
    let loss = |y: Tensor<3>| y.powi_scalar(2).sum();
    let gradients = loss(y).backward();
    let got = numbers(tap.gradient(&gradients).unwrap());
    let [_, v] = slow(&layer, x, None);
    let weights = numbers(tap.into_weights().unwrap());
    let at = |weights: &[f64]| {
        let weights: Vec<f32> = weights.iter().map(|x| *x as f32).collect();
        let weights = Tensor::<1>::from_floats(&weights[..], &device()).reshape([1, 4, t, t]);
        numbers(loss(merged(&layer, weights.matmul(v.clone()))))[0]
    };
    let shifted = |i: usize, by: f64| {
        let mut weights = weights.clone();
        weights[i] += by;
        at(&weights)
    };
    let want: Vec<f64> = (0..weights.len()).map(|i| shifted(i, 0.5) - shifted(i, -0.5)).collect();
    close("gradient", &got, &want, 1e-3);
}

#[test]
#[should_panic(expected = "the layer has 4")]
fn a_head_that_is_not_there_is_told() {
    let (layer, attention) = (made(2), Attention::dot());
    let change = Intervention::new().scale_head(4, 0.0);
    layer.forward(input(1, [1, 3, WIDTH]), Call::new(&attention).intervention(&change));
}
