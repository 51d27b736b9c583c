//! Relative positions as in Transformer-XL and XLNet:
//! `s = scale · ((q + u)·k_j + (q + w)·r_{p−j} + (q + x)·g_{same segment?})`.
//!
//! The content term is a dot product like any other. The position term of a block of `m` queries
//! and `n` keys needs only `m + n − 1` rows of `r`: one more product, and a shear.
//!
//! XLNet's query stream has queries at a few positions only. Such queries need more rows of `r`
//! than there are queries, so they are processed a vector at a time: 16 queries at every sixth
//! position need `96 + n` rows, 64 of them `384 + n`.

use super::*;
use crate::attention::engine::QUERIES;
use crate::attention::pair::{Pairwise, TileOperands};
use crate::attention::rows::{RowBlock, Rows, pack, packed_len, padded};
use crate::attention::term::sum_over_batch;
use crate::attention::tile::{Keys, Over, accumulate, each_cell};
use crate::gemm::micro::Product;
use crate::memory::{room, zeros};
use crate::scratch::Scratch;
use crate::simd::isa;
use std::ops::Range;

pub(super) const ROW: Row<dyn Score> = Row {
    about: Variant {
        name: "relative",
        params: &[
            (
                "r",
                "[H,S+T,D], row S − (p − j) for the distance p − j; [H,S+n,D] for queries among the last n keys",
            ),
            ("u", "[H,D]"),
            ("w", "[H,D]"),
            ("segment", "[H,2,D], if segment ids are given: same, different"),
            ("x", "[H,D], if segment ids are given"),
        ],
        settings: &[Setting::Segments],
        formula: "scale · ((q + u)·k + (q + w)·r[S − (p − j)] + (q + x)·segment[id_p ≠ id_j]), scale = 1/√D",
        paper: "Dai et al. 2019, arXiv:1901.02860; Yang et al. 2019, arXiv:1906.08237",
    },
    new: |settings| Ok(Arc::new(Relative { segments: settings.segments.clone(), last: None })),
    trials: DEFAULTS,
};

/// Relative position score: content, position and, with `segments`, whether query and key are in
/// the same segment.
#[derive(Clone, Debug, Default)]
pub struct Relative {
    /// Segment ids of the keys, `[B·S]`; a query has the id of the key at its position. `None` for
    /// no segment term.
    pub segments: Option<Vec<i64>>,
    /// Number `n` of last keys among which the queries are positioned, with `r: [H, S + n, D]`.
    /// `None` for `n = T`.
    pub last: Option<usize>,
}

impl Relative {
    /// Number of last keys among which queries are positioned.
    fn last(&self, dims: &Dims) -> usize {
        self.last.unwrap_or(dims.t)
    }
}

impl Score for Relative {
    fn params(&self, dims: &Dims) -> Vec<Param> {
        let Dims { h, s, d, .. } = *dims;
        let mut params = vec![
            Param::new("r", [1, h, s + self.last(dims), d], "1HRD"),
            Param::new("u", [1, h, 1, d], "1H1D"),
            Param::new("w", [1, h, 1, d], "1H1D"),
        ];
        if self.segments.is_some() {
            params.push(Param::new("segment", [1, h, 2, d], "1HRD"));
            params.push(Param::new("x", [1, h, 1, d], "1H1D"));
        }
        params
    }
    fn check(&self, grid: &Grid) -> Result<(), Error> {
        same_width(grid)?;
        let (Dims { b, t, s, .. }, last) = (grid.dims, self.last(&grid.dims));
        let at_end = |at: usize| grid.key_at(at / t, at % t).is_some_and(|p| p + last >= s);
        if last > s || !(0..b * t).all(at_end) {
            bail!(
                "relative: got T = {t} queries that do not all stand at one of the last {last} of \
                 S = {s} keys"
            );
        }
        match &self.segments {
            Some(ids) if ids.len() != b * s => {
                bail!("relative: got {} segment ids, need B·S = {b}·{s}", ids.len())
            }
            _ => Ok(()),
        }
    }
    fn default_scale(&self, dims: &Dims) -> f32 {
        Dot.default_scale(dims)
    }
    fn formula(&self) -> Option<Expr> {
        let place = |grid: &Grid, b, i| grid.key_at(b, i).expect("queries stand at keys");
        let content = (queries() + param(1)).dot(keys());
        // Row S − (p − j) for the distance p − j.
        let position = (queries() + param(2))
            .dot(param(0))
            .pick(move |grid, [b, i, j]| Some(grid.dims.s - place(grid, b, i) + j));
        let mut sum = content + position;
        if let Some(ids) = self.segments.clone() {
            let segment = (queries() + param(4)).dot(param(3)).pick(move |grid, [b, i, j]| {
                let s = grid.dims.s;
                Some(usize::from(ids[b * s + place(grid, b, i)] != ids[b * s + j]))
            });
            sum = sum + segment;
        }
        Some(scale() * sum)
    }
    fn extended(&self, more: More) -> Option<Arc<dyn Score>> {
        let mut score = self.clone();
        match more {
            More::Segments(ids) if self.segments.is_none() => score.segments = Some(ids),
            More::Last(n) => score.last = Some(n),
            More::Segments(_) | More::Graph(_) => return None,
        }
        Some(Arc::new(score))
    }
    fn takes_lists(&self) -> bool {
        false
    }
}

impl Lower for Relative {
    fn lower<'a>(&'a self, grid: &'a Grid, x: ScoreOperands<'a>, scale: f32) -> Lowered<'a> {
        let shape = x.q.shape;
        let mut terms: Vec<Box<dyn Term>> = vec![Box::new(Position {
            grid,
            queries: plus(&x.q, &x.params[2]),
            r: x.params[0],
            scale,
        })];
        if let Some(ids) = &self.segments {
            let queries = plus(&x.q, &x.params[4]);
            terms.push(Box::new(Segment { grid, ids, queries, segment: x.params[3], scale }));
        }
        Lowered {
            pair: Box::new(Product),
            q: Operand::Made(plus(&x.q, &x.params[1]), shape),
            k: Operand::Given(x.k),
            scale,
            weights: vec![],
            map: None,
            terms,
        }
    }
    fn raise(&self, grid: &Grid, _: ScoreOperands, _: f32, mut grads: Raise) -> Vec<Vec<f32>> {
        let Dims { h, t, d, .. } = grid.dims;
        // forward: q + u, q + w and q + x are three sums with the same q
        let over_rows = |rows: &[f32]| {
            let mut sum = zeros(&[h, d]);
            for (row, values) in rows.chunks_exact(d.max(1)).enumerate() {
                let h = row / t % h;
                sum[h * d..].iter_mut().zip(values).for_each(|(sum, x)| *sum += x);
            }
            sum
        };
        let position = std::mem::take(&mut grads.terms[0]);
        spread(&grads.q, grads.dq, false);
        spread(&position[1], grads.dq, true);
        let mut out = vec![position[0].clone(), over_rows(&grads.q), over_rows(&position[1])];
        if let Some(segment) = grads.terms.get_mut(1).map(std::mem::take) {
            spread(&segment[1], grads.dq, true);
            out.push(segment[0].clone());
            out.push(over_rows(&segment[1]));
        }
        out
    }
}

/// Queries plus a vector of their head, contiguous.
fn plus(q: &View, add: &View) -> Vec<f32> {
    let [_, h, t, d] = q.shape;
    let mut out = q.to_vec();
    for (row, values) in out.chunks_exact_mut(d.max(1)).enumerate() {
        let h = row / t.max(1) % h;
        values.iter_mut().enumerate().for_each(|(c, x)| *x += add.get(0, h, 0, c));
    }
    out
}

/// The rows of one head of a contiguous `[B, H, T, D]`.
fn head(data: &[f32], dims: &Dims, b: usize, h: usize) -> Rows {
    let start = &data[(b * dims.h + h) * dims.t * dims.d..];
    Rows { start: start.as_ptr(), row: dims.d as isize, col: 1, width: dims.d }
}

/// `scale · (q + w) · r_{p−j}`
struct Position<'a> {
    grid: &'a Grid,
    queries: Vec<f32>,
    r: View<'a>,
    scale: f32,
}

/// Some queries of a block, and the rows of `r` that they need.
struct Few<'a> {
    /// Lanes of these queries in the block.
    lanes: Range<usize>,
    rows: Rows,
    /// First row of `r`, and number of rows.
    first: usize,
    count: usize,
    /// Offset from the first row to each query's row for the first key.
    shifts: &'a [usize],
}

impl Position<'_> {
    /// Calls `f` with all queries of a block if they are adjacent, otherwise with one vector of
    /// them at a time.
    fn each(&self, at: &At, tile: &Tile, mut f: impl FnMut(Few)) {
        let Keys::Run { start, len } = at.keys else {
            panic!("relative positions need runs of keys")
        };
        let (dims, queries) = (&self.grid.dims, tile.queries);
        let mut places = [0; QUERIES];
        for (lane, place) in places[..queries].iter_mut().enumerate() {
            *place = self.grid.key_at(at.b, at.i0 + lane).expect("places were checked");
        }
        let side_by_side = places[..queries].windows(2).all(|two| two[0] + 1 == two[1]);
        let each = if side_by_side { QUERIES } else { isa().lanes() };
        for (group, places) in places[..queries].chunks_mut(each).enumerate() {
            let (mut lowest, mut highest) = (usize::MAX, 0);
            for place in &*places {
                (lowest, highest) = (lowest.min(*place), highest.max(*place));
            }
            places.iter_mut().for_each(|place| *place = highest - *place);
            let lanes = group * each..group * each + places.len();
            f(Few {
                rows: head(&self.queries, dims, at.b, at.h).from(at.i0 + lanes.start),
                lanes,
                first: dims.s - highest + start,
                count: highest - lowest + len,
                shifts: places,
            });
        }
    }
}

impl Term for Position<'_> {
    fn accumulator(&self) -> usize {
        let ([_, _, rows, _], Dims { t, d, .. }) = (self.r.shape, self.grid.dims);
        (rows + t) * padded(d)
    }

    fn apply(&self, at: &At, tile: &mut Tile) {
        let (all, cells) = (tile.lanes, std::mem::take(&mut tile.data));
        self.each(at, tile, |Few { lanes, rows, first, count, shifts }| {
            let (queries, wide) = (lanes.len(), padded(lanes.len()));
            let mut packed = Scratch::new(packed_len(wide, rows.width));
            let mut terms = Scratch::new(count * wide);
            let mut terms =
                Tile { data: &mut terms, keys: count, lanes: wide, queries, spans: None };
            // SAFETY: the block's queries exist, and `r` has the rows: queries stand among the
            // last keys, and for n of them distances lie between −(n − 1) and S − 1.
            unsafe {
                pack(rows, queries, self.scale, &mut packed);
                let keys = Rows::of(&self.r, 0, at.h);
                let (packed, weights) = (packed.as_ptr(), std::ptr::null());
                let place = (at.h, at.i0 + lanes.start);
                let source =
                    TileOperands { packed, queries: rows, scale: self.scale, keys, weights, place };
                Product.fill(&source, Keys::Run { start: first, len: count }, &mut terms);
            }
            for (row, cells) in cells.chunks_exact_mut(all).take(at.keys.len()).enumerate() {
                for (lane, shift) in shifts.iter().enumerate() {
                    cells[lanes.start + lane] += terms.data[(shift + row) * wide + lane];
                }
            }
        });
        tile.data = cells;
    }

    fn gradient(&self, at: &At, ds: &mut Tile, sums: &mut [f32]) {
        let ([_, _, of_r, d], wide) = (self.r.shape, padded(self.grid.dims.d));
        debug_assert_eq!(d, self.grid.dims.d);
        let (dr, dq) = sums.split_at_mut(of_r * wide);
        self.each(at, ds, |Few { lanes, rows, first, count, shifts }| {
            let (queries, across) = (lanes.len(), padded(lanes.len()));
            let mut sheared = Scratch::zeroed(count * across);
            for (row, cells) in ds.data.chunks_exact(ds.lanes).take(ds.keys).enumerate() {
                for (lane, shift) in shifts.iter().enumerate() {
                    sheared[(shift + row) * across + lane] = cells[lanes.start + lane];
                }
            }
            let sheared =
                Tile { data: &mut sheared, keys: count, lanes: across, queries, spans: None };
            let to = (at.i0 + lanes.start) * wide;
            // SAFETY: as in `apply`.
            unsafe {
                // forward: s += scale · (q + w)_i · r_t
                let block = RowBlock::new(rows, queries, false);
                accumulate(&sheared, Over::Queries, &block, &mut dr[first * wide..], wide);
                let block = RowBlock::new(Rows::of(&self.r, 0, at.h).from(first), count, false);
                accumulate(&sheared, Over::Keys, &block, &mut dq[to..], wide);
            }
        });
    }

    fn collect(&self, sums: &[f32]) -> Vec<Vec<f32>> {
        let [_, h, rows, d] = self.r.shape;
        let (wide, each) = (padded(d), self.accumulator());
        // Without queries and keys there are no sums, and chunks of size 0 are not allowed.
        let each = each.max(1);
        let (mut dr, mut dq) = (room(&[sums.len() / each, rows, d]), room(&[self.queries.len()]));
        for sums in sums.chunks_exact(each) {
            for (n, row) in sums.chunks_exact(wide).enumerate() {
                let to = if n < rows { &mut dr } else { &mut dq };
                to.extend(row[..d].iter().map(|x| x * self.scale));
            }
        }
        vec![sum_over_batch(&dr, h, rows * d), dq]
    }
}

/// `scale · (q + x) · g`, with one `g` for the same segment and one for different segments.
struct Segment<'a> {
    grid: &'a Grid,
    ids: &'a [i64],
    queries: Vec<f32>,
    segment: View<'a>,
    scale: f32,
}

impl Segment<'_> {
    /// The ids of all keys of a batch row.
    fn row(&self, b: usize) -> &[i64] {
        let s = self.grid.dims.s;
        &self.ids[b * s..(b + 1) * s]
    }

    /// The ids of a block's queries.
    fn own(&self, at: &At, tile: &Tile) -> [i64; QUERIES] {
        let mut own = [0; QUERIES];
        for (lane, own) in own[..tile.queries].iter_mut().enumerate() {
            let place = self.grid.key_at(at.b, at.i0 + lane).expect("places were checked");
            *own = self.row(at.b)[place];
        }
        own
    }
}

impl Term for Segment<'_> {
    fn accumulator(&self) -> usize {
        2 * self.grid.dims.t
    }
    fn apply(&self, at: &At, tile: &mut Tile) {
        let dims = &self.grid.dims;
        let rows = head(&self.queries, dims, at.b, at.h);
        let terms: Vec<[f32; 2]> = (at.i0..at.i0 + tile.queries)
            .map(|i| {
                [0, 1].map(|g| {
                    // SAFETY: the block's queries exist.
                    let term = |c| unsafe { rows.get(i, c) } * self.segment.get(0, at.h, g, c);
                    self.scale * (0..dims.d).map(term).sum::<f32>()
                })
            })
            .collect();
        let (own, row) = (self.own(at, tile), self.row(at.b));
        each_cell(at, tile, |s, i, j| {
            let lane = i - at.i0;
            *s += terms[lane][usize::from(own[lane] != row[j])];
        });
    }
    fn gradient(&self, at: &At, ds: &mut Tile, sums: &mut [f32]) {
        let (own, row) = (self.own(at, ds), self.row(at.b));
        each_cell(at, ds, |ds, i, j| sums[2 * i + usize::from(own[i - at.i0] != row[j])] += *ds);
    }
    fn collect(&self, sums: &[f32]) -> Vec<Vec<f32>> {
        let Dims { h, t, d, .. } = self.grid.dims;
        // forward: s += scale · Σ_c (q + x)[c] · g[c]
        let (mut dg, mut dq) = (zeros(&[h, 2, d]), zeros(&[self.queries.len()]));
        for (row, sums) in sums.chunks_exact(2).enumerate() {
            let h = row / t % h;
            for (g, sum) in sums.iter().enumerate() {
                for c in 0..d {
                    dg[(2 * h + g) * d + c] += self.scale * sum * self.queries[row * d + c];
                    dq[row * d + c] += self.scale * sum * self.segment.get(0, h, g, c);
                }
            }
        }
        vec![dg, dq]
    }
}
