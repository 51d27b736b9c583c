//! Metrics of classification: accuracy, precision, recall, F1 and Matthews' correlation, all from
//! a confusion matrix. The definitions are scikit-learn's; where it divides by zero the result
//! is 0.

/// Confusion matrix: counts of predicted classes for each gold class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confusion {
    classes: usize,
    /// `[classes, classes]`: rows are gold classes, columns predicted classes.
    counts: Vec<u64>,
    /// Number of examples of each gold class without a prediction.
    missed: Vec<u64>,
}

/// Precision, recall and their harmonic mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PrecisionRecall {
    /// Fraction of the predictions that are right.
    pub precision: f64,
    /// Fraction of the gold labels that were predicted.
    pub recall: f64,
    /// Harmonic mean of precision and recall.
    pub f1: f64,
}

impl PrecisionRecall {
    /// Computes the metrics from the number of true positives, of predictions and of gold labels.
    pub fn of(both: u64, said: u64, right: u64) -> PrecisionRecall {
        PrecisionRecall {
            precision: share(both, said),
            recall: share(both, right),
            f1: share(2 * both, said + right),
        }
    }

    /// Computes the unweighted mean over classes; zeros if there is none.
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

/// Computes a fraction; 0 of 0 is 0.
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl Confusion {
    /// Creates an empty confusion matrix.
    pub fn new(classes: usize) -> Confusion {
        Confusion { classes, counts: vec![0; classes * classes], missed: vec![0; classes] }
    }

    /// Adds an example with its predicted class `said` and its gold class `right`.
    ///
    /// # Panics
    /// If a class is out of range.
    pub fn add(&mut self, said: usize, right: usize) {
        let classes = self.classes;
        assert!(
            said < classes && right < classes,
            "class {said} predicted for class {right}, but there are {classes} classes"
        );
        self.counts[right * classes + said] += 1;
    }

    /// Adds an example without a prediction: it counts as wrong.
    ///
    /// # Panics
    /// If a class is out of range.
    pub fn miss(&mut self, right: usize) {
        let classes = self.classes;
        assert!(right < classes, "class {right} missed, but there are {classes} classes");
        self.missed[right] += 1;
    }

    /// Adds another part of the corpus.
    ///
    /// # Panics
    /// If the number of classes differs.
    pub fn merge(&mut self, other: &Confusion) {
        assert_eq!(self.classes, other.classes, "two tables of different classes");
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, other)| *mine += other);
        self.missed.iter_mut().zip(&other.missed).for_each(|(mine, other)| *mine += other);
    }

    /// Returns the number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Returns the number of examples.
    pub fn total(&self) -> u64 {
        self.counts.iter().chain(&self.missed).sum()
    }

    /// Returns the number of examples of gold class `right` that were predicted as `said`.
    pub fn count(&self, said: usize, right: usize) -> u64 {
        self.counts[right * self.classes + said]
    }

    /// Returns the number of predictions of a class.
    pub fn said(&self, class: usize) -> u64 {
        (0..self.classes).map(|right| self.count(class, right)).sum()
    }

    /// Returns the number of examples whose gold class is `class`.
    pub fn right(&self, class: usize) -> u64 {
        (0..self.classes).map(|said| self.count(said, class)).sum::<u64>() + self.missed[class]
    }

    /// Returns the fraction of examples predicted correctly.
    pub fn accuracy(&self) -> f64 {
        let told = (0..self.classes).map(|class| self.count(class, class)).sum();
        share(told, self.total())
    }

    /// Computes precision, recall and F1 of a class.
    pub fn of(&self, class: usize) -> PrecisionRecall {
        PrecisionRecall::of(self.count(class, class), self.said(class), self.right(class))
    }

    /// Computes unweighted means over the classes that were predicted or are gold labels: macro
    /// precision, recall and F1.
    pub fn macro_mean(&self) -> PrecisionRecall {
        let occurs = |&class: &usize| self.said(class) + self.right(class) > 0;
        let all: Vec<_> = (0..self.classes).filter(occurs).map(|class| self.of(class)).collect();
        PrecisionRecall::mean(&all)
    }

    /// Computes Matthews' correlation between predictions and gold labels, for any number of
    /// classes (Gorodkin 2004): 1 is perfect; 0 is chance, or a constant prediction.
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
        // For the class it is as if a class outside the matrix had been predicted.
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
