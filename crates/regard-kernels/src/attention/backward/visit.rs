//! One block of keys: the products of the backward, in the order of execution.

use super::head::Head;
use super::*;
use crate::attention::listed::AccumulateListed;
use crate::attention::pair::{Sink, Turn};
use crate::attention::rows::{RowBlock, Rows};
use crate::attention::tile::{At, Keys, Over, Tile, accumulate, accumulate_listed};

/// One block of keys against all queries of the heads that share it.
pub(super) struct Visit<'a> {
    pub job: &'a Job<'a>,
    pub heads: &'a [Head],
    pub kb: usize,
    pub careful: bool,
}

/// Sums that one block of the score matrix adds to.
struct BlockGradients<'a> {
    /// Rows of the block's queries.
    dq: Turn<'a>,
    /// Rows of the keys, from the block's first.
    dk: &'a mut [f32],
    /// Rows of the values, from the block's first.
    dv: &'a mut [f32],
}

/// Called with a head of the group and a block of queries.
type Each<'a> = &'a dyn Fn(usize, usize);

impl Visit<'_> {
    /// Calls `wait(head, block)` before it adds to queries, and `done(head, block)` for every block
    /// of queries in order. Returns the number of scored pairs and whether the gradients of keys
    /// and values are finite.
    ///
    /// # Safety
    /// From when `wait(head, block)` returns until `done(head, block)` is called, no other task may
    /// use the rows of `dq` of that block of queries.
    pub unsafe fn run(
        &self,
        to: &Targets,
        sums: &Sums,
        dq: &[Parts<f32>],
        wait: Each,
        done: Each,
    ) -> (u64, bool) {
        let engine = self.job.engine;
        let Dims { s, e, .. } = engine.grid.dims;
        let (d, wide_e) = (engine.lowered.q.view().shape[3], padded(e));
        let wide_d = padded(d);
        let lists = engine.walk == Walk::Lists;
        let each = engine.block_keys;
        let (j0, nj) = if lists { (0, s) } else { (self.kb * each, each.min(s - self.kb * each)) };
        let mut dk = Scratch::zeroed(nj * wide_d);
        let mut dv = Scratch::zeroed(nj * wide_e);
        let own_keys = engine.lowered.k.view().shape[1] != engine.grid.dims.hk;
        let (mut pairs, mut finite) = (0, true);
        let scale = engine.lowered.scale;
        for (g, head) in self.heads.iter().enumerate() {
            for (qb, plan) in head.plans.iter().enumerate() {
                checkpoint();
                let found = if lists {
                    plan.blocks.first()
                } else {
                    let of = |block: &KeyBlock| (block.keys.start / each).cmp(&self.kb);
                    plan.blocks.binary_search_by(of).ok().map(|at| &plan.blocks[at])
                };
                if let Some(block) = found {
                    let n = head.block(engine, qb).1;
                    let first = qb * engine.block_queries() * wide_d;
                    let wait = || wait(g, qb);
                    // SAFETY: by the caller, the rows are this task's from `wait` until `done`
                    // below. The turn ends before that, and each block has one.
                    let turn = unsafe { Turn::new(&dq[g], first..first + n * wide_d, &wait) };
                    let from = if lists { 0 } else { block.keys.start - j0 };
                    let to = BlockGradients {
                        dq: turn,
                        dk: &mut dk[from * wide_d..],
                        dv: &mut dv[from * wide_e..],
                    };
                    self.block(head, qb, block, to, sums);
                    pairs += plan.pairs(&block.keys, padded(n), n);
                }
                done(g, qb);
            }
            if own_keys {
                // SAFETY: the head is this task's, and the target has the block's keys.
                finite &= unsafe {
                    let to = RowTarget { view: to.dk, first: [head.b, head.h, j0], rows: nj };
                    store_rows(&dk, wide_d, None, scale, to)
                };
                dk.fill(0.0);
            }
        }
        let (b, h) = (self.heads[0].b, self.heads[0].h);
        // SAFETY: the block of keys is this task's, and the targets have it.
        unsafe {
            if !own_keys {
                let first = [b, engine.key_head(h), j0];
                let to = RowTarget { view: to.dk, first, rows: nj };
                finite &= store_rows(&dk, wide_d, None, scale, to);
            }
            let hk = h / engine.grid.dims.group();
            let to = RowTarget { view: to.dv, first: [b, hk, j0], rows: nj };
            finite &= store_rows(&dv, wide_e, None, 1.0, to);
        }
        (pairs, finite)
    }

    /// One block of the score matrix.
    fn block(&self, head: &Head, qb: usize, block: &KeyBlock, to: BlockGradients, sums: &Sums) {
        let (job, engine) = (self.job, self.job.engine);
        let (i0, n, _) = head.block(engine, qb);
        let lanes = padded(n);
        let KeyBlock { keys, cover } = block;
        let BlockGradients { dq, dk, dv } = to;
        let cells = keys.len() * lanes;
        let plan = &*head.plans[qb];
        let spans = plan.spans(block, n);
        let spans = spans.as_ref();
        let Head { b, h, .. } = *head;
        let at = At { grid: engine.grid, b, h, i0, keys: plan.keys(keys, lanes) };
        let source = head.source(engine, qb);
        let (mut scores, mut dp) = (Scratch::new(cells), Scratch::new(cells));
        let mut before = Scratch::new(if engine.lowered.map.is_some() { cells } else { 0 });
        let mut scores = Tile { data: &mut scores, keys: keys.len(), lanes, queries: n, spans };
        let mut dp = Tile { data: &mut dp, keys: keys.len(), lanes, queries: n, spans };
        // SAFETY: the source is of this head, and the block's queries and keys exist.
        unsafe {
            let kept = engine.lowered.map.as_ref().map(|_| &mut before[..]);
            let from = BlockSource { operands: &source, plan, cover: *cover };
            engine.scores(&at, from, &mut scores, kept);
            head.weight_gradient(job, &at, qb, &mut dp);
        }
        let after = engine.terms.iter().any(|term| term.after());
        let mut product = Scratch::new(if after { cells } else { 0 });
        if after {
            product.copy_from_slice(dp.data);
        }
        let lane = qb * padded(engine.block_queries());
        let stats = head.stats(lane..lane + lanes);
        let delta = &head.delta[lane..lane + lanes];
        engine.spec.normalizer.gradient(&at, &mut scores, &mut dp, stats, delta);
        let (mut p, mut ds) = (scores, dp);
        // Lanes without a query must not contribute.
        for row in 0..if n < lanes { keys.len() } else { 0 } {
            ds.row(row)[n..].fill(0.0);
        }
        if self.careful {
            engine.mask(&at, plan, &mut p, 0.0);
            engine.mask(&at, plan, &mut ds, 0.0);
        }
        if after {
            product
                .iter_mut()
                .zip(p.data.iter())
                .for_each(|(dp, p)| *dp = if *p == 0.0 { 0.0 } else { *dp * p });
            let mut product = Tile { data: &mut product, ..p };
            // SAFETY: this task owns the accumulators of its head.
            self.term_gradients(&at, &mut product, sums, true);
            p = Tile { data: p.data, ..product };
        }
        engine.after_weights(&at, &mut p);
        if let Some((_, dout)) = job.upstream.out {
            // forward: out[i] += Σ_j p[j, i] · v[j]
            let rows = Rows::of(&dout, b, h).from(i0);
            // SAFETY: the gradients of the block's queries exist.
            unsafe { add_by_key(at.keys, &p, rows, dv, self.careful) };
        }
        self.term_gradients(&at, &mut ds, sums, false);
        let row = b * engine.grid.dims.h + h;
        if let Some(map) = &engine.lowered.map {
            let before =
                Tile { data: &mut before, keys: keys.len(), lanes, queries: n, spans: None };
            // SAFETY: this task owns its head's sum.
            map.gradient(&at, &before, &mut ds, unsafe { &mut sums.map.part(row, 1)[0] });
        }
        // Summed here and added once: the sums of heads share cache lines, which other threads use.
        let width = if engine.lowered.pair.weighted() { source.queries.width } else { 0 };
        let mut weights = Scratch::zeroed(width);
        let added = engine.lowered.pair.added();
        // SAFETY: the source is of this head, and this task owns its head's sums.
        let sum = unsafe {
            let added = sums.added.part(row * added, added);
            let sink = Sink { queries: dq, keys: dk, weights: &mut weights, added };
            engine.lowered.pair.gradient(&source, at.keys, self.careful, &mut ds, sink);
            sums.weights.part(row * width, width)
        };
        sum.iter_mut().zip(weights.iter()).for_each(|(sum, x)| *sum += x);
    }

    fn term_gradients(&self, at: &At, ds: &mut Tile, sums: &Sums, after: bool) {
        for (index, term) in self.job.engine.terms.iter().enumerate() {
            if term.after() == after {
                // SAFETY: this task owns the accumulators of its head.
                term.gradient(at, ds, unsafe { sums.term(index, at.b, at.h) });
            }
        }
    }
}

/// `dv[j] += Σ_i p[j, i] · dout[i]`
///
/// # Safety
/// The block's rows must exist.
unsafe fn add_by_key(keys: Keys, p: &Tile, dout: Rows, dv: &mut [f32], careful: bool) {
    let wide = padded(dout.width);
    match keys {
        // SAFETY: the caller vouches for the rows.
        Keys::Run { .. } => unsafe {
            let block = RowBlock::new(dout, p.queries, careful);
            accumulate(p, Over::Queries, &block, dv, wide);
        },
        // SAFETY: the caller vouches for the rows.
        Keys::Listed { .. } => unsafe {
            let (tile, over, rows, target) = (p, Over::Queries, dout, dv);
            accumulate_listed(AccumulateListed { tile, keys, over, rows, target, wide });
        },
    }
}
