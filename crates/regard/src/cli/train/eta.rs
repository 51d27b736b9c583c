//! Estimate of the time that a run still takes.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Steps at the start that are not counted: they allocate buffers and fill caches.
const WARM_UP: u64 = 3;
/// Number of steps that the mean is taken over.
const WINDOW: usize = 200;

/// Times of steps and evaluations of a run.
pub struct Eta {
    steps: u64,
    every: u64,
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
        Eta { steps, every, last, seen: 0, recent, evaluations: 0, evaluating }
    }

    /// Marks the start of the first step, or of the next one after a pause.
    pub fn restart(&mut self) {
        self.last = Instant::now();
    }

    /// Counts a step that just ended.
    pub fn step(&mut self) {
        let seconds = self.lap();
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
        let evaluations = (self.steps / self.every).saturating_sub(step / self.every);
        let each = self.evaluating / f64::from(self.evaluations.max(1));
        let seconds = mean * steps as f64 + each * evaluations as f64;
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
        // 80 steps of half a second; no evaluation was timed yet.
        assert_eq!(eta.left(20).unwrap().as_secs_f64(), 40.0);
        (eta.evaluations, eta.evaluating) = (2, 4.0);
        // And eight evaluations of two seconds.
        assert_eq!(eta.left(20).unwrap().as_secs_f64(), 56.0);
        assert_eq!(eta.left(100).unwrap().as_secs_f64(), 0.0);
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
