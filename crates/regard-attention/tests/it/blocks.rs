//! Blocks against slow compositions of their parts.

use crate::close::{close, numbers};
use crate::layers::{all_have_gradients, device, input};
use burn::tensor::Tensor;
use regard_attention::layers::*;
use regard_attention::mask::{causal, window};
use regard_attention::ops::{Activation, activate};
use regard_attention::{Attention, Heads, Init, Mode};

/// Every kind: norms before and after, of both kinds, plain and gated, grouped heads, distances.
fn kinds() -> Vec<(&'static str, BlockConfig)> {
    let base = || BlockConfig::new(16, 4);
    let gated = |activation| FeedForwardConfig {
        hidden: 20,
        activation,
        gated: true,
        bias: false,
        ..FeedForwardConfig::new(16)
    };
    let grouped = SelfAttentionConfig {
        heads: Heads { queries: 4, keys: 2 },
        bias: false,
        ..SelfAttentionConfig::new(16, 4)
    };
    vec![
        ("pre", base()),
        ("post", BlockConfig { norms: NormPlacement::Post, ..base() }),
        ("geglu", BlockConfig { forward: gated(Activation::Gelu), ..base() }),
        (
            "llama",
            BlockConfig {
                norm: NormConfig::rms(16),
                attention: grouped,
                forward: gated(Activation::Silu),
                ..base()
            },
        ),
        ("distances", BlockConfig { distances: Some(3), ..base() }),
    ]
}

fn made(config: &BlockConfig) -> Block {
    let mut block = config.init(&mut Init::new(5, &device()));
    if let Some(distances) = &mut block.distances {
        distances.table = Init::new(6, &device()).normal(distances.table.dims(), 1.0);
    }
    block
}

/// The formula, part by part.
fn composed(block: &Block, x: Tensor<3>, attention: &Attention) -> Tensor<3> {
    let mut attention = attention.clone();
    if let Some(distances) = &block.distances {
        attention = distances.forward(attention);
    }
    let norm = |x: Tensor<3>| block.attention_norm.as_ref().unwrap().forward(x);
    let attend = |x: Tensor<3>| block.attention.forward(x, Call::new(&attention));
    let feed = |x: Tensor<3>| {
        let up = block.forward.up.forward(x);
        let [b, t, wide] = up.dims();
        let up = match block.forward.gate {
            None => up,
            Some(f) => {
                let half = wide / 2;
                let parts = [0..half, half..wide].map(|c| up.clone().slice([0..b, 0..t, c]));
                let [input, gate] = parts;
                activate(input, f) * gate
            }
        };
        block.forward.down.forward(up)
    };
    match block.norms {
        NormPlacement::Pre => {
            let x = x.clone() + attend(norm(x));
            x.clone() + feed(block.forward_norm.forward(x))
        }
        NormPlacement::Post => {
            let x = norm(x.clone() + attend(x));
            block.forward_norm.forward(x.clone() + feed(x))
        }
    }
}

#[test]
fn a_block_is_its_parts() {
    let attention = Attention::dot().mask(causal());
    for (name, config) in kinds() {
        let block = made(&config);
        let x = input(1, [2, 9, 16]);
        let got = block.forward(x.clone(), Call::new(&attention));
        close(name, &numbers(got), &numbers(composed(&block, x, &attention)), 1e-5);
    }
}

/// Norms that are made together with the sums before them are those that are made alone.
#[test]
fn blocks_in_a_row_are_one_after_another() {
    let attention = Attention::dot().mask(causal());
    for (name, config) in kinds() {
        let blocks = [made(&config), config.init(&mut Init::new(7, &device()))];
        let last = NormConfig::layer(16).init(&mut Init::new(8, &device()));
        let x = input(2, [2, 7, 16]);
        let mut residual = Residual::new(config.norms, blocks[0].entry(), x.clone());
        for (i, block) in blocks.iter().enumerate() {
            let next = blocks.get(i + 1).map_or(Some(&last), Block::entry);
            block.forward_residual(&mut residual, Call::new(&attention), next);
        }
        let y = blocks.iter().fold(x, |x, block| block.forward(x, Call::new(&attention)));
        let want = match config.norms {
            NormPlacement::Pre => last.forward(y),
            NormPlacement::Post => y,
        };
        close(name, &numbers(residual.input()), &numbers(want), 1e-5);
    }
}

#[test]
fn a_first_block_may_go_without_its_norm() {
    let attention = Attention::dot();
    let mut block = made(&BlockConfig::new(16, 4));
    let (x, norm) = (input(3, [1, 6, 16]), block.attention_norm.take().unwrap());
    let call = || Call::new(&attention);
    let y = x.clone() + block.attention.forward(x.clone(), call());
    let want = y.clone() + block.forward.forward(block.forward_norm.forward(y), Mode::Eval);
    close("without", &numbers(block.forward(x.clone(), call())), &numbers(want), 1e-5);
    let without = numbers(block.forward(x.clone(), call()));
    block.attention_norm = Some(norm);
    assert_ne!(without, numbers(block.forward(x, call())));
}

#[test]
fn every_parameter_of_a_block_gets_a_gradient() {
    let attention = Attention::dot().mask(causal());
    for (_, config) in kinds() {
        let block =
            BlockConfig { dropout: [0.1, 0.2], ..config }.init(&mut Init::new(5, &device()));
        let call = Call::new(&attention).mode(Mode::Train { seed: 1, step: 2 });
        let y = block.forward(input(4, [2, 5, 16]), call);
        all_have_gradients(&block, y.powi_scalar(2).sum());
    }
}

#[test]
fn a_stream_is_the_whole_sequence() {
    let reach = Reach { left: 4, right: 2 };
    let (whole, dot) = (Attention::dot().mask(window(4, 2)), Attention::dot());
    let rotary = Rotary::new(40, 4);
    for (name, config) in kinds() {
        for rotary in [None, Some(&rotary)] {
            let block = made(&config);
            let x = input(9, [2, 23, 16]);
            let want = block.forward(x.clone(), Call::new(&whole).rotary(rotary));
            let (mut past, mut parts, mut from) = (BlockStreamState::default(), vec![], 0);
            for new in [1, 1, 7, 2, 12] {
                let rows = x.clone().slice([0..2, from..from + new, 0..16]);
                from += new;
                let stream = StreamPart { reach, past: &mut past, last: from == 23 };
                let call = Call::new(&dot).rotary(rotary);
                parts.extend(block.forward_streamed(Some(rows), call, stream));
            }
            close(name, &numbers(Tensor::cat(parts, 1)), &numbers(want), 1e-5);
        }
    }
}
