//! Transformer block: self-attention, then a feed-forward network.

use super::{
    Call, Dropout, FeedForward, FeedForwardConfig, Norm, NormConfig, NormPlacement, RelativeTable,
    Residual, SelfAttention, SelfAttentionConfig,
};
use crate::init::{Init, Mode};
use burn::module::Module;
use burn::tensor::Tensor;

/// Configuration of [`Block`].
#[derive(Clone, Debug)]
pub struct BlockConfig {
    /// Norms before or after each sublayer. Sublayers are created, and initial values drawn, in the
    /// order in which the block computes them.
    pub norms: NormPlacement,
    /// Configuration of both norms.
    pub norm: NormConfig,
    /// Whether the output of each sublayer is normalised before it is added (Gemma 2). Default false.
    pub output_norms: bool,
    /// Configuration of the self-attention.
    pub attention: SelfAttentionConfig,
    /// Largest distance of a learned relative position bias per head; larger distances are clipped.
    /// `None` for no bias.
    pub distances: Option<usize>,
    /// Configuration of the feed-forward network.
    pub forward: FeedForwardConfig,
    /// Dropout probabilities of the outputs of the attention and of the feed-forward network.
    pub dropout: [f32; 2],
}

/// Self-attention and a feed-forward network with residual connections, pre-norm or post-norm.
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
    /// Norm of the attention sublayer; `None` in a first block whose input is already normalised.
    pub attention_norm: Option<Norm>,
    /// Self-attention.
    pub attention: SelfAttention,
    /// Relative position bias.
    pub distances: Option<RelativeTable>,
    /// Norm of the feed-forward sublayer.
    pub forward_norm: Norm,
    /// Feed-forward network.
    pub forward: FeedForward,
    /// Norms of the outputs of the attention and of the feed-forward network.
    pub output_norms: Option<[Norm; 2]>,
    /// Dropout after the attention and after the feed-forward network.
    pub dropout: [Dropout; 2],
    /// Norms before or after each sublayer.
    #[module(skip)]
    pub norms: NormPlacement,
}

impl BlockConfig {
    /// Creates a configuration with pre-layer-norm, a plain feed-forward network of four times the
    /// width, and no dropout.
    pub fn new(width: usize, heads: usize) -> BlockConfig {
        BlockConfig {
            norms: NormPlacement::Pre,
            norm: NormConfig::layer(width),
            output_norms: false,
            attention: SelfAttentionConfig::new(width, heads),
            distances: None,
            forward: FeedForwardConfig::new(width),
            dropout: [0.0; 2],
        }
    }

    /// Initialises the block.
    pub fn init(&self, init: &mut Init) -> Block {
        let heads = self.attention.heads.queries;
        let distances =
            |init: &mut Init| self.distances.map(|reach| RelativeTable::new(heads, reach, init));
        let dropout = |init: &mut Init| self.dropout.map(|p| Dropout::new(p, init));
        let output_norms = |init: &mut Init| {
            self.output_norms.then(|| [self.norm.init(init), self.norm.init(init)])
        };
        // Rust evaluates fields in the order in which they are written.
        match self.norms {
            NormPlacement::Pre => Block {
                attention_norm: Some(self.norm.init(init)),
                attention: self.attention.init(init),
                distances: distances(init),
                forward_norm: self.norm.init(init),
                forward: self.forward.init(init),
                output_norms: output_norms(init),
                dropout: dropout(init),
                norms: self.norms,
            },
            NormPlacement::Post => Block {
                attention: self.attention.init(init),
                distances: distances(init),
                attention_norm: Some(self.norm.init(init)),
                forward: self.forward.init(init),
                forward_norm: self.norm.init(init),
                output_norms: output_norms(init),
                dropout: dropout(init),
                norms: self.norms,
            },
        }
    }
}

impl Block {
    /// Applies the block.
    ///
    /// # Shapes
    /// `x: [B, T, M]` → the same
    pub fn forward(&self, x: Tensor<3>, call: Call) -> Tensor<3> {
        let mut residual = Residual::new(self.norms, self.entry(), x);
        self.forward_residual(&mut residual, call, None);
        residual.input()
    }

    /// Adds both sublayers to a residual stream that continues in the next block. `next` is the
    /// norm before the next sublayer, fused with the addition; it is `None` with post-norm.
    pub fn forward_residual(&self, residual: &mut Residual, call: Call, next: Option<&Norm>) {
        let mode = call.mode;
        let attended = self.attended(call, |call| self.attention.forward(residual.input(), call));
        self.conclude(residual, attended, mode, next);
    }

    /// Returns the norm before the attention; `None` with post-norm.
    pub fn entry(&self) -> Option<&Norm> {
        match self.norms {
            NormPlacement::Pre => self.attention_norm.as_ref(),
            NormPlacement::Post => None,
        }
    }

    /// Attends with the relative position bias, if there is one.
    pub(super) fn attended<T>(&self, call: Call, attend: impl FnOnce(Call) -> T) -> T {
        match &self.distances {
            Some(distances) => {
                let attention = distances.forward(call.attention.clone());
                attend(Call { attention: &attention, ..call })
            }
            None => attend(call),
        }
    }

    /// Adds the outputs of the attention and of the feed-forward network.
    pub(super) fn conclude(
        &self,
        residual: &mut Residual,
        attended: Tensor<3>,
        mode: Mode,
        next: Option<&Norm>,
    ) {
        let (first, second) = match self.norms {
            NormPlacement::Pre => (Some(&self.forward_norm), next),
            NormPlacement::Post => (self.attention_norm.as_ref(), Some(&self.forward_norm)),
        };
        let normalized = |x: Tensor<3>, part: usize| match &self.output_norms {
            Some(norms) => norms[part].forward(x),
            None => x,
        };
        residual.add(self.dropout[0].forward(normalized(attended, 0), mode), first);
        let fed = normalized(self.forward.forward(residual.input(), mode), 1);
        residual.add(self.dropout[1].forward(fed, mode), second);
    }
}
