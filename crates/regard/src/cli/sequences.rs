//! Flags for sequences that are generated: their KV caches, and guesses of next tokens.

use super::inputs::note;
use crate::hub::Hub;
use crate::models;
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use regard_tasks::batching::{BatchLimits, CacheType, Lookup};
use regard_tasks::generate::Generator;

/// Heading of the flags of caches in `--help`.
const CACHES: &str = "Keys and values of earlier tokens (KV cache)";

/// Heading of the flags of guesses in `--help`.
const GUESSES: &str = "Guesses of next tokens, checked together; the text stays the same";

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
    ///
    /// # Errors
    /// If the model has no such cache.
    pub fn apply(&self, writer: &mut Generator) -> Result<()> {
        let flag = match (self.kv_cache, self.kv_cache_limit) {
            (Some(_), _) => "--kv-cache",
            (None, Some(_)) => "--kv-cache-limit",
            (None, None) => return Ok(()),
        };
        let mut limits = writer.limits();
        self.set(&mut limits);
        writer.set_limits(limits).context(flag)
    }

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

    /// Notes the memory that the caches took, if a flag for them was given.
    pub fn report(&self, writer: &Generator) {
        let asked = self.kv_cache.is_some() || self.kv_cache_limit.is_some();
        if let (true, Some(engine)) = (asked, writer.batching()) {
            let (kind, most) = (engine.limits().cache.name(), engine.usage().most_cache_bytes);
            note(&format!("KV caches in {kind} took up to {:.1} MB", most as f64 / 1e6));
        }
    }
}

/// Flags of guesses.
#[derive(Args)]
#[group(skip)]
#[command(next_help_heading = GUESSES)]
pub struct GuessFlags {
    /// Guess up to N tokens: those that followed the last 3 or more tokens where they stood before
    /// [default: 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=64))]
    lookup: Option<u64>,
    /// Let a smaller model with the same vocabulary guess
    #[arg(long, value_name = "MODEL")]
    draft: Option<String>,
    /// Tokens that it guesses at once [default: 4]
    #[arg(long, value_name = "N", requires = "draft",
          value_parser = clap::value_parser!(u64).range(1..=64))]
    draft_tokens: Option<u64>,
}

impl GuessFlags {
    /// Sets what was given.
    ///
    /// # Errors
    /// If the model cannot check guesses, or the smaller one cannot guess for it.
    pub fn apply(&self, writer: &mut Generator, hub: &Hub) -> Result<()> {
        if let Some(tokens) = self.lookup {
            let lookup = Lookup { tokens: tokens as usize, ..Lookup::default() };
            let limits = BatchLimits { lookup, ..writer.limits() };
            writer.set_limits(limits).context("--lookup")?;
        }
        if let Some(name) = &self.draft {
            let hub = Hub { revision: None, ..hub.clone() };
            let mut draft: Generator = models::open(Some(name), &hub).context("--draft")?;
            let limits = BatchLimits { lookup: Lookup::default(), ..writer.limits() };
            draft.set_limits(limits).context("--draft")?;
            let tokens = self.draft_tokens.unwrap_or(4) as usize;
            writer.set_draft(draft, tokens).context("--draft")?;
        }
        Ok(())
    }

    /// Notes how many guesses were right, if there were any.
    pub fn report(&self, writer: &Generator) {
        let Some(engine) = writer.batching() else { return };
        let guesses = engine.usage().guesses;
        if guesses.guessed > 0 {
            let share = 100.0 * guesses.accepted as f64 / guesses.guessed as f64;
            note(&format!(
                "{} of {} guessed tokens were accepted ({share:.0} %)",
                guesses.accepted, guesses.guessed
            ));
        }
    }
}
