//! Text that comes a token at a time, as a model writes it.

use regard_models::Result;

use super::Tokenizer;

/// What stands for bytes that are no character, or not yet one.
const INCOMPLETE: char = '\u{fffd}';

/// Makes text of ids as they come. A token may end within a character; its bytes are kept until
/// the character is whole, so that what was shown never changes.
#[derive(Clone, Debug)]
pub struct Stream<'a> {
    tokenizer: &'a Tokenizer,
    /// The ids since the last one after which all text was given out, and that one: how a token
    /// is joined depends on the one before it.
    ids: Vec<u32>,
    /// How many of them have been given out.
    given: usize,
}

impl Tokenizer {
    /// Makes text of ids as they come.
    pub fn stream(&self) -> Stream<'_> {
        Stream { tokenizer: self, ids: Vec::new(), given: 0 }
    }
}

impl Stream<'_> {
    /// The text that a token adds, if it ends in a whole character.
    pub fn push(&mut self, id: u32) -> Result<Option<String>> {
        // A token that adds nothing would be a poor neighbour for the next one.
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

    /// What was kept back, with `�` for what is no character.
    pub fn finish(self) -> Result<Option<String>> {
        let text = self.tokenizer.decode(&self.ids)?;
        let before = self.tokenizer.decode(&self.ids[..self.given])?;
        let same = text.chars().zip(before.chars()).take_while(|(a, b)| a == b);
        let same: usize = same.map(|(c, _)| c.len_utf8()).sum();
        Ok(Some(text[same..].to_owned()).filter(|rest| !rest.is_empty()))
    }
}
