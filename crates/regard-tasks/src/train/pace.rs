//! Times training steps of a recipe, without a run's folder.

use super::{Learner, TrainOptions};
use crate::data::{Batches, Position};
use regard_attention::{AdamW, Mode};
use regard_models::Result;
use std::time::Instant;

/// Measurement of one training step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Duration: batch, forward, loss, backward, clipping, AdamW.
    pub seconds: f64,
    /// Size of its batch, in the unit of [`Learner::counts`].
    pub tokens: usize,
    /// Mean loss of the batch.
    pub loss: f64,
}

/// Runs `steps` training steps as a run does, and times each.
pub fn pace(
    learner: &mut dyn Learner,
    options: &TrainOptions,
    seed: u64,
    steps: usize,
) -> Result<Vec<Pace>> {
    options.check()?;
    let batches = Batches::new(learner.lengths(), options.batch_tokens, seed)?;
    let mut adamw = AdamW::new(options.adamw());
    let mut found = Vec::with_capacity(steps);
    let each = (1..).zip(batches.from(Position::default()));
    for (step, (examples, _)) in each.take(steps) {
        let began = Instant::now();
        let loss = learner.loss(&examples, Mode::Train { seed, step });
        let value = f64::from(loss.value.clone().into_scalar::<f32>());
        let grads = loss.value.backward();
        learner.network_mut().step(&mut adamw, options.rates().rate(step), grads);
        let seconds = began.elapsed().as_secs_f64();
        found.push(Pace { seconds, tokens: loss.tokens, loss: value });
    }
    Ok(found)
}
