//! Position-wise feed-forward network: `f(x·W₁ + b₁)·W₂ + b₂`, or gated (Shazeer 2020):
//! `(f(x·W + b) ⊙ (x·V + c))·W₂ + b₂`, which is GeGLU with GELU and SwiGLU with SiLU.

use super::{Dropout, Linear, LinearConfig};
use crate::init::{Init, Mode, WeightInit};
use crate::ops::{Activation, activate};
use burn::module::Module;
use burn::tensor::Tensor;

/// Configuration of [`FeedForward`].
#[derive(Clone, Debug)]
pub struct FeedForwardConfig {
    /// `M`, the model width.
    pub width: usize,
    /// Width of the hidden layer, usually `4·M`.
    pub hidden: usize,
    /// `f`, the activation. Default GELU.
    pub activation: Activation,
    /// Whether the hidden layer is gated. Default false.
    pub gated: bool,
    /// Whether there are biases. Default true.
    pub bias: bool,
    /// Dropout probability of the hidden activations. Default 0.
    pub dropout: f32,
    /// Initialisation of the weights.
    pub weights: WeightInit,
}

/// Feed-forward network `f(x·W₁ + b₁)·W₂ + b₂`, or gated `(f(x·W + b) ⊙ (x·V + c))·W₂ + b₂`.
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
    /// `W₁` and `b₁` with `f`; if gated, `[W, V]` and `[b, c]` concatenated along the columns.
    pub up: Linear,
    /// `W₂` and `b₂`.
    pub down: Linear,
    /// Dropout of the hidden activations.
    pub dropout: Dropout,
    /// `f` of a gated network; `None` if it is not gated.
    #[module(skip)]
    pub gate: Option<Activation>,
}

impl FeedForwardConfig {
    /// Creates a configuration with a hidden width of `4·M`, GELU, biases, no gate and no dropout.
    pub fn new(width: usize) -> FeedForwardConfig {
        FeedForwardConfig {
            width,
            hidden: 4 * width,
            activation: Activation::Gelu,
            gated: false,
            bias: true,
            dropout: 0.0,
            weights: WeightInit::Uniform,
        }
    }

    /// Initialises the layer.
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
    /// Applies the network to each position.
    ///
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
