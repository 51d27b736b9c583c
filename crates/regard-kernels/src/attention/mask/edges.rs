//! A graph: a query sees the keys that its edges come from.

use super::*;

pub(super) const VARIANT: Variant = Variant {
    name: "edges",
    params: &[("indptr", "int [T+1]"), ("indices", "int [nnz]")],
    formula: "j ∈ indices[indptr[i] .. indptr[i+1]]",
    paper: "Veličković et al. 2018, arXiv:1710.10903",
};

#[derive(Debug)]
struct Edges {
    indptr: Vec<i64>,
    indices: Vec<i64>,
}

/// A graph in CSR form: rows are queries (targets), indices are keys (sources), ascending within
/// a row.
pub fn edges(indptr: &[i64], indices: &[i64]) -> Mask {
    Mask::new(Edges { indptr: indptr.to_vec(), indices: indices.to_vec() })
}

impl Edges {
    fn row(&self, i: usize) -> &[i64] {
        &self.indices[self.indptr[i] as usize..self.indptr[i + 1] as usize]
    }
}

impl Rule for Edges {
    fn check(&self, grid: &Grid) -> Result<(), Error> {
        let (t, s, nnz) = (grid.dims.t, grid.dims.s, self.indices.len() as i64);
        if self.indptr.len() != t + 1 {
            bail!("edges: got indptr of {} numbers, need T + 1 = {}", self.indptr.len(), t + 1);
        }
        if self.indptr[0] != 0 || self.indptr[t] != nnz {
            let (first, last) = (self.indptr[0], self.indptr[t]);
            bail!("edges: indptr runs from {first} to {last}, need 0 to the {nnz} indices");
        }
        if let Some(i) = (0..t).find(|i| self.indptr[*i] > self.indptr[i + 1]) {
            bail!("edges: indptr falls after row {i}, need ascending numbers");
        }
        for i in 0..t {
            let row = self.row(i);
            if let Some(bad) = row.iter().find(|j| **j < 0 || **j >= s as i64) {
                bail!("edges: row {i} names key {bad}, need 0 to S − 1 = {}", s as i64 - 1);
            }
            if row.windows(2).any(|w| w[0] >= w[1]) {
                bail!("edges: the indices of row {i} are not ascending and distinct");
            }
        }
        Ok(())
    }
    fn allows(&self, _: &Grid, _: usize, _: usize, i: usize, j: usize) -> bool {
        self.row(i).binary_search(&(j as i64)).is_ok()
    }
    fn list(&self, _: &Grid, _: usize, i: usize, keys: &mut Vec<u32>) -> bool {
        keys.extend(self.row(i).iter().map(|j| *j as u32));
        true
    }
    fn cover(&self, _: &Grid, block: &Block) -> Cover {
        let (from, to) = (block.keys.start as i64, block.keys.end as i64);
        let any = block.queries.clone().any(|i| {
            let row = self.row(i);
            row.partition_point(|j| *j < from) < row.partition_point(|j| *j < to)
        });
        if any { Cover::Partial } else { Cover::Empty }
    }
}
