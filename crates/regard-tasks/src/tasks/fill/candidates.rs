//! Predictions for masked tokens.

use crate::logits::softmax;
use crate::reader::{TextEncoder, numbers};
use regard_models::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A token predicted for a masked position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Candidate")]
pub struct TokenCandidate {
    /// Text of the token.
    pub token_str: String,
    /// Id of the token in the vocabulary.
    pub token: u32,
    /// Probability of the token, 0 to 1.
    pub score: f64,
    /// Text with the mask replaced by this token.
    pub sequence: String,
}

impl TextEncoder {
    /// Returns the `most` most probable tokens for each masked position of a text, the best first.
    ///
    /// # Errors
    /// If the text has no mask token, or is longer than the model's maximum length.
    pub fn fill(&self, text: &str, most: usize) -> Result<Vec<Vec<TokenCandidate>>> {
        let mask = self.tokenizer.special().need_mask()?;
        let encoding = self.tokenizer.encode_special(text, None)?;
        let places: Vec<usize> =
            (0..encoding.len()).filter(|at| encoding.ids[*at] == mask).collect();
        if places.is_empty() {
            let name = self.tokenizer.token(mask).unwrap_or_default();
            return Err(Error::invalid(format!("the text has no mask token {name}")));
        }
        let (tokens, longest) = (encoding.len(), self.longest());
        if tokens > longest {
            return Err(Error::invalid(format!(
                "text: got {tokens} tokens, the model takes at most {longest}"
            )));
        }
        let mut all = vec![];
        self.read(std::slice::from_ref(&encoding), |_, part, said| {
            let logits = said.logits.ok_or_else(|| self.without_head("ForMaskedLM"))?;
            let [_, words] = logits.dims();
            let logits = numbers(logits)?;
            for at in &places {
                let scores = softmax(&logits[at * words..][..words]);
                let mut order: Vec<u32> = (0..words as u32).collect();
                order.sort_by(|a, b| scores[*b as usize].total_cmp(&scores[*a as usize]));
                let candidate = |token: u32| {
                    let token_str = self.tokenizer.decode(&[token])?;
                    let mut ids = part[0].ids.clone();
                    ids[*at] = token;
                    let sequence = match places.len() {
                        1 => self.tokenizer.decode(&ids)?,
                        // The other masks stay in the text.
                        _ => {
                            let (start, end) = part[0].offsets[*at];
                            format!("{}{token_str}{}", &text[..start], &text[end..])
                        }
                    };
                    Ok(TokenCandidate { token_str, token, score: scores[token as usize], sequence })
                };
                all.push(order.into_iter().take(most).map(candidate).collect::<Result<_>>()?);
            }
            Ok(())
        })?;
        Ok(all)
    }
}
