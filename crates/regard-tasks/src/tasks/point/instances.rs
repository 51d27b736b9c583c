//! Sets of points with their solutions: drawn from a seed, or read from a file.

use super::PointProblem;
use regard_attention::Stream;

/// A set of points with its solution in the learned form.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    /// Coordinates of all points, point by point.
    pub points: Vec<f64>,
    /// Indices of points, from 0.
    pub answer: Vec<u32>,
}

/// Random streams of the parts, so that training, validation and test sets are disjoint.
#[repr(u64)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Site {
    Train = 0x706f_696e_7473_0001,
    Valid = 0x706f_696e_7473_0002,
    Test = 0x706f_696e_7473_0003,
}

impl Site {
    /// Returns the key of the part in a recipe.
    pub(super) fn part(self) -> &'static str {
        match self {
            Site::Train => "train",
            Site::Valid => "valid",
            Site::Test => "test",
        }
    }
}

/// Sets of points.
#[derive(Clone, Debug)]
pub enum Instances {
    /// Uniform in the unit square, each determined by the seed and its index; computed on demand.
    Drawn(Drawn),
    /// Read from a file.
    Read(Vec<Instance>),
}

/// Settings of generated sets.
#[derive(Clone, Copy)]
pub struct Drawn {
    problem: &'static dyn PointProblem,
    seed: u64,
    site: Site,
    /// Minimum and maximum number of points of a set.
    sizes: [usize; 2],
    count: usize,
}

impl std::fmt::Debug for Drawn {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let Drawn { problem, count, sizes, .. } = self;
        write!(f, "{count} of {}, {sizes:?} points", problem.name())
    }
}

impl Instances {
    pub(super) fn drawn(
        problem: &'static dyn PointProblem,
        seed: u64,
        site: Site,
        sizes: [usize; 2],
        count: usize,
    ) -> Instances {
        Instances::Drawn(Drawn { problem, seed, site, sizes, count })
    }

    /// Returns the number of sets.
    pub fn len(&self) -> usize {
        match self {
            Instances::Drawn(drawn) => drawn.count,
            Instances::Read(all) => all.len(),
        }
    }

    /// Whether there are no sets.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of points of a set.
    pub fn size(&self, index: usize, width: usize) -> usize {
        match self {
            Instances::Drawn(drawn) => drawn.size(index),
            Instances::Read(all) => all[index].points.len() / width,
        }
    }

    /// Returns a set with its solution.
    pub fn get(&self, index: usize) -> Instance {
        match self {
            Instances::Drawn(drawn) => drawn.get(index),
            Instances::Read(all) => all[index].clone(),
        }
    }

    /// Iterates over all sets.
    pub fn iter(&self) -> impl Iterator<Item = Instance> + '_ {
        (0..self.len()).map(|index| self.get(index))
    }
}

impl Drawn {
    fn stream(&self, index: usize) -> Stream {
        Stream::new(self.seed, index as u64, self.site as u64)
    }

    fn size(&self, index: usize) -> usize {
        let [fewest, most] = self.sizes;
        let share = f64::from(self.stream(index).uniform(0));
        fewest + (share * (most - fewest + 1) as f64) as usize
    }

    fn get(&self, index: usize) -> Instance {
        let (draw, numbers) = (self.stream(index), self.size(index) * self.problem.width());
        let points: Vec<f64> = (1..=numbers as u64).map(|i| f64::from(draw.uniform(i))).collect();
        Instance { answer: self.problem.solve(&points), points }
    }
}

#[cfg(test)]
mod tests {
    use super::super::problem;
    use super::*;

    #[test]
    fn a_set_is_a_function_of_seed_part_and_number() {
        let hull = problem("hull").unwrap();
        let draw = |seed, site| Instances::drawn(hull, seed, site, [4, 6], 50);
        let all: Vec<Instance> = draw(1, Site::Train).iter().collect();
        assert_eq!(all[7], draw(1, Site::Train).get(7));
        assert_ne!(all[7], draw(2, Site::Train).get(7));
        assert_ne!(all[7], draw(1, Site::Test).get(7));
        let sizes: Vec<usize> = (0..50).map(|i| draw(1, Site::Train).size(i, 2)).collect();
        for size in 4..=6 {
            assert!(sizes.iter().filter(|n| **n == size).count() > 5, "{sizes:?}");
        }
        for (instance, size) in all.iter().zip(sizes) {
            assert_eq!(instance.points.len(), 2 * size);
            assert!(instance.points.iter().all(|x| (0.0..1.0).contains(x)));
        }
    }
}
