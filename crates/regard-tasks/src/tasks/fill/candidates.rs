//! Predictions for masked tokens.

use crate::logits::softmax;
use crate::reader::{TextEncoder, numbers};
use regard_attention::Mode;
use regard_models::text::Texts;
use regard_models::xlnet::{Permuted, Permuting, Sight};
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
        if let Some(model) = self.model.permuting() {
            return self.fill_by_position(model, text, most, mask);
        }
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
                let order = best_first(&scores);
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

    /// Fills by a model with two streams (XLNet): a masked token is no input, but a position that
    /// is predicted from all other tokens.
    fn fill_by_position(
        &self,
        model: &dyn Permuting,
        text: &str,
        most: usize,
        mask: u32,
    ) -> Result<Vec<Vec<TokenCandidate>>> {
        let name = self.tokenizer.token(mask).unwrap_or_default();
        // The tokenizer need not know the mask in a text: training has none.
        let (mut ids, mut places) = (vec![], vec![]);
        let parts: Vec<&str> = text.split(&name).collect();
        for (number, part) in parts.iter().enumerate() {
            if number > 0 {
                places.push(ids.len());
                ids.push(mask);
            }
            // The space before a mask belongs to the token that fills it.
            let is_last = number + 1 == parts.len();
            let part = if is_last { part } else { part.strip_suffix(' ').unwrap_or(part) };
            ids.extend(self.tokenizer.encode(part)?.ids);
        }
        if places.is_empty() {
            return Err(Error::invalid(format!("the text has no mask token {name}")));
        }
        let mut ranks = vec![0u32; ids.len()];
        places.iter().for_each(|at| ranks[*at] = 1);
        let mut texts = Texts::new();
        texts.push(&ids);
        let sight = Sight::Ranks(vec![ranks]);
        let batch = Permuted { texts: &texts, sight, targets: &places, memory: None };
        let logits = model.predict(&batch, Mode::Eval).logits;
        let [_, words] = logits.dims();
        let logits = numbers(logits)?;
        let list = |(number, scores): (usize, &[f32])| {
            let scores = softmax(scores);
            let candidate = |token: u32| {
                let token_str = self.tokenizer.decode(&[token])?;
                let (start, _) = text.match_indices(&name).nth(number).unwrap_or((0, ""));
                let (before, after) = (&text[..start], &text[start + name.len()..]);
                // A token brings its own space.
                let space = before.ends_with(' ') && token_str.starts_with(' ');
                let before = if space { &before[..start - 1] } else { before };
                let sequence = format!("{before}{token_str}{after}");
                Ok(TokenCandidate { token_str, token, score: scores[token as usize], sequence })
            };
            best_first(&scores).into_iter().take(most).map(candidate).collect()
        };
        logits.chunks_exact(words).enumerate().map(list).collect()
    }
}

/// Tokens by descending probability.
fn best_first(scores: &[f64]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..scores.len() as u32).collect();
    order.sort_by(|a, b| scores[*b as usize].total_cmp(&scores[*a as usize]));
    order
}
