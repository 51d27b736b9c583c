//! Prompts that were read before, so that a common beginning is computed once.

use regard_attention::plan::SequenceCache;
use std::collections::VecDeque;

/// Shortest common beginning that is worth sharing.
pub(super) const WORTH: usize = 16;

/// Prompts that are kept.
const KEPT: usize = 32;

/// Caches of prompts, the most recently used last.
#[derive(Debug, Default)]
pub(super) struct Prompts {
    kept: VecDeque<Kept>,
}

/// A prompt that was read.
#[derive(Debug)]
struct Kept {
    tokens: Vec<u32>,
    cache: SequenceCache,
    bytes: usize,
}

impl Prompts {
    /// Returns a cache that holds the longest known beginning of a prompt, if there is one.
    pub fn find(&mut self, prompt: &[u32]) -> Option<SequenceCache> {
        let shared = |Kept { tokens, cache, .. }: &Kept| {
            let same = common(tokens, prompt);
            if same >= WORTH && cache.can_truncate(same) { same } else { 0 }
        };
        let (at, same) = self.kept.iter().map(shared).enumerate().max_by_key(|(_, n)| *n)?;
        if same == 0 {
            return None;
        }
        let found = self.kept.remove(at).expect("it was just found");
        let mut cache = found.cache.clone();
        self.kept.push_back(found);
        cache.truncate(same);
        Some(cache)
    }

    /// Keeps the cache of a prompt that was read, of at most `bytes`. All kept prompts together take
    /// at most `most` bytes.
    pub fn keep(&mut self, tokens: &[u32], cache: &SequenceCache, bytes: usize, most: usize) {
        if tokens.len() < WORTH || bytes > most {
            return;
        }
        // A prompt that continues another one replaces it.
        self.kept.retain(|known| !tokens.starts_with(&known.tokens));
        self.kept.push_back(Kept { tokens: tokens.to_vec(), cache: cache.clone(), bytes });
        while self.kept.len() > KEPT || self.bytes() > most {
            self.kept.pop_front();
        }
    }

    /// Drops the least recently used prompt; returns whether there was one.
    pub fn drop_one(&mut self) -> bool {
        self.kept.pop_front().is_some()
    }

    /// Bytes of all kept prompts, at most.
    pub fn bytes(&self) -> usize {
        self.kept.iter().map(|known| known.bytes).sum()
    }
}

/// Length of the common beginning of two prompts.
pub(super) fn common(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
