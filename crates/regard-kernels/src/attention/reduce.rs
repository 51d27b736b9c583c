//! Summary statistics of the weights, without materialising them.

use super::engine::{KEYS, with_engine};
use super::forward::{QueryBlock, SavedAttention};
use super::grid::Dims;
use super::tile::each_cell;
use super::weights::walk_weights;
use super::{Attention, AttentionInputs};
use crate::memory::{filled, zeros};
use crate::pool::{Parts, checkpoint, parallel};
use crate::view::Error;

/// Summary of the weights of each query and key.
#[derive(Clone, Debug, Default)]
pub struct WeightSummary {
    /// The `k` keys with the largest weights, `[B, H, T, k]`, in descending order, −1 where there
    /// are fewer.
    pub top_keys: Vec<i32>,
    /// Weights of these keys, `[B, H, T, k]`.
    pub top_weights: Vec<f32>,
    /// Entropy `−Σ p ln p`, `[B, H, T]`.
    pub entropy: Vec<f32>,
    /// Sum of the weights of each key over the queries, `[B, H, S]`.
    pub column_mass: Vec<f32>,
}

impl Attention {
    /// Summarises the weights of the forward that returned `saved`. Among equal weights, the lowest
    /// key comes first in `top_keys`.
    pub fn summarize(
        &self,
        inputs: &AttentionInputs,
        saved: &SavedAttention,
        k: usize,
    ) -> Result<WeightSummary, Error> {
        let grid = self.check(inputs)?;
        let Dims { b, h, t, s, .. } = grid.dims;
        let rows = b * h * t;
        let mut summary = WeightSummary {
            top_keys: filled(-1, &[rows, k]),
            top_weights: zeros(&[rows, k]),
            entropy: zeros(&[rows]),
            column_mass: zeros(&[b, h, s]),
        };
        let keys = Parts::new(&mut summary.top_keys);
        let weights = Parts::new(&mut summary.top_weights);
        let entropy = Parts::new(&mut summary.entropy);
        let mass = Parts::new(&mut summary.column_mass);
        with_engine(self, &grid, inputs, KEYS, |engine| {
            let each = engine.block_queries();
            // A head is one task, because all of its queries add to the same columns.
            parallel(b * h, &|head| {
                let (from, len) = (head * t, t * k);
                // SAFETY: each task writes its own head's parts.
                let (keys, weights, entropy, mass) = unsafe {
                    let top = (keys.part(from * k, len), weights.part(from * k, len));
                    (top.0, top.1, entropy.part(from, t), mass.part(head * s, s))
                };
                for i0 in (0..t).step_by(each) {
                    let block = QueryBlock { b: head / h, h: head % h, i0, n: each.min(t - i0) };
                    walk_weights(engine, saved, block, &mut |at, tile| {
                        each_cell(at, tile, |p, i, j| {
                            // Insertion is linear in `k`, and a block has thousands of cells.
                            if k > 1024 {
                                checkpoint();
                            }
                            mass[j] += *p;
                            if *p > 0.0 {
                                entropy[i] -= *p * p.ln();
                                let row = i * k..(i + 1) * k;
                                insert(&mut keys[row.clone()], &mut weights[row], j as i32, *p);
                            }
                        });
                    });
                }
            });
        });
        Ok(summary)
    }
}

/// Inserts a weight in descending order. Keys come in ascending order, so equal ones stay behind.
fn insert(keys: &mut [i32], weights: &mut [f32], key: i32, weight: f32) {
    let Some(mut at) = weights.iter().position(|w| weight > *w) else { return };
    if keys[at] == -1 {
        at = keys.iter().position(|k| *k == -1).unwrap_or(at).min(at);
    }
    keys[at..].rotate_right(1);
    weights[at..].rotate_right(1);
    keys[at] = key;
    weights[at] = weight;
}
