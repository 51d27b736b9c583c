//! One task of a product: a block of the result.
//!
//! The block's columns are computed panel by panel. A panel's rows of one `k` block are in the
//! first or second-level cache (24 KiB with AVX2, 72 KiB with AVX-512) during the pass over the
//! rows of the left operand; those stay in the second.

use super::epilogue::Epilogue;
use super::matrix::{Matrix, MatrixMut};
use super::pack::PackedLeft;
use super::panels::{PackRight, pack_right};
use super::right::Right;
use super::tile::{self, Operands, Rows};
use crate::pool::checkpoint;
use crate::scratch::Scratch;
use crate::simd::{Kernel, Simd, fetch};
use std::ops::Range;

/// Summed features per pass: shorter ones load and store the result more often. On an Emerald
/// Rapids core 384 gave 81–87 % of the peak where 128, 192 and 256 gave 78–83 %; 512 is no better.
pub(super) const K_BLOCK: usize = 384;

/// Up to this many floats, a row-major right operand is not packed: packing would cost as much as
/// the product itself.
const FEW_FLOATS: usize = 16 * 1024;

/// Location of the right operand.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    /// Packed in panels of `k` rows each; the first row is feature `k_start`, and the first panel
    /// begins at column `n_start`.
    Panels { start: *const f32, k: usize, k_start: usize, n_start: usize },
    /// Not packed.
    Plain(Right<'a>),
}

/// Location of the left operand.
#[derive(Clone, Copy)]
pub(super) enum LeftSource<'a> {
    /// Packed, from row `m_start` and feature `k_start` on.
    Packed { left: PackedLeft, m_start: usize, k_start: usize },
    /// Not packed, with contiguous rows.
    Plain(Matrix<'a>),
}

/// A block of a product.
pub(super) struct Block<'a> {
    pub a: LeftSource<'a>,
    pub b: Source<'a>,
    pub c: &'a MatrixMut<'a>,
    pub epilogue: &'a Epilogue<'a>,
    pub rows: Range<usize>,
    /// Columns of the block; the first is the first of a panel.
    pub cols: Range<usize>,
    /// Features to sum in this pass.
    pub ks: Range<usize>,
    /// Number of all features.
    pub k: usize,
    /// Distance in columns to the block that this thread is likely to compute next; 0 if unknown.
    pub later: usize,
}

impl Kernel for Block<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        // SAFETY: whoever makes a `Block` vouches that its ranges are inside of all operands and
        // that no other task has this block of `c`.
        unsafe { run(s, self) }
    }
}

#[inline(always)]
unsafe fn run<S: Simd>(s: S, block: Block) {
    let Block { a, b: source, c, epilogue, rows, cols, ks, k: all, later } = block;
    let (width, m) = (tile::width::<S>(), rows.len());
    let mut panel = Scratch::new(match source {
        Source::Plain(_) => width * K_BLOCK,
        Source::Panels { .. } => 0,
    });
    let in_place = match source {
        Source::Plain(Right::Matrix(b)) => b.col == 1 && b.rows * b.cols <= FEW_FLOATS,
        Source::Plain(Right::Stored(_)) | Source::Panels { .. } => false,
    };
    let ragged = !(cols.end - cols.start).is_multiple_of(S::LANES);
    let mut edge = Scratch::new(if ragged { m * width } else { 0 });

    let mut k = ks.start;
    loop {
        let k_end = (k + K_BLOCK).min(ks.end);
        let first = k == 0 && !epilogue.accumulate;
        let (a_start, a_row, a_rows) = match a {
            LeftSource::Plain(a) => (a.at(rows.start, k), a.row, Rows::Apart(a.row)),
            LeftSource::Packed { left, m_start, k_start } => {
                let k_len = k_end - k;
                let start = left.rows * (k - k_start) + (rows.start - m_start) * k_len;
                let step = k_len as isize;
                let rows = if left.grouped { Rows::Interleaved } else { Rows::Apart(step) };
                (left.start.wrapping_add(start), step, rows)
            }
        };
        let mut n = cols.start;
        while n < cols.end {
            let n_end = (n + width).min(cols.end);
            // SAFETY: the panel's rows `k..k_end` and columns `n..n_end` are inside.
            let (b, b_row) = unsafe {
                match source {
                    Source::Panels { start, k: rows, k_start, n_start } => {
                        let start = start.add((n - n_start) * rows + (k - k_start) * width);
                        (start, width as isize)
                    }
                    Source::Plain(Right::Matrix(b))
                        if in_place && (n_end - n).is_multiple_of(S::LANES) =>
                    {
                        (b.at(k, n), b.row)
                    }
                    Source::Plain(b) => {
                        let (b, to) = (b.skip_cols(n), panel.as_mut_ptr());
                        let rows = k..k_end;
                        pack_right(s, PackRight { b, rows, panels: 0..1, to, stride: 0 });
                        (to.cast_const(), width as isize)
                    }
                }
            };
            let whole = (n_end - n).is_multiple_of(S::LANES);
            let (c_start, c_row) = if whole {
                (c.at(rows.start, n), c.row)
            } else {
                (edge.as_mut_ptr(), width as isize)
            };
            // While this panel is used, the next one is prefetched.
            let next = match source {
                Source::Panels { start, k: rows, k_start, n_start } => {
                    let (n, k) = match (n_end < cols.end, k_end < ks.end) {
                        (true, _) => (n_end, k),
                        (false, true) => (cols.start, k_end),
                        (false, false) => (cols.start + later, ks.start),
                    };
                    start.wrapping_add((n - n_start) * rows + (k - k_start) * width)
                }
                Source::Plain(_) => b,
            };
            let operands = Operands {
                k: k_end - k,
                a: a_start,
                rows: a_rows,
                b,
                b_row,
                c: c_start,
                c_row,
                add: whole && !first,
                next,
            };
            let strip = Strip { rows: m, cols: n_end - n, a_row };
            // SAFETY: sizes and operands are those of the panel; the target is this block's part
            // of `c`, or `edge`, which has room for a panel of it.
            unsafe {
                panel_product(s, strip, operands);
                if !whole {
                    merge(s, &edge, c, rows.clone(), n..n_end, !first);
                }
                if k_end == all {
                    epilogue.finish(s, c, rows.clone(), n..n_end);
                }
            }
            n = n_end;
        }
        k = k_end;
        if k >= ks.end {
            return;
        }
        checkpoint();
    }
}

/// Sizes of a product with one panel.
#[derive(Clone, Copy)]
struct Strip {
    rows: usize,
    cols: usize,
    /// Stride between rows of the left operand, if not interleaved.
    a_row: isize,
}

/// Multiplies all rows of a block with one panel, tile by tile.
///
/// Meanwhile the tile's part of the result is prefetched, whose rows are on as many pages.
///
/// # Safety
/// As for [`tile::product`], for all rows.
#[inline(always)]
unsafe fn panel_product<S: Simd>(s: S, strip: Strip, x: Operands) {
    let height = tile::height::<S>();
    let vectors = strip.cols.div_ceil(S::LANES);
    let mut m = 0;
    while m < strip.rows {
        let rows = (strip.rows - m).min(height);
        let c = x.c.wrapping_offset(m as isize * x.c_row);
        for r in 0..rows {
            for v in 0..vectors {
                fetch(c.wrapping_offset(r as isize * x.c_row).wrapping_add(v * S::LANES));
            }
        }
        let next = x.next.wrapping_add(m / height * tile::fetched(x.k));
        // SAFETY: the caller's promises are these.
        unsafe {
            let a = x.a.offset(m as isize * strip.a_row);
            tile::product(s, rows, vectors, Operands { a, c, next, ..x });
        }
        m += height;
    }
}

/// Copies or adds a panel whose columns do not fill their vectors to the result.
#[inline(always)]
unsafe fn merge<S: Simd>(
    s: S,
    edge: &[f32],
    c: &MatrixMut,
    rows: Range<usize>,
    cols: Range<usize>,
    add: bool,
) {
    for row in rows.clone() {
        let mut col = cols.start;
        while col < cols.end {
            let n = (cols.end - col).min(S::LANES);
            let at = (row - rows.start) * tile::width::<S>() + col - cols.start;
            // SAFETY: `n` columns from `col` on are inside; a row of `edge` is a whole panel.
            unsafe {
                let mut x = s.load(edge.as_ptr().add(at));
                let to = c.at(row, col);
                if add {
                    x = s.add(s.load_part(to, n), x);
                }
                s.store_part(to, n, x);
            }
            col += n;
        }
    }
}
