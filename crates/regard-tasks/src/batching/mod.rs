//! Continuous batching: sequences of several threads, processed together.
//!
//! A [`BatchEngine`] holds one model. Each sequence, or group of sequences that a search keeps, is a
//! [`Session`], which one thread uses: it reads a prompt, then feeds a token to each row and gets
//! logits. The tokens of all sessions that wait are processed in one pass over the weights. There
//! is no thread of its own: whichever session waits while nobody computes does the next step for
//! all. Sessions begin and end at any time.
//!
//! A session gives the same bits alone and together with others: results of a sequence depend on
//! its own tokens only ([`regard_models::text::DecoderPlan`]).

mod engine;
mod limits;
mod lookup;
mod prompts;
mod session;
mod state;
mod steps;
#[cfg(test)]
mod tests;
mod threads;

pub use engine::BatchEngine;
pub use limits::{BatchLimits, BatchUse};
pub use lookup::Lookup;
pub use session::Session;
pub use threads::for_each;
