//! The training loop.

use super::checksums::verify_checksums;
use super::lock::Lock;
use super::log::Log;
use super::record::{self, Record, SettingDifference};
use super::state::{self, Damage, RunState};
use super::{Evaluation, Learner, TrainOptions};
use crate::data::{Batches, Position};
use regard_attention::{AdamW, Mode};
use regard_models::checkpoint::Arrays;
use regard_models::{Error, Result};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Instant;

/// Number of consecutive steps with non-finite gradients after which a run fails.
const LOST: usize = 20;

/// A training run.
pub struct Run<'a> {
    /// Folder of the run.
    pub folder: &'a Path,
    /// Options of the training loop.
    pub options: &'a TrainOptions,
    /// Seed of all randomness: batches, dropout.
    pub seed: u64,
    /// Whether to resume from the folder's newest undamaged checkpoint.
    pub resume: bool,
    /// Recipe and data files: written when the run starts, and compared when it is resumed.
    pub record: &'a Record,
    /// Called with each event; returns whether to continue.
    pub watch: &'a mut dyn FnMut(Event) -> bool,
}

/// An event of a run.
pub enum Event<'a> {
    /// The data of a recipe are about to be read.
    Reads {
        /// Name of the recipe.
        recipe: &'a str,
        /// Name of the data set.
        data: &'a str,
    },
    /// The data were read and the model was created.
    Prepared {
        /// Summary of data and model.
        about: &'a str,
        /// Unit of [`Learner::tokens`].
        counts: &'static str,
    },
    /// Damaged checkpoints, newest first; the run resumes from the newest undamaged one.
    Damaged(&'a [Damage]),
    /// Settings that differ, as allowed, from those the run was started with.
    Changed(&'a [SettingDifference]),
    /// The run resumes after this step.
    Resumed(u64),
    /// A training step was completed.
    Step {
        /// Number of the step, from 1.
        step: u64,
        /// Mean loss of its batch.
        loss: f64,
        /// Learning rate.
        lr: f64,
        /// Number of tokens of its batch.
        tokens: usize,
    },
    /// The gradients of this step were not finite; the parameters did not change.
    Skipped(u64),
    /// The model was evaluated.
    Evaluated {
        /// Number of steps completed.
        step: u64,
        /// Metrics and model selection metric.
        evaluation: &'a Evaluation,
        /// Whether it is the best model so far.
        best: bool,
    },
    /// The average of the last checkpoints was evaluated.
    Averaged {
        /// Number of averaged checkpoints.
        checkpoints: usize,
        /// Metrics and model selection metric.
        evaluation: &'a Evaluation,
        /// Whether it is better than the best checkpoint.
        best: bool,
    },
    /// A checkpoint of this step was written.
    Saved(u64),
}

/// End of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum TrainOutcome {
    /// All steps were completed.
    Done {
        /// Number of the last step.
        step: u64,
        /// Model selection metric of the saved model.
        best: f64,
    },
    /// Early stopping: no improvement within the patience.
    Stopped {
        /// Number of the last step.
        step: u64,
        /// Model selection metric of the saved model.
        best: f64,
    },
    /// The callback requested a stop; the run can be resumed.
    Interrupted {
        /// Number of the last step.
        step: u64,
    },
}

/// State of a running run.
struct Going {
    adamw: AdamW,
    place: RunState,
    log: Log,
    /// Until the first step: parameters whose optimiser moments a checkpoint has.
    remembered: Option<BTreeSet<String>>,
    /// Whether to continue; false once the callback requested a stop.
    on: bool,
}

impl Run<'_> {
    /// Trains, and writes the best model to the folder `model` inside the run's folder.
    pub fn train(mut self, learner: &mut dyn Learner) -> Result<TrainOutcome> {
        let options = self.options;
        options.check()?;
        state::check_folder(self.folder, self.resume)?;
        fs::create_dir_all(self.folder).map_err(Error::io(self.folder))?;
        let _lock = Lock::acquire(self.folder)?;
        // Again: another process may have started a run here before the lock was acquired.
        state::check_run(self.folder, self.resume)?;
        state::clean(self.folder)?;
        let batches = Batches::new(learner.lengths(), options.batch_tokens, self.seed)?;
        let mut going = self.begin(learner)?;
        let mut next = batches.from(going.place.position);
        let stale = |place: &RunState| options.patience > 0 && place.stale >= options.patience;
        while going.on && going.place.step < options.steps && !stale(&going.place) {
            let parts: Vec<_> = next.by_ref().take(options.accumulate).collect();
            self.step(learner, &mut going, &parts)?;
            let step = going.place.step;
            let last = step == options.steps;
            // Also when asked to stop: otherwise the resumed run would differ.
            let evaluate = last || step.is_multiple_of(options.eval_every);
            let is_best = evaluate && self.evaluate(learner, &mut going)?;
            let save = match options.save_every {
                0 => evaluate,
                every => last || step.is_multiple_of(every),
            };
            if save || is_best || !going.on {
                self.save(learner, &mut going)?;
            }
        }
        let (step, stopped) = (going.place.step, stale(&going.place));
        if !going.on {
            return Ok(TrainOutcome::Interrupted { step });
        }
        let best = self.finish(learner, &mut going)?;
        Ok(if stopped {
            TrainOutcome::Stopped { step, best }
        } else {
            TrainOutcome::Done { step, best }
        })
    }

    fn begin(&mut self, learner: &mut dyn Learner) -> Result<Going> {
        let config = self.options.adamw();
        let is_run = record::is_run(self.folder);
        if self.resume && !is_run && !state::checkpoints(self.folder).is_empty() {
            let message = format!(
                "has checkpoints but no {}, so its settings are not known; a run cannot \
                 be resumed without it",
                record::RECIPE
            );
            return Err(Error::file(self.folder, message));
        }
        let changed = match self.resume && is_run {
            true => record::resume(self.folder, self.record)?,
            false => {
                record::begin(self.folder, self.record)?;
                vec![]
            }
        };
        let (adamw, place) = match self.whole_checkpoint()? {
            Some(step) => {
                let (adamw, mut place) = state::load(self.folder, step, learner)?;
                place.forget_best_unless(|step| state::exists(self.folder, step));
                // The run may have been killed between writing a checkpoint and marking it as the
                // best.
                if let (Some(step), Some(bits)) = (place.best_step, place.best_bits) {
                    state::save_best(self.folder, step, f64::from_bits(bits))?;
                }
                (AdamW::resume(config, adamw), place)
            }
            // A run that was killed before its first checkpoint starts again.
            None => (AdamW::new(config), RunState::default()),
        };
        record::change(self.folder, place.step, &changed)?;
        let log = Log::open(self.folder, self.resume.then_some(place.step))?;
        let mut on = changed.is_empty() || (self.watch)(Event::Changed(&changed));
        on &= place.step == 0 || (self.watch)(Event::Resumed(place.step));
        let remembered = adamw.state().moments.keys().cloned().collect();
        let remembered = (place.step > 0).then_some(remembered);
        Ok(Going { adamw, place, log, remembered, on })
    }

    /// Returns the step of the newest undamaged checkpoint, to resume from.
    fn whole_checkpoint(&mut self) -> Result<Option<u64>> {
        if !self.resume {
            return Ok(None);
        }
        let (whole, damaged) = state::newest_whole(self.folder);
        if whole.is_none() && damaged.is_empty() && state::is_done(self.folder) {
            // Starting again would replace a finished model.
            let message = "the run is finished, and has no checkpoint to resume from";
            return Err(Error::file(self.folder, message));
        }
        let Some(first) = damaged.first() else { return Ok(whole) };
        if whole.is_none() {
            let path = self.folder.join(format!("checkpoint-{}", first.step));
            let message = format!("{}; no other checkpoint of the run is undamaged", first.why);
            return Err(Error::file(path, message));
        }
        (self.watch)(Event::Damaged(&damaged));
        state::set_aside(self.folder, &damaged)?;
        Ok(whole)
    }

    /// Runs one step, with its events and log lines.
    fn step(
        &mut self,
        learner: &mut dyn Learner,
        going: &mut Going,
        parts: &[(Vec<usize>, Position)],
    ) -> Result<()> {
        let (began, step) = (Instant::now(), going.place.step + 1);
        let lr = self.options.rates().rate(step);
        let (loss, tokens) = self.descend(learner, &mut going.adamw, step, lr, parts);
        let (place, norm) = (&mut going.place, going.adamw.norm());
        place.position = parts.last().expect("batches have no end").1;
        place.step = step;
        place.seconds += began.elapsed().as_secs_f64();
        if step == 1 {
            every_parameter_learns(&going.adamw, learner)?;
        }
        if let Some(remembered) = going.remembered.take() {
            every_moment_was_there(&going.adamw, &remembered)?;
        }
        if loss.is_finite() {
            let sum = f64::from_bits(place.loss_bits) + loss * tokens as f64;
            place.loss_bits = sum.to_bits();
            place.tokens += tokens as u64;
            place.all_tokens += tokens as u64;
        }
        if norm.is_finite() {
            place.lost = 0;
        } else {
            place.lost += 1;
            going.on &= (self.watch)(Event::Skipped(step));
            if place.lost >= LOST {
                return Err(Error::invalid(format!(
                    "step {step}: the last {LOST} gradients were not finite, so \
                     training stops. Try a lower train.lr, or clip gradients (train.clip)"
                )));
            }
        }
        going.on &= (self.watch)(Event::Step { step, loss, lr, tokens });
        if step.is_multiple_of(self.options.log_every) || step == self.options.steps {
            let mean = f64::from_bits(place.loss_bits) / place.tokens as f64;
            let values = [("loss", mean), ("lr", lr), ("grad_norm", f64::from(norm))];
            going.log.scalars(step, &values)?;
            (place.loss_bits, place.tokens) = (0, 0);
        }
        Ok(())
    }

    /// Updates the model with the mean loss over all tokens of the accumulated batches.
    fn descend(
        &mut self,
        learner: &mut dyn Learner,
        adamw: &mut AdamW,
        step: u64,
        lr: f64,
        parts: &[(Vec<usize>, Position)],
    ) -> (f64, usize) {
        let all: usize = parts.iter().map(|(examples, _)| learner.tokens(examples)).sum();
        let (mut mean, count) = (0.0, parts.len() as u64);
        for (i, (examples, _)) in parts.iter().enumerate() {
            // Each batch has its own dropout.
            let draw = (step - 1) * count + i as u64 + 1;
            let loss = learner.loss(examples, Mode::Train { seed: self.seed, step: draw });
            let share = loss.tokens as f64 / all.max(1) as f64;
            mean += share * f64::from(loss.value.clone().into_scalar::<f32>());
            let value = if parts.len() == 1 { loss.value } else { loss.value * share as f32 };
            let grads = value.backward();
            match i + 1 == parts.len() {
                false => learner.network().accumulate(adamw, grads),
                true => learner.network_mut().step(adamw, lr, grads),
            }
        }
        (mean, all)
    }

    /// Evaluates the model; returns whether it is the best so far.
    fn evaluate(&mut self, learner: &dyn Learner, going: &mut Going) -> Result<bool> {
        let evaluation = learner.evaluate()?;
        let place = &mut going.place;
        let best = place.judge(&evaluation);
        let mut values: Vec<(&str, f64)> =
            evaluation.measures.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        values.push(("tokens", place.all_tokens as f64));
        values.push(("seconds", place.seconds));
        going.log.scalars(place.step, &values)?;
        let event = Event::Evaluated { step: place.step, evaluation: &evaluation, best };
        going.on &= (self.watch)(event);
        Ok(best)
    }

    fn save(&mut self, learner: &dyn Learner, going: &mut Going) -> Result<()> {
        let place = &going.place;
        state::save(self.folder, learner, going.adamw.state(), place)?;
        if let (Some(step), Some(bits)) = (place.best_step, place.best_bits) {
            state::save_best(self.folder, step, f64::from_bits(bits))?;
        }
        state::prune(self.folder, self.options.keep.max(self.options.average))?;
        going.on &= (self.watch)(Event::Saved(place.step));
        Ok(())
    }

    /// Saves the best model: the best checkpoint, or the average of the last ones.
    fn finish(&mut self, learner: &mut dyn Learner, going: &mut Going) -> Result<f64> {
        let mut best = going.place.best_bits.map(f64::from_bits);
        let steps = state::checkpoints(self.folder);
        let last = steps.len().saturating_sub(self.options.average);
        let read = |learner: &dyn Learner, step: u64| {
            let folder = self.folder.join(format!("checkpoint-{step}"));
            verify_checksums(&folder).map_err(|why| Error::file(&folder, why))?;
            learner.read(&folder)
        };
        let best_step = state::best(self.folder);
        let mut kept = best_step.map(|step| read(learner, step)).transpose()?;
        if self.options.average > 1 && steps.len() - last > 1 {
            let mean = mean(steps[last..].iter().map(|step| read(learner, *step)))?;
            learner.restore(mean.clone())?;
            let evaluation = learner.evaluate()?;
            let better = evaluation.beats(best);
            let names: Vec<_> =
                evaluation.measures.iter().map(|(n, v)| (format!("averaged_{n}"), *v)).collect();
            let values: Vec<(&str, f64)> = names.iter().map(|(n, v)| (n.as_str(), *v)).collect();
            going.log.scalars(going.place.step, &values)?;
            let checkpoints = steps.len() - last;
            (self.watch)(Event::Averaged { checkpoints, evaluation: &evaluation, best: better });
            if better {
                best = Some(evaluation.decides);
                kept = Some(mean);
            }
        }
        if let Some(weights) = kept {
            learner.restore(weights)?;
        }
        state::save_model(self.folder, learner)?;
        Ok(best.unwrap_or(f64::NAN))
    }
}

/// Returns an error if a parameter received no gradient in the first step, unless that is allowed.
fn every_parameter_learns(adamw: &AdamW, learner: &dyn Learner) -> Result<()> {
    let without = adamw
        .without_gradient()
        .iter()
        .filter(|name| !learner.network().allows_missing_gradient(name));
    match &without.map(String::as_str).collect::<Vec<_>>()[..] {
        [] => Ok(()),
        names => Err(Error::invalid(format!(
            "after the first step these parameters have no gradient, so they cannot be trained: {}",
            names.join(", ")
        ))),
    }
}

/// Returns an error if a parameter has no moments in the checkpoint (saved under another name): its
/// moments would start from zero, and the run would differ.
fn every_moment_was_there(adamw: &AdamW, remembered: &BTreeSet<String>) -> Result<()> {
    let is_new = |name: &&String| !remembered.contains(*name);
    let new: Vec<&str> = adamw.state().moments.keys().filter(is_new).map(String::as_str).collect();
    if new.is_empty() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "the checkpoint has no moments of the optimiser for {}: it was written by another version \
         of the model and cannot be resumed; start again in another folder",
        new.join(", ")
    )))
}

/// Averages several checkpoints, in double precision.
fn mean(all: impl Iterator<Item = Result<Arrays>>) -> Result<Arrays> {
    let mut sums: std::collections::BTreeMap<String, Vec<f64>> = Default::default();
    let (mut last, mut count) = (Arrays::new(), 0.0);
    for arrays in all {
        last = arrays?;
        count += 1.0;
        for (name, array) in &last {
            let Some(floats) = array.floats() else { continue };
            let sum = sums.entry(name.clone()).or_insert_with(|| vec![0.0; floats.len()]);
            sum.iter_mut().zip(&floats[..]).for_each(|(sum, x)| *sum += f64::from(*x));
        }
    }
    for (name, array) in &mut last {
        let Some(sum) = sums.get(name) else { continue };
        array.change(|all| {
            all.iter_mut().zip(sum).for_each(|(x, sum)| *x = (*sum / count) as f32);
        });
    }
    Ok(last)
}
