//! Masks: the keys that a query may attend to. `true` = attend, everywhere.
//!
//! A mask is a rule or a combination of rules with `&`, `|` and `!`:
//!
//! ```
//! use regard_kernels::attention::mask::*;
//! let mask = causal() & lengths(&[30, 17]) & window(127, 0);
//! ```
//!
//! A mask is evaluated for a block of the score matrix at once: [`Cover::Empty`] blocks are
//! skipped, [`Cover::Full`] ones are not checked cell by cell.

mod around;
mod causal;
mod dense;
mod edges;
mod expanded;
mod full;
mod global;
mod lengths;
mod permutation;
mod prefix;
mod segments;
mod window;

pub use around::around;
pub use causal::causal;
pub use dense::{dense, dense_per_head, dense_per_row};
pub use edges::edges;
pub use expanded::expanded;
pub use full::full;
pub use global::global_tokens;
pub use lengths::{lengths, lengths_per_query};
pub use permutation::{permutation, permutations, ranked};
pub use prefix::prefix;
pub use segments::{segments, segments_between};
pub use window::window;

use super::grid::Grid;
use super::variants::Variant;
use crate::view::{Error, bail};
use std::ops::Range;
use std::sync::Arc;

/// All masks, in the order of the documentation.
pub const VARIANTS: &[Variant] = &[
    full::VARIANT,
    causal::VARIANT,
    lengths::VARIANT,
    window::VARIANT,
    expanded::VARIANT,
    around::VARIANT,
    global::VARIANT,
    prefix::VARIANT,
    segments::VARIANT,
    permutation::VARIANT,
    edges::VARIANT,
    dense::VARIANT,
];

/// Coverage of a block of the score matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cover {
    /// No cell is allowed.
    Empty,
    /// Some cells may be allowed; each must be checked.
    Partial,
    /// All cells are allowed.
    Full,
}

/// Block of one head's score matrix.
#[derive(Clone, Debug)]
pub struct ScoreBlock {
    /// Batch row.
    pub b: usize,
    /// Query head.
    pub h: usize,
    /// Range of queries.
    pub queries: Range<usize>,
    /// Range of keys.
    pub keys: Range<usize>,
}

/// Rule of a mask. `allows` is the definition; the other methods are shortcuts that must agree with
/// it.
///
/// This trait is open to custom implementations.
pub trait Rule: Send + Sync + std::fmt::Debug {
    /// Checks that the rule matches the sizes.
    fn check(&self, grid: &Grid) -> Result<(), Error>;

    /// Whether query `i` may attend to key `j`.
    fn allows(&self, grid: &Grid, b: usize, h: usize, i: usize, j: usize) -> bool;

    /// Returns the keys of query `i` as one range `[low, high)`, if every query has one and it is
    /// the same for every head. The range may extend beyond the existing keys.
    fn range(&self, _grid: &Grid, _b: usize, _i: usize) -> Option<(i64, i64)> {
        None
    }

    /// Whether the mask differs between heads.
    fn per_head(&self) -> bool {
        false
    }

    /// Appends the keys of query `i` in ascending order and returns true, if the rule is sparse.
    fn list(&self, _grid: &Grid, _b: usize, _i: usize, _keys: &mut Vec<u32>) -> bool {
        false
    }

    /// Returns the coverage of a block. `Partial` is always correct.
    fn cover(&self, _grid: &Grid, _block: &ScoreBlock) -> Cover {
        Cover::Partial
    }

    /// Writes 1 for every allowed cell and 0 for the others to `cells[key · lanes + query]`, both
    /// counted from the block's start.
    fn cells(&self, grid: &Grid, block: &ScoreBlock, lanes: usize, cells: &mut [u8]) {
        for (jj, j) in block.keys.clone().enumerate() {
            for (ii, i) in block.queries.clone().enumerate() {
                cells[jj * lanes + ii] = u8::from(self.allows(grid, block.b, block.h, i, j));
            }
        }
    }
}

/// A rule, or a combination of masks with `&`, `|` and `!`.
#[derive(Clone, Debug)]
pub enum Mask {
    /// A single rule.
    Rule(Arc<dyn Rule>),
    /// Intersection: cells that both allow.
    And(Arc<Mask>, Arc<Mask>),
    /// Union: cells that either allows.
    Or(Arc<Mask>, Arc<Mask>),
    /// Complement: cells that the mask does not allow.
    Not(Arc<Mask>),
}

impl Default for Mask {
    fn default() -> Mask {
        full()
    }
}

impl Mask {
    /// Creates a mask from a rule, which may be a custom one.
    pub fn new(rule: impl Rule + 'static) -> Mask {
        Mask::Rule(Arc::new(rule))
    }
}

impl std::ops::BitAnd for Mask {
    type Output = Mask;
    fn bitand(self, other: Mask) -> Mask {
        Mask::And(Arc::new(self), Arc::new(other))
    }
}

impl std::ops::BitOr for Mask {
    type Output = Mask;
    fn bitor(self, other: Mask) -> Mask {
        Mask::Or(Arc::new(self), Arc::new(other))
    }
}

impl std::ops::Not for Mask {
    type Output = Mask;
    fn not(self) -> Mask {
        Mask::Not(Arc::new(self))
    }
}

// A combination is a rule as well.
impl Rule for Mask {
    fn check(&self, grid: &Grid) -> Result<(), Error> {
        match self {
            Mask::Rule(rule) => rule.check(grid),
            Mask::And(a, b) | Mask::Or(a, b) => a.check(grid).and_then(|()| b.check(grid)),
            Mask::Not(a) => a.check(grid),
        }
    }

    fn allows(&self, grid: &Grid, b: usize, h: usize, i: usize, j: usize) -> bool {
        match self {
            Mask::Rule(rule) => rule.allows(grid, b, h, i, j),
            Mask::And(x, y) => x.allows(grid, b, h, i, j) && y.allows(grid, b, h, i, j),
            Mask::Or(x, y) => x.allows(grid, b, h, i, j) || y.allows(grid, b, h, i, j),
            Mask::Not(x) => !x.allows(grid, b, h, i, j),
        }
    }

    fn range(&self, grid: &Grid, b: usize, i: usize) -> Option<(i64, i64)> {
        match self {
            Mask::Rule(rule) => rule.range(grid, b, i),
            Mask::And(x, y) => {
                let (x, y) = (x.range(grid, b, i)?, y.range(grid, b, i)?);
                Some((x.0.max(y.0), x.1.min(y.1)))
            }
            // A union of ranges is not always a range, and whether it is must not depend on `i`.
            Mask::Or(..) | Mask::Not(_) => None,
        }
    }

    fn list(&self, grid: &Grid, b: usize, i: usize, keys: &mut Vec<u32>) -> bool {
        let start = keys.len();
        match self {
            Mask::Rule(rule) => rule.list(grid, b, i, keys),
            Mask::And(x, y) => {
                // Lists do not depend on the head, so the other operand must not either.
                let (sparse, other) = match x.list(grid, b, i, keys) {
                    true => (true, y),
                    false => (y.list(grid, b, i, keys), x),
                };
                if !sparse || other.per_head() {
                    keys.truncate(start);
                    return false;
                }
                let mut kept = start;
                for at in start..keys.len() {
                    if other.allows(grid, b, 0, i, keys[at] as usize) {
                        keys[kept] = keys[at];
                        kept += 1;
                    }
                }
                keys.truncate(kept);
                true
            }
            Mask::Or(x, y) => {
                if !x.list(grid, b, i, keys) {
                    return false;
                }
                if !y.list(grid, b, i, keys) {
                    keys.truncate(start);
                    return false;
                }
                let mut merged = keys.split_off(start);
                merged.sort_unstable();
                merged.dedup();
                keys.extend(merged);
                true
            }
            Mask::Not(_) => false,
        }
    }

    fn per_head(&self) -> bool {
        match self {
            Mask::Rule(rule) => rule.per_head(),
            Mask::And(x, y) | Mask::Or(x, y) => x.per_head() || y.per_head(),
            Mask::Not(x) => x.per_head(),
        }
    }

    fn cover(&self, grid: &Grid, block: &ScoreBlock) -> Cover {
        match self {
            Mask::Rule(rule) => rule.cover(grid, block),
            Mask::And(x, y) => match (x.cover(grid, block), y.cover(grid, block)) {
                (Cover::Empty, _) | (_, Cover::Empty) => Cover::Empty,
                (Cover::Full, Cover::Full) => Cover::Full,
                _ => Cover::Partial,
            },
            Mask::Or(x, y) => match (x.cover(grid, block), y.cover(grid, block)) {
                (Cover::Full, _) | (_, Cover::Full) => Cover::Full,
                (Cover::Empty, Cover::Empty) => Cover::Empty,
                _ => Cover::Partial,
            },
            Mask::Not(x) => match x.cover(grid, block) {
                Cover::Empty => Cover::Full,
                Cover::Full => Cover::Empty,
                Cover::Partial => Cover::Partial,
            },
        }
    }

    fn cells(&self, grid: &Grid, block: &ScoreBlock, lanes: usize, cells: &mut [u8]) {
        match self {
            Mask::Rule(rule) => rule.cells(grid, block, lanes, cells),
            Mask::And(x, y) | Mask::Or(x, y) => {
                let mut other = vec![0; cells.len()];
                x.cells(grid, block, lanes, cells);
                y.cells(grid, block, lanes, &mut other);
                let and = matches!(self, Mask::And(..));
                for (cell, other) in cells.iter_mut().zip(other) {
                    *cell = if and { *cell & other } else { *cell | other };
                }
            }
            Mask::Not(x) => {
                x.cells(grid, block, lanes, cells);
                cells.iter_mut().for_each(|cell| *cell ^= 1);
            }
        }
    }
}

/// The coverage of a block in which each query has one range of keys.
pub(crate) fn cover_by_range(rule: &dyn Rule, grid: &Grid, block: &ScoreBlock) -> Cover {
    let (from, to) = (block.keys.start as i64, block.keys.end as i64);
    let (mut any, mut all) = (false, true);
    for i in block.queries.clone() {
        let (low, high) = rule.range(grid, block.b, i).expect("a rule of ranges");
        any |= low.max(from) < high.min(to);
        all &= low <= from && high >= to;
    }
    match (any, all) {
        (false, _) => Cover::Empty,
        (true, true) => Cover::Full,
        (true, false) => Cover::Partial,
    }
}

/// The cells of a block in which each query has one range of keys.
pub(crate) fn cells_by_range(
    rule: &dyn Rule,
    grid: &Grid,
    block: &ScoreBlock,
    lanes: usize,
    cells: &mut [u8],
) {
    let (from, to) = (block.keys.start as i64, block.keys.end as i64);
    for (lane, i) in block.queries.clone().enumerate() {
        let (low, high) = rule.range(grid, block.b, i).expect("a rule of ranges");
        let (low, high) = (low.clamp(from, to) - from, high.clamp(from, to) - from);
        for key in 0..block.keys.len() {
            cells[key * lanes + lane] = u8::from((low..high).contains(&(key as i64)));
        }
    }
}

/// Implements the other methods of a rule from its `range`.
macro_rules! by_range {
    () => {
        fn allows(&self, grid: &Grid, b: usize, _: usize, i: usize, j: usize) -> bool {
            let (low, high) = self.range(grid, b, i).expect("a rule of ranges");
            (low..high).contains(&(j as i64))
        }
        fn cover(&self, grid: &Grid, block: &ScoreBlock) -> Cover {
            cover_by_range(self, grid, block)
        }
        fn cells(&self, grid: &Grid, block: &ScoreBlock, lanes: usize, cells: &mut [u8]) {
            cells_by_range(self, grid, block, lanes, cells);
        }
    };
}
pub(crate) use by_range;

#[cfg(test)]
mod tests;
