//! Incremental decoding of generated tokens.

use regard_models::Result;

use super::Tokenizer;

/// Replacement for bytes that are not a character, or not yet.
const INCOMPLETE: char = '\u{fffd}';

/// Tokens of a prompt that decide how the next one is joined; one would do, but for characters of
/// several tokens.
const CONTEXT: usize = 8;

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

    /// Returns a decoder of what follows a prompt: its last tokens decide how the first ones are
    /// joined, such as whether a word keeps the space before it.
    pub fn stream_after(&self, prompt: &[u32]) -> DecodeStream<'_> {
        let text = prompt.iter().rev().take(CONTEXT).take_while(|id| self.is_text(**id)).count();
        let ids = prompt[prompt.len() - text..].to_vec();
        // A character that the prompt leaves incomplete would hide what completes it.
        match self.decode(&ids) {
            Ok(text) if !text.ends_with(INCOMPLETE) => {
                DecodeStream { tokenizer: self, given: ids.len(), ids }
            }
            _ => self.stream(),
        }
    }
}

impl DecodeStream<'_> {
    /// Whether the next token begins a text, rather than continuing one.
    pub fn begins(&self) -> bool {
        self.ids.is_empty()
    }

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
