//! Packing of operands, so that the register tile reads them in order.
//!
//! The right operand is packed into panels of [`width`] columns, `[panel][k][column]`, the last one
//! padded with zeros; for the left one see [`PackedLeft`].

use super::block::K_BLOCK;
use super::matrix::Matrix;
use super::panels::PackRight;
use super::right::Right;
use super::tile::{height, width};
use crate::pool::{parallel, parallel_ranges};
use crate::scratch::{Aligned, Scratch};
use crate::simd::{Isa, Kernel, Simd, dispatch_on, isa};
use crate::storage::Stored;
use crate::view::{Error, bail};
use std::ops::Range;

/// Right operand that is packed once, for many products.
pub struct Packed {
    data: Aligned,
    isa: Isa,
    rows: usize,
    cols: usize,
}

impl Packed {
    /// Packs `b`.
    pub fn new(b: Matrix) -> Packed {
        Packed::on(isa(), Right::Matrix(b))
    }

    /// Packs an operand `[rows, cols]` whose columns are the lines of memory of `parts`, in
    /// sequence; each part is `[cols of it, rows]`.
    ///
    /// # Errors
    /// If there is no part, or if their lines differ in length.
    pub fn of_columns(parts: &[Stored]) -> Result<Packed, Error> {
        let shapes: Vec<[usize; 2]> = parts.iter().map(Stored::shape).collect();
        let Some(rows) = shapes.first().map(|shape| shape[1]) else { bail!("packed: no columns") };
        if shapes.iter().any(|shape| shape[1] != rows) {
            bail!("packed: columns of different lengths: {shapes:?}");
        }
        if let [part] = parts {
            return Ok(Packed::on(isa(), part.t().into()));
        }
        // A panel may have columns of two parts, which are copied together first.
        let cols: usize = shapes.iter().map(|shape| shape[0]).sum();
        let mut all = Scratch::new(cols * rows);
        let mut rest = &mut all[..];
        for (part, [lines, _]) in parts.iter().zip(shapes) {
            let (to, after) = rest.split_at_mut(lines * rows);
            part.to_floats(to)?;
            rest = after;
        }
        Ok(Packed::new(Matrix::new(&all, cols, rows)?.t()))
    }

    pub(super) fn on(isa: Isa, b: Right) -> Packed {
        let [rows, cols] = b.shape();
        let width = tile(isa).width;
        let mut data = Aligned::new(cols.div_ceil(width) * width * rows);
        pack_all(isa, b, &mut data);
        Packed { data, isa, rows, cols }
    }

    /// Returns the number of floats that a packed matrix `[rows, cols]` takes.
    pub fn floats([rows, cols]: [usize; 2]) -> usize {
        cols.next_multiple_of(tile(isa()).width) * rows
    }

    /// Returns the numbers of rows and columns.
    pub fn shape(&self) -> [usize; 2] {
        [self.rows, self.cols]
    }

    pub(super) fn isa(&self) -> Isa {
        self.isa
    }

    pub(super) fn start(&self) -> *const f32 {
        self.data.as_ptr()
    }
}

/// Size of the register tile of an instruction set.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    pub rows: usize,
    /// Number of columns.
    pub width: usize,
}

pub(super) fn tile(isa: Isa) -> Tile {
    struct Ask;
    impl Kernel for Ask {
        type Out = Tile;
        #[inline(always)]
        fn run<S: Simd>(self, _: S) -> Tile {
            Tile { rows: height::<S>(), width: width::<S>() }
        }
    }
    dispatch_on(isa, Ask)
}

/// Packs a whole matrix on all threads.
pub(super) fn pack_all(isa: Isa, b: Right, to: &mut [f32]) {
    let width = tile(isa).width;
    let [k, n] = b.shape();
    let panels = n.div_ceil(width);
    assert!(to.len() >= panels * width * k, "the room for a packed matrix is too small");
    let room = Room(to.as_mut_ptr());
    let room = &room;
    let stride = k * width;
    // Tasks of 256 KiB, about 30 µs, in the order of memory: some rows of all panels, or some
    // panels.
    if b.by_rows() {
        let piece = (TASK / (panels * width).max(1)).max(1).next_multiple_of(ROWS_AT_ONCE);
        parallel_ranges(k, piece, &|from, to| {
            for row in (from..to).step_by(ROWS_AT_ONCE) {
                // SAFETY: the rows lie within the room, by the assertion above.
                let start = unsafe { room.0.add(row * width) };
                let rows = row..(row + ROWS_AT_ONCE).min(to);
                dispatch_on(isa, PackRight { b, rows, panels: 0..panels, to: start, stride });
            }
        });
    } else {
        parallel_ranges(panels, (TASK / stride.max(1)).max(1), &|from, to| {
            // SAFETY: the panels lie within the room, by the assertion above.
            let start = unsafe { room.0.add(from * stride) };
            dispatch_on(isa, PackRight { b, rows: 0..k, panels: from..to, to: start, stride });
        });
    }
}

/// Floats per task.
const TASK: usize = 64 * 1024;

/// Rows of a row-major matrix that are packed in parallel: as many streams and pages as a CPU
/// handles easily.
const ROWS_AT_ONCE: usize = 16;

/// Packed left operand, in blocks of [`K_BLOCK`] features. Within a block of `k` features:
/// `[group][k][row]` in groups of [`height`] rows if its columns were contiguous, otherwise
/// `[row][k]`. In both cases a group's block starts at `row · k`.
#[derive(Clone, Copy)]
pub(super) struct PackedLeft {
    pub start: *const f32,
    /// Number of rows, including those that fill the last group.
    pub rows: usize,
    /// Whether rows are grouped.
    pub grouped: bool,
}

/// Packs the left operand on all threads.
pub(super) fn pack_left(isa: Isa, a: Matrix, to: &mut [f32]) -> PackedLeft {
    let [m, k] = a.shape();
    let rows = m.next_multiple_of(tile(isa).rows);
    assert!(to.len() >= rows * k, "the room for a packed matrix is too small");
    let grouped = a.row == 1 && a.col != 1;
    let room = Room(to.as_mut_ptr());
    let room = &room;
    // Tasks of up to 128 KiB; a multiple of every group size.
    let piece = 120_usize.next_multiple_of(tile(isa).rows);
    let pieces = m.div_ceil(piece);
    parallel(pieces * k.div_ceil(K_BLOCK), &|task| {
        let (row, col) = (task % pieces * piece, task / pieces * K_BLOCK);
        let cols = col..(col + K_BLOCK).min(k);
        // SAFETY: within the room, by the assertion above.
        let to = unsafe { room.0.add(rows * col + row * cols.len()) };
        let rows = row..(row + piece).min(m);
        dispatch_on(isa, PackLeft { a, rows, cols, grouped, to });
    });
    PackedLeft { start: to.as_ptr(), rows, grouped }
}

struct PackLeft<'a> {
    a: Matrix<'a>,
    rows: Range<usize>,
    cols: Range<usize>,
    grouped: bool,
    to: *mut f32,
}

impl Kernel for PackLeft<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let PackLeft { a, rows, cols, grouped, to } = self;
        let k = cols.len();
        // SAFETY: rows and columns are inside the matrix, and `pack_left` vouches for the room.
        unsafe {
            if grouped {
                // Feature by feature, in the order of memory.
                for c in 0..k {
                    let (from, to) = (a.at(rows.start, cols.start + c), to.add(c * height::<S>()));
                    let mut r = 0;
                    while r + height::<S>() <= rows.len() {
                        std::ptr::copy_nonoverlapping(from.add(r), to.add(r * k), height::<S>());
                        r += height::<S>();
                    }
                    std::ptr::copy_nonoverlapping(from.add(r), to.add(r * k), rows.len() - r);
                }
            } else {
                for (i, row) in rows.enumerate() {
                    let (from, to) = (a.at(row, cols.start), to.add(i * k));
                    if a.col == 1 {
                        std::ptr::copy_nonoverlapping(from, to, k);
                    } else {
                        (0..k).for_each(|c| *to.add(c) = *from.offset(c as isize * a.col));
                    }
                }
            }
        }
    }
}

/// Memory of which tasks write disjoint parts.
struct Room(*mut f32);
// SAFETY: see above.
unsafe impl Sync for Room {}
