//! Operands rearranged so that the register tile reads them in order.
//!
//! The right operand goes into panels of [`width`] columns, `[panel][k][column]`, the last
//! one padded with zeros; the left one as [`PackedLeft`] says.

use super::block::K_BLOCK;
use super::matrix::Matrix;
use super::tile::{height, vectors, width};
use crate::pool::{parallel, parallel_ranges};
use crate::scratch::Aligned;
use crate::simd::{Isa, Kernel, Simd, dispatch_on, isa};
use std::ops::Range;

/// A right operand that has been rearranged once, for many products.
pub struct Packed {
    data: Aligned,
    isa: Isa,
    rows: usize,
    cols: usize,
}

impl Packed {
    /// Rearranges `b`.
    pub fn new(b: Matrix) -> Packed {
        Packed::on(isa(), b)
    }

    pub(super) fn on(isa: Isa, b: Matrix) -> Packed {
        let [rows, cols] = b.shape();
        let width = tile(isa).width;
        let mut data = Aligned::new(cols.div_ceil(width) * width * rows);
        pack_all(isa, b, &mut data);
        Packed { data, isa, rows, cols }
    }

    /// How many floats a matrix `[rows, cols]` takes when it is rearranged.
    pub fn floats([rows, cols]: [usize; 2]) -> usize {
        cols.next_multiple_of(tile(isa()).width) * rows
    }

    /// Rows and columns.
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

/// The register tile of an instruction set.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    pub rows: usize,
    /// Columns.
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
pub(super) fn pack_all(isa: Isa, b: Matrix, to: &mut [f32]) {
    let width = tile(isa).width;
    let [k, n] = b.shape();
    let panels = n.div_ceil(width);
    assert!(to.len() >= panels * width * k, "the room for a packed matrix is too small");
    let room = Room(to.as_mut_ptr());
    let room = &room;
    let stride = k * width;
    // Tasks of 256 KiB, about 30 µs, along the memory: some rows of all panels, or some panels.
    if b.col == 1 {
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

/// Floats to a task.
const TASK: usize = 64 * 1024;

/// Rows of a row-major matrix that are packed side by side: as many streams and pages as the CPU
/// follows with ease.
const ROWS_AT_ONCE: usize = 16;

/// Packs rows `rows` of the panels `panels`.
pub(super) struct PackRight<'a> {
    pub b: Matrix<'a>,
    pub rows: Range<usize>,
    pub panels: Range<usize>,
    /// Where the first row of the first panel goes.
    pub to: *mut f32,
    /// From panel to panel.
    pub stride: usize,
}

impl Kernel for PackRight<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        // SAFETY: whoever makes a `PackRight` vouches for the room; rows and columns are inside.
        unsafe { pack_right(s, self) }
    }
}

/// # Safety
/// `rows` must be inside the matrix, and `to` must have room for the panels.
#[inline(always)]
pub(super) unsafe fn pack_right<S: Simd>(s: S, job: PackRight) {
    let PackRight { b, rows, panels, to, stride } = job;
    let (width, k) = (width::<S>(), rows.len());
    let n = b.cols;
    // SAFETY: all reads are of rows in `rows` and columns below `n`, all writes within a panel.
    unsafe {
        for p in panels.clone() {
            let to = to.add((p - panels.start) * stride);
            let cols = (n - p * width).min(width);
            let from = b.at(rows.start, p * width);
            if b.col == 1 {
                for r in 0..k {
                    let from = from.offset(r as isize * b.row);
                    let to = to.add(r * width);
                    for v in 0..vectors::<S>() {
                        let (at, have) = (v * S::LANES, cols.saturating_sub(v * S::LANES));
                        let x = if have >= S::LANES {
                            s.load(from.add(at))
                        } else {
                            s.load_part(from.wrapping_add(at), have)
                        };
                        s.store(to.add(at), x);
                    }
                }
            } else {
                let mut r = 0;
                if b.row == 1 && cols == width {
                    while r + S::LANES <= k {
                        for v in 0..vectors::<S>() {
                            let from = from.add(r).offset((v * S::LANES) as isize * b.col);
                            transpose(s, from, b.col, to.add(r * width + v * S::LANES));
                        }
                        r += S::LANES;
                    }
                }
                for r in r..k {
                    for c in 0..width {
                        let from = from.offset(r as isize * b.row + c as isize * b.col);
                        *to.add(r * width + c) = if c < cols { *from } else { 0.0 };
                    }
                }
            }
        }
    }
}

/// A square of lanes: column `c` of the result comes from `from + c·step`, contiguous there.
#[inline(always)]
unsafe fn transpose<S: Simd>(s: S, from: *const f32, step: isize, to: *mut f32) {
    // SAFETY: the caller vouches for the square and for panel rows behind `to`.
    unsafe {
        let mut square = [s.splat(0.0); 16];
        for (c, x) in square[..S::LANES].iter_mut().enumerate() {
            *x = s.load(from.offset(c as isize * step));
        }
        s.transpose(&mut square[..S::LANES]);
        for (r, x) in square[..S::LANES].iter().enumerate() {
            s.store(to.add(r * width::<S>()), *x);
        }
    }
}

/// The left operand, a block of [`K_BLOCK`] features after another. Within a block of `k`
/// features, if its columns were contiguous: `[group][k][row]`, in groups of [`height`] rows;
/// otherwise `[row][k]`. Either way a group's block is where `row · k` points.
#[derive(Clone, Copy)]
pub(super) struct PackedLeft {
    pub start: *const f32,
    /// Rows, with those that fill the last group.
    pub rows: usize,
    /// Whether in groups.
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
    // Tasks of up to 128 KiB; a multiple of every group.
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
                // Feature by feature, because that is how the memory runs.
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

/// Memory that tasks write different parts of.
struct Room(*mut f32);
// SAFETY: see above.
unsafe impl Sync for Room {}
