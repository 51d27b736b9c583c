//! Data of one query head, prepared once and used for every block of keys.

use super::*;
use crate::attention::normalize::Stats;
use crate::attention::pair::{Pairwise, TileOperands};
use crate::attention::rows::{Rows, add_dots, pack, packed_len};
use crate::attention::tile::{At, Keys, Tile, each_cell};
use crate::gemm::micro::Product;
use crate::memory::filled;
use std::sync::Arc;

/// Data of one query head for the backward, one block of queries after the other.
pub(super) struct Head {
    pub b: usize,
    pub h: usize,
    pub plans: Vec<Arc<Plan>>,
    packed_q: Scratch,
    packed_dout: Scratch,
    /// Statistics of each block of queries, lane by lane.
    shift: Scratch,
    factor: Scratch,
    pub delta: Scratch,
    pick: Vec<i32>,
}

impl Head {
    pub fn new(job: &Job, b: usize, h: usize) -> Head {
        let engine = job.engine;
        let Dims { t, e, .. } = engine.grid.dims;
        let each = engine.block_queries();
        let blocks = t.div_ceil(each);
        let lanes = padded(each);
        let source = engine.source(b, h, 0, std::ptr::null());
        let d = source.queries.width;
        let lists = engine.walk == Walk::Lists;
        let (q_len, o_len) = (packed_len(each, d), packed_len(each, e));
        let room = |len: usize| Scratch::new(if lists { 0 } else { blocks * len });
        let mut head = Head {
            b,
            h,
            plans: Vec::with_capacity(blocks),
            packed_q: room(q_len),
            packed_dout: room(o_len),
            shift: Scratch::zeroed(blocks * lanes),
            factor: Scratch::zeroed(blocks * lanes),
            delta: Scratch::zeroed(blocks * lanes),
            pick: filled(-1, &[blocks, lanes]),
        };
        let row = (b * engine.grid.dims.h + h) * t;
        for qb in 0..blocks {
            checkpoint();
            let (i0, n) = (qb * each, each.min(t - qb * each));
            head.plans.push(engine.plan(b, h, i0..i0 + n));
            let (at, from) = (qb * lanes, row + i0);
            head.shift[at..at + n].copy_from_slice(&job.saved.shift[from..from + n]);
            head.factor[at..at + n].copy_from_slice(&job.saved.factor[from..from + n]);
            if !job.saved.pick.is_empty() {
                head.pick[at..at + n].copy_from_slice(&job.saved.pick[from..from + n]);
            }
            // SAFETY: the block's queries exist, and so do their gradients.
            unsafe {
                if !lists {
                    let queries = source.queries.from(i0);
                    pack(queries, n, source.scale, &mut head.packed_q[qb * q_len..]);
                }
                if let Some((_, dout)) = job.upstream.out.filter(|_| !lists) {
                    let rows = Rows::of(&dout, b, h).from(i0);
                    pack(rows, n, 1.0, &mut head.packed_dout[qb * o_len..]);
                }
            }
        }
        // Lanes are whole vectors, and so are blocks: query `i` has lane `i`.
        match engine.spec.normalizer.delta() {
            Delta::FromOutput => job.along_output(b, h, &mut head.delta[..t]),
            Delta::LogProb => {
                if let Some(given) = job.upstream.log_prob {
                    head.delta[..t].copy_from_slice(&given[row..row + t]);
                }
            }
            Delta::FromSlopes => (0..blocks).for_each(|qb| head.delta_from_slopes(job, qb)),
            Delta::Zero => {}
        }
        head
    }

    pub fn block(&self, engine: &Engine, qb: usize) -> (usize, usize, usize) {
        let each = engine.block_queries();
        (qb * each, each.min(engine.grid.dims.t - qb * each), padded(each))
    }

    pub fn stats(&self, at: Range<usize>) -> Stats<'_> {
        Stats {
            shift: &self.shift[at.clone()],
            factor: &self.factor[at.clone()],
            pick: &self.pick[at],
        }
    }

    pub fn source(&self, engine: &Engine, qb: usize) -> TileOperands {
        let i0 = qb * engine.block_queries();
        let mut source = engine.source(self.b, self.h, i0, std::ptr::null());
        let len = packed_len(engine.block_queries(), source.queries.width);
        source.packed = self.packed_q.as_ptr().wrapping_add(qb * len);
        source
    }

    /// Fills a tile with the gradient of the weights: `dp[j, i] = v[j] · dout[i]`, plus the
    /// gradient of the weights as an output.
    ///
    /// # Safety
    /// The block's queries and keys must exist.
    pub unsafe fn weight_gradient(&self, job: &Job, at: &At, qb: usize, dp: &mut Tile) {
        let engine = job.engine;
        if let Some((_, dout)) = job.upstream.out {
            let len = packed_len(engine.block_queries(), dout.shape[3]);
            let source = TileOperands {
                packed: self.packed_dout.as_ptr().wrapping_add(qb * len),
                queries: Rows::of(&dout, self.b, self.h).from(at.i0),
                scale: 1.0,
                keys: engine.values(self.b, self.h),
                weights: std::ptr::null(),
                place: (self.h, at.i0),
            };
            // SAFETY: passed on.
            unsafe { Product.fill(&source, at.keys, dp) };
            if let Keys::Listed { .. } = at.keys {
                engine.mask(at, &self.plans[qb], dp, 0.0);
            }
        } else {
            dp.data.fill(0.0);
        }
        if let Some((_, dw)) = job.upstream.weights {
            each_cell(at, dp, |dp, i, j| *dp += dw.get(self.b, self.h, i, j));
        }
        engine.after_weights(at, dp);
    }

    /// `δ = Σ_j g·dp / Σ_j g`
    fn delta_from_slopes(&mut self, job: &Job, qb: usize) {
        let engine = job.engine;
        let (i0, n, _) = self.block(engine, qb);
        let (lanes, source) = (padded(n), self.source(engine, qb));
        let at_lane = qb * padded(engine.block_queries());
        let (mut above, mut below) = (vec![0f32; n], vec![0f32; n]);
        let plan = &*self.plans[qb];
        for KeyBlock { keys, cover } in &plan.blocks {
            checkpoint();
            let cells = keys.len() * lanes;
            let (mut g, mut dp) = (Scratch::new(cells), Scratch::new(cells));
            let at =
                At { grid: engine.grid, b: self.b, h: self.h, i0, keys: plan.keys(keys, lanes) };
            let mut g = Tile { data: &mut g, keys: keys.len(), lanes, queries: n, spans: None };
            let mut dp = Tile { data: &mut dp, keys: keys.len(), lanes, queries: n, spans: None };
            // SAFETY: the source is of this head, and the block's keys exist.
            unsafe {
                let from = BlockSource { operands: &source, plan, cover: *cover };
                engine.scores(&at, from, &mut g, None);
                self.weight_gradient(job, &at, qb, &mut dp);
            }
            engine.spec.normalizer.slopes(&at, &mut g, self.stats(at_lane..at_lane + lanes));
            for row in 0..keys.len() {
                for lane in 0..n {
                    let g = g.data[row * lanes + lane];
                    if g != 0.0 {
                        above[lane] += g * dp.data[row * lanes + lane];
                        below[lane] += g;
                    }
                }
            }
        }
        for lane in 0..n {
            let delta = if below[lane] == 0.0 { 0.0 } else { above[lane] / below[lane] };
            self.delta[at_lane + lane] = delta;
        }
    }
}

impl Job<'_> {
    /// `Σ_j p·dp` of each query, from the output of the forward.
    fn along_output(&self, b: usize, h: usize, delta: &mut [f32]) {
        let views = [self.upstream.out, self.upstream.weights];
        for (x, y) in views.into_iter().flatten() {
            // SAFETY: both views have a row for each query.
            unsafe { add_dots(Rows::of(&x, b, h), Rows::of(&y, b, h), delta) };
        }
    }
}
