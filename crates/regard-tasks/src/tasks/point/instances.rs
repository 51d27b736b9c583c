//! Sets of points with their true answers: drawn from a seed, or read from a file.

use super::Problem;
use regard_attention::Stream;

/// A set of points with its true answer in the learned form.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    /// The numbers of all points.
    pub points: Vec<f64>,
    /// Places of points, from 0.
    pub answer: Vec<u32>,
}

/// Where sets that are drawn come from, among the sites of the generator: what is learned from,
/// what decides, and what is reported never meet.
#[repr(u64)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Site {
    Train = 0x706f_696e_7473_0001,
    Valid = 0x706f_696e_7473_0002,
    Test = 0x706f_696e_7473_0003,
}

impl Site {
    /// The key of the part in a recipe.
    pub(super) fn part(self) -> &'static str {
        match self {
            Site::Train => "train",
            Site::Valid => "valid",
            Site::Test => "test",
        }
    }
}

/// Many of them.
#[derive(Clone, Debug)]
pub enum Instances {
    /// Uniform in the unit square, each a function of the seed and its number: nothing is kept.
    Drawn(Drawn),
    /// From a file.
    Read(Vec<Instance>),
}

/// How sets are drawn.
#[derive(Clone, Copy)]
pub struct Drawn {
    problem: &'static dyn Problem,
    seed: u64,
    site: Site,
    /// Points of a set, at least and at most.
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
        problem: &'static dyn Problem,
        (seed, site): (u64, Site),
        sizes: [usize; 2],
        count: usize,
    ) -> Instances {
        Instances::Drawn(Drawn { problem, seed, site, sizes, count })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Instances::Drawn(drawn) => drawn.count,
            Instances::Read(all) => all.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many points a set has.
    pub fn size(&self, index: usize, width: usize) -> usize {
        match self {
            Instances::Drawn(drawn) => drawn.size(index),
            Instances::Read(all) => all[index].points.len() / width,
        }
    }

    /// A set with its answer.
    pub fn get(&self, index: usize) -> Instance {
        match self {
            Instances::Drawn(drawn) => drawn.get(index),
            Instances::Read(all) => all[index].clone(),
        }
    }

    /// All of them.
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
        let draw = |seed, site| Instances::drawn(hull, (seed, site), [4, 6], 50);
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
