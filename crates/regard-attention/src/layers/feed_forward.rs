//! The part of a transformer that looks at one position at a time: `f(x·W₁ + b₁)·W₂ + b₂`.

use super::{Dropout, Linear, LinearConfig};
use crate::init::{Init, Mode, Weights};
use crate::ops::Activation;
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
    /// Whether there are `b₁` and `b₂`.
    pub bias: bool,
    /// The share that is dropped after `f`.
    pub dropout: f32,
    /// How `W₁` and `W₂` begin.
    pub weights: Weights,
}

/// `f(x·W₁ + b₁)·W₂ + b₂`
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
    /// `W₁`, `b₁` and `f`
    pub up: Linear,
    /// `W₂`, `b₂`
    pub down: Linear,
    /// After `f`.
    pub dropout: Dropout,
}

impl FeedForwardConfig {
    /// Four times as wide in the middle, GELU, with biases, nothing dropped.
    pub fn new(width: usize) -> FeedForwardConfig {
        FeedForwardConfig {
            width,
            hidden: 4 * width,
            activation: Activation::Gelu,
            bias: true,
            dropout: 0.0,
            weights: Weights::Uniform,
        }
    }

    /// The layer with its first values.
    pub fn init(&self, init: &mut Init) -> FeedForward {
        let FeedForwardConfig { width, hidden, activation, bias, dropout, weights } = *self;
        let up = LinearConfig { activation, bias, weights, ..LinearConfig::new(width, hidden) };
        let down = LinearConfig { bias, weights, ..LinearConfig::new(hidden, width) };
        FeedForward {
            up: up.init(init),
            down: down.init(init),
            dropout: Dropout::new(dropout, init),
        }
    }
}

impl FeedForward {
    /// # Shapes
    /// `x: […, M]` → the same
    pub fn forward<const D: usize>(&self, x: Tensor<D>, mode: Mode) -> Tensor<D> {
        self.down.forward(self.dropout.forward(self.up.forward(x), mode))
    }
}
