//! The section `[train]` of a recipe.

use super::{Curve, Schedule};
use regard_attention::AdamWConfig;
use regard_models::{Error, Result};
use serde::{Deserialize, Serialize};

/// How to train.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Steps of the optimiser.
    pub steps: u64,
    /// Tokens in a batch, on its longer side, with padding.
    pub batch_tokens: usize,
    /// Batches whose gradients make one step.
    pub accumulate: usize,
    /// The highest learning rate.
    pub lr: f64,
    /// Steps until it is reached.
    pub warmup: u64,
    /// How it falls then.
    pub schedule: Curve,
    /// The share of the peak that it falls to at the end (cosine, linear).
    pub floor: f64,
    /// `β₁` of AdamW.
    pub beta1: f32,
    /// `β₂` of AdamW.
    pub beta2: f32,
    /// Of matrices.
    pub weight_decay: f32,
    /// Gradients with a larger norm are scaled down to it; 0 for never.
    pub clip: f32,
    /// The share of each word's probability that goes to all words.
    pub label_smoothing: f32,
    /// Weight of REINFORCE's term beside the cross-entropy.
    pub reinforce: f32,
    /// Steps between lines of `metrics.jsonl`.
    pub log_every: u64,
    /// Steps between evaluations.
    pub eval_every: u64,
    /// Steps between checkpoints; 0 for one after each evaluation.
    pub save_every: u64,
    /// Checkpoints to keep, besides the best.
    pub keep: usize,
    /// Evaluations without a new best after which training stops; 0 for never.
    pub patience: usize,
    /// Last checkpoints whose mean is tried as the final model; 0 or 1 for none.
    pub average: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            steps: 10_000,
            batch_tokens: 4096,
            accumulate: 1,
            lr: 1e-3,
            warmup: 1000,
            schedule: Curve::InverseSqrt,
            floor: 0.0,
            beta1: 0.9,
            beta2: 0.98,
            weight_decay: 0.0,
            clip: 1.0,
            label_smoothing: 0.1,
            reinforce: 1.0,
            log_every: 50,
            eval_every: 1000,
            save_every: 0,
            keep: 5,
            patience: 0,
            average: 0,
        }
    }
}

/// More than any run takes; products of it with other settings stay below 2^63.
const MOST_STEPS: u64 = 1 << 40;
const MOST_CHECKPOINTS: usize = 1 << 16;

impl Options {
    /// The learning rates.
    pub fn rates(&self) -> Schedule {
        let Options { lr: peak, warmup, steps, schedule: curve, floor, .. } = *self;
        Schedule { peak, warmup, steps, curve, floor }
    }

    /// The optimiser.
    pub fn adamw(&self) -> AdamWConfig {
        let Options { beta1, beta2, weight_decay, clip, .. } = *self;
        let max_norm = (clip > 0.0).then_some(clip);
        AdamWConfig { beta1, beta2, weight_decay, max_norm, ..AdamWConfig::default() }
    }

    /// Finds numbers that cannot be meant.
    pub fn check(&self) -> Result<()> {
        let positive = [
            ("steps", self.steps, MOST_STEPS),
            ("batch_tokens", self.batch_tokens as u64, 1 << 30),
            // The batches of a step are drawn before the first of them is computed.
            ("accumulate", self.accumulate as u64, 1 << 16),
            ("log_every", self.log_every, MOST_STEPS),
            ("eval_every", self.eval_every, MOST_STEPS),
            ("keep", self.keep as u64, MOST_CHECKPOINTS as u64),
        ];
        for (name, value, most) in positive {
            if !(1..=most).contains(&value) {
                let message = format!("train.{name}: got {value}, need 1 to {most}");
                return Err(Error::invalid(message));
            }
        }
        if self.average > MOST_CHECKPOINTS {
            return Err(Error::invalid(format!(
                "train.average: got {}, need 0 to {MOST_CHECKPOINTS}",
                self.average
            )));
        }
        let shares = [
            ("label_smoothing", self.label_smoothing),
            ("beta1", self.beta1),
            ("beta2", self.beta2),
        ];
        for (name, value) in shares {
            if !(0.0..1.0).contains(&value) {
                let message = format!("train.{name}: got {value}, need at least 0 and below 1");
                return Err(Error::invalid(message));
            }
        }
        if !(0.0..=1.0).contains(&self.floor) {
            let message = format!("train.floor: got {}, need 0 to 1", self.floor);
            return Err(Error::invalid(message));
        }
        if !(self.lr.is_finite() && self.lr > 0.0) {
            return Err(Error::invalid(format!("train.lr: got {}, need more than 0", self.lr)));
        }
        Ok(())
    }
}
