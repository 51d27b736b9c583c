//! Limits of an engine, and its use of them.

use super::lookup::Lookup;
use regard_attention::plan::CacheType;

/// Limits of a [`BatchEngine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchLimits {
    /// Positions that the caches of all sessions may hold together. A session that needs more than
    /// is left waits until others end.
    pub tokens: usize,
    /// Tokens of prompts in a step in which nobody generates.
    pub prompt_tokens: usize,
    /// Tokens of prompts in a step in which sessions also generate: their pace slows with it.
    pub prompt_tokens_beside: usize,
    /// Storage type of cached keys and values.
    pub cache: CacheType,
    /// Guesses of the next tokens, for sessions of one row.
    pub lookup: Lookup,
}

impl Default for BatchLimits {
    fn default() -> BatchLimits {
        BatchLimits {
            tokens: 1 << 16,
            prompt_tokens: 512,
            prompt_tokens_beside: 32,
            cache: CacheType::F32,
            lookup: Lookup::default(),
        }
    }
}

/// What an engine is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchUse {
    /// Sessions.
    pub sessions: usize,
    /// Sessions that wait for room.
    pub waiting: usize,
    /// Positions that sessions have reserved.
    pub tokens: usize,
    /// Bytes of all caches, those of kept prompts included.
    pub cache_bytes: usize,
    /// Steps so far.
    pub steps: u64,
    /// Tokens of prompts that were computed.
    pub prompt_tokens: u64,
    /// Tokens of prompts that were known from earlier ones.
    pub shared_tokens: u64,
    /// Tokens that were fed to rows.
    pub fed_tokens: u64,
}
