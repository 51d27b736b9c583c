//! Log-probabilities of the tokens of a text.

use super::Generator;
use super::writer::{cut, too_long};
use crate::batching::Cancel;
use regard_models::Result;

/// Log-probabilities of the tokens of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// Tokens of the text, as spelled in the vocabulary.
    pub tokens: Vec<String>,
    /// Natural logarithm of each token's probability given the tokens before it; `None` for a
    /// first token without a BOS token before it, which has no context.
    pub token_logprobs: Vec<Option<f64>>,
    /// Number of tokens at the start of the text that were cut off.
    pub truncated: usize,
}

/// What to do with a text longer than the model's context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LongText {
    /// It is an error.
    #[default]
    Refuse,
    /// Its first tokens are cut off.
    Truncate,
    /// It is read in windows that overlap by half, so that every token has at least half a window
    /// of context.
    Windows,
}

impl Scored {
    /// Returns the log-probability of the whole text.
    pub fn logprob(&self) -> f64 {
        self.token_logprobs.iter().flatten().sum()
    }
}

impl Generator {
    /// Computes log-probabilities of a text's tokens. A BOS token stands before them where the
    /// tokenizer adds one.
    ///
    /// # Errors
    /// If the text is longer than the model's context, and `long` refuses that.
    pub fn score(&self, text: &str, long: LongText) -> Result<Scored> {
        self.score_until(text, long, &Cancel::new())
    }

    /// As [`Generator::score`], until it is cancelled.
    ///
    /// # Errors
    /// As [`Generator::score`], or if it is cancelled.
    pub fn score_until(&self, text: &str, long: LongText, cancel: &Cancel) -> Result<Scored> {
        let bos = self.tokenizer().configured_bos().or(self.bos());
        let mut ids = self.tokenizer().encode_prompt(text, bos)?;
        let added = ids.len() - self.tokenizer().encode(text)?.ids.len();
        let wide = self.context();
        // The last token is only predicted.
        let most = wide.saturating_add(1);
        let mut truncated = 0;
        if ids.len() > most {
            match long {
                LongText::Refuse => return Err(too_long("text", ids.len(), wide, true)),
                LongText::Truncate => truncated = cut(&mut ids, added, most),
                LongText::Windows => {}
            }
        }
        let name = |id: &u32| self.tokenizer().token(*id).unwrap_or_default();
        let tokens: Vec<String> = ids[added..].iter().map(name).collect();
        let mut logprobs: Vec<Option<f64>> = vec![None; ids.len()];
        let mut known = 1;
        while known < ids.len() {
            let from = if known == 1 { 0 } else { known - (wide / 2).max(1) };
            let to = ids.len().min(from.saturating_add(most));
            let found = self.logprobs(&ids[from..to], known - from, cancel)?;
            let places = logprobs[known..to].iter_mut().zip(found);
            places.for_each(|(place, logprob)| *place = Some(logprob));
            known = to;
        }
        let token_logprobs = logprobs.split_off(added);
        Ok(Scored { tokens, token_logprobs, truncated })
    }
}
