//! Attention on tensors, by one formula:
//!
//! ```text
//! out_i = Σ_j normalize_j( score(q_i, k_j) + bias(i, j) | mask(i, j) ) · v_j
//! ```
//!
//! (`| mask`: over the keys `j` that the mask allows.)
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

mod choices;
mod composed;
mod operation;

pub use operation::Heads;

use crate::backend;
use burn::tensor::{DType, Device, Int, Tensor};
use operation::{Attend, Output, Packing};
use regard_kernels::attention::{self as spec};
pub use regard_kernels::attention::{
    BLOCK, Dims, Graph, Param, Positions, Row, Setting, Settings, Values, bias, find, formula,
    mask, normalize, score,
};
use regard_kernels::view::{View, ViewMut};
use std::sync::Arc;

/// Attention with a score, biases, a mask and a normaliser, and the parameter tensors of the score
/// and biases. Gradients reach the parameters, queries, keys and values.
#[derive(Clone, Debug)]
pub struct Attention {
    spec: Arc<spec::Attention>,
    /// Parameters of the score, then of each bias, as four-dimensional tensors with leading ones.
    params: Vec<Tensor<4>>,
}

/// Result of hard attention.
#[derive(Clone, Debug)]
pub struct HardAttention {
    /// Value of the chosen key, `[B, H, T, E]`; zeros if no key is allowed.
    pub out: Tensor<4>,
    /// Log-probability of the choice, `[B, H, T]`; 0 if no key is allowed.
    pub log_prob: Tensor<3>,
    /// Index of the chosen key, `[B, H, T]`; −1 if no key is allowed.
    pub index: Tensor<3, Int>,
}

impl Attention {
    /// Returns the specification: score, biases, mask and normaliser, without the tensors.
    pub fn spec(&self) -> &spec::Attention {
        &self.spec
    }

    /// Computes the context, the weighted sum of the values.
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

    /// Computes the context and the weights, both differentiable, as for coverage and pointer
    /// networks.
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

    /// Computes only the weights, differentiable: exactly those that [`Attention::attend`] uses.
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

    /// Computes the weights of a mask that lists the keys of each query, as graphs do: the lists of
    /// all queries concatenated, for each batch row and head. `None` if the mask has no lists.
    ///
    /// # Shapes
    /// `q: [B, H, T, D]`, `k: [B, Hk, S, D]` → `[B·H·listed]`
    pub fn listed_weights(&self, q: Tensor<4>, k: Tensor<4>) -> Option<Vec<f32>> {
        let host = |x: &Tensor<4>| {
            let (mut numbers, shape) = (vec![], x.dims());
            backend::numbers(x.clone(), &mut numbers);
            (numbers, shape)
        };
        let held = [host(&q), host(&k)];
        let params: Vec<_> = self.params.iter().map(host).collect();
        fn view((numbers, shape): &(Vec<f32>, [usize; 4])) -> View<'_> {
            View::new(numbers, *shape).expect("as many elements as its shape has")
        }
        let [q, k] = held.each_ref().map(view);
        let inputs =
            spec::AttentionInputs { q, k, v: k, params: params.iter().map(view).collect() };
        let [b, h, t, _] = q.shape;
        let shape = [b, h, t, k.shape[3]];
        let mut out = vec![0.0; shape.iter().product()];
        let out = ViewMut::new(&mut out, shape).expect("it was just made");
        let saved = backend::ok(self.spec.forward(&inputs, &out));
        backend::ok(self.spec.listed_weights(&inputs, &saved))
    }

    /// Samples or picks a key with hard attention, and returns the log-probability for REINFORCE.
    ///
    /// # Shapes
    /// as [`Attention::attend`]
    pub fn choose(&self, q: Tensor<4>, k: Tensor<4>, v: Tensor<4>) -> HardAttention {
        let ([b, h, t, _], e) = (q.dims(), v.dims()[3]);
        // Only the kernels choose, since Burn cannot differentiate a choice.
        let host = Host::of(&q);
        let floats = [q, k, v].map(|x| host.there(x).into_dispatch()).to_vec();
        let all: Tensor<4> = host.attention(self).apply(Packing::Separate, Output::Choice, floats);
        let all = host.back(all);
        let part = |from: usize, to: usize| all.clone().slice([0..b, 0..h, 0..t, from..to]);
        HardAttention {
            out: part(0, e),
            log_prob: part(e, e + 1).reshape([b, h, t]),
            index: part(e + 1, e + 2).reshape([b, h, t]).detach().int(),
        }
    }

    /// Computes self-attention from a packed projection; heads are merged.
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

    /// Computes cross-attention with packed keys and values; heads are merged.
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

    /// Moves the parameter tensors to another device.
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
        } else if composed::knows(&self.spec) {
            Place::Composed
        } else {
            Place::Host
        }
    }
}

/// Device and implementation that compute an attention.
enum Place {
    /// The kernels, on the tensors' own device.
    Kernels,
    /// Burn's operations, on the tensors' own device.
    Composed,
    /// The kernels on the CPU, with copies there and back.
    Host,
}

/// Copies tensors of another device or precision to the kernels and back. Burn's copies are
/// differentiable, so gradients take the same way.
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
