//! How many tokens of prompts are read in a step in which sessions also generate.

use std::collections::BTreeMap;
use std::time::Duration;

/// Longest step with tokens of prompts, in steps without.
const SLOWEST: f64 = 2.5;

/// Fewest tokens of prompts in a step, whatever it takes.
pub(super) const FEWEST: usize = 4;

/// Share of a new measurement in the mean.
const SHARE: f64 = 0.25;

/// Measured times of steps.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Seconds of a step by the number of tokens that sessions generate, without prompts.
    alone: BTreeMap<usize, f64>,
    /// Seconds that each token of a prompt adds to a step.
    each: Option<f64>,
}

impl Pace {
    /// Notes the time of a step that fed `fed` generated tokens and read `read` of prompts.
    pub fn note(&mut self, fed: usize, read: usize, time: Duration) {
        let seconds = time.as_secs_f64();
        match (fed, read) {
            (0, _) => {}
            (fed, 0) => {
                let mean = self.alone.entry(fed).or_insert(seconds);
                *mean += SHARE * (seconds - *mean);
            }
            (fed, read) => {
                let Some(alone) = self.alone(fed) else { return };
                let each = (seconds - alone).max(0.0) / read as f64;
                let mean = self.each.get_or_insert(each);
                *mean += SHARE * (each - *mean);
            }
        }
    }

    /// Tokens of prompts for a step that feeds `fed` generated tokens, at most `most`.
    pub fn room(&self, fed: usize, most: usize) -> usize {
        let (Some(alone), Some(each)) = (self.alone(fed), self.each) else { return most };
        let room = (SLOWEST - 1.0) * alone / each;
        // As many as there may be, if they take no time.
        (room as usize).max(FEWEST).min(most)
    }

    /// Seconds of a step without prompts: for this number of tokens, or the nearest below or above.
    fn alone(&self, fed: usize) -> Option<f64> {
        let below = self.alone.range(..=fed).next_back();
        below.or_else(|| self.alone.range(fed..).next()).map(|(_, seconds)| *seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(time: u64) -> Duration {
        Duration::from_millis(time)
    }

    #[test]
    fn a_step_takes_as_many_tokens_as_the_pace_allows() {
        let mut pace = Pace::default();
        assert_eq!(pace.room(8, 32), 32);
        pace.note(8, 0, ms(10));
        assert_eq!(pace.room(8, 32), 32);
        // 2 ms each, where 15 may be added.
        pace.note(8, 32, ms(74));
        assert_eq!(pace.room(8, 32), 7);
        // Fewer sessions, of which no step was measured, are as fast as those.
        assert_eq!(pace.room(5, 32), 7);
        pace.note(2, 0, ms(4));
        assert_eq!(pace.room(5, 32), FEWEST);
        assert_eq!(pace.room(8, 32), 7);
        assert_eq!(pace.room(8, 2), 2);
        // Prompts that take no time are limited by what is asked.
        let mut pace = Pace::default();
        pace.note(1, 0, ms(10));
        pace.note(1, 32, ms(10));
        assert_eq!(pace.room(1, 32), 32);
        // Steps of prompts alone say nothing about the pace.
        pace.note(0, 512, ms(1000));
        assert_eq!(pace.room(1, 32), 32);
    }
}
