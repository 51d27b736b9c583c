//! The options of an attention layer, alone and combined, against a slow composition.

use crate::close::{close, numbers};
use crate::layers::{device, input};
use burn::tensor::{Tensor, activation};
use regard_attention::layers::*;
use regard_attention::mask::{causal, segments};
use regard_attention::ops::Places;
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
    let rotary = RotaryConfig { turned: 4, base: 500.0, ..RotaryConfig::new(80, HEAD) }.init();
    let all: usize = lengths.iter().sum();
    let x = input(3, [1, all, WIDTH]);
    let rows = lengths.iter().enumerate();
    let of: Vec<i64> = rows.flat_map(|(row, n)| std::iter::repeat_n(row as i64, *n)).collect();
    let places = Places::Each(lengths.iter().flat_map(|n| 0..*n).collect());
    let attention = Attention::dot().mask(segments(&of));
    let call = Call::new(&attention).rotary(&rotary).places(&places);
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
fn slow(layer: &SelfAttention, x: Tensor<3>, turned: Option<&RotaryConfig>) -> [Tensor<4>; 2] {
    let Heads { queries: h, keys: hk } = layer.heads;
    let [b, t, _] = x.dims();
    let qkv = layer.qkv.forward(x);
    let heads = |from: usize, count: usize| {
        let part = qkv.clone().slice([0..b, 0..t, from * HEAD..(from + count) * HEAD]);
        let part = part.reshape([b, t, count, HEAD]).swap_dims(1, 2);
        let part: Tensor<4> = match turned {
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
    let ([b, h, t, d], half) = (x.dims(), config.turned / 2);
    let angles: Vec<f32> = (0..t * half)
        .map(|at| {
            let exponent = -2.0 * (at % half) as f32 / config.turned as f32;
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
    let config = RotaryConfig { turned: 4, base: 100.0, ..RotaryConfig::new(30, HEAD) };
    let (rotary, attention) = (config.init(), Attention::dot().mask(causal()));
    let (t, keys) = (12, layer.heads.keys);
    let x = input(7, [2, t, WIDTH]);
    for turned in [None, Some(&config)] {
        let [scores, v] = slow(layer, x.clone(), turned);
        let weights = activation::softmax(scores, 3);
        let want = numbers(merged(layer, weights.clone().matmul(v)));
        for parts in [vec![], vec![12], vec![5, 1, 1, 5]] {
            for tapped in [false, true] {
                let case = format!("{keys} {turned:?} {parts:?} {tapped}");
                let (mut cache, mut got, mut from) = (Cache::new(), vec![], 0);
                let cached = !parts.is_empty();
                for new in if cached { parts.clone() } else { vec![t] } {
                    let mut tap = Tap::new();
                    let call = Call::new(&attention)
                        .rotary(turned.map(|_| &rotary))
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
