//! McNemar's exact test of two classifiers on the same examples.

/// Two-sided p-value of the hypothesis that both are equally good, from the numbers of examples that
/// only the first, and only the second, classifies right: of a fair coin that is tossed as often as
/// exactly one is right. (McNemar 1947; the exact form needs no minimum of examples.)
pub fn p_value(first: u64, second: u64) -> f64 {
    let (tosses, fewer) = (first + second, first.min(second));
    if tosses == 0 {
        return 1.0;
    }
    // Logarithms, because 2^-n is 0 beyond 1074 tosses.
    let half = tosses as f64 * 0.5f64.ln();
    let mut log = 0.0;
    let mut tail = half.exp();
    for k in 1..=fewer {
        log += ((tosses - k + 1) as f64).ln() - (k as f64).ln();
        tail += (log + half).exp();
    }
    (2.0 * tail).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::p_value;

    #[test]
    fn as_by_exact_integers() {
        // 2 · Σ_{k ≤ min} C(n, k) / 2^n in Python's integers.
        for (first, second, wanted) in [
            (0, 0, 1.0),
            (1, 0, 1.0),
            (5, 5, 1.0),
            (0, 6, 0.03125),
            (8, 2, 0.109375),
            (3, 15, 0.007537841796875),
            (40, 62, 0.037067),
        ] {
            let found = p_value(first, second);
            assert!((found - wanted).abs() < 1e-5, "{first} {second}: {found}");
            assert_eq!(found, p_value(second, first));
        }
        let many = p_value(20_000, 20_500);
        assert!((0.01..0.02).contains(&many), "{many}");
    }
}
