//! Learning rate schedules.

use serde::{Deserialize, Serialize};

/// Learning rate curve after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScheduleKind {
    /// Constant at the peak.
    Constant,
    /// Falls with `1/√step` (Vaswani et al. 2017).
    #[default]
    InverseSqrt,
    /// Falls along half a cosine, to 0 (or `floor`) at the last step.
    Cosine,
    /// Falls linearly, to 0 (or `floor`) at the last step.
    Linear,
}

/// Linear warm-up, then a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// Peak learning rate.
    pub peak: f64,
    /// Number of warm-up steps, in which the rate rises linearly from 0.
    pub warmup: u64,
    /// Total number of steps, including the warm-up.
    pub steps: u64,
    /// Curve after the warm-up.
    pub curve: ScheduleKind,
    /// Final rate as a fraction of the peak (cosine, linear).
    pub floor: f64,
}

impl Schedule {
    /// Computes the learning rate of a step; the first step is 1.
    pub fn rate(&self, step: u64) -> f64 {
        let Schedule { peak, warmup, steps, curve, floor } = *self;
        if step < warmup {
            return peak * step as f64 / warmup as f64;
        }
        let gone = (step - warmup) as f64 / (steps.saturating_sub(warmup)).max(1) as f64;
        let gone = gone.min(1.0);
        let share = match curve {
            ScheduleKind::Constant => 1.0,
            ScheduleKind::InverseSqrt => (warmup.max(1) as f64 / step.max(1) as f64).sqrt(),
            ScheduleKind::Cosine => {
                floor + (1.0 - floor) * 0.5 * (1.0 + (std::f64::consts::PI * gone).cos())
            }
            ScheduleKind::Linear => floor + (1.0 - floor) * (1.0 - gone),
        };
        peak * share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates() {
        let schedule = |curve| Schedule { peak: 2.0, warmup: 10, steps: 110, curve, floor: 0.1 };
        let rows = [
            (ScheduleKind::Constant, 5, 1.0),
            (ScheduleKind::Constant, 100, 2.0),
            (ScheduleKind::InverseSqrt, 10, 2.0),
            (ScheduleKind::InverseSqrt, 40, 1.0),
            (ScheduleKind::Cosine, 60, 2.0 * 0.55),
            (ScheduleKind::Cosine, 110, 0.2),
            (ScheduleKind::Linear, 60, 2.0 * 0.55),
            (ScheduleKind::Linear, 1000, 0.2),
        ];
        for (curve, step, rate) in rows {
            let got = schedule(curve).rate(step);
            assert!((got - rate).abs() < 1e-12, "{curve:?} at {step}: {got}, not {rate}");
        }
    }
}
