//! Products whose left operand is mostly zeros: bags of words, one-hot rows, outputs of dropout or
//! ReLU. Its nonzeros are listed in one pass over the memory, and only they are multiplied.
//!
//! Sums are those of the dense product, bit for bit: a term `0 · b` with a finite `b` changes no
//! sum, and the others are added in the same order. That is why the algorithm may depend on the
//! data.

use super::block::K_BLOCK;
use super::epilogue::Epilogue;
use super::matrix::{Matrix, MatrixMut};
use crate::pool::{Parts, parallel, parallel_ranges};
use crate::scratch::Scratch;
use crate::simd::{Isa, Kernel, Simd, dispatch_on};
use std::cell::RefCell;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Multiply-adds below which checking for zeros does not pay off: 100 µs on one thread.
const WORTH: usize = 1 << 23;
/// At most one in so many elements may be nonzero. On one thread of an Emerald Rapids core, of
/// [2708, 1433] times 64, 256 and 1024 columns, 5.8 % took 0.85, 0.56 and 0.70 of the dense time, 3
/// % 0.59, 0.37 and 0.34.
const FEW: usize = 24;

/// The nonzeros of lines of memory, line by line.
struct Listed<'a> {
    /// Indices within the line.
    places: &'a [u32],
    numbers: &'a [f32],
    /// Range of each line's nonzeros.
    spans: Vec<Range<usize>>,
}

/// The nonzeros of one line.
#[derive(Clone, Copy)]
struct Line<'a> {
    /// Indices within the line.
    places: &'a [u32],
    numbers: &'a [f32],
}

impl Listed<'_> {
    #[inline(always)]
    fn line(&self, at: usize) -> Line<'_> {
        let span = self.spans[at].clone();
        Line { places: &self.places[span.clone()], numbers: &self.numbers[span] }
    }
}

thread_local! {
    /// Index buffer, reused by the next product.
    static PLACES: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

/// Whether the left operand of a large product seems to be mostly zeros, so that only its nonzeros
/// should be multiplied. Samples the operand.
pub fn seems_sparse(a: Matrix, b: Matrix) -> bool {
    let [m, k] = a.shape();
    let lines = lines(a);
    let worth = m * k * b.cols >= WORTH && b.cols >= FEW && lines.cols >= SAMPLE;
    worth && lines.col == 1 && b.col == 1 && looks_sparse(&lines)
}

/// The matrix whose rows are contiguous: `a` or its transpose.
fn lines(a: Matrix) -> Matrix {
    if a.col == 1 { a } else { a.t() }
}

/// Computes the product if the left operand is mostly zeros and returns true; otherwise returns
/// false.
pub(super) fn product(isa: Isa, a: Matrix, b: Matrix, c: &MatrixMut, epilogue: &Epilogue) -> bool {
    if !seems_sparse(a, b) {
        return false;
    }
    let job = SparseProduct { isa, lines: lines(a), by_rows: a.col == 1, b, c, epilogue };
    let mut kept = PLACES.take();
    let done = by_numbers(job, &mut kept);
    PLACES.set(kept);
    done
}

/// A product whose left operand is mostly zeros.
struct SparseProduct<'a> {
    isa: Isa,
    /// The left operand or its transpose, with contiguous rows.
    lines: Matrix<'a>,
    /// Whether the lines are the rows of the left operand.
    by_rows: bool,
    b: Matrix<'a>,
    c: &'a MatrixMut<'a>,
    epilogue: &'a Epilogue<'a>,
}

/// Computes the product, if all parts of the lines have few nonzeros. `places` is a buffer.
fn by_numbers(job: SparseProduct, places: &mut Vec<u32>) -> bool {
    let SparseProduct { isa, lines, by_rows, b, c, epilogue } = job;
    let each = lines.rows.div_ceil(64).max(8);
    // Each task has room for the maximum, so that none allocates: with many threads, waiting for
    // the allocator took longer than the work.
    let room = each * lines.cols / FEW;
    let all = lines.rows.div_ceil(each) * room;
    places.resize(places.len().max(all), 0);
    let mut numbers = Scratch::new(all);
    let mut spans = vec![0..0; lines.rows];
    let sparse = AtomicBool::new(true);
    let parts = (Parts::new(&mut places[..all]), Parts::new(&mut numbers), Parts::new(&mut spans));
    parallel_ranges(lines.rows, each, &|from, to| {
        let first = from / each * room;
        // SAFETY: each task has its own parts.
        let to_list = unsafe {
            (parts.0.part(first, room), parts.1.part(first, room), parts.2.slice(from, to))
        };
        let few = dispatch_on(isa, List { lines, rows: from..to, to: to_list, first });
        sparse.fetch_and(few, Ordering::Relaxed);
    });
    if !sparse.into_inner() || !dispatch_on(isa, Finite(b)) {
        return false;
    }
    let listed = Listed { places: &places[..all], numbers: &numbers, spans };
    let m = c.rows;
    let rows = m.div_ceil(64).max(8);
    let multiply = |listed: &Listed| {
        parallel(m.div_ceil(rows), &|task| {
            let rows = task * rows..((task + 1) * rows).min(m);
            dispatch_on(isa, Multiply { listed, rows, b, c, epilogue });
        });
    };
    if by_rows {
        multiply(&listed);
    } else {
        turn(&listed, m, &multiply);
    }
    true
}

/// Elements of one sample.
const SAMPLE: usize = 32;

/// Samples elements, spread over the lines.
fn looks_sparse(lines: &Matrix) -> bool {
    const PLACES: usize = 32;
    let other = |place: usize| {
        let row = place * lines.rows / PLACES;
        let col = place * 7 % PLACES * (lines.cols - SAMPLE) / PLACES;
        (col..col + SAMPLE).filter(|col| lines.get(row, *col) != 0.0).count()
    };
    (0..PLACES).map(other).sum::<usize>() * FEW <= PLACES * SAMPLE
}

/// Converts lists of columns to lists of rows.
fn turn(columns: &Listed, rows: usize, then: &dyn Fn(&Listed)) {
    let mut ends = vec![0; rows + 1];
    let lines = || (0..columns.spans.len()).map(|line| columns.line(line));
    for line in lines() {
        line.places.iter().for_each(|row| ends[*row as usize + 1] += 1);
    }
    (0..rows).for_each(|row| ends[row + 1] += ends[row]);
    let spans = ends.windows(2).map(|w| w[0]..w[1]).collect();
    let (mut places, mut numbers) = (vec![0; ends[rows]], Scratch::new(ends[rows]));
    for (column, line) in lines().enumerate() {
        for (row, x) in line.places.iter().zip(line.numbers) {
            let end = &mut ends[*row as usize];
            (places[*end], numbers[*end]) = (column as u32, *x);
            *end += 1;
        }
    }
    then(&Listed { places: &places, numbers: &numbers, spans });
}

/// Lists the nonzeros of some lines; returns whether there were few.
struct List<'a> {
    lines: Matrix<'a>,
    rows: Range<usize>,
    /// Indices, values, and the span of each line.
    to: (&'a mut [u32], &'a mut [f32], &'a mut [Range<usize>]),
    /// Offset of the first of them among all.
    first: usize,
}

impl Kernel for List<'_> {
    type Out = bool;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> bool {
        let (width, (places, numbers, spans)) = (self.lines.cols, self.to);
        let mut len = 0;
        // A bit for each element of a line, all of them first: that loop has no branch to
        // mispredict.
        let mut words = [0u64; WORDS];
        for (row, span) in self.rows.zip(spans) {
            let from = len;
            for start in (0..width).step_by(64 * WORDS) {
                let part = (width - start).min(64 * WORDS);
                // SAFETY: the numbers are the line's.
                let x = unsafe { self.lines.at(row, 0).add(start) };
                let words = &mut words[..part.div_ceil(64)];
                for (at, word) in words.iter_mut().enumerate() {
                    // SAFETY: as above.
                    *word = unsafe { others(s, x.add(64 * at), (part - 64 * at).min(64)) };
                }
                let count: u32 = words.iter().map(|word| word.count_ones()).sum();
                if len + count as usize > places.len() {
                    return false;
                }
                for (at, word) in words.iter().enumerate() {
                    let mut word = *word;
                    while word != 0 {
                        let place = 64 * at + word.trailing_zeros() as usize;
                        places[len] = (start + place) as u32;
                        // SAFETY: as above.
                        numbers[len] = unsafe { *x.add(place) };
                        len += 1;
                        word &= word - 1;
                    }
                }
            }
            *span = self.first + from..self.first + len;
        }
        true
    }
}

/// Words of bits that are computed before any is used: of 2048 elements.
const WORDS: usize = 32;

/// Bits of the nonzeros among up to 64 elements. NaN counts as nonzero.
///
/// # Safety
/// There must be `n` elements.
#[inline(always)]
unsafe fn others<S: Simd>(s: S, start: *const f32, n: usize) -> u64 {
    let mut word = 0;
    let mut at = 0;
    while at < n {
        let left = (n - at).min(S::LANES);
        // SAFETY: `left` numbers are left.
        let x = unsafe {
            if left == S::LANES { s.load(start.add(at)) } else { s.load_part(start.add(at), left) }
        };
        // Lanes past the end are zeros.
        let zeros = s.bits(s.le(s.abs(x), s.splat(0.0)));
        word |= u64::from(!zeros & (u32::MAX >> (32 - S::LANES))) << at;
        at += S::LANES;
    }
    word
}

/// Whether all elements of a matrix with contiguous rows are finite.
struct Finite<'a>(Matrix<'a>);

impl Kernel for Finite<'_> {
    type Out = bool;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> bool {
        let (b, mut check) = (self.0, s.splat(0.0));
        for row in 0..b.rows {
            let mut col = 0;
            while col < b.cols {
                let n = (b.cols - col).min(S::LANES);
                // SAFETY: `n` numbers of the row are left.
                let x = unsafe { s.load_part(b.at(row, col), n) };
                check = s.fma(x, s.splat(0.0), check); // NaN unless x is finite
                col += S::LANES;
            }
        }
        s.sum(check) == 0.0
    }
}

/// Some rows of the result.
struct Multiply<'a> {
    listed: &'a Listed<'a>,
    rows: Range<usize>,
    b: Matrix<'a>,
    c: &'a MatrixMut<'a>,
    epilogue: &'a Epilogue<'a>,
}

impl Kernel for Multiply<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let cols = self.b.cols;
        for row in self.rows.clone() {
            let line = self.listed.line(row);
            let mut n = 0;
            // SAFETY: the columns are inside, and the row is this task's.
            unsafe {
                while n + 4 * S::LANES <= cols {
                    self.columns::<S, 4>(s, line, row, n, S::LANES);
                    n += 4 * S::LANES;
                }
                while n < cols {
                    self.columns::<S, 1>(s, line, row, n, (cols - n).min(S::LANES));
                    n += S::LANES;
                }
                self.epilogue.finish(s, self.c, row..row + 1, 0..cols);
            }
        }
    }
}

impl Multiply<'_> {
    /// `C` vectors of a row of the result; `last` is the number of lanes of the last one.
    #[inline(always)]
    unsafe fn columns<S: Simd, const C: usize>(
        &self,
        s: S,
        line: Line,
        row: usize,
        n: usize,
        last: usize,
    ) {
        let Line { places, numbers } = line;
        let to = self.c.at(row, n);
        let whole = last == S::LANES;
        // SAFETY: the caller vouches for the columns; an entry's place is a row of `b`.
        unsafe {
            let mut sum = [s.splat(0.0); C];
            if self.epilogue.accumulate {
                for (v, sum) in sum.iter_mut().enumerate() {
                    let to = to.add(v * S::LANES);
                    *sum = if whole { s.load(to) } else { s.load_part(to, last) };
                }
            }
            let mut at = 0;
            while at < places.len() {
                // A pass of the dense product, summed separately.
                let end = (places[at] as usize / K_BLOCK + 1) * K_BLOCK;
                let mut pass = [s.splat(0.0); C];
                while at < places.len() && (places[at] as usize) < end {
                    let (x, b) = (s.splat(numbers[at]), self.b.at(places[at] as usize, n));
                    for (v, pass) in pass.iter_mut().enumerate() {
                        let b = b.add(v * S::LANES);
                        let b = if whole { s.load(b) } else { s.load_part(b, last) };
                        *pass = s.fma(x, b, *pass);
                    }
                    at += 1;
                }
                for (sum, pass) in sum.iter_mut().zip(pass) {
                    *sum = s.add(*sum, pass);
                }
            }
            for (v, sum) in sum.into_iter().enumerate() {
                let to = to.add(v * S::LANES);
                if whole { s.store(to, sum) } else { s.store_part(to, last, sum) }
            }
        }
    }
}
