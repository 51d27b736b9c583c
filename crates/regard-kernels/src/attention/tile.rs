//! Block of scores, transposed: a row for each key, a lane for each query.
//!
//! In this layout nothing has to be repacked per block of keys: scores read keys one float at a
//! time, weights are summed over keys lane by lane, and the product with the values reads values
//! along their rows. Row maxima and sums need no reduction across lanes.

use super::grid::Grid;
use crate::gemm::micro::{
    Left, Limits, Product, ProductOperands, Right, Size, Span, Target, panel_width, product,
};
use crate::simd::{Kernel, Simd, dispatch};

use super::listed::AccumulateListed;
use super::rows::RowBlock;

/// Block of scores or weights: cell `(key, query)` is at `data[key · lanes + query]`.
pub struct Tile<'a> {
    /// Cells, `keys · lanes` of them.
    pub data: &'a mut [f32],
    /// Number of keys in the block.
    pub keys: usize,
    /// Number of queries in the block, rounded up to whole vectors.
    pub lanes: usize,
    /// Number of queries in the block.
    pub queries: usize,
    /// Unmasked cells; `None` if unknown.
    pub spans: Option<&'a Spans>,
}

/// Unmasked cells of a block, as ranges.
#[derive(Debug, Default)]
pub struct Spans {
    /// For each key, the range of queries that attend to it.
    pub by_key: Vec<Span>,
    /// For each query, the range of keys that it attends to.
    pub by_query: Vec<Span>,
}

impl Tile<'_> {
    /// Returns the cells of one key.
    pub fn row(&mut self, key: usize) -> &mut [f32] {
        &mut self.data[key * self.lanes..(key + 1) * self.lanes]
    }
}

/// Keys of a block's rows.
#[derive(Clone, Copy, Debug)]
pub enum Keys<'a> {
    /// Consecutive keys, the same for all queries.
    Run {
        /// First key.
        start: usize,
        /// Number of keys.
        len: usize,
    },
    /// A list for each query: `index[row · lanes + query]`, [`Keys::NONE`] past the end of a list.
    Listed {
        /// Keys of all cells.
        index: &'a [u32],
        /// Length of the longest list.
        len: usize,
        /// Number of queries, rounded up to whole vectors.
        lanes: usize,
    },
}

impl Keys<'_> {
    /// Marks a cell without a key.
    pub const NONE: u32 = u32::MAX;

    /// Returns the number of rows of the block.
    pub fn len(&self) -> usize {
        match self {
            Keys::Run { len, .. } | Keys::Listed { len, .. } => *len,
        }
    }

    /// Whether the block has no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the key of a cell; `None` past the end of a list.
    #[inline(always)]
    pub fn key(&self, row: usize, lane: usize) -> Option<usize> {
        match self {
            Keys::Run { start, .. } => Some(start + row),
            Keys::Listed { index, lanes, .. } => {
                let key = index[row * lanes + lane];
                (key != Keys::NONE).then_some(key as usize)
            }
        }
    }
}

/// Location of a block in the score matrices.
#[derive(Clone, Copy)]
pub struct At<'a> {
    /// Sizes and positions.
    pub grid: &'a Grid,
    /// Batch row.
    pub b: usize,
    /// Query head.
    pub h: usize,
    /// First query of the block.
    pub i0: usize,
    /// Keys of the block's rows.
    pub keys: Keys<'a>,
}

/// Calls `f(cell, query, key)` for every cell that has a key.
pub(crate) fn each_cell(at: &At, tile: &mut Tile, mut f: impl FnMut(&mut f32, usize, usize)) {
    let (lanes, queries) = (tile.lanes, tile.queries);
    for (row, cells) in tile.data.chunks_exact_mut(lanes).take(tile.keys).enumerate() {
        for (lane, cell) in cells.iter_mut().take(queries).enumerate() {
            if let Some(key) = at.keys.key(row, lane) {
                f(cell, at.i0 + lane, key);
            }
        }
    }
}

/// Side of a tile that is summed over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    /// `target[query] += Σ_key tile[key, query] · rows[key]`
    Keys,
    /// `target[key] += Σ_query tile[key, query] · rows[query]`
    Queries,
}

/// Multiplies a tile with rows and adds to `target`, whose rows are `wide` floats.
///
/// Rows that hold NaN or infinity affect only the targets whose weight for them is not 0.
///
/// # Safety
/// `rows` must have a row for each key or query of the tile.
pub(crate) unsafe fn accumulate(
    tile: &Tile,
    over: Over,
    rows: &RowBlock,
    target: &mut [f32],
    wide: usize,
) {
    let (m, k, row, col) = match over {
        Over::Keys => (tile.queries, tile.keys, 1, tile.lanes as isize),
        Over::Queries => (tile.keys, tile.queries, tile.lanes as isize, 1),
    };
    assert!(target.len() >= m * wide && tile.data.len() >= tile.keys * tile.lanes);
    let a = Left { start: tile.data.as_ptr(), row, col };
    let features = tile.spans.map(|spans| match over {
        Over::Keys => &spans.by_query[..],
        Over::Queries => &spans.by_key[..],
    });
    let limits = Limits { features, columns: None };
    let target_start = target.as_mut_ptr();
    dispatch(Accumulate { size: Size { m, n: wide, k }, a, rows, target: target_start, limits });
    for n in &rows.poisoned {
        for (m, target) in target.chunks_exact_mut(wide).take(m).enumerate() {
            let at = m as isize * row + *n as isize * col;
            let weight = tile.data[at as usize];
            if weight != 0.0 {
                for (d, x) in target.iter_mut().enumerate().take(rows.original.width) {
                    // SAFETY: the row is one of the block's.
                    *x += weight * unsafe { rows.original.get(*n, d) };
                }
            }
        }
    }
}

struct Accumulate<'a> {
    size: Size,
    a: Left,
    rows: &'a RowBlock,
    target: *mut f32,
    limits: Limits<'a>,
}

impl Kernel for Accumulate<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let panel = panel_width::<S>() as isize;
        let b = Right { start: self.rows.start, row: self.rows.row, panel };
        let c = Target { start: self.target, row: self.size.n as isize };
        // SAFETY: `accumulate` checked the tile and the target; its caller vouches for the rows.
        unsafe {
            let (operands, none) = (ProductOperands { a: self.a, b, c }, std::ptr::null());
            product::<S, Product, true>(s, Product, self.size, operands, none, self.limits)
        }
    }
}

/// Sets cells outside their query's range `[low, high)` of keys to `value`. The tile's keys are
/// consecutive from `start`.
pub(crate) fn mask_by_range(tile: &mut Tile, start: usize, low: &[f32], high: &[f32], value: f32) {
    assert!(low.len() >= tile.lanes && high.len() >= tile.lanes);
    assert!(tile.data.len() >= tile.keys * tile.lanes);
    let (keys, lanes) = (tile.keys, tile.lanes);
    dispatch(MaskByRange { data: tile.data.as_mut_ptr(), keys, lanes, start, low, high, value });
}

struct MaskByRange<'a> {
    data: *mut f32,
    keys: usize,
    lanes: usize,
    start: usize,
    low: &'a [f32],
    high: &'a [f32],
    value: f32,
}

impl Kernel for MaskByRange<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let value = s.splat(self.value);
        for lane in (0..self.lanes).step_by(S::LANES) {
            // SAFETY: `mask_by_range` checked that lanes and keys lie within the slices.
            unsafe {
                let low = s.load(self.low.as_ptr().add(lane));
                let high = s.load(self.high.as_ptr().add(lane));
                for row in 0..self.keys {
                    let key = s.splat((self.start + row) as f32);
                    let p = self.data.add(row * self.lanes + lane);
                    let allowed = s.both(s.le(low, key), s.lt(key, high));
                    s.store(p, s.select(allowed, s.load(p), value));
                }
            }
        }
    }
}

/// Like [`accumulate`], for lists of keys: over keys, `rows` are all of the head; over queries, the
/// block's queries; `target` the other way round.
///
/// # Safety
/// `rows` must have a row for each listed key, or for each query of the tile.
pub(crate) unsafe fn accumulate_listed(product: AccumulateListed) {
    dispatch(product);
}
