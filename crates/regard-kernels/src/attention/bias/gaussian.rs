//! Gaussian around a given centre for each query, before or after the normaliser.

use super::*;
use crate::attention::term::Values;

pub(super) const ROW: Row<dyn Bias> = Row {
    about: Variant {
        name: "gaussian",
        params: &[("centres", "[B,T]"), ("sigma", "scalar")],
        settings: &[],
        formula: "−(j − centres[b, i])²/(2σ²)",
        paper: "Yang et al. 2018, arXiv:1810.10182",
    },
    new: |_| Ok(Arc::new(Gaussian { after: false })),
    trials: DEFAULTS,
};
pub(super) const AFTER: Row<dyn Bias> = Row {
    about: Variant {
        name: "gaussian_after",
        params: &[("centres", "[B,T]"), ("sigma", "scalar")],
        settings: &[],
        formula: "weights · exp(−(j − centres[b, i])²/(2σ²)), not renormalised",
        paper: "Luong et al. 2015, arXiv:1508.04025, eq. 10",
    },
    new: |_| Ok(Arc::new(Gaussian { after: true })),
    trials: DEFAULTS,
};

/// Gaussian bias `−(j − c)²/(2σ²)` added to the scores, or its exponential as a factor of the
/// weights.
#[derive(Clone, Copy, Debug)]
pub struct Gaussian {
    /// Whether its exponential multiplies the weights, which are not renormalised.
    pub after: bool,
}

impl Bias for Gaussian {
    fn name(&self) -> &'static str {
        if self.after { AFTER.about.name } else { ROW.about.name }
    }
    fn params(&self, dims: &Dims) -> Vec<Param> {
        let centres = Param::new("centres", [1, 1, dims.b, dims.t], "11BT");
        vec![Param { values: Values::Centres, ..centres }, Param::width("sigma")]
    }
    fn formula(&self) -> Expr {
        let away = places(|_, key| key) - param(0);
        number(-0.5) * away.clone() * away / (param(1) * param(1))
    }
    fn after(&self) -> bool {
        self.after
    }
}

impl Bind for Gaussian {
    fn bind<'a>(&'a self, grid: &'a Grid, params: &'a [View<'a>]) -> Box<dyn Term + 'a> {
        let (centres, sigma) = (params[0].to_vec(), params[1].get(0, 0, 0, 0));
        Box::new(Bound { grid, centres, sigma, after: self.after })
    }
}

struct Bound<'a> {
    grid: &'a Grid,
    centres: Vec<f32>,
    sigma: f32,
    after: bool,
}

impl Bound<'_> {
    fn away(&self, b: usize, query: usize, key: usize) -> f32 {
        key as f32 - self.centres[b * self.grid.dims.t + query]
    }
}

impl Term for Bound<'_> {
    fn after(&self) -> bool {
        self.after
    }
    fn accumulator(&self) -> usize {
        self.grid.dims.t + 1
    }
    fn apply(&self, at: &At, tile: &mut Tile) {
        let by = -0.5 / (self.sigma * self.sigma);
        each_cell(at, tile, |s, i, j| {
            let exponent = by * self.away(at.b, i, j).powi(2);
            if self.after {
                *s *= exponent.exp();
            } else {
                *s += exponent;
            }
        });
    }
    fn gradient(&self, at: &At, ds: &mut Tile, sums: &mut [f32]) {
        let (by, t) = (1.0 / (self.sigma * self.sigma), self.grid.dims.t);
        // In both cases it is the gradient of the exponent x = −(j − c)²/(2σ²): before, ds·dx;
        // after, with w = p·eˣ, (dw·w)·dx.
        each_cell(at, ds, |ds, i, j| {
            let away = self.away(at.b, i, j);
            sums[i] += *ds * away * by;
            sums[t] += *ds * away * away * by / self.sigma;
        });
    }
    fn collect(&self, sums: &[f32]) -> Vec<Vec<f32>> {
        let Dims { b, h, t, .. } = self.grid.dims;
        let (mut centres, mut sigma) = (vec![0.0; b * t], 0.0);
        for (row, sums) in sums.chunks_exact(t + 1).enumerate() {
            let to = &mut centres[row / h * t..][..t];
            to.iter_mut().zip(sums).for_each(|(to, x)| *to += x);
            sigma += sums[t];
        }
        vec![centres, vec![sigma]]
    }
}
