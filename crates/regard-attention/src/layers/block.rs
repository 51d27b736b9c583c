//! One block of a Transformer: self-attention, then a feed-forward part.

use super::{
    Call, Dropout, FeedForward, FeedForwardConfig, Norm, NormConfig, Norms, RelativeTable,
    Residual, SelfAttention, SelfAttentionConfig,
};
use crate::init::{Init, Mode};
use burn::module::Module;
use burn::tensor::Tensor;

/// Configures a [`Block`].
#[derive(Clone, Debug)]
pub struct BlockConfig {
    /// Where norms stand. Parts are made, and first values drawn, in the order in which the block
    /// computes.
    pub norms: Norms,
    /// Both norms.
    pub norm: NormConfig,
    /// The attention.
    pub attention: SelfAttentionConfig,
    /// Each head learns a number for each distance up to this one, which is added to scores.
    pub distances: Option<usize>,
    /// The feed-forward part.
    pub forward: FeedForwardConfig,
    /// The shares that are dropped of the output of the attention and of the feed-forward part.
    pub dropout: [f32; 2],
}

/// Self-attention and a feed-forward part, each added to its input, with norms before or after.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use regard_attention::layers::{BlockConfig, Call};
/// use regard_attention::{Attention, Init, mask::causal};
///
/// let block = BlockConfig::new(32, 4).init(&mut Init::new(0, &Device::flex()));
/// let x = Tensor::<3>::ones([2, 5, 32], &Device::flex());
/// let attention = Attention::dot().mask(causal());
/// assert_eq!(block.forward(x, Call::new(&attention)).dims(), [2, 5, 32]);
/// ```
#[derive(Module, Debug)]
pub struct Block {
    /// Norm of the attention; none in a first block whose input is normalised already.
    pub attention_norm: Option<Norm>,
    /// Self-attention.
    pub attention: SelfAttention,
    /// Numbers for distances.
    pub distances: Option<RelativeTable>,
    /// Norm of the feed-forward part.
    pub forward_norm: Norm,
    /// The feed-forward part.
    pub forward: FeedForward,
    /// Dropout after the attention, and after the feed-forward part.
    pub dropout: [Dropout; 2],
    /// Where norms stand.
    #[module(skip)]
    pub norms: Norms,
}

impl BlockConfig {
    /// Layer norms before each part, a plain feed-forward part of four times the width, nothing
    /// dropped.
    pub fn new(width: usize, heads: usize) -> BlockConfig {
        BlockConfig {
            norms: Norms::Pre,
            norm: NormConfig::layer(width),
            attention: SelfAttentionConfig::new(width, heads),
            distances: None,
            forward: FeedForwardConfig::new(width),
            dropout: [0.0; 2],
        }
    }

    /// The block with its first values.
    pub fn init(&self, init: &mut Init) -> Block {
        let heads = self.attention.heads.queries;
        let distances =
            |init: &mut Init| self.distances.map(|reach| RelativeTable::new(heads, reach, init));
        let dropout = |init: &mut Init| self.dropout.map(|p| Dropout::new(p, init));
        // Rust evaluates fields in the order in which they are written.
        match self.norms {
            Norms::Pre => Block {
                attention_norm: Some(self.norm.init(init)),
                attention: self.attention.init(init),
                distances: distances(init),
                forward_norm: self.norm.init(init),
                forward: self.forward.init(init),
                dropout: dropout(init),
                norms: self.norms,
            },
            Norms::Post => Block {
                attention: self.attention.init(init),
                distances: distances(init),
                attention_norm: Some(self.norm.init(init)),
                forward: self.forward.init(init),
                forward_norm: self.norm.init(init),
                dropout: dropout(init),
                norms: self.norms,
            },
        }
    }
}

impl Block {
    /// # Shapes
    /// `x: [B, T, M]` → the same
    pub fn forward(&self, x: Tensor<3>, call: Call) -> Tensor<3> {
        let mut residual = Residual::new(self.norms, self.entry(), x);
        self.forward_residual(&mut residual, call, None);
        residual.input()
    }

    /// Adds both parts to a sum that goes on to a next block. `next` is the norm before the next
    /// part, which is made in one pass with the sum; with norms after sums there is none.
    pub fn forward_residual(&self, residual: &mut Residual, call: Call, next: Option<&Norm>) {
        let mode = call.mode;
        let attended = self.attended(call, |call| self.attention.forward(residual.input(), call));
        self.conclude(residual, attended, mode, next);
    }

    /// The norm of the input, if it stands before the attention.
    pub fn entry(&self) -> Option<&Norm> {
        match self.norms {
            Norms::Pre => self.attention_norm.as_ref(),
            Norms::Post => None,
        }
    }

    /// Attends with the numbers for distances, if there are any.
    pub(super) fn attended<T>(&self, call: Call, attend: impl FnOnce(Call) -> T) -> T {
        match &self.distances {
            Some(distances) => {
                let attention = distances.forward(call.attention.clone());
                attend(Call { attention: &attention, ..call })
            }
            None => attend(call),
        }
    }

    /// Adds the output of the attention, and that of the feed-forward part.
    pub(super) fn conclude(
        &self,
        residual: &mut Residual,
        attended: Tensor<3>,
        mode: Mode,
        next: Option<&Norm>,
    ) {
        let (first, second) = match self.norms {
            Norms::Pre => (Some(&self.forward_norm), next),
            Norms::Post => (self.attention_norm.as_ref(), Some(&self.forward_norm)),
        };
        residual.add(self.dropout[0].forward(attended, mode), first);
        let fed = self.forward.forward(residual.input(), mode);
        residual.add(self.dropout[1].forward(fed, mode), second);
    }
}
