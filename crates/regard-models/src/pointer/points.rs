//! Points as a pointer network reads them, and what it is taught to point at.

use super::{Choice, Config};
use burn::tensor::{Device, Int, Tensor, TensorData};
use regard_attention::mask::{Mask, dense_per_row};

/// The number of the marker among what can be pointed at: it stands for the beginning and for the
/// end. Points come behind it.
pub const MARKER: u32 = 0;

/// Sets of points, each of its own size.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Points {
    /// The numbers of all points, one set after another.
    numbers: Vec<f32>,
    /// Points of each set.
    counts: Vec<usize>,
    /// Numbers of a point.
    width: usize,
}

impl Points {
    /// None yet, of points with so many numbers.
    pub fn new(width: usize) -> Points {
        assert!(width > 0, "a point has at least one number");
        Points { numbers: vec![], counts: vec![], width }
    }

    /// Adds a set: the numbers of its points, one point after another.
    ///
    /// # Panics
    /// If there is no point, or a part of one.
    pub fn push(&mut self, numbers: &[f32]) {
        let (got, width) = (numbers.len(), self.width);
        assert!(got > 0 && got.is_multiple_of(width), "got {got} numbers of points of {width}");
        self.numbers.extend_from_slice(numbers);
        self.counts.push(got / width);
    }

    /// How many sets there are.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Points of each set.
    pub fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// Points of the largest set.
    pub fn most(&self) -> usize {
        self.counts.iter().copied().max().unwrap_or(0)
    }

    /// What can be pointed at in each set: the marker and the points.
    pub(super) fn lengths(&self) -> Vec<i64> {
        self.counts.iter().map(|n| *n as i64 + 1).collect()
    }

    /// What is told of each point, zeros behind the last of a set: `[B, most, features]`. A number
    /// of the unit interval is told by itself and, in octaves, by a sine and a cosine, because a
    /// small difference must not be small in everything that tells it.
    pub(super) fn features(&self, config: &Config, device: &Device) -> Tensor<3> {
        assert_eq!(self.width, config.input_size, "the numbers of a point");
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

/// Which rows of the marker and the points of several sets, `S` for each, are meant: `[R, T]`
pub(super) fn rows(
    places: impl Iterator<Item = (usize, u32)>,
    (s, shape): (usize, [usize; 2]),
    device: &Device,
) -> Tensor<2, Int> {
    let all: Vec<i64> = places.map(|(set, at)| (set * s) as i64 + i64::from(at)).collect();
    Tensor::from_data(TensorData::new(all, shape), device)
}

/// What has been pointed at, and what may be next.
#[derive(Clone, Debug)]
pub(super) struct Walked {
    /// Whether each point was pointed at.
    seen: Vec<bool>,
    left: usize,
    choice: Choice,
}

impl Walked {
    pub fn new(points: usize, choice: Choice) -> Walked {
        Walked { seen: vec![false; points], left: points, choice }
    }

    /// Points at the marker or a point.
    pub fn visit(&mut self, at: u32) {
        if let Some(seen) = (at as usize).checked_sub(1).and_then(|at| self.seen.get_mut(at)) {
            self.left -= usize::from(!*seen);
            *seen = true;
        }
    }

    /// Whether each of the marker and the points may be next, as a row of `s` cells.
    pub fn row(&self, s: usize) -> impl Iterator<Item = bool> + '_ {
        let end = match self.choice {
            Choice::Free => true,
            Choice::Once => self.left < self.seen.len(),
            Choice::All => self.left == 0,
        };
        let point = |seen: &bool| self.choice == Choice::Free || !*seen;
        let row = std::iter::once(end).chain(self.seen.iter().map(point));
        row.chain(std::iter::repeat(false)).take(s)
    }
}

/// What may be pointed at in each of `t` steps, if all steps before went as told.
pub(super) fn taught_mask(
    points: &Points,
    answers: &[Vec<u32>],
    (t, choice): (usize, Choice),
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
        assert_eq!(row(Choice::Free, &[1, 1]), "11110");
        assert_eq!(row(Choice::Once, &[]), "01110");
        assert_eq!(row(Choice::Once, &[2]), "11010");
        assert_eq!(row(Choice::All, &[2, 2]), "01010");
        assert_eq!(row(Choice::All, &[3, 1, 2]), "10000");
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
