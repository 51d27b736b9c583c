//! A linear layer with its activation: `y = f(x·W + b)`.

use super::Weight;
use crate::init::{Init, Weights};
use crate::ops::{Activation, Packing};
use burn::module::{Module, Param};
use burn::tensor::Tensor;

/// Of a [`Linear`] layer.
#[derive(Clone, Debug)]
pub struct LinearConfig {
    /// `I`
    pub inputs: usize,
    /// `O`
    pub outputs: usize,
    /// Whether there is a `b`.
    pub bias: bool,
    /// `f`
    pub activation: Activation,
    /// How `W` begins; `b` begins uniform within ±1/√I after [`Weights::Uniform`], else with 0.
    pub weights: Weights,
}

/// `y = f(x·W + b)`
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use regard_attention::{Init, layers::LinearConfig};
///
/// let mut init = Init::new(0, &Device::flex());
/// let layer = LinearConfig::new(4, 3).init(&mut init);
/// let y = layer.forward(Tensor::<3>::ones([2, 5, 4], &Device::flex()));
/// assert_eq!(y.dims(), [2, 5, 3]);
/// ```
#[derive(Module, Debug)]
pub struct Linear {
    /// `[I, O]`
    pub weight: Weight,
    /// `[O]`
    pub bias: Option<Param<Tensor<1>>>,
    /// `f`
    #[module(skip)]
    pub activation: Activation,
    #[module(skip)]
    packing: Packing,
}

impl LinearConfig {
    /// With a bias, without an activation.
    pub fn new(inputs: usize, outputs: usize) -> LinearConfig {
        let (activation, weights) = (Activation::Identity, Weights::Uniform);
        LinearConfig { inputs, outputs, bias: true, activation, weights }
    }

    /// The layer with its first values.
    pub fn init(&self, init: &mut Init) -> Linear {
        let LinearConfig { inputs, outputs, activation, weights, .. } = *self;
        let weight = init.weights(inputs, outputs, weights);
        let bound = if weights == Weights::Uniform { 1.0 / (inputs as f32).sqrt() } else { 0.0 };
        let bias = self.bias.then(|| init.uniform([outputs], bound));
        Linear::new(weight, bias, activation)
    }
}

impl Linear {
    /// Of a weight `[I, O]` and a bias `[O]` that there are.
    pub fn new(
        weight: impl Into<Weight>,
        bias: Option<Param<Tensor<1>>>,
        activation: Activation,
    ) -> Linear {
        Linear { weight: weight.into(), bias, activation, packing: Packing::default() }
    }

    /// # Shapes
    /// `x: […, I]` → `[…, O]`
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let bias = self.bias.as_ref().map(Param::val);
        self.weight.linear(x, bias, self.activation, &self.packing)
    }
}
