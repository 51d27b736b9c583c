//! Graph in CSR form, for masks, biases and edge features of scores.

use super::grid::Grid;
use crate::view::{Error, bail};

/// Directed graph in CSR form: query (target) `i` has edges from the keys (sources)
/// `indices[indptr[i] .. indptr[i + 1]]`, ascending. An edge is numbered by its index in `indices`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    indptr: Vec<i64>,
    indices: Vec<i64>,
    /// The largest key, if every check that does not depend on the sizes has passed.
    sound: Option<i64>,
}

impl Graph {
    /// Creates a graph. It is validated when the sizes are known, with an error from
    /// [`Attention::check`](super::Attention::check).
    pub fn new(indptr: &[i64], indices: &[i64]) -> Graph {
        let ends = (indptr.first(), indptr.last());
        let whole = ends == (Some(&0), Some(&(indices.len() as i64)));
        let sound = whole
            && indptr.windows(2).all(|w| w[0] <= w[1])
            && indptr.windows(2).all(|w| {
                let row = &indices[w[0] as usize..w[1] as usize];
                row.first().is_none_or(|key| *key >= 0) && row.windows(2).all(|w| w[0] < w[1])
            });
        let largest = indices.iter().copied().max().unwrap_or(-1);
        let sound = sound.then_some(largest);
        Graph { indptr: indptr.to_vec(), indices: indices.to_vec(), sound }
    }

    /// Returns the number of edges.
    pub fn edges(&self) -> usize {
        self.indices.len()
    }

    /// Returns the offsets of each query's edges, with the total at the end.
    pub fn indptr(&self) -> &[i64] {
        &self.indptr
    }

    /// Returns the keys of all edges.
    pub fn indices(&self) -> &[i64] {
        &self.indices
    }

    /// The first edge of a query.
    #[inline]
    pub(crate) fn first(&self, query: usize) -> usize {
        self.indptr[query] as usize
    }

    /// The keys of a query.
    #[inline]
    pub(crate) fn row(&self, query: usize) -> &[i64] {
        &self.indices[self.first(query)..self.first(query + 1)]
    }

    /// The edge from `key` to `query`, if there is one. `guess`, an index in the query's row, is
    /// tried first: it is right if the mask is the same graph.
    #[inline]
    pub(crate) fn edge(&self, query: usize, key: usize, guess: usize) -> Option<usize> {
        let (row, key) = (self.row(query), key as i64);
        let at = if row.get(guess) == Some(&key) { Ok(guess) } else { row.binary_search(&key) };
        at.ok().map(|at| self.first(query) + at)
    }

    /// Checks that the graph matches the sizes.
    pub(crate) fn check(&self, grid: &Grid) -> Result<(), Error> {
        let (t, s, nnz) = (grid.dims.t, grid.dims.s, self.indices.len() as i64);
        if self.indptr.len() != t + 1 {
            bail!("edges: got indptr of {} elements, need T + 1 = {}", self.indptr.len(), t + 1);
        }
        if self.sound.is_some_and(|largest| largest < s as i64) {
            return Ok(());
        }
        if self.indptr[0] != 0 || self.indptr[t] != nnz {
            let (first, last) = (self.indptr[0], self.indptr[t]);
            bail!("edges: indptr runs from {first} to {last}, need 0 to the {nnz} indices");
        }
        if let Some(i) = (0..t).find(|i| self.indptr[*i] > self.indptr[i + 1]) {
            bail!("edges: indptr decreases after row {i}, need it ascending");
        }
        for i in 0..t {
            let row = self.row(i);
            if let Some(bad) = row.iter().find(|j| **j < 0 || **j >= s as i64) {
                bail!("edges: row {i} has key {bad}, need 0 to S − 1 = {}", s as i64 - 1);
            }
            if row.windows(2).any(|w| w[0] >= w[1]) {
                bail!("edges: the indices of row {i} are not ascending and distinct");
            }
        }
        Ok(())
    }
}
