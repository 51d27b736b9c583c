//! Metrics of rankings: reciprocal rank and discounted cumulative gain.

/// Metrics of rankings, each a mean over queries.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ranking {
    /// Mean reciprocal rank of the first relevant text (MRR), among the first ten.
    pub mrr: f64,
    /// Normalised discounted cumulative gain of the first ten (NDCG@10), with gains `2^label − 1`.
    pub ndcg: f64,
    /// Fraction of queries whose first text is relevant.
    pub first: f64,
    /// Number of queries with at least one relevant text; the others are ignored.
    pub queries: usize,
}

/// Number of ranks that count.
const CUT: usize = 10;

impl Ranking {
    /// Computes the metrics of queries, each given by the scores and the relevance of its texts.
    /// Texts with equal scores are ordered by the worst case, so that a constant score does not
    /// look good.
    pub fn new<'a>(queries: impl IntoIterator<Item = (&'a [f64], &'a [f64])>) -> Ranking {
        let mut all = Ranking::default();
        for (scores, relevance) in queries {
            if relevance.iter().all(|relevance| *relevance <= 0.0) {
                continue;
            }
            let mut order: Vec<usize> = (0..scores.len().min(relevance.len())).collect();
            order.sort_by(|a, b| {
                scores[*b].total_cmp(&scores[*a]).then(relevance[*a].total_cmp(&relevance[*b]))
            });
            let first = order.iter().take(CUT).position(|at| relevance[*at] > 0.0);
            all.mrr += first.map_or(0.0, |rank| 1.0 / (rank + 1) as f64);
            all.first += f64::from(u8::from(first == Some(0)));
            let mut best = relevance.to_vec();
            best.sort_by(|a, b| b.total_cmp(a));
            let got = gain(order.iter().map(|at| relevance[*at]));
            all.ndcg += got / gain(best.into_iter());
            all.queries += 1;
        }
        let count = all.queries.max(1) as f64;
        Ranking { mrr: all.mrr / count, ndcg: all.ndcg / count, first: all.first / count, ..all }
    }
}

/// Computes the discounted cumulative gain of the first [`CUT`] texts.
fn gain(relevance: impl Iterator<Item = f64>) -> f64 {
    let each = relevance.take(CUT).enumerate();
    each.map(|(rank, relevance)| (relevance.exp2() - 1.0) / ((rank + 2) as f64).log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_perfect_ranking_is_one() {
        let one = Ranking::new([(&[0.9, 0.5, 0.1][..], &[1.0, 0.0, 0.0][..])]);
        assert_eq!((one.mrr, one.ndcg, one.first, one.queries), (1.0, 1.0, 1.0, 1));
    }

    #[test]
    fn ranks_and_gains_are_those_of_their_definitions() {
        // The relevant text is third: 1/3, and 1/log2(4).
        let third = Ranking::new([(&[0.9, 0.5, 0.1][..], &[0.0, 0.0, 1.0][..])]);
        assert!((third.mrr - 1.0 / 3.0).abs() < 1e-12 && (third.ndcg - 0.5).abs() < 1e-12);
        // Graded: gains 3, 0, 1 against 3, 1, 0.
        let graded = Ranking::new([(&[0.9, 0.5, 0.1][..], &[2.0, 0.0, 1.0][..])]);
        let wanted = (3.0 + 1.0 / 2.0) / (3.0 + 1.0 / 3f64.log2());
        assert!((graded.ndcg - wanted).abs() < 1e-12, "{graded:?}");
        // Ranks beyond the tenth do not count.
        let scores: Vec<f64> = (0..12).map(|i| -f64::from(i)).collect();
        let mut last = [0.0; 12];
        last[11] = 1.0;
        assert_eq!(Ranking::new([(&scores[..], &last[..])]).mrr, 0.0);
    }

    #[test]
    fn equal_scores_are_the_worst_case_and_queries_without_relevant_texts_do_not_count() {
        let same = Ranking::new([(&[0.5, 0.5][..], &[1.0, 0.0][..])]);
        assert_eq!((same.mrr, same.first), (0.5, 0.0));
        let none = Ranking::new([(&[0.5, 0.4][..], &[0.0, 0.0][..])]);
        assert_eq!(none, Ranking::default());
    }
}
