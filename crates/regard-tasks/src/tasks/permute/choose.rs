//! Selection of prediction targets and of the factorisation order.

use regard_attention::Mode;
use regard_attention::Stream;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Selection of the tokens to predict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Targets {
    /// About one token in `one_in` is predicted: the paper's K; 6 by default.
    pub one_in: usize,
    /// Lengths of the shortest and the longest predicted span, in tokens; `[1, 5]` by default.
    pub lengths: [usize; 2],
}

impl Default for Targets {
    fn default() -> Targets {
        Targets { one_in: 6, lengths: [1, 5] }
    }
}

/// Sequence of random draws for one example of one step.
pub(super) struct Draws {
    stream: Stream,
    next: u64,
}

impl Draws {
    /// Creates the draws: different in every training step, the same in every evaluation.
    pub fn new(mode: Mode, site: u64) -> Draws {
        let (seed, step) = match mode {
            Mode::Eval => (0, 0),
            Mode::Train { seed, step } => (seed, step),
        };
        Draws { stream: Stream::new(seed, step, site), next: 0 }
    }

    /// Draws a number in `[0, 1)`.
    pub fn share(&mut self) -> f64 {
        self.next += 1;
        f64::from(self.stream.uniform(self.next))
    }

    /// Draws an index in `0..end`; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.share() * end as f64) as usize
    }
}

impl Targets {
    /// Checks the settings.
    pub fn check(&self) -> Result<(), String> {
        let Targets { one_in, lengths: [shortest, longest] } = *self;
        if one_in == 0 {
            return Err("targets.one_in: got 0, need at least 1".into());
        }
        if shortest == 0 || shortest > longest {
            return Err(format!(
                "targets.lengths: got [{shortest}, {longest}], need at least 1 token, the shortest \
                 first"
            ));
        }
        Ok(())
    }

    /// Returns the positions to predict, ascending, at least one if there is any. `open` are the
    /// ranges of eligible tokens: in each window of `K·L` of them a span of `L` is chosen, with `L`
    /// drawn anew.
    pub(super) fn choose(&self, open: &[Range<usize>], draws: &mut Draws) -> Vec<usize> {
        let Targets { one_in, lengths: [shortest, longest] } = *self;
        let mut places = vec![];
        for run in open {
            let mut at = run.start;
            while at < run.end {
                let left = run.end - at;
                let mut length = shortest + draws.below(longest - shortest + 1);
                let mut window = one_in * length;
                if window > left {
                    // The end of a range has a smaller window, of which the same fraction is
                    // predicted.
                    (window, length) = (left, left / one_in);
                    length += usize::from(draws.below(one_in) < left % one_in);
                }
                let first = at + draws.below(window - length + 1);
                places.extend(first..first + length);
                at += window;
            }
        }
        if places.is_empty() {
            let all: Vec<usize> = open.iter().cloned().flatten().collect();
            places.extend(all.get(draws.below(all.len())));
        }
        places
    }
}

/// Returns the rank of each token in the factorisation order: 0 for context tokens, and a random
/// order for the predicted ones.
pub(super) fn ranks(tokens: usize, told: &[usize], draws: &mut Draws) -> Vec<u32> {
    let mut order = told.to_vec();
    for i in (1..order.len()).rev() {
        order.swap(i, draws.below(i + 1));
    }
    let mut ranks = vec![0; tokens];
    order.iter().zip(1..).for_each(|(at, rank)| ranks[*at] = rank);
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(step: u64) -> Draws {
        Draws::new(Mode::Train { seed: 3, step }, 7)
    }

    #[test]
    fn one_in_so_many_is_told_in_spans() {
        for (one_in, lengths) in [(6, [1, 5]), (7, [1, 5]), (2, [3, 3]), (1, [1, 1])] {
            let targets = Targets { one_in, lengths };
            let (mut told, mut spans) = (0, [0; 6]);
            for step in 0..400 {
                let places = targets.choose(&[0..50, 51..128], &mut draws(step));
                assert!(places.is_sorted_by(|a, b| a < b) && places.iter().all(|at| *at < 128));
                assert!(!places.contains(&50), "what is not open is not told");
                told += places.len();
                let ends = places.iter().filter(|at| !places.contains(&(*at + 1)));
                for end in ends {
                    let length = (0..=*end).rev().take_while(|at| places.contains(at)).count();
                    spans[length.min(5)] += 1;
                }
            }
            let share = told as f64 / (400.0 * 127.0);
            assert!((share * one_in as f64 - 1.0).abs() < 0.02, "{share} for 1/{one_in}");
            if one_in > 5 {
                assert!(spans[1..].iter().all(|n| *n > 300), "{spans:?}");
            }
        }
    }

    #[test]
    fn something_is_told_wherever_something_can_be() {
        let targets = Targets::default();
        for step in 0..50 {
            for n in 1..9 {
                let open = 3..3 + n;
                let places = targets.choose(std::slice::from_ref(&open), &mut draws(step));
                assert!(!places.is_empty() && places.iter().all(|at| open.contains(at)));
            }
            assert!(targets.choose(&[], &mut draws(step)).is_empty());
            let nothing = 4..4;
            assert!(targets.choose(&[nothing], &mut draws(step)).is_empty());
        }
    }

    #[test]
    fn every_order_is_as_likely() {
        let mut counts = std::collections::BTreeMap::new();
        for step in 0..2400 {
            let ranks = ranks(6, &[1, 2, 5, 4], &mut draws(step));
            assert_eq!((ranks[0], ranks[3]), (0, 0));
            *counts.entry(ranks).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 24);
        assert!(counts.values().all(|n| (60..150).contains(n)), "{counts:?}");
    }

    #[test]
    fn what_cannot_be_is_told() {
        let check = |one_in, lengths| Targets { one_in, lengths }.check().unwrap_err();
        assert!(check(0, [1, 5]).contains("targets.one_in"));
        assert!(check(6, [0, 5]).contains("[0, 5]"));
        assert!(check(6, [5, 1]).contains("[5, 1]"));
    }
}
