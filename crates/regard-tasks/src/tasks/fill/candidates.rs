//! The word that is hidden.

use crate::logits::softmax;
use crate::reader::{Reader, numbers};
use regard_models::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A token that may stand in a place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Candidate {
    /// Its text.
    pub token_str: String,
    /// Its number.
    pub token: u32,
    /// Its probability.
    pub score: f64,
    /// The text with it.
    pub sequence: String,
}

impl Reader {
    /// The `most` likeliest tokens for each place of a text that is masked, the likeliest first.
    ///
    /// # Errors
    /// If nothing is masked, or the text is longer than the model can read.
    pub fn fill(&self, text: &str, most: usize) -> Result<Vec<Vec<Candidate>>> {
        let mask = self.tokenizer.special().need_mask()?;
        let encoding = self.tokenizer.encode_special(text, None)?;
        let places: Vec<usize> =
            (0..encoding.len()).filter(|at| encoding.ids[*at] == mask).collect();
        if places.is_empty() {
            let name = self.tokenizer.token(mask).unwrap_or_default();
            return Err(Error::invalid(format!("nothing is hidden: write {name} for a word")));
        }
        let (tokens, longest) = (encoding.len(), self.longest());
        if tokens > longest {
            return Err(Error::invalid(format!(
                "a text of {tokens} tokens: the model reads {longest}; give less around the word"
            )));
        }
        let mut all = vec![];
        self.read(std::slice::from_ref(&encoding), |_, part, said| {
            let logits = said.logits.ok_or_else(|| Error::invalid("a model without words"))?;
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
                        // Other words stay hidden, as the text has them.
                        _ => {
                            let (start, end) = part[0].offsets[*at];
                            format!("{}{token_str}{}", &text[..start], &text[end..])
                        }
                    };
                    Ok(Candidate { token_str, token, score: scores[token as usize], sequence })
                };
                all.push(order.into_iter().take(most).map(candidate).collect::<Result<_>>()?);
            }
            Ok(())
        })?;
        Ok(all)
    }
}
