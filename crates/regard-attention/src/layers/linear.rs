//! Linear layer with a fused activation: `y = f(x·W + b)`.

use super::Weight;
use crate::init::{Init, WeightInit};
use crate::ops::Activation;
use burn::module::{Module, Param};
use burn::tensor::Tensor;

/// Configuration of [`Linear`].
#[derive(Clone, Debug)]
pub struct LinearConfig {
    /// `I`, the number of input features.
    pub inputs: usize,
    /// `O`, the number of output features.
    pub outputs: usize,
    /// Whether there is a bias `b`. Default true.
    pub bias: bool,
    /// `f`, the activation. Default [`Activation::Identity`].
    pub activation: Activation,
    /// Initialisation of `W`. `b` is uniform in ±1/√I with [`WeightInit::Uniform`], otherwise 0.
    pub weights: WeightInit,
}

/// Linear layer with a fused activation, `y = f(x·W + b)`.
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
    /// `W`, `[I, O]`: the transpose of PyTorch's weight.
    pub weight: Weight,
    /// `b`, `[O]`.
    pub bias: Option<Param<Tensor<1>>>,
    /// `f`, the activation.
    #[module(skip)]
    pub activation: Activation,
}

impl LinearConfig {
    /// Creates a configuration with a bias and without an activation.
    pub fn new(inputs: usize, outputs: usize) -> LinearConfig {
        let (activation, weights) = (Activation::Identity, WeightInit::Uniform);
        LinearConfig { inputs, outputs, bias: true, activation, weights }
    }

    /// Initialises the layer.
    pub fn init(&self, init: &mut Init) -> Linear {
        let LinearConfig { inputs, outputs, activation, weights, .. } = *self;
        let weight = init.weights(inputs, outputs, weights);
        let bound = if weights == WeightInit::Uniform { 1.0 / (inputs as f32).sqrt() } else { 0.0 };
        let bias = self.bias.then(|| init.uniform([outputs], bound));
        Linear::new(weight, bias, activation)
    }
}

impl Linear {
    /// Creates a layer from an existing weight `[I, O]` and bias `[O]`.
    pub fn new(
        weight: impl Into<Weight>,
        bias: Option<Param<Tensor<1>>>,
        activation: Activation,
    ) -> Linear {
        Linear { weight: weight.into(), bias, activation }
    }

    /// Applies the layer.
    ///
    /// # Shapes
    /// `x: […, I]` → `[…, O]`
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let bias = self.bias.as_ref().map(Param::val);
        self.weight.linear(x, bias, self.activation)
    }
}
