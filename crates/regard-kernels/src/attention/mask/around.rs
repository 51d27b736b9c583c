//! Window around a given centre for each query, as in Luong's local attention.

use super::*;

pub(super) const VARIANT: Variant = Variant {
    name: "around",
    params: &[("centres", "float [B,T]"), ("width", "int")],
    settings: &[],
    formula: "|j − centres[b, i]| ≤ width",
    paper: "Luong et al. 2015, arXiv:1508.04025",
};

#[derive(Debug)]
struct Around {
    centres: Vec<f32>,
    width: usize,
}

/// Creates a mask in which query `i` of batch row `b` attends to keys at most `width` away from
/// `centres[b·T + i]`.
pub fn around(centres: &[f32], width: usize) -> Mask {
    Mask::new(Around { centres: centres.to_vec(), width })
}

impl Rule for Around {
    fn check(&self, grid: &Grid) -> Result<(), Error> {
        let (b, t) = (grid.dims.b, grid.dims.t);
        if self.centres.len() != b * t {
            bail!("around: got {} centres, need B·T = {b}·{t}", self.centres.len());
        }
        match self.centres.iter().position(|c| c.is_nan() || c.abs() > 16_777_216.0) {
            Some(at) => bail!("around: centres[{at}] is {}, need a number", self.centres[at]),
            None => Ok(()),
        }
    }
    fn range(&self, grid: &Grid, b: usize, i: usize) -> Option<(i64, i64)> {
        let centre = f64::from(self.centres[b * grid.dims.t + i]);
        let width = self.width.min(1 << 40) as f64;
        Some(((centre - width).ceil() as i64, (centre + width).floor() as i64 + 1))
    }
    by_range!();
}
