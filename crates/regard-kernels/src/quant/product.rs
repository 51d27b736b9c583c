//! Products with quantised matrices.

use super::activations::Activations;
use super::{Bits, PANEL, QuantizedMatrix, bf16, int4, int8, int8_groups};
use crate::gemm::{Epilogue, MatrixMut};
use crate::pool::{parallel, threads};
use crate::simd::{IntIsa, IntKernel, IntSimd, Simd, int_dispatch_on, int_isa};
use crate::storage::F16;
use crate::view::{Error, bail};
use std::ops::Range;

/// Computes `c = f(x·Wᵀ + bias)`; see [`Epilogue`].
///
/// # Shapes
/// `x: [M, K]`, `w: [N, K]`, `c: [M, N]` row-major.
///
/// # Errors
/// If shapes do not match, or the epilogue accumulates or keeps the argument of `f`.
pub fn product(
    x: &Activations,
    w: &QuantizedMatrix,
    c: MatrixMut,
    epilogue: Epilogue,
) -> Result<(), Error> {
    product_on(int_isa(), x, w, c, epilogue)
}

/// Computes a [`product`] on a given instruction set, for tests and comparisons.
///
/// # Errors
/// As [`product`].
///
/// # Panics
/// If this CPU does not support it.
pub fn product_on(
    isa: IntIsa,
    x: &Activations,
    w: &QuantizedMatrix,
    c: MatrixMut,
    epilogue: Epilogue,
) -> Result<(), Error> {
    let ([m, k], [n, inputs]) = (x.shape(), w.shape());
    if k != inputs || c.shape() != [m, n] || c.col != 1 {
        bail!("quantised product: [{m}, {k}] times [{n}, {inputs}]ᵀ into {:?}", c.shape());
    }
    if x.is_bf16() != (w.bits() == Bits::Bf16) {
        let (found, name) = (if x.is_bf16() { 16 } else { 8 }, w.bits().name());
        bail!("quantised product: activations of {found} bits do not go with weights of {name}");
    }
    if epilogue.bias.is_some_and(|bias| bias.len() != n) {
        bail!("quantised product: need a bias of {n}");
    }
    if epilogue.accumulate || epilogue.pre.is_some() {
        bail!("quantised product: the result cannot be accumulated and has no gradient");
    }
    let (rows, panels) = split([m, n.div_ceil(PANEL), k]);
    let (across, down) = (n.div_ceil(PANEL).div_ceil(panels), m.div_ceil(rows.max(1)));
    parallel(across * down, &|task| {
        let (i, j) = (task % down, task / down);
        let rows = i * rows..((i + 1) * rows).min(m);
        let cols = j * panels * PANEL..((j + 1) * panels * PANEL).min(n);
        int_dispatch_on(isa, Block { x, w, c: &c, epilogue: &epilogue, rows, cols });
    });
    Ok(())
}

/// Rows and panels per task; results do not depend on it.
fn split([m, panels, k]: [usize; 3]) -> (usize, usize) {
    /// Multiply-adds per task: about 10 µs.
    const WORTH: usize = 1 << 20;
    // 64 rows of 768 bytes stay in a second-level cache beside a panel.
    let mut rows = m.clamp(1, 64);
    let mut width = panels.clamp(1, 32);
    let tasks = |rows: usize, width: usize| m.div_ceil(rows) * panels.div_ceil(width);
    let work = |rows: usize, width: usize| rows * width * PANEL * k;
    while width > 2 && work(rows, width) > WORTH && tasks(rows, width) < 8 * threads() {
        width = width.div_ceil(2).next_multiple_of(2);
    }
    while rows > 16 && work(rows, width) > WORTH && tasks(rows, width) < 4 * threads() {
        rows = rows.div_ceil(2).next_multiple_of(8);
    }
    if m <= rows {
        // All threads have as much to read: two tasks of 32 and 16 panels would take as long as
        // two of 32.
        let even = panels.div_ceil(width).next_multiple_of(threads());
        width = panels.div_ceil(even).next_multiple_of(2);
    }
    (rows, width)
}

/// A block of the result.
struct Block<'a> {
    x: &'a Activations,
    w: &'a QuantizedMatrix,
    c: &'a MatrixMut<'a>,
    epilogue: &'a Epilogue<'a>,
    rows: Range<usize>,
    cols: Range<usize>,
}

impl IntKernel for Block<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: IntSimd>(self, s: S) {
        // SAFETY: blocks are inside of the operands, and no other task has the same.
        unsafe {
            match S::VECTORS {
                2 => self.columns::<S, 2>(s),
                _ => self.columns::<S, 4>(s),
            }
            self.epilogue.finish(s.floats(), self.c, self.rows.clone(), self.cols.clone());
        }
    }
}

impl Block<'_> {
    #[inline(always)]
    unsafe fn columns<S: IntSimd, const V: usize>(&self, s: S) {
        let step = V * <S::F as Simd>::LANES;
        for col in self.cols.clone().step_by(step) {
            let mut row = self.rows.start;
            // SAFETY: the caller's promises are these.
            unsafe {
                if S::ROWS == 8 {
                    while row + 8 <= self.rows.end {
                        self.tile::<S, 8, V>(s, row, col);
                        row += 8;
                    }
                }
                while row + 4 <= self.rows.end {
                    self.tile::<S, 4, V>(s, row, col);
                    row += 4;
                }
                match self.rows.end - row {
                    3 => self.tile::<S, 3, V>(s, row, col),
                    2 => self.tile::<S, 2, V>(s, row, col),
                    1 => self.tile::<S, 1, V>(s, row, col),
                    _ => {}
                }
            }
        }
    }

    /// `R` rows from `row` on, `V` vectors of columns from `col` on.
    #[inline(always)]
    unsafe fn tile<S: IntSimd, const R: usize, const V: usize>(
        &self,
        s: S,
        row: usize,
        col: usize,
    ) {
        let Block { x, w, c, cols, .. } = self;
        let (f, lanes) = (s.floats(), <S::F as Simd>::LANES);
        let last = (w.shape()[0] - 1) / PANEL;
        let rows: [usize; R] = std::array::from_fn(|r| row + r);
        // Beyond the last panel it is computed again and not stored.
        let place = |v: usize| {
            let col = col + v * lanes;
            ((col / PANEL).min(last), col % PANEL)
        };
        let lines = w.panel_lines();
        let weights: [*const u8; V] = std::array::from_fn(|v| {
            let (panel, lane) = place(v);
            w.start().wrapping_add(panel * lines * 64 + lane * 4)
        });
        let groups = w.bits().groups(w.shape()[1]);
        let scales: [*const F16; V] = std::array::from_fn(|v| {
            let (panel, lane) = place(v);
            w.group_scales.as_ptr().wrapping_add(panel * groups * PANEL + lane)
        });
        // SAFETY: panels and rows are inside, and scales are there if there are groups.
        let mut sums = unsafe {
            match w.bits() {
                Bits::Bf16 => bf16::sums::<S, R, V>(s, x, rows, weights),
                Bits::Int8 => int8::sums::<S, R, V>(s, x, rows, weights),
                Bits::Int8Groups => int8_groups::sums::<S, R, V>(s, x, rows, weights, scales),
                Bits::Int4 => int4::sums::<S, R, V>(s, x, rows, weights, scales),
            }
        };
        if w.bits() == Bits::Int8 {
            for v in 0..V {
                let (panel, lane) = place(v);
                // SAFETY: there are scales for whole panels.
                let scale = unsafe { f.load(w.scales.as_ptr().add(panel * PANEL + lane)) };
                for row in &mut sums {
                    row[v] = f.mul(row[v], scale);
                }
            }
        }
        for (r, sums) in sums.iter().enumerate() {
            let scale = f.splat(x.scale(row + r));
            for (v, sum) in sums.iter().enumerate() {
                let from = col + v * lanes;
                let n = cols.end.saturating_sub(from).min(lanes);
                let y = f.mul(*sum, scale);
                // SAFETY: `n` columns of the row are this task's.
                unsafe {
                    let to = c.at(row + r, from);
                    match n {
                        0 => {}
                        n if n == lanes => f.store(to, y),
                        n => f.store_part(to, n, y),
                    }
                }
            }
        }
    }
}
