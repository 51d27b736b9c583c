//! Sets of points as inputs of a pointer network, and masks for training.

use super::{Config, SelectionRule};
use burn::tensor::{Device, Int, Tensor, TensorData};
use regard_attention::mask::{Mask, dense_per_row};

/// Index of the marker, which is the start of an answer as an input and its end as an output.
/// Points have the indices from 1.
pub const MARKER: u32 = 0;

/// Sets of points of any sizes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Points {
    /// Coordinates of all points, set by set.
    numbers: Vec<f32>,
    /// Number of points of each set.
    counts: Vec<usize>,
    /// Coordinates of a point.
    width: usize,
}

impl Points {
    /// Creates an empty list of sets, whose points have `width` coordinates.
    pub fn new(width: usize) -> Points {
        assert!(width > 0, "a point has at least one coordinate");
        Points { numbers: vec![], counts: vec![], width }
    }

    /// Adds a set, given by the coordinates of its points in sequence.
    ///
    /// # Panics
    /// If there is no point, or the number of coordinates is not a multiple of the width.
    pub fn push(&mut self, numbers: &[f32]) {
        let (got, width) = (numbers.len(), self.width);
        assert!(got > 0 && got.is_multiple_of(width), "got {got} values of points of {width}");
        self.numbers.extend_from_slice(numbers);
        self.counts.push(got / width);
    }

    /// Number of sets.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether there are no sets.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Number of points of each set.
    pub fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// Number of points of the largest set.
    pub fn most(&self) -> usize {
        self.counts.iter().copied().max().unwrap_or(0)
    }

    /// Number of rows of each set: the marker and the points.
    pub(super) fn lengths(&self) -> Vec<i64> {
        self.counts.iter().map(|n| *n as i64 + 1).collect()
    }

    /// Features of each point, zeros for padding: `[B, most, features]`. A coordinate in the unit
    /// interval is encoded by its value and, in octaves, by a sine and a cosine, so that small
    /// differences are visible.
    pub(super) fn features(&self, config: &Config, device: &Device) -> Tensor<3> {
        assert_eq!(self.width, config.input_size, "coordinates of a point");
        let (most, wide) = (self.most(), config.features());
        let mut all = vec![0.0; self.len() * most * wide];
        let mut points = self.numbers.chunks_exact(self.width);
        for (set, count) in self.counts.iter().enumerate() {
            for place in 0..*count {
                let to = &mut all[(set * most + place) * wide..][..wide];
                let point = points.next().expect("a set has as many points as it was given");
                let mut to = to.iter_mut();
                for x in point {
                    *to.next().expect("room for the number") = (x - 0.5) * 2.0;
                    for octave in 0..config.waves {
                        let angle = x * std::f32::consts::PI * (1u32 << octave) as f32;
                        for wave in [angle.sin(), angle.cos()] {
                            *to.next().expect("room for the waves") = wave;
                        }
                    }
                }
            }
        }
        Tensor::from_data(TensorData::new(all, [self.len(), most, wide]), device)
    }
}

/// `[R, T]`: row indices into the concatenated markers and points of all sets, `s` rows each.
pub(super) fn rows(
    places: impl Iterator<Item = (usize, u32)>,
    s: usize,
    shape: [usize; 2],
    device: &Device,
) -> Tensor<2, Int> {
    let all: Vec<i64> = places.map(|(set, at)| (set * s) as i64 + i64::from(at)).collect();
    Tensor::from_data(TensorData::new(all, shape), device)
}

/// Points selected so far, and those that may be next.
#[derive(Clone, Debug)]
pub(super) struct Walked {
    /// Whether each point was selected.
    seen: Vec<bool>,
    left: usize,
    choice: SelectionRule,
}

impl Walked {
    pub fn new(points: usize, choice: SelectionRule) -> Walked {
        Walked { seen: vec![false; points], left: points, choice }
    }

    /// Selects the marker or a point.
    pub fn visit(&mut self, at: u32) {
        if let Some(seen) = (at as usize).checked_sub(1).and_then(|at| self.seen.get_mut(at)) {
            self.left -= usize::from(!*seen);
            *seen = true;
        }
    }

    /// Mask over the marker and the points of what may be next, as a row of `s` cells.
    pub fn row(&self, s: usize) -> impl Iterator<Item = bool> + '_ {
        let end = match self.choice {
            SelectionRule::Free => true,
            SelectionRule::Once => self.left < self.seen.len(),
            SelectionRule::All => self.left == 0,
        };
        let point = |seen: &bool| self.choice == SelectionRule::Free || !*seen;
        let row = std::iter::once(end).chain(self.seen.iter().map(point));
        row.chain(std::iter::repeat(false)).take(s)
    }
}

/// Mask of what may be selected in each of `t` steps, with teacher forcing.
pub(super) fn taught_mask(
    points: &Points,
    answers: &[Vec<u32>],
    t: usize,
    choice: SelectionRule,
) -> Mask {
    let s = points.most() + 1;
    let mut allowed = Vec::with_capacity(points.len() * t * s);
    for (count, answer) in points.counts.iter().zip(answers) {
        let mut walked = Walked::new(*count, choice);
        for step in 0..t {
            allowed.extend(walked.row(s));
            if let Some(at) = answer.get(step) {
                walked.visit(at + 1);
            }
        }
    }
    dense_per_row(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_next() {
        let row = |choice, visits: &[u32]| -> String {
            let mut walked = Walked::new(3, choice);
            visits.iter().for_each(|at| walked.visit(*at));
            walked.row(5).map(|allowed| if allowed { '1' } else { '0' }).collect()
        };
        assert_eq!(row(SelectionRule::Free, &[1, 1]), "11110");
        assert_eq!(row(SelectionRule::Once, &[]), "01110");
        assert_eq!(row(SelectionRule::Once, &[2]), "11010");
        assert_eq!(row(SelectionRule::All, &[2, 2]), "01010");
        assert_eq!(row(SelectionRule::All, &[3, 1, 2]), "10000");
    }

    #[test]
    fn a_point_is_told_by_itself_and_by_waves() {
        let config = Config { input_size: 1, waves: 2, ..Config::default() };
        let mut points = Points::new(1);
        points.push(&[0.5]);
        points.push(&[0.0, 1.0]);
        let features = points.features(&config, &Device::flex());
        assert_eq!(features.dims(), [2, 2, 5]);
        let got: Vec<f32> = features.into_data().try_into_vec().unwrap();
        let wanted = [
            [0.0, 1.0, 0.0, 0.0, -1.0],
            [0.0; 5],
            [-1.0, 0.0, 1.0, 0.0, 1.0],
            [1.0, 0.0, -1.0, 0.0, 1.0],
        ];
        for (got, wanted) in got.iter().zip(wanted.as_flattened()) {
            assert!((got - wanted).abs() < 1e-5, "{got}, not {wanted}");
        }
    }
}
