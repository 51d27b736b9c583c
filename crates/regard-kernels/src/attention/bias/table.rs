//! Learned scalar for each distance, clipped at both ends.

use super::*;

pub(super) const ROW: Row<dyn Bias> = Row {
    about: Variant {
        name: "table",
        params: &[("table", "[H,2·reach+1]")],
        settings: &[Setting::Size("reach")],
        formula: "table[h, clip(j − p, −reach, reach) + reach]",
        paper: "Shaw et al. 2018, arXiv:1803.02155; Raffel et al. 2020, arXiv:1910.10683",
    },
    new: |settings| {
        let reach = match settings.shape("table") {
            Some(&[.., n]) if n % 2 == 1 => n / 2,
            Some(shape) => bail!("table: got shape {shape:?}, need [H,2·reach+1]"),
            None => settings.size("reach")? as usize,
        };
        Ok(Arc::new(Table { reach }))
    },
    trials: &[&[("reach", 3.0)]],
};

/// Relative position bias `table[h, clip(j − p, −reach, reach) + reach]`.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Largest distance with its own entry; larger ones are clipped to it.
    pub reach: usize,
}

impl Bias for Table {
    fn name(&self) -> &'static str {
        ROW.about.name
    }
    fn params(&self, dims: &Dims) -> Vec<Param> {
        vec![Param::new("table", [1, dims.h, 1, 2 * self.reach + 1], "1H1R")]
    }
    fn formula(&self) -> Expr {
        let reach = self.reach;
        param(0).pick(move |grid, [b, i, j]| Some(index(grid, reach, [b, i, j])))
    }
}

impl Bind for Table {
    fn bind<'a>(&'a self, grid: &'a Grid, params: &'a [View<'a>]) -> Box<dyn Term + 'a> {
        Box::new(Bound { grid, table: params[0].to_vec(), reach: self.reach })
    }
}

struct Bound<'a> {
    grid: &'a Grid,
    table: Vec<f32>,
    reach: usize,
}

fn index(grid: &Grid, reach: usize, [b, query, key]: [usize; 3]) -> usize {
    let (distance, reach) = (key as f32 - grid.position(b, query), reach as f32);
    (distance.round().clamp(-reach, reach) + reach) as usize
}

impl Term for Bound<'_> {
    fn accumulator(&self) -> usize {
        2 * self.reach + 1
    }
    fn apply(&self, at: &At, tile: &mut Tile) {
        let row = &self.table[at.h * self.accumulator()..][..self.accumulator()];
        each_cell(at, tile, |s, i, j| *s += row[index(self.grid, self.reach, [at.b, i, j])]);
    }
    fn gradient(&self, at: &At, ds: &mut Tile, sums: &mut [f32]) {
        each_cell(at, ds, |ds, i, j| sums[index(self.grid, self.reach, [at.b, i, j])] += *ds);
    }
    fn collect(&self, sums: &[f32]) -> Vec<Vec<f32>> {
        vec![sum_over_batch(sums, self.grid.dims.h, self.accumulator())]
    }
}
