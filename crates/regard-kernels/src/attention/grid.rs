//! Size of the score matrix, and positions of the queries.

use crate::view::{Error, bail};

/// Positions of the queries among the keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Positions {
    /// Query `i` at `i + S − T`: the last query is aligned with the last key.
    #[default]
    End,
    /// Query `i` of batch row `b` at `i + offset[b]`, for caches of different lengths.
    Offsets(Vec<i64>),
    /// Query `i` of batch row `b` at `centres[b·T + i]`, which may lie between keys.
    Centres(Vec<f32>),
}

/// Sizes of an attention, named by the letters used in all documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dims {
    /// Number of batch rows.
    pub b: usize,
    /// Number of query heads.
    pub h: usize,
    /// Number of key-value heads, a divisor of the query heads.
    pub hk: usize,
    /// Number of queries.
    pub t: usize,
    /// Number of keys.
    pub s: usize,
    /// Width of a query.
    pub d: usize,
    /// Width of a key; differs from `d` only under the general score.
    pub dk: usize,
    /// Width of a value.
    pub e: usize,
}

impl Dims {
    /// Returns the number of query heads that share a key-value head.
    pub fn group(&self) -> usize {
        self.h / self.hk
    }
}

/// Positions are `f32`, which represents integers exactly up to here.
const FARTHEST: f32 = 16_777_216.0;

/// Sizes and positions of one call.
#[derive(Clone, Debug)]
pub struct Grid {
    /// Sizes of queries, keys and values.
    pub dims: Dims,
    positions: Positions,
}

impl Grid {
    /// Creates a grid.
    ///
    /// # Errors
    /// If positions do not match the sizes, or if `T` or `S` is 2²⁴ or more.
    pub fn new(dims: Dims, positions: Positions) -> Result<Grid, Error> {
        let Dims { b, t, s, .. } = dims;
        match &positions {
            Positions::End => {}
            Positions::Offsets(offsets) => {
                if offsets.len() != b {
                    bail!("offsets: got {} of them, need one per batch row: {b}", offsets.len());
                }
                if let Some(bad) = offsets.iter().find(|x| x.unsigned_abs() > FARTHEST as u64) {
                    bail!("offsets: got {bad}, need at most 2²⁴ either way");
                }
            }
            Positions::Centres(centres) => {
                if centres.len() != b * t {
                    let got = centres.len();
                    bail!("centres: got {got} of them, need one per query: B·T = {b}·{t}");
                }
                if let Some(bad) = centres.iter().find(|c| c.is_nan() || c.abs() > FARTHEST) {
                    bail!("centres: got {bad}, need numbers of at most 2²⁴ either way");
                }
            }
        }
        // Key indices are compared as f32 in the kernels, exact up to 2²⁴.
        if s >= 1 << 24 || t >= 1 << 24 {
            bail!("T = {t} and S = {s}: at most 2²⁴ − 1 queries and keys in one call");
        }
        Ok(Grid { dims, positions })
    }

    /// Returns the position of query `i` of batch row `b`.
    #[inline]
    pub fn position(&self, b: usize, i: usize) -> f32 {
        match &self.positions {
            Positions::End => (i as i64 + self.dims.s as i64 - self.dims.t as i64) as f32,
            Positions::Offsets(offsets) => (i as i64 + offsets[b]) as f32,
            Positions::Centres(centres) => centres[b * self.dims.t + i],
        }
    }

    /// Index of a cell `[b, h, i, j]` in all score matrices.
    pub(crate) fn cell(&self, [b, h, i, j]: [usize; 4]) -> u64 {
        let row = (b * self.dims.h + h) * self.dims.t + i;
        row as u64 * self.dims.s as u64 + j as u64
    }

    /// Returns the key at the position of query `i`; `None` if the position is not that of a key.
    #[inline]
    pub fn key_at(&self, b: usize, i: usize) -> Option<usize> {
        let p = self.position(b, i);
        (p >= 0.0 && p.fract() == 0.0 && (p as usize) < self.dims.s).then_some(p as usize)
    }
}
