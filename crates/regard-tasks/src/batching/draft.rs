//! Guesses of the next tokens by a smaller model with the same vocabulary.

use super::session::Session;
use crate::Result;

/// A smaller model that follows a session and guesses how it goes on: its most likely tokens.
pub(super) struct Draft<'e> {
    session: Box<Session<'e>>,
    /// Tokens to guess at once.
    most: usize,
    /// Tokens that its row holds.
    held: Vec<u32>,
    logits: Vec<f32>,
}

impl<'e> Draft<'e> {
    pub fn new(session: Session<'e>, most: usize) -> Draft<'e> {
        Draft { session: Box::new(session), most, held: vec![], logits: vec![] }
    }

    /// Begins a text, of which `prompt` is read.
    pub fn read(&mut self, prompt: &[u32]) -> Result<()> {
        self.held.clear();
        if prompt.len() < self.session.longest() && self.knows(prompt) {
            self.session.read(&[prompt])?;
            self.held.extend_from_slice(prompt);
        }
        Ok(())
    }

    /// Guesses the tokens after `text`, at most `room`, of a vocabulary of `words`; none if the model
    /// cannot read the text.
    pub fn guess(&mut self, text: &[u32], words: usize, room: usize) -> Result<Vec<u32>> {
        let most = self.most.min(room);
        let Some((_, before)) = text.split_last() else { return Ok(vec![]) };
        if most == 0 || text.len() + most > self.session.longest() || !self.knows(text) {
            return Ok(vec![]);
        }
        // What was guessed and did not come is taken back; the last token is fed again for its
        // logits.
        let same = self.held.iter().zip(before).take_while(|(a, b)| a == b).count();
        if self.session.is_unread() || !self.session.shorten(same) {
            self.session.read(&[before])?;
            self.held = before.to_vec();
        } else {
            self.held.truncate(same);
        }
        // After guesses that all came, two tokens are new. More are read as a prompt: in parts, and
        // without logits of each.
        if before.len() - self.held.len() > 1 {
            self.session.read_on(before)?;
            self.held = before.to_vec();
        }
        let mut new = text[self.held.len()..].to_vec();
        let mut guess = vec![];
        loop {
            self.session.feed(&new, &mut self.logits)?;
            self.held.extend_from_slice(&new);
            let last = &self.logits[self.logits.len() - self.session.words()..];
            // Tables of embeddings may have rows beyond the vocabulary.
            let token = most_likely(&last[..words.min(last.len())]);
            guess.push(token);
            if guess.len() == most {
                return Ok(guess);
            }
            new = vec![token];
        }
    }
}

impl Draft<'_> {
    /// Whether all tokens are in the vocabulary.
    fn knows(&self, text: &[u32]) -> bool {
        text.iter().all(|token| (*token as usize) < self.session.words())
    }
}

/// The token with the largest logit, of equal ones the first.
fn most_likely(logits: &[f32]) -> u32 {
    let better = |best: usize, at: usize| if logits[at] > logits[best] { at } else { best };
    (0..logits.len()).fold(0, better) as u32
}
