//! Constraints on the next token: banned tokens, biases and penalties.
//!
//! A row's softmax normaliser is that of the model, whatever is banned afterwards (as in beam
//! search of `generate`). So constrained tokens are removed from the row and stored: the scan of
//! the row skips them, and their exponentials are added to the sum later.

use super::{Ids, Options};
use crate::constraint::Allowed;

/// Constraints of a search.
#[derive(Debug)]
pub(super) struct Rules {
    suppressed: Vec<u32>,
    eos: Vec<u32>,
    /// Tokens that end a sentence besides the end tokens.
    stop: Vec<u32>,
    min_length: usize,
    min_new_tokens: usize,
    ngram: usize,
    bias: Vec<(u32, f32)>,
    /// As in [`Options::repetition_penalty`].
    repetition: f32,
    /// As in [`Options::presence_penalty`].
    presence: f32,
    /// As in [`Options::frequency_penalty`].
    frequency: f32,
}

/// The text of a row so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowText<'a> {
    /// Prompt and all generated tokens, if [`Rules::need_text`]; else empty.
    pub tokens: &'a [u32],
    /// Number of tokens in any case.
    pub length: usize,
    /// Tokens of the prompt and the prefix.
    pub start: usize,
}

/// Tokens removed from a row, with their logits.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// Logits of tokens that must not be chosen.
    pub banned: Vec<f32>,
    /// Tokens whose values change.
    pub adjusted: Vec<Adjusted>,
    /// For each token of the vocabulary its place in `adjusted`, from 1; 0 if it is not there.
    places: Vec<u32>,
}

/// A token whose value a bias or a penalty changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Adjusted {
    pub token: u32,
    pub logit: f32,
    bias: f32,
    /// Whether the repetition penalty applies.
    occurred: bool,
    /// How often it was generated, if presence or frequency count.
    generated: u32,
}

impl Rules {
    pub fn new(options: &Options, ids: &Ids) -> Rules {
        let mut suppressed = options.suppress_tokens.clone();
        suppressed.extend(ids.pad.filter(|pad| !ids.eos.contains(pad)));
        Rules {
            suppressed,
            eos: ids.eos.clone(),
            stop: options.stop_token_ids.clone(),
            min_length: options.min_length,
            min_new_tokens: options.min_new_tokens,
            ngram: options.no_repeat_ngram_size,
            bias: options.logit_bias.clone(),
            repetition: options.repetition_penalty,
            presence: options.presence_penalty,
            frequency: options.frequency_penalty,
        }
    }

    /// Whether [`Rules::apply`] uses the text.
    pub fn need_text(&self) -> bool {
        self.ngram > 0 || self.repetition != 1.0 || self.counts()
    }

    fn counts(&self) -> bool {
        self.presence != 0.0 || self.frequency != 0.0
    }

    /// Removes the tokens that may not follow from a row: end tokens and stop tokens unless the text
    /// may end. Unlike the others they are not stored, because they may be almost all.
    pub fn forbid(&self, row: &mut [f32], allowed: &Allowed) {
        let ends = || self.eos.iter().chain(&self.stop).map(|end| *end as usize);
        let logit = |end| row.get(end).copied().unwrap_or(f32::NEG_INFINITY);
        let logits: Vec<f32> = ends().map(logit).collect();
        allowed.apply(row);
        for (end, logit) in ends().zip(logits) {
            if let Some(slot) = row.get_mut(end) {
                *slot = if allowed.may_end() { logit } else { f32::NEG_INFINITY };
            }
        }
    }

    /// Removes constrained tokens from a row.
    pub fn apply(&self, row: &mut [f32], text: RowText, taken: &mut Taken) {
        taken.clear();
        let new = text.length.saturating_sub(text.start);
        let few = new < self.min_new_tokens;
        let early = self.eos.iter().filter(|_| few || text.length < self.min_length);
        let stop = self.stop.iter().filter(|_| few);
        for token in self.suppressed.iter().chain(early).chain(stop) {
            taken.banned.extend(take(row, *token));
        }
        if self.ngram > 0 && text.tokens.len() >= self.ngram {
            let (start, end) = text.tokens.split_at(text.tokens.len() + 1 - self.ngram);
            for window in text.tokens.windows(self.ngram).take(start.len()) {
                if let Some((token, before)) = window.split_last()
                    && before == end
                {
                    taken.banned.extend(take(row, *token));
                }
            }
        }
        for (token, bias) in &self.bias {
            if let Some(adjusted) = taken.adjust(row, *token) {
                adjusted.bias += bias;
            }
        }
        if self.repetition != 1.0 {
            for token in text.tokens {
                if let Some(adjusted) = taken.adjust(row, *token) {
                    adjusted.occurred = true;
                }
            }
        }
        if self.counts() {
            for token in text.tokens.iter().skip(text.start) {
                if let Some(adjusted) = taken.adjust(row, *token) {
                    adjusted.generated += 1;
                }
            }
        }
    }

    /// Applies bias and penalties to the value of a token, in the order of `generate` and vLLM.
    pub fn adjusted_value(&self, value: f32, adjusted: &Adjusted) -> f32 {
        let mut value = value + adjusted.bias;
        if adjusted.occurred {
            // Makes the token less likely, whatever the sign.
            value = if value < 0.0 { value * self.repetition } else { value / self.repetition };
        }
        if adjusted.generated > 0 {
            value -= self.frequency * adjusted.generated as f32;
            value -= self.presence;
        }
        value
    }
}

impl Taken {
    fn clear(&mut self) {
        self.banned.clear();
        for adjusted in self.adjusted.drain(..) {
            self.places[adjusted.token as usize] = 0;
        }
    }

    /// Removes a token from the row to adjust it; `None` if it is banned or not in the row.
    fn adjust(&mut self, row: &mut [f32], token: u32) -> Option<&mut Adjusted> {
        if self.places.len() < row.len() {
            self.places.resize(row.len(), 0);
        }
        let place = self.places.get_mut(token as usize)?;
        if *place == 0 {
            let logit = take(row, token)?;
            self.adjusted.push(Adjusted { token, logit, bias: 0.0, occurred: false, generated: 0 });
            *place = self.adjusted.len() as u32;
        }
        self.adjusted.get_mut(*place as usize - 1)
    }
}

/// Removes a token from a row and returns its logit; `None` if it was removed before.
fn take(row: &mut [f32], token: u32) -> Option<f32> {
    let slot = row.get_mut(token as usize)?;
    let logit = std::mem::replace(slot, f32::NEG_INFINITY);
    // `None` if it was removed before or is NaN.
    (logit > f32::NEG_INFINITY).then_some(logit.min(f32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `banned` and `adjusted` are the tokens expected to be removed from a row of seven after
    /// `tokens`, of which the first is the prompt.
    fn check(options: Options, tokens: &[u32], banned: &[u32], adjusted: &[u32]) {
        let ids = Ids { bos: 0, eos: vec![1], pad: None };
        let rules = Rules::new(&options, &ids);
        let mut row: Vec<f32> = (0..7).map(|i| i as f32).collect();
        let mut taken = Taken::default();
        let text = RowText { tokens, length: tokens.len(), start: 1 };
        // What an earlier row left behind does not matter.
        rules.apply(&mut row.clone(), RowText { tokens: &[3, 3, 6], ..text }, &mut taken);
        rules.apply(&mut row, text, &mut taken);
        let mut got: Vec<u32> = taken.banned.iter().map(|logit| *logit as u32).collect();
        got.sort();
        assert_eq!(got, banned, "{tokens:?}");
        let got: Vec<u32> = taken.adjusted.iter().map(|adjusted| adjusted.token).collect();
        assert_eq!(got, adjusted, "{tokens:?}");
        for (token, logit) in row.iter().enumerate() {
            let out = banned.contains(&(token as u32)) || adjusted.contains(&(token as u32));
            assert_eq!(*logit == f32::NEG_INFINITY, out, "token {token} after {tokens:?}");
        }
    }

    #[test]
    fn rules_take_out_what_they_say() {
        let none = Options::default;
        let grams = |n| Options { no_repeat_ngram_size: n, ..none() };
        check(none(), &[0, 2, 2, 2], &[], &[]);
        check(Options { min_length: 3, ..none() }, &[0, 2], &[1], &[]);
        check(Options { min_length: 3, ..none() }, &[0, 2, 3], &[], &[]);
        let stop = |n| Options { min_new_tokens: n, stop_token_ids: vec![6, 99], ..none() };
        check(stop(2), &[0, 2], &[1, 6], &[]);
        check(stop(2), &[0, 2, 3], &[], &[]);
        check(Options { suppress_tokens: vec![5, 3, 99], ..none() }, &[0], &[3, 5], &[]);
        check(grams(1), &[0, 2, 3, 2], &[0, 2, 3], &[]);
        check(grams(2), &[0], &[], &[]);
        check(grams(2), &[0, 2, 3, 2, 4, 2], &[3, 4], &[]);
        check(grams(3), &[0, 2, 3, 4, 2, 3], &[4], &[]);
        check(grams(3), &[2, 2, 2], &[2], &[]);
        check(grams(3), &[2, 2], &[], &[]);
        let penalty = Options { repetition_penalty: 1.5, ..none() };
        check(penalty.clone(), &[0, 4, 2, 4], &[], &[0, 4, 2]);
        let both = Options { suppress_tokens: vec![4], ..penalty };
        check(both, &[0, 4, 2, 4, 99], &[4], &[0, 2]);
        // Only generated tokens count.
        check(Options { presence_penalty: 1.0, ..none() }, &[0, 4, 2, 4], &[], &[4, 2]);
        let bias = vec![(5, 1.0), (99, 1.0), (4, 2.0), (5, 1.0)];
        check(Options { logit_bias: bias, ..none() }, &[0], &[], &[5, 4]);
    }

    #[test]
    fn biases_and_penalties_apply_in_order() {
        let options = Options {
            logit_bias: vec![(2, -3.0), (3, 1.5)],
            repetition_penalty: 2.0,
            presence_penalty: 0.25,
            frequency_penalty: 0.5,
            ..Options::default()
        };
        let rules = Rules::new(&options, &Ids { bos: 0, eos: vec![1], pad: None });
        let mut row = vec![1.0, 1.0, 1.0, 1.0, -1.0];
        let mut taken = Taken::default();
        rules.apply(&mut row, RowText { tokens: &[0, 2, 4, 2], length: 4, start: 1 }, &mut taken);
        let value = |token: u32| {
            let adjusted = taken.adjusted.iter().find(|one| one.token == token).unwrap();
            rules.adjusted_value(adjusted.logit, adjusted)
        };
        assert_eq!(value(0), 0.5);
        assert_eq!(value(2), (1.0 - 3.0) * 2.0 - 2.0 * 0.5 - 0.25);
        assert_eq!(value(3), 2.5);
        assert_eq!(value(4), -2.0 - 0.5 - 0.25);
    }
}
