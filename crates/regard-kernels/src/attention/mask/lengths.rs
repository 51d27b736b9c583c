//! Valid lengths: keys past them are padding.

use super::*;

pub(super) const VARIANT: Variant = Variant {
    name: "lengths",
    params: &[("lengths", "int [B] or [B,T]")],
    settings: &[],
    formula: "j < lengths[b] (or lengths[b, i])",
    paper: "Bahdanau et al. 2015, arXiv:1409.0473 (padding)",
};

#[derive(Debug)]
struct Lengths {
    lengths: Vec<i64>,
    per_query: bool,
}

/// Creates a padding mask: batch row `b` has `lengths[b]` valid keys.
pub fn lengths(lengths: &[i64]) -> Mask {
    Mask::new(Lengths { lengths: lengths.to_vec(), per_query: false })
}

/// Creates a padding mask per query: query `i` of batch row `b` has `lengths[b·T + i]` valid keys.
pub fn lengths_per_query(lengths: &[i64]) -> Mask {
    Mask::new(Lengths { lengths: lengths.to_vec(), per_query: true })
}

impl Rule for Lengths {
    fn check(&self, grid: &Grid) -> Result<(), Error> {
        let (b, t, s) = (grid.dims.b, grid.dims.t, grid.dims.s);
        let (need, what) =
            if self.per_query { (b * t, "query: B·T") } else { (b, "batch row: B") };
        if self.lengths.len() != need {
            bail!("lengths: got {}, need one per {what} = {need}", self.lengths.len());
        }
        match self.lengths.iter().position(|n| *n < 0 || *n > s as i64) {
            Some(at) => bail!("lengths[{at}]: got {}, need 0 to S = {s}", self.lengths[at]),
            None => Ok(()),
        }
    }
    fn range(&self, grid: &Grid, b: usize, i: usize) -> Option<(i64, i64)> {
        let at = if self.per_query { b * grid.dims.t + i } else { b };
        Some((0, self.lengths[at]))
    }
    by_range!();
}
