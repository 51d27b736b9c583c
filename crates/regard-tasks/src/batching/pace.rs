//! In which steps prompts are read while sessions generate.

use std::collections::BTreeMap;
use std::time::Duration;

/// Mean time of a step while a prompt is read, as a multiple of a step without prompts.
const MEAN_STEP: f64 = 2.0;

/// Most time that is made up for, in steps without prompts: a machine that stood still once must not
/// stop prompts for long.
const MOST_BEHIND: f64 = 16.0;

/// Most steps for a part of a prompt: the one that reads it, and those that make up for it.
pub(super) const MOST_STEPS: usize = 1 + (MOST_BEHIND / (MEAN_STEP - 1.0)) as usize;

/// Share of a new measurement in the mean.
const SHARE: f64 = 0.25;

/// Measured times of steps. Shorter parts of a prompt hardly make a step shorter, so parts keep their
/// length, and after one that took long some steps read none.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Seconds of a step by the number of tokens that sessions generate, without prompts.
    alone: BTreeMap<usize, f64>,
    /// Seconds by which steps with prompts were too long, not yet made up for.
    behind: f64,
}

impl Pace {
    /// Notes the time of a step that fed `fed` generated tokens and read `read` of prompts.
    pub fn note(&mut self, fed: usize, read: usize, time: Duration) {
        let seconds = time.as_secs_f64();
        if fed == 0 {
            // Nobody waits.
            self.behind = 0.0;
            return;
        }
        if read == 0 {
            let mean = self.alone.entry(fed).or_insert(seconds);
            *mean += SHARE * (seconds - *mean);
        }
        let Some(alone) = self.alone(fed) else { return };
        let behind = self.behind + seconds - MEAN_STEP * alone;
        self.behind = behind.clamp(0.0, MOST_BEHIND * alone);
    }

    /// Whether the next step may read prompts.
    pub fn reads(&self) -> bool {
        self.behind <= 0.0
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
    fn steps_without_prompts_make_up_for_long_ones() {
        let mut pace = Pace::default();
        pace.note(8, 32, ms(80));
        // Nothing is known yet.
        assert!(pace.reads());
        pace.note(8, 0, ms(10));
        pace.note(8, 32, ms(20));
        assert!(pace.reads());
        // 60 ms too long; each step without prompts is 10 ms shorter than may be.
        pace.note(8, 32, ms(80));
        let mut steps = 0;
        while !pace.reads() {
            pace.note(8, 0, ms(10));
            steps += 1;
        }
        assert_eq!(steps, 6);
        // Long pauses of the machine are not made up for, and nothing if nobody generates.
        pace.note(8, 32, ms(60_000));
        (0..17).for_each(|_| pace.note(8, 0, ms(10)));
        assert!(pace.reads(), "{pace:?}");
        pace.note(8, 32, ms(80));
        pace.note(0, 512, ms(1000));
        assert!(pace.reads());
        // Fewer sessions, of which no step was measured, are taken to be as fast.
        pace.note(5, 32, ms(80));
        assert!(!pace.reads());
    }
}
