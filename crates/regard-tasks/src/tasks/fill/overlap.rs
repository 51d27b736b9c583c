//! Baseline for next-sentence prediction: word overlap, since halves of one document share words.
//!
//! A model that uses more than shared words must beat this.

use super::evaluate::Row;
use std::collections::{HashMap, HashSet};

/// Classifier of pairs by the overlap of their tokens.
pub(super) struct Overlap {
    pub name: &'static str,
    /// Weight of each token.
    weights: HashMap<u32, f64>,
    /// Weight of a token that is not in `weights`.
    unseen: f64,
    /// Pairs with an overlap above this are predicted to follow each other.
    threshold: f64,
    /// Number of correct predictions on the pairs it was fitted to.
    right: usize,
}

impl Overlap {
    /// Fits both baselines: uniform weights, and higher weights for rare tokens.
    pub fn both(rows: &[Row]) -> Vec<Overlap> {
        if rows.is_empty() { vec![] } else { vec![Overlap::of(rows), Overlap::of_rare(rows)] }
    }

    /// Fits the threshold with uniform weights.
    fn of(rows: &[Row]) -> Overlap {
        Overlap::fitted("follows_by_overlap", HashMap::new(), 1.0, rows)
    }

    /// Fits the threshold with inverse document frequencies as weights.
    fn of_rare(rows: &[Row]) -> Overlap {
        let mut pairs_with: HashMap<u32, usize> = HashMap::new();
        for row in rows {
            let all: HashSet<u32> = row.halves().concat().into_iter().collect();
            all.into_iter().for_each(|id| *pairs_with.entry(id).or_default() += 1);
        }
        let rarity = |n: usize| (rows.len() as f64 / n as f64).ln();
        let weights = pairs_with.into_iter().map(|(id, n)| (id, rarity(n))).collect();
        Overlap::fitted("follows_by_rare_overlap", weights, rarity(1), rows)
    }

    fn fitted(
        name: &'static str,
        weights: HashMap<u32, f64>,
        unseen: f64,
        rows: &[Row],
    ) -> Overlap {
        let mut overlap = Overlap { name, weights, unseen, threshold: 0.0, right: 0 };
        let mut scored: Vec<(f64, bool)> =
            rows.iter().map(|row| (overlap.share(row), row.follows)).collect();
        scored.sort_by(|a, b| a.0.total_cmp(&b.0));
        // Threshold below all scores: every pair is predicted to follow.
        let mut right = scored.iter().filter(|(_, follows)| *follows).count();
        (overlap.threshold, overlap.right) = (f64::NEG_INFINITY, right);
        for (i, (share, follows)) in scored.iter().enumerate() {
            right = if *follows { right - 1 } else { right + 1 };
            let next = scored.get(i + 1).map_or(f64::INFINITY, |next| next.0);
            if right > overlap.right && next > *share {
                (overlap.threshold, overlap.right) = (*share, right);
            }
        }
        overlap
    }

    /// Returns the weighted overlap of both halves: intersection over union, 0 to 1.
    fn share(&self, row: &Row) -> f64 {
        let [first, second] = row.halves().map(|half| half.iter().copied().collect::<HashSet<_>>());
        let sum = |ids: &mut dyn Iterator<Item = &u32>| -> f64 {
            // Sorted, so that the rounding of the sum is deterministic.
            let mut ids: Vec<u32> = ids.copied().collect();
            ids.sort_unstable();
            ids.iter().map(|id| self.weights.get(id).copied().unwrap_or(self.unseen)).sum()
        };
        let (shared, all) = (sum(&mut first.intersection(&second)), sum(&mut first.union(&second)));
        if all > 0.0 { shared / all } else { 0.0 }
    }

    /// Returns the accuracy on pairs, in percent.
    pub fn accuracy(&self, rows: &[Row]) -> f64 {
        let right = |row: &&Row| (self.share(row) > self.threshold) == row.follows;
        100.0 * rows.iter().filter(right).count() as f64 / rows.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Half, SegmentPair};
    use super::*;

    fn row(first: &[u32], second: &[u32], follows: bool) -> Row {
        let half = |ids: &[u32]| Half { ids: ids.to_vec(), words: (0..ids.len() as u32).collect() };
        Row::new(SegmentPair { first: half(first), second: half(second), follows }, 1, 2)
    }

    #[test]
    fn words_that_are_shared_tell_pairs_apart() {
        // 10 is in all, and 11 to 14 only in halves that belong together.
        let rows = [
            row(&[10, 11, 20], &[10, 11, 30], true),
            row(&[10, 12, 21], &[10, 12, 31], true),
            row(&[10, 13], &[10, 32, 33, 13], true),
            row(&[10, 22, 23], &[10, 34, 35], false),
            row(&[10], &[10], false),
        ];
        let overlap = Overlap::of_rare(&rows);
        assert_eq!((overlap.right, overlap.accuracy(&rows)), (5, 100.0));
        // With uniform weights token 10 counts too, so the last pair has the largest overlap.
        assert_eq!(Overlap::of(&rows).right, 4);
        let others = [row(&[10, 11], &[10, 11], false), row(&[10, 14, 25], &[10, 14], true)];
        assert_eq!(overlap.accuracy(&others), 50.0);
    }

    #[test]
    fn where_nothing_is_to_be_told_all_are_said_alike() {
        let rows = [row(&[3], &[4], true), row(&[5], &[6], true), row(&[7], &[8], false)];
        assert_eq!(Overlap::of(&rows).right, 2);
        assert!(Overlap::both(&[]).is_empty());
    }
}
