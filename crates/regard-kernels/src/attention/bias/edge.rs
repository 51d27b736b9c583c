//! Scalar bias for each edge and head of a graph.

use super::*;
use crate::attention::graph::Graph;

pub(super) const ROW: Row<dyn Bias> = Row {
    about: Variant {
        name: "edge",
        params: &[("values", "[nnz,H]")],
        settings: &[Setting::Graph(None)],
        formula: "values[edge(i, j), h], 0 where there is no edge",
        paper: "Veličković et al. 2018, arXiv:1710.10903 (edge features)",
    },
    new: |settings| {
        let graph = settings.graph.as_ref().expect("rows with a graph are made with one");
        Ok(Arc::new(EdgeBias {
            indptr: graph.indptr().to_vec(),
            indices: graph.indices().to_vec(),
        }))
    },
    trials: DEFAULTS,
};

/// Edge bias `values[e, h]` for the edge `e` from key `j` to query `i`, in the order of the CSR
/// indices.
#[derive(Clone, Debug)]
pub struct EdgeBias {
    /// Offsets of each query's edges, `[T + 1]`, usually those of the mask.
    pub indptr: Vec<i64>,
    /// Keys of the edges, ascending for each query, usually those of the mask.
    pub indices: Vec<i64>,
}

impl Bias for EdgeBias {
    fn name(&self) -> &'static str {
        ROW.about.name
    }
    fn params(&self, dims: &Dims) -> Vec<Param> {
        vec![Param::new("values", [1, 1, self.indices.len(), dims.h], "11RH")]
    }
    fn formula(&self) -> Expr {
        param(0).by_edge(Arc::new(Graph::new(&self.indptr, &self.indices)))
    }
    fn check(&self, grid: &Grid) -> Result<(), Error> {
        use crate::attention::mask::Rule;
        match crate::attention::mask::edges(&self.indptr, &self.indices).check(grid) {
            Err(Error(message)) => bail!("bias: {message}"),
            Ok(()) => Ok(()),
        }
    }
}

impl Bind for EdgeBias {
    fn bind<'a>(&'a self, grid: &'a Grid, params: &'a [View<'a>]) -> Box<dyn Term + 'a> {
        Box::new(Bound { grid, values: params[0], spec: self })
    }
}

struct Bound<'a> {
    grid: &'a Grid,
    values: View<'a>,
    spec: &'a EdgeBias,
}

impl Bound<'_> {
    fn edge(&self, query: usize, key: usize) -> Option<usize> {
        let (from, to) = (self.spec.indptr[query] as usize, self.spec.indptr[query + 1] as usize);
        self.spec.indices[from..to].binary_search(&(key as i64)).ok().map(|at| from + at)
    }
}

impl Term for Bound<'_> {
    fn accumulator(&self) -> usize {
        self.spec.indices.len()
    }
    fn apply(&self, at: &At, tile: &mut Tile) {
        each_cell(at, tile, |s, i, j| {
            if let Some(edge) = self.edge(i, j) {
                *s += self.values.get(0, 0, edge, at.h);
            }
        });
    }
    fn gradient(&self, at: &At, ds: &mut Tile, sums: &mut [f32]) {
        each_cell(at, ds, |ds, i, j| {
            if let Some(edge) = self.edge(i, j) {
                sums[edge] += *ds;
            }
        });
    }
    fn collect(&self, sums: &[f32]) -> Vec<Vec<f32>> {
        let (heads, edges) = (self.grid.dims.h, self.accumulator());
        let per_head = sum_over_batch(sums, heads, edges);
        let transposed = (0..edges * heads).map(|at| per_head[at % heads * edges + at / heads]);
        vec![transposed.collect()]
    }
}
