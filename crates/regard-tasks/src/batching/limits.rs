//! Limits of an engine, and its use of them.

use super::lookup::Lookup;
use super::session::MOST_GUESSES;
use regard_attention::plan::CacheType;
use regard_models::memory;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits of a [`BatchEngine`](super::BatchEngine).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchLimits {
    /// Bytes that the caches of all sessions may take together. Each session reserves what its
    /// sequences need at their greatest length, so none runs out of room; one that finds too little
    /// waits until others end. By default half of the machine's memory.
    pub cache_bytes: usize,
    /// Tokens of prompts in a step in which nobody generates.
    pub prompt_tokens: usize,
    /// Tokens of prompts in a step in which sessions also generate. Some steps take none, so that the
    /// mean step takes about twice as long as without prompts.
    pub prompt_tokens_beside: usize,
    /// Storage type of cached keys and values.
    pub cache: CacheType,
    /// Guesses of the next tokens, for sessions of one row.
    pub lookup: Lookup,
}

impl Default for BatchLimits {
    fn default() -> BatchLimits {
        BatchLimits {
            cache_bytes: half_of_machine().unwrap_or(1 << 30),
            prompt_tokens: 512,
            prompt_tokens_beside: 32,
            cache: CacheType::F32,
            lookup: Lookup::default(),
        }
    }
}

/// Half of the machine's memory, where it is known.
fn half_of_machine() -> Option<usize> {
    usize::try_from(memory::of_machine()? / 2).ok()
}

impl BatchLimits {
    /// Most tokens that are fed to a row at once.
    pub(super) fn chunk(&self) -> usize {
        let prompt = self.prompt_tokens.max(self.prompt_tokens_beside);
        // A draft may guess even without a look-up.
        prompt.max(MOST_GUESSES + 1)
    }
}

/// What an engine is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchUse {
    /// Sessions.
    pub sessions: usize,
    /// Sessions that wait for room.
    pub waiting: usize,
    /// Bytes that sessions have reserved.
    pub reserved_bytes: usize,
    /// Bytes of all caches, those of kept prompts included.
    pub cache_bytes: usize,
    /// Most bytes of all caches after any step so far.
    pub most_cache_bytes: usize,
    /// Steps so far.
    pub steps: u64,
    /// Tokens of prompts that were computed.
    pub prompt_tokens: u64,
    /// Tokens of prompts that were known from earlier ones.
    pub shared_tokens: u64,
    /// Tokens that were fed to rows.
    pub fed_tokens: u64,
    /// Guesses of sessions that have ended.
    pub guesses: Guesses,
}

/// Guesses of next tokens, which the model checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Guesses {
    /// Tokens that were guessed.
    pub guessed: u64,
    /// Guessed tokens that were those of the search.
    pub accepted: u64,
}

impl std::ops::AddAssign for Guesses {
    fn add_assign(&mut self, other: Guesses) {
        self.guessed += other.guessed;
        self.accepted += other.accepted;
    }
}
