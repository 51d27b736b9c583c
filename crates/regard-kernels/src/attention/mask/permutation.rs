//! XLNet's factorisation order: a token attends to those that precede it in a permutation.

use super::*;

pub(super) const VARIANT: Variant = Variant {
    name: "permutation",
    params: &[("order", "int [n], n = S or T"), ("strict", "bool")],
    settings: &[],
    formula: "rank(j) < rank(p), or ≤ unless strict; rank(order[m]) = m; memory before the n is seen",
    paper: "Yang et al. 2019, arXiv:1906.08237",
};

#[derive(Debug)]
struct Permutation {
    /// Ranks of the last positions, one vector for all batch rows or one for each.
    ranks: Vec<Vec<u32>>,
    strict: bool,
}

/// Creates a mask from a factorisation order: `order[m]` is the position that is predicted `m`-th.
/// A token attends to those before it and, unless `strict`, to itself: the content stream includes
/// itself, the query stream is strict.
///
/// If `order` has fewer entries than there are keys, it refers to the last keys; earlier ones are a
/// memory that every query attends to.
pub fn permutation(order: &[i64], strict: bool) -> Mask {
    permutations(&[order], strict)
}

/// Creates the mask of [`permutation`] with an order for each batch row. All have the same length.
pub fn permutations(orders: &[impl AsRef<[i64]>], strict: bool) -> Mask {
    let ranks = orders.iter().map(|order| ranks(order.as_ref())).collect();
    Mask::new(Permutation { ranks, strict })
}

/// Creates the mask of [`permutations`] from the rank of each position, where several may have the
/// same: a token attends to those of a lower rank and, unless `strict`, to all of its own.
///
/// Tokens that are context and never predicted may thus have one rank and attend to each other.
pub fn ranked(ranks: &[impl AsRef<[u32]>], strict: bool) -> Mask {
    Mask::new(Permutation {
        ranks: ranks.iter().map(|row| row.as_ref().to_vec()).collect(),
        strict,
    })
}

/// The rank of each position; `u32::MAX` if it is missing.
fn ranks(order: &[i64]) -> Vec<u32> {
    let mut ranks = vec![u32::MAX; order.len()];
    for (m, at) in order.iter().enumerate() {
        if let Some(rank) = usize::try_from(*at).ok().and_then(|at| ranks.get_mut(at)) {
            *rank = m as u32;
        }
    }
    ranks
}

impl Permutation {
    fn row(&self, b: usize) -> &[u32] {
        if self.ranks.len() == 1 { &self.ranks[0] } else { &self.ranks[b] }
    }

    /// Query `i` attends to keys of ranks below this.
    fn limit(&self, grid: &Grid, b: usize, i: usize) -> u32 {
        let ranks = self.row(b);
        let memory = grid.dims.s - ranks.len();
        match grid.key_at(b, i).and_then(|p| p.checked_sub(memory)) {
            Some(query) => ranks[query] + u32::from(!self.strict),
            None => 0,
        }
    }
}

impl Rule for Permutation {
    fn check(&self, grid: &Grid) -> Result<(), Error> {
        let (b, s, rows) = (grid.dims.b, grid.dims.s, self.ranks.len());
        if rows != 1 && rows != b {
            bail!("permutation: got {rows} orders, need one, or one per batch row: B = {b}");
        }
        let n = self.ranks[0].len();
        if n > s {
            bail!("permutation: got an order of {n} positions, need at most S = {s}");
        }
        if let Some(other) = self.ranks.iter().map(Vec::len).find(|other| *other != n) {
            bail!("permutation: got orders of {n} and of {other} positions, need one length");
        }
        match self.ranks.iter().find_map(|row| row.iter().position(|rank| *rank == u32::MAX)) {
            Some(at) => bail!("permutation: position {at} is not in the order of 0..{n}"),
            None => Ok(()),
        }
    }
    fn allows(&self, grid: &Grid, b: usize, _: usize, i: usize, j: usize) -> bool {
        let ranks = self.row(b);
        match j.checked_sub(grid.dims.s - ranks.len()) {
            Some(key) => ranks[key] < self.limit(grid, b, i),
            None => true,
        }
    }
    fn cover(&self, grid: &Grid, block: &ScoreBlock) -> Cover {
        let ranks = self.row(block.b);
        let memory = grid.dims.s - ranks.len();
        let ScoreBlock { b, keys, queries, .. } = block.clone();
        let (mut lowest, mut highest) = (u32::MAX, 0);
        for i in queries {
            let limit = self.limit(grid, b, i);
            (lowest, highest) = (lowest.min(limit), highest.max(limit));
        }
        let new = &ranks[keys.start.max(memory) - memory..keys.end.max(memory) - memory];
        if new.iter().all(|rank| *rank < lowest) {
            Cover::Full
        } else if keys.start >= memory && new.iter().all(|rank| *rank >= highest) {
            Cover::Empty
        } else {
            Cover::Partial
        }
    }
    fn cells(&self, grid: &Grid, block: &ScoreBlock, lanes: usize, cells: &mut [u8]) {
        let ranks = self.row(block.b);
        let memory = grid.dims.s - ranks.len();
        for (ii, i) in block.queries.clone().enumerate() {
            let limit = self.limit(grid, block.b, i);
            for (jj, j) in block.keys.clone().enumerate() {
                let seen = j.checked_sub(memory).is_none_or(|key| ranks[key] < limit);
                cells[jj * lanes + ii] = u8::from(seen);
            }
        }
    }
}
