//! Documents packed into one row: each sees only itself.

use super::*;

pub(super) const VARIANT: Variant = Variant {
    name: "segments",
    params: &[("ids", "int [S] or [B,S]")],
    formula: "ids[b, p] = ids[b, j]",
    paper: "Krell et al. 2021, arXiv:2107.02027 (packing)",
};

#[derive(Debug)]
struct Segments {
    keys: Vec<i64>,
    /// Ids of the queries; without them a query has the id of the key where it stands.
    queries: Option<Vec<i64>>,
}

/// Keys carry `ids`, `[S]` or `[B·S]`; a query at position `p` sees keys with the id of key `p`.
pub fn segments(ids: &[i64]) -> Mask {
    Mask::new(Segments { keys: ids.to_vec(), queries: None })
}

/// As [`segments`], with ids of the queries' own, `[T]` or `[B·T]`.
pub fn segments_between(queries: &[i64], keys: &[i64]) -> Mask {
    Mask::new(Segments { keys: keys.to_vec(), queries: Some(queries.to_vec()) })
}

/// Row `b` of ids that are given once or per batch row.
fn row(ids: &[i64], b: usize, n: usize) -> &[i64] {
    if ids.len() == n { ids } else { &ids[b * n..(b + 1) * n] }
}

impl Segments {
    fn query_id(&self, grid: &Grid, b: usize, i: usize) -> Option<i64> {
        match &self.queries {
            Some(ids) => Some(row(ids, b, grid.dims.t)[i]),
            None => grid.key_at(b, i).map(|p| row(&self.keys, b, grid.dims.s)[p]),
        }
    }
}

impl Rule for Segments {
    fn check(&self, grid: &Grid) -> Result<(), Error> {
        let (b, t, s) = (grid.dims.b, grid.dims.t, grid.dims.s);
        if self.keys.len() != s && self.keys.len() != b * s {
            bail!("segments: got {} ids, need S = {s} or B·S = {b}·{s}", self.keys.len());
        }
        match &self.queries {
            Some(ids) if ids.len() != t && ids.len() != b * t => {
                bail!("segments: got {} query ids, need T = {t} or B·T = {b}·{t}", ids.len())
            }
            _ => Ok(()),
        }
    }
    fn allows(&self, grid: &Grid, b: usize, _: usize, i: usize, j: usize) -> bool {
        self.query_id(grid, b, i) == Some(row(&self.keys, b, grid.dims.s)[j])
    }
    fn cover(&self, grid: &Grid, block: &Block) -> Cover {
        let keys = &row(&self.keys, block.b, grid.dims.s)[block.keys.clone()];
        let (low, high) = (keys.iter().min().unwrap(), keys.iter().max().unwrap());
        let (mut any, mut all) = (false, low == high);
        for i in block.queries.clone() {
            let id = self.query_id(grid, block.b, i);
            any |= id.is_some_and(|id| (*low..=*high).contains(&id));
            all &= id == Some(*low);
        }
        match (any, all) {
            (false, _) => Cover::Empty,
            (true, true) => Cover::Full,
            (true, false) => Cover::Partial,
        }
    }
}
