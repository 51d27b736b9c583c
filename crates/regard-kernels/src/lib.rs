//! Numbers to numbers, each with its derivative: the kernels under Regard.
//!
//! - [`attention`]: every attention as one fused, differentiable operation.
//! - [`gemm`]: matrix products.
//! - [`simd`], [`pool`], [`scratch`]: one source for every instruction set, one pool of threads,
//!   working memory that threads keep. [`memory`]: what happens when there is not enough.
//! - [`rng`]: one counter-based generator for all randomness.
//! - [`storage`]: the memory of weights, as files have it.
//!
//! Nothing here knows of tensors, layers, files or text. All unsafe code of the workspace is here.

pub mod attention;
pub mod gemm;
pub mod memory;
pub mod ops;
pub mod pool;
pub mod rng;
pub mod scratch;
pub mod simd;
pub mod storage;
pub mod view;
