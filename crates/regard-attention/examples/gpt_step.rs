//! Times a training step of a GPT made of these layers: forward, loss, backward, AdamW.
//!
//! ```text
//! cargo run --release --example gpt_step -- [--small] [--plain] [--steps N]
//! ```
//!
//! `--plain` runs the same model of Burn's own layers, operations and optimiser.

use burn::module::{Module, Param};
use burn::nn;
use burn::optim::{AdamWConfig as PlainAdamW, GradientsParams};
use burn::tensor::{Bool, Device, Int, Tensor, TensorData, activation};
use regard_attention::Stream;
use regard_attention::layers::*;
use regard_attention::mask::causal;
use regard_attention::ops::{CrossEntropy, cross_entropy};
use regard_attention::{AdamW, AdamWConfig, Attention, Init, Mode, WeightInit};
use std::time::Instant;

#[derive(Clone, Copy)]
struct Size {
    layers: usize,
    width: usize,
    heads: usize,
    length: usize,
    batch: usize,
    vocabulary: usize,
}

const LARGE: Size = Size { layers: 6, width: 384, heads: 6, length: 256, batch: 8, vocabulary: 65 };
const SMALL: Size = Size { layers: 4, width: 128, heads: 4, length: 64, batch: 12, vocabulary: 65 };

#[derive(Module, Debug)]
struct Block {
    before_attention: Norm,
    attention: SelfAttention,
    before_forward: Norm,
    forward: FeedForward,
}

#[derive(Module, Debug)]
struct Gpt {
    words: Embedding,
    places: Param<Tensor<2>>,
    blocks: Vec<Block>,
    last: Norm,
    head: Linear,
}

impl Gpt {
    fn new(size: Size, init: &mut Init) -> Gpt {
        let Size { layers, width, heads, length, vocabulary, .. } = size;
        let weights = WeightInit::Normal(0.02);
        let embedding =
            EmbeddingConfig { deviation: 0.02, ..EmbeddingConfig::new(vocabulary, width) };
        Gpt {
            words: embedding.init(init),
            places: init.normal([length, width], 0.02),
            blocks: (0..layers)
                .map(|_| Block {
                    before_attention: NormConfig::layer(width).init(init),
                    attention: SelfAttentionConfig {
                        weights,
                        ..SelfAttentionConfig::new(width, heads)
                    }
                    .init(init),
                    before_forward: NormConfig::layer(width).init(init),
                    forward: FeedForwardConfig { weights, ..FeedForwardConfig::new(width) }
                        .init(init),
                })
                .collect(),
            last: NormConfig::layer(width).init(init),
            head: LinearConfig { bias: false, weights, ..LinearConfig::new(width, vocabulary) }
                .init(init),
        }
    }

    fn loss(&self, ids: Tensor<2, Int>, targets: Tensor<1, Int>) -> Tensor<1> {
        let attention = Attention::dot().mask(causal());
        let [b, t] = ids.dims();
        let mut x = self.words.forward(ids) + self.places.val().unsqueeze();
        let mut y = self.blocks[0].before_attention.forward(x.clone());
        for (i, block) in self.blocks.iter().enumerate() {
            let attended = block.attention.forward(y, Call::new(&attention));
            (x, y) = block.before_forward.forward_sum(x, attended);
            let forward = block.forward.forward(y, Mode::Eval);
            let next = self.blocks.get(i + 1).map_or(&self.last, |next| &next.before_attention);
            (x, y) = next.forward_sum(x, forward);
        }
        let logits = self.head.forward(y);
        let vocabulary = logits.dims()[2];
        cross_entropy(logits.reshape([b * t, vocabulary]), targets, CrossEntropy::default())
    }
}

#[derive(Module, Debug)]
struct PlainBlock {
    before_attention: nn::LayerNorm,
    qkv: nn::Linear,
    out: nn::Linear,
    before_forward: nn::LayerNorm,
    up: nn::Linear,
    down: nn::Linear,
}

#[derive(Module, Debug)]
struct Plain {
    words: nn::Embedding,
    places: nn::Embedding,
    blocks: Vec<PlainBlock>,
    last: nn::LayerNorm,
    head: nn::Linear,
    heads: usize,
}

impl Plain {
    fn new(size: Size, device: &Device) -> Plain {
        let Size { layers, width, heads, length, vocabulary, .. } = size;
        let linear = |i, o| nn::LinearConfig::new(i, o).init(device);
        Plain {
            words: nn::EmbeddingConfig::new(vocabulary, width).init(device),
            places: nn::EmbeddingConfig::new(length, width).init(device),
            blocks: (0..layers)
                .map(|_| PlainBlock {
                    before_attention: nn::LayerNormConfig::new(width).init(device),
                    qkv: linear(width, 3 * width),
                    out: linear(width, width),
                    before_forward: nn::LayerNormConfig::new(width).init(device),
                    up: linear(width, 4 * width),
                    down: linear(4 * width, width),
                })
                .collect(),
            last: nn::LayerNormConfig::new(width).init(device),
            head: nn::LinearConfig::new(width, vocabulary).with_bias(false).init(device),
            heads,
        }
    }

    fn attend(&self, block: &PlainBlock, x: Tensor<3>, future: Tensor<4, Bool>) -> Tensor<3> {
        let ([b, t, m], h) = (x.dims(), self.heads);
        let qkv = block.qkv.forward(x);
        let [q, k, v] = [0, 1, 2].map(|part| {
            let part = qkv.clone().slice([0..b, 0..t, part * m..(part + 1) * m]);
            part.reshape([b, t, h, m / h]).swap_dims(1, 2)
        });
        let scores = q.matmul(k.transpose()) / ((m / h) as f64).sqrt();
        let weights = activation::softmax(scores.mask_fill(future, f32::NEG_INFINITY), 3);
        block.out.forward(weights.matmul(v).swap_dims(1, 2).reshape([b, t, m]))
    }

    fn loss(&self, ids: Tensor<2, Int>, targets: Tensor<1, Int>) -> Tensor<1> {
        let ([b, t], device) = (ids.dims(), ids.device());
        let future = Tensor::<2, Bool>::tril_mask([t, t], 0, &device).unsqueeze();
        let places = Tensor::<1, Int>::arange(0..t as i64, &device).unsqueeze();
        let mut x = self.words.forward(ids) + self.places.forward(places);
        for block in &self.blocks {
            let y = block.before_attention.forward(x.clone());
            x = x + self.attend(block, y, future.clone());
            let y = block.before_forward.forward(x.clone());
            x = x + block.down.forward(activation::gelu(block.up.forward(y)));
        }
        let logits = self.head.forward(self.last.forward(x));
        let v = logits.dims()[2];
        let logs = activation::log_softmax(logits.reshape([b * t, v]), 1);
        -logs.gather(1, targets.reshape([b * t, 1])).mean()
    }
}

/// Text that a small model can learn: each character is a function of the two before it, mostly.
fn batch(size: Size, step: u64, device: &Device) -> (Tensor<2, Int>, Tensor<1, Int>) {
    let Size { length, batch, vocabulary, .. } = size;
    let mut text = vec![];
    for row in 0..batch {
        let stream = Stream::new(1, step, row as u64);
        let mut row = vec![stream.bits(0) as i64 % vocabulary as i64, 7];
        for i in 2..=length {
            let next = (5 * row[i - 1] + 3 * row[i - 2] + 1) % vocabulary as i64;
            row.push(if stream.uniform(i as u64) < 0.1 { 0 } else { next });
        }
        text.push(row);
    }
    let ids: Vec<i64> = text.iter().flat_map(|row| row[..length].to_vec()).collect();
    let targets: Vec<i64> = text.iter().flat_map(|row| row[1..=length].to_vec()).collect();
    let ids = Tensor::from_data(TensorData::new(ids, [batch, length]), device);
    (ids, Tensor::from_data(TensorData::new(targets, [batch * length]), device))
}

/// Runs steps and reports the fastest and the median.
fn time(name: &str, steps: u64, mut step: impl FnMut(u64) -> f32) {
    let mut seconds = vec![];
    for i in 0..steps {
        let start = Instant::now();
        let loss = step(i);
        seconds.push(start.elapsed().as_secs_f64());
        println!("step {i:3}  {:.5} s  loss {loss:.4}", seconds[i as usize]);
    }
    seconds.sort_by(f64::total_cmp);
    println!("{name}: fastest {:.4} s, median {:.4} s", seconds[0], seconds[seconds.len() / 2]);
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| arguments.iter().any(|a| a == flag);
    let steps = arguments.iter().position(|a| a == "--steps").map(|at| &arguments[at + 1]);
    let steps = steps.map_or(10, |n| n.parse().expect("--steps takes a number"));
    let (size, name) = if has("--small") { (SMALL, "small") } else { (LARGE, "large") };
    let device = Device::flex().autodiff();
    if has("--plain") {
        let mut model = Some(Plain::new(size, &device));
        let mut adamw = PlainAdamW::new().init();
        time(&format!("{name}, plain"), steps, |step| {
            let (ids, targets) = batch(size, step, &device);
            let loss = model.as_ref().unwrap().loss(ids, targets);
            let grads = loss.backward();
            let grads = GradientsParams::from_grads(grads, model.as_ref().unwrap());
            model = model.take().map(|model| adamw.step(3e-4, model, grads));
            loss.into_scalar::<f32>()
        });
        return;
    }
    let mut model = Some(Gpt::new(size, &mut Init::new(7, &device)));
    println!("{} parameters", model.as_ref().unwrap().num_params());
    let mut adamw = AdamW::new(AdamWConfig { max_norm: Some(1.0), ..AdamWConfig::default() });
    time(name, steps, |step| {
        let (ids, targets) = batch(size, step, &device);
        let parts = has("--parts").then(Instant::now);
        let loss = model.as_ref().unwrap().loss(ids, targets);
        let forward = parts.map(|start| start.elapsed());
        let grads = loss.backward();
        let backward = parts.map(|start| start.elapsed());
        model = model.take().map(|model| adamw.step(3e-4, model, grads));
        if let (Some(start), Some(f), Some(b)) = (parts, forward, backward) {
            println!("  forward {f:.1?} backward {:.1?} adamw {:.1?}", b - f, start.elapsed() - b);
        }
        loss.into_scalar::<f32>()
    });
}
