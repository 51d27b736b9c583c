//! Register tile: the inner loop of all matrix products and scores.
//!
//! `c[m, n] (+)= Σ_k pair(a[m, k], b[k, n])`, where `pair` is a product for matrices and for
//! dot-product scores, and something else for the other scores. `a` is read one float at a time
//! with any strides, `b` and `c` a vector at a time along rows.
//!
//! Each output is one chain of operations in ascending `k`, whatever tile it falls into, so results
//! do not depend on the position of a row or on the number of rows.

use crate::simd::Simd;

/// Contribution of one feature of a query–key pair to its sum.
pub trait PairFunction: Copy + Send + Sync {
    /// Whether features have weights.
    const WEIGHTED: bool;
    /// `acc + pair(a, b)`, with the feature's weight `w` if [`Self::WEIGHTED`].
    fn step<S: Simd>(self, s: S, acc: S::V, a: S::V, b: S::V, w: S::V) -> S::V;
}

/// Product `a · b`, for matrix products and dot-product scores.
#[derive(Clone, Copy)]
pub struct Product;

impl PairFunction for Product {
    const WEIGHTED: bool = false;
    #[inline(always)]
    fn step<S: Simd>(self, s: S, acc: S::V, a: S::V, b: S::V, _: S::V) -> S::V {
        s.fma(a, b, acc)
    }
}

/// Left operand: element `(m, k)` is at `start + m·row + k·col`.
#[derive(Clone, Copy)]
pub struct Left {
    /// Address of element `(0, 0)`.
    pub start: *const f32,
    /// Stride between rows, in floats.
    pub row: isize,
    /// Stride between columns, in floats.
    pub col: isize,
}

/// Right operand, in panels of [`panel_width`] columns: row `k` of panel `p` is at
/// `start + p·panel + k·row`. In a plain matrix `panel` is the panel's width.
#[derive(Clone, Copy)]
pub struct Right {
    /// Address of the first row of the first panel.
    pub start: *const f32,
    /// Stride between rows, in floats.
    pub row: isize,
    /// Stride between panels, in floats.
    pub panel: isize,
}

/// Result: row `m` starts at `start + m·row`.
#[derive(Clone, Copy)]
pub struct Target {
    /// Address of row 0.
    pub start: *mut f32,
    /// Stride between rows, in floats.
    pub row: isize,
}

/// Operands and result of a product.
#[derive(Clone, Copy)]
pub struct ProductOperands {
    /// Left operand.
    pub a: Left,
    /// Right operand.
    pub b: Right,
    /// Result.
    pub c: Target,
}

/// Sizes of a product.
#[derive(Clone, Copy)]
pub struct Size {
    /// Number of rows of the result.
    pub m: usize,
    /// Number of columns of the result, a multiple of the lanes.
    pub n: usize,
    /// Number of summed features.
    pub k: usize,
}

/// Range of columns or features, `from..to`.
pub type Span = (u32, u32);

/// Parts of a product that are needed, row by row; the rest is known to be 0.
#[derive(Clone, Copy, Default)]
pub struct Limits<'a> {
    /// Needed columns of each row; others may be left 0. `None` for all.
    pub columns: Option<&'a [Span]>,
    /// Nonzero features of each row; others are multiplied by 0. `None` for all.
    pub features: Option<&'a [Span]>,
}

/// The union of the spans of rows `i..i + n`, ignoring empty ones.
#[inline(always)]
fn union(spans: &[Span], i: usize, n: usize) -> (usize, usize) {
    let mut all = (u32::MAX, 0);
    for (from, to) in &spans[i..i + n] {
        if from < to {
            all = (all.0.min(*from), all.1.max(*to));
        }
    }
    (all.0.min(all.1) as usize, all.1 as usize)
}

/// Returns the number of columns of a panel of the right operand.
#[inline(always)]
pub fn panel_width<S: Simd>() -> usize {
    S::LANES * S::COLS
}

/// Computes `c = Σ pair(a, b)`, or `c += …` with `ADD`.
///
/// # Safety
/// `a`, `b`, `c` and, for a weighted pair, `k` floats at `weights` must be accessible with the
/// given sizes, and `c` must not overlap the others.
#[inline(always)]
pub unsafe fn product<S: Simd, P: PairFunction, const ADD: bool>(
    s: S,
    pair: P,
    size: Size,
    operands: ProductOperands,
    weights: *const f32,
    limits: Limits,
) {
    let ProductOperands { a, b, c } = operands;
    let width = panel_width::<S>();
    let mut n = 0;
    let mut panel = b.start;
    while n < size.n {
        let vectors = ((size.n - n) / S::LANES).min(S::COLS);
        let strip = Strip { k: size.k, n, panel, b_row: b.row, c_row: c.row, weights, limits };
        // SAFETY: the panel lies within `b` and `c` by the caller's sizes.
        unsafe {
            let c = c.start.add(n);
            match vectors {
                1 => rows::<S, P, 1, ADD>(s, pair, size.m, a, c, strip),
                2 => rows::<S, P, 2, ADD>(s, pair, size.m, a, c, strip),
                _ => rows::<S, P, 3, ADD>(s, pair, size.m, a, c, strip),
            }
            panel = panel.offset(b.panel);
        }
        n += width;
    }
}

/// One panel of the right operand, with its other operands.
#[derive(Clone, Copy)]
struct Strip<'a> {
    k: usize,
    /// First column of the panel.
    n: usize,
    panel: *const f32,
    b_row: isize,
    c_row: isize,
    weights: *const f32,
    limits: Limits<'a>,
}

/// All rows of one panel, in tiles of the register height and then smaller ones.
#[inline(always)]
unsafe fn rows<S: Simd, P: PairFunction, const C: usize, const ADD: bool>(
    s: S,
    pair: P,
    m: usize,
    a: Left,
    c: *mut f32,
    strip: Strip,
) {
    let mut i = 0;
    // SAFETY: rows `i..i + height` exist in `a` and `c` by the caller's sizes.
    unsafe {
        while i + S::ROWS <= m {
            match S::ROWS {
                8 => tile::<S, P, 8, C, ADD>(s, pair, i, a, c, strip),
                6 => tile::<S, P, 6, C, ADD>(s, pair, i, a, c, strip),
                _ => tile::<S, P, 4, C, ADD>(s, pair, i, a, c, strip),
            }
            i += S::ROWS;
        }
        while i + 2 <= m {
            tile::<S, P, 2, C, ADD>(s, pair, i, a, c, strip);
            i += 2;
        }
        if i < m {
            tile::<S, P, 1, C, ADD>(s, pair, i, a, c, strip);
        }
    }
}

/// One register tile: `R` rows of `C` vectors.
#[inline(always)]
unsafe fn tile<S: Simd, P: PairFunction, const R: usize, const C: usize, const ADD: bool>(
    s: S,
    pair: P,
    i: usize,
    a: Left,
    c: *mut f32,
    strip: Strip,
) {
    // SAFETY: the caller vouches for rows `i..i + R` of `a` and `c` and for the panel.
    unsafe {
        let c = c.offset(i as isize * strip.c_row);
        let a = Left { start: a.start.offset(i as isize * a.row), ..a };
        let (mut from, mut to) = (0, strip.k);
        if let Some(spans) = strip.limits.columns {
            let (first, last) = union(spans, i, R);
            if last <= strip.n || first >= strip.n + C * S::LANES {
                to = 0;
            }
        }
        if let Some(spans) = strip.limits.features {
            (from, to) = union(spans, i, R);
        }
        if ADD && from == to {
            return;
        }
        let mut acc = [[s.splat(0.0); C]; R];
        if ADD {
            for (r, acc) in acc.iter_mut().enumerate() {
                for (v, acc) in acc.iter_mut().enumerate() {
                    *acc = s.load(c.offset(r as isize * strip.c_row).add(v * S::LANES));
                }
            }
        }
        let steps = row_steps::<R>(a.row);
        let mut b = strip.panel.offset(from as isize * strip.b_row);
        let mut column = a.start.offset(from as isize * a.col);
        for k in from..to {
            let mut row = [s.splat(0.0); C];
            for (v, row) in row.iter_mut().enumerate() {
                *row = s.load(b.add(v * S::LANES));
            }
            let w = if P::WEIGHTED { s.splat(*strip.weights.add(k)) } else { s.splat(0.0) };
            for (r, acc) in acc.iter_mut().enumerate() {
                let x = s.splat(*column.byte_offset(steps[r]));
                for (acc, row) in acc.iter_mut().zip(row) {
                    *acc = pair.step(s, *acc, x, row, w);
                }
            }
            b = b.offset(strip.b_row);
            column = column.offset(a.col);
        }
        for (r, acc) in acc.iter().enumerate() {
            for (v, acc) in acc.iter().enumerate() {
                s.store(c.offset(r as isize * strip.c_row).add(v * S::LANES), *acc);
            }
        }
    }
}

/// Offsets from row 0 to each row of the left operand, in bytes.
///
/// Otherwise the compiler adds the stride from row to row: ten dependent additions per step, where
/// the sixteen multiply-adds of AVX-512's tile need eight cycles. With the odd multiples of the
/// stride in registers, every row is one addressing mode away.
#[inline(always)]
fn row_steps<const R: usize>(row: isize) -> [isize; R] {
    let stride = row * size_of::<f32>() as isize;
    let mut steps = [0; R];
    for r in 1..R {
        steps[r] = if r % 2 == 1 { opaque(stride * r as isize) } else { steps[r / 2] * 2 };
    }
    steps
}

/// Hides from the compiler how a value was computed.
#[inline(always)]
fn opaque(x: isize) -> isize {
    #[cfg(all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64")))]
    let x = {
        let mut x = x;
        // SAFETY: no instruction is emitted; the register keeps its value.
        unsafe {
            std::arch::asm!("/* {0} */", inout(reg) x, options(pure, nomem, nostack, preserves_flags));
        }
        x
    };
    x
}
