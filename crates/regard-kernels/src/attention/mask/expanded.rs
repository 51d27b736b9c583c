//! Dilated window, which takes every `stride`-th key.

use super::*;

pub(super) const VARIANT: Variant = Variant {
    name: "expanded",
    params: &[("left", "int"), ("right", "int"), ("stride", "int")],
    settings: &[],
    formula: "j = p + m·stride with −left ≤ m ≤ right",
    paper: "Beltagy et al. 2020, arXiv:2004.05150 (dilated window)",
};

#[derive(Debug)]
struct Expanded {
    left: usize,
    right: usize,
    stride: usize,
}

/// Creates a dilated window: a query at position `p` attends to `left` keys before it, itself, and
/// `right` keys after it, each `stride` apart.
pub fn expanded(left: usize, right: usize, stride: usize) -> Mask {
    Mask::new(Expanded { left, right, stride })
}

impl Rule for Expanded {
    fn check(&self, _: &Grid) -> Result<(), Error> {
        if self.stride == 0 {
            bail!("expanded: got stride 0, need at least 1");
        }
        Ok(())
    }
    fn allows(&self, grid: &Grid, b: usize, _: usize, i: usize, j: usize) -> bool {
        let p = grid.position(b, i);
        let steps = (j as f32 - p) / self.stride as f32;
        steps.fract() == 0.0 && steps >= -(self.left as f32) && steps <= self.right as f32
    }
    fn list(&self, grid: &Grid, b: usize, i: usize, keys: &mut Vec<u32>) -> bool {
        let (p, s, stride) = (grid.position(b, i), grid.dims.s as i64, self.stride as i64);
        if p.fract() != 0.0 {
            return true; // between keys, none is a whole number of steps away
        }
        let p = p as i64;
        // The steps that stay within the keys.
        let first = (-(self.left.min(1 << 24) as i64)).max(-p.div_euclid(stride));
        let last = (self.right.min(1 << 24) as i64).min((s - 1 - p).div_euclid(stride));
        keys.extend((first..=last).map(|m| (p + m * stride) as u32));
        true
    }
}
