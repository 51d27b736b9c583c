//! Scores of pairs, feature by feature: how a tile is filled, and what its gradient gives back.
//!
//! A dot product is one kind of pair; the other scores differ only in what a feature of a query
//! and a key adds to the sum.

use super::rows::{RowBlock, Rows, padded};
use super::tile::{Keys, Over, Tile, accumulate};
use crate::gemm::micro::{Left, Limits, Pair, Product, Right, Size, Target, panel_width, product};
use crate::scratch::Scratch;
use crate::simd::{Kernel, Simd, dispatch};

/// A pair whose features are not simply multiplied.
pub(crate) trait Feature: Pair + 'static {
    /// The feature's value before its weight, `f(key, query)`.
    fn value<S: Simd>(self, s: S, key: S::V, query: S::V) -> S::V;
    /// The derivatives of the weighted feature by key and by query.
    fn slopes<S: Simd>(self, s: S, key: S::V, query: S::V, w: S::V) -> (S::V, S::V);
}

/// What a tile is filled from, for one head.
pub(crate) struct Source {
    /// Queries as [`super::rows::pack`] leaves them.
    pub packed: *const f32,
    /// Queries from the block's first.
    pub queries: Rows,
    /// What queries are multiplied with.
    pub scale: f32,
    /// All keys of the head.
    pub keys: Rows,
    /// The features' weights, if the pair has any.
    pub weights: *const f32,
}

/// Rows that several tasks add to, one after another in a fixed order.
pub(crate) struct Turn<'a> {
    pub rows: *mut f32,
    pub len: usize,
    /// Returns when it is this task's turn.
    pub wait: &'a dyn Fn(),
}

impl<'a> Turn<'a> {
    /// The rows, once it is this task's turn.
    pub fn take(self) -> &'a mut [f32] {
        (self.wait)();
        // SAFETY: the rows exist while the turn does, and until the task passes its turn on,
        // which is after the gradient has been added, no other task touches them.
        unsafe { std::slice::from_raw_parts_mut(self.rows, self.len) }
    }
}

/// Where a tile's gradient goes: sums, with rows padded to whole vectors.
pub(crate) struct Sink<'a> {
    /// The block's queries, `[queries, wide]`.
    pub queries: Turn<'a>,
    /// Keys: the tile's own if it is a run, else all of the head, `[keys, wide]`.
    pub keys: &'a mut [f32],
    /// The features' weights.
    pub weights: &'a mut [f32],
}

/// A way to score pairs. All methods need the memory that `source` speaks of.
pub(crate) trait Pairwise: Send + Sync {
    /// Whether features have weights.
    fn weighted(&self) -> bool;

    /// Fills a tile with scores; cells that are not there get −∞.
    ///
    /// # Safety
    /// The source must have the tile's queries and keys.
    unsafe fn fill(&self, source: &Source, keys: Keys, tile: &mut Tile);

    /// Adds the gradient of the scores, `ds`, to the sink. A gradient by queries lacks the
    /// factor `scale`, one by keys too.
    ///
    /// # Safety
    /// The source must have the tile's queries and keys.
    unsafe fn gradient(&self, source: &Source, at: (Keys, bool), ds: &mut Tile, sink: Sink);
}

/// Fills a tile whose keys are a run.
struct FillRun<'a, P> {
    pair: P,
    keys: Left,
    packed: *const f32,
    weights: *const f32,
    size: Size,
    tile: *mut f32,
    limits: Limits<'a>,
}

impl<P: Pair> Kernel for FillRun<'_, P> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let panel = panel_width::<S>();
        let (row, panel) = (panel as isize, (panel * self.size.k) as isize);
        let b = Right { start: self.packed, row, panel };
        let c = Target { start: self.tile, row: self.size.n as isize };
        // SAFETY: `fill`'s caller vouches for keys and queries; the tile has room for its cells.
        unsafe {
            product::<S, P, false>(
                s,
                self.pair,
                self.size,
                (self.keys, b, c),
                self.weights,
                self.limits,
            )
        }
    }
}

/// Fills a tile in which each query has a list of keys: pair by pair along the features, or, when
/// there is only one, across the queries.
struct FillListed<'a, P> {
    pair: P,
    source: &'a Source,
    keys: Keys<'a>,
    tile: &'a mut [f32],
    lanes: usize,
    queries: usize,
}

impl<P: Pair> Kernel for FillListed<'_, P> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        if self.source.keys.width == 1 && self.lanes == S::LANES {
            return self.across(s);
        }
        for lane in 0..self.lanes {
            for row in 0..self.keys.len() {
                let key = if lane < self.queries { self.keys.key(row, lane) } else { None };
                self.tile[row * self.lanes + lane] = match key {
                    Some(key) => self.along(s, lane, key),
                    None => f32::NEG_INFINITY,
                };
            }
        }
    }
}

impl<P: Pair> FillListed<'_, P> {
    #[inline(always)]
    fn along<S: Simd>(&self, s: S, lane: usize, key: usize) -> f32 {
        let Source { queries, keys, scale, weights, .. } = *self.source;
        let mut acc = s.splat(0.0);
        for d in (0..keys.width).step_by(S::LANES) {
            let n = (keys.width - d).min(S::LANES);
            // SAFETY: the key and the query exist, by the caller of `fill`.
            unsafe {
                let k = load(s, keys, key, d, n);
                let q = s.mul(load(s, queries, lane, d, n), s.splat(scale));
                let w = if P::WEIGHTED { s.load_part(weights.add(d), n) } else { s.splat(0.0) };
                acc = self.pair.step(s, acc, k, q, w);
            }
        }
        s.sum(acc)
    }

    /// One feature: the queries stand side by side. Float by float first, vectors after, because a
    /// vector that is loaded right behind the floats it was stored as waits for them.
    #[inline(always)]
    fn across<S: Simd>(&mut self, s: S) {
        let Source { queries, keys, scale, weights, .. } = *self.source;
        let mut line = [0f32; 16];
        // SAFETY: listed keys and the block's queries exist, by the caller of `fill`; a line holds
        // the widest vector, and so does a row of the tile.
        unsafe {
            for (lane, q) in line.iter_mut().enumerate().take(self.queries) {
                *q = scale * queries.get(lane, 0);
            }
            for (row, cells) in self.tile.chunks_exact_mut(S::LANES).enumerate() {
                for (lane, cell) in cells.iter_mut().enumerate() {
                    *cell = self.keys.key(row, lane).map_or(0.0, |key| keys.get(key, 0));
                }
            }
            let q = s.load(line.as_ptr());
            let w = s.splat(if P::WEIGHTED { *weights } else { 0.0 });
            for cells in self.tile.chunks_exact_mut(S::LANES) {
                let k = s.load(cells.as_ptr());
                s.store(cells.as_mut_ptr(), self.pair.step(s, s.splat(0.0), k, q, w));
            }
            for (row, cells) in self.tile.chunks_exact_mut(S::LANES).enumerate() {
                for (lane, cell) in cells.iter_mut().enumerate() {
                    if self.keys.key(row, lane).is_none() {
                        *cell = f32::NEG_INFINITY;
                    }
                }
            }
        }
    }
}

/// `n` features from `d` on; zeros behind.
///
/// # Safety
/// They must exist.
#[inline(always)]
pub(crate) unsafe fn load<S: Simd>(s: S, rows: Rows, at: usize, d: usize, n: usize) -> S::V {
    // SAFETY: the caller vouches for the features.
    unsafe {
        let p = rows.start.offset(at as isize * rows.row + d as isize * rows.col);
        if rows.col == 1 && n == S::LANES {
            s.load(p)
        } else if rows.col == 1 {
            s.load_part(p, n)
        } else {
            let mut line = [0f32; 16];
            for (c, x) in line.iter_mut().enumerate().take(n) {
                *x = *p.offset(c as isize * rows.col);
            }
            s.load(line.as_ptr())
        }
    }
}

/// # Safety
/// As [`Pairwise::fill`].
unsafe fn fill<P: Pair>(pair: P, source: &Source, keys: Keys, tile: &mut Tile) {
    assert!(tile.data.len() >= tile.keys * tile.lanes && tile.keys == keys.len());
    match keys {
        Keys::Run { start, len } => {
            let k = source.keys.from(start);
            dispatch(FillRun {
                pair,
                keys: Left { start: k.start, row: k.row, col: k.col },
                packed: source.packed,
                weights: source.weights,
                size: Size { m: len, n: tile.lanes, k: source.keys.width },
                tile: tile.data.as_mut_ptr(),
                limits: Limits {
                    columns: tile.spans.map(|spans| &spans.by_key[..]),
                    features: None,
                },
            });
        }
        Keys::Listed { .. } => {
            let (lanes, queries) = (tile.lanes, tile.queries);
            dispatch(FillListed { pair, source, keys, tile: tile.data, lanes, queries });
        }
    }
}

impl Pairwise for Product {
    fn weighted(&self) -> bool {
        false
    }

    unsafe fn fill(&self, source: &Source, keys: Keys, tile: &mut Tile) {
        // SAFETY: passed on.
        unsafe { fill(Product, source, keys, tile) }
    }

    unsafe fn gradient(
        &self,
        source: &Source,
        (keys, careful): (Keys, bool),
        ds: &mut Tile,
        sink: Sink,
    ) {
        let wide = padded(source.keys.width);
        match keys {
            // SAFETY: the caller vouches for queries and keys.
            Keys::Run { start, len } => unsafe {
                // forward: s[j, i] = Σ_d k[j, d] · q[i, d]
                let queries = RowBlock::new(source.queries, ds.queries, careful);
                accumulate(ds, Over::Queries, &queries, sink.keys, wide);
                let keys = RowBlock::new(source.keys.from(start), len, careful);
                accumulate(ds, Over::Keys, &keys, sink.queries.take(), wide);
            },
            Keys::Listed { .. } => dispatch(GradientListed {
                feature: Multiply,
                source: &Source { scale: 1.0, ..*source },
                keys,
                ds,
                sink,
                wide,
            }),
        }
    }
}

/// The product as a feature, for lists of keys.
#[derive(Clone, Copy)]
struct Multiply;

impl Pair for Multiply {
    const WEIGHTED: bool = false;
    #[inline(always)]
    fn step<S: Simd>(self, s: S, acc: S::V, a: S::V, b: S::V, _: S::V) -> S::V {
        s.fma(a, b, acc)
    }
}

impl Feature for Multiply {
    #[inline(always)]
    fn value<S: Simd>(self, s: S, key: S::V, query: S::V) -> S::V {
        s.mul(key, query)
    }
    #[inline(always)]
    fn slopes<S: Simd>(self, _: S, key: S::V, query: S::V, _: S::V) -> (S::V, S::V) {
        (query, key)
    }
}

/// Scores by any other feature.
pub(crate) struct ByFeature<F>(pub F);

impl<F: Feature> Pairwise for ByFeature<F> {
    fn weighted(&self) -> bool {
        F::WEIGHTED
    }

    unsafe fn fill(&self, source: &Source, keys: Keys, tile: &mut Tile) {
        // SAFETY: passed on.
        unsafe { fill(self.0, source, keys, tile) }
    }

    unsafe fn gradient(
        &self,
        source: &Source,
        (keys, careful): (Keys, bool),
        ds: &mut Tile,
        sink: Sink,
    ) {
        let (wide, feature) = (padded(source.keys.width), self.0);
        match keys {
            Keys::Run { start, .. } => {
                let mut lines = Scratch::new(source.keys.width * ds.lanes + ds.keys * 16);
                let keys = source.keys.from(start);
                let lines = &mut lines;
                dispatch(GradientRun { feature, source, keys, ds, lines, wide, sink, careful });
            }
            Keys::Listed { .. } => {
                dispatch(GradientListed { feature, source, keys, ds, sink, wide })
            }
        }
    }
}

/// The gradient of a tile whose keys are a run.
struct GradientRun<'a, 'b, F> {
    feature: F,
    source: &'a Source,
    keys: Rows,
    ds: &'a mut Tile<'b>,
    /// Room for the queries' gradient, transposed, and for a vector per key.
    lines: &'a mut [f32],
    wide: usize,
    sink: Sink<'a>,
    /// Whether masked pairs may hold values that are not finite.
    careful: bool,
}

impl<F: Feature> Kernel for GradientRun<'_, '_, F> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (width, lanes, keys, panel) =
            (self.keys.width, self.ds.lanes, self.ds.keys, panel_width::<S>());
        let (by_query, by_key) = self.lines.split_at_mut(width * lanes);
        let (ds, packed, weights) =
            (self.ds.data.as_ptr(), self.source.packed, self.source.weights);
        for d in 0..width {
            // SAFETY: the tile has `keys · lanes` cells, the packed queries `lanes` of each
            // feature, `by_key` a vector per key; the caller vouches for the keys.
            unsafe {
                let w = s.splat(if F::WEIGHTED { *weights.add(d) } else { 1.0 });
                let mut dw = s.splat(0.0);
                for lane in (0..lanes).step_by(S::LANES) {
                    let q =
                        s.load(packed.add(lane / panel * panel * width + d * panel + lane % panel));
                    let mut dq = s.splat(0.0);
                    for j in 0..keys {
                        let k = s.splat(self.keys.get(j, d));
                        let ds = s.load(ds.add(j * lanes + lane));
                        // forward: s[j, i] += w[d] · f(k[j, d], q[i, d])
                        let (mut by_k, mut by_q) = self.feature.slopes(s, k, q, w);
                        let mut value = self.feature.value(s, k, q);
                        if self.careful {
                            let nothing = s.le(s.abs(ds), s.splat(0.0));
                            by_k = s.select(nothing, s.splat(0.0), by_k);
                            by_q = s.select(nothing, s.splat(0.0), by_q);
                            value = s.select(nothing, s.splat(0.0), value);
                        }
                        dq = s.fma(ds, by_q, dq);
                        let p = by_key.as_mut_ptr().add(j * S::LANES);
                        let sum = if lane == 0 { s.splat(0.0) } else { s.load(p) };
                        s.store(p, s.fma(ds, by_k, sum));
                        if F::WEIGHTED {
                            dw = s.fma(ds, value, dw);
                        }
                    }
                    s.store(by_query.as_mut_ptr().add(d * lanes + lane), dq);
                }
                for j in 0..keys {
                    self.sink.keys[j * self.wide + d] +=
                        s.sum(s.load(by_key.as_ptr().add(j * S::LANES)));
                }
                if F::WEIGHTED {
                    self.sink.weights[d] += s.sum(dw);
                }
            }
        }
        let sums = self.sink.queries.take();
        for i in 0..self.ds.queries {
            for d in 0..width {
                sums[i * self.wide + d] += by_query[d * lanes + i];
            }
        }
    }
}

/// The gradient of a tile in which each query has a list of keys.
struct GradientListed<'a, 'b, F> {
    feature: F,
    source: &'a Source,
    keys: Keys<'a>,
    ds: &'a mut Tile<'b>,
    sink: Sink<'a>,
    wide: usize,
}

impl<F: Feature> Kernel for GradientListed<'_, '_, F> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Source { queries, keys, weights, .. } = *self.source;
        let width = keys.width;
        let sums = self.sink.queries.take();
        for lane in 0..self.ds.queries {
            for row in 0..self.ds.keys {
                let Some(key) = self.keys.key(row, lane) else { break };
                let ds = s.splat(self.ds.data[row * self.ds.lanes + lane]);
                for d in (0..width).step_by(S::LANES) {
                    let n = (width - d).min(S::LANES);
                    let dq = &mut sums[lane * self.wide + d..][..S::LANES];
                    let dk = &mut self.sink.keys[key * self.wide + d..][..S::LANES];
                    // SAFETY: key and query exist, by the caller of `gradient`; the slices are
                    // one vector long.
                    unsafe {
                        let (k, q) = (load(s, keys, key, d, n), load(s, queries, lane, d, n));
                        let w =
                            if F::WEIGHTED { s.load_part(weights.add(d), n) } else { s.splat(1.0) };
                        let (by_k, by_q) = self.feature.slopes(s, k, q, w);
                        s.store(dq.as_mut_ptr(), s.fma(ds, by_q, s.load(dq.as_ptr())));
                        s.store(dk.as_mut_ptr(), s.fma(ds, by_k, s.load(dk.as_ptr())));
                        if F::WEIGHTED {
                            let dw = &mut self.sink.weights[d..d + n];
                            let value = s.mul(ds, self.feature.value(s, k, q));
                            let sum = s.add(s.load_part(dw.as_ptr(), n), value);
                            s.store_part(dw.as_mut_ptr(), n, sum);
                        }
                    }
                }
            }
        }
    }
}
