//! The forward: one pass over the keys of each block of queries.

use super::engine::{BlockSource, Engine, KEYS, KeyBlock, Walk, with_engine};
use super::grid::Dims;
use super::normalize::NormalizerState;
use super::rows::{RowTarget, pack, packed_len, padded, store_rows};
use super::sums::Sums;
use super::tile::{At, Keys, Tile};
use super::{Attention, AttentionInputs};
use crate::memory::{filled, zeros};
use crate::pool::{Parts, checkpoint, parallel_ranges};
use crate::scratch::Scratch;
use crate::view::{Error, ViewMut, bail};
use std::sync::atomic::{AtomicU64, Ordering};

/// Values saved by the forward for the backward: two per query, and a hard choice.
#[derive(Clone, Debug, Default)]
pub struct SavedAttention {
    /// Subtracted from a score, `[B, H, T]`; for softmax the maximum.
    pub shift: Vec<f32>,
    /// Factor of the weights, `[B, H, T]`; for softmax the reciprocal of the sum, 0 for a query
    /// without keys.
    pub factor: Vec<f32>,
    /// Chosen key of hard attention, `[B, H, T]`, −1 for none; empty for other normalisers.
    pub pick: Vec<i32>,
    /// Log-probability of a hard choice, `[B, H, T]`, 0 for none; empty for other normalisers.
    pub log_prob: Vec<f32>,
    /// Number of query–key pairs that were scored.
    pub pairs: u64,
}

impl SavedAttention {
    /// Returns the log-sum-exp of each query's scores, `[B, H, T]`; −∞ for a query without keys
    /// (softmax only).
    pub fn log_sum_exp(&self) -> Vec<f32> {
        let rows = self.shift.iter().zip(&self.factor);
        rows.map(
            |(shift, factor)| if *factor == 0.0 { f32::NEG_INFINITY } else { shift - factor.ln() },
        )
        .collect()
    }
}

impl Attention {
    /// Computes `out`, `[B, H, T, E]`, with any strides.
    ///
    /// # Errors
    /// If an argument is invalid; see [`Attention::check`].
    pub fn forward(
        &self,
        inputs: &AttentionInputs,
        out: &ViewMut,
    ) -> Result<SavedAttention, Error> {
        let grid = self.check(inputs)?;
        let Dims { b, h, t, e, .. } = grid.dims;
        if out.shape != [b, h, t, e] {
            bail!("out: got shape {:?}, need [B,H,T,E] = {:?}", out.shape, [b, h, t, e]);
        }
        let rows = b * h * t;
        let mut saved = SavedAttention {
            shift: zeros(&[rows]),
            factor: zeros(&[rows]),
            ..SavedAttention::default()
        };
        if self.normalizer.chooses() {
            saved.pick = filled(-1, &[rows]);
            saved.log_prob = zeros(&[rows]);
        }
        let pairs = AtomicU64::new(0);
        with_engine(self, &grid, inputs, KEYS, |engine| {
            let queries = engine.block_queries();
            let blocks = t.div_ceil(queries);
            let kept = Kept {
                shift: Parts::new(&mut saved.shift),
                factor: Parts::new(&mut saved.factor),
                pick: Parts::new(&mut saved.pick),
                log_prob: Parts::new(&mut saved.log_prob),
            };
            let run = |b: usize, h: usize, i0: usize| {
                let block = QueryBlock { b, h, i0, n: queries.min(t - i0) };
                let (scored, finite) = block.run(engine, out, &kept, false);
                // A value that is not finite may have been multiplied by a weight of 0.
                if finite { scored } else { block.run(engine, out, &kept, true).0 }
            };
            // Blocks of lists are small: several per task, with the heads of a block in sequence,
            // because they share its lists and often its cache lines.
            let lists = engine.walk == Walk::Lists;
            parallel_ranges(b * h * blocks, if lists { LISTS_PER_TASK } else { 1 }, &|from, to| {
                let scored = (from..to).map(|at| match lists {
                    true => run(at / (h * blocks), at % h, at / h % blocks * queries),
                    false => run(at / (h * blocks), at / blocks % h, at % blocks * queries),
                });
                pairs.fetch_add(scored.sum(), Ordering::Relaxed);
            });
        });
        saved.pairs = pairs.into_inner();
        Ok(saved)
    }
}

/// Blocks per task when each query has a list.
const LISTS_PER_TASK: usize = 16;

struct Kept<'a> {
    shift: Parts<'a, f32>,
    factor: Parts<'a, f32>,
    pick: Parts<'a, i32>,
    log_prob: Parts<'a, f32>,
}

/// A block of queries of one head.
#[derive(Clone, Copy)]
pub(super) struct QueryBlock {
    pub b: usize,
    pub h: usize,
    /// First query.
    pub i0: usize,
    /// Number of queries.
    pub n: usize,
}

impl QueryBlock {
    /// Returns the number of scored pairs, and whether all results are finite.
    fn run(&self, engine: &Engine, out: &ViewMut, kept: &Kept, careful: bool) -> (u64, bool) {
        let QueryBlock { b, h, i0, n } = *self;
        let (lanes, wide) = (padded(n), padded(engine.grid.dims.e));
        let plan = engine.plan(b, h, i0..i0 + n);
        let normalizer = &*engine.spec.normalizer;
        let mut state = normalizer.start(lanes);
        let mut sums = Sums::new(n, engine.grid.dims.e, engine.walk == Walk::Lists || careful);
        let mut packed = Scratch::new(0);
        let mut source = engine.source(b, h, i0, std::ptr::null());
        if plan.index_is_empty() {
            packed = Scratch::new(packed_len(lanes, source.queries.width));
            // SAFETY: the block's queries exist.
            unsafe { pack(source.queries, n, source.scale, &mut packed) };
            source.packed = packed.as_ptr();
        }
        let values = engine.values(b, h);
        let at = |keys| At { grid: engine.grid, b, h, i0, keys };
        let add = |at: &At, tile: &mut Tile, sums: &mut Sums| {
            engine.after_weights(at, tile);
            // SAFETY: the values of the block's keys exist.
            unsafe { sums.add(at.keys, tile, values, careful) };
        };
        let mut pairs = 0;
        if normalizer.needs_strip() {
            let total: usize = plan.blocks.iter().map(|block| block.keys.len()).sum();
            let mut strip = Scratch::new(total * lanes);
            for_blocks(&plan.blocks, |KeyBlock { keys, cover }, from| {
                let at = at(plan.keys(keys, lanes));
                let data = &mut strip[from * lanes..][..keys.len() * lanes];
                let mut tile = Tile { data, keys: keys.len(), lanes, queries: n, spans: None };
                let from = BlockSource { operands: &source, plan: &plan, cover: *cover };
                // SAFETY: the source is of this head, and the block's keys exist.
                unsafe { engine.scores(&at, from, &mut tile, None) };
                pairs += plan.pairs(keys, lanes, n);
            });
            let mut all = Tile { data: &mut strip, keys: total, lanes, queries: n, spans: None };
            normalizer.block(&at(Keys::Run { start: 0, len: total }), &mut all, &mut state);
            for_blocks(&plan.blocks, |KeyBlock { keys, .. }, from| {
                let data = &mut strip[from * lanes..][..keys.len() * lanes];
                let mut tile = Tile { data, keys: keys.len(), lanes, queries: n, spans: None };
                add(&at(plan.keys(keys, lanes)), &mut tile, &mut sums);
            });
        } else {
            let largest = plan.blocks.iter().map(|block| block.keys.len()).max().unwrap_or(0);
            let mut scores = Scratch::new(largest * lanes);
            for block in &plan.blocks {
                checkpoint();
                let KeyBlock { keys, cover } = block;
                let at = at(plan.keys(keys, lanes));
                let data = &mut scores[..keys.len() * lanes];
                let spans = plan.spans(block, n);
                let spans = spans.as_ref();
                let mut tile = Tile { data, keys: keys.len(), lanes, queries: n, spans };
                let from = BlockSource { operands: &source, plan: &plan, cover: *cover };
                // SAFETY: the source is of this head, and the block's keys exist.
                unsafe { engine.scores(&at, from, &mut tile, None) };
                normalizer.block(&at, &mut tile, &mut state);
                sums.rescale(&state.rescale);
                add(&at, &mut tile, &mut sums);
                pairs += plan.pairs(keys, lanes, n);
            }
        }
        normalizer.finish(&mut state);
        let row = (b * engine.grid.dims.h + h) * engine.grid.dims.t + i0;
        // SAFETY: each task keeps and stores its own rows.
        let finite = unsafe {
            kept.shift.part(row, n).copy_from_slice(&state.shift[..n]);
            kept.factor.part(row, n).copy_from_slice(&state.sum[..n]);
            if normalizer.chooses() {
                keep_choice(&state, kept.pick.part(row, n), kept.log_prob.part(row, n));
            }
            let factors = !(normalizer.chooses() || normalizer.needs_strip());
            let to = RowTarget { view: out, first: [b, h, i0], rows: n };
            store_rows(&sums.into_rows(), wide, factors.then_some(&*state.sum), 1.0, to)
        };
        drop(packed);
        (pairs, finite)
    }
}

/// Calls `f` with each block and the number of keys in the blocks before it.
fn for_blocks(blocks: &[KeyBlock], mut f: impl FnMut(&KeyBlock, usize)) {
    let mut from = 0;
    for block in blocks {
        checkpoint();
        f(block, from);
        from += block.keys.len();
    }
}

fn keep_choice(state: &NormalizerState, pick: &mut [i32], log_prob: &mut [f32]) {
    for lane in 0..pick.len() {
        pick[lane] = state.pick.get(lane).copied().unwrap_or(-1);
        log_prob[lane] = match pick[lane] {
            -1 => 0.0,
            _ => state.best[lane].1 - state.shift[lane] + state.sum[lane].ln(),
        };
    }
}
