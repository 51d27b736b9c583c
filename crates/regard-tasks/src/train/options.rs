//! The section `[train]` of a recipe.

use super::{Schedule, ScheduleKind};
use regard_attention::AdamWConfig;
use regard_models::{Error, Result};
use serde::{Deserialize, Serialize};

/// Options of the training loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainOptions {
    /// Number of optimiser steps.
    pub steps: u64,
    /// Maximum number of tokens in a batch including padding, counted on its longer side (source or
    /// target).
    pub batch_tokens: usize,
    /// Number of batches whose gradients are accumulated for one step.
    pub accumulate: usize,
    /// Peak learning rate.
    pub lr: f64,
    /// Number of warm-up steps, in which the rate rises linearly from 0.
    pub warmup: u64,
    /// Learning rate curve after the warm-up.
    pub schedule: ScheduleKind,
    /// Final learning rate as a fraction of the peak (cosine, linear).
    pub floor: f64,
    /// `β₁` of AdamW.
    pub beta1: f32,
    /// `β₂` of AdamW.
    pub beta2: f32,
    /// Weight decay of AdamW, applied to matrices only.
    pub weight_decay: f32,
    /// Maximum gradient norm: larger gradients are scaled down to it; 0 for no clipping.
    pub clip: f32,
    /// Label smoothing: fraction of the target probability spread over the vocabulary.
    pub label_smoothing: f32,
    /// Weight of the REINFORCE loss added to the cross-entropy.
    pub reinforce: f32,
    /// Number of steps between lines of `metrics.jsonl`.
    pub log_every: u64,
    /// Number of steps between evaluations.
    pub eval_every: u64,
    /// Number of steps between checkpoints; 0 to save after each evaluation.
    pub save_every: u64,
    /// Number of checkpoints to keep, besides the best.
    pub keep: usize,
    /// Number of evaluations without improvement before early stopping; 0 for never.
    pub patience: usize,
    /// Number of last checkpoints whose average is evaluated as the final model; 0 or 1 for none.
    pub average: usize,
}

impl Default for TrainOptions {
    fn default() -> TrainOptions {
        TrainOptions {
            steps: 10_000,
            batch_tokens: 4096,
            accumulate: 1,
            lr: 1e-3,
            warmup: 1000,
            schedule: ScheduleKind::InverseSqrt,
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

/// Maximum number of steps; products with other settings stay below 2^63.
const MOST_STEPS: u64 = 1 << 40;
const MOST_CHECKPOINTS: usize = 1 << 16;

impl TrainOptions {
    /// Returns the learning rate schedule.
    pub fn rates(&self) -> Schedule {
        let TrainOptions { lr: peak, warmup, steps, schedule: curve, floor, .. } = *self;
        Schedule { peak, warmup, steps, curve, floor }
    }

    /// Returns the configuration of the optimiser.
    pub fn adamw(&self) -> AdamWConfig {
        let TrainOptions { beta1, beta2, weight_decay, clip, .. } = *self;
        let max_norm = (clip > 0.0).then_some(clip);
        AdamWConfig { beta1, beta2, weight_decay, max_norm, ..AdamWConfig::default() }
    }

    /// Checks that all values are in range.
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
