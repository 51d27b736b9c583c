//! Layers: one file each, with its configuration, its parameters and its forward.
//!
//! Each configuration's `init` creates the layer with initial values from an [`Init`](crate::Init).
//! Parameters are Burn's [`Param`](burn::module::Param), so Burn's optimisers and records see them.

mod additive;
mod block;
mod cache;
mod call;
mod convolution;
mod cross_attention;
mod dropout;
mod embedding;
mod feed_forward;
mod graph_attention;
mod intervention;
mod linear;
mod low_rank;
mod norm;
mod pooling;
mod positions;
mod recurrent;
mod residual;
mod rotary;
mod self_attention;
mod sequences;
mod streamed;
mod tap;
mod weight;

pub use additive::{AdditiveAttention, AdditiveAttentionConfig};
pub use block::{Block, BlockConfig};
pub use cache::KvCache;
pub use call::Call;
pub use convolution::{
    Convolution, ConvolutionConfig, ConvolutionState, ImageConvolution, ImageConvolutionConfig,
};
pub use cross_attention::{CrossAttention, CrossAttentionConfig};
pub use dropout::Dropout;
pub use embedding::{Embedding, EmbeddingConfig};
pub use feed_forward::{FeedForward, FeedForwardConfig};
pub use graph_attention::{
    GraphAttention, GraphAttentionConfig, GraphEdges, GraphScore, NodeFeatures,
};
pub use intervention::Intervention;
pub use linear::{Linear, LinearConfig};
pub use low_rank::LowRank;
pub use norm::{Norm, NormConfig};
pub use pooling::{Pool, Pooling, PoolingAttention, PoolingConfig, PoolingState};
pub use positions::{LearnedPositions, RelativeTable, alibi_slopes, sinusoidal};
pub use recurrent::{LayerStates, Recurrent, RecurrentConfig, RecurrentLayer, RecurrentWeights};
pub use residual::{NormPlacement, Residual};
pub use rotary::{Rotary, RotaryConfig, Scaling};
pub use self_attention::{SelfAttention, SelfAttentionConfig};
pub use sequences::Sequences;
pub use streamed::{BlockStream, BlockStreamState, Reach, StreamPart, StreamState};
pub use tap::Tap;
pub use weight::Weight;
