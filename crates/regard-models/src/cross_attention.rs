//! Interchangeable attentions between a decoder and the encoder's states, chosen by configuration.

use crate::checkpoint::Binder;
use burn::module::{Module, Param};
use burn::tensor::{Tensor, activation};
use regard_attention::mask::{expanded, global_tokens, lengths, window};
use regard_attention::normalize::{Entmax15, Estimator, Hard, Softmax1, Sparsemax};
use regard_attention::{Attention, Init, Mode, Positions};
use serde::{Deserialize, Serialize};

/// Kind of attention over the encoder states, in `config.json` under `"attention"`.
///
/// Windows are centred on the source position with the same index as the target token, or on the
/// last one if the source is shorter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum CrossAttentionKind {
    /// Softmax over all positions.
    #[default]
    Global,
    /// Sparsemax, with exact zeros (Martins and Astudillo 2016).
    Sparsemax,
    /// 1.5-entmax, between softmax and sparsemax (Peters et al. 2019).
    Entmax15,
    /// Softmax with an extra 1 in the denominator, so that weights may sum to less than 1.
    Softmax1,
    /// Hard attention: one position only.
    Hard {
        /// Estimator of gradients.
        method: HardEstimator,
        /// Temperature of Gumbel noise; default 1.
        #[serde(default = "one")]
        temperature: f32,
    },
    /// Softmax over a window.
    Window {
        /// Positions before the centre.
        left: usize,
        /// Positions after the centre.
        right: usize,
    },
    /// A dilated window.
    Expanded {
        /// Steps before the centre.
        left: usize,
        /// Steps after the centre.
        right: usize,
        /// Positions per step.
        stride: usize,
    },
    /// A learned gate between global attention and a window.
    Mixed {
        /// Positions before the centre.
        left: usize,
        /// Positions after the centre.
        right: usize,
    },
    /// A window, and the first few positions for all queries, in one mask.
    GlobalTokens {
        /// Number of first positions.
        count: usize,
        /// Positions before the centre.
        left: usize,
        /// Positions after the centre.
        right: usize,
    },
}

/// Gradient estimator of hard attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HardEstimator {
    /// Straight-through: the gradient of softmax attention.
    StraightThrough,
    /// Straight-through with Gumbel noise on the scores.
    Gumbel,
    /// REINFORCE: a sampled position, rewarded by the likelihood of the target.
    Reinforce,
}

impl HardEstimator {
    fn in_words(self) -> &'static str {
        match self {
            HardEstimator::StraightThrough => "gradients straight through",
            HardEstimator::Gumbel => "Gumbel noise",
            HardEstimator::Reinforce => "REINFORCE",
        }
    }
}

fn one() -> f32 {
    1.0
}

/// Options of a call of an attention.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttendOptions {
    pub mode: Mode,
    /// Whether to return the weights.
    pub weights: bool,
}

/// Positions of queries and keys.
#[derive(Clone, Debug)]
pub(crate) struct QueryPositions<'a> {
    /// `[B]`: number of keys that are not padding.
    pub lengths: &'a [i64],
    /// Index of the first query's target token.
    pub first: usize,
    /// Whether all queries have the same index (beams), or consecutive ones.
    pub one_number: bool,
}

/// Result of an attention.
pub(crate) struct Attended {
    /// `[B, H, T, E]`
    pub context: Tensor<4>,
    /// `[B, H, T, S]`, if requested.
    pub weights: Option<Tensor<4>>,
    /// `[B, H, T]`: log-probability of the sampled position, with REINFORCE in training.
    pub log_prob: Option<Tensor<3>>,
}

/// A [`CrossAttentionKind`] with its parameters: the gate, if there is one.
#[derive(Module, Debug)]
pub(crate) struct ConfiguredAttention {
    /// `[H, D]` and `[H]`
    pub gate: Option<Param<Tensor<2>>>,
    pub gate_bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    pub look: CrossAttentionKind,
    #[module(skip)]
    pub site: u64,
}

impl CrossAttentionKind {
    /// Describes it in words.
    pub fn in_words(&self) -> String {
        let window = |left, right| format!("{left} positions before and {right} after");
        match *self {
            CrossAttentionKind::Global => "softmax over all encoder states".into(),
            CrossAttentionKind::Sparsemax => "sparsemax over all encoder states".into(),
            CrossAttentionKind::Entmax15 => "1.5-entmax over all encoder states".into(),
            CrossAttentionKind::Softmax1 => "softmax1 over all encoder states".into(),
            CrossAttentionKind::Hard { method, .. } => {
                format!("one position, trained by {}", method.in_words())
            }
            CrossAttentionKind::Window { left, right } => {
                format!("a window, {}", window(left, right))
            }
            CrossAttentionKind::Expanded { left, right, stride } => {
                format!("a window, {}, in steps of {stride}", window(left, right))
            }
            CrossAttentionKind::Mixed { left, right } => {
                format!("a learned gate between all and a window, {}", window(left, right))
            }
            CrossAttentionKind::GlobalTokens { count, left, right } => {
                format!("the first {count} positions and a window, {}", window(left, right))
            }
        }
    }

    /// Makes the parameters for `H` heads with queries of width `D`.
    pub(crate) fn init(self, heads: usize, width: usize, init: &mut Init) -> ConfiguredAttention {
        let gated = matches!(self, CrossAttentionKind::Mixed { .. });
        ConfiguredAttention {
            gate: gated.then(|| init.normal([heads, width], 1.0 / (width as f32).sqrt())),
            gate_bias: gated.then(|| init.constant([heads], 0.0)),
            look: self,
            site: init.site(),
        }
    }
}

impl ConfiguredAttention {
    pub fn bind(&mut self, b: &mut Binder) {
        if let (Some(gate), Some(bias)) = (&mut self.gate, &mut self.gate_bias) {
            b.tensor("gate.weight", gate);
            b.tensor("gate.bias", bias);
        }
    }

    /// Whether it is a plain softmax over all positions.
    pub fn is_plain(&self) -> bool {
        self.look == CrossAttentionKind::Global
    }

    /// Whether it attends to one position only.
    pub fn is_hard(&self) -> bool {
        matches!(self.look, CrossAttentionKind::Hard { .. })
    }

    /// Attends, with the score function of `attention`.
    pub fn attend(
        &self,
        attention: Attention,
        [q, k, v]: [Tensor<4>; 3],
        place: &QueryPositions,
        options: AttendOptions,
    ) -> Attended {
        let AttendOptions { mode, weights } = options;
        let t = q.dims()[2];
        let all = attention.clone().mask(lengths(place.lengths));
        let near = |attention: Attention| attention.positions(place.centres(t));
        match self.look {
            CrossAttentionKind::Global => looked(&all, [q, k, v], weights),
            CrossAttentionKind::Sparsemax => looked(&all.normalize(Sparsemax), [q, k, v], weights),
            CrossAttentionKind::Entmax15 => looked(&all.normalize(Entmax15), [q, k, v], weights),
            CrossAttentionKind::Softmax1 => looked(&all.normalize(Softmax1), [q, k, v], weights),
            CrossAttentionKind::Hard { method, temperature } => {
                let noise = mode.stream(self.site + ((place.first as u64) << 32));
                let estimator = match (method, noise) {
                    (HardEstimator::Gumbel, Some(noise)) => {
                        Estimator::Gumbel { temperature, noise }
                    }
                    (HardEstimator::Reinforce, Some(noise)) => {
                        let sampled = all.normalize(Hard(Estimator::Reinforce { noise }));
                        let choice = sampled.choose(q, k, v);
                        let log_prob = Some(choice.log_prob);
                        return Attended { context: choice.out, weights: None, log_prob };
                    }
                    // In evaluation, the position with the highest score is taken.
                    _ => Estimator::StraightThrough,
                };
                looked(&all.normalize(Hard(estimator)), [q, k, v], weights)
            }
            CrossAttentionKind::Window { left, right } => {
                let mask = lengths(place.lengths) & window(left, right);
                looked(&near(attention.mask(mask)), [q, k, v], weights)
            }
            CrossAttentionKind::Expanded { left, right, stride } => {
                let mask = lengths(place.lengths) & expanded(left, right, stride);
                looked(&near(attention.mask(mask)), [q, k, v], weights)
            }
            CrossAttentionKind::GlobalTokens { count, left, right } => {
                let first: Vec<usize> = (0..count.min(k.dims()[2])).collect();
                let mask = lengths(place.lengths) & (window(left, right) | global_tokens(&first));
                looked(&near(attention.mask(mask)), [q, k, v], weights)
            }
            CrossAttentionKind::Mixed { left, right } => {
                let mask = lengths(place.lengths) & window(left, right);
                let local = near(attention.mask(mask));
                let gate = self.gate(&q);
                let far = looked(&all, [q.clone(), k.clone(), v.clone()], weights);
                let close = looked(&local, [q, k, v], weights);
                let mix =
                    |far: Tensor<4>, close: Tensor<4>| close.clone() + gate.clone() * (far - close);
                let weights = far.weights.zip(close.weights).map(|(far, close)| mix(far, close));
                Attended { context: mix(far.context, close.context), weights, log_prob: None }
            }
        }
    }

    /// Weight of global attention, against the window, for each query.
    ///
    /// # Shapes
    /// `q: [B, H, T, D]` → `[B, H, T, 1]`
    fn gate(&self, q: &Tensor<4>) -> Tensor<4> {
        let (Some(weight), Some(bias)) = (&self.gate, &self.gate_bias) else {
            panic!("look: mixed attention is made with a gate");
        };
        let [h, d] = weight.dims();
        let score = (q.clone() * weight.val().reshape([1, h, 1, d])).sum_dim(3);
        activation::sigmoid(score + bias.val().reshape([1, h, 1, 1]))
    }
}

fn looked(attention: &Attention, [q, k, v]: [Tensor<4>; 3], weights: bool) -> Attended {
    let (context, weights) = match weights {
        false => (attention.attend(q, k, v), None),
        true => {
            let (context, weights) = attention.attend_with_weights(q, k, v);
            (context, Some(weights))
        }
    };
    Attended { context, weights, log_prob: None }
}

impl QueryPositions<'_> {
    /// `[B, T]`: centre of each query's window, as a key's index.
    pub fn numbers(&self, t: usize) -> Vec<f32> {
        let of = |length: i64, i: usize| {
            let number = self.first + if self.one_number { 0 } else { i };
            (number as f32).min((length - 1).max(0) as f32)
        };
        self.lengths.iter().flat_map(|n| (0..t).map(move |i| of(*n, i))).collect()
    }

    fn centres(&self, t: usize) -> Positions {
        Positions::Centres(self.numbers(t))
    }
}
