//! Flags for the KV caches of sequences that are generated.

use clap::{Args, ValueEnum};
use regard_tasks::batching::{BatchLimits, CacheType};

/// Heading of the flags of caches in `--help`.
const CACHES: &str = "Keys and values of earlier tokens (KV cache)";

/// Flags of KV caches.
#[derive(Args)]
#[group(skip)]
#[command(next_help_heading = CACHES)]
pub struct CacheFlags {
    /// Type in which they are kept [default: f32]
    #[arg(long, value_name = "TYPE")]
    kv_cache: Option<KvCache>,
    /// Memory for those of all texts at once, such as 500MB; texts beyond it wait [default: half of
    /// the machine's]
    #[arg(long, value_name = "SIZE", value_parser = super::train::bytes)]
    kv_cache_limit: Option<u64>,
}

/// Type of cached keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KvCache {
    /// 32 bits, exact
    F32,
    /// 16 bits: half the memory
    F16,
    /// 8 bits, a scale for each token and head: about a quarter of the memory
    Int8,
}

impl CacheFlags {
    /// Sets what was given.
    pub fn set(&self, limits: &mut BatchLimits) {
        if let Some(cache) = self.kv_cache {
            limits.cache = match cache {
                KvCache::F32 => CacheType::F32,
                KvCache::F16 => CacheType::F16,
                KvCache::Int8 => CacheType::Int8,
            };
        }
        if let Some(bytes) = self.kv_cache_limit {
            limits.cache_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        }
    }
}
