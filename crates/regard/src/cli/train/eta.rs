//! Estimate of the time that a run still takes.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Steps at the start that are not counted: they allocate buffers and fill caches.
const WARM_UP: u64 = 3;
/// Number of steps that the mean is taken over.
const WINDOW: usize = 200;

/// Time of an evaluation with its checkpoint, as a share of the steps before it, until one was
/// timed. With it the estimate is within 30 % for all shares up to 0.64, if the mean of the steps is
/// exact; in two measured runs they were about 0.05 (`train classify --quick`) and 0.25 (`sst2-words`,
/// an evaluation every 100 steps).
const SHARE: f64 = 0.15;

/// Times of steps and evaluations of a run.
pub struct Eta {
    steps: u64,
    every: u64,
    /// Number of evaluations after the last step besides its own: of averaged checkpoints, and of
    /// the test part.
    after: u64,
    /// End of the last step or evaluation.
    last: Instant,
    seen: u64,
    recent: VecDeque<f64>,
    evaluations: u32,
    evaluating: f64,
}

impl Eta {
    /// Creates the estimate of a run with this many steps and an evaluation every so many.
    pub fn new(steps: u64, every: u64) -> Eta {
        let (last, every) = (Instant::now(), every.max(1));
        let (recent, evaluating) = (VecDeque::new(), 0.0);
        Eta { steps, every, after: 0, last, seen: 0, recent, evaluations: 0, evaluating }
    }

    /// Adds an evaluation at the end.
    pub fn evaluates_after(&mut self) {
        self.after += 1;
    }

    /// Marks the start of the first step, or of the next one after a pause.
    pub fn restart(&mut self) {
        self.last = Instant::now();
    }

    /// Counts a step that just ended.
    pub fn step(&mut self) {
        let seconds = self.lap();
        self.add_step(seconds);
    }

    fn add_step(&mut self, seconds: f64) {
        self.seen += 1;
        if self.seen > WARM_UP {
            self.recent.push_back(seconds);
            if self.recent.len() > WINDOW {
                self.recent.pop_front();
            }
        }
    }

    /// Adds the time since then to the evaluations, such as that of saving a checkpoint.
    pub fn pause(&mut self) {
        self.evaluating += self.lap();
    }

    /// Counts an evaluation that just ended.
    pub fn evaluation(&mut self) {
        self.evaluating += self.lap();
        self.evaluations += 1;
    }

    fn lap(&mut self) -> f64 {
        let now = Instant::now();
        std::mem::replace(&mut self.last, now).elapsed().as_secs_f64()
    }

    /// Returns the time left after a step; `None` while too few steps were timed.
    pub fn left(&self, step: u64) -> Option<Duration> {
        if self.recent.len() < 5 {
            return None;
        }
        let mean = self.recent.iter().sum::<f64>() / self.recent.len() as f64;
        let steps = self.steps.saturating_sub(step);
        // There is one at the last step in any case.
        let during = self.steps.div_ceil(self.every).saturating_sub(step / self.every);
        let each = match self.evaluations {
            0 => SHARE * mean * self.every.min(self.steps) as f64,
            count => self.evaluating / f64::from(count),
        };
        let seconds = mean * steps as f64 + each * (during + self.after) as f64;
        Duration::try_from_secs_f64(seconds).ok()
    }
}

/// Formats a duration in its two largest units.
pub fn readable(time: Duration) -> String {
    match time.as_secs() {
        s @ 0..60 => format!("{s} s"),
        s @ 60..600 => format!("{} min {} s", s / 60, s % 60),
        s @ 600..3600 => format!("{} min", (s + 30) / 60),
        s => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_evaluations_are_both_counted() {
        let mut eta = Eta::new(100, 10);
        (0..3).for_each(|_| eta.step());
        assert_eq!(eta.left(3), None);
        eta.recent.extend([0.5; 10]);
        // 80 steps of half a second; no evaluation was timed yet, so that the share is assumed.
        assert_eq!(eta.left(20).unwrap().as_secs_f64(), 46.0);
        (eta.evaluations, eta.evaluating) = (2, 4.0);
        // And eight evaluations of two seconds.
        assert_eq!(eta.left(20).unwrap().as_secs_f64(), 56.0);
        assert_eq!(eta.left(100).unwrap().as_secs_f64(), 0.0);
    }

    /// Steps of different batches, slow ones at the beginning; evaluations from none to half of
    /// the time of the steps.
    #[test]
    fn after_twenty_steps_the_estimate_is_within_30_percent() {
        for (steps, every, share, after) in [
            (300, 38, 0.05, 2),
            (300, 100, 0.25, 0),
            (2500, 250, 0.1, 0),
            (5000, 500, 0.45, 1),
            (1000, 1000, 0.02, 0),
            (130, 60, 0.3, 1),
        ] {
            let mut eta = Eta::new(steps, every);
            (0..after).for_each(|_| eta.evaluates_after());
            let spread = |step: u64| 0.5 + (step * 7919 % 101) as f64 / 100.0;
            let seconds = |step: u64| if step <= WARM_UP { 3.0 } else { 0.2 * spread(step) };
            let evaluation = share * 0.2 * every as f64;
            (1..=20).for_each(|step| eta.add_step(seconds(step)));
            let left: f64 = (21..=steps).map(seconds).sum();
            let truth = left + evaluation * (steps.div_ceil(every) + after) as f64;
            let ratio = eta.left(20).unwrap().as_secs_f64() / truth;
            assert!((0.7..1.3).contains(&ratio), "{steps} {every} {share} {after}: {ratio}");
        }
    }

    #[test]
    fn durations_are_readable() {
        for (seconds, wanted) in
            [(5, "5 s"), (75, "1 min 15 s"), (899, "15 min"), (3720, "1 h 2 min")]
        {
            assert_eq!(readable(Duration::from_secs(seconds)), wanted);
        }
    }
}
