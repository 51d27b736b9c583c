//! Axes: range and ticks.

/// Scale of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Linear, from 0 if no value is negative.
    #[default]
    Even,
    /// Logarithmic, with ticks at powers of ten, or of two if the values are. Values that are not
    /// positive are drawn at the lower end.
    Logarithmic,
}

/// An axis that covers given values.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    scale: Scale,
    /// Lower end; its logarithm on a logarithmic scale.
    low: f64,
    high: f64,
    /// Positions of the ticks, as `low` and `high`.
    numbers: Vec<f64>,
}

/// Approximate number of intervals between ticks.
const PARTS: u32 = 5;

impl Axis {
    /// Creates an axis from 0, or a round number below the least value, to one above the largest.
    pub fn around(scale: Scale, values: impl Iterator<Item = f64>) -> Axis {
        let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        match scale {
            Scale::Even => Axis::even(&values),
            Scale::Logarithmic => Axis::logarithmic(&values),
        }
    }

    fn logarithmic(values: &[f64]) -> Axis {
        let positive = || values.iter().copied().filter(|value| *value > 0.0);
        let least = positive().fold(f64::INFINITY, f64::min);
        let largest = positive().fold(f64::NEG_INFINITY, f64::max);
        let (least, largest) = match least.is_finite() {
            // A single value still needs an axis.
            true if largest / least < 1.0 + 1e-9 => (least / 10.0, least * 10.0),
            true => (least, largest),
            false => (1.0, 10.0),
        };
        let doublings = (largest / least).log2();
        let decades = (largest / least).log10();
        let of = |numbers: Vec<f64>| {
            let logs: Vec<f64> = numbers.iter().map(|number| number.log10()).collect();
            // Values may end between two ticks.
            let low = logs.first().copied().unwrap_or(0.0).min(least.log10());
            let high = logs.last().copied().unwrap_or(1.0).max(largest.log10());
            Axis { scale: Scale::Logarithmic, low, high, numbers: logs }
        };
        let is_doubled = (doublings - doublings.round()).abs() < 1e-9 && doublings < 13.0;
        if is_doubled {
            let step = (doublings.round() as u32).div_ceil(PARTS + 1).max(1);
            let steps = (0..=doublings.round() as u32).step_by(step as usize);
            return of(steps.map(|step| least * 2f64.powi(step as i32)).collect());
        }
        if decades > 2.0 {
            let (low, high) = (least.log10().floor() as i32, largest.log10().ceil() as i32);
            let step = ((high - low) as u32).div_ceil(PARTS) as usize;
            let mut axis = of((low..=high).step_by(step).map(|power| 10f64.powi(power)).collect());
            axis.high = f64::from(high);
            return axis;
        }
        let first = least.log10().floor() as i32;
        let round: Vec<f64> = (first..=first + 3)
            .flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power)))
            .collect();
        let from = round.iter().rposition(|number| *number <= least * (1.0 + 1e-9)).unwrap_or(0);
        let to = round.iter().position(|number| *number >= largest * (1.0 - 1e-9));
        of(round[from..=to.unwrap_or(round.len() - 1)].to_vec())
    }

    fn even(values: &[f64]) -> Axis {
        let largest = values.iter().copied().fold(0.0, f64::max);
        let least = values.iter().copied().fold(0.0, f64::min);
        let scale = Scale::Even;
        let (low, high, parts) = if least >= 0.0 {
            (0.0, step_above(largest), PARTS)
        } else {
            let step = step_above((largest - least) / f64::from(PARTS));
            let (from, to) = ((least / step).floor(), (largest / step).ceil());
            (from * step, to * step, (to - from) as u32)
        };
        let at = |part: u32| low + f64::from(part) / f64::from(parts) * (high - low);
        Axis { scale, low, high, numbers: (0..=parts).map(at).collect() }
    }

    /// Position of a value, from 0 to 1; None for NaN.
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

    /// Ticks: position from 0 to 1, and text.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        let tick = |at: &f64| {
            let value = if self.scale == Scale::Even { *at } else { 10f64.powf(*at) };
            ((at - self.low) / (self.high - self.low), number(value))
        };
        self.numbers.iter().map(tick).collect()
    }
}

/// Returns a round number at or above a value.
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
        assert_eq!((axis.low, axis.high, axis.numbers.len()), (-1.0, 3.0, 5));
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
        let numbers = |values: &[f64]| -> Vec<String> {
            let axis = Axis::around(Scale::Logarithmic, values.iter().copied());
            let places: Vec<f64> = axis.ticks().into_iter().map(|tick| tick.0).collect();
            assert!(places.iter().all(|place| (0.0..=1.0).contains(place)), "{places:?}");
            axis.ticks().into_iter().map(|tick| tick.1).collect()
        };
        // Lengths that were doubled, and times that are anything.
        assert_eq!(numbers(&[512.0, 2048.0, 8192.0]), ["512", "1024", "2048", "4096", "8192"]);
        assert_eq!(numbers(&[2.169, 10.777]), ["2", "5", "10", "20"]);
        assert_eq!(numbers(&[3.0]), ["0.2", "0.5", "1", "2", "5", "10", "20", "50"]);
        assert_eq!(numbers(&[]), ["1", "2", "5", "10"]);
    }
}
