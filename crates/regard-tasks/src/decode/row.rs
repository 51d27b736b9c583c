//! Selects the candidate tokens of a row from its logits.

use super::constrain::{RowText, Rules, Taken};
use crate::constraint::Allowed;
use regard_attention::ops::Scan;

/// A candidate for a row's next token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Choice {
    pub token: u32,
    /// Value it is ranked by, after the penalties: see [`Value`].
    pub value: f32,
    /// Log-probability by the model, before penalties.
    pub log_prob: f32,
}

/// Quantity that penalties and temperature apply to; it depends on the kind of search, as in
/// `generate`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    /// The logit: greedy search and sampling.
    Logit,
    /// The log-probability: beam search.
    LogProb,
}

/// Buffers of a row, reused from step to step.
#[derive(Debug, Default)]
pub(super) struct Row {
    scan: Scan,
    taken: Taken,
    /// Largest logit and sum of exponentials of the whole row, if only some tokens are allowed.
    whole: Option<(f32, f64)>,
    /// The best tokens, unordered: at least as many as requested, if there are enough.
    pub choices: Vec<Choice>,
}

impl Row {
    /// Removes the tokens that may not follow. [`Row::constrain`] comes next.
    pub fn allow(&mut self, logits: &mut [f32], allowed: Option<&Allowed>, rules: &Rules) {
        self.whole = allowed.map(|allowed| {
            self.scan.row(logits, 0);
            rules.forbid(logits, allowed);
            (self.scan.largest, self.scan.sum)
        });
    }

    /// Applies the rules to the logits. [`Row::rank`] comes next.
    pub fn constrain(&mut self, logits: &mut [f32], rules: &Rules, text: RowText) {
        rules.apply(logits, text, &mut self.taken);
    }

    /// Finds the best `k` tokens, and those with a bias or a penalty.
    pub fn rank(&mut self, logits: &[f32], k: usize, value: Value, rules: &Rules) {
        self.scan.row(logits, k);
        let Row { scan, taken, whole, choices } = self;
        let (largest, sum) = whole.unwrap_or_else(|| {
            let aside = || taken.banned.iter().chain(taken.adjusted.iter().map(|one| &one.logit));
            let largest = aside().fold(scan.largest, |a, b| a.max(*b));
            // −∞ − (−∞) is NaN; an empty sum stays 0.
            let scale = if scan.sum > 0.0 { f64::from(scan.largest - largest).exp() } else { 0.0 };
            let sum = aside().fold(scan.sum * scale, |sum, x| sum + f64::from(x - largest).exp());
            (largest, sum)
        });
        let log_sum = sum.ln() as f32;
        let choice = |logit: f32, token: u32| {
            let log_prob = (logit - largest) - log_sum;
            let value = if value == Value::Logit { logit } else { log_prob };
            Choice { token, value, log_prob }
        };
        choices.clear();
        choices.extend(scan.top.iter().map(|(logit, token)| choice(*logit, *token)));
        choices.extend(taken.adjusted.iter().map(|adjusted| {
            let choice = choice(adjusted.logit, adjusted.token);
            Choice { value: rules.adjusted_value(choice.value, adjusted), ..choice }
        }));
        // Removes −∞ and NaN (from an overflow), which cannot be compared.
        choices.retain(|choice| choice.value > f32::NEG_INFINITY);
    }
}

/// Keeps the `n` best; of ties those with the lowest token ids. The order is not defined.
pub(super) fn keep_best(choices: &mut Vec<Choice>, n: usize) {
    if n < choices.len() {
        if n > 0 {
            choices.select_nth_unstable_by(n - 1, best_first);
        }
        choices.truncate(n);
    }
}

/// Orders choices by descending value, ties by token id.
pub(super) fn best_first(a: &Choice, b: &Choice) -> std::cmp::Ordering {
    b.value.total_cmp(&a.value).then(a.token.cmp(&b.token))
}
