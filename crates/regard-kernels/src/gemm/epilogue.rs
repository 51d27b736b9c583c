//! Final operations on a tile of the result, while it is in the cache.

use super::matrix::MatrixMut;
use crate::ops::activation::{Activation, Function, with_function};
use crate::simd::Simd;
use std::ops::Range;

/// Final operations of a product: `c = f(a·b + bias)`, or `c = f(c + a·b + bias)` with
/// `accumulate`.
#[derive(Default)]
pub struct Epilogue<'a> {
    /// Whether to add to `c` instead of replacing it.
    pub accumulate: bool,
    /// Bias per column, `[N]`.
    pub bias: Option<&'a [f32]>,
    /// Activation `f`.
    pub activation: Activation,
    /// Receives the argument of `f`, `[M, N]` row-major, for a backward.
    pub pre: Option<MatrixMut<'a>>,
}

impl Epilogue<'_> {
    /// Creates an epilogue for `c += a·b`.
    pub fn accumulate() -> Epilogue<'static> {
        Epilogue { accumulate: true, ..Epilogue::default() }
    }

    fn is_nothing(&self) -> bool {
        self.bias.is_none() && self.activation == Activation::Identity && self.pre.is_none()
    }

    /// Finishes a tile.
    ///
    /// # Safety
    /// `rows` and `cols` must be inside of `c`, of `pre` and of the bias, and no other task may
    /// use that tile.
    #[inline(always)]
    pub(crate) unsafe fn finish<S: Simd>(
        &self,
        s: S,
        c: &MatrixMut,
        rows: Range<usize>,
        cols: Range<usize>,
    ) {
        if self.is_nothing() {
            return;
        }
        // SAFETY: the caller's promises are these.
        with_function!(self.activation, F => unsafe { self.tile::<S, F>(s, c, rows, cols) });
    }

    #[inline(always)]
    unsafe fn tile<S: Simd, F: Function>(
        &self,
        s: S,
        c: &MatrixMut,
        rows: Range<usize>,
        cols: Range<usize>,
    ) {
        for row in rows {
            let mut col = cols.start;
            while col < cols.end {
                let n = (cols.end - col).min(S::LANES);
                // SAFETY: `n` columns from `col` on are inside; the caller vouches for the tile.
                unsafe {
                    let at = c.at(row, col);
                    let mut x = if n == S::LANES { s.load(at) } else { s.load_part(at, n) };
                    if let Some(bias) = self.bias {
                        let b = bias.as_ptr().add(col);
                        x = s.add(x, if n == S::LANES { s.load(b) } else { s.load_part(b, n) });
                    }
                    if let Some(pre) = &self.pre {
                        let at = pre.at(row, col);
                        if n == S::LANES { s.store(at, x) } else { s.store_part(at, n, x) }
                    }
                    let y = F::value(s, x);
                    if n == S::LANES { s.store(at, y) } else { s.store_part(at, n, y) }
                }
                col += n;
            }
        }
    }
}
