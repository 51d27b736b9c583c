//! The sum that the parts of a Transformer are added to, with its norms.

use super::Norm;
use burn::tensor::Tensor;

/// Where the norms of a block stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Norms {
    /// Before each part (GPT-2, ViT, Llama): the sum itself is never normalised.
    #[default]
    Pre,
    /// After each sum (Vaswani et al. 2017, BERT).
    Post,
}

/// The sum that parts are added to. A norm that follows a sum is made in one pass with it.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use regard_attention::Init;
/// use regard_attention::layers::{NormConfig, Norms, Residual};
///
/// let norm = NormConfig::layer(4).init(&mut Init::new(0, &Device::flex()));
/// let x = Tensor::<3>::ones([1, 2, 4], &Device::flex());
/// let mut residual = Residual::new(Norms::Pre, Some(&norm), x.clone());
/// let part = residual.input() * 3.0;
/// residual.add(part, Some(&norm));
/// assert_eq!(residual.sum().to_data(), x.to_data());
/// ```
#[derive(Clone, Debug)]
pub struct Residual {
    norms: Norms,
    sum: Tensor<3>,
    input: Tensor<3>,
}

impl Residual {
    /// Before the first part, whose norm is `first` if it has one before it.
    ///
    /// # Shapes
    /// `x: [B, T, M]`
    pub fn new(norms: Norms, first: Option<&Norm>, x: Tensor<3>) -> Residual {
        let input = match first {
            Some(norm) => norm.forward(x.clone()),
            None => x.clone(),
        };
        Residual { norms, sum: x, input }
    }

    /// The input of the next part; after the last one, the result.
    ///
    /// # Shapes
    /// `[B, T, M]`
    pub fn input(&self) -> Tensor<3> {
        self.input.clone()
    }

    /// The sum, before the norm of the next part; with norms after sums it is the input.
    ///
    /// # Shapes
    /// `[B, T, M]`
    pub fn sum(&self) -> Tensor<3> {
        self.sum.clone()
    }

    /// Adds the output of a part. `norm` is the one that follows: with norms before parts that of
    /// the next part, with norms after sums that of this one.
    ///
    /// # Shapes
    /// `part: [B, T, M]`
    pub fn add(&mut self, part: Tensor<3>, norm: Option<&Norm>) {
        // Taken out, so that an addition may be made in place.
        let sum = std::mem::replace(&mut self.sum, part.clone());
        let (sum, input) = match norm {
            Some(norm) => norm.forward_sum(part, sum),
            None => {
                let sum = sum + part;
                (sum.clone(), sum)
            }
        };
        self.sum = match self.norms {
            Norms::Pre => sum,
            Norms::Post => input.clone(),
        };
        self.input = input;
    }
}
