//! Graph mask: a query attends to the sources of its edges.

use super::*;
use crate::attention::graph::Graph;

pub(super) const VARIANT: Variant = Variant {
    name: "edges",
    params: &[("indptr", "int [T+1]"), ("indices", "int [nnz]")],
    settings: &[],
    formula: "j ∈ indices[indptr[i] .. indptr[i+1]]",
    paper: "Veličković et al. 2018, arXiv:1710.10903",
};

#[derive(Debug)]
struct Edges(Graph);

/// Creates a mask from a graph in CSR form: rows are queries (targets), indices are keys (sources),
/// ascending within a row.
pub fn edges(indptr: &[i64], indices: &[i64]) -> Mask {
    Mask::new(Edges(Graph::new(indptr, indices)))
}

impl Rule for Edges {
    fn check(&self, grid: &Grid) -> Result<(), Error> {
        self.0.check(grid)
    }
    fn allows(&self, _: &Grid, _: usize, _: usize, i: usize, j: usize) -> bool {
        self.0.row(i).binary_search(&(j as i64)).is_ok()
    }
    fn list(&self, _: &Grid, _: usize, i: usize, keys: &mut Vec<u32>) -> bool {
        keys.extend(self.0.row(i).iter().map(|j| *j as u32));
        true
    }
    fn cover(&self, _: &Grid, block: &ScoreBlock) -> Cover {
        let (from, to) = (block.keys.start as i64, block.keys.end as i64);
        let any = block.queries.clone().any(|i| {
            let row = self.0.row(i);
            row.partition_point(|j| *j < from) < row.partition_point(|j| *j < to)
        });
        if any { Cover::Partial } else { Cover::Empty }
    }
}
