//! The backward: blocks of keys outside, blocks of queries inside. Scores are recomputed from the
//! statistics saved by the forward; every product of the forward has its two here.
//!
//! A head is one task when there are enough heads. Otherwise the blocks of keys of a head run in
//! parallel: each sums its own keys' and values' gradients, and adds to the queries' in its turn.
//! Both ways add the same values in the same order.

mod head;
mod visit;

use crate::attention::engine::{
    BlockSource, Engine, KEYS_BACKWARD, KeyBlock, Plan, Walk, with_engine,
};
use crate::attention::forward::SavedAttention;
use crate::attention::grid::Dims;
use crate::attention::normalize::Delta;
use crate::attention::rows::{RowTarget, padded, store_rows};
use crate::attention::score::{Operand, Raise, ScoreOperands};
use crate::attention::term::{Term, sum_over_batch};
use crate::attention::{Attention, AttentionInputs};
use crate::memory::zeros;
use crate::pool::{Parts, Turns, checkpoint, parallel, threads};
use crate::scratch::Scratch;
use crate::view::{Error, View, ViewMut, bail};
use head::Head;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use visit::Visit;

/// Upstream gradients of an attention.
#[derive(Clone, Copy, Default)]
pub struct Upstream<'a> {
    /// Output of the forward and its gradient, `[B, H, T, E]` each.
    pub out: Option<(View<'a>, View<'a>)>,
    /// Weights and their gradient, `[B, H, T, S]` each, if they were an output too.
    pub weights: Option<(View<'a>, View<'a>)>,
    /// Gradient of the log-probability of a sampled choice, `[B, H, T]`.
    pub log_prob: Option<&'a [f32]>,
}

/// Gradients of the parameters; those of queries, keys and values are written to the caller's
/// arrays.
#[derive(Clone, Debug, Default)]
pub struct ParamGradients {
    /// Gradients in the order of [`Attention::params`], contiguous.
    pub params: Vec<Vec<f32>>,
    /// Number of query–key pairs that were scored.
    pub pairs: u64,
}

/// Room for the gradients of queries, keys and values: views with the shapes of `q`, `k` and `v`, and
/// any strides.
pub struct InputGradients<'a> {
    /// Gradient of the queries.
    pub dq: ViewMut<'a>,
    /// Gradient of the keys.
    pub dk: ViewMut<'a>,
    /// Gradient of the values.
    pub dv: ViewMut<'a>,
}

impl Attention {
    /// Computes the gradients of all inputs of the forward; writes those of queries, keys and values
    /// to `to`.
    ///
    /// # Errors
    /// If a shape does not match.
    pub fn backward(
        &self,
        inputs: &AttentionInputs,
        saved: &SavedAttention,
        upstream: &Upstream,
        to: &InputGradients,
    ) -> Result<ParamGradients, Error> {
        let grid = self.check(inputs)?;
        let Dims { b, h, t, s, e, .. } = grid.dims;
        for (name, got, need) in [
            ("dq", to.dq.shape, inputs.q.shape),
            ("dk", to.dk.shape, inputs.k.shape),
            ("dv", to.dv.shape, inputs.v.shape),
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
            bail!("log_prob: got {} elements, need B·H·T = {rows}", given.len());
        }
        Ok(with_engine(self, &grid, inputs, KEYS_BACKWARD, |engine| {
            Job { engine, saved, upstream }.run(inputs, to)
        }))
    }
}

struct Job<'a> {
    engine: &'a Engine<'a>,
    saved: &'a SavedAttention,
    upstream: &'a Upstream<'a>,
}

/// Sums that are not rows of queries, keys or values.
struct Sums<'a> {
    /// One for each term, with a part for each batch row and head that the term distinguishes.
    terms: Vec<Parts<'a, f32>>,
    /// `[B, H, D′]`
    weights: Parts<'a, f32>,
    /// `[B, H]`
    map: Parts<'a, f32>,
    /// `[B, H, edges, D′]`, if there are edge features
    added: Parts<'a, f32>,
    pairs: AtomicU64,
    engine: &'a Engine<'a>,
}

impl Sums<'_> {
    /// The accumulator of a term.
    ///
    /// # Safety
    /// Only the task that owns the batch row and head, by the terms' scopes, may call it.
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

/// Destination of the engine's rows: the caller's memory, or rows computed by the score.
struct Targets<'a> {
    dq: &'a ViewMut<'a>,
    dk: &'a ViewMut<'a>,
    dv: &'a ViewMut<'a>,
}

impl Job<'_> {
    fn run(&self, inputs: &AttentionInputs, to: &InputGradients) -> ParamGradients {
        let InputGradients { dq, dk, dv } = to;
        let engine = self.engine;
        let Dims { b, h, .. } = engine.grid.dims;
        let lowered = engine.lowered;
        let mut terms: Vec<Vec<f32>> = engine
            .terms
            .iter()
            .map(|term| {
                let (per_batch, per_head) = term.scope();
                let parts = if per_batch { b } else { 1 } * if per_head { h } else { 1 };
                zeros(&[parts, term.accumulator()])
            })
            .collect();
        let width = lowered.q.view().shape[3];
        let mut weights = zeros(&[b, h, if lowered.pair.weighted() { width } else { 0 }]);
        let mut map = zeros(&[b, h]);
        let mut added = zeros(&[b, h, lowered.pair.added()]);
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
                added: Parts::new(&mut added),
                pairs: AtomicU64::new(0),
                engine,
            };
            self.fill(&Targets { dq: q, dk: k, dv }, &sums);
            sums.pairs.into_inner()
        };
        let of_score = lowered.terms.len();
        let collect = |(term, sums): (&&dyn Term, &Vec<f32>)| term.collect(sums);
        let mut of_terms: Vec<_> = engine.terms.iter().zip(&terms).map(collect).collect();
        let of_biases = of_terms.split_off(of_score);
        let spec = engine.spec;
        let dims = &engine.grid.dims;
        let n_params = spec.score.params(dims).len();
        let scale = spec.scale.unwrap_or_else(|| spec.score.default_scale(dims));
        let AttentionInputs { q, k, v, ref params } = *inputs;
        let raise = Raise {
            q: made_q,
            k: made_k,
            // Not by whether there are sums: an empty batch has none, but its gradient is zeros.
            weights: sum_over_batch(&weights, h, if lowered.pair.weighted() { width } else { 0 }),
            map: map.iter().map(|x| f64::from(*x)).sum::<f64>() as f32,
            terms: of_terms,
            added: sum_over_batch(&added, h, lowered.pair.added()),
            dq,
            dk,
            dv,
        };
        let operands = ScoreOperands { q, k, v, params: &params[..n_params] };
        let mut params = spec.score.raise(engine.grid, operands, scale, raise);
        params.extend(of_biases.into_iter().flatten());
        ParamGradients { params, pairs }
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
        // Batch rows or heads that share an accumulator belong to one task, in order.
        let scope = self.engine.terms.iter().map(|term| term.scope());
        let (per_batch, per_head) = scope.fold((true, true), |x, y| (x.0 && y.0, x.1 && y.1));
        let (nb, nh) = (if per_batch { b } else { 1 }, if per_head { hk } else { 1 });
        parallel(nb * nh, &|unit| {
            let of = |whole: usize, each: bool, at: usize| if each { at..at + 1 } else { 0..whole };
            let (batch, heads) = (of(b, per_batch, unit / nh), of(hk, per_head, unit % nh));
            if !self.unit(&batch, &heads, targets, sums, false) {
                // A value that is not finite may have been multiplied by a weight of 0.
                self.unit(&batch, &heads, targets, sums, true);
            }
        });
    }

    /// Processes some batch rows and key heads in sequence. Returns whether all results are finite.
    fn unit(
        &self,
        batch: &Range<usize>,
        heads: &Range<usize>,
        targets: &Targets,
        sums: &Sums,
        careful: bool,
    ) -> bool {
        let group = self.engine.grid.dims.group();
        let width = self.engine.lowered.q.view().shape[3];
        let mut finite = true;
        let each_head = || {
            let heads = heads.start * group..heads.end * group;
            batch.clone().flat_map(move |b| heads.clone().map(move |h| (b, h)))
        };
        each_head().for_each(|(b, h)| self.each_sum(sums, b, h, |sum| sum.fill(0.0)));
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
                    // SAFETY: the rows are this task's alone, and it does one visit at a time.
                    let (n, ok) =
                        unsafe { visit.run(targets, sums, &rows, &|_, _| {}, &|_, _| {}) };
                    scored += n;
                    finite &= ok;
                }
                for (head, dq) in heads.iter().zip(&dq) {
                    finite &= self.store_queries(head, dq, targets);
                }
            }
        }
        for (b, h) in each_head() {
            self.each_sum(sums, b, h, |sum| finite &= sum.iter().all(|x| x.is_finite()));
        }
        if finite || careful {
            sums.pairs.fetch_add(scored, Ordering::Relaxed);
        }
        finite
    }

    /// Calls `f` with every sum of one head. Only the unit that owns the head may call it.
    fn each_sum(&self, sums: &Sums, b: usize, h: usize, mut f: impl FnMut(&mut [f32])) {
        let row = b * self.engine.grid.dims.h + h;
        let width = self.engine.lowered.q.view().shape[3];
        // SAFETY: a unit owns the accumulators of its batch rows and heads.
        unsafe {
            (0..sums.terms.len()).for_each(|term| f(sums.term(term, b, h)));
            f(sums.map.part(row, 1));
            let added = self.engine.lowered.pair.added();
            f(sums.added.part(row * added, added));
            if self.engine.lowered.pair.weighted() {
                f(sums.weights.part(row * width, width));
            }
        }
    }

    fn key_blocks(&self) -> usize {
        match self.engine.walk {
            Walk::Lists => 1,
            _ => self.engine.grid.dims.s.div_ceil(self.engine.block_keys),
        }
    }

    fn store_queries(&self, head: &Head, dq: &[f32], targets: &Targets) -> bool {
        let (t, width) = (self.engine.grid.dims.t, self.engine.lowered.q.view().shape[3]);
        let to = RowTarget { view: targets.dq, first: [head.b, head.h, 0], rows: t };
        // SAFETY: `dq` and the target have a row for each query, and the head is this task's.
        unsafe { store_rows(dq, padded(width), None, self.engine.lowered.scale, to) }
    }

    /// Few heads: blocks of keys in parallel. Returns false if a result was not finite.
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
        // For each head and block of queries, blocks of keys have their turns in order.
        let turns = Turns::new(b * h * blocks);
        let finite = AtomicBool::new(true);
        let scored = AtomicU64::new(0);
        // Blocks of keys are claimed in ascending order, so those waited for are running.
        parallel(self.key_blocks() * b * hk, &|task| {
            let (kb, unit) = (task / (b * hk), task % (b * hk));
            let first = unit * group;
            let wait = |g: usize, qb: usize| turns.wait((first + g) * blocks + qb, kb);
            let done = |g: usize, qb: usize| {
                // A block that had nothing to add has not waited yet.
                wait(g, qb);
                turns.pass((first + g) * blocks + qb, kb);
            };
            let heads = &heads[first..first + group];
            let visit = Visit { job: self, heads, kb, careful: false };
            let rows = &rows[first..first + group];
            // SAFETY: tasks that share these heads have different blocks of keys, by which `turns`
            // lets one after another have a block of queries, from `wait` to `done`.
            let (n, ok) = unsafe { visit.run(targets, sums, rows, &wait, &done) };
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
        Operand::Made(data, _) => zeros(&[data.len()]),
    }
}
