//! Scores of pairs, feature by feature: filling a tile, and its gradient.
//!
//! The scores differ only in the contribution of a feature of a query and a key to the sum; for a
//! dot product it is their product.

use super::edges::{FillEdges, GradientEdges};
use super::graph::Graph;
use super::listed::{Added, FillListed, GradientListed};
use super::rows::{RowBlock, Rows, padded};
use super::tile::{Keys, Over, Tile, accumulate};
use crate::gemm::micro::{
    Left, Limits, PairFunction, Product, ProductOperands, Right, Size, Target, panel_width, product,
};
use crate::pool::Parts;
use crate::scratch::Scratch;
use crate::simd::{Kernel, Simd, dispatch};
use crate::view::View;
use std::ops::Range;

/// A pair whose contribution is not a plain product.
pub(crate) trait Feature: PairFunction + 'static {
    /// The feature's value before its weight, `f(key, query)`.
    fn value<S: Simd>(self, s: S, key: S::V, query: S::V) -> S::V;
    /// The derivatives of the weighted feature by key and by query.
    fn slopes<S: Simd>(self, s: S, key: S::V, query: S::V, w: S::V) -> (S::V, S::V);
}

/// Operands that a tile of one head is filled from.
pub struct TileOperands {
    /// Queries, packed by [`super::rows::pack`].
    pub packed: *const f32,
    /// Queries, from the block's first.
    pub queries: Rows,
    /// Factor of the queries.
    pub scale: f32,
    /// All keys of the head.
    pub keys: Rows,
    /// The features' weights, if the pair has any.
    pub weights: *const f32,
    /// Head, and first query of the block.
    pub place: (usize, usize),
}

/// Rows that several tasks add to in a fixed order. They are not borrowed before the turn has come:
/// until then another task uses them.
pub struct Turn<'a> {
    /// `None` once the rows are taken.
    all: Option<&'a Parts<'a, f32>>,
    from: usize,
    to: usize,
    wait: &'a dyn Fn(),
}

impl<'a> Turn<'a> {
    /// Creates a turn; `wait` returns when it has come.
    ///
    /// # Safety
    /// From when `wait` returns until `'a` ends, nothing else may use these rows of `all`: no
    /// other task, and no other turn of this one.
    pub unsafe fn new(all: &'a Parts<'a, f32>, rows: Range<usize>, wait: &'a dyn Fn()) -> Turn<'a> {
        Turn { all: Some(all), from: rows.start, to: rows.end, wait }
    }

    /// Lends the turn to a part of the work.
    pub fn lend(&mut self) -> Turn<'_> {
        Turn { all: self.all, from: self.from, to: self.to, wait: self.wait }
    }

    /// Waits for the turn and returns the rows.
    ///
    /// # Panics
    /// If called twice.
    pub fn take(&mut self) -> &'a mut [f32] {
        let all = self.all.take().expect("rows are taken once");
        (self.wait)();
        // SAFETY: by `new`, nobody else uses them until `'a` ends. This turn gives them once, and
        // one that it lent has ended, because it borrowed this one.
        unsafe { all.slice(self.from, self.to) }
    }
}

/// Outputs of a tile's gradient: sums, with rows padded to whole vectors.
pub struct Sink<'a> {
    /// The block's queries, `[queries, wide]`.
    pub queries: Turn<'a>,
    /// Keys: the tile's own if it is a run, else all of the head, `[keys, wide]`.
    pub keys: &'a mut [f32],
    /// The features' weights.
    pub weights: &'a mut [f32],
    /// Gradient of the edge features, if there are any: a row for each edge, not padded.
    pub added: &'a mut [f32],
}

/// Method of scoring pairs. All methods access the memory that `source` refers to.
pub trait Pairwise: Send + Sync {
    /// Whether features have weights.
    fn weighted(&self) -> bool;

    /// Floats of [`Sink::added`] for a head.
    fn added(&self) -> usize {
        0
    }

    /// Fills a tile with scores; cells without a key get −∞.
    ///
    /// # Safety
    /// The source must have the tile's queries and keys.
    unsafe fn fill(&self, source: &TileOperands, keys: Keys, tile: &mut Tile);

    /// Adds the gradient of the scores, `ds`, to the sink. The gradients by queries and by keys
    /// lack the factor `scale`. With `careful`, masked pairs may hold values that are not finite.
    ///
    /// # Safety
    /// The source must have the tile's queries and keys.
    unsafe fn gradient(
        &self,
        source: &TileOperands,
        keys: Keys,
        careful: bool,
        ds: &mut Tile,
        sink: Sink,
    );
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

impl<P: PairFunction> Kernel for FillRun<'_, P> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let panel = panel_width::<S>();
        let (row, panel) = (panel as isize, (panel * self.size.k) as isize);
        let b = Right { start: self.packed, row, panel };
        let c = Target { start: self.tile, row: self.size.n as isize };
        // SAFETY: `fill`'s caller vouches for keys and queries; the tile has room for its cells.
        unsafe {
            let operands = ProductOperands { a: self.keys, b, c };
            product::<S, P, false>(s, self.pair, self.size, operands, self.weights, self.limits)
        }
    }
}

/// # Safety
/// As [`Pairwise::fill`].
unsafe fn fill<P: PairFunction>(
    pair: P,
    source: &TileOperands,
    keys: Keys,
    added: Option<Added>,
    tile: &mut Tile,
) {
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
            let Tile { lanes, queries, keys: rows, .. } = *tile;
            let tile = &mut tile.data[..rows * lanes];
            dispatch(FillListed { pair, source, keys, tile, lanes, queries, added });
        }
    }
}

impl Pairwise for Product {
    fn weighted(&self) -> bool {
        false
    }

    unsafe fn fill(&self, source: &TileOperands, keys: Keys, tile: &mut Tile) {
        // SAFETY: passed on.
        unsafe { fill(Product, source, keys, None, tile) }
    }

    unsafe fn gradient(
        &self,
        source: &TileOperands,
        keys: Keys,
        careful: bool,
        ds: &mut Tile,
        mut sink: Sink,
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
                source: &TileOperands { scale: 1.0, ..*source },
                keys,
                ds,
                sink,
                wide,
                added: None,
            }),
        }
    }
}

/// The product as a feature, for lists of keys.
#[derive(Clone, Copy)]
struct Multiply;

impl PairFunction for Multiply {
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

    unsafe fn fill(&self, source: &TileOperands, keys: Keys, tile: &mut Tile) {
        // SAFETY: passed on.
        unsafe { fill(self.0, source, keys, None, tile) }
    }

    unsafe fn gradient(
        &self,
        source: &TileOperands,
        keys: Keys,
        careful: bool,
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
                dispatch(GradientListed { feature, source, keys, ds, sink, wide, added: None })
            }
        }
    }
}

/// The gradient of a tile whose keys are a run.
struct GradientRun<'a, 'b, F> {
    feature: F,
    source: &'a TileOperands,
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
    fn run<S: Simd>(mut self, s: S) {
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

/// Like [`ByFeature`], for features of a sum, with edge features added to the key of each pair that
/// is an edge of a graph: `f(k + e, q)`. Pairs without an edge add nothing.
pub(crate) struct WithEdges<'a, F> {
    pub feature: F,
    pub graph: &'a Graph,
    /// `[1, H, edges, D′]`
    pub rows: View<'a>,
}

impl<F: Feature> WithEdges<'_, F> {
    fn of(&self, source: &TileOperands) -> Added<'_> {
        let (h, i0) = source.place;
        Added { graph: self.graph, rows: Rows::of(&self.rows, 0, h), i0 }
    }
}

impl<F: Feature> Pairwise for WithEdges<'_, F> {
    fn weighted(&self) -> bool {
        F::WEIGHTED
    }

    fn added(&self) -> usize {
        self.graph.edges() * self.rows.shape[3]
    }

    unsafe fn fill(&self, source: &TileOperands, keys: Keys, tile: &mut Tile) {
        let (pair, added) = (self.feature, self.of(source));
        // SAFETY: passed on.
        unsafe { fill(pair, source, keys, Some(added), tile) };
        if let Keys::Run { start, .. } = keys {
            dispatch(FillEdges { pair, source, start, tile, added });
        }
    }

    unsafe fn gradient(
        &self,
        source: &TileOperands,
        keys: Keys,
        careful: bool,
        ds: &mut Tile,
        sink: Sink,
    ) {
        let (feature, added, wide) = (self.feature, self.of(source), padded(source.keys.width));
        if let Keys::Run { start, .. } = keys {
            let Sink { mut queries, keys: dk, weights, added: de } = sink;
            let own = Sink { queries: queries.lend(), keys: dk, weights, added: de };
            dispatch(GradientEdges { feature, source, start, ds, sink: own, wide, added });
            let rest = Sink { queries, keys: dk, weights, added: de };
            // SAFETY: passed on.
            unsafe { ByFeature(feature).gradient(source, keys, careful, ds, rest) };
        } else {
            let added = Some(added);
            dispatch(GradientListed { feature, source, keys, ds, sink, wide, added });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_lends_its_rows_and_gives_them_once() {
        let mut rows = vec![0.0; 4];
        let all = Parts::new(&mut rows);
        let waited = std::cell::Cell::new(0);
        let wait = || waited.set(waited.get() + 1);
        // SAFETY: nothing else uses these rows.
        let mut turn = unsafe { Turn::new(&all, 1..3, &wait) };
        turn.lend().take()[0] = 1.0;
        turn.lend().take()[1] = 2.0;
        assert_eq!(turn.take(), [1.0, 2.0]);
        assert_eq!(waited.get(), 3);
        let again = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| turn.take().len()));
        assert!(again.is_err(), "two slices of the same rows");
    }
}
