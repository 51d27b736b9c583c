//! The score matrix as seen by masks and biases: its size and where each query stands.

use crate::view::{Error, bail};

/// Where queries stand among the keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Positions {
    /// Query `i` at `i + S − T`: the last query at the last key.
    #[default]
    End,
    /// Query `i` of batch row `b` at `i + offset[b]`: caches of different lengths.
    Offsets(Vec<i64>),
    /// Query `i` of batch row `b` at `centres[b·T + i]`, which may be between keys.
    Centres(Vec<f32>),
}

/// The sizes of one attention, by the letters that all documentation uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dims {
    /// Batch rows.
    pub b: usize,
    /// Query heads.
    pub h: usize,
    /// Key heads, a divisor of the query heads.
    pub hk: usize,
    /// Queries.
    pub t: usize,
    /// Keys.
    pub s: usize,
    /// Width of a query.
    pub d: usize,
    /// Width of a key; differs from `d` only under the general score.
    pub dk: usize,
    /// Width of a value.
    pub e: usize,
}

impl Dims {
    /// Query heads that share a key head.
    pub fn group(&self) -> usize {
        self.h / self.hk
    }
}

/// Positions are `f32`, in which whole numbers are exact up to here.
const FARTHEST: f32 = 16_777_216.0;

/// The score matrices of one call: sizes and positions.
#[derive(Clone, Debug)]
pub struct Grid {
    /// The sizes.
    pub dims: Dims,
    positions: Positions,
}

impl Grid {
    /// Checks that positions fit the sizes.
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

    /// The position of query `i` of batch row `b`.
    #[inline]
    pub fn position(&self, b: usize, i: usize) -> f32 {
        match &self.positions {
            Positions::End => (i as i64 + self.dims.s as i64 - self.dims.t as i64) as f32,
            Positions::Offsets(offsets) => (i as i64 + offsets[b]) as f32,
            Positions::Centres(centres) => centres[b * self.dims.t + i],
        }
    }

    /// The number of a cell `[b, h, i, j]`, counted through all score matrices.
    pub(crate) fn cell(&self, [b, h, i, j]: [usize; 4]) -> u64 {
        let row = (b * self.dims.h + h) * self.dims.t + i;
        row as u64 * self.dims.s as u64 + j as u64
    }

    /// The key at which query `i` stands, if its position is one.
    #[inline]
    pub fn key_at(&self, b: usize, i: usize) -> Option<usize> {
        let p = self.position(b, i);
        (p >= 0.0 && p.fract() == 0.0 && (p as usize) < self.dims.s).then_some(p as usize)
    }
}
