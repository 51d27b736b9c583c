//! Exact weights of selected heads and queries.

use super::engine::{BlockSource, Engine, KEYS, KeyBlock, Walk, with_engine};
use super::forward::{QueryBlock, SavedAttention};
use super::grid::Dims;
use super::normalize::Stats;
use super::rows::{pack, packed_len, padded};
use super::tile::{At, Tile, each_cell};
use super::{Attention, AttentionInputs};
use crate::pool::{checkpoint, parallel};
use crate::scratch::Scratch;
use crate::view::{Error, ViewMut, bail};

/// Selected rows of the score matrices.
#[derive(Clone, Copy, Debug, Default)]
pub struct Selection<'a> {
    /// Query heads; `None` for all.
    pub heads: Option<&'a [usize]>,
    /// Queries; `None` for all.
    pub rows: Option<&'a [usize]>,
}

impl Attention {
    /// Writes the weights `[B, selected heads, selected rows, S]`: exactly those by which the
    /// forward that returned `saved` multiplied the values.
    pub fn weights(
        &self,
        inputs: &AttentionInputs,
        saved: &SavedAttention,
        asked: Selection,
        out: &ViewMut,
    ) -> Result<(), Error> {
        let grid = self.check(inputs)?;
        let Dims { b, h, t, s, .. } = grid.dims;
        let heads = asked.heads.map_or_else(|| (0..h).collect(), <[usize]>::to_vec);
        let rows = asked.rows.map_or_else(|| (0..t).collect(), <[usize]>::to_vec);
        if let Some(bad) = heads.iter().find(|x| **x >= h) {
            bail!("heads: got {bad}, need below H = {h}");
        }
        if let Some(bad) = rows.iter().find(|x| **x >= t) {
            bail!("rows: got {bad}, need below T = {t}");
        }
        let need = [b, heads.len(), rows.len(), s];
        if out.shape != need {
            bail!("weights: got shape {:?}, need {need:?}", out.shape);
        }
        with_engine(self, &grid, inputs, KEYS, |engine| {
            let each = engine.block_queries();
            parallel(b * heads.len() * t.div_ceil(each), &|task| {
                let (head, qb) = (task / t.div_ceil(each), task % t.div_ceil(each));
                let (b, at_head) = (head / heads.len(), head % heads.len());
                let (i0, n) = (qb * each, each.min(t - qb * each));
                // The destination of each of the block's queries that is selected.
                let wanted: Vec<(usize, usize)> = rows
                    .iter()
                    .enumerate()
                    .filter(|(_, i)| (i0..i0 + n).contains(i))
                    .map(|(to, i)| (*i, to))
                    .collect();
                if wanted.is_empty() {
                    return;
                }
                for (_, to) in &wanted {
                    for j in 0..s {
                        // SAFETY: inside the shape; each task writes its own rows.
                        unsafe { *out.at(b, at_head, *to, j) = 0.0 };
                    }
                }
                let block = QueryBlock { b, h: heads[at_head], i0, n };
                walk_weights(engine, saved, block, &mut |at, tile| {
                    each_cell(at, tile, |p, i, j| {
                        for (_, to) in wanted.iter().filter(|(wanted, _)| *wanted == i) {
                            // SAFETY: inside the shape; each task writes its own rows.
                            unsafe { *out.at(b, at_head, *to, j) = *p };
                        }
                    });
                });
            });
        });
        Ok(())
    }
}

impl Attention {
    /// Returns the weights of a mask that lists the keys of each query, as graphs do: the lists of
    /// all queries concatenated, for each batch row and head. `None` if the mask has no lists.
    pub fn listed_weights(
        &self,
        inputs: &AttentionInputs,
        saved: &SavedAttention,
    ) -> Result<Option<Vec<f32>>, Error> {
        let grid = self.check(inputs)?;
        let Dims { b, h, t, .. } = grid.dims;
        Ok(with_engine(self, &grid, inputs, KEYS, |engine| {
            if engine.walk != Walk::Lists {
                return None;
            }
            let (each, mut all) = (engine.block_queries(), vec![]);
            for head in 0..b * h {
                let (b, h) = (head / h, head % h);
                for i0 in (0..t).step_by(each) {
                    let n = each.min(t - i0);
                    let block = QueryBlock { b, h, i0, n };
                    walk_weights(engine, saved, block, &mut |at, tile| {
                        for lane in 0..n {
                            let listed =
                                (0..tile.keys).take_while(|row| at.keys.key(*row, lane).is_some());
                            all.extend(listed.map(|row| tile.data[row * tile.lanes + lane]));
                        }
                    });
                }
            }
            Some(all)
        }))
    }
}

/// Calls `f` with the weights of each block that a block of queries visits.
pub(super) fn walk_weights(
    engine: &Engine,
    saved: &SavedAttention,
    block: QueryBlock,
    f: &mut dyn FnMut(&At, &mut Tile),
) {
    let QueryBlock { b, h, i0, n } = block;
    let lanes = padded(n);
    let row = (b * engine.grid.dims.h + h) * engine.grid.dims.t + i0;
    let kept = |all: &[f32]| {
        let mut lane = Scratch::zeroed(lanes);
        lane[..n].copy_from_slice(&all[row..row + n]);
        lane
    };
    let (shift, factor) = (kept(&saved.shift), kept(&saved.factor));
    let mut pick = vec![-1; lanes];
    if !saved.pick.is_empty() {
        pick[..n].copy_from_slice(&saved.pick[row..row + n]);
    }
    let stats = Stats { shift: &shift, factor: &factor, pick: &pick };
    let plan = engine.plan(b, h, i0..i0 + n);
    let mut source = engine.source(b, h, i0, std::ptr::null());
    let mut packed = Scratch::new(packed_len(lanes, source.queries.width));
    // SAFETY: the block's queries exist.
    unsafe { pack(source.queries, n, source.scale, &mut packed) };
    source.packed = packed.as_ptr();
    for KeyBlock { keys, cover } in &plan.blocks {
        checkpoint();
        let mut cells = Scratch::new(keys.len() * lanes);
        let mut tile = Tile { data: &mut cells, keys: keys.len(), lanes, queries: n, spans: None };
        let at = At { grid: engine.grid, b, h, i0, keys: plan.keys(keys, lanes) };
        let from = BlockSource { operands: &source, plan: &plan, cover: *cover };
        // SAFETY: the source is of this head, and the block's keys exist.
        unsafe { engine.scores(&at, from, &mut tile, None) };
        engine.spec.normalizer.weights(&at, &mut tile, stats);
        engine.after_weights(&at, &mut tile);
        f(&at, &mut tile);
    }
}
