//! Differentiable CPU kernels under Regard.
//!
//! - [`attention`]: every attention as one fused, differentiable operation.
//! - [`gemm`]: matrix products.
//! - [`simd`], [`pool`], [`scratch`]: one source for every instruction set, one thread pool,
//!   working memory that threads reuse. [`memory`]: behaviour when memory runs out.
//! - [`rng`]: one counter-based generator for all randomness.
//! - [`quant`]: weights of 8 and 4 bits, and products with them.
//! - [`storage`]: weights in the data types of their files.
//!
//! Nothing here depends on tensors, layers, files or text. All unsafe code of the workspace is
//! here.

pub mod attention;
pub mod gemm;
pub mod memory;
pub mod ops;
pub mod pool;
pub mod quant;
pub mod rng;
pub mod scratch;
pub mod simd;
pub mod storage;
pub mod view;

/// The examples of the readme.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
