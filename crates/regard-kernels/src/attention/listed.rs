//! Tiles in which each query has its own list of keys: a graph, a dilated window.
//!
//! A lane is one query and its rows are its keys, so a list is processed down its lane with the
//! query's side in registers; rows of keys are gathered by index. Where a row is one value, as in
//! graph attention, queries are processed side by side instead.

use super::graph::Graph;
use super::pair::{Feature, Sink, TileOperands};
use super::rows::{Rows, load};
use super::tile::{Keys, Over, Tile};
use crate::gemm::micro::PairFunction;
use crate::simd::{Kernel, Simd};

/// Edge features, which a pair adds to its key.
#[derive(Clone, Copy)]
pub(crate) struct Added<'a> {
    pub graph: &'a Graph,
    /// A row for each edge, of one head.
    pub rows: Rows,
    /// First query of the block.
    pub i0: usize,
}

impl Added<'_> {
    /// The edge of a cell.
    #[inline(always)]
    pub fn edge(&self, lane: usize, key: usize, guess: usize) -> Option<usize> {
        self.graph.edge(self.i0 + lane, key, guess)
    }

    /// The scalar of each cell of a row of the tile.
    #[inline(always)]
    unsafe fn numbers<S: Simd>(&self, s: S, row: usize, index: &[u32]) -> S::V {
        let mut line = [0f32; 16];
        for (lane, (x, key)) in line.iter_mut().zip(index).enumerate() {
            if *key != Keys::NONE
                && let Some(edge) = self.edge(lane, *key as usize, row)
            {
                // SAFETY: there is a row for each edge.
                *x = unsafe { self.rows.get(edge, 0) };
            }
        }
        // SAFETY: the line holds the widest vector.
        unsafe { s.load(line.as_ptr()) }
    }
}

/// The keys of the tile's rows, without those past the last list.
#[inline(always)]
fn index<'a>(keys: &Keys<'a>) -> &'a [u32] {
    match keys {
        Keys::Listed { index, .. } => index,
        Keys::Run { .. } => unreachable!("a tile of lists"),
    }
}

/// Gathers rows of one value: `rows[index]`.
#[inline(always)]
unsafe fn gather<S: Simd>(s: S, rows: Rows, index: &[u32]) -> S::V {
    debug_assert!(index.len() >= S::LANES);
    // SAFETY: the caller vouches for the rows; the line holds the widest vector.
    unsafe {
        if rows.row == 1 {
            return s.gather(rows.start, index.as_ptr());
        }
        let mut line = [0f32; 16];
        for (x, key) in line.iter_mut().zip(index).take(S::LANES) {
            *x = if *key == Keys::NONE { 0.0 } else { rows.get(*key as usize, 0) };
        }
        s.load(line.as_ptr())
    }
}

/// Whether a row is at most a vector of contiguous floats, which needs no check per pair.
#[inline(always)]
fn narrow(rows: &[Rows], lanes: usize) -> bool {
    rows.iter().all(|rows| rows.width <= lanes && (rows.col == 1 || rows.width == 1))
}

/// Loads like [`load`]; with `NARROW`, from rows that are [`narrow`] and without edge features.
#[inline(always)]
unsafe fn take<S: Simd, const NARROW: bool>(
    s: S,
    rows: Rows,
    at: usize,
    d: usize,
    n: usize,
) -> S::V {
    // SAFETY: passed on.
    unsafe {
        if !NARROW {
            return load(s, rows, at, d, n);
        }
        let p = rows.start.offset(at as isize * rows.row);
        if n == S::LANES { s.load(p) } else { s.load_part(p, n) }
    }
}

/// The first value of each query, side by side.
#[inline(always)]
unsafe fn side_by_side<S: Simd>(s: S, rows: Rows, n: usize, scale: f32) -> S::V {
    let mut line = [0f32; 16];
    for (lane, x) in line.iter_mut().enumerate().take(n) {
        // SAFETY: the caller vouches for `n` rows.
        *x = scale * unsafe { rows.get(lane, 0) };
    }
    // SAFETY: the line holds the widest vector.
    unsafe { s.load(line.as_ptr()) }
}

/// Fills a tile with scores. The source must have its queries and keys.
pub(crate) struct FillListed<'a, P> {
    pub pair: P,
    pub source: &'a TileOperands,
    pub keys: Keys<'a>,
    pub tile: &'a mut [f32],
    pub lanes: usize,
    pub queries: usize,
    pub added: Option<Added<'a>>,
}

impl<P: PairFunction> Kernel for FillListed<'_, P> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        if self.source.keys.width == 1 && self.lanes == S::LANES {
            return self.across(s);
        }
        let TileOperands { queries, keys, .. } = *self.source;
        let index = index(&self.keys);
        assert!(index.len() >= self.tile.len(), "a key for each cell");
        let narrow = self.added.is_none() && narrow(&[queries, keys], S::LANES);
        for lane in 0..self.lanes {
            let end = match (lane < self.queries, narrow) {
                (true, true) => self.down::<S, true>(s, lane, index),
                (true, false) => self.down::<S, false>(s, lane, index),
                (false, _) => 0,
            };
            for row in end..self.tile.len() / self.lanes {
                self.tile[row * self.lanes + lane] = f32::NEG_INFINITY;
            }
        }
    }
}

impl<P: PairFunction> FillListed<'_, P> {
    /// One query; returns the length of its list.
    #[inline(always)]
    fn down<S: Simd, const NARROW: bool>(&mut self, s: S, lane: usize, index: &[u32]) -> usize {
        let TileOperands { queries, keys, scale, weights, .. } = *self.source;
        let (width, lanes) = (keys.width, self.lanes);
        // SAFETY: the block's queries exist, by the caller of `fill`.
        let (q, w) = unsafe {
            let n = width.min(S::LANES);
            let w = if P::WEIGHTED { s.load_part(weights, n) } else { s.splat(0.0) };
            (s.mul(take::<S, NARROW>(s, queries, lane, 0, n), s.splat(scale)), w)
        };
        let (rows, mut row) = (self.tile.len() / lanes, 0);
        while row < rows {
            // SAFETY: there is an index for each cell, as `run` has seen.
            let key = unsafe { *index.get_unchecked(row * lanes + lane) };
            if key == Keys::NONE {
                break;
            }
            let mut edge = None;
            if !NARROW && let Some(added) = self.added {
                edge = added.edge(lane, key as usize, row);
            }
            let (mut d, mut sum, mut q, mut w) = (0, s.splat(0.0), q, w);
            while d < width {
                let n = (width - d).min(S::LANES);
                // SAFETY: listed keys exist, by the caller of `fill`, and a row for each edge.
                unsafe {
                    if d > 0 {
                        q = s.mul(load(s, queries, lane, d, n), s.splat(scale));
                        w = if P::WEIGHTED { s.load_part(weights.add(d), n) } else { w };
                    }
                    let mut k = take::<S, NARROW>(s, keys, key as usize, d, n);
                    if !NARROW && let (Some(added), Some(edge)) = (self.added, edge) {
                        k = s.add(k, load(s, added.rows, edge, d, n));
                    }
                    sum = self.pair.step(s, sum, k, q, w);
                }
                d += S::LANES;
                if NARROW {
                    break;
                }
            }
            // SAFETY: the cell is one of the tile's rows.
            unsafe { *self.tile.get_unchecked_mut(row * lanes + lane) = s.sum(sum) };
            row += 1;
        }
        row
    }

    /// Rows of one value: all queries at once.
    #[inline(always)]
    fn across<S: Simd>(&mut self, s: S) {
        let TileOperands { queries, keys, scale, weights, .. } = *self.source;
        let lists = index(&self.keys).chunks_exact(S::LANES);
        // SAFETY: listed keys and the block's queries exist, by the caller of `fill`; a row of the
        // tile is a vector, and so is one of the lists.
        unsafe {
            let q = side_by_side(s, queries, self.queries, scale);
            let w = s.splat(if P::WEIGHTED { *weights } else { 0.0 });
            for (row, (cells, list)) in self.tile.chunks_exact_mut(S::LANES).zip(lists).enumerate()
            {
                let mut k = gather(s, keys, list);
                if let Some(added) = self.added {
                    k = s.add(k, added.numbers(s, row, list));
                }
                let score = self.pair.step(s, s.splat(0.0), k, q, w);
                let none = s.splat(f32::NEG_INFINITY);
                s.store(cells.as_mut_ptr(), s.select(s.named(list.as_ptr()), score, none));
            }
        }
    }
}

/// Adds the gradient of a tile to the sink.
pub(crate) struct GradientListed<'a, 'b, F> {
    pub feature: F,
    pub source: &'a TileOperands,
    pub keys: Keys<'a>,
    pub ds: &'a mut Tile<'b>,
    pub sink: Sink<'a>,
    pub wide: usize,
    pub added: Option<Added<'a>>,
}

impl<F: Feature> Kernel for GradientListed<'_, '_, F> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let sums = self.sink.queries.take();
        if self.source.keys.width == 1 && self.ds.lanes == S::LANES {
            return self.across(s, sums);
        }
        let TileOperands { queries, keys, .. } = *self.source;
        let cells = self.ds.keys * self.ds.lanes;
        assert!(index(&self.keys).len() >= cells && self.ds.data.len() >= cells);
        let narrow = self.added.is_none() && narrow(&[queries, keys], S::LANES);
        for lane in 0..self.ds.queries {
            let mut d = 0;
            while d < keys.width {
                let sum = &mut sums[lane * self.wide + d..][..S::LANES];
                match narrow {
                    true => self.down::<S, true>(s, lane, d, sum),
                    false => self.down::<S, false>(s, lane, d, sum),
                }
                d += S::LANES;
            }
        }
    }
}

impl<F: Feature> GradientListed<'_, '_, F> {
    /// One query, and a vector of its features from `d` on.
    #[inline(always)]
    fn down<S: Simd, const NARROW: bool>(&mut self, s: S, lane: usize, d: usize, sum: &mut [f32]) {
        let TileOperands { queries, keys, weights, .. } = *self.source;
        let (width, lanes, index) = (keys.width, self.ds.lanes, index(&self.keys));
        let n = (width - d).min(S::LANES);
        // SAFETY: key and query exist, by the caller of `gradient`, and there is a row for each
        // edge; the slices are one vector long; cells are the tile's, as `run` has seen.
        unsafe {
            let q = take::<S, NARROW>(s, queries, lane, d, n);
            let w = if F::WEIGHTED { s.load_part(weights.add(d), n) } else { s.splat(1.0) };
            let (mut dq, mut dw) = (s.load(sum.as_ptr()), s.splat(0.0));
            for row in 0..self.ds.keys {
                let key = *index.get_unchecked(row * lanes + lane);
                if key == Keys::NONE {
                    break;
                }
                let key = key as usize;
                let ds = s.splat(*self.ds.data.get_unchecked(row * lanes + lane));
                let mut k = take::<S, NARROW>(s, keys, key, d, n);
                let mut edge = None;
                if !NARROW && let Some(added) = self.added {
                    edge = added.edge(lane, key, row);
                    if let Some(edge) = edge {
                        k = s.add(k, load(s, added.rows, edge, d, n));
                    }
                }
                let (by_k, by_q) = self.feature.slopes(s, k, q, w);
                dq = s.fma(ds, by_q, dq);
                let dk = &mut self.sink.keys[key * self.wide + d..][..S::LANES];
                s.store(dk.as_mut_ptr(), s.fma(ds, by_k, s.load(dk.as_ptr())));
                if !NARROW && let Some(edge) = edge {
                    let de = &mut self.sink.added[edge * width + d..][..n];
                    let sum = s.fma(ds, by_k, s.load_part(de.as_ptr(), n));
                    s.store_part(de.as_mut_ptr(), n, sum);
                }
                if F::WEIGHTED {
                    dw = s.fma(ds, self.feature.value(s, k, q), dw);
                }
            }
            s.store(sum.as_mut_ptr(), dq);
            if F::WEIGHTED {
                let to = &mut self.sink.weights[d..d + n];
                let sum = s.add(s.load_part(to.as_ptr(), n), dw);
                s.store_part(to.as_mut_ptr(), n, sum);
            }
        }
    }

    /// Rows of one value: all queries at once.
    #[inline(always)]
    fn across<S: Simd>(&mut self, s: S, sums: &mut [f32]) {
        let TileOperands { queries, keys, weights, .. } = *self.source;
        let lists = index(&self.keys).chunks_exact(S::LANES);
        let mut line = [0f32; 16];
        // SAFETY: keys and queries exist, by the caller of `gradient`; a row of the tile is a
        // vector, and so is one of the lists.
        unsafe {
            let q = side_by_side(s, queries, self.ds.queries, 1.0);
            let w = s.splat(if F::WEIGHTED { *weights } else { 1.0 });
            let (mut dq, mut dw) = (s.splat(0.0), s.splat(0.0));
            for (row, (ds, list)) in self.ds.data.chunks_exact(S::LANES).zip(lists).enumerate() {
                let mut k = gather(s, keys, list);
                if let Some(added) = self.added {
                    k = s.add(k, added.numbers(s, row, list));
                }
                let there = s.named(list.as_ptr());
                let ds = s.select(there, s.load(ds.as_ptr()), s.splat(0.0));
                let (by_k, by_q) = self.feature.slopes(s, k, q, w);
                dq = s.fma(ds, by_q, dq);
                s.store(line.as_mut_ptr(), s.mul(ds, by_k));
                for (lane, (dk, key)) in line.iter().zip(list).enumerate() {
                    if *key == Keys::NONE {
                        continue;
                    }
                    self.sink.keys[*key as usize * self.wide] += dk;
                    if let Some(added) = self.added
                        && let Some(edge) = added.edge(lane, *key as usize, row)
                    {
                        self.sink.added[edge] += dk;
                    }
                }
                if F::WEIGHTED {
                    dw = s.fma(ds, self.feature.value(s, k, q), dw);
                }
            }
            s.store(line.as_mut_ptr(), dq);
            for (lane, dq) in line.iter().enumerate().take(self.ds.queries) {
                sums[lane * self.wide] += dq;
            }
            if F::WEIGHTED {
                self.sink.weights[0] += s.sum(dw);
            }
        }
    }
}

/// Multiplies a tile with rows and adds to `target`, whose rows are `wide` floats. Over keys,
/// `rows` are all of the head and `target` the block's queries; over queries it is the other way
/// round. The rows must exist.
pub(crate) struct AccumulateListed<'a, 'b> {
    pub tile: &'a Tile<'b>,
    pub keys: Keys<'a>,
    pub over: Over,
    pub rows: Rows,
    pub target: &'a mut [f32],
    pub wide: usize,
}

impl Kernel for AccumulateListed<'_, '_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let cells = self.tile.keys * self.tile.lanes;
        assert!(index(&self.keys).len() >= cells && self.tile.data.len() >= cells);
        let narrow = narrow(&[self.rows], S::LANES);
        for lane in 0..self.tile.queries {
            let mut d = 0;
            while d < self.rows.width {
                let n = (self.rows.width - d).min(S::LANES);
                match (self.over, narrow) {
                    (Over::Keys, true) => self.over_keys::<S, true>(s, lane, d, n),
                    (Over::Keys, false) => self.over_keys::<S, false>(s, lane, d, n),
                    (Over::Queries, true) => self.over_queries::<S, true>(s, lane, d, n),
                    (Over::Queries, false) => self.over_queries::<S, false>(s, lane, d, n),
                }
                d += S::LANES;
            }
        }
    }
}

impl AccumulateListed<'_, '_> {
    /// The key and the weight of a cell.
    ///
    /// # Safety
    /// It must be one of the tile's.
    #[inline(always)]
    unsafe fn cell(&self, row: usize, lane: usize) -> (u32, f32) {
        let at = row * self.tile.lanes + lane;
        // SAFETY: `run` has seen that there are as many keys and weights as cells.
        unsafe { (*index(&self.keys).get_unchecked(at), *self.tile.data.get_unchecked(at)) }
    }

    #[inline(always)]
    fn over_keys<S: Simd, const NARROW: bool>(&mut self, s: S, lane: usize, d: usize, n: usize) {
        let at = lane * self.wide + d;
        // SAFETY: the target is one vector; the rows of listed keys exist.
        unsafe {
            let mut sum = s.load(self.target[at..][..S::LANES].as_ptr());
            for row in 0..self.tile.keys {
                let (key, weight) = self.cell(row, lane);
                if key == Keys::NONE {
                    break;
                }
                // The row of a weight of 0 may not be finite.
                if weight != 0.0 {
                    let x = take::<S, NARROW>(s, self.rows, key as usize, d, n);
                    sum = s.fma(s.splat(weight), x, sum);
                }
            }
            s.store(self.target[at..][..S::LANES].as_mut_ptr(), sum);
        }
    }

    #[inline(always)]
    fn over_queries<S: Simd, const NARROW: bool>(&mut self, s: S, lane: usize, d: usize, n: usize) {
        // SAFETY: the query's row exists; each target is one vector.
        unsafe {
            let x = take::<S, NARROW>(s, self.rows, lane, d, n);
            for row in 0..self.tile.keys {
                let (key, weight) = self.cell(row, lane);
                if key == Keys::NONE {
                    break;
                }
                if weight != 0.0 {
                    let at = key as usize * self.wide + d;
                    let target = &mut self.target[at..][..S::LANES];
                    let sum = s.fma(s.splat(weight), x, s.load(target.as_ptr()));
                    s.store(target.as_mut_ptr(), sum);
                }
            }
        }
    }
}
