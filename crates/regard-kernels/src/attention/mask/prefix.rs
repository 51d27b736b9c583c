//! Prefix mask: bidirectional over a prefix, causal after it.

use super::*;

pub(super) const VARIANT: Variant = Variant {
    name: "prefix",
    params: &[("n", "int")],
    settings: &[],
    formula: "j < n or j ≤ p",
    paper: "Raffel et al. 2020, arXiv:1910.10683",
};

#[derive(Debug)]
struct Prefix {
    n: usize,
}

/// Creates a prefix mask: all queries attend to the first `n` keys; beyond them a query at `p`
/// attends to keys `j ≤ p`.
pub fn prefix(n: usize) -> Mask {
    Mask::new(Prefix { n })
}

impl Rule for Prefix {
    fn check(&self, grid: &Grid) -> Result<(), Error> {
        if self.n > grid.dims.s {
            bail!("prefix: got n = {}, need at most S = {}", self.n, grid.dims.s);
        }
        Ok(())
    }
    fn range(&self, grid: &Grid, b: usize, i: usize) -> Option<(i64, i64)> {
        Some((0, (grid.position(b, i).floor() as i64 + 1).max(self.n as i64)))
    }
    by_range!();
}
