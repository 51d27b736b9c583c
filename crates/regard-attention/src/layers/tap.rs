//! Attention weights of one call of a layer, and their gradient.

use crate::attention::Attention;
use burn::tensor::{Gradients, Tensor};

/// Records the attention weights of one call of a layer.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use regard_attention::layers::{Call, SelfAttentionConfig, Tap};
/// use regard_attention::{Attention, Init};
///
/// let device = Device::flex().autodiff();
/// let layer = SelfAttentionConfig::new(32, 4).init(&mut Init::new(0, &device));
/// let (attention, mut tap) = (Attention::dot(), Tap::with_gradient());
/// let call = Call::new(&attention).tap(&mut tap);
/// let loss = layer.forward(Tensor::<3>::ones([2, 5, 32], &device), call).sum();
/// let gradient = tap.gradient(&loss.backward()).unwrap();
/// assert_eq!(gradient.dims(), [2, 4, 5, 5]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Tap {
    differentiates: bool,
    weights: Option<Tensor<4>>,
    /// Zeros added to the weights; their gradient is that of the weights.
    added: Option<Tensor<4>>,
}

impl Tap {
    /// Creates a tap that records the weights.
    pub fn new() -> Tap {
        Tap::default()
    }

    /// Creates a tap that records the weights and allows [`Tap::gradient`]. The context is then
    /// computed as a matrix product, with memory quadratic in the length.
    pub fn with_gradient() -> Tap {
        Tap { differentiates: true, ..Tap::default() }
    }

    /// Returns the weights of the last call, differentiable; `None` before the first call.
    ///
    /// # Shapes
    /// `[B, H, T, S]`
    pub fn weights(&self) -> Option<&Tensor<4>> {
        self.weights.as_ref()
    }

    /// Returns the weights of the last call, differentiable; `None` before the first call.
    ///
    /// # Shapes
    /// `[B, H, T, S]`
    pub fn into_weights(self) -> Option<Tensor<4>> {
        self.weights
    }

    /// Returns the gradient of a loss with respect to the weights, each taken as a free variable;
    /// `None` without [`Tap::with_gradient`], or if the loss does not depend on the weights.
    ///
    /// # Shapes
    /// `[B, H, T, S]`
    pub fn gradient(&self, gradients: &Gradients) -> Option<Tensor<4>> {
        self.added.as_ref()?.grad(gradients)
    }

    pub(super) fn attend(&mut self, attention: &Attention, [q, k, v]: [Tensor<4>; 3]) -> Tensor<4> {
        let (out, weights) = attention.attend_with_weights(q, k, v.clone());
        if !self.differentiates {
            self.weights = Some(weights);
            return out;
        }
        let tracked = weights.device().is_autodiff();
        assert!(tracked, "tap: the gradient needs a layer on an autodiff device");
        // Burn keeps gradients of leaves only, so a leaf of zeros is added.
        let added = weights.zeros_like().require_grad();
        let weights = weights + added.clone();
        let ([b, h, _, s], [_, hk, _, e]) = (weights.dims(), v.dims());
        let v: Tensor<5> = v.reshape([b, hk, 1, s, e]).expand([b, hk, h / hk, s, e]);
        (self.weights, self.added) = (Some(weights.clone()), Some(added));
        weights.matmul(v.reshape([b, h, s, e]))
    }
}
