//! Batches with a budget of tokens, of examples of similar length.
//!
//! A batch is a function of (seed, epoch, index): a run that is resumed at a [`Position`] sees the
//! batches that it would have seen.

use regard_attention::Stream;
use regard_models::{Error, Result};

/// Sites of the random generator that are used here.
const SHUFFLE_EXAMPLES: u64 = 0x6261_7463_6865_7301;
const SHUFFLE_BATCHES: u64 = 0x6261_7463_6865_7302;

/// Number of batches' worth of tokens in a pool: enough for batches of nearly equal lengths, few
/// enough that a batch is still a sample of the whole corpus.
const BATCHES_IN_A_POOL: usize = 50;

/// Numbers of tokens of an example, special tokens included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// Tokens of the source.
    pub source: usize,
    /// Tokens of the target; 0 if there is none.
    pub target: usize,
}

impl Lengths {
    fn longest(self) -> usize {
        self.source.max(self.target)
    }
}

/// Position in a run: which batch comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Position {
    /// Number of completed epochs.
    pub epoch: u64,
    /// Number of batches of this epoch that were seen.
    pub index: usize,
}

/// Shuffled batches over examples of given lengths.
#[derive(Clone, Debug)]
pub struct Batches {
    lengths: Vec<Lengths>,
    max_tokens: usize,
    seed: u64,
}

impl Batches {
    /// Makes batches of at most `max_tokens` tokens, padding included: rows times the longest
    /// example, on the longer of the two sides. A longer example is an error.
    pub fn new(lengths: Vec<Lengths>, max_tokens: usize, seed: u64) -> Result<Batches> {
        if lengths.is_empty() {
            return Err(Error::invalid("there are no examples to make batches of"));
        }
        let too_long: Vec<usize> =
            (0..lengths.len()).filter(|&i| lengths[i].longest() > max_tokens).collect();
        if let Some(&first) = too_long.first() {
            return Err(Error::invalid(format!(
                "{} of {} examples do not fit in a batch of {max_tokens} tokens; the first is \
                 example {first} with {} tokens. Raise train.batch_tokens, or leave long examples \
                 out (data.max_tokens, if the task has it)",
                too_long.len(),
                lengths.len(),
                lengths[first].longest(),
            )));
        }
        Ok(Batches { lengths, max_tokens, seed })
    }

    /// Returns the batches of an epoch, as indices of examples; each example is in exactly one.
    pub fn epoch(&self, epoch: u64) -> Vec<Vec<usize>> {
        let mut order: Vec<usize> = (0..self.lengths.len()).collect();
        shuffle(&mut order, Stream::new(self.seed, epoch, SHUFFLE_EXAMPLES));
        let mut batches = Vec::new();
        let mut rest = order.as_mut_slice();
        while !rest.is_empty() {
            let (pool, after) = rest.split_at_mut(self.pool(rest));
            // The order within equal lengths is that of the shuffle: a stable sort.
            pool.sort_by_key(|&i| (self.lengths[i].longest(), self.lengths[i].source));
            batches.extend(self.cut(pool));
            rest = after;
        }
        shuffle(&mut batches, Stream::new(self.seed, epoch, SHUFFLE_BATCHES));
        batches
    }

    /// Iterates over batches from a position on, without end, each with the position after it.
    pub fn from(&self, position: Position) -> impl Iterator<Item = (Vec<usize>, Position)> + '_ {
        let (mut next, mut current) = (position, None::<(u64, Vec<Vec<usize>>)>);
        std::iter::from_fn(move || {
            loop {
                let batches = match &mut current {
                    Some((epoch, batches)) if *epoch == next.epoch => batches,
                    _ => &mut current.insert((next.epoch, self.epoch(next.epoch))).1,
                };
                if let Some(batch) = batches.get_mut(next.index) {
                    next.index += 1;
                    return Some((std::mem::take(batch), next));
                }
                next = Position { epoch: next.epoch + 1, index: 0 };
            }
        })
    }

    /// Returns batches of all examples, the longest first (so that memory runs out at once or
    /// never), for evaluation; [`restore`] puts the results back in the order of the examples.
    pub fn sorted(&self) -> Vec<Vec<usize>> {
        let mut order: Vec<usize> = (0..self.lengths.len()).collect();
        order.sort_by_key(|&i| (self.lengths[i].longest(), self.lengths[i].source));
        let mut batches: Vec<_> = self.cut(&order).collect();
        batches.reverse();
        batches
    }

    /// Returns the number of leading examples that make a pool.
    fn pool(&self, order: &[usize]) -> usize {
        let mut tokens = 0;
        let wanted = self.max_tokens.saturating_mul(BATCHES_IN_A_POOL);
        let fits = order.iter().take_while(|&&i| {
            tokens += self.lengths[i].longest();
            tokens <= wanted
        });
        fits.count().max(1)
    }

    /// Starts a new batch where one more example would take rows × longest over the budget.
    fn cut<'a>(&'a self, order: &'a [usize]) -> impl Iterator<Item = Vec<usize>> + 'a {
        let mut rest = order;
        std::iter::from_fn(move || {
            let mut longest = 0;
            let fits = rest.iter().enumerate().take_while(|&(rows, &i)| {
                longest = longest.max(self.lengths[i].longest());
                (rows + 1) * longest <= self.max_tokens
            });
            let (batch, after) = rest.split_at(fits.count());
            rest = after;
            (!batch.is_empty()).then(|| batch.to_vec())
        })
    }
}

/// Puts results of [`Batches::sorted`], one per example, back in the order of the examples.
///
/// # Panics
/// If the number of results of a batch differs from its number of examples.
pub fn restore<T>(batches: &[Vec<usize>], results: Vec<Vec<T>>) -> Vec<T> {
    let mut all: Vec<(usize, T)> = Vec::new();
    assert_eq!(batches.len(), results.len(), "one list of results per batch");
    for (batch, results) in batches.iter().zip(results) {
        assert_eq!(batch.len(), results.len(), "one result per example");
        all.extend(batch.iter().copied().zip(results));
    }
    all.sort_by_key(|(i, _)| *i);
    all.into_iter().map(|(_, result)| result).collect()
}

/// Fisher–Yates; each swap has its own random draw, by its index.
fn shuffle<T>(items: &mut [T], stream: Stream) {
    for i in (1..items.len()).rev() {
        // 64 bits scaled to 0..=i: the bias is below 2⁻³² for any list that fits in memory.
        let bits =
            u64::from(stream.bits(2 * i as u64)) << 32 | u64::from(stream.bits(2 * i as u64 + 1));
        let j = (u128::from(bits) * (i as u128 + 1)) >> 64;
        items.swap(i, j as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths like those of sentences: many short ones, few long ones.
    fn corpus(n: usize, seed: u64) -> Vec<Lengths> {
        let draw = Stream::new(seed, 0, 0);
        let length = |i: u64| 1 + (40.0 * draw.uniform(i).powi(2)) as usize;
        (0..n as u64)
            .map(|i| Lengths { source: length(2 * i), target: length(2 * i + 1) })
            .collect()
    }

    fn check_all_once(batches: &[Vec<usize>], lengths: &[Lengths], max_tokens: usize) {
        let mut seen: Vec<usize> = batches.iter().flatten().copied().collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..lengths.len()).collect::<Vec<_>>());
        for batch in batches {
            let longest = batch.iter().map(|&i| lengths[i].longest()).max().unwrap();
            assert!(longest * batch.len() <= max_tokens, "{} rows of {longest}", batch.len());
        }
    }

    #[test]
    fn each_example_once_and_within_the_budget() {
        for (n, max_tokens, seed) in
            [(1, 41, 0), (2, 41, 1), (7, 50, 2), (1000, 41, 3), (5000, 512, 4), (5000, 100_000, 5)]
        {
            let lengths = corpus(n, seed);
            let batches = Batches::new(lengths.clone(), max_tokens, seed).unwrap();
            check_all_once(&batches.sorted(), &lengths, max_tokens);
            for epoch in 0..3 {
                check_all_once(&batches.epoch(epoch), &lengths, max_tokens);
            }
        }
    }

    #[test]
    fn little_is_padding_and_order_is_random() {
        let lengths = corpus(20_000, 9);
        let batches = Batches::new(lengths.clone(), 2048, 9).unwrap();
        let epoch = batches.epoch(0);
        let real: usize = lengths.iter().map(|l| l.longest()).sum();
        let padded: usize = epoch
            .iter()
            .map(|b| b.len() * b.iter().map(|&i| lengths[i].longest()).max().unwrap())
            .sum();
        assert!(padded as f64 / real as f64 <= 1.05, "{padded} for {real}");
        // A batch is not a range of the file, and lengths do not rise through the epoch.
        let near =
            epoch.iter().filter(|b| b.iter().max().unwrap() - b.iter().min().unwrap() < 2000);
        assert!(near.count() * 10 < epoch.len());
        let mean = |bs: &[Vec<usize>]| {
            let all: Vec<usize> = bs.iter().map(|b| lengths[b[0]].longest()).collect();
            all.iter().sum::<usize>() as f64 / all.len() as f64
        };
        let (first, last) = epoch.split_at(epoch.len() / 2);
        assert!((mean(first) - mean(last)).abs() < 4.0, "{} {}", mean(first), mean(last));
    }

    #[test]
    fn a_function_of_seed_and_epoch() {
        let make = |seed| Batches::new(corpus(500, 1), 64, seed).unwrap();
        assert_eq!(make(1).epoch(3), make(1).epoch(3));
        assert_ne!(make(1).epoch(3), make(1).epoch(4));
        assert_ne!(make(1).epoch(3), make(2).epoch(3));
    }

    #[test]
    fn resumed_is_never_stopped() {
        let batches = Batches::new(corpus(200, 1), 64, 7).unwrap();
        let whole: Vec<_> = batches.from(Position::default()).take(100).collect();
        assert!(whole.last().unwrap().1.epoch >= 1, "the test must cross an epoch");
        for stop in [1, 20, 57, 99] {
            let rest: Vec<_> = batches.from(whole[stop - 1].1).take(100 - stop).collect();
            assert_eq!(rest, whole[stop..]);
        }
    }

    #[test]
    fn too_long_is_an_error_that_counts() {
        let mut lengths = corpus(10, 1);
        lengths[4].target = 99;
        lengths[8].source = 77;
        let message = Batches::new(lengths, 64, 0).unwrap_err().to_string();
        assert!(message.contains("2 of 10"), "{message}");
        assert!(message.contains("example 4 with 99 tokens"), "{message}");
        assert!(Batches::new(vec![], 64, 0).is_err());
    }

    #[test]
    fn results_come_back_in_order() {
        let lengths = corpus(333, 5);
        let batches = Batches::new(lengths.clone(), 100, 0).unwrap().sorted();
        let longest = |b: &Vec<usize>| b.iter().map(|&i| lengths[i].longest()).max().unwrap();
        assert!(batches.iter().rev().is_sorted_by_key(longest), "the longest first");
        let results = batches.iter().map(|b| b.iter().map(|i| i * 10).collect()).collect();
        assert_eq!(restore(&batches, results), (0..333).map(|i| i * 10).collect::<Vec<_>>());
    }
}
