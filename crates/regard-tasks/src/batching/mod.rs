//! Continuous batching: sequences of several threads, processed together.
//!
//! A [`BatchEngine`] holds one model. Each sequence, or group of sequences that a search keeps, is a
//! [`Session`], which one thread uses: it reads a prompt, then feeds a token to each row and gets
//! logits. The tokens of all sessions that wait are processed in one pass over the weights. There
//! is no thread of its own: whichever session waits while nobody computes does the next step for
//! all. Sessions begin and end at any time.
//!
//! Each session reserves the bytes that its caches may take when it begins, and waits for them if
//! need be, so that no session runs out of room on its way and none waits for one that waits for
//! it. [`Cancel`] ends a session from another thread.
//!
//! A session gives the same bits alone and together with others: results of a sequence depend on
//! its own tokens only ([`regard_models::text::DecoderPlan`]).

mod cancel;
mod draft;
mod engine;
mod limits;
mod lookup;
mod pace;
mod prompts;
mod session;
mod speed;
mod state;
mod steps;
#[cfg(test)]
mod tests;
mod threads;

pub use cancel::Cancel;
pub use engine::BatchEngine;
pub use limits::{BatchLimits, BatchUse, Guesses};
pub use lookup::Lookup;
pub use regard_attention::plan::CacheType;
pub use session::Session;
pub use speed::PaceBeside;
pub use threads::{for_each, in_order};
