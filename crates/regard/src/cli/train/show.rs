//! Progress output of a run.

use super::eta::{Eta, readable};
use crate::cli::say::say;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use regard_tasks::train::{Damage, Event, SettingDifference, TrainOptions};
use std::io::IsTerminal;
use std::time::Instant;

/// Progress of a run: a bar on a terminal, lines elsewhere.
pub struct ProgressPrinter {
    pub bar: ProgressBar,
    lines: bool,
    /// Whether losses and evaluations are left out, as for several seeds.
    pub quiet: bool,
    /// Whether an earlier run has already printed the data summary.
    pub repeated: bool,
    every: u64,
    /// Unit of the speed, such as `tokens`.
    pub counts: &'static str,
    pub began: Instant,
    since: (Instant, u64, f64, u64),
    eta: Eta,
}

impl ProgressPrinter {
    pub fn new(options: &TrainOptions) -> ProgressPrinter {
        let lines = !std::io::stderr().is_terminal();
        let bar = ProgressBar::with_draw_target(
            Some(options.steps),
            if lines { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() },
        );
        let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let now = Instant::now();
        let (every, since) = (options.log_every, (now, 0, 0.0, 0));
        let mut eta = Eta::new(options.steps, options.eval_every);
        if options.average > 1 {
            eta.evaluates_after();
        }
        ProgressPrinter {
            bar,
            lines,
            quiet: false,
            repeated: false,
            every,
            counts: "tokens",
            began: now,
            since,
            eta,
        }
    }

    /// Counts the evaluation of the test part, which follows the training, as part of its time.
    pub fn evaluates_after(&mut self) {
        self.eta.evaluates_after();
    }

    pub fn say(&self, line: String) {
        match self.lines {
            true => say(line),
            false => self.bar.println(line),
        }
    }

    /// Prints the data summary, once for several runs of one recipe.
    pub fn about(&self, line: String) {
        if !self.repeated {
            self.say(line);
        }
    }

    pub fn event(&mut self, event: Event) {
        match event {
            Event::Damaged(checkpoints) => {
                for Damage { step, why } in checkpoints {
                    self.say(format!("checkpoint-{step}: {why}; it is set aside and not used"));
                }
            }
            Event::Changed(settings) => {
                for SettingDifference { key, then, now } in settings {
                    let show = |value: &Option<_>| match value {
                        Some(value) => format!("{value}"),
                        None => "nothing".to_string(),
                    };
                    self.say(format!("{key}: {} instead of {}", show(now), show(then)));
                }
            }
            Event::Resumed(step) => {
                self.bar.set_position(step);
                self.eta.restart();
                self.say(format!("continuing from step {step}"));
            }
            Event::Step { step, loss, lr, tokens } => {
                self.eta.step();
                self.since.1 += tokens as u64;
                self.since.2 += loss;
                self.since.3 += 1;
                self.bar.set_position(step);
                let line = self.lines && !self.quiet && step.is_multiple_of(self.every);
                if !line && (self.lines || !step.is_multiple_of(self.every.min(10))) {
                    return;
                }
                let (from, tokens, sum, steps) = self.since;
                let rate = tokens as f64 / from.elapsed().as_secs_f64();
                let mean = sum / steps as f64;
                let of = self.counts;
                let left = self.eta.left(step).map(|left| format!(" · {} left", readable(left)));
                let left = left.unwrap_or_default();
                let message = format!("loss {mean:.3} · lr {lr:.2e} · {rate:.0} {of}/s");
                if line {
                    let minutes = self.began.elapsed().as_secs_f64() / 60.0;
                    say(format_args!("{step:>7} {message} · {minutes:.1} min{left}"));
                }
                let message = message + &left;
                self.bar.set_message(message);
                self.since = (Instant::now(), 0, 0.0, 0);
            }
            Event::Skipped(step) => {
                self.say(format!("step {step}: gradients are not finite; the update is skipped"));
            }
            Event::Evaluated { step, evaluation, best } => {
                self.eta.evaluation();
                if !self.quiet {
                    let mark = if best { " (best)" } else { "" };
                    self.say(format!("step {step}: {}{mark}", measures(&evaluation.measures)));
                    if let Some(sample) = &evaluation.sample {
                        self.say(format!("  {sample}"));
                    }
                }
                self.since = (Instant::now(), 0, 0.0, 0);
            }
            Event::Averaged { .. } if self.quiet => {}
            Event::Averaged { checkpoints, evaluation, best } => {
                let mark = if best { " (best)" } else { "" };
                let measures = measures(&evaluation.measures);
                self.say(format!("average of {checkpoints} checkpoints: {measures}{mark}"));
            }
            // Saving belongs to the evaluation that it follows.
            Event::Saved(_) => self.eta.pause(),
            Event::Reads { .. } | Event::Prepared { .. } => {}
        }
    }
}

fn measures(all: &[(String, f64)]) -> String {
    let each = all.iter().map(|(name, value)| format!("{name} {value:.4}"));
    each.collect::<Vec<_>>().join(" · ")
}
