//! Full mask: every query attends to every key.

use super::*;

pub(super) const VARIANT: Variant = Variant {
    name: "full",
    params: &[],
    settings: &[],
    formula: "every key",
    paper: "Vaswani et al. 2017, arXiv:1706.03762",
};

#[derive(Debug)]
struct Full;

/// Creates a mask that allows every key.
pub fn full() -> Mask {
    Mask::new(Full)
}

impl Rule for Full {
    fn check(&self, _: &Grid) -> Result<(), Error> {
        Ok(())
    }
    fn range(&self, grid: &Grid, _: usize, _: usize) -> Option<(i64, i64)> {
        Some((0, grid.dims.s as i64))
    }
    by_range!();
}
