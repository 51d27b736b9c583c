//! XLNet's factorisation order: a token sees those that come before it in a permutation.

use super::*;

pub(super) const VARIANT: Variant = Variant {
    name: "permutation",
    params: &[("order", "int [n], n = S or T"), ("strict", "bool")],
    formula: "rank(j) < rank(p), or ≤ unless strict; rank(order[m]) = m; memory before the n is seen",
    paper: "Yang et al. 2019, arXiv:1906.08237",
};

#[derive(Debug)]
struct Permutation {
    order: Vec<i64>,
    /// Rank of each of the last `order.len()` positions.
    rank: Vec<u32>,
    strict: bool,
}

/// `order[m]` is the position that is predicted `m`-th. A token sees those before it and, unless
/// `strict`, itself: the content stream includes itself, the query stream is strict.
///
/// With fewer entries than keys, `order` is about the last keys and all earlier ones, a memory,
/// are seen by all.
pub fn permutation(order: &[i64], strict: bool) -> Mask {
    let mut rank = vec![u32::MAX; order.len()];
    for (m, at) in order.iter().enumerate() {
        if let Some(rank) = usize::try_from(*at).ok().and_then(|at| rank.get_mut(at)) {
            *rank = m as u32;
        }
    }
    Mask::new(Permutation { order: order.to_vec(), rank, strict })
}

impl Rule for Permutation {
    fn check(&self, grid: &Grid) -> Result<(), Error> {
        let (n, s) = (self.order.len(), grid.dims.s);
        if n > s {
            bail!("permutation: got an order of {n} positions, need at most S = {s}");
        }
        match self.rank.iter().position(|rank| *rank == u32::MAX) {
            Some(at) => bail!("permutation: position {at} is not in the order of 0..{n}"),
            None => Ok(()),
        }
    }
    fn allows(&self, grid: &Grid, b: usize, _: usize, i: usize, j: usize) -> bool {
        let memory = grid.dims.s - self.order.len();
        let Some(key) = j.checked_sub(memory) else { return true };
        let Some(query) = grid.key_at(b, i).and_then(|p| p.checked_sub(memory)) else {
            return false;
        };
        let (key, query) = (self.rank[key], self.rank[query]);
        key < query || (!self.strict && key == query)
    }
}
