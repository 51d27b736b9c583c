//! Shared by forward and backward: the lowered problem, and the walk over the score matrix.

use super::grid::{Dims, Grid};
use super::mask::{Cover, Rule, ScoreBlock};
use super::pair::TileOperands;
use super::rows::{Rows, padded};
use super::score::{Lowered, ScoreOperands};
use super::term::Term;
use super::tile::{At, Keys, Spans, Tile, mask_by_range};
use super::{Attention, AttentionInputs};
use crate::pool::{Parts, parallel_ranges};
use crate::scratch::Scratch;
use crate::simd::isa;
use crate::view::View;
use std::ops::Range;
use std::sync::Arc;

/// Queries per block: four vectors of AVX-512, eight of AVX2.
pub(crate) const QUERIES: usize = 64;
/// Keys per block of the forward. A tile of 64 × 64 stays in the first-level cache: at T = 2048 and
/// D = 128 it ran at 137 GFLOP/s on one thread, 64 × 128 at 127, 64 × 256 at 126.
pub(crate) const KEYS: usize = 64;
/// Keys per block of the backward, which reads the queries once for each: 141 GFLOP/s with 128 to
/// 512, 137 with 64.
pub(crate) const KEYS_BACKWARD: usize = 128;

/// Blocks of queries whose lists are made by one task.
const PLANS_PER_TASK: usize = 64;

/// Way in which the keys of a block of queries are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Walk {
    /// Each query attends to one range of keys.
    Ranges,
    /// Each query has a list of keys.
    Lists,
    /// Any mask, evaluated block by block and cell by cell.
    Cells,
}

/// A lowered problem.
pub(crate) struct Engine<'a> {
    pub spec: &'a Attention,
    pub grid: &'a Grid,
    pub lowered: &'a Lowered<'a>,
    pub terms: Vec<&'a dyn Term>,
    pub v: View<'a>,
    pub walk: Walk,
    /// Keys per block; blocks begin at multiples of it.
    pub block_keys: usize,
    /// Lists are the same for every head: a plan for each batch row and block of queries.
    lists: Vec<Arc<Plan>>,
}

/// Consecutive keys, or rows of lists, that a block of queries visits at once.
pub(crate) struct KeyBlock {
    pub keys: Range<usize>,
    /// How many of its cells the mask allows.
    pub cover: Cover,
}

/// Source of a block of scores.
#[derive(Clone, Copy)]
pub(crate) struct BlockSource<'a> {
    pub operands: &'a TileOperands,
    pub plan: &'a Plan,
    pub cover: Cover,
}

/// The keys of one block of queries.
pub(crate) struct Plan {
    pub blocks: Vec<KeyBlock>,
    /// For [`Walk::Ranges`], a range for each lane.
    low: Scratch,
    high: Scratch,
    /// For [`Walk::Lists`], a key for each row and lane: a range of an array that several plans
    /// share.
    index: (Arc<Vec<u32>>, Range<usize>),
    /// For [`Walk::Lists`], the number of listed keys.
    listed: usize,
}

impl Plan {
    /// Unmasked cells of a partial block, if the ends of the ranges of keys are monotonic in the
    /// queries, as those of causal masks, windows and lengths are.
    pub fn spans(&self, block: &KeyBlock, queries: usize) -> Option<Spans> {
        let KeyBlock { keys, cover } = block;
        if *cover != Cover::Partial || self.low.is_empty() {
            return None;
        }
        let (low, high) = (&self.low[..queries], &self.high[..queries]);
        let rises = |x: &[f32]| x.windows(2).all(|w| w[0] <= w[1]);
        if !rises(low) || !rises(high) {
            return None;
        }
        let (start, len) = (keys.start as f32, keys.len() as f32);
        let inside = |x: f32| (x - start).clamp(0.0, len) as u32;
        let by_query = low.iter().zip(high).map(|(low, high)| (inside(*low), inside(*high)));
        let (mut first, mut last) = (0, 0);
        let by_key = keys.clone().map(|key| {
            // The first query whose range ends behind the key, the last whose range begins before
            // it.
            while first < queries && high[first] <= key as f32 {
                first += 1;
            }
            while last < queries && low[last] <= key as f32 {
                last += 1;
            }
            (first as u32, last as u32)
        });
        Some(Spans { by_key: by_key.collect(), by_query: by_query.collect() })
    }

    /// Whether keys are runs, so that queries must be packed.
    pub fn index_is_empty(&self) -> bool {
        self.index.1.is_empty()
    }

    /// Number of pairs that a block scores.
    pub fn pairs(&self, block: &Range<usize>, lanes: usize, queries: usize) -> u64 {
        match self.keys(block, lanes) {
            Keys::Run { len, .. } => (len * queries) as u64,
            // Lists are one block.
            Keys::Listed { .. } => self.listed as u64,
        }
    }

    /// The keys of a block.
    pub fn keys(&self, block: &Range<usize>, lanes: usize) -> Keys<'_> {
        let (start, len) = (block.start, block.len());
        let (all, own) = &self.index;
        if own.is_empty() {
            Keys::Run { start, len }
        } else {
            let index = &all[own.clone()][start * lanes..block.end * lanes];
            Keys::Listed { index, len, lanes }
        }
    }
}

impl<'a> Engine<'a> {
    pub fn new(
        spec: &'a Attention,
        grid: &'a Grid,
        inputs: &AttentionInputs<'a>,
        lowered: &'a Lowered<'a>,
        biases: &'a [Box<dyn Term + 'a>],
        block_keys: usize,
    ) -> Engine<'a> {
        let terms = lowered.terms.iter().chain(biases).map(|term| &**term).collect();
        let some = grid.dims.t > 0 && grid.dims.b > 0;
        let walk = if some && spec.score.takes_lists() && spec.mask.list(grid, 0, 0, &mut vec![]) {
            Walk::Lists
        } else if some && spec.mask.range(grid, 0, 0).is_some() {
            Walk::Ranges
        } else {
            Walk::Cells
        };
        let mut engine =
            Engine { spec, grid, lowered, terms, v: inputs.v, walk, block_keys, lists: vec![] };
        if walk == Walk::Lists {
            let (t, each) = (grid.dims.t, engine.block_queries());
            let blocks = t.div_ceil(each);
            let mut plans: Vec<Vec<Arc<Plan>>> = vec![];
            plans.resize_with((grid.dims.b * blocks).div_ceil(PLANS_PER_TASK), Vec::new);
            let parts = Parts::new(&mut plans);
            parallel_ranges(grid.dims.b * blocks, PLANS_PER_TASK, &|from, to| {
                let places = (from..to).map(|at| (at / blocks, at % blocks * each));
                let found = engine.list_plans(places.map(|(b, i)| (b, i..(i + each).min(t))));
                // SAFETY: each task fills its own slot.
                unsafe { parts.part(from / PLANS_PER_TASK, 1)[0] = found };
            });
            engine.lists = plans.into_iter().flatten().collect();
        }
        engine
    }

    /// Queries per block. With lists, lanes are padded to the longest list, so it is one vector.
    pub fn block_queries(&self) -> usize {
        if self.walk == Walk::Lists { isa().lanes() } else { QUERIES }
    }

    /// The head of the lowered keys for a query head.
    pub fn key_head(&self, h: usize) -> usize {
        h / (self.grid.dims.h / self.lowered.k.view().shape[1])
    }

    /// The rows of a head, for filling tiles. `packed` must be set by the caller.
    pub fn source(&self, b: usize, h: usize, i0: usize, packed: *const f32) -> TileOperands {
        let (q, k) = (self.lowered.q.view(), self.lowered.k.view());
        let weights = match self.lowered.pair.weighted() {
            true => self.lowered.weights[h * q.shape[3]..].as_ptr(),
            false => std::ptr::null(),
        };
        TileOperands {
            packed,
            queries: Rows::of(&q, b, h).from(i0),
            scale: self.lowered.scale,
            keys: Rows::of(&k, b, self.key_head(h)),
            weights,
            place: (h, i0),
        }
    }

    /// The values of a head.
    pub fn values(&self, b: usize, h: usize) -> Rows {
        Rows::of(&self.v, b, h / self.grid.dims.group())
    }

    /// Finds the keys that a block of queries visits.
    pub fn plan(&self, b: usize, h: usize, queries: Range<usize>) -> Arc<Plan> {
        if self.walk != Walk::Lists {
            return Arc::new(self.make_plan(b, h, queries));
        }
        let each = self.block_queries();
        let at = b * self.grid.dims.t.div_ceil(each) + queries.start / each;
        self.lists[at].clone()
    }

    fn make_plan(&self, b: usize, h: usize, queries: Range<usize>) -> Plan {
        let lanes = padded(queries.len());
        let Dims { s, .. } = self.grid.dims;
        let mut plan = Plan {
            blocks: vec![],
            low: Scratch::new(0),
            high: Scratch::new(0),
            index: Default::default(),
            listed: 0,
        };
        match self.walk {
            Walk::Ranges => self.plan_ranges(b, queries, lanes, &mut plan),
            Walk::Lists => unreachable!("lists are made before the walk"),
            Walk::Cells => {
                for start in (0..s).step_by(self.block_keys) {
                    let keys = start..(start + self.block_keys).min(s);
                    let block = ScoreBlock { b, h, queries: queries.clone(), keys: keys.clone() };
                    match self.spec.mask.cover(self.grid, &block) {
                        Cover::Empty => {}
                        cover => plan.blocks.push(KeyBlock { keys, cover }),
                    }
                }
            }
        }
        plan
    }

    /// The plans of some blocks of queries, which share their memory: with an allocation for each,
    /// threads of a process with many of them waited for the allocator longer than they worked.
    fn list_plans(&self, places: impl Iterator<Item = (usize, Range<usize>)>) -> Vec<Arc<Plan>> {
        let (mut lists, mut ends, mut index, mut found) = (vec![], vec![], vec![], vec![]);
        for (b, queries) in places {
            let lanes = padded(queries.len());
            lists.clear();
            ends.clear();
            ends.push(0);
            for i in queries {
                self.spec.mask.list(self.grid, b, i, &mut lists);
                ends.push(lists.len());
            }
            let longest = ends.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0);
            let start = index.len();
            index.resize(start + longest * lanes, Keys::NONE);
            for (lane, ends) in ends.windows(2).enumerate() {
                for (row, key) in lists[ends[0]..ends[1]].iter().enumerate() {
                    index[start + row * lanes + lane] = *key;
                }
            }
            found.push((start..index.len(), longest, lists.len()));
        }
        let index = Arc::new(index);
        let plan = |(own, longest, listed): (Range<usize>, usize, usize)| Plan {
            blocks: (longest > 0)
                .then_some(KeyBlock { keys: 0..longest, cover: Cover::Full })
                .into_iter()
                .collect(),
            low: Scratch::new(0),
            high: Scratch::new(0),
            index: (index.clone(), own),
            listed,
        };
        found.into_iter().map(|found| Arc::new(plan(found))).collect()
    }

    fn plan_ranges(&self, b: usize, queries: Range<usize>, lanes: usize, plan: &mut Plan) {
        let (s, each) = (self.grid.dims.s as i64, self.block_keys as i64);
        plan.low = Scratch::zeroed(lanes);
        plan.high = Scratch::zeroed(lanes);
        let (mut first, mut last, mut full_from, mut full_to) = (s, 0, 0, s);
        for (lane, i) in queries.enumerate() {
            let (low, high) = self.spec.mask.range(self.grid, b, i).expect("a mask of ranges");
            let (low, high) = (low.clamp(0, s), high.clamp(0, s));
            plan.low[lane] = low as f32;
            plan.high[lane] = high as f32;
            if low < high {
                (first, last) = (first.min(low), last.max(high));
            }
            (full_from, full_to) = (full_from.max(low), full_to.min(high));
        }
        let mut start = first;
        while start < last {
            let end = ((start / each + 1) * each).min(last);
            let keys = start as usize..end as usize;
            if full_from <= start && end <= full_to {
                plan.blocks.push(KeyBlock { keys, cover: Cover::Full });
            } else {
                let seen = |(low, high): (&f32, &f32)| *low < end as f32 && *high > start as f32;
                if plan.low.iter().zip(plan.high.iter()).any(seen) {
                    plan.blocks.push(KeyBlock { keys, cover: Cover::Partial });
                }
            }
            start = end;
        }
    }

    /// Fills a tile with the scores of one block: pairs, map, terms, mask. With `before`, keeps the
    /// scores before the map.
    ///
    /// # Safety
    /// The source must have the block's queries and keys.
    pub unsafe fn scores(
        &self,
        at: &At,
        from: BlockSource,
        tile: &mut Tile,
        before: Option<&mut [f32]>,
    ) {
        // SAFETY: passed on.
        unsafe { self.lowered.pair.fill(from.operands, at.keys, tile) };
        if let Some(map) = &self.lowered.map {
            if let Some(before) = before {
                before.copy_from_slice(tile.data);
            }
            map.apply(at, tile);
        }
        for term in self.terms.iter().filter(|term| !term.after()) {
            term.apply(at, tile);
        }
        if from.cover == Cover::Partial {
            self.mask(at, from.plan, tile, f32::NEG_INFINITY);
        }
    }

    /// Sets the masked cells of a block to `value`.
    pub fn mask(&self, at: &At, plan: &Plan, tile: &mut Tile, value: f32) {
        let (lanes, queries) = (tile.lanes, tile.queries);
        match at.keys {
            Keys::Run { start, .. } if self.walk == Walk::Ranges => {
                mask_by_range(tile, start, &plan.low, &plan.high, value);
            }
            Keys::Run { start, len } => {
                let mut cells = vec![1; len * lanes];
                let (queries, keys) = (at.i0..at.i0 + queries, start..start + len);
                let block = ScoreBlock { b: at.b, h: at.h, queries, keys };
                self.spec.mask.cells(self.grid, &block, lanes, &mut cells);
                for (cell, allowed) in tile.data.iter_mut().zip(cells) {
                    *cell = if allowed != 0 { *cell } else { value };
                }
            }
            Keys::Listed { index, .. } => {
                for (cell, key) in tile.data.iter_mut().zip(index) {
                    *cell = if *key == Keys::NONE { value } else { *cell };
                }
            }
        }
    }

    /// Multiplies weights, or their gradient, by the factors of dropout and of the terms after the
    /// normaliser.
    pub fn after_weights(&self, at: &At, tile: &mut Tile) {
        for term in self.terms.iter().filter(|term| term.after()) {
            term.apply(at, tile);
        }
        if let Some(dropout) = self.spec.dropout {
            dropout.apply(at, tile);
        }
    }
}

/// Lowers a problem and calls `run` with the engine.
pub(crate) fn with_engine<R>(
    spec: &Attention,
    grid: &Grid,
    inputs: &AttentionInputs,
    block_keys: usize,
    run: impl FnOnce(&Engine) -> R,
) -> R {
    let dims = &grid.dims;
    let of_score = spec.score.params(dims).len();
    let scale = spec.scale.unwrap_or_else(|| spec.score.default_scale(dims));
    let AttentionInputs { q, k, v, ref params } = *inputs;
    let lowered =
        spec.score.lower(grid, ScoreOperands { q, k, v, params: &params[..of_score] }, scale);
    let mut from = of_score;
    let mut biases = vec![];
    for bias in &spec.biases {
        let count = bias.params(dims).len();
        biases.push(bias.bind(grid, &params[from..from + count]));
        from += count;
    }
    run(&Engine::new(spec, grid, inputs, &lowered, &biases, block_keys))
}
