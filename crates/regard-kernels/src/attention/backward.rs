//! The backward: blocks of keys outside, blocks of queries inside. Scores are made again from
//! what the forward kept; every product of the forward has its two here.
//!
//! A head is one task when there are enough heads. When there are not, the blocks of keys of a
//! head go in parallel: each sums its own keys' and values' gradients, and adds to the queries'
//! in its turn. Both ways add the same numbers in the same order.

use super::engine::{Engine, KEYS_BACKWARD, Plan, Walk, with_engine};
use super::forward::{Parts, Saved};
use super::grid::Dims;
use super::mask::Cover;
use super::normalize::{Delta, Stats};
use super::pair::{Pairwise, Sink, Source, Turn};
use super::rows::{RowBlock, Rows, pack, packed_len, padded, store_rows};
use super::score::{Operand, Operands, Raise};
use super::tile::{At, Keys, Over, Tile, accumulate};
use super::{Attention, Inputs};
use crate::gemm::micro::Product;
use crate::pool::{parallel, threads};
use crate::scratch::Scratch;
use crate::view::{Error, View, ViewMut, bail};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// The gradients that reach an attention.
#[derive(Clone, Copy, Default)]
pub struct Upstream<'a> {
    /// `[B, H, T, E]`: what the forward returned, and its gradient.
    pub out: Option<(View<'a>, View<'a>)>,
    /// `[B, H, T, S]`: the weights, and their gradient, if they were an output too.
    pub weights: Option<(View<'a>, View<'a>)>,
    /// `[B, H, T]`: the gradient of the log-probability of a sampled choice.
    pub log_prob: Option<&'a [f32]>,
}

/// The gradients of the parameters; those of queries, keys and values go where the caller says.
#[derive(Clone, Debug, Default)]
pub struct Gradients {
    /// In the order of [`Attention::params`], contiguous.
    pub params: Vec<Vec<f32>>,
    /// Pairs that were scored.
    pub pairs: u64,
}

impl Attention {
    /// Computes the gradients of everything that the forward depends on. `dq`, `dk` and `dv` have
    /// the shapes of `q`, `k` and `v`, and any strides.
    pub fn backward(
        &self,
        inputs: &Inputs,
        saved: &Saved,
        upstream: &Upstream,
        (dq, dk, dv): (&ViewMut, &ViewMut, &ViewMut),
    ) -> Result<Gradients, Error> {
        let grid = self.check(inputs)?;
        let Dims { b, h, t, s, e, .. } = grid.dims;
        for (name, got, need) in [
            ("dq", dq.shape, inputs.q.shape),
            ("dk", dk.shape, inputs.k.shape),
            ("dv", dv.shape, inputs.v.shape),
        ] {
            if got != need {
                bail!("{name}: got shape {got:?}, need {need:?}");
            }
        }
        for (name, views, need) in
            [("out", upstream.out, [b, h, t, e]), ("weights", upstream.weights, [b, h, t, s])]
        {
            if let Some((x, dx)) = views
                && (x.shape != need || dx.shape != need)
            {
                bail!("{name}: got shapes {:?} and {:?}, need {need:?}", x.shape, dx.shape);
            }
        }
        let rows = b * h * t;
        if saved.shift.len() != rows || saved.factor.len() != rows {
            bail!("saved: got {} queries, need B·H·T = {rows}", saved.shift.len());
        }
        if let Some(given) = upstream.log_prob.filter(|given| given.len() != rows) {
            bail!("log_prob: got {} numbers, need B·H·T = {rows}", given.len());
        }
        Ok(with_engine(self, &grid, inputs, KEYS_BACKWARD, |engine| {
            Job { engine, saved, upstream }.run(inputs, (dq, dk, dv))
        }))
    }
}

struct Job<'a> {
    engine: &'a Engine<'a>,
    saved: &'a Saved,
    upstream: &'a Upstream<'a>,
}

/// Sums that are not rows of queries, keys or values.
struct Sums<'a> {
    /// One for each term, with a part for each batch row and head that the term tells apart.
    terms: Vec<Parts<f32>>,
    /// `[B, H, D′]`
    weights: Parts<f32>,
    /// `[B, H]`
    map: Parts<f32>,
    pairs: AtomicU64,
    engine: &'a Engine<'a>,
}

impl Sums<'_> {
    /// The accumulator of a term.
    ///
    /// # Safety
    /// Only the task that owns the batch row and head, by the terms' scopes, may ask.
    #[allow(clippy::mut_from_ref)]
    unsafe fn term(&self, term: usize, b: usize, h: usize) -> &mut [f32] {
        let bound = self.engine.terms[term];
        let ((per_batch, per_head), len) = (bound.scope(), bound.accumulator());
        let heads = if per_head { self.engine.grid.dims.h } else { 1 };
        let at = if per_batch { b * heads } else { 0 } + if per_head { h } else { 0 };
        // SAFETY: the caller vouches for it.
        unsafe { self.terms[term].part(at * len, len) }
    }
}

/// Where the engine writes rows: the caller's memory, or what the score made.
struct Targets<'a> {
    dq: &'a ViewMut<'a>,
    dk: &'a ViewMut<'a>,
    dv: &'a ViewMut<'a>,
}

impl Job<'_> {
    fn run(&self, inputs: &Inputs, (dq, dk, dv): (&ViewMut, &ViewMut, &ViewMut)) -> Gradients {
        let engine = self.engine;
        let Dims { b, h, .. } = engine.grid.dims;
        let lowered = engine.lowered;
        let mut terms: Vec<Vec<f32>> = engine
            .terms
            .iter()
            .map(|term| {
                let (per_batch, per_head) = term.scope();
                let parts = if per_batch { b } else { 1 } * if per_head { h } else { 1 };
                vec![0.0; parts * term.accumulator()]
            })
            .collect();
        let width = lowered.q.view().shape[3];
        let mut weights = vec![0.0; if lowered.pair.weighted() { b * h * width } else { 0 }];
        let mut map = vec![0.0; b * h];
        let (mut made_q, mut made_k) = (made(&lowered.q), made(&lowered.k));
        let pairs = {
            let (q_view, k_view);
            let q = match &lowered.q {
                Operand::Given(_) => dq,
                Operand::Made(_, shape) => {
                    q_view = ViewMut::new(&mut made_q, *shape).expect("made to its shape");
                    &q_view
                }
            };
            let k = match &lowered.k {
                Operand::Given(_) => dk,
                Operand::Made(_, shape) => {
                    k_view = ViewMut::new(&mut made_k, *shape).expect("made to its shape");
                    &k_view
                }
            };
            let sums = Sums {
                terms: terms.iter_mut().map(|sums| Parts::new(sums)).collect(),
                weights: Parts::new(&mut weights),
                map: Parts::new(&mut map),
                pairs: AtomicU64::new(0),
                engine,
            };
            self.fill(&Targets { dq: q, dk: k, dv }, &sums);
            sums.pairs.into_inner()
        };
        let of_score = lowered.terms.len();
        let collect = |(term, sums): (&&dyn super::term::Term, &Vec<f32>)| term.collect(sums);
        let mut of_terms: Vec<_> = engine.terms.iter().zip(&terms).map(collect).collect();
        let of_biases = of_terms.split_off(of_score);
        let spec = engine.spec;
        let dims = &engine.grid.dims;
        let n_params = spec.score.params(dims).len();
        let scale = spec.scale.unwrap_or_else(|| spec.score.default_scale(dims));
        let Inputs { q, k, v, ref params } = *inputs;
        let raise = Raise {
            q: made_q,
            k: made_k,
            weights: super::term::sum_over_batch(
                &weights,
                h,
                width * usize::from(!weights.is_empty()),
            ),
            map: map.iter().map(|x| f64::from(*x)).sum::<f64>() as f32,
            terms: of_terms,
            dq,
            dk,
            dv,
        };
        let operands = Operands { q, k, v, params: &params[..n_params] };
        let mut params = spec.score.raise(engine.grid, operands, scale, raise);
        params.extend(of_biases.into_iter().flatten());
        Gradients { params, pairs }
    }

    /// Runs all tasks.
    fn fill(&self, targets: &Targets, sums: &Sums) {
        let Dims { b, hk, s, .. } = self.engine.grid.dims;
        let lowered = self.engine.lowered;
        let plain =
            self.engine.terms.is_empty() && lowered.map.is_none() && !lowered.pair.weighted();
        let one_pass = self.engine.spec.normalizer.delta() != Delta::FromSlopes;
        let few = b * hk < 2 * threads() && threads() > 1 && s > self.engine.block_keys;
        if few && plain && one_pass && self.engine.walk != Walk::Lists {
            if self.key_blocks_in_parallel(targets, sums) {
                return;
            }
            sums.pairs.store(0, Ordering::Relaxed);
        }
        // Batch rows or heads that share an accumulator are one task's, in order.
        let scope = self.engine.terms.iter().map(|term| term.scope());
        let (per_batch, per_head) = scope.fold((true, true), |x, y| (x.0 && y.0, x.1 && y.1));
        let (nb, nh) = (if per_batch { b } else { 1 }, if per_head { hk } else { 1 });
        parallel(nb * nh, &|unit| {
            let of = |whole: usize, each: bool, at: usize| if each { at..at + 1 } else { 0..whole };
            let heads = (of(b, per_batch, unit / nh), of(hk, per_head, unit % nh));
            if !self.unit(&heads, targets, sums, false) {
                // A value that is not finite may have met a weight of 0.
                self.unit(&heads, targets, sums, true);
            }
        });
    }

    /// All of some batch rows and key heads, one after another. Says whether all is finite.
    fn unit(
        &self,
        (batch, heads): &(Range<usize>, Range<usize>),
        targets: &Targets,
        sums: &Sums,
        careful: bool,
    ) -> bool {
        let group = self.engine.grid.dims.group();
        let width = self.engine.lowered.q.view().shape[3];
        let mut finite = true;
        for b in batch.clone() {
            for h in heads.start * group..heads.end * group {
                // SAFETY: this unit owns the accumulators of its batch rows and heads.
                unsafe {
                    (0..sums.terms.len()).for_each(|term| sums.term(term, b, h).fill(0.0));
                    let row = b * self.engine.grid.dims.h + h;
                    sums.map.part(row, 1).fill(0.0);
                    if self.engine.lowered.pair.weighted() {
                        sums.weights.part(row * width, width).fill(0.0);
                    }
                }
            }
        }
        let mut scored = 0;
        for b in batch.clone() {
            for hk in heads.clone() {
                let heads: Vec<Head> =
                    (hk * group..(hk + 1) * group).map(|h| Head::new(self, b, h)).collect();
                let mut dq: Vec<Scratch> = heads
                    .iter()
                    .map(|_| Scratch::zeroed(self.engine.grid.dims.t * padded(width)))
                    .collect();
                let rows: Vec<Parts<f32>> = dq.iter_mut().map(|dq| Parts::new(dq)).collect();
                for kb in 0..self.key_blocks() {
                    let visit = Visit { job: self, heads: &heads, kb, careful };
                    let (n, ok) = visit.run(targets, sums, &rows, &|_, _| {}, &|_, _| {});
                    scored += n;
                    finite &= ok;
                }
                for (head, dq) in heads.iter().zip(&dq) {
                    finite &= self.store_queries(head, dq, targets);
                }
            }
        }
        if finite || careful {
            sums.pairs.fetch_add(scored, Ordering::Relaxed);
        }
        finite
    }

    fn key_blocks(&self) -> usize {
        match self.engine.walk {
            Walk::Lists => 1,
            _ => self.engine.grid.dims.s.div_ceil(self.engine.block_keys),
        }
    }

    fn store_queries(&self, head: &Head, dq: &[f32], targets: &Targets) -> bool {
        let (t, width) = (self.engine.grid.dims.t, self.engine.lowered.q.view().shape[3]);
        let to = (targets.dq, [head.b, head.h, 0], t);
        // SAFETY: `dq` and the target have a row for each query, and the head is this task's.
        unsafe { store_rows(dq, padded(width), None, self.engine.lowered.scale, to) }
    }

    /// Few heads: blocks of keys in parallel. Returns false if something was not finite.
    fn key_blocks_in_parallel(&self, targets: &Targets, sums: &Sums) -> bool {
        let Dims { b, h, hk, t, .. } = self.engine.grid.dims;
        let (group, blocks) = (h / hk, t.div_ceil(self.engine.block_queries()));
        let width = padded(self.engine.lowered.q.view().shape[3]);
        let mut heads: Vec<Option<Head>> = (0..b * h).map(|_| None).collect();
        let slots = Parts::new(&mut heads);
        parallel(b * h, &|at| {
            // SAFETY: each task fills its own slot.
            unsafe { slots.part(at, 1)[0] = Some(Head::new(self, at / h, at % h)) };
        });
        let heads: Vec<Head> = heads.into_iter().flatten().collect();
        let mut dq: Vec<Scratch> = heads.iter().map(|_| Scratch::zeroed(t * width)).collect();
        let rows: Vec<Parts<f32>> = dq.iter_mut().map(|dq| Parts::new(dq)).collect();
        // The block of keys whose turn it is, for each head and block of queries.
        let turns: Vec<AtomicUsize> = (0..b * h * blocks).map(|_| AtomicUsize::new(0)).collect();
        let finite = AtomicBool::new(true);
        let scored = AtomicU64::new(0);
        // Blocks of keys are claimed in ascending order, so those waited for are running.
        parallel(self.key_blocks() * b * hk, &|task| {
            let (kb, unit) = (task / (b * hk), task % (b * hk));
            let first = unit * group;
            let turn = |g: usize, qb: usize| &turns[(first + g) * blocks + qb];
            let wait = |g: usize, qb: usize| {
                let mut waited = 0u32;
                while turn(g, qb).load(Ordering::Acquire) != kb {
                    std::hint::spin_loop();
                    waited += 1;
                    if waited.is_multiple_of(1024) {
                        std::thread::yield_now();
                    }
                }
            };
            let done = |g: usize, qb: usize| turn(g, qb).store(kb + 1, Ordering::Release);
            let heads = &heads[first..first + group];
            let visit = Visit { job: self, heads, kb, careful: false };
            let (n, ok) = visit.run(targets, sums, &rows[first..first + group], &wait, &|g, qb| {
                wait(g, qb);
                done(g, qb);
            });
            scored.fetch_add(n, Ordering::Relaxed);
            finite.fetch_and(ok, Ordering::Relaxed);
        });
        parallel(b * h, &|at| {
            finite.fetch_and(self.store_queries(&heads[at], &dq[at], targets), Ordering::Relaxed);
        });
        sums.pairs.fetch_add(scored.into_inner(), Ordering::Relaxed);
        finite.into_inner()
    }
}

fn made(operand: &Operand) -> Vec<f32> {
    match operand {
        Operand::Given(_) => vec![],
        Operand::Made(data, _) => vec![0.0; data.len()],
    }
}

/// What the backward needs of one query head, a block of queries after another.
struct Head {
    b: usize,
    h: usize,
    plans: Vec<Plan>,
    packed_q: Scratch,
    packed_dout: Scratch,
    /// Of each block of queries, lane by lane.
    shift: Scratch,
    factor: Scratch,
    delta: Scratch,
    pick: Vec<i32>,
}

impl Head {
    fn new(job: &Job, b: usize, h: usize) -> Head {
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
            pick: vec![-1; blocks * lanes],
        };
        let row = (b * engine.grid.dims.h + h) * t;
        for qb in 0..blocks {
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
            for lane in 0..n {
                head.delta[at + lane] = match engine.spec.normalizer.delta() {
                    Delta::FromOutput => job.along_output(b, h, i0 + lane),
                    Delta::LogProb => job.upstream.log_prob.map_or(0.0, |x| x[from + lane]),
                    Delta::Zero | Delta::FromSlopes => 0.0,
                };
            }
        }
        if engine.spec.normalizer.delta() == Delta::FromSlopes {
            (0..blocks).for_each(|qb| head.delta_from_slopes(job, qb));
        }
        head
    }

    fn block(&self, engine: &Engine, qb: usize) -> (usize, usize, usize) {
        let each = engine.block_queries();
        (qb * each, each.min(engine.grid.dims.t - qb * each), padded(each))
    }

    fn stats(&self, at: Range<usize>) -> Stats<'_> {
        Stats {
            shift: &self.shift[at.clone()],
            factor: &self.factor[at.clone()],
            pick: &self.pick[at],
        }
    }

    fn source(&self, engine: &Engine, qb: usize) -> Source {
        let i0 = qb * engine.block_queries();
        let mut source = engine.source(self.b, self.h, i0, std::ptr::null());
        let len = packed_len(engine.block_queries(), source.queries.width);
        source.packed = self.packed_q.as_ptr().wrapping_add(qb * len);
        source
    }

    /// Fills a tile with the gradient of the weights: `dp[j, i] = v[j] · dout[i]`, plus that of
    /// the weights as an output.
    ///
    /// # Safety
    /// The block's queries and keys must exist.
    unsafe fn weight_gradient(&self, job: &Job, at: &At, qb: usize, dp: &mut Tile) {
        let engine = job.engine;
        if let Some((_, dout)) = job.upstream.out {
            let len = packed_len(engine.block_queries(), dout.shape[3]);
            let source = Source {
                packed: self.packed_dout.as_ptr().wrapping_add(qb * len),
                queries: Rows::of(&dout, self.b, self.h).from(at.i0),
                scale: 1.0,
                keys: engine.values(self.b, self.h),
                weights: std::ptr::null(),
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
            super::tile::each_cell(at, dp, |dp, i, j| *dp += dw.get(self.b, self.h, i, j));
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
        let plan = &self.plans[qb];
        for (keys, cover) in &plan.blocks {
            let cells = keys.len() * lanes;
            let (mut g, mut dp) = (Scratch::new(cells), Scratch::new(cells));
            let at =
                At { grid: engine.grid, b: self.b, h: self.h, i0, keys: plan.keys(keys, lanes) };
            let mut g = Tile { data: &mut g, keys: keys.len(), lanes, queries: n, spans: None };
            let mut dp = Tile { data: &mut dp, keys: keys.len(), lanes, queries: n, spans: None };
            // SAFETY: the source is of this head, and the block's keys exist.
            unsafe {
                engine.scores(&at, (&source, plan, *cover), &mut g, None);
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
    /// `Σ_j p·dp` from what the forward returned.
    fn along_output(&self, b: usize, h: usize, i: usize) -> f32 {
        let dot = |x: &View, y: &View, n: usize| {
            let (x, y) = (Rows::of(x, b, h).from(i), Rows::of(y, b, h).from(i));
            // Eight sums, so that they need not wait for each other.
            let mut sums = [0f32; 8];
            // SAFETY: both views have row `i` of width `n`.
            let term = |d: usize| unsafe { x.get(0, d) * y.get(0, d) };
            let whole = n / 8 * 8;
            for d in (0..whole).step_by(8) {
                (0..8).for_each(|l| sums[l] += term(d + l));
            }
            let rest: f32 = (whole..n).map(term).sum();
            sums.iter().sum::<f32>() + rest
        };
        let Dims { e, s, .. } = self.engine.grid.dims;
        self.upstream.out.map_or(0.0, |(out, dout)| dot(&out, &dout, e))
            + self.upstream.weights.map_or(0.0, |(w, dw)| dot(&w, &dw, s))
    }
}

/// One block of keys against all queries of the heads that share it.
struct Visit<'a> {
    job: &'a Job<'a>,
    heads: &'a [Head],
    kb: usize,
    careful: bool,
}

type At2<'a> = &'a dyn Fn(usize, usize);

impl Visit<'_> {
    /// Waits with `wait(head, block)` before it adds to queries, and calls `done(head, block)` for
    /// every block of queries in order. Returns the scored pairs and whether keys' and values'
    /// gradients are finite.
    fn run(
        &self,
        to: &Targets,
        sums: &Sums,
        dq: &[Parts<f32>],
        wait: At2,
        done: At2,
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
                let found = if lists {
                    plan.blocks.first()
                } else {
                    let of = |(keys, _): &(Range<usize>, Cover)| (keys.start / each).cmp(&self.kb);
                    plan.blocks.binary_search_by(of).ok().map(|at| &plan.blocks[at])
                };
                if let Some(block) = found {
                    let n = head.block(engine, qb).1;
                    // SAFETY: rows of this block of queries are touched only in this task's turn.
                    let rows =
                        unsafe { dq[g].part(qb * engine.block_queries() * wide_d, n * wide_d) };
                    let turn =
                        Turn { rows: rows.as_mut_ptr(), len: rows.len(), wait: &|| wait(g, qb) };
                    let from = if lists { 0 } else { block.0.start - j0 };
                    self.block(
                        head,
                        qb,
                        block,
                        (turn, &mut dk[from * wide_d..], &mut dv[from * wide_e..]),
                        sums,
                    );
                    pairs += plan.pairs(&block.0, padded(n), n);
                }
                done(g, qb);
            }
            if own_keys {
                // SAFETY: the head is this task's, and the target has the block's keys.
                finite &= unsafe {
                    store_rows(&dk, wide_d, None, scale, (to.dk, [head.b, head.h, j0], nj))
                };
                dk.fill(0.0);
            }
        }
        let (b, h) = (self.heads[0].b, self.heads[0].h);
        // SAFETY: the block of keys is this task's, and the targets have it.
        unsafe {
            if !own_keys {
                finite &=
                    store_rows(&dk, wide_d, None, scale, (to.dk, [b, engine.key_head(h), j0], nj));
            }
            let hk = h / engine.grid.dims.group();
            finite &= store_rows(&dv, wide_e, None, 1.0, (to.dv, [b, hk, j0], nj));
        }
        (pairs, finite)
    }

    /// One block of the score matrix.
    fn block(
        &self,
        head: &Head,
        qb: usize,
        block: &(Range<usize>, Cover),
        (turn, dk, dv): (Turn, &mut [f32], &mut [f32]),
        sums: &Sums,
    ) {
        let (job, engine) = (self.job, self.job.engine);
        let (i0, n, _) = head.block(engine, qb);
        let lanes = padded(n);
        let (keys, cover) = block;
        let cells = keys.len() * lanes;
        let plan = &head.plans[qb];
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
            engine.scores(&at, (&source, plan, *cover), &mut scores, kept);
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
        engine.spec.normalizer.gradient(&at, (&mut scores, &mut dp), stats, delta);
        let (mut p, mut ds) = (scores, dp);
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
        let width = source.queries.width;
        let weights = match engine.lowered.pair.weighted() {
            // SAFETY: this task owns its head's sums.
            true => unsafe { sums.weights.part(row * width, width) },
            false => &mut [],
        };
        let sink = Sink { queries: turn, keys: dk, weights };
        // SAFETY: as above.
        unsafe { engine.lowered.pair.gradient(&source, (at.keys, self.careful), &mut ds, sink) };
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
        Keys::Listed { .. } => {
            for lane in 0..p.queries {
                for row in 0..p.keys {
                    let Some(key) = keys.key(row, lane) else { break };
                    let weight = p.data[row * p.lanes + lane];
                    for (d, sum) in dv[key * wide..][..dout.width].iter_mut().enumerate() {
                        // SAFETY: the caller vouches for the rows.
                        *sum += weight * unsafe { dout.get(lane, d) };
                    }
                }
            }
        }
    }
}
