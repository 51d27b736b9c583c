//! Shared by the operations' tests: random inputs, and numerical derivatives.

use crate::rng::Stream;

/// Uniform values in −1..1.
pub(crate) fn random(site: u64, n: usize) -> Vec<f32> {
    let stream = Stream::new(11, 0, site);
    (0..n).map(|i| stream.uniform(i as u64) * 2.0 - 1.0).collect()
}

/// An upstream gradient.
pub(crate) fn wave(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i as f32 * 0.7).sin() + 0.2).collect()
}

/// `Σ dy·f(x)` by central differences for every element of `x`.
pub(crate) fn numeric(x: &[f64], dy: &[f32], f: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    let value = |x: &[f64]| -> f64 {
        let y = f(x);
        assert_eq!(y.len(), dy.len());
        y.iter().zip(dy).map(|(y, d)| y * f64::from(*d)).sum()
    };
    let mut x = x.to_vec();
    (0..x.len())
        .map(|i| {
            let (at, h) = (x[i], 1e-5);
            x[i] = at + h;
            let above = value(&x);
            x[i] = at - h;
            let below = value(&x);
            x[i] = at;
            (above - below) / (2.0 * h)
        })
        .collect()
}

/// Asserts that values agree to within `limit`, absolute up to 1 and relative beyond.
pub(crate) fn close(case: &str, got: &[f32], want: &[f64], limit: f64) {
    assert_eq!(got.len(), want.len(), "{case}");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        let error = (f64::from(*got) - want).abs() / want.abs().max(1.0);
        assert!(error < limit, "{case}: at {i} got {got}, want {want}");
    }
}

/// Converts to double precision.
pub(crate) fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|x| f64::from(*x)).collect()
}
