//! Products with few rows on the left, which are limited by reading the right operand once, in the
//! order of memory.
//!
//! Every sum is taken in the same order as in the blocked product: passes of [`K_BLOCK`] features,
//! each one chain, and the passes added in order. Passes can therefore be separate tasks, so that
//! each task reads long ranges of memory although there are enough tasks for all threads.

mod piece;

use super::Job;
use super::block::K_BLOCK;
use super::epilogue::Epilogue;
use super::matrix::MatrixMut;
use super::right::Right;
use crate::pool::{parallel, threads};
use crate::scratch::Scratch;
use crate::simd::{Kernel, Simd, dispatch_on};
use crate::storage::{Lines, Visit};
use piece::{IN_ORDER, Piece};
use std::ops::Range;

/// Maximum number of rows. With more, packing the right operand costs little.
const ROWS: usize = 16;

/// Minimum floats of the right operand per task: 256 KiB, about 20 µs.
const WORTH: usize = 64 * 1024;

/// Target number of tasks, and minimum columns per task: a quarter of a page. With half of either,
/// six layers of width 384 took 2.55 ms for 16 tokens instead of 2.4 (two threads).
const TASKS: usize = 16;
const COLUMNS: usize = 256;

/// Floats of a right operand that no second-level cache holds, and the columns of a task that reads
/// one: whole pages, because shorter ranges of memory are not read ahead.
const LARGE: usize = 1 << 20;
const PAGE: usize = 1024;

/// Computes the product if it has few rows; returns whether it did.
pub(super) fn product(job: &Job) -> bool {
    let Some(b) = job.b.right() else { return false };
    if job.c.rows > ROWS || job.a.col != 1 || job.a.cols == 0 {
        return false;
    }
    match b {
        Right::Matrix(b) if b.col == 1 => whole(job, b.lines(), false),
        Right::Matrix(b) if b.row == 1 => whole(job, b.t().lines(), true),
        Right::Matrix(_) => return false,
        Right::Stored(b) => b.visit(Whole { job, turned: b.turned() }),
    }
    true
}

/// The product with the lines of a stored operand.
struct Whole<'a, 'b> {
    job: &'b Job<'a>,
    turned: bool,
}

impl Visit for Whole<'_, '_> {
    type Out = ();
    fn visit<L: Lines>(self, lines: L) {
        whole(self.job, lines, self.turned);
    }
}

/// `turned`: whether lines of memory are columns of the right operand.
fn whole<L: Lines>(job: &Job, b: L, turned: bool) {
    let (a, c) = (job.a, job.c);
    let [m, n, k] = [c.rows, c.cols, a.cols];
    let passes = k.div_ceil(K_BLOCK);
    let wanted = (n * k / WORTH).clamp(1, TASKS);
    // Columns that are contiguous are read from end to end: all passes are one task's.
    let whole_columns = turned && n / wanted >= COLUMNS;
    let apart = if whole_columns { 1 } else { passes };
    let large = n * k >= LARGE && !turned;
    // Whole rows, which are contiguous, if that divides the passes among the threads evenly. The
    // sums of more rows would not stay in the first-level cache.
    let even = apart.is_multiple_of(threads()) || apart >= 4 * threads();
    let whole_rows = !turned && m <= IN_ORDER && even;
    let mut chunks = 1;
    while apart * chunks < wanted && !whole_rows {
        // Every thread has work before ranges of memory are cut short.
        let enough = apart * chunks >= 2 * threads();
        if n / (2 * chunks) < (if large && enough { PAGE } else { COLUMNS }) {
            break;
        }
        chunks *= 2;
    }
    let lanes = job.isa.lanes();
    let wide = n.div_ceil(chunks).next_multiple_of(lanes);
    let chunks = n.div_ceil(wide);
    // A row of sums for each row of the result and each pass, padded to whole vectors.
    let stride = n.next_multiple_of(lanes);
    let mut room = Scratch::new(passes * m * stride);
    let sums = Shared(room.as_mut_ptr());
    let sums = &sums;
    let cols = |chunk: usize| chunk * wide..((chunk + 1) * wide).min(n);
    if whole_columns {
        parallel(chunks, &|chunk| {
            let cols = cols(chunk);
            for from in cols.clone().step_by(lanes) {
                let some = from..(from + lanes).min(cols.end);
                for pass in 0..passes {
                    let ks = pass * K_BLOCK..((pass + 1) * K_BLOCK).min(k);
                    let to = sums.0.wrapping_add(pass * m * stride);
                    let cols = some.clone();
                    dispatch_on(job.isa, Piece { a, b, turned, m, ks, cols, to, stride });
                }
            }
            let (from, epilogue) = (sums.0, job.epilogue);
            dispatch_on(job.isa, Finish { c, epilogue, passes, cols, from, stride });
        });
        return;
    }
    parallel(passes * chunks, &|task| {
        let (pass, chunk) = (task / chunks, task % chunks);
        let ks = pass * K_BLOCK..((pass + 1) * K_BLOCK).min(k);
        let cols = cols(chunk);
        let to = sums.0.wrapping_add(pass * m * stride);
        dispatch_on(job.isa, Piece { a, b, turned, m, ks, cols: cols.clone(), to, stride });
        if passes == 1 {
            let (from, epilogue) = (sums.0, job.epilogue);
            dispatch_on(job.isa, Finish { c, epilogue, passes, cols, from, stride });
        }
    });
    if passes > 1 {
        let epilogue = job.epilogue;
        let alone = passes * m * n < WORTH;
        let pieces = if alone { 1 } else { chunks };
        parallel(pieces, &|chunk| {
            let (from, cols) = (sums.0, if alone { 0..n } else { cols(chunk) });
            dispatch_on(job.isa, Finish { c, epilogue, passes, cols, from, stride });
        });
    }
}

struct Shared(*mut f32);
// SAFETY: every task writes columns and passes of its own.
unsafe impl Sync for Shared {}

/// Adds the passes in order, and applies the epilogue.
struct Finish<'a> {
    c: &'a MatrixMut<'a>,
    epilogue: &'a Epilogue<'a>,
    passes: usize,
    cols: Range<usize>,
    from: *const f32,
    stride: usize,
}

impl Kernel for Finish<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Finish { c, epilogue, passes, cols, from, stride } = self;
        for r in 0..c.rows {
            let mut col = cols.start;
            while col < cols.end {
                let n = (cols.end - col).min(S::LANES);
                let to = c.at(r, col);
                // SAFETY: these columns are inside and nobody else's; sums are whole vectors.
                unsafe {
                    let pass = |p: usize| s.load(from.add((p * c.rows + r) * stride + col));
                    let mut sum = match epilogue.accumulate {
                        true => s.add(s.load_part(to, n), pass(0)),
                        false => pass(0),
                    };
                    for p in 1..passes {
                        sum = s.add(sum, pass(p));
                    }
                    if n == S::LANES { s.store(to, sum) } else { s.store_part(to, n, sum) }
                }
                col += n;
            }
        }
        // SAFETY: as above.
        unsafe { epilogue.finish(s, c, 0..c.rows, cols) }
    }
}
