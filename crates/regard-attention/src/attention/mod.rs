//! Attention on tensors: one formula,
//!
//! ```text
//! out_i = Σ_j normalize_j( score(q_i, k_j) + bias(i, j) | mask(i, j) ) · v_j
//! ```
//!
//! ```
//! use burn::tensor::{Device, Tensor};
//! use regard_attention::{Attention, mask::*};
//!
//! let device = Device::flex();
//! let x = Tensor::<4>::ones([2, 4, 7, 16], &device);
//! let attention = Attention::dot().mask(causal() & lengths(&[7, 5]) & window(3, 0));
//! let out = attention.attend(x.clone(), x.clone(), x);
//! assert_eq!(out.dims(), [2, 4, 7, 16]);
//! ```

mod composed;
mod operation;

pub use operation::Heads;

use crate::backend;
use burn::tensor::{DType, Device, Int, Tensor};
use operation::{Attend, Output, Packing};
use regard_kernels::attention::{self as spec};
pub use regard_kernels::attention::{BLOCK, Dims, Graph, Positions, bias, mask, normalize, score};
use regard_kernels::rng::Stream;
use std::any::Any;
use std::sync::Arc;

/// Score, bias, mask and normaliser, with the tensors that score and biases are parameterised by.
/// Gradients reach all of them.
#[derive(Clone, Debug)]
pub struct Attention {
    spec: Arc<spec::Attention>,
    /// Of the score, then of each bias, as four-dimensional arrays with leading ones.
    params: Vec<Tensor<4>>,
    kinds: Kinds,
}

/// Which types score, biases and normaliser are, for those who compose them.
#[derive(Clone, Debug)]
struct Kinds {
    score: Arc<dyn Any + Send + Sync>,
    biases: Vec<Arc<dyn Any + Send + Sync>>,
    normalizer: Arc<dyn Any + Send + Sync>,
}

/// What hard attention chose.
#[derive(Clone, Debug)]
pub struct Choice {
    /// `[B, H, T, E]`: the value of the chosen key, zeros if there was none to choose.
    pub out: Tensor<4>,
    /// `[B, H, T]`: the log-probability of the choice, 0 without one.
    pub log_prob: Tensor<3>,
    /// `[B, H, T]`: the chosen key, −1 for none.
    pub index: Tensor<3, Int>,
}

/// `[H, D]` as the kernels take it.
fn per_head(x: Tensor<2>) -> Tensor<4> {
    let [h, d] = x.dims();
    x.reshape([1, h, 1, d])
}

fn scalar(x: Tensor<1>) -> Tensor<4> {
    x.reshape([1, 1, 1, 1])
}

impl Attention {
    /// `q·k/√D`, softmax, every key: the place to start from.
    pub fn dot() -> Attention {
        Attention::with_score(score::Dot, vec![])
    }

    /// Bahdanau's score `Σ v_d tanh(q_d + k_d)`; projections are outside.
    ///
    /// # Shapes
    /// `v: [H, D]`
    pub fn additive(v: Tensor<2>) -> Attention {
        Attention::with_score(score::Additive, vec![per_head(v)])
    }

    /// GATv2's score `Σ v_d LeakyReLU(q_d + k_d)`.
    ///
    /// # Shapes
    /// `v: [H, D]`
    pub fn gatv2(v: Tensor<2>, slope: f32) -> Attention {
        Attention::with_score(score::Gatv2 { slope, graph: None }, vec![per_head(v)])
    }

    /// GAT's score `LeakyReLU(a_q·q + a_k·k)`.
    ///
    /// # Shapes
    /// `a_q, a_k: [H, D]`
    pub fn edge(a_q: Tensor<2>, a_k: Tensor<2>, slope: f32) -> Attention {
        let score = score::Edge { slope, graph: None };
        Attention::with_score(score, vec![per_head(a_q), per_head(a_k)])
    }

    /// Features of a graph's edges, inside of the nonlinearity: `LeakyReLU(a_q·q + a_k·k + e)` for
    /// GAT, `Σ v_d LeakyReLU(q_d + k_d + e_d)` for GATv2. Their projection is outside. The graph is
    /// usually the mask's; a pair that is no edge of it adds nothing.
    ///
    /// # Shapes
    /// `features: [H, edges, 1]` after [`Attention::edge`], `[H, edges, D]` after
    /// [`Attention::gatv2`]
    pub fn edge_features(self, graph: Graph, features: Tensor<3>) -> Attention {
        let first = "edge_features: only after `edge` or `gatv2`, once and before any bias";
        let ([h, edges, _], graph) = (features.dims(), Some(Arc::new(graph)));
        let kinds = &*self.kinds.score;
        if let Some(score::Edge { slope, graph: None }) = kinds.downcast_ref() {
            assert_eq!(self.params.len(), 2, "{first}");
            let score = score::Edge { slope: *slope, graph };
            self.with_edges(score, features.reshape([1, h, 1, edges]))
        } else if let Some(score::Gatv2 { slope, graph: None }) = kinds.downcast_ref() {
            assert_eq!(self.params.len(), 1, "{first}");
            let score = score::Gatv2 { slope: *slope, graph };
            self.with_edges(score, features.unsqueeze())
        } else {
            panic!("{first}");
        }
    }

    fn with_edges(mut self, score: impl score::Score + 'static, edge: Tensor<4>) -> Attention {
        let score = Arc::new(score);
        self.params.push(edge);
        self.kinds.score = score.clone();
        self.map(|spec| spec::Attention { score, ..spec })
    }

    /// Luong's general score `qᵀ W k`.
    ///
    /// # Shapes
    /// `w: [H, Dq, Dk]`
    pub fn general(w: Tensor<3>) -> Attention {
        Attention::with_score(score::General, vec![w.unsqueeze()])
    }

    /// A kernel of the distance `|q − k|/σ` (Nadaraya–Watson).
    ///
    /// # Shapes
    /// `sigma: [1]`
    pub fn kernel(shape: score::Shape, sigma: Tensor<1>) -> Attention {
        Attention::with_score(score::Kernel(shape), vec![scalar(sigma)])
    }

    /// `(a·(q·k) + b·(q·v))/√D`
    ///
    /// # Shapes
    /// `a, b: [1]`
    pub fn key_value(a: Tensor<1>, b: Tensor<1>) -> Attention {
        Attention::with_score(score::KeyValue, vec![scalar(a), scalar(b)])
    }

    /// Transformer-XL's relative positions: `((q + u)·k_j + (q + w)·r_{p−j})/√D`.
    ///
    /// # Shapes
    /// `r: [H, S + T, D]` with row `S − (p − j)` for the distance `p − j`; `u, w: [H, D]`
    pub fn relative(r: Tensor<3>, u: Tensor<2>, w: Tensor<2>) -> Attention {
        let params = vec![r.unsqueeze(), per_head(u), per_head(w)];
        Attention::with_score(score::Relative::default(), params)
    }

    /// XLNet's: relative positions, and whether query and key are of one segment.
    ///
    /// # Shapes
    /// as [`Attention::relative`]; `ids: [B·S]`, `segment: [H, 2, D]` (same, different),
    /// `x: [H, D]`
    pub fn segment(self, ids: Vec<i64>, segment: Tensor<3>, x: Tensor<2>) -> Attention {
        assert_eq!(self.params.len(), 3, "segment: only after `relative`, and before any bias");
        let mut with = self.relative_score("segment", |score| score.segments = Some(ids));
        with.params.extend([segment.unsqueeze(), per_head(x)]);
        with
    }

    /// Relative positions for queries that stand at any of the last `n` keys, query `i` of batch
    /// row `b` at `places[b·T + i]`: a model that asks at a few places need not ask at all of them.
    ///
    /// # Shapes
    /// as [`Attention::relative`], but `r: [H, S + n, D]`
    pub fn among_last(self, n: usize, places: &[usize]) -> Attention {
        let centres = places.iter().map(|place| *place as f32).collect();
        let with = self.relative_score("among_last", |score| score.last = Some(n));
        with.positions(Positions::Centres(centres))
    }

    fn relative_score(
        mut self,
        asked: &str,
        change: impl FnOnce(&mut score::Relative),
    ) -> Attention {
        let Some(known) = self.kinds.score.downcast_ref::<score::Relative>() else {
            panic!("{asked}: only after `relative`");
        };
        let mut score = known.clone();
        change(&mut score);
        let score = Arc::new(score);
        self.kinds.score = score.clone();
        self.map(|spec| spec::Attention { score, ..spec })
    }

    /// `f(q·k/√D, place)`, a function of the caller's own with its derivative.
    pub fn modified(f: Arc<dyn score::ScoreMod>) -> Attention {
        Attention::with_score(score::Modified(f), vec![])
    }

    /// Any score, with its parameters as the kernels take them.
    pub fn with_score(score: impl score::Score + 'static, params: Vec<Tensor<4>>) -> Attention {
        let score = Arc::new(score);
        let kinds = Kinds {
            score: score.clone(),
            biases: vec![],
            normalizer: Arc::new(normalize::Softmax),
        };
        let spec = spec::Attention { score, ..spec::Attention::dot() };
        Attention { spec: Arc::new(spec), params, kinds }
    }

    fn map(self, f: impl FnOnce(spec::Attention) -> spec::Attention) -> Attention {
        let spec = Arc::try_unwrap(self.spec).unwrap_or_else(|shared| (*shared).clone());
        Attention { spec: Arc::new(f(spec)), ..self }
    }

    /// With this mask.
    pub fn mask(self, mask: mask::Mask) -> Attention {
        self.map(|spec| spec.mask(mask))
    }

    /// With this normaliser.
    pub fn normalize(self, normalizer: impl normalize::Normalizer + 'static) -> Attention {
        let normalizer = Arc::new(normalizer);
        let kinds = Kinds { normalizer: normalizer.clone(), ..self.kinds };
        Attention { kinds, ..self }.map(|spec| spec::Attention { normalizer, ..spec })
    }

    /// With this scale instead of the score's own.
    pub fn scale(self, scale: f32) -> Attention {
        self.map(|spec| spec.scale(scale))
    }

    /// With queries at these positions.
    pub fn positions(self, positions: Positions) -> Attention {
        self.map(|spec| spec.positions(positions))
    }

    /// With a share `p` of the weights dropped; the backward drops the same ones.
    pub fn dropout(self, p: f32, noise: Stream) -> Attention {
        self.map(|spec| spec.dropout(p, noise))
    }

    /// With one more bias, and its parameters as the kernels take them.
    pub fn bias(mut self, bias: impl bias::Bias + 'static, params: Vec<Tensor<4>>) -> Attention {
        let bias = Arc::new(bias);
        self.params.extend(params);
        self.kinds.biases.push(bias.clone());
        self.map(|mut spec| {
            spec.biases.push(bias);
            spec
        })
    }

    /// With `−slope_h·|p − j|`.
    ///
    /// # Shapes
    /// `slopes: [H]`
    pub fn alibi(self, slopes: Tensor<1>) -> Attention {
        let [h] = slopes.dims();
        self.bias(bias::Alibi, vec![slopes.reshape([1, h, 1, 1])])
    }

    /// With a learned number for each distance, clipped at both ends.
    ///
    /// # Shapes
    /// `table: [H, 2·reach + 1]`
    pub fn table(self, table: Tensor<2>) -> Attention {
        let [h, n] = table.dims();
        assert!(n % 2 == 1, "table: got {n} distances, need 2·reach + 1");
        self.bias(bias::Table { reach: n / 2 }, vec![table.reshape([1, h, 1, n])])
    }

    /// With a number for each cell.
    ///
    /// # Shapes
    /// `bias: [B or 1, H or 1, T, S]`; a leading 1 is shared
    pub fn dense_bias(self, bias: Tensor<4>) -> Attention {
        let [b, h, ..] = bias.dims();
        self.bias(bias::Dense { per_batch: b > 1, per_head: h > 1 }, vec![bias])
    }

    /// With a Gaussian around each query's centre: added to the scores, or `after` them
    /// multiplied with the weights.
    ///
    /// # Shapes
    /// `centres: [B, T]`, `sigma: [1]`
    pub fn gaussian_bias(self, centres: Tensor<2>, sigma: Tensor<1>, after: bool) -> Attention {
        self.bias(bias::Gaussian { after }, vec![centres.unsqueeze(), scalar(sigma)])
    }

    /// What is attended to, without the tensors.
    pub fn spec(&self) -> &spec::Attention {
        &self.spec
    }

    /// The context.
    ///
    /// # Shapes
    /// `q: [B, H, T, D]`, `k: [B, Hk, S, D]`, `v: [B, Hk, S, E]` → `[B, H, T, E]`
    pub fn attend(&self, q: Tensor<4>, k: Tensor<4>, v: Tensor<4>) -> Tensor<4> {
        match self.place(&q) {
            Place::Kernels => self.apply(
                Packing::Separate,
                Output::Context,
                vec![q.into_dispatch(), k.into_dispatch(), v.into_dispatch()],
            ),
            Place::Composed => composed::attend(self, [q, k, v]).0,
            Place::Host => {
                let host = Host::of(&q);
                let [q, k, v] = [q, k, v].map(|x| host.there(x));
                host.back(host.attention(self).attend(q, k, v))
            }
        }
    }

    /// The context and the weights, both differentiable (coverage, pointers).
    ///
    /// # Shapes
    /// as [`Attention::attend`] → `[B, H, T, E]`, `[B, H, T, S]`
    pub fn attend_with_weights(
        &self,
        q: Tensor<4>,
        k: Tensor<4>,
        v: Tensor<4>,
    ) -> (Tensor<4>, Tensor<4>) {
        let ([b, h, t, _], e) = (q.dims(), v.dims()[3]);
        match self.place(&q) {
            Place::Kernels => {
                let s = k.dims()[2];
                let both: Tensor<4> = self.apply(
                    Packing::Separate,
                    Output::Both,
                    vec![q.into_dispatch(), k.into_dispatch(), v.into_dispatch()],
                );
                let weights = both.clone().slice([0..b, 0..h, 0..t, e..e + s]);
                (both.slice([0..b, 0..h, 0..t, 0..e]), weights)
            }
            Place::Composed => composed::attend(self, [q, k, v]),
            Place::Host => {
                let host = Host::of(&q);
                let [q, k, v] = [q, k, v].map(|x| host.there(x));
                let (out, weights) = host.attention(self).attend_with_weights(q, k, v);
                (host.back(out), host.back(weights))
            }
        }
    }

    /// The weights alone, differentiable: exactly those that [`Attention::attend`] uses.
    ///
    /// # Shapes
    /// `q: [B, H, T, D]`, `k: [B, Hk, S, D]` → `[B, H, T, S]`
    pub fn weights(&self, q: Tensor<4>, k: Tensor<4>) -> Tensor<4> {
        match self.place(&q) {
            Place::Kernels => {
                let floats = vec![q.into_dispatch(), k.into_dispatch()];
                self.apply(Packing::Unvalued, Output::Weights, floats)
            }
            Place::Composed => composed::weights(self, q, k, None),
            Place::Host => {
                let host = Host::of(&q);
                let [q, k] = [q, k].map(|x| host.there(x));
                host.back(host.attention(self).weights(q, k))
            }
        }
    }

    /// What hard attention chooses, with the log-probability through which REINFORCE learns.
    ///
    /// # Shapes
    /// as [`Attention::attend`]
    pub fn choose(&self, q: Tensor<4>, k: Tensor<4>, v: Tensor<4>) -> Choice {
        let ([b, h, t, _], e) = (q.dims(), v.dims()[3]);
        // Only the kernels choose: a choice is not a function that Burn could derive.
        let host = Host::of(&q);
        let floats = [q, k, v].map(|x| host.there(x).into_dispatch()).to_vec();
        let all: Tensor<4> = host.attention(self).apply(Packing::Separate, Output::Choice, floats);
        let all = host.back(all);
        let part = |from: usize, to: usize| all.clone().slice([0..b, 0..h, 0..t, from..to]);
        Choice {
            out: part(0, e),
            log_prob: part(e, e + 1).reshape([b, h, t]),
            index: part(e + 1, e + 2).reshape([b, h, t]).detach().int(),
        }
    }

    /// Self-attention from one tensor, as a packed projection leaves it; heads are merged.
    ///
    /// # Shapes
    /// `qkv: [B, T, (H + 2·Hk)·D]` → `[B, T, H·D]`
    pub fn attend_packed(&self, qkv: Tensor<3>, heads: Heads) -> Tensor<3> {
        let ([b, t, m], Heads { queries: h, keys: hk }) = (qkv.dims(), heads);
        assert!(m % (h + 2 * hk) == 0, "qkv: got width {m}, need a multiple of H + 2·Hk");
        let d = m / (h + 2 * hk);
        if let Place::Kernels = self.place(&qkv) {
            let floats = vec![qkv.into_dispatch()];
            return self.apply(Packing::All(heads), Output::Context, floats);
        }
        let split = |from: usize, heads: usize| {
            let part = qkv.clone().slice([0..b, 0..t, from * d..(from + heads) * d]);
            part.reshape([b, t, heads, d]).swap_dims(1, 2)
        };
        let out = self.attend(split(0, h), split(h, hk), split(h + hk, hk));
        out.swap_dims(1, 2).reshape([b, t, h * d])
    }

    /// Cross-attention with keys and values from one tensor; heads are merged.
    ///
    /// # Shapes
    /// `q: [B, T, H·D]`, `kv: [B, S, 2·Hk·D]` → `[B, T, H·D]`
    pub fn attend_packed_kv(&self, q: Tensor<3>, kv: Tensor<3>, heads: Heads) -> Tensor<3> {
        let ([b, t, m], [_, s, _], Heads { queries: h, keys: hk }) = (q.dims(), kv.dims(), heads);
        assert!(m % h == 0, "q: got width {m}, need a multiple of H = {h}");
        let d = m / h;
        assert_eq!(
            kv.dims(),
            [b, s, 2 * hk * d],
            "kv: need [B, S, 2·Hk·D] = [{b}, S, {}]",
            2 * hk * d
        );
        if let Place::Kernels = self.place(&q) {
            let floats = vec![q.into_dispatch(), kv.into_dispatch()];
            return self.apply(Packing::KeysWithValues(heads), Output::Context, floats);
        }
        let split = |from: usize| {
            let part = kv.clone().slice([0..b, 0..s, from * hk * d..(from + 1) * hk * d]);
            part.reshape([b, s, hk, d]).swap_dims(1, 2)
        };
        let q = q.reshape([b, t, h, d]).swap_dims(1, 2);
        let out = self.attend(q, split(0), split(1));
        out.swap_dims(1, 2).reshape([b, t, h * d])
    }

    /// The same attention with its tensors on another device.
    pub fn to_device(self, device: &Device) -> Attention {
        let params = self.params.into_iter().map(|x| x.to_device(device)).collect();
        Attention { params, ..self }
    }

    fn apply<const D: usize>(
        &self,
        packing: Packing,
        output: Output,
        mut floats: Vec<burn::backend::DispatchTensor>,
    ) -> Tensor<D> {
        floats.extend(self.params.iter().cloned().map(Tensor::into_dispatch));
        backend::apply(Attend { spec: self.spec.clone(), packing, output }, floats, vec![])
    }

    fn place<const D: usize>(&self, x: &Tensor<D>) -> Place {
        if backend::fused(x) {
            Place::Kernels
        } else if composed::knows(&self.kinds) {
            Place::Composed
        } else {
            Place::Host
        }
    }
}

/// Where an attention is computed.
enum Place {
    /// By the kernels, where the tensors are.
    Kernels,
    /// Of Burn's operations, where the tensors are.
    Composed,
    /// By the kernels, on the CPU, with copies there and back.
    Host,
}

/// The way to the kernels and back for tensors of another device or precision. Burn's copies are
/// differentiable, so gradients come back the same way.
struct Host {
    device: Device,
    dtype: DType,
    kernels: Device,
}

impl Host {
    fn of(x: &Tensor<4>) -> Host {
        Host { device: x.device(), dtype: x.dtype(), kernels: Device::flex() }
    }

    fn there(&self, x: Tensor<4>) -> Tensor<4> {
        if backend::fused(&x) { x } else { x.to_device(&self.kernels).cast(DType::F32) }
    }

    fn back(&self, x: Tensor<4>) -> Tensor<4> {
        x.cast(self.dtype).to_device(&self.device)
    }

    fn attention(&self, attention: &Attention) -> Attention {
        let params = attention.params.iter().cloned().map(|x| self.there(x)).collect();
        Attention { params, ..attention.clone() }
    }
}
