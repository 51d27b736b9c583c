//! Relative positions as in Transformer-XL and XLNet:
//! `s = scale · ((q + u)·k_j + (q + w)·r_{p−j} + (q + x)·g_{same segment?})`.
//!
//! The content term is a dot product like any other. The position term of a block of `m` queries
//! and `n` keys needs only `m + n − 1` rows of `r`: one more product, and a shear.

use super::*;
use crate::attention::pair::{Pairwise, Source};
use crate::attention::rows::{RowBlock, Rows, pack, packed_len, padded};
use crate::attention::term::sum_over_batch;
use crate::attention::tile::{Keys, Over, accumulate, each_cell};
use crate::gemm::micro::Product;
use crate::scratch::Scratch;
use crate::view::bail;

pub(super) const VARIANT: Variant = Variant {
    name: "relative",
    params: &[
        ("r", "[H,S+T,D], row S − (p − j) for the distance p − j"),
        ("u", "[H,D]"),
        ("w", "[H,D]"),
        ("segment", "[H,2,D], if segment ids are given: same, different"),
        ("x", "[H,D], if segment ids are given"),
    ],
    formula: "scale · ((q + u)·k + (q + w)·r[S − (p − j)] + (q + x)·segment[id_p ≠ id_j]), scale = 1/√D",
    paper: "Dai et al. 2019, arXiv:1901.02860; Yang et al. 2019, arXiv:1906.08237",
};

/// Content, position and, with `segments`, whether query and key are of one segment.
#[derive(Clone, Debug, Default)]
pub struct Relative {
    /// Segment ids of the keys, `[B·S]`; a query has the id of the key where it stands.
    pub segments: Option<Vec<i64>>,
}

impl Score for Relative {
    fn params(&self, dims: &Dims) -> Vec<Param> {
        let Dims { h, t, s, d, .. } = *dims;
        let mut params = vec![
            Param::new("r", [1, h, s + t, d]),
            Param::new("u", [1, h, 1, d]),
            Param::new("w", [1, h, 1, d]),
        ];
        if self.segments.is_some() {
            params.push(Param::new("segment", [1, h, 2, d]));
            params.push(Param::new("x", [1, h, 1, d]));
        }
        params
    }
    fn check(&self, grid: &Grid) -> Result<(), Error> {
        same_width(grid)?;
        let Dims { b, t, s, .. } = grid.dims;
        let at_end = |at: usize| grid.position(at / t, at % t) == (at % t + s) as f32 - t as f32;
        if t > s || !(0..b * t).all(at_end) {
            bail!("relative: got T = {t} queries that do not stand at the last of S = {s} keys");
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
    fn takes_lists(&self) -> bool {
        false
    }
    #[allow(private_interfaces)]
    fn lower<'a>(&'a self, grid: &'a Grid, x: Operands<'a>, scale: f32) -> Lowered<'a> {
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
    #[allow(private_interfaces)]
    fn raise(&self, grid: &Grid, _: Operands, _: f32, mut grads: Raise) -> Vec<Vec<f32>> {
        let Dims { h, t, d, .. } = grid.dims;
        // forward: q + u, q + w and q + x are three sums with the same q
        let over_rows = |rows: &[f32]| {
            let mut sum = vec![0.0; h * d];
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

/// Queries with a vector of their head added, contiguous.
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

impl Position<'_> {
    /// The block's queries, and the rows of `r` that it needs.
    fn rows(&self, at: &At, tile: &Tile) -> (Rows, usize, usize) {
        let Keys::Run { start, len } = at.keys else {
            panic!("relative positions need runs of keys")
        };
        let dims = &self.grid.dims;
        let last = at.i0 + tile.queries - 1 + dims.s - dims.t;
        let queries = head(&self.queries, dims, at.b, at.h).from(at.i0);
        (queries, dims.s - last + start, tile.queries + len - 1)
    }
}

impl Term for Position<'_> {
    fn accumulator(&self) -> usize {
        let Dims { t, s, d, .. } = self.grid.dims;
        (s + t + t) * padded(d)
    }

    fn apply(&self, at: &At, tile: &mut Tile) {
        let (queries, first, count) = self.rows(at, tile);
        let mut packed = Scratch::new(packed_len(tile.lanes, queries.width));
        let mut terms = Scratch::new(count * tile.lanes);
        let mut terms = Tile { data: &mut terms, keys: count, spans: None, ..*tile };
        // SAFETY: the block's queries exist, and `rows` gives rows that `r` has: for queries that
        // stand at the last keys, distances lie between −(S − 1) and S − 1.
        unsafe {
            pack(queries, tile.queries, self.scale, &mut packed);
            let keys = Rows::of(&self.r, 0, at.h);
            let (packed, weights) = (packed.as_ptr(), std::ptr::null());
            let place = (at.h, at.i0);
            let source = Source { packed, queries, scale: self.scale, keys, weights, place };
            Product.fill(&source, Keys::Run { start: first, len: count }, &mut terms);
        }
        for row in 0..tile.keys {
            for lane in 0..tile.queries {
                let sheared = (tile.queries - 1 - lane + row) * tile.lanes + lane;
                tile.data[row * tile.lanes + lane] += terms.data[sheared];
            }
        }
    }

    fn gradient(&self, at: &At, ds: &mut Tile, sums: &mut [f32]) {
        let Dims { t, s, d, .. } = self.grid.dims;
        let (queries, first, count) = self.rows(at, ds);
        let wide = padded(d);
        let mut sheared = Scratch::zeroed(count * ds.lanes);
        for row in 0..ds.keys {
            for lane in 0..ds.queries {
                let to = (ds.queries - 1 - lane + row) * ds.lanes + lane;
                sheared[to] = ds.data[row * ds.lanes + lane];
            }
        }
        let sheared = Tile { data: &mut sheared, keys: count, spans: None, ..*ds };
        let (dr, dq) = sums.split_at_mut((s + t) * wide);
        // SAFETY: as in `apply`.
        unsafe {
            // forward: s += scale · (q + w)_i · r_t
            let block = RowBlock::new(queries, ds.queries, false);
            accumulate(&sheared, Over::Queries, &block, &mut dr[first * wide..], wide);
            let block = RowBlock::new(Rows::of(&self.r, 0, at.h).from(first), count, false);
            accumulate(&sheared, Over::Keys, &block, &mut dq[at.i0 * wide..], wide);
        }
    }

    fn collect(&self, sums: &[f32]) -> Vec<Vec<f32>> {
        let Dims { h, t, s, d, .. } = self.grid.dims;
        let (wide, each) = (padded(d), self.accumulator());
        let (mut dr, mut dq) = (vec![], vec![]);
        for sums in sums.chunks_exact(each) {
            for (n, row) in sums.chunks_exact(wide).enumerate() {
                let to = if n < s + t { &mut dr } else { &mut dq };
                to.extend(row[..d].iter().map(|x| x * self.scale));
            }
        }
        vec![sum_over_batch(&dr, h, (s + t) * d), dq]
    }
}

/// `scale · (q + x) · g`, with one `g` for the same segment and one for another.
struct Segment<'a> {
    grid: &'a Grid,
    ids: &'a [i64],
    queries: Vec<f32>,
    segment: View<'a>,
    scale: f32,
}

impl Segment<'_> {
    /// 0 if query and key are of one segment, else 1.
    fn differ(&self, b: usize, query: usize, key: usize) -> usize {
        let Dims { t, s, .. } = self.grid.dims;
        usize::from(self.ids[b * s + query + s - t] != self.ids[b * s + key])
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
        each_cell(at, tile, |s, i, j| *s += terms[i - at.i0][self.differ(at.b, i, j)]);
    }
    fn gradient(&self, at: &At, ds: &mut Tile, sums: &mut [f32]) {
        each_cell(at, ds, |ds, i, j| sums[2 * i + self.differ(at.b, i, j)] += *ds);
    }
    fn collect(&self, sums: &[f32]) -> Vec<Vec<f32>> {
        let Dims { h, t, d, .. } = self.grid.dims;
        // forward: s += scale · Σ_c (q + x)[c] · g[c]
        let (mut dg, mut dq) = (vec![0.0; h * 2 * d], vec![0.0; self.queries.len()]);
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
