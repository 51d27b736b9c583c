//! From the logits of a row to the few tokens that it may go on with.

use super::constrain::{Rules, Taken};
use regard_attention::ops::Scan;

/// A token that a row may go on with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Choice {
    pub token: u32,
    /// What it is chosen by, after the penalties: see [`Value`].
    pub value: f32,
    /// What the model gave to it.
    pub log_prob: f32,
}

/// What penalties and temperature are applied to. It differs in `generate`, so it does here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    /// Greedy search and sampling.
    Logit,
    /// Beam search.
    LogProb,
}

/// The working memory of a row. It is kept from step to step.
#[derive(Debug, Default)]
pub(super) struct Row {
    scan: Scan,
    taken: Taken,
    /// The best tokens, in no order: at least as many as were asked for, if there are so many.
    pub choices: Vec<Choice>,
}

impl Row {
    /// Applies the rules to the logits. [`Row::rank`] comes next.
    pub fn constrain(&mut self, logits: &mut [f32], rules: &Rules, text: &[u32], length: usize) {
        rules.apply(logits, text, length, &mut self.taken);
    }

    /// Finds the best `k` tokens, and those that are penalised.
    pub fn rank(&mut self, logits: &[f32], k: usize, value: Value, penalty: f32) {
        self.scan.row(logits, k);
        let Row { scan, taken, choices } = self;
        let aside = || taken.banned.iter().chain(taken.penalised.iter().map(|(_, logit)| logit));
        let largest = aside().fold(scan.largest, |a, b| a.max(*b));
        // The difference of two infinities is not a number; nothing is nothing, however scaled.
        let scale = if scan.sum > 0.0 { f64::from(scan.largest - largest).exp() } else { 0.0 };
        let sum = aside().fold(scan.sum * scale, |sum, x| sum + f64::from(x - largest).exp());
        let log_sum = sum.ln() as f32;
        let choice = |logit: f32, token: u32| {
            let log_prob = (logit - largest) - log_sum;
            let value = if value == Value::Logit { logit } else { log_prob };
            Choice { token, value, log_prob }
        };
        choices.clear();
        choices.extend(scan.top.iter().map(|(logit, token)| choice(*logit, *token)));
        choices.extend(taken.penalised.iter().map(|(token, logit)| {
            let mut choice = choice(*logit, *token);
            // Less likely, whichever sign it has.
            if choice.value < 0.0 {
                choice.value *= penalty;
            } else {
                choice.value /= penalty;
            }
            choice
        }));
        // A sum may overflow; what it gives cannot be compared.
        choices.retain(|choice| choice.value > f32::NEG_INFINITY);
    }
}

/// Keeps the `n` best; of equal ones those with the lowest tokens. The order is not defined.
pub(super) fn keep_best(choices: &mut Vec<Choice>, n: usize) {
    if n < choices.len() {
        if n > 0 {
            choices.select_nth_unstable_by(n - 1, best_first);
        }
        choices.truncate(n);
    }
}

/// The order of choices.
pub(super) fn best_first(a: &Choice, b: &Choice) -> std::cmp::Ordering {
    b.value.total_cmp(&a.value).then(a.token.cmp(&b.token))
}
