//! Sliding window around the query's position.

use super::*;

pub(super) const VARIANT: Variant = Variant {
    name: "window",
    params: &[("left", "int"), ("right", "int")],
    settings: &[],
    formula: "p − left ≤ j ≤ p + right",
    paper: "Beltagy et al. 2020, arXiv:2004.05150",
};

#[derive(Debug)]
struct Window {
    left: usize,
    right: usize,
}

/// Creates a sliding window: a query at position `p` attends to keys from `p − left` to
/// `p + right`.
pub fn window(left: usize, right: usize) -> Mask {
    Mask::new(Window { left, right })
}

impl Rule for Window {
    fn check(&self, _: &Grid) -> Result<(), Error> {
        Ok(())
    }
    fn range(&self, grid: &Grid, b: usize, i: usize) -> Option<(i64, i64)> {
        let p = grid.position(b, i);
        let (left, right) = (self.left.min(1 << 40) as i64, self.right.min(1 << 40) as i64);
        Some((p.ceil() as i64 - left, p.floor() as i64 + right + 1))
    }
    by_range!();
}
