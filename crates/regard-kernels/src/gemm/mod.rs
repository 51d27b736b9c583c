//! Matrix products: `c = f(a·b + bias)`, blocked as in BLIS (Van Zee and van de Geijn 2015).
//!
//! Every element of the result is summed in the same order whatever its neighbours, the number of
//! rows and the number of threads: passes of 384 features, each one chain of multiply-adds in
//! ascending order, and the passes added in order.

mod block;
mod epilogue;
mod few;
mod matrix;
pub mod micro;
mod pack;
mod panels;
mod peak;
mod right;
mod sparse;
mod tile;

pub use epilogue::Epilogue;
pub use matrix::{Matrix, MatrixMut};
pub use pack::Packed;
pub use peak::{exp_seconds, peak_gflops, read_seconds};
pub use right::RightOperand;
pub use sparse::seems_sparse;

use crate::pool::{parallel, threads};
use crate::scratch::Scratch;
use crate::simd::{Isa, dispatch_on, isa};
use crate::view::{Error, bail};
use block::{Block, K_BLOCK, LeftSource, Source};
use pack::{Tile, pack_all, pack_left, tile};
use right::Right;
use std::ops::Range;

/// Computes `c = f(a·b + bias)`; see [`Epilogue`].
///
/// # Shapes
/// `a: [M, K]`, `b: [K, N]`, `c: [M, N]`.
///
/// # Errors
/// If shapes do not match; or if `c` is column-major and the epilogue does more than accumulate, or
/// the right operand is packed or stored in another type.
pub fn product<'a>(
    a: Matrix,
    b: impl Into<RightOperand<'a>>,
    c: MatrixMut,
    epilogue: Epilogue,
) -> Result<(), Error> {
    product_on(isa(), a, b.into(), c, epilogue)
}

fn product_on(
    isa: Isa,
    a: Matrix,
    b: RightOperand,
    c: MatrixMut,
    epilogue: Epilogue,
) -> Result<(), Error> {
    check(&a, &b, &c, &epilogue)?;
    if c.col != 1 {
        // cᵀ = bᵀ·aᵀ has contiguous rows; `check` has excluded everything else.
        let Some(Right::Matrix(b)) = b.right() else {
            bail!("product: this right operand needs a row-major result")
        };
        return product_on(isa, b.t(), a.t().into(), c.t(), epilogue);
    }
    if c.rows == 0 || c.cols == 0 {
        return Ok(());
    }
    if let RightOperand::Packed(b) = b
        && b.isa() != isa
    {
        bail!("product: the right operand was packed for {}", b.isa().name());
    }
    let done = match b.right() {
        Some(Right::Matrix(b)) => sparse::product(isa, a, b, &c, &epilogue),
        _ => false,
    };
    if !done {
        let job = Job { isa, tile: tile(isa), a, b, c: &c, epilogue: &epilogue };
        if !few::product(&job) {
            run(&job);
        }
    }
    Ok(())
}

/// Floats of an operand that are packed at a time: 16 MiB, half of a common third-level cache.
const PACK_AT_ONCE: usize = 4 << 20;

struct Job<'a> {
    isa: Isa,
    tile: Tile,
    a: Matrix<'a>,
    b: RightOperand<'a>,
    c: &'a MatrixMut<'a>,
    epilogue: &'a Epilogue<'a>,
}

/// Packs the operands part by part, and multiplies the parts.
fn run(job: &Job) {
    let Job { isa, tile, a, b, c, .. } = *job;
    let [m, n, k] = [c.rows, c.cols, a.cols];
    // The register tile reads rows one float at a time, which is fast where they are contiguous:
    // packing those too gained nothing on any shape, and cost up to 5 %.
    let pack_a = a.col != 1;
    // A panel that is used by one task only is packed by that task.
    let alone = Plan::new(tile, [m, n, k]).row_blocks() == 1;
    let pack_b = b.right().is_some() && !alone;
    let k_step = if pack_a || pack_b { k.clamp(1, 8 * K_BLOCK) } else { k.max(1) };
    // As many rows or columns as fit, in whole groups or panels.
    let fit = |n: usize, unit| {
        (PACK_AT_ONCE / k_step).next_multiple_of(unit).min(n.next_multiple_of(unit))
    };
    let n_step = if pack_b { fit(n, tile.width) } else { n };
    let m_step = if pack_a { fit(m, tile.rows) } else { m };
    let mut room_a = Scratch::new(if pack_a { m_step * k_step } else { 0 });
    let mut room_b = Scratch::new(if pack_b { n_step * k_step } else { 0 });
    for n0 in (0..n).step_by(n_step) {
        let ns = n0..(n0 + n_step).min(n);
        // At least once, because an empty sum is 0.
        for k0 in (0..k.max(1)).step_by(k_step) {
            let ks = k0..(k0 + k_step).min(k);
            let right = match (b, b.right()) {
                (RightOperand::Packed(b), _) => {
                    Source::Panels { start: b.start(), k, k_start: 0, n_start: 0 }
                }
                (_, Some(b)) if pack_b => {
                    pack_all(isa, b.part(&ks, &ns), &mut room_b);
                    let start = room_b.as_ptr();
                    Source::Panels { start, k: ks.len(), k_start: k0, n_start: n0 }
                }
                (_, Some(b)) => Source::Plain(b),
                (_, None) => unreachable!("only a packed operand is no matrix"),
            };
            for m0 in (0..m).step_by(m_step) {
                let ms = m0..(m0 + m_step).min(m);
                let left = if pack_a {
                    let left = pack_left(isa, part(&a, &ms, &ks), &mut room_a);
                    LeftSource::Packed { left, m_start: m0, k_start: k0 }
                } else {
                    LeftSource::Plain(a)
                };
                region(job, left, right, [ms, ns.clone(), ks.clone()]);
            }
        }
    }
}

/// Submatrix of `rows` and `cols`.
fn part<'a>(x: &Matrix<'a>, rows: &Range<usize>, cols: &Range<usize>) -> Matrix<'a> {
    let shape = [rows.len(), cols.len()];
    // SAFETY: callers cut along the blocks of the matrix.
    unsafe { Matrix::from_raw(x.at(rows.start, cols.start), shape, [x.row, x.col]) }
}

/// One parallel region: a part of the result, summed over a part of the features.
fn region(job: &Job, left: LeftSource, right: Source, [m, n, k]: [Range<usize>; 3]) {
    struct Shared<'a> {
        left: LeftSource<'a>,
        right: Source<'a>,
    }
    // SAFETY: tasks only read the operands.
    unsafe impl Sync for Shared<'_> {}
    let operands = &Shared { left, right };
    let plan = Plan::new(job.tile, [m.len(), n.len(), k.len()]);
    let blocks = plan.row_blocks();
    // If all rows are in one block, threads take columns in turn.
    let turn = if blocks == 1 { plan.cols * threads() } else { 0 };
    parallel(blocks * n.len().div_ceil(plan.cols), &|task| {
        let (i, j) = (task % blocks, task / blocks);
        let row = m.start + i * plan.rows;
        let col = n.start + j * plan.cols;
        let block = Block {
            a: operands.left,
            b: operands.right,
            c: job.c,
            epilogue: job.epilogue,
            rows: row..(row + plan.rows).min(m.end),
            cols: col..(col + plan.cols).min(n.end),
            ks: k.clone(),
            k: job.a.cols,
            later: if col + turn < n.end { turn } else { 0 },
        };
        dispatch_on(job.isa, block);
    });
}

/// Partition of a result into tasks, which does not affect its values.
struct Plan {
    m: usize,
    /// Rows per task.
    rows: usize,
    /// Columns per task.
    cols: usize,
}

impl Plan {
    /// `each` tasks per thread, but no more than keep some dozens of threads busy.
    fn tasks(each: usize) -> usize {
        (each * threads()).min(48)
    }

    /// Minimum multiply-adds per task: about 10 µs.
    const WORTH: usize = 1 << 19;

    fn new(tile: Tile, [m, n, k]: [usize; 3]) -> Plan {
        let groups = m.div_ceil(tile.rows);
        let panels = n.div_ceil(tile.width);
        // 128 rows of 384 features are 192 KiB, which fits in a second-level cache of 512 KiB.
        let (mut height, mut length) = (groups.min(128 / tile.rows), panels.min(512 / tile.width));
        let work = |h: usize, l: usize| h * tile.rows * l * tile.width * k.max(1);
        while work(height, length) > 2 * Self::WORTH {
            let tasks = groups.div_ceil(height) * panels.div_ceil(length);
            // Fewer columns first: many rows amortise the loading of a panel.
            if length > 1 && tasks < Self::tasks(8) {
                length = length.div_ceil(2);
            } else if height > 2 && tasks < Self::tasks(4) {
                height = height.div_ceil(2);
            } else {
                break;
            }
        }
        // The last round of tasks should not leave threads idle.
        let blocks = groups.div_ceil(height);
        let longest = |l: &usize| (blocks * panels.div_ceil(*l)).div_ceil(threads()) * l;
        length = (length.div_ceil(2)..=length).rev().min_by_key(longest).unwrap_or(length);
        // The same number of blocks, as even as possible.
        let even = |n: usize, size: usize| n.div_ceil(n.div_ceil(size).max(1));
        let rows = even(groups, height) * tile.rows;
        Plan { m, rows, cols: even(panels, length) * tile.width }
    }

    fn row_blocks(&self) -> usize {
        self.m.div_ceil(self.rows.max(1))
    }
}

fn check(a: &Matrix, b: &RightOperand, c: &MatrixMut, e: &Epilogue) -> Result<(), Error> {
    let ([m, k], [k2, n]) = (a.shape(), b.shape());
    if k != k2 || c.shape() != [m, n] {
        bail!("product: [{m}, {k}] times [{k2}, {n}] into {:?}", c.shape());
    }
    if let Some(bias) = e.bias
        && bias.len() != n
    {
        bail!("product: a bias of {} for {n} columns", bias.len());
    }
    if let Some(pre) = &e.pre
        && (pre.shape() != [m, n] || pre.col != 1)
    {
        bail!("product: `pre` must be row-major [{m}, {n}], got {:?}", pre.shape());
    }
    let plain = e.bias.is_none() && e.pre.is_none() && e.activation == Default::default();
    if c.col != 1 && !plain {
        bail!("product: bias and activation need a row-major result");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
