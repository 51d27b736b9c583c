//! Summary statistics of repeated measurements.

/// Summary statistics of measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Arithmetic mean.
    pub mean: f64,
    /// Sample standard deviation, with divisor n − 1; 0 for one measurement.
    pub deviation: f64,
    /// Median; the mean of the two in the middle for an even count.
    pub median: f64,
    /// Minimum.
    pub least: f64,
    /// Maximum.
    pub most: f64,
}

impl Sample {
    /// Computes the statistics of `all`.
    ///
    /// # Panics
    /// If `all` is empty.
    pub fn of(all: &[f64]) -> Sample {
        assert!(!all.is_empty(), "a sample needs a measurement, got none");
        let count = all.len() as f64;
        let mean = all.iter().sum::<f64>() / count;
        let squares: f64 = all.iter().map(|x| (x - mean) * (x - mean)).sum();
        let mut sorted = all.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (middle, last) = (sorted.len() / 2, sorted.len() - 1);
        Sample {
            mean,
            deviation: (squares / (count - 1.0).max(1.0)).sqrt(),
            median: (sorted[last / 2] + sorted[middle]) / 2.0,
            least: sorted[0],
            most: sorted[last],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_numbers_say_it() {
        let even = Sample::of(&[4.0, 1.0, 2.0, 9.0]);
        assert_eq!((even.mean, even.median, even.least, even.most), (4.0, 3.0, 1.0, 9.0));
        assert!((even.deviation - (38f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(Sample::of(&[3.0, 1.0, 2.0]).median, 2.0);
        let one = Sample::of(&[5.0]);
        assert_eq!((one.mean, one.deviation, one.median), (5.0, 0.0, 5.0));
    }
}
