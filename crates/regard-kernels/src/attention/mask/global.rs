//! Global tokens, which attend to all keys and are attended to by all queries.

use super::*;

pub(super) const VARIANT: Variant = Variant {
    name: "global_tokens",
    params: &[("indices", "int [n]")],
    settings: &[],
    formula: "p ∈ indices or j ∈ indices",
    paper: "Beltagy et al. 2020, arXiv:2004.05150",
};

#[derive(Debug)]
struct Global {
    indices: Vec<usize>,
}

/// Creates a mask in which the tokens at `indices` attend to every key and every query attends to
/// them; combine it with a window by `|`.
pub fn global_tokens(indices: &[usize]) -> Mask {
    let mut indices = indices.to_vec();
    indices.sort_unstable();
    Mask::new(Global { indices })
}

impl Global {
    fn among(&self, range: &Range<usize>) -> usize {
        let from = self.indices.partition_point(|x| *x < range.start);
        self.indices.partition_point(|x| *x < range.end) - from
    }
    fn query(&self, grid: &Grid, b: usize, i: usize) -> bool {
        grid.key_at(b, i).is_some_and(|p| self.indices.binary_search(&p).is_ok())
    }
}

impl Rule for Global {
    fn check(&self, grid: &Grid) -> Result<(), Error> {
        match self.indices.last() {
            Some(last) if *last >= grid.dims.s => {
                bail!("global_tokens: got index {last}, need below S = {}", grid.dims.s)
            }
            _ if self.indices.windows(2).any(|w| w[0] == w[1]) => {
                bail!("global_tokens: an index is given twice")
            }
            _ => Ok(()),
        }
    }
    fn allows(&self, grid: &Grid, b: usize, _: usize, i: usize, j: usize) -> bool {
        self.indices.binary_search(&j).is_ok() || self.query(grid, b, i)
    }
    fn cover(&self, grid: &Grid, block: &ScoreBlock) -> Cover {
        let queries = block.queries.clone();
        let seeing = queries.clone().filter(|i| self.query(grid, block.b, *i)).count();
        let seen = self.among(&block.keys);
        if seeing == 0 && seen == 0 {
            Cover::Empty
        } else if seeing == queries.len() || seen == block.keys.len() {
            Cover::Full
        } else {
            Cover::Partial
        }
    }
}
