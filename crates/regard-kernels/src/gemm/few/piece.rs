//! A part of a product with few rows on the left.

use super::super::matrix::Matrix;
use crate::simd::{Kernel, Simd, fetch};
use crate::storage::Lines;
use std::ops::Range;

/// One pass over some columns: `to[r, col] = Σ_ks a[r, k]·b[k, col]`.
pub(super) struct Piece<'a, L> {
    pub a: Matrix<'a>,
    pub b: L,
    /// Whether lines of `b` are columns.
    pub turned: bool,
    pub m: usize,
    pub ks: Range<usize>,
    /// Columns; the first is a multiple of the lanes.
    pub cols: Range<usize>,
    pub to: *mut f32,
    pub stride: usize,
}

impl<L: Lines> Kernel for Piece<'_, L> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        // SAFETY: whoever makes a `Piece` vouches that its ranges are inside of all operands, that
        // rows of `to` are whole vectors, and that no other task has these columns of them.
        unsafe {
            match self.turned {
                false if self.m == 1 => self.in_order::<S, 1>(s),
                false if self.m == IN_ORDER => self.in_order::<S, IN_ORDER>(s),
                false => self.side_by_side(s),
                true => self.turned(s),
            }
        }
    }
}

/// Rows of the right operand that are read side by side if the left operand has more than
/// [`IN_ORDER`] rows, so that a sum is loaded and stored once for all of them.
const AT_ONCE: usize = 8;

/// Up to this many rows of the left operand, the right one is read in the order of memory, row by
/// row. The products of a token of GPT-2 124M on 2 cores of an AMD Zen 5, in percent of a plain
/// parallel read: eight rows side by side, cut into columns, 64; in whole rows, four side by side
/// 75, two 80, one 90, and 105 with a loop that does nothing else.
pub(super) const IN_ORDER: usize = 2;

impl<L: Lines> Piece<'_, L> {
    /// `n` elements of a line.
    #[inline(always)]
    unsafe fn numbers<S: Simd>(&self, s: S, line: usize, at: usize, n: usize) -> S::V {
        // SAFETY: the caller's promise is this.
        unsafe {
            match n == S::LANES {
                true => self.b.load(s, line, at),
                false => self.b.load_part(s, line, at, n),
            }
        }
    }

    /// The right operand's rows are contiguous, and read one after another.
    #[inline(always)]
    unsafe fn in_order<S: Simd, const M: usize>(&self, s: S) {
        /// Vectors between two checks of the end.
        const UNROLL: usize = 4;
        for k in self.ks.clone() {
            let mut a = [s.splat(0.0); M];
            for (r, a) in a.iter_mut().enumerate() {
                // SAFETY: row `r` and feature `k` are inside.
                *a = s.splat(unsafe { *self.a.at(r, k) });
            }
            let first = k == self.ks.start;
            let mut col = self.cols.start;
            // SAFETY: these columns of row `k` are inside, and as for the whole.
            unsafe {
                while col + UNROLL * S::LANES <= self.cols.end {
                    for u in 0..UNROLL {
                        let at = col + u * S::LANES;
                        let b = self.b.load(s, k, at);
                        fetch(self.b.place(k + 1, at));
                        self.add_row(s, first, &a, at, b);
                    }
                    col += UNROLL * S::LANES;
                }
                while col < self.cols.end {
                    let n = (self.cols.end - col).min(S::LANES);
                    let b = self.numbers(s, k, col, n);
                    self.add_row(s, first, &a, col, b);
                    col += S::LANES;
                }
            }
        }
    }

    /// Adds `b`, a vector of a row of the right operand, times `a` to the sums of every row.
    #[inline(always)]
    unsafe fn add_row<S: Simd>(&self, s: S, first: bool, a: &[S::V], col: usize, b: S::V) {
        for (r, a) in a.iter().enumerate() {
            // SAFETY: the caller's promises are these.
            unsafe {
                let to = self.to.add(r * self.stride + col);
                let sum = if first { s.splat(0.0) } else { s.load(to) };
                s.store(to, s.fma(*a, b, sum));
            }
        }
    }

    /// The right operand's rows are contiguous, and [`AT_ONCE`] of them are read side by side.
    #[inline(always)]
    unsafe fn side_by_side<S: Simd>(&self, s: S) {
        const ROWS: usize = AT_ONCE;
        let mut k = self.ks.start;
        while k < self.ks.end {
            let together = if self.ks.end - k >= ROWS { ROWS } else { 1 };
            let (first, ahead) = (k == self.ks.start, k + 2 * ROWS <= self.ks.end);
            let mut col = self.cols.start;
            while col < self.cols.end {
                let n = (self.cols.end - col).min(S::LANES);
                let mut rows = [s.splat(0.0); ROWS];
                for (u, row) in rows[..together].iter_mut().enumerate() {
                    // SAFETY: `n` columns of row `k + u` are inside.
                    *row = unsafe { self.numbers(s, k + u, col, n) };
                    if ahead {
                        fetch(self.b.place(k + u + ROWS, col));
                    }
                }
                // SAFETY: as for the whole.
                unsafe {
                    match together == ROWS {
                        true => self.add(s, first, [k, col], &rows),
                        false => self.add(s, first, [k, col], &rows[..1]),
                    }
                }
                col += S::LANES;
            }
            k += together;
        }
    }

    /// The right operand's columns are contiguous: it is transposed in squares of lanes.
    #[inline(always)]
    unsafe fn turned<S: Simd>(&self, s: S) {
        let mut col = self.cols.start;
        while col < self.cols.end {
            let width = (self.cols.end - col).min(S::LANES);
            let mut k = self.ks.start;
            while k < self.ks.end {
                let n = (self.ks.end - k).min(S::LANES);
                let first = k == self.ks.start;
                // No instruction set has more lanes.
                let mut square = [s.splat(0.0); 16];
                // SAFETY: `n` features of the columns are inside, and as for the whole.
                unsafe {
                    if width == S::LANES && n == S::LANES {
                        // All bounds are constants, so that the square stays in registers.
                        for (c, line) in square[..S::LANES].iter_mut().enumerate() {
                            *line = self.b.load(s, col + c, k);
                            fetch(self.b.place(col + c + S::LANES, k));
                        }
                        s.transpose(&mut square[..S::LANES]);
                        self.add(s, first, [k, col], &square[..S::LANES]);
                    } else {
                        for (c, line) in square[..width].iter_mut().enumerate() {
                            *line = self.numbers(s, col + c, k, n);
                        }
                        s.transpose(&mut square[..S::LANES]);
                        self.add(s, first, [k, col], &square[..n]);
                    }
                }
                k += n;
            }
            col += S::LANES;
        }
    }

    /// Adds features from `k` on, in sequence, to a vector of every row.
    #[inline(always)]
    unsafe fn add<S: Simd>(&self, s: S, first: bool, [k, col]: [usize; 2], b: &[S::V]) {
        for r in 0..self.m {
            // SAFETY: the caller's promises are these.
            unsafe {
                let (a, to) = (self.a.at(r, k), self.to.add(r * self.stride + col));
                let mut sum = if first { s.splat(0.0) } else { s.load(to) };
                for (u, b) in b.iter().enumerate() {
                    sum = s.fma(s.splat(*a.add(u)), *b, sum);
                }
                s.store(to, sum);
            }
        }
    }
}
