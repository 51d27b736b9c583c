//! Prompts that were read before, so that a common beginning is computed once.

use regard_attention::plan::SequenceCache;
use std::collections::VecDeque;

/// Shortest common beginning that is worth sharing.
const WORTH: usize = 16;

/// Prompts that are kept.
const KEPT: usize = 32;

/// Caches of prompts, the most recently used last.
#[derive(Debug, Default)]
pub(super) struct Prompts {
    kept: VecDeque<(Vec<u32>, SequenceCache)>,
}

impl Prompts {
    /// Returns a cache that holds the longest known beginning of a prompt, if there is one.
    pub fn find(&mut self, prompt: &[u32]) -> Option<SequenceCache> {
        let shared = |(tokens, cache): &(Vec<u32>, SequenceCache)| {
            let same = tokens.iter().zip(prompt).take_while(|(a, b)| a == b).count();
            if same >= WORTH && cache.can_truncate(same) { same } else { 0 }
        };
        let (at, same) = self.kept.iter().map(shared).enumerate().max_by_key(|(_, n)| *n)?;
        if same == 0 {
            return None;
        }
        let found = self.kept.remove(at).expect("it was just found");
        let mut cache = found.1.clone();
        self.kept.push_back(found);
        cache.truncate(same);
        Some(cache)
    }

    /// Whether two prompts have a beginning in common that is worth sharing.
    pub fn alike(a: &[u32], b: &[u32]) -> bool {
        a.iter().zip(b).take_while(|(a, b)| a == b).count() >= WORTH
    }

    /// Keeps the cache of a prompt that was read. Positions of all kept prompts count towards the
    /// limit of tokens.
    pub fn keep(&mut self, tokens: &[u32], cache: &SequenceCache, most: usize) {
        if tokens.len() < WORTH || tokens.len() > most {
            return;
        }
        // A prompt that continues another one replaces it.
        self.kept.retain(|(known, _)| !tokens.starts_with(known));
        self.kept.push_back((tokens.to_vec(), cache.clone()));
        while self.kept.len() > KEPT || self.tokens() > most {
            self.kept.pop_front();
        }
    }

    /// Drops the least recently used prompt; returns whether there was one.
    pub fn drop_one(&mut self) -> bool {
        self.kept.pop_front().is_some()
    }

    /// Number of positions of all kept prompts.
    pub fn tokens(&self) -> usize {
        self.kept.iter().map(|(tokens, _)| tokens.len()).sum()
    }
}
