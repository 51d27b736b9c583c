//! Interventions: changes to one call of an attention layer, to study what its parts do.

use crate::attention::mask::Mask;
use crate::attention::normalize::Normalizer;
use crate::attention::{Attention, Dims};
use crate::backend;
use burn::tensor::Tensor;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Changes to one call of an attention layer. All of them can be combined.
///
/// ```
/// use regard_attention::layers::Intervention;
/// use regard_attention::{mask::window, normalize::Sparsemax};
///
/// let off = Intervention::new().scale_head(3, 0.0);
/// let near = Intervention::new().mask(window(2, 2)).temperature(0.5).normalize(Sparsemax);
/// # let _ = (off, near);
/// ```
#[derive(Clone, Default)]
pub struct Intervention {
    heads: BTreeMap<usize, f32>,
    mask: Option<Mask>,
    temperature: Option<f32>,
    normalize: Option<Normalize>,
}

type Normalize = Arc<dyn Fn(Attention) -> Attention + Send + Sync>;

impl Intervention {
    /// Creates an intervention that changes nothing yet.
    pub fn new() -> Intervention {
        Intervention::default()
    }

    /// Multiplies the context of a head by a factor. A factor of 0 ablates the head.
    pub fn scale_head(mut self, head: usize, factor: f32) -> Intervention {
        self.heads.insert(head, factor);
        self
    }

    /// Applies a further mask: a key must be allowed by both masks. A query with no allowed key has
    /// a context of zeros.
    pub fn mask(self, mask: Mask) -> Intervention {
        let mask = match self.mask {
            Some(before) => before & mask,
            None => mask,
        };
        Intervention { mask: Some(mask), ..self }
    }

    /// Divides scores by a temperature. Weights are sharper below 1 and more uniform above 1.
    ///
    /// # Panics
    /// If the temperature is not positive; when the layer is applied, if the attention has a bias,
    /// which the temperature would not divide.
    pub fn temperature(self, temperature: f32) -> Intervention {
        let fine = temperature > 0.0 && temperature.is_finite();
        assert!(fine, "intervention: got a temperature of {temperature}, need a positive one");
        Intervention { temperature: Some(temperature), ..self }
    }

    /// Whether it adds a mask.
    pub(super) fn has_mask(&self) -> bool {
        self.mask.is_some()
    }

    /// Replaces the normaliser.
    pub fn normalize(self, normalizer: impl Normalizer + Clone + 'static) -> Intervention {
        let change = move |attention: Attention| attention.normalize(normalizer.clone());
        Intervention { normalize: Some(Arc::new(change)), ..self }
    }

    /// The attention with the mask, temperature and normaliser of the intervention.
    pub(super) fn change(&self, mut attention: Attention, dims: &Dims) -> Attention {
        if let Some(mask) = &self.mask {
            let both = attention.spec().mask.clone() & mask.clone();
            attention = attention.mask(both);
        }
        if let Some(temperature) = self.temperature {
            let spec = attention.spec();
            assert!(
                spec.biases.is_empty(),
                "intervention: a temperature cannot be used with a bias"
            );
            let scale = spec.scale.unwrap_or_else(|| spec.score.default_scale(dims));
            attention = attention.scale(scale / temperature);
        }
        match &self.normalize {
            Some(normalize) => normalize(attention),
            None => attention,
        }
    }

    /// The contexts of the heads, each multiplied by its factor.
    ///
    /// # Shapes
    /// `context: [B, T, H·E]` → the same
    pub(super) fn scale(&self, context: Tensor<3>, heads: usize) -> Tensor<3> {
        let Some((last, _)) = self.heads.last_key_value() else { return context };
        assert!(*last < heads, "intervention: got head {last}, the layer has {heads}");
        let wide = context.dims()[2];
        let factor = |at: usize| self.heads.get(&(at / (wide / heads))).copied().unwrap_or(1.0);
        let factors: Vec<f32> = (0..wide).map(factor).collect();
        let factors: Tensor<3> = backend::constant(factors, [1, 1, wide], &context);
        context * factors
    }
}

impl fmt::Debug for Intervention {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Intervention")
            .field("heads", &self.heads)
            .field("mask", &self.mask)
            .field("temperature", &self.temperature)
            .field("normalize", &self.normalize.is_some())
            .finish()
    }
}
