//! Results of one recipe trained with several seeds.

use crate::evaluation::Metric;
use crate::metrics::Sample;
use serde::Serialize;

/// Results of one recipe with several seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Repeats {
    /// Name of the recipe.
    pub recipe: String,
    /// Seeds of the runs.
    pub seeds: Vec<u64>,
    /// Statistics of each metric over the seeds.
    pub marks: Vec<Repeated>,
}

/// Statistics of a metric over several seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Repeated {
    /// Name of the metric.
    pub name: &'static str,
    /// Unit of the metric, such as `% of tokens`.
    pub unit: &'static str,
    /// Arithmetic mean.
    pub mean: f64,
    /// Sample standard deviation (divisor n − 1).
    pub deviation: f64,
    /// Minimum.
    pub least: f64,
    /// Maximum.
    pub most: f64,
    /// Values in the order of the seeds.
    pub each: Vec<f64>,
}

impl Repeats {
    /// Summarises the metrics of each seed; all seeds have the same metrics.
    pub fn new(recipe: &str, found: &[(u64, Vec<Metric>)]) -> Repeats {
        let marks = found.first().map_or(&[][..], |(_, marks)| marks);
        let repeated = |(at, mark): (usize, &Metric)| {
            let each: Vec<f64> = found.iter().map(|(_, marks)| marks[at].value).collect();
            let Sample { mean, deviation, least, most, .. } = Sample::of(&each);
            Repeated { name: mark.name, unit: mark.unit, mean, deviation, least, most, each }
        };
        Repeats {
            recipe: recipe.to_string(),
            seeds: found.iter().map(|(seed, _)| *seed).collect(),
            marks: marks.iter().enumerate().map(repeated).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mark_is_put_together_over_the_seeds() {
        let marks = |value: f64| {
            let mark = |name, value| Metric { name, value, unit: "%" };
            vec![mark("accuracy", value), mark("loss", -value)]
        };
        let repeats = Repeats::new("mine", &[(3, marks(1.0)), (4, marks(4.0))]);
        assert_eq!((&repeats.recipe[..], &repeats.seeds[..]), ("mine", &[3, 4][..]));
        let [accuracy, loss] = &repeats.marks[..] else { panic!("two marks") };
        assert_eq!((accuracy.mean, accuracy.least, accuracy.most), (2.5, 1.0, 4.0));
        assert!((accuracy.deviation - 4.5f64.sqrt()).abs() < 1e-12);
        assert_eq!((loss.name, &loss.each[..]), ("loss", &[-1.0, -4.0][..]));
        assert!(Repeats::new("none", &[]).marks.is_empty());
    }
}
