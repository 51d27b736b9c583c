//! Attention with linear biases (ALiBi): a penalty proportional to the distance.

use super::*;
use crate::attention::tile::Keys;
use crate::simd::{Kernel, Simd, dispatch};

pub(super) const ROW: Row<dyn Bias> = Row {
    about: Variant {
        name: "alibi",
        params: &[("slopes", "[H]")],
        settings: &[],
        formula: "−slopes[h] · |p − j|",
        paper: "Press et al. 2022, arXiv:2108.12409",
    },
    new: |_| Ok(Arc::new(Alibi)),
    trials: DEFAULTS,
};

/// ALiBi bias `−slope_h · |p − j|`.
#[derive(Clone, Copy, Debug)]
pub struct Alibi;

impl Alibi {
    /// Returns the paper's slopes: a geometric series from `2^{−8/H}`; if the number of heads is
    /// not a power of two, those of the next smaller power, filled up from the next larger one.
    pub fn slopes(heads: usize) -> Vec<f32> {
        let series = |n: usize| (1..=n).map(move |m| 2f32.powf(-8.0 * m as f32 / n as f32));
        let whole = if heads.is_power_of_two() { heads } else { heads.next_power_of_two() / 2 };
        series(whole).chain(series(2 * whole).step_by(2)).take(heads).collect()
    }
}

impl Bias for Alibi {
    fn name(&self) -> &'static str {
        ROW.about.name
    }
    fn params(&self, dims: &Dims) -> Vec<Param> {
        vec![Param::new("slopes", [1, dims.h, 1, 1], "1H11")]
    }
    fn formula(&self) -> Expr {
        -param(0) * places(|position, key| (position - key).abs())
    }
}

impl Bind for Alibi {
    fn bind<'a>(&'a self, grid: &'a Grid, params: &'a [View<'a>]) -> Box<dyn Term + 'a> {
        Box::new(Bound { grid, slopes: params[0].to_vec() })
    }
}

struct Bound<'a> {
    grid: &'a Grid,
    slopes: Vec<f32>,
}

struct Apply<'a, 'b> {
    slope: f32,
    start: usize,
    positions: &'a [f32],
    tile: &'a mut Tile<'b>,
}

impl Kernel for Apply<'_, '_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Tile { data, keys, lanes, .. } = self.tile;
        for (row, cells) in data.chunks_exact_mut(*lanes).take(*keys).enumerate() {
            let key = (self.start + row) as f32;
            // Plain arithmetic, which the compiler vectorises.
            for (s, position) in cells.iter_mut().zip(self.positions) {
                *s -= self.slope * (position - key).abs();
            }
        }
    }
}

impl Term for Bound<'_> {
    fn accumulator(&self) -> usize {
        1
    }
    fn apply(&self, at: &At, tile: &mut Tile) {
        let slope = self.slopes[at.h];
        match at.keys {
            Keys::Run { start, .. } => {
                let position =
                    |lane: usize| self.grid.position(at.b, at.i0 + lane.min(tile.queries - 1));
                let positions: Vec<f32> = (0..tile.lanes).map(position).collect();
                dispatch(Apply { slope, start, positions: &positions, tile });
            }
            Keys::Listed { .. } => each_cell(at, tile, |s, i, j| {
                *s -= slope * (self.grid.position(at.b, i) - j as f32).abs();
            }),
        }
    }
    fn gradient(&self, at: &At, ds: &mut Tile, sums: &mut [f32]) {
        let mut sum = 0f64;
        each_cell(at, ds, |ds, i, j| {
            sum -= f64::from(*ds) * f64::from((self.grid.position(at.b, i) - j as f32).abs());
        });
        sums[0] += sum as f32;
    }
    fn collect(&self, sums: &[f32]) -> Vec<Vec<f32>> {
        vec![sum_over_batch(sums, self.grid.dims.h, 1)]
    }
}
