//! Segments packed into one row: each attends only to itself.

use super::*;
use std::sync::OnceLock;

pub(super) const VARIANT: Variant = Variant {
    name: "segments",
    params: &[("ids", "int [S] or [B,S]")],
    settings: &[],
    formula: "ids[b, p] = ids[b, j]",
    paper: "Krell et al. 2021, arXiv:2107.02027 (packing)",
};

#[derive(Debug)]
struct Segments {
    keys: Vec<i64>,
    /// Ids of the queries; if `None`, a query has the id of the key at its position.
    queries: Option<Vec<i64>>,
    /// Computed on first use, with the number of keys it was computed for: only a grid knows the
    /// length of a row.
    runs: OnceLock<(usize, Option<Vec<Runs>>)>,
}

/// The range of keys of each segment of a row, by id, in ascending order of ids.
type Runs = Vec<(i64, Range<usize>)>;

/// Creates a mask for packed sequences: keys have `ids`, `[S]` or `[B·S]`, and a query at position
/// `p` attends to keys with the id of key `p`. It is fastest if the keys of each segment are
/// contiguous.
pub fn segments(ids: &[i64]) -> Mask {
    Mask::new(Segments { keys: ids.to_vec(), queries: None, runs: OnceLock::new() })
}

/// Creates a mask like [`segments`], with separate ids for the queries, `[T]` or `[B·T]`.
pub fn segments_between(queries: &[i64], keys: &[i64]) -> Mask {
    let queries = Some(queries.to_vec());
    Mask::new(Segments { keys: keys.to_vec(), queries, runs: OnceLock::new() })
}

/// Row `b` of ids that are given once or per batch row.
fn row(ids: &[i64], b: usize, n: usize) -> &[i64] {
    if ids.len() == n { ids } else { &ids[b * n..(b + 1) * n] }
}

/// The range of each segment of a row, if all are contiguous.
fn runs(ids: &[i64]) -> Option<Runs> {
    let mut runs: Runs = vec![];
    for (j, id) in ids.iter().enumerate() {
        match runs.last_mut() {
            Some((last, keys)) if last == id => keys.end = j + 1,
            _ => runs.push((*id, j..j + 1)),
        }
    }
    runs.sort_by_key(|(id, _)| *id);
    let once = runs.windows(2).all(|pair| pair[0].0 < pair[1].0);
    once.then_some(runs)
}

impl Segments {
    fn query_id(&self, grid: &Grid, b: usize, i: usize) -> Option<i64> {
        match &self.queries {
            Some(ids) => Some(row(ids, b, grid.dims.t)[i]),
            None => grid.key_at(b, i).map(|p| row(&self.keys, b, grid.dims.s)[p]),
        }
    }

    /// The segments of a row, if those of every row are contiguous.
    fn runs(&self, grid: &Grid, b: usize) -> Option<&Runs> {
        let s = grid.dims.s;
        let (found_for, rows) = self.runs.get_or_init(|| {
            let rows = if s == 0 { None } else { self.keys.chunks_exact(s).map(runs).collect() };
            (s, rows)
        });
        let rows = rows.as_ref().filter(|_| *found_for == s)?;
        rows.get(if rows.len() == 1 { 0 } else { b })
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
    fn range(&self, grid: &Grid, b: usize, i: usize) -> Option<(i64, i64)> {
        let runs = self.runs(grid, b)?;
        let at = self.query_id(grid, b, i);
        let at = at.and_then(|id| runs.binary_search_by_key(&id, |(id, _)| *id).ok());
        Some(at.map_or((0, 0), |at| (runs[at].1.start as i64, runs[at].1.end as i64)))
    }
    fn cover(&self, grid: &Grid, block: &ScoreBlock) -> Cover {
        if self.runs(grid, block.b).is_some() {
            return cover_by_range(self, grid, block);
        }
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
