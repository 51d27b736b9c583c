//! How well labels are told: accuracy, precision, recall, F1 and Matthews' correlation, all from
//! one table of what was said for what. The definitions are scikit-learn's; where it divides by
//! zero the result is 0.

/// How often each class was taken for each class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confusion {
    classes: usize,
    /// Rows are what is right, columns are what was said.
    counts: Vec<u64>,
    /// How often nothing was said where a class is right.
    missed: Vec<u64>,
}

/// Precision, recall and their harmonic mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PrecisionRecall {
    /// Of what was said, the share that is right.
    pub precision: f64,
    /// Of what is right, the share that was said.
    pub recall: f64,
    /// The harmonic mean of the two.
    pub f1: f64,
}

impl PrecisionRecall {
    /// From how many were said and right, how many were said, and how many are right.
    pub fn of(both: u64, said: u64, right: u64) -> PrecisionRecall {
        PrecisionRecall {
            precision: share(both, said),
            recall: share(both, right),
            f1: share(2 * both, said + right),
        }
    }

    /// The mean of each number, every class alike; zeros if there is none.
    pub fn mean(all: &[PrecisionRecall]) -> PrecisionRecall {
        let count = all.len().max(1) as f64;
        let mean = |of: fn(&PrecisionRecall) -> f64| all.iter().map(of).sum::<f64>() / count;
        PrecisionRecall {
            precision: mean(|one| one.precision),
            recall: mean(|one| one.recall),
            f1: mean(|one| one.f1),
        }
    }
}

/// A share; nothing of nothing is 0.
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl Confusion {
    /// An empty corpus with so many classes.
    pub fn new(classes: usize) -> Confusion {
        Confusion { classes, counts: vec![0; classes * classes], missed: vec![0; classes] }
    }

    /// Adds an example: what was said for it, and what is right.
    ///
    /// # Panics
    /// If there is no such class.
    pub fn add(&mut self, said: usize, right: usize) {
        let classes = self.classes;
        assert!(
            said < classes && right < classes,
            "class {said} said for class {right}, but there are {classes} classes"
        );
        self.counts[right * classes + said] += 1;
    }

    /// Adds an example of which nothing was said: it counts as wrong.
    ///
    /// # Panics
    /// If there is no such class.
    pub fn miss(&mut self, right: usize) {
        let classes = self.classes;
        assert!(right < classes, "class {right} missed, but there are {classes} classes");
        self.missed[right] += 1;
    }

    /// Adds another part of the corpus.
    ///
    /// # Panics
    /// If it has another number of classes.
    pub fn merge(&mut self, other: &Confusion) {
        assert_eq!(self.classes, other.classes, "two tables of different classes");
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, other)| *mine += other);
        self.missed.iter_mut().zip(&other.missed).for_each(|(mine, other)| *mine += other);
    }

    /// How many classes there are.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// How many examples were added.
    pub fn total(&self) -> u64 {
        self.counts.iter().chain(&self.missed).sum()
    }

    /// How often one class was said where another, or the same, is right.
    pub fn count(&self, said: usize, right: usize) -> u64 {
        self.counts[right * self.classes + said]
    }

    /// How often a class was said.
    pub fn said(&self, class: usize) -> u64 {
        (0..self.classes).map(|right| self.count(class, right)).sum()
    }

    /// How often a class is right.
    pub fn right(&self, class: usize) -> u64 {
        (0..self.classes).map(|said| self.count(said, class)).sum::<u64>() + self.missed[class]
    }

    /// The share of examples that were told right.
    pub fn accuracy(&self) -> f64 {
        let told = (0..self.classes).map(|class| self.count(class, class)).sum();
        share(told, self.total())
    }

    /// Precision, recall and F1 of a class.
    pub fn of(&self, class: usize) -> PrecisionRecall {
        PrecisionRecall::of(self.count(class, class), self.said(class), self.right(class))
    }

    /// The means over the classes that were said or are right, every class alike: macro-F1 and
    /// its kin.
    pub fn macro_mean(&self) -> PrecisionRecall {
        let occurs = |&class: &usize| self.said(class) + self.right(class) > 0;
        let all: Vec<_> = (0..self.classes).filter(occurs).map(|class| self.of(class)).collect();
        PrecisionRecall::mean(&all)
    }

    /// Matthews' correlation between what was said and what is right, for any number of classes
    /// (Gorodkin 2004): 1 is perfect, and 0 is no better than chance or always the same.
    pub fn matthews(&self) -> f64 {
        let (mut told, mut chance, mut said, mut right) = (0.0, 0.0, 0.0, 0.0);
        for class in 0..self.classes {
            let (s, r) = (self.said(class) as f64, self.right(class) as f64);
            told += self.count(class, class) as f64;
            chance += s * r;
            said += s * s;
            right += r * r;
        }
        let total = self.total() as f64;
        let spread = (total * total - said) * (total * total - right);
        if spread > 0.0 { (told * total - chance) / spread.sqrt() } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(classes: usize, examples: &[(usize, usize)]) -> Confusion {
        let mut table = Confusion::new(classes);
        examples.iter().for_each(|&(said, right)| table.add(said, right));
        table
    }

    #[test]
    fn shares_by_hand() {
        let table = table(3, &[(0, 0), (0, 1), (1, 1), (1, 1)]);
        assert_eq!(table.accuracy(), 0.75);
        assert_eq!(table.of(0), PrecisionRecall { precision: 0.5, recall: 1.0, f1: 2.0 / 3.0 });
        assert_eq!(table.of(2), PrecisionRecall::default());
        // The third class never occurs and is not in the mean.
        assert_eq!(table.macro_mean().precision, 0.75);
        assert!((table.matthews() - 1.0 / 3.0_f64.sqrt()).abs() < 1e-15);
        assert_eq!((table.count(0, 1), table.said(0), table.right(0)), (1, 2, 1));
    }

    #[test]
    fn nothing_and_one_class_are_zero() {
        assert_eq!(table(2, &[]).accuracy(), 0.0);
        assert_eq!(table(2, &[]).macro_mean(), PrecisionRecall::default());
        assert_eq!(table(2, &[(1, 1), (1, 0)]).matthews(), 0.0);
        assert_eq!(table(0, &[]).matthews(), 0.0);
    }

    #[test]
    fn what_is_not_said_is_wrong() {
        let mut table = table(2, &[(0, 0), (1, 1), (1, 1)]);
        table.miss(0);
        assert_eq!((table.total(), table.accuracy(), table.right(0)), (4, 0.75, 2));
        assert_eq!((table.of(0).recall, table.of(0).precision), (0.5, 1.0));
        // Of a class alone, it is the table in which another class was said that is none of these.
        assert_eq!(table.macro_mean().f1, (2.0 / 3.0 + 1.0) / 2.0);
        let mut twice = table.clone();
        twice.merge(&table);
        assert_eq!((twice.total(), twice.accuracy()), (8, 0.75));
    }

    #[test]
    fn parts_make_the_whole() {
        let examples = [(0, 1), (2, 2), (1, 1), (0, 0), (2, 1)];
        let mut merged = table(3, &examples[..2]);
        merged.merge(&table(3, &examples[2..]));
        assert_eq!(merged, table(3, &examples));
    }

    #[test]
    #[should_panic(expected = "there are 2 classes")]
    fn a_class_that_is_not_there() {
        Confusion::new(2).add(2, 0);
    }
}
