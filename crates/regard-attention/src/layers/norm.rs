//! Layer norm (Ba et al. 2016) and RMS norm (Zhang and Sennrich 2019).

use crate::init::Init;
use crate::ops::{self, NormKind};
use burn::module::{Module, Param};
use burn::tensor::Tensor;

/// Configuration of [`Norm`].
#[derive(Clone, Debug)]
pub struct NormConfig {
    /// `M`, the width of a row.
    pub width: usize,
    /// Layer norm or RMS norm.
    pub kind: NormKind,
    /// `ε`, added to the variance or mean square.
    pub eps: f32,
    /// Whether there is a bias `β`.
    pub bias: bool,
    /// Added to the scale: with 1 the parameter is the difference to 1, and begins at 0, as in Gemma.
    /// Default 0.
    pub offset: f32,
}

/// Layer norm or RMS norm over the last axis.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use regard_attention::{Init, layers::NormConfig};
///
/// let layer = NormConfig::layer(4).init(&mut Init::new(0, &Device::flex()));
/// let y = layer.forward(Tensor::<2>::from_floats([[1.0, 1.0, 3.0, 3.0]], &Device::flex()));
/// assert!((y.to_data().try_to_vec::<f32>().unwrap()[3] - 1.0).abs() < 1e-4);
/// ```
#[derive(Module, Debug)]
pub struct Norm {
    /// Scale `γ`, `[M]`.
    pub gamma: Param<Tensor<1>>,
    /// Bias `β`, `[M]`.
    pub beta: Option<Param<Tensor<1>>>,
    /// Layer norm or RMS norm.
    #[module(skip)]
    pub kind: NormKind,
    /// `ε`, added to the variance or mean square.
    #[module(skip)]
    pub eps: f32,
    /// Added to the scale.
    #[module(skip)]
    pub offset: f32,
}

impl NormConfig {
    /// Creates a layer norm with bias and with PyTorch's `ε` of 1e-5.
    pub fn layer(width: usize) -> NormConfig {
        NormConfig { width, kind: NormKind::Layer, eps: 1e-5, bias: true, offset: 0.0 }
    }

    /// Creates an RMS norm without bias and with the usual `ε` of 1e-6.
    pub fn rms(width: usize) -> NormConfig {
        NormConfig { width, kind: NormKind::Rms, eps: 1e-6, bias: false, offset: 0.0 }
    }

    /// Initialises the layer with a scale of 1 and `β = 0`.
    pub fn init(&self, init: &mut Init) -> Norm {
        let NormConfig { width, kind, eps, bias, offset } = *self;
        let gamma = init.constant([width], 1.0 - offset);
        let beta = bias.then(|| init.constant([width], 0.0));
        Norm { gamma, beta, kind, eps, offset }
    }
}

impl Norm {
    /// Returns the scale of each feature.
    ///
    /// # Shapes
    /// `[M]`
    pub fn scale(&self) -> Tensor<1> {
        match self.offset {
            0.0 => self.gamma.val(),
            offset => self.gamma.val() + offset,
        }
    }

    fn operation(&self) -> ops::NormParams {
        let Norm { kind, eps, .. } = *self;
        let beta = self.beta.as_ref().map(Param::val);
        ops::NormParams { kind, eps, gamma: self.scale(), beta }
    }

    /// Normalises each row.
    ///
    /// # Shapes
    /// `x: […, M]` → the same
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        ops::norm(x, &self.operation())
    }

    /// Returns `x + residual` and its norm, in one fused pass.
    ///
    /// # Shapes
    /// `x, residual: […, M]` → both of the same shape
    pub fn forward_sum<const D: usize>(
        &self,
        x: Tensor<D>,
        residual: Tensor<D>,
    ) -> (Tensor<D>, Tensor<D>) {
        ops::add_norm(x, residual, &self.operation())
    }
}
