//! The time of a decoding step, split into its parts.

use anyhow::Result;
use regard_tasks::speed::{Part, PartTimes};
use serde::Serialize;
use std::io::Write;

/// Time of a decoding step.
#[derive(Serialize)]
pub struct StepSplit {
    /// Number of steps, of all batches.
    steps: u64,
    /// Microseconds per step of each part, summed over threads.
    parts: Vec<StepPart>,
}

#[derive(Serialize)]
struct StepPart {
    part: &'static str,
    us_per_step: f64,
}

impl StepSplit {
    /// Divides times by the number of steps; `None` without any.
    pub fn of(found: &PartTimes) -> Option<StepSplit> {
        let each = |part: Part| StepPart {
            part: part.name(),
            us_per_step: 1e6 * found.times[part as usize].as_secs_f64() / found.steps as f64,
        };
        let parts = Part::ALL.map(each).into_iter().filter(|part| part.us_per_step > 0.0).collect();
        (found.steps > 0).then_some(StepSplit { steps: found.steps, parts })
    }

    /// Writes a line.
    pub fn write(&self, out: &mut dyn Write) -> Result<()> {
        let all: f64 = self.parts.iter().map(|part| part.us_per_step).sum();
        write!(out, "{} steps of {all:.1} µs, summed over threads", self.steps)?;
        for (number, StepPart { part, us_per_step }) in self.parts.iter().enumerate() {
            let before = if number == 0 { ":" } else { "," };
            let percent = 100.0 * us_per_step / all;
            write!(out, "{before} {part} {us_per_step:.1} ({percent:.0} %)")?;
        }
        writeln!(out)?;
        Ok(())
    }
}
