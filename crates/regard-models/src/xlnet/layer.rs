//! One layer, for both streams: they differ only in their queries and masks.

use super::config::{Config, Rules};
use crate::checkpoint::Binder;
use burn::module::{Module, Param};
use burn::tensor::{Tensor, TensorData};
use regard_attention::layers::{
    Call, Dropout, FeedForward, FeedForwardConfig, Linear, LinearConfig, Norm, NormConfig,
    NormPlacement, Residual,
};
use regard_attention::ops::{Activation, linear};
use regard_attention::{Attention, Init, Mode, WeightInit};

/// Inputs of the scores that all layers share.
pub(super) struct Scene {
    /// `[R, M]`: sinusoidal encodings of all distances within one text, starting with the farthest
    /// key before the query.
    pub distances: Tensor<2>,
    /// Number of further distances on either side, between texts in one row, which do not attend to
    /// each other.
    pub between: usize,
    /// `[B·S]`: segment of each key, if there is more than one.
    pub parts: Option<Vec<i64>>,
}

/// Returns the sines, then the cosines, of the distances `from`, `from − 1`, … down to `to`.
///
/// # Shapes
/// `[from − to + 1, M]`
pub(super) fn distances(from: i64, to: i64, width: usize, rules: &Rules) -> TensorData {
    let frequencies: Vec<f64> =
        (0..width / 2).map(|pair| 10000f64.powf(-(2.0 * pair as f64) / width as f64)).collect();
    let farthest = rules.farthest.map_or(i64::MAX, |most| most as i64);
    let mut values = Vec::with_capacity((from - to + 1) as usize * width);
    for distance in (to..=from).rev() {
        let distance = distance.clamp(-farthest, farthest) as f64;
        values.extend(frequencies.iter().map(|f| (distance * f).sin() as f32));
        values.extend(frequencies.iter().map(|f| (distance * f).cos() as f32));
    }
    let rows = values.len() / width;
    TensorData::new(values, [rows, width])
}

/// A post-norm layer. It is not the common block: both streams share projections and norms and
/// attend to the content's keys, distances are projected too, and segments add to scores.
#[derive(Module, Debug)]
pub(super) struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    distance: Linear,
    /// `[M, H·D]`
    out: Param<Tensor<2>>,
    /// `[H, D]` each: biases of queries for the terms of keys, distances and segments.
    to_keys: Param<Tensor<2>>,
    to_distances: Param<Tensor<2>>,
    to_parts: Param<Tensor<2>>,
    /// `[2, H, D]`: vectors for a key of the same segment, and of another.
    parts: Param<Tensor<3>>,
    attention_norm: Norm,
    forward: FeedForward,
    forward_norm: Norm,
    /// Dropout of attention weights, of attention output, and of the feed-forward output.
    dropout: [Dropout; 3],
}

impl Layer {
    /// Number of heads, and width of each.
    pub fn heads(&self) -> [usize; 2] {
        self.to_keys.dims()
    }

    pub fn new(config: &Config, init: &mut Init) -> Layer {
        let &Config { d_model: width, n_head: heads, initializer_range: deviation, .. } = config;
        let each = width / heads;
        let weights = WeightInit::Normal(deviation);
        let norm = NormConfig { eps: config.layer_norm_eps, ..NormConfig::layer(width) };
        let mut projection =
            || LinearConfig { bias: false, weights, ..LinearConfig::new(width, width) }.init(init);
        let [query, key, value, distance] = [(); 4].map(|()| projection());
        let forward = FeedForwardConfig {
            hidden: config.d_inner,
            activation: config.activation,
            dropout: config.dropout,
            weights,
            ..FeedForwardConfig::new(width)
        };
        Layer {
            query,
            key,
            value,
            distance,
            out: init.normal([width, width], deviation),
            to_keys: init.normal([heads, each], deviation),
            to_distances: init.normal([heads, each], deviation),
            to_parts: init.normal([heads, each], deviation),
            parts: init.normal([2, heads, each], deviation),
            attention_norm: norm.init(init),
            forward: forward.init(init),
            forward_norm: norm.init(init),
            dropout: [(); 3].map(|()| Dropout::new(config.dropout, init)),
        }
    }

    pub fn bind(&mut self, b: &mut Binder) {
        let ([m, _], [h, d]) = (self.out.dims(), self.to_keys.dims());
        b.at("rel_attn", |b| {
            b.shaped_weight("q", &[m, h, d], &mut self.query.weight);
            b.shaped_weight("k", &[m, h, d], &mut self.key.weight);
            b.shaped_weight("v", &[m, h, d], &mut self.value.weight);
            b.shaped("o", &[m, h, d], &mut self.out);
            b.shaped_weight("r", &[m, h, d], &mut self.distance.weight);
            b.tensor("r_w_bias", &mut self.to_keys);
            b.tensor("r_r_bias", &mut self.to_distances);
            b.tensor("r_s_bias", &mut self.to_parts);
            b.tensor("seg_embed", &mut self.parts);
            b.norm("layer_norm", &mut self.attention_norm);
        });
        b.at("ff", |b| {
            b.linear("layer_1", &mut self.forward.up);
            b.linear("layer_2", &mut self.forward.down);
            b.norm("layer_norm", &mut self.forward_norm);
        });
    }

    /// Score function of this layer, without a mask: the same for both streams.
    pub fn score(&self, scene: &Scene) -> Attention {
        let ([h, d], [rows, _]) = (self.to_keys.dims(), scene.distances.dims());
        let r = self.distance.forward(scene.distances.clone());
        let mut r = r.reshape([rows, h, d]).swap_dims(0, 1);
        if scene.between > 0 {
            // These distances are always masked, so nothing is projected for them.
            let unseen = Tensor::zeros([h, scene.between, d], &r.device());
            r = Tensor::cat(vec![unseen.clone(), r, unseen], 1);
        }
        let score = Attention::relative(r, self.to_keys.val(), self.to_distances.val());
        match &scene.parts {
            Some(parts) => {
                let vectors = self.parts.val().swap_dims(0, 1);
                score.segment(parts.clone(), vectors, self.to_parts.val())
            }
            // A term that is equal for all keys changes no weight.
            None => score,
        }
    }

    /// Projects queries.
    ///
    /// # Shapes
    /// `x: [B, T, M]` → `[B, T, H·D]`
    pub fn queries(&self, x: Tensor<3>) -> Tensor<3> {
        self.query.forward(x)
    }

    /// Projects keys and values.
    ///
    /// # Shapes
    /// `x: [B, S, M]` → twice `[B, H, S, D]`
    pub fn keys(&self, x: Tensor<3>) -> [Tensor<4>; 2] {
        [&self.key, &self.value].map(|projection| self.split(projection.forward(x.clone())))
    }

    /// Computes the context of queries.
    ///
    /// # Shapes
    /// `queries: [B, T, H·D]`, keys and values as [`Layer::keys`] returns them → `[B, T, H·D]`
    pub fn look(&self, call: Call, queries: Tensor<3>, [k, v]: [Tensor<4>; 2]) -> Tensor<3> {
        call.attend([self.split(queries), k, v], &self.dropout[0])
    }

    /// Adds the projected context to the residual, then the feed-forward part.
    ///
    /// # Shapes
    /// `x: [B, T, M]`, `seen: [B, T, H·D]` → `[B, T, M]`
    pub fn conclude(&self, x: Tensor<3>, seen: Tensor<3>, mode: Mode) -> Tensor<3> {
        let seen = linear(seen, self.out.val().transpose(), None, Activation::Identity);
        let mut residual = Residual::new(NormPlacement::Post, None, x);
        residual.add(self.dropout[1].forward(seen, mode), Some(&self.attention_norm));
        let thought = self.forward.forward(residual.input(), mode);
        residual.add(self.dropout[2].forward(thought, mode), Some(&self.forward_norm));
        residual.input()
    }

    fn split(&self, x: Tensor<3>) -> Tensor<4> {
        let ([b, t, _], [h, d]) = (x.dims(), self.to_keys.dims());
        x.reshape([b, t, h, d]).swap_dims(1, 2)
    }
}
