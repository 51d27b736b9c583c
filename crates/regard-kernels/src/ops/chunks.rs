//! Sums over rows, the same for any number of threads.

use super::Parts;
use crate::pool::parallel;
use crate::scratch::Scratch;
use crate::simd::{Kernel, Simd, dispatch};
use std::ops::Range;

/// Rows per partial sum: at most 32 partial sums, to occupy as many threads, of at least 16 rows
/// each. A function of the number of rows alone.
pub(crate) fn row_chunk(rows: usize) -> usize {
    rows.div_ceil(32).max(16)
}

/// `out = Σ_rows …`: `add(rows, partial)` adds the rows of one chunk to a partial sum that starts
/// at zero, on all threads; the partial sums are then added in order.
pub(crate) fn sum_over_rows(
    rows: usize,
    out: &mut [f32],
    add: &(dyn Fn(Range<usize>, &mut [f32]) + Sync),
) {
    let (chunk, width) = (row_chunk(rows), out.len());
    let chunks = rows.div_ceil(chunk);
    let mut partials = Scratch::new(chunks * width);
    let parts = Parts::new(&mut partials);
    parallel(chunks, &|c| {
        // SAFETY: each chunk has a partial sum of its own.
        let partial = unsafe { parts.slice(c * width, (c + 1) * width) };
        partial.fill(0.0);
        add(c * chunk..((c + 1) * chunk).min(rows), partial);
    });
    out.fill(0.0);
    if width > 0 {
        partials.chunks_exact(width).for_each(|partial| dispatch(AddTo(out, partial)));
    }
}

/// `x += y`
struct AddTo<'a>(&'a mut [f32], &'a [f32]);

impl Kernel for AddTo<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        super::lanes::add_to(s, self.0, self.1);
    }
}
