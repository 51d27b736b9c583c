//! Residual stream of a Transformer, with its norms.

use super::Norm;
use burn::tensor::Tensor;

/// Placement of the norms in a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NormPlacement {
    /// Before each sublayer (GPT-2, ViT, Llama); the residual stream itself is never normalised.
    #[default]
    Pre,
    /// After each residual addition (Vaswani et al. 2017, BERT).
    Post,
}

/// Residual stream that sublayers are added to. An addition and the norm that follows it are fused.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use regard_attention::Init;
/// use regard_attention::layers::{NormConfig, NormPlacement, Residual};
///
/// let norm = NormConfig::layer(4).init(&mut Init::new(0, &Device::flex()));
/// let x = Tensor::<3>::ones([1, 2, 4], &Device::flex());
/// let mut residual = Residual::new(NormPlacement::Pre, Some(&norm), x.clone());
/// let part = residual.input() * 3.0;
/// residual.add(part, Some(&norm));
/// assert_eq!(residual.sum().to_data(), x.to_data());
/// ```
#[derive(Clone, Debug)]
pub struct Residual {
    norms: NormPlacement,
    sum: Tensor<3>,
    input: Tensor<3>,
}

impl Residual {
    /// Starts a residual stream at `x`. `first` is the norm before the first sublayer; `None` with
    /// post-norm.
    ///
    /// # Shapes
    /// `x: [B, T, M]`
    pub fn new(norms: NormPlacement, first: Option<&Norm>, x: Tensor<3>) -> Residual {
        let input = match first {
            Some(norm) => norm.forward(x.clone()),
            None => x.clone(),
        };
        Residual { norms, sum: x, input }
    }

    /// Returns the input of the next sublayer; after the last sublayer, the result.
    ///
    /// # Shapes
    /// `[B, T, M]`
    pub fn input(&self) -> Tensor<3> {
        self.input.clone()
    }

    /// Returns the sum before the next norm; with post-norm it equals [`Residual::input`].
    ///
    /// # Shapes
    /// `[B, T, M]`
    pub fn sum(&self) -> Tensor<3> {
        self.sum.clone()
    }

    /// Adds the output of a sublayer. `norm` is the norm that follows the addition: with pre-norm
    /// that of the next sublayer, with post-norm that of this one.
    ///
    /// # Shapes
    /// `part: [B, T, M]`
    pub fn add(&mut self, part: Tensor<3>, norm: Option<&Norm>) {
        // Taken out, so that the addition can be done in place.
        let sum = std::mem::replace(&mut self.sum, part.clone());
        let (sum, input) = match norm {
            Some(norm) => norm.forward_sum(part, sum),
            None => {
                let sum = sum + part;
                (sum.clone(), sum)
            }
        };
        self.sum = match self.norms {
            NormPlacement::Pre => sum,
            NormPlacement::Post => input.clone(),
        };
        self.input = input;
    }
}
