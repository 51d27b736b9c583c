//! Edges in a tile whose keys are a run: the few cells that have edge features.

use super::listed::Added;
use super::pair::{Feature, Sink, TileOperands};
use super::rows::load;
use super::tile::Tile;
use crate::gemm::micro::PairFunction;
use crate::simd::{Kernel, Simd};
use std::ops::Range;

impl Added<'_> {
    /// The edges of a query whose keys are in `keys`.
    #[inline(always)]
    fn within(&self, lane: usize, keys: Range<usize>) -> Range<usize> {
        let (row, first) = (self.graph.row(self.i0 + lane), self.graph.first(self.i0 + lane));
        let below = |end: usize| first + row.partition_point(|key| (*key as usize) < end);
        below(keys.start)..below(keys.end)
    }

    /// The key of an edge.
    #[inline(always)]
    fn key(&self, edge: usize) -> usize {
        self.graph.indices()[edge] as usize
    }
}

/// Recomputes the scores of the cells that are edges. The source must have the tile's queries and
/// keys.
pub(crate) struct FillEdges<'a, 'b, P> {
    pub pair: P,
    pub source: &'a TileOperands,
    /// First key of the tile.
    pub start: usize,
    pub tile: &'a mut Tile<'b>,
    pub added: Added<'a>,
}

impl<P: PairFunction> Kernel for FillEdges<'_, '_, P> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let TileOperands { queries, keys, scale, weights, .. } = *self.source;
        let (start, width) = (self.start, keys.width);
        for lane in 0..self.tile.queries {
            for edge in self.added.within(lane, start..start + self.tile.keys) {
                let key = self.added.key(edge);
                let mut sum = s.splat(0.0);
                for d in (0..width).step_by(S::LANES) {
                    let n = (width - d).min(S::LANES);
                    // SAFETY: key and query exist, by the caller of `fill`, and a row for each edge.
                    unsafe {
                        let e = load(s, self.added.rows, edge, d, n);
                        let k = s.add(load(s, keys, key, d, n), e);
                        let q = s.mul(load(s, queries, lane, d, n), s.splat(scale));
                        let w =
                            if P::WEIGHTED { s.load_part(weights.add(d), n) } else { s.splat(0.0) };
                        sum = self.pair.step(s, sum, k, q, w);
                    }
                }
                self.tile.row(key - start)[lane] = s.sum(sum);
            }
        }
    }
}

/// The gradient of the cells that are edges, which is set to 0 afterwards.
pub(crate) struct GradientEdges<'a, 'b, F> {
    pub feature: F,
    pub source: &'a TileOperands,
    /// First key of the tile.
    pub start: usize,
    pub ds: &'a mut Tile<'b>,
    pub sink: Sink<'a>,
    pub wide: usize,
    pub added: Added<'a>,
}

impl<F: Feature> Kernel for GradientEdges<'_, '_, F> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let TileOperands { queries, keys, weights, .. } = *self.source;
        let (start, width, wide) = (self.start, keys.width, self.wide);
        let sums = self.sink.queries.take();
        for lane in 0..self.ds.queries {
            for edge in self.added.within(lane, start..start + self.ds.keys) {
                let key = self.added.key(edge);
                let ds = std::mem::take(&mut self.ds.row(key - start)[lane]);
                if ds == 0.0 {
                    continue; // masked, perhaps, and what it would multiply not finite
                }
                let ds = s.splat(ds);
                for d in (0..width).step_by(S::LANES) {
                    let n = (width - d).min(S::LANES);
                    let dq = &mut sums[lane * wide + d..][..S::LANES];
                    let dk = &mut self.sink.keys[(key - start) * wide + d..][..S::LANES];
                    let de = &mut self.sink.added[edge * width + d..][..n];
                    // SAFETY: key and query exist, by the caller of `gradient`, and a row for each
                    // edge; the slices are as long as what is loaded and stored.
                    unsafe {
                        let e = load(s, self.added.rows, edge, d, n);
                        let k = s.add(load(s, keys, key, d, n), e);
                        let q = load(s, queries, lane, d, n);
                        let w =
                            if F::WEIGHTED { s.load_part(weights.add(d), n) } else { s.splat(1.0) };
                        let (by_k, by_q) = self.feature.slopes(s, k, q, w);
                        s.store(dq.as_mut_ptr(), s.fma(ds, by_q, s.load(dq.as_ptr())));
                        s.store(dk.as_mut_ptr(), s.fma(ds, by_k, s.load(dk.as_ptr())));
                        let sum = s.fma(ds, by_k, s.load_part(de.as_ptr(), n));
                        s.store_part(de.as_mut_ptr(), n, sum);
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
