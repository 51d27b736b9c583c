//! Bias for each query–key pair, optionally shared by batch rows or heads.

use super::*;
use crate::memory::room;

pub(super) const ROW: Row<dyn Bias> = Row {
    about: Variant {
        name: "dense",
        params: &[("bias", "[B or 1,H or 1,T,S]")],
        settings: &[Setting::Size("per_batch"), Setting::Size("per_head")],
        formula: "bias[b, h, i, j]",
        paper: "–",
    },
    new: |settings| {
        let own = |name: &str, from_end: usize| match settings.shape("bias") {
            Some(shape) => Ok(shape.len().checked_sub(from_end).is_some_and(|at| shape[at] != 1)),
            None => settings.size(name).map(|given| given != 0.0),
        };
        Ok(Arc::new(Dense { per_batch: own("per_batch", 4)?, per_head: own("per_head", 3)? }))
    },
    trials: &[
        &[("per_batch", 0.0), ("per_head", 0.0)],
        &[("per_batch", 0.0), ("per_head", 1.0)],
        &[("per_batch", 1.0), ("per_head", 0.0)],
        &[("per_batch", 1.0), ("per_head", 1.0)],
    ],
};

/// Dense bias `bias[b, h, i, j]`.
#[derive(Clone, Copy, Debug)]
pub struct Dense {
    /// Whether batch rows have different biases.
    pub per_batch: bool,
    /// Whether heads have different biases.
    pub per_head: bool,
}

impl Bias for Dense {
    fn name(&self) -> &'static str {
        ROW.about.name
    }
    fn params(&self, dims: &Dims) -> Vec<Param> {
        let (b, h) =
            (if self.per_batch { dims.b } else { 1 }, if self.per_head { dims.h } else { 1 });
        vec![Param::new("bias", [b, h, dims.t, dims.s], "BHTS")]
    }
    fn formula(&self) -> Expr {
        param(0)
    }
}

impl Bind for Dense {
    fn bind<'a>(&'a self, grid: &'a Grid, params: &'a [View<'a>]) -> Box<dyn Term + 'a> {
        Box::new(Bound { grid, bias: params[0], spec: *self })
    }
}

struct Bound<'a> {
    grid: &'a Grid,
    bias: View<'a>,
    spec: Dense,
}

impl Term for Bound<'_> {
    fn accumulator(&self) -> usize {
        self.grid.dims.t * self.grid.dims.s
    }
    fn scope(&self) -> (bool, bool) {
        (self.spec.per_batch, self.spec.per_head)
    }
    fn apply(&self, at: &At, tile: &mut Tile) {
        let (b, h) =
            (if self.spec.per_batch { at.b } else { 0 }, if self.spec.per_head { at.h } else { 0 });
        each_cell(at, tile, |s, i, j| *s += self.bias.get(b, h, i, j));
    }
    fn gradient(&self, at: &At, ds: &mut Tile, sums: &mut [f32]) {
        each_cell(at, ds, |ds, i, j| sums[i * self.grid.dims.s + j] += *ds);
    }
    fn collect(&self, sums: &[f32]) -> Vec<Vec<f32>> {
        let mut out = room(&[sums.len()]);
        out.extend_from_slice(sums);
        vec![out]
    }
}
