//! Pearson's correlation, and Spearman's, which is that of the ranks. Word vectors are evaluated
//! by the latter, against human similarity scores.

/// Pairs of numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Correlation {
    pairs: Vec<(f64, f64)>,
}

impl Correlation {
    /// Creates an empty list of pairs.
    pub fn new() -> Correlation {
        Correlation::default()
    }

    /// Adds a pair.
    pub fn add(&mut self, x: f64, y: f64) {
        self.pairs.push((x, y));
    }

    /// Adds the pairs of another list.
    pub fn merge(&mut self, other: &Correlation) {
        self.pairs.extend_from_slice(&other.pairs);
    }

    /// Returns the number of pairs.
    pub fn count(&self) -> usize {
        self.pairs.len()
    }

    /// Computes Pearson's correlation: 1 if one side is an increasing linear function of the other,
    /// −1 if a decreasing one. `None` if undefined: fewer than two pairs, a constant side, an
    /// infinite value or NaN.
    pub fn pearson(&self) -> Option<f64> {
        let (xs, ys) = self.sides();
        pearson(&xs, &ys)
    }

    /// Computes Spearman's correlation: 1 if one side increases monotonically with the other. Equal
    /// values share the mean of their ranks. `None` if undefined: fewer than two pairs, a constant
    /// side or NaN.
    pub fn spearman(&self) -> Option<f64> {
        let (xs, ys) = self.sides();
        if xs.iter().chain(&ys).any(|x| x.is_nan()) {
            return None;
        }
        pearson(&ranks(&xs), &ranks(&ys))
    }

    fn sides(&self) -> (Vec<f64>, Vec<f64>) {
        self.pairs.iter().copied().unzip()
    }
}

fn pearson(xs: &[f64], ys: &[f64]) -> Option<f64> {
    let varies = |all: &[f64]| all.iter().any(|x| *x != all[0]);
    if !varies(xs) || !varies(ys) {
        return None;
    }
    let (xs, ys) = (from_mean(xs), from_mean(ys));
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let r = dot(&xs, &ys) / (dot(&xs, &xs) * dot(&ys, &ys)).sqrt();
    // Rounding may exceed the range slightly.
    r.is_finite().then_some(r.clamp(-1.0, 1.0))
}

/// Subtracts the mean and scales the largest absolute value to 1, so that no square overflows or
/// underflows.
fn from_mean(all: &[f64]) -> Vec<f64> {
    let mean = all.iter().map(|x| x / all.len() as f64).sum::<f64>();
    let most = all.iter().map(|x| (x - mean).abs()).fold(0.0, f64::max);
    all.iter().map(|x| (x - mean) / most).collect()
}

/// Returns the rank of each value from 1; equal values have the mean of their ranks.
fn ranks(all: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|&i, &j| all[i].total_cmp(&all[j]));
    let mut ranks = vec![0.0; all.len()];
    let mut first = 0;
    // 0 and −0 are equal here, and adjacent in the order.
    for tied in order.chunk_by(|&i, &j| all[i] == all[j]) {
        let rank = first as f64 + (tied.len() + 1) as f64 / 2.0;
        tied.iter().for_each(|&i| ranks[i] = rank);
        first += tied.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(f64, f64)]) -> Correlation {
        Correlation { pairs: pairs.to_vec() }
    }

    #[test]
    fn lines_and_curves() {
        let line = of(&[(1.0, 3.0), (2.0, 5.0), (4.0, 9.0)]);
        assert!((line.pearson().unwrap() - 1.0).abs() < 1e-15);
        let curve = of(&[(1.0, -1.0), (2.0, -100.0), (3.0, -101.0)]);
        assert_eq!(curve.spearman(), Some(-1.0));
        assert!(curve.pearson().unwrap() > -0.95);
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 0.0, -0.0]), [4.5, 3.0, 4.5, 1.5, 1.5]);
    }

    #[test]
    fn huge_and_tiny_numbers_are_numbers() {
        for scale in [1e-200, 1e200] {
            let pairs = of(&[(scale, 1.0), (2.0 * scale, 2.0), (3.0 * scale, 1.0)]);
            assert!(pairs.pearson().unwrap().abs() < 1e-12, "{scale}");
        }
    }

    #[test]
    fn what_has_no_meaning() {
        for pairs in
            [&[][..], &[(1.0, 2.0)], &[(1.0, 2.0), (1.0, 3.0)], &[(1.0, f64::NAN), (2.0, 1.0)]]
        {
            assert_eq!((of(pairs).pearson(), of(pairs).spearman()), (None, None), "{pairs:?}");
        }
        assert_eq!(of(&[(f64::INFINITY, 1.0), (2.0, 3.0)]).pearson(), None);
        assert_eq!(of(&[(f64::INFINITY, 1.0), (2.0, 3.0)]).spearman(), Some(-1.0));
    }

    #[test]
    fn parts_make_the_whole() {
        let pairs = [(1.0, 2.0), (3.0, 1.0), (2.0, 4.0)];
        let mut merged = of(&pairs[..1]);
        merged.merge(&of(&pairs[1..]));
        assert_eq!((merged.count(), merged), (3, of(&pairs)));
    }
}
