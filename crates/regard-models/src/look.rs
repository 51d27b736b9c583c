//! Where a model may look, by configuration: the attentions that can stand in for one another
//! between a decoder and what was read.

use crate::checkpoint::Binder;
use burn::module::{Module, Param};
use burn::tensor::{Tensor, activation};
use regard_attention::mask::{expanded, global_tokens, lengths, window};
use regard_attention::normalize::{Entmax15, Estimator, Hard, Softmax1, Sparsemax};
use regard_attention::{Attention, Init, Mode, Positions};
use serde::{Deserialize, Serialize};

/// A kind of attention, as it stands in `config.json` under `"attention"`.
///
/// Windows lie around the word that has the same number as the one being written, or around the
/// last one if there are fewer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Look {
    /// Everything, softly.
    #[default]
    Global,
    /// Softly, with exact zeros (Martins and Astudillo 2016).
    Sparsemax,
    /// Between softmax and sparsemax (Peters et al. 2019).
    Entmax15,
    /// Softly, or at nothing.
    Softmax1,
    /// One place only.
    Hard {
        /// How it learns.
        method: Method,
        /// Of Gumbel's noise.
        #[serde(default = "one")]
        temperature: f32,
    },
    /// A window.
    Window {
        /// Places before the middle.
        left: usize,
        /// Places after it.
        right: usize,
    },
    /// A window that reaches further in strides.
    Expanded {
        /// Steps before the middle.
        left: usize,
        /// Steps after it.
        right: usize,
        /// Places a step.
        stride: usize,
    },
    /// A learned gate between everything and a window.
    Mixed {
        /// Places before the middle.
        left: usize,
        /// Places after it.
        right: usize,
    },
    /// A window, and the first few places for all, in one mask.
    GlobalTokens {
        /// How many first places.
        count: usize,
        /// Places before the middle.
        left: usize,
        /// Places after it.
        right: usize,
    },
}

/// How hard attention learns where to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// As if it had been soft.
    StraightThrough,
    /// The same with noise.
    Gumbel,
    /// By reward for what came of it.
    Reinforce,
}

impl Method {
    fn in_words(self) -> &'static str {
        match self {
            Method::StraightThrough => "gradients straight through",
            Method::Gumbel => "Gumbel noise",
            Method::Reinforce => "REINFORCE",
        }
    }
}

fn one() -> f32 {
    1.0
}

/// Where queries and keys are.
#[derive(Clone, Debug)]
pub(crate) struct Place<'a> {
    /// `[B]`: how many keys are not padding.
    pub lengths: &'a [i64],
    /// The number of the first query.
    pub first: usize,
    /// Whether all queries are of one number (beams), or each of the next.
    pub one_number: bool,
}

/// What came of looking.
pub(crate) struct Looked {
    /// `[B, H, T, E]`
    pub context: Tensor<4>,
    /// `[B, H, T, S]`, if asked for.
    pub weights: Option<Tensor<4>>,
    /// `[B, H, T]`, with REINFORCE in training.
    pub log_prob: Option<Tensor<3>>,
}

/// A [`Look`] with what it learns: the gate, if there is one.
#[derive(Module, Debug)]
pub(crate) struct Looking {
    /// `[H, D]` and `[H]`
    pub gate: Option<Param<Tensor<2>>>,
    pub gate_bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    pub look: Look,
    #[module(skip)]
    pub site: u64,
}

impl Look {
    /// For people.
    pub fn in_words(&self) -> String {
        let window = |left, right| format!("{left} places before and {right} after");
        match *self {
            Look::Global => "softmax over all that was read".into(),
            Look::Sparsemax => "sparsemax over all that was read".into(),
            Look::Entmax15 => "1.5-entmax over all that was read".into(),
            Look::Softmax1 => "softmax over all that was read, or nothing".into(),
            Look::Hard { method, .. } => format!("one place, learned by {}", method.in_words()),
            Look::Window { left, right } => format!("a window, {}", window(left, right)),
            Look::Expanded { left, right, stride } => {
                format!("a window, {}, in steps of {stride}", window(left, right))
            }
            Look::Mixed { left, right } => {
                format!("a learned gate between all and a window, {}", window(left, right))
            }
            Look::GlobalTokens { count, left, right } => {
                format!("the first {count} places and a window, {}", window(left, right))
            }
        }
    }

    /// With `H` heads of queries of width `D`.
    pub(crate) fn init(self, heads: usize, width: usize, init: &mut Init) -> Looking {
        let gated = matches!(self, Look::Mixed { .. });
        Looking {
            gate: gated.then(|| init.normal([heads, width], 1.0 / (width as f32).sqrt())),
            gate_bias: gated.then(|| init.constant([heads], 0.0)),
            look: self,
            site: init.site(),
        }
    }
}

impl Looking {
    pub fn bind(&mut self, b: &mut Binder) {
        if let (Some(gate), Some(bias)) = (&mut self.gate, &mut self.gate_bias) {
            b.tensor("gate.weight", gate);
            b.tensor("gate.bias", bias);
        }
    }

    /// Whether it is nothing but a softmax over everything.
    pub fn is_plain(&self) -> bool {
        self.look == Look::Global
    }

    /// Whether it is at one place only.
    pub fn is_hard(&self) -> bool {
        matches!(self.look, Look::Hard { .. })
    }

    /// Looks, with a score that `attention` brings.
    pub fn attend(
        &self,
        attention: Attention,
        [q, k, v]: [Tensor<4>; 3],
        place: &Place,
        ask: (Mode, bool),
    ) -> Looked {
        let (mode, weights) = ask;
        let t = q.dims()[2];
        let all = attention.clone().mask(lengths(place.lengths));
        let near = |attention: Attention| attention.positions(place.centres(t));
        match self.look {
            Look::Global => looked(&all, [q, k, v], weights),
            Look::Sparsemax => looked(&all.normalize(Sparsemax), [q, k, v], weights),
            Look::Entmax15 => looked(&all.normalize(Entmax15), [q, k, v], weights),
            Look::Softmax1 => looked(&all.normalize(Softmax1), [q, k, v], weights),
            Look::Hard { method, temperature } => {
                let noise = mode.stream(self.site + ((place.first as u64) << 32));
                let estimator = match (method, noise) {
                    (Method::Gumbel, Some(noise)) => Estimator::Gumbel { temperature, noise },
                    (Method::Reinforce, Some(noise)) => {
                        let sampled = all.normalize(Hard(Estimator::Reinforce { noise }));
                        let choice = sampled.choose(q, k, v);
                        let log_prob = Some(choice.log_prob);
                        return Looked { context: choice.out, weights: None, log_prob };
                    }
                    // Whoever no longer learns takes the best place.
                    _ => Estimator::StraightThrough,
                };
                looked(&all.normalize(Hard(estimator)), [q, k, v], weights)
            }
            Look::Window { left, right } => {
                let mask = lengths(place.lengths) & window(left, right);
                looked(&near(attention.mask(mask)), [q, k, v], weights)
            }
            Look::Expanded { left, right, stride } => {
                let mask = lengths(place.lengths) & expanded(left, right, stride);
                looked(&near(attention.mask(mask)), [q, k, v], weights)
            }
            Look::GlobalTokens { count, left, right } => {
                let first: Vec<usize> = (0..count.min(k.dims()[2])).collect();
                let mask = lengths(place.lengths) & (window(left, right) | global_tokens(&first));
                looked(&near(attention.mask(mask)), [q, k, v], weights)
            }
            Look::Mixed { left, right } => {
                let mask = lengths(place.lengths) & window(left, right);
                let local = near(attention.mask(mask));
                let gate = self.gate(&q);
                let far = looked(&all, [q.clone(), k.clone(), v.clone()], weights);
                let close = looked(&local, [q, k, v], weights);
                let mix =
                    |far: Tensor<4>, close: Tensor<4>| close.clone() + gate.clone() * (far - close);
                let weights = far.weights.zip(close.weights).map(|(far, close)| mix(far, close));
                Looked { context: mix(far.context, close.context), weights, log_prob: None }
            }
        }
    }

    /// How much of everything, against the window, each query takes.
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

fn looked(attention: &Attention, [q, k, v]: [Tensor<4>; 3], weights: bool) -> Looked {
    let (context, weights) = match weights {
        false => (attention.attend(q, k, v), None),
        true => {
            let (context, weights) = attention.attend_with_weights(q, k, v);
            (context, Some(weights))
        }
    };
    Looked { context, weights, log_prob: None }
}

impl Place<'_> {
    /// `[B, T]`: the key that each query's window lies around.
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
