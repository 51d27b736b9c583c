//! Causal mask: a query attends to its own position and to earlier ones.

use super::*;

pub(super) const VARIANT: Variant = Variant {
    name: "causal",
    params: &[],
    settings: &[],
    formula: "j ≤ p",
    paper: "Vaswani et al. 2017, arXiv:1706.03762",
};

#[derive(Debug)]
struct Causal;

/// Creates a causal mask: a query at position `p` attends to keys `j ≤ p`.
pub fn causal() -> Mask {
    Mask::new(Causal)
}

impl Rule for Causal {
    fn check(&self, _: &Grid) -> Result<(), Error> {
        Ok(())
    }
    fn range(&self, grid: &Grid, b: usize, i: usize) -> Option<(i64, i64)> {
        Some((0, grid.position(b, i).floor() as i64 + 1))
    }
    by_range!();
}
