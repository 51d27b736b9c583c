//! Incremental decoding of generated tokens.

use regard_models::Result;

use super::Tokenizer;

/// Replacement for bytes that are not a character, or not yet.
const INCOMPLETE: char = '\u{fffd}';

/// Decodes ids as they come. A token may end within a character; its bytes are held back until
/// the character is complete, so that text that was returned never changes.
#[derive(Clone, Debug)]
pub struct DecodeStream<'a> {
    tokenizer: &'a Tokenizer,
    /// Ids after the last one up to which all text was returned, and that one: how a token is
    /// joined depends on the one before it.
    ids: Vec<u32>,
    /// Number of these ids whose text was returned.
    given: usize,
}

impl Tokenizer {
    /// Returns an incremental decoder.
    pub fn stream(&self) -> DecodeStream<'_> {
        DecodeStream { tokenizer: self, ids: Vec::new(), given: 0 }
    }
}

impl DecodeStream<'_> {
    /// Returns the text that a token adds; `None` if it ends within a character or adds none.
    pub fn push(&mut self, id: u32) -> Result<Option<String>> {
        // A special token must not be the neighbour on which joining depends.
        if !self.tokenizer.is_text(id) {
            return Ok(None);
        }
        self.ids.push(id);
        let text = self.tokenizer.decode(&self.ids)?;
        if text.ends_with(INCOMPLETE) {
            return Ok(None);
        }
        let before = self.tokenizer.decode(&self.ids[..self.given])?;
        // Where a later token changes how earlier ones are joined, wait for more.
        let Some(new) = text.strip_prefix(&before) else { return Ok(None) };
        let new = new.to_owned();
        self.ids.drain(..self.given);
        self.given = self.ids.len();
        Ok(Some(new).filter(|new| !new.is_empty()))
    }

    /// Returns the text that was held back, with `�` for incomplete characters.
    pub fn finish(self) -> Result<Option<String>> {
        let text = self.tokenizer.decode(&self.ids)?;
        let before = self.tokenizer.decode(&self.ids[..self.given])?;
        let same = text.chars().zip(before.chars()).take_while(|(a, b)| a == b);
        let same: usize = same.map(|(c, _)| c.len_utf8()).sum();
        Ok(Some(text[same..].to_owned()).filter(|rest| !rest.is_empty()))
    }
}
