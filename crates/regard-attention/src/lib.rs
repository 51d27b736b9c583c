//! Attention and the layers around it as fused, differentiable [Burn](burn) operations.
//!
//! ```text
//! out_i = Σ_j normalize_j( score(q_i, k_j) + bias(i, j) | mask(i, j) ) · v_j
//! ```
//!
//! (`| mask`: over the keys `j` that the mask allows.)
//!
//! - [`Attention`]: a choice of score, bias, mask and normaliser, applied to tensors. Memory is
//!   linear in the sequence length, and masked blocks are skipped.
//! - [`ops`]: the other operations of a training step: linear with activation, norms, loss,
//!   embedding, dropout, rotary positions, recurrences.
//! - [`layers`]: modules to build models from, with their configurations.
//! - [`plan`]: layers on slices, for decoding token by token.
//! - [`AdamW`]: an optimiser that updates all parameters of a module in one pass.
//! - [`backend`]: the trait through which fused operations enter Burn's autodiff graph, also for
//!   custom operations.
//! - [`Stream`] and [`pool`]: the counter-based random generator and the thread pool used
//!   throughout.
//!
//! On Burn's CPU backend Flex, in single precision, everything runs on the kernels of
//! [`regard_kernels`]; on other backends it is composed of Burn's own operations.
//!
//! ```
//! use burn::tensor::{Device, Tensor};
//! use regard_attention::layers::{Call, SelfAttentionConfig};
//! use regard_attention::{AdamW, AdamWConfig, Attention, Init, Mode, mask::causal};
//!
//! let device = Device::flex().autodiff();
//! let layer = SelfAttentionConfig::new(32, 4).init(&mut Init::new(7, &device));
//! let mut adamw = AdamW::new(AdamWConfig::default());
//! let x = Tensor::<3>::ones([2, 10, 32], &device);
//! let mode = Mode::Train { seed: 7, step: 1 };
//! let attention = Attention::dot().mask(causal());
//! let loss = layer.forward(x, Call::new(&attention).mode(mode)).sum();
//! let layer = adamw.step(1e-3, layer, loss.backward());
//! # let _ = layer;
//! ```
#![forbid(unsafe_code)]

pub mod attention;
pub mod backend;
pub mod init;
pub mod layers;
pub mod ops;
pub mod optim;
pub mod plan;

pub use attention::{
    Attention, BLOCK, Dims, Graph, HardAttention, Heads, Param, Positions, Row, Setting, Settings,
    Values, bias, find, formula, mask, normalize, score,
};
pub use init::{Init, Mode, WeightInit};
pub use optim::{AdamW, AdamWConfig, AdamWState};
pub use regard_kernels::pool;
pub use regard_kernels::rng::Stream;
pub use regard_kernels::{quant, storage};

/// The examples of the readme.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
