//! Packing of the right operand into panels.

use super::matrix::Matrix;
use super::right::Right;
use super::tile::{vectors, width};
use crate::simd::{Kernel, Simd};
use crate::storage::{Lines, Visit};
use std::ops::Range;

/// Packs the rows `rows` of the panels `panels`.
pub(super) struct PackRight<'a> {
    pub b: Right<'a>,
    pub rows: Range<usize>,
    pub panels: Range<usize>,
    /// Destination of the first row of the first panel.
    pub to: *mut f32,
    /// Stride between panels, in floats.
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
    // SAFETY: the caller's promises are those of all of them.
    unsafe {
        match job.b {
            Right::Matrix(b) if b.col == 1 => by_rows(s, b.lines(), &job),
            Right::Matrix(b) if b.row == 1 => by_columns(s, b.t().lines(), &job),
            Right::Matrix(b) => by_numbers::<S>(b, &job),
            Right::Stored(b) => b.visit(PackLines { s, job: &job }),
        }
    }
}

struct PackLines<'a, 'b, S> {
    s: S,
    job: &'b PackRight<'a>,
}

impl<S: Simd> Visit for PackLines<'_, '_, S> {
    type Out = ();
    #[inline(always)]
    fn visit<L: Lines>(self, lines: L) {
        // SAFETY: whoever calls `pack_right` promises it.
        unsafe {
            match self.job.b.by_rows() {
                true => by_rows(self.s, lines, self.job),
                false => by_columns(self.s, lines, self.job),
            }
        }
    }
}

impl PackRight<'_> {
    /// Each panel: its destination, its first column, and its number of columns.
    #[inline(always)]
    fn each<S: Simd>(&self) -> impl Iterator<Item = (*mut f32, usize, usize)> {
        let (n, to, stride) = (self.b.shape()[1], self.to, self.stride);
        let first = self.panels.start;
        self.panels.clone().map(move |p| {
            let from = p * width::<S>();
            (to.wrapping_add((p - first) * stride), from, (n - from).min(width::<S>()))
        })
    }
}

/// Lines of memory are rows.
///
/// # Safety
/// As for [`pack_right`].
#[inline(always)]
unsafe fn by_rows<S: Simd, L: Lines>(s: S, lines: L, job: &PackRight) {
    for (to, first, cols) in job.each::<S>() {
        for (r, row) in job.rows.clone().enumerate() {
            for v in 0..vectors::<S>() {
                let (at, have) = (v * S::LANES, cols.saturating_sub(v * S::LANES));
                // SAFETY: reads are of rows in `rows` and of the panel's columns, writes within it.
                unsafe {
                    let x = match have {
                        0 => s.splat(0.0),
                        _ if have >= S::LANES => lines.load(s, row, first + at),
                        _ => lines.load_part(s, row, first + at, have),
                    };
                    s.store(to.add(r * width::<S>() + at), x);
                }
            }
        }
    }
}

/// Lines of memory are columns, which are transposed in squares of lanes.
///
/// # Safety
/// As for [`pack_right`].
#[inline(always)]
unsafe fn by_columns<S: Simd, L: Lines>(s: S, lines: L, job: &PackRight) {
    let (k, start) = (job.rows.len(), job.rows.start);
    for (to, first, cols) in job.each::<S>() {
        let mut r = 0;
        while r < k {
            let have = (k - r).min(S::LANES);
            for v in 0..vectors::<S>() {
                let (at, row) = (v * S::LANES, start + r);
                let lanes = cols.saturating_sub(at).min(S::LANES);
                // SAFETY: the square is of rows in `rows` and of the panel's columns, and its place
                // is within the panel.
                unsafe {
                    let to = to.add(r * width::<S>() + at);
                    if lanes == S::LANES && have == S::LANES {
                        transpose(s, lines, [first + at, row], to);
                    } else {
                        transpose_part(s, lines, [first + at, row], [lanes, have], to);
                    }
                }
            }
            r += have;
        }
    }
}

/// Transposes a square of lanes: column `c` of the result comes from line `line + c`.
///
/// # Safety
/// The square must exist, and rows of a panel behind `to`.
#[inline(always)]
unsafe fn transpose<S: Simd, L: Lines>(s: S, lines: L, [line, at]: [usize; 2], to: *mut f32) {
    // All bounds are constants, so that all of it stays in registers.
    let mut square = [s.splat(0.0); 16];
    // SAFETY: the caller vouches for the square and for the panel.
    unsafe {
        for (c, x) in square[..S::LANES].iter_mut().enumerate() {
            *x = lines.load(s, line + c, at);
        }
        s.transpose(&mut square[..S::LANES]);
        for (r, x) in square[..S::LANES].iter().enumerate() {
            s.store(to.add(r * width::<S>()), *x);
        }
    }
}

/// Transposes a part of a square, with zeros in the missing columns.
///
/// # Safety
/// `have` elements of `lanes` lines must exist, and as many rows of a panel behind `to`.
#[inline(always)]
unsafe fn transpose_part<S: Simd, L: Lines>(
    s: S,
    lines: L,
    [line, at]: [usize; 2],
    [lanes, have]: [usize; 2],
    to: *mut f32,
) {
    let mut square = [s.splat(0.0); 16];
    // SAFETY: the caller vouches for the square and for the panel.
    unsafe {
        for (c, x) in square[..lanes].iter_mut().enumerate() {
            *x = lines.load_part(s, line + c, at, have);
        }
        s.transpose(&mut square[..S::LANES]);
        for (r, x) in square[..have].iter().enumerate() {
            s.store(to.add(r * width::<S>()), *x);
        }
    }
}

/// Neither rows nor columns are contiguous.
///
/// # Safety
/// As for [`pack_right`].
#[inline(always)]
unsafe fn by_numbers<S: Simd>(b: Matrix, job: &PackRight) {
    for (to, first, cols) in job.each::<S>() {
        for (r, row) in job.rows.clone().enumerate() {
            for c in 0..width::<S>() {
                // SAFETY: reads are of rows in `rows` and of the panel's columns, writes within it.
                unsafe {
                    let x = if c < cols { *b.at(row, first + c) } else { 0.0 };
                    *to.add(r * width::<S>() + c) = x;
                }
            }
        }
    }
}
