//! Register tile of a product, and its size.
//!
//! Unlike the tile of [`micro`](super::micro), which has to suit the blocks of attention, it is as
//! wide as possible: a wide tile needs the fewest other instructions (loads, broadcasts, the loop)
//! per multiply-add, and a core that shares its front end with another thread has few to spare.

use crate::simd::{Simd, fetch, fetch_near};

/// Number of rows of the tile.
#[inline(always)]
pub(super) const fn height<S: Simd>() -> usize {
    if S::LANES == 16 { 8 } else { S::ROWS }
}

/// Number of vectors in a row of the tile. With AVX-512, 8 × 3 accumulators, 3 of the row and 1
/// broadcast are 28 of 32 registers.
#[inline(always)]
pub(super) const fn vectors<S: Simd>() -> usize {
    if S::LANES == 16 { 3 } else { S::COLS }
}

/// Number of columns of the tile and of a packed panel.
#[inline(always)]
pub(super) const fn width<S: Simd>() -> usize {
    vectors::<S>() * S::LANES
}

/// Layout of the left operand's rows of a tile.
#[derive(Clone, Copy)]
pub(super) enum Rows {
    /// Contiguous rows with this stride, in floats.
    Apart(isize),
    /// Interleaved: [`height`] floats of one feature, then of the next.
    Interleaved,
}

/// The operands of one tile.
#[derive(Clone, Copy)]
pub(super) struct Operands {
    /// Number of summed features.
    pub k: usize,
    pub a: *const f32,
    pub rows: Rows,
    pub b: *const f32,
    /// Stride between rows of `b`, in floats.
    pub b_row: isize,
    pub c: *mut f32,
    /// Stride between rows of `c`, in floats.
    pub c_row: isize,
    /// Whether to add to `c`.
    pub add: bool,
    /// Memory to prefetch, [`fetched`] floats.
    pub next: *const f32,
}

/// `c = a·b` or, with `add`, `c += a·b`, for up to [`height`] rows of `vectors` vectors.
///
/// # Safety
/// The operands must be accessible with their sizes, and `c` must not overlap the others.
#[inline(always)]
pub(super) unsafe fn product<S: Simd>(s: S, rows: usize, vectors: usize, x: Operands) {
    // SAFETY: the caller's promises are these.
    unsafe {
        if vectors == self::vectors::<S>() {
            match self::vectors::<S>() {
                3 => heights::<S, 3>(s, rows, x),
                _ => heights::<S, 2>(s, rows, x),
            }
        } else if vectors == 2 {
            heights::<S, 2>(s, rows, x);
        } else {
            heights::<S, 1>(s, rows, x);
        }
    }
}

#[inline(always)]
unsafe fn heights<S: Simd, const C: usize>(s: S, rows: usize, x: Operands) {
    // SAFETY: as in `product`; a smaller tile takes the rows that the ones before have left.
    unsafe {
        if rows == height::<S>() {
            return match height::<S>() {
                8 => layouts::<S, 8, C>(s, x),
                6 => layouts::<S, 6, C>(s, x),
                _ => layouts::<S, 4, C>(s, x),
            };
        }
        let (a_row, a_col) = match x.rows {
            Rows::Apart(step) => (step, 1),
            Rows::Interleaved => (1, height::<S>()),
        };
        let mut i = 0;
        while i < rows {
            let a = x.a.offset(i as isize * a_row);
            let x = Operands { a, c: x.c.offset(i as isize * x.c_row), ..x };
            let left = rows - i;
            if left >= 4 {
                tile::<S, 4, C>(s, x, a_row, a_col);
                i += 4;
            } else if left >= 2 {
                tile::<S, 2, C>(s, x, a_row, a_col);
                i += 2;
            } else {
                tile::<S, 1, C>(s, x, a_row, a_col);
                i += 1;
            }
        }
    }
}

/// A whole tile, with strides that are constants where possible: they take no instructions.
#[inline(always)]
unsafe fn layouts<S: Simd, const R: usize, const C: usize>(s: S, x: Operands) {
    // SAFETY: as in `product`.
    unsafe {
        match x.rows {
            Rows::Apart(step) => tile::<S, R, C>(s, x, step, 1),
            Rows::Interleaved => tile::<S, R, C>(s, x, 1, height::<S>()),
        }
    }
}

/// One register tile: `R` rows of `C` vectors. Every sum is one chain in ascending `k`.
#[inline(always)]
unsafe fn tile<S: Simd, const R: usize, const C: usize>(
    s: S,
    x: Operands,
    a_row: isize,
    a_col: usize,
) {
    let Operands { k, a, b, b_row, c, c_row, add, next, .. } = x;
    // SAFETY: the caller vouches for `R` rows of `a` and `c` and for `k` rows of `b`.
    unsafe {
        let mut acc = [[s.splat(0.0); C]; R];
        // A pointer per row, and one index for all: otherwise the compiler computes each row's
        // address from the previous one, an addition for every broadcast.
        let a: [*const f32; R] = std::array::from_fn(|r| {
            let row = a.offset(r as isize * a_row);
            if a_row == 1 { row } else { opaque(row) }
        });
        let mut b = b;
        let mut k0 = 0;
        while k0 + UNROLL <= k {
            fetch_near(next.wrapping_add(k0 / UNROLL * LINE));
            for u in 0..UNROLL {
                let at = (k0 + u) * a_col;
                let soon = b.wrapping_offset((AHEAD + u) as isize * b_row);
                for v in 0..C {
                    fetch(soon.wrapping_add(v * S::LANES));
                }
                feature::<S, R, C>(s, &mut acc, &a, at, b.offset(u as isize * b_row));
            }
            b = b.offset(UNROLL as isize * b_row);
            k0 += UNROLL;
        }
        while k0 < k {
            feature::<S, R, C>(s, &mut acc, &a, k0 * a_col, b);
            b = b.offset(b_row);
            k0 += 1;
        }
        for (r, acc) in acc.iter().enumerate() {
            for (v, acc) in acc.iter().enumerate() {
                let c = c.offset(r as isize * c_row).add(v * S::LANES);
                s.store(c, if add { s.add(s.load(c), *acc) } else { *acc });
            }
        }
    }
}

/// Floats per cache line.
const LINE: usize = 16;

/// Floats that one tile prefetches.
#[inline(always)]
pub(super) const fn fetched(k: usize) -> usize {
    k / UNROLL * LINE
}

/// Number of features by which the right operand is prefetched ahead.
const AHEAD: usize = 8;

/// Features per iteration of the loop: 1 to 2 % faster than 2 or 1.
const UNROLL: usize = 4;

/// Adds the contribution of one feature to all sums.
#[inline(always)]
unsafe fn feature<S: Simd, const R: usize, const C: usize>(
    s: S,
    acc: &mut [[S::V; C]; R],
    a: &[*const f32; R],
    at: usize,
    b: *const f32,
) {
    // SAFETY: as in `tile`.
    unsafe {
        let mut row = [s.splat(0.0); C];
        for (v, row) in row.iter_mut().enumerate() {
            *row = s.load(b.add(v * S::LANES));
        }
        for (a, acc) in a.iter().zip(acc) {
            let x = s.splat(*a.add(at));
            for (acc, row) in acc.iter_mut().zip(row) {
                *acc = s.fma(x, row, *acc);
            }
        }
    }
}

/// Hides the origin of a pointer from the compiler.
#[inline(always)]
#[allow(clippy::pointers_in_nomem_asm_block)] // the block is empty
fn opaque(p: *const f32) -> *const f32 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let mut p = p;
        // SAFETY: no instructions.
        unsafe {
            std::arch::asm!("/* {0} */", inout(reg) p, options(pure, nomem, nostack, preserves_flags));
        }
        p
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    p
}
