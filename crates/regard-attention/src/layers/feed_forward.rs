//! The part of a Transformer that looks at one position at a time: `f(x·W₁ + b₁)·W₂ + b₂`, or gated
//! (Shazeer 2020): `(f(x·W + b) ⊙ (x·V + c))·W₂ + b₂`, which is GeGLU with a GELU and SwiGLU with a
//! SiLU.

use super::{Dropout, Linear, LinearConfig};
use crate::init::{Init, Mode, Weights};
use crate::ops::{Activation, activate};
use burn::module::Module;
use burn::tensor::Tensor;

/// Of a [`FeedForward`] layer.
#[derive(Clone, Debug)]
pub struct FeedForwardConfig {
    /// `M`
    pub width: usize,
    /// Of the middle, usually `4·M`.
    pub hidden: usize,
    /// `f`
    pub activation: Activation,
    /// Whether it is gated.
    pub gated: bool,
    /// Whether there are biases.
    pub bias: bool,
    /// The share that is dropped after `f`.
    pub dropout: f32,
    /// How `W₁` and `W₂` begin.
    pub weights: Weights,
}

/// `f(x·W₁ + b₁)·W₂ + b₂`, or `(f(x·W + b) ⊙ (x·V + c))·W₂ + b₂`
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use regard_attention::{Init, Mode, layers::FeedForwardConfig};
///
/// let layer = FeedForwardConfig::new(8).init(&mut Init::new(0, &Device::flex()));
/// let y = layer.forward(Tensor::<3>::ones([2, 3, 8], &Device::flex()), Mode::Eval);
/// assert_eq!(y.dims(), [2, 3, 8]);
/// ```
#[derive(Module, Debug)]
pub struct FeedForward {
    /// `W₁`, `b₁` and `f`; if it is gated, `[W, V]` next to each other, and `b`, `c`.
    pub up: Linear,
    /// `W₂`, `b₂`
    pub down: Linear,
    /// After `f`.
    pub dropout: Dropout,
    /// `f`, if it is gated.
    #[module(skip)]
    pub gate: Option<Activation>,
}

impl FeedForwardConfig {
    /// Four times as wide in the middle, GELU, with biases, nothing dropped.
    pub fn new(width: usize) -> FeedForwardConfig {
        FeedForwardConfig {
            width,
            hidden: 4 * width,
            activation: Activation::Gelu,
            gated: false,
            bias: true,
            dropout: 0.0,
            weights: Weights::Uniform,
        }
    }

    /// The layer with its first values.
    pub fn init(&self, init: &mut Init) -> FeedForward {
        let FeedForwardConfig { width, hidden, activation, gated, bias, dropout, weights } = *self;
        let (wide, after) = match gated {
            true => (2 * hidden, Activation::Identity),
            false => (hidden, activation),
        };
        let up =
            LinearConfig { activation: after, bias, weights, ..LinearConfig::new(width, wide) };
        let down = LinearConfig { bias, weights, ..LinearConfig::new(hidden, width) };
        FeedForward {
            up: up.init(init),
            down: down.init(init),
            dropout: Dropout::new(dropout, init),
            gate: gated.then_some(activation),
        }
    }
}

impl FeedForward {
    /// # Shapes
    /// `x: […, M]` → the same
    pub fn forward<const D: usize>(&self, x: Tensor<D>, mode: Mode) -> Tensor<D> {
        let up = self.up.forward(x);
        let up = match self.gate {
            None => up,
            Some(activation) => {
                let wide = up.dims()[D - 1];
                let half = |from: usize| up.clone().narrow(D - 1, from, wide / 2);
                activate(half(0), activation) * half(wide / 2)
            }
        };
        self.down.forward(self.dropout.forward(up, mode))
    }
}
