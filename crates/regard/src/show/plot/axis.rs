//! An axis: from where to where, and where its numbers stand.

/// How an axis is divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Evenly, from 0 if nothing is below it.
    #[default]
    Even,
    /// By powers of ten, or of two where that is what was measured. What is not positive stands at
    /// the lower end.
    Logarithmic,
}

/// An axis that holds all of some values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    scale: Scale,
    /// Ends, as logarithms on a logarithmic scale.
    low: f64,
    high: f64,
    /// Parts between numbers.
    parts: u32,
}

/// Parts of an even axis.
const PARTS: u32 = 5;

impl Axis {
    /// From 0, or the round number below the least, to the round number above the largest.
    pub fn around(scale: Scale, values: impl Iterator<Item = f64>) -> Axis {
        let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        let (low, high) = match scale {
            Scale::Even => return Axis::even(&values),
            Scale::Logarithmic => {
                let logs = || values.iter().filter(|value| **value > 0.0).map(|v| v.log10());
                (logs().fold(f64::INFINITY, f64::min), logs().fold(f64::NEG_INFINITY, f64::max))
            }
        };
        let (low, high) = match low.is_finite() {
            // A single value still needs an axis.
            true if high - low < 1e-9 => (low - 1.0, low + 1.0),
            true if high - low > 2.0 => (low.floor(), high.ceil()),
            true => (low, high),
            false => (0.0, 1.0),
        };
        // Every power of ten, or as many of them as there is room for.
        let whole =
            |n: &u32| (high - low).fract() == 0.0 && ((high - low) as u32).is_multiple_of(*n);
        let parts = (1..=PARTS).rev().find(whole).unwrap_or(PARTS);
        Axis { scale, low, high, parts }
    }

    fn even(values: &[f64]) -> Axis {
        let largest = values.iter().copied().fold(0.0, f64::max);
        let least = values.iter().copied().fold(0.0, f64::min);
        let scale = Scale::Even;
        if least >= 0.0 {
            return Axis { scale, low: 0.0, high: step_above(largest), parts: PARTS };
        }
        let step = step_above((largest - least) / f64::from(PARTS));
        let (from, to) = ((least / step).floor(), (largest / step).ceil());
        Axis { scale, low: from * step, high: to * step, parts: (to - from) as u32 }
    }

    /// Where a value stands, from 0 to 1. None for what is no number.
    pub fn place(&self, value: f64) -> Option<f64> {
        let at = match self.scale {
            Scale::Even => value,
            Scale::Logarithmic if value > 0.0 => value.log10(),
            Scale::Logarithmic if value.is_nan() => f64::NAN,
            Scale::Logarithmic => self.low,
        };
        let place = (at - self.low) / (self.high - self.low);
        place.is_finite().then_some(place.clamp(0.0, 1.0))
    }

    /// Values with the places where they are written.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        let (ends, count) = (self.high - self.low, self.parts);
        let tick = |i: u32| {
            let place = f64::from(i) / f64::from(count);
            let at = self.low + place * ends;
            let value = if self.scale == Scale::Even { at } else { 10f64.powf(at) };
            (place, number(value))
        };
        (0..=count).map(tick).collect()
    }
}

/// A round number at or above a value.
fn step_above(value: f64) -> f64 {
    if !(value.is_finite() && value > 0.0) {
        return 1.0;
    }
    let unit = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 2.5, 5.0, 10.0].iter().map(|n| n * unit).find(|n| *n >= value).unwrap_or(value)
}

fn number(value: f64) -> String {
    if value != 0.0 && !(1e-3..1e6).contains(&value.abs()) {
        return format!("{value:.0e}");
    }
    if value.abs() >= 100.0 {
        return format!("{value:.0}");
    }
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        for (value, end) in [(0.0, 1.0), (0.7, 1.0), (1.2, 2.0), (23.0, 25.0), (44.0, 50.0)] {
            assert!((step_above(value) - end).abs() < 1e-9, "{value}: {}", step_above(value));
        }
        let axis = Axis::around(Scale::Even, [-0.3, 3.0, f64::NAN].into_iter());
        assert_eq!((axis.low, axis.high, axis.parts), (-1.0, 3.0, 4));
        assert_eq!(axis.place(f64::NAN), None);
    }

    #[test]
    fn numbers_keep_their_zeros() {
        let rows = [(0.0, "0"), (100.0, "100"), (2.5, "2.5"), (-10.0, "-10"), (675.6, "676")];
        for (value, text) in rows {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn powers_of_ten_are_evenly_apart() {
        let axis = Axis::around(Scale::Logarithmic, [2e-6, 0.5].into_iter());
        let ticks: Vec<String> = axis.ticks().into_iter().map(|tick| tick.1).collect();
        assert_eq!(ticks, ["1e-6", "1e-4", "0.01", "1"]);
        assert!((axis.place(1e-3).unwrap() - 0.5).abs() < 1e-9);
        assert_eq!(axis.place(0.0), Some(0.0));
    }
}
