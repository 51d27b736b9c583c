//! Positions of the query stream.

use super::permuted::Permuted;
use crate::seq2seq::index;
use burn::tensor::{Device, Int, Tensor};
use regard_attention::Attention;

/// Queries of the targets, sorted by position within a row of texts. Rows are padded to the longest
/// with queries whose results are ignored.
pub(super) struct Questions {
    /// `[B·Q]`: position of each query in its row.
    places: Vec<usize>,
    /// `[B·Q]`: target of each query; the number of targets for padding.
    targets: Tensor<1, Int>,
    /// `[targets]`: query of each target.
    of_targets: Tensor<1, Int>,
    /// Whether the queries are the targets in their given order.
    same: bool,
    /// `[B, Q]`
    shape: [usize; 2],
    /// Number of tokens of a row of texts.
    wide: usize,
}

impl Questions {
    pub fn new(batch: &Permuted, device: &Device) -> Questions {
        let ([b, t], told) = (batch.texts.shape(), batch.targets.len());
        let mut rows = vec![vec![]; b];
        batch.targets.iter().enumerate().for_each(|(target, at)| rows[at / t].push(target));
        rows.iter_mut().for_each(|row| row.sort_by_key(|target| batch.targets[*target]));
        let q = rows.iter().map(Vec::len).max().unwrap_or(0);
        let (mut places, mut targets, mut of_targets) = (vec![], vec![], vec![0; told]);
        for i in 0..b * q {
            let target = rows[i / q].get(i % q);
            places.push(target.map_or(0, |target| batch.targets[*target] % t));
            targets.push(target.copied().unwrap_or(told));
            if let Some(target) = target {
                of_targets[*target] = i;
            }
        }
        Questions {
            places,
            same: targets.iter().copied().eq(0..told),
            targets: index(&targets, device),
            of_targets: index(&of_targets, device),
            shape: [b, q],
            wide: t,
        }
    }

    /// Token of each query, as an index over all texts.
    pub fn tokens(&self) -> Vec<usize> {
        let rows = self.places.chunks(self.shape[1]).enumerate();
        rows.flat_map(|(b, row)| row.iter().map(move |place| b * self.wide + place)).collect()
    }

    /// Returns the attention for queries at these positions, after a memory.
    pub fn attention(&self, score: Attention, memory: usize) -> Attention {
        let places: Vec<usize> = self.places.iter().map(|place| memory + place).collect();
        score.among_last(self.wide, &places)
    }

    /// Arranges the vectors of targets as rows of queries.
    ///
    /// # Shapes
    /// `[1, targets, M]` → `[B, Q, M]`
    pub fn ask(&self, queries: Tensor<3>) -> Tensor<3> {
        let ([_, told, m], [b, q]) = (queries.dims(), self.shape);
        if self.same {
            return queries.reshape([b, q, m]);
        }
        let nobody = Tensor::zeros([1, m], &queries.device());
        let all = Tensor::cat(vec![queries.reshape([told, m]), nobody], 0);
        all.select(0, self.targets.clone()).reshape([b, q, m])
    }

    /// Arranges the results of queries as rows of targets.
    ///
    /// # Shapes
    /// `[B, Q, M]` → `[1, targets, M]`
    pub fn answers(&self, seen: Tensor<3>) -> Tensor<3> {
        let [b, q, m] = seen.dims();
        let all = seen.reshape([b * q, m]);
        let told = if self.same { all } else { all.select(0, self.of_targets.clone()) };
        told.unsqueeze()
    }
}
