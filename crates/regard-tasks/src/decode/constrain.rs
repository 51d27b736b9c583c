//! Constraints on the next token: banned and penalised tokens.
//!
//! A row's softmax normaliser is that of the model, whatever is banned afterwards (as in beam
//! search of `generate`). So constrained tokens are removed from the row and stored: the scan of
//! the row skips them, and their exponentials are added to the sum later.

use super::{Ids, Options};

/// Constraints of a search.
#[derive(Debug)]
pub(super) struct Rules {
    suppressed: Vec<u32>,
    eos: Option<u32>,
    min_length: usize,
    ngram: usize,
    /// As in [`Options::repetition_penalty`].
    pub penalty: f32,
}

/// Tokens removed from a row, with their logits.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// Logits of tokens that must not be chosen.
    pub banned: Vec<f32>,
    /// Tokens to be made less likely, with their logits.
    pub penalised: Vec<(u32, f32)>,
}

impl Rules {
    pub fn new(options: &Options, ids: &Ids) -> Rules {
        let mut suppressed = options.suppress_tokens.clone();
        suppressed.extend(ids.pad.filter(|pad| Some(*pad) != ids.eos));
        Rules {
            suppressed,
            eos: ids.eos,
            min_length: options.min_length,
            ngram: options.no_repeat_ngram_size,
            penalty: options.repetition_penalty,
        }
    }

    /// Whether [`Rules::apply`] uses the text.
    pub fn need_text(&self) -> bool {
        self.ngram > 0 || self.penalty != 1.0
    }

    /// Removes constrained tokens from a row. `text` is the prompt and all generated tokens, if
    /// [`Rules::need_text`]; `length` is its length in any case.
    pub fn apply(&self, row: &mut [f32], text: &[u32], length: usize, taken: &mut Taken) {
        taken.banned.clear();
        taken.penalised.clear();
        let early = self.eos.filter(|_| length < self.min_length);
        for token in self.suppressed.iter().copied().chain(early) {
            taken.banned.extend(take(row, token));
        }
        if self.ngram > 0 && text.len() >= self.ngram {
            let (start, end) = text.split_at(text.len() + 1 - self.ngram);
            for window in text.windows(self.ngram).take(start.len()) {
                if let Some((token, before)) = window.split_last()
                    && before == end
                {
                    taken.banned.extend(take(row, *token));
                }
            }
        }
        if self.penalty != 1.0 {
            for token in text {
                taken.penalised.extend(take(row, *token).map(|logit| (*token, logit)));
            }
        }
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

    /// `banned` and `penalised` are the tokens expected to be removed from a row of seven after
    /// `text`.
    fn check(options: Options, text: &[u32], banned: &[u32], penalised: &[u32]) {
        let ids = Ids { bos: 0, eos: Some(1), pad: None };
        let rules = Rules::new(&options, &ids);
        let mut row: Vec<f32> = (0..7).map(|i| i as f32).collect();
        let mut taken = Taken::default();
        rules.apply(&mut row, text, text.len(), &mut taken);
        let mut got: Vec<u32> = taken.banned.iter().map(|logit| *logit as u32).collect();
        got.sort();
        assert_eq!(got, banned, "{text:?}");
        let got: Vec<u32> = taken.penalised.iter().map(|(token, _)| *token).collect();
        assert_eq!(got, penalised, "{text:?}");
        for (token, logit) in row.iter().enumerate() {
            let out = banned.contains(&(token as u32)) || penalised.contains(&(token as u32));
            assert_eq!(*logit == f32::NEG_INFINITY, out, "token {token} after {text:?}");
        }
    }

    #[test]
    fn rules_take_out_what_they_say() {
        let none = Options::default;
        let grams = |n| Options { no_repeat_ngram_size: n, ..none() };
        check(none(), &[0, 2, 2, 2], &[], &[]);
        check(Options { min_length: 3, ..none() }, &[0, 2], &[1], &[]);
        check(Options { min_length: 3, ..none() }, &[0, 2, 3], &[], &[]);
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
    }
}
