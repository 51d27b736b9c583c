//! A text for character-level language models, such as Shakespeare's plays in `tinyshakespeare`.

use std::collections::BTreeSet;
use std::path::Path;

use regard_models::checkpoint::read_file;
use regard_models::{Error, Result};

/// Longest text in bytes: the text and its token ids are held in memory.
const LONGEST: u64 = 1 << 32;

/// Training and validation parts of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Characters {
    /// The first nine tenths of the characters.
    pub train: String,
    /// The rest. There is no test part: this is the split of nanoGPT, whose results are those of
    /// its validation part.
    pub valid: String,
}

impl Characters {
    /// Reads a file of UTF-8, which must fit in memory.
    pub fn read(path: impl AsRef<Path>) -> Result<Characters> {
        let path = path.as_ref();
        super::ledger::note(path);
        let text = String::from_utf8(read_file(path, LONGEST)?);
        let text = text.map_err(|e| {
            let bytes = &e.as_bytes()[..e.utf8_error().valid_up_to()];
            let line = 1 + bytes.iter().filter(|&&byte| byte == b'\n').count();
            Error::file(path, format!("line {line}: not UTF-8; convert the file to UTF-8"))
        })?;
        Ok(Characters::new(text))
    }

    /// Splits a text after nine tenths of its characters, rounded down in floating point as
    /// nanoGPT does it.
    pub fn new(mut text: String) -> Characters {
        let first = (text.chars().count() as f64 * 0.9) as usize;
        let at = text.char_indices().nth(first).map_or(text.len(), |(byte, _)| byte);
        let valid = text.split_off(at);
        Characters { train: text, valid }
    }

    /// Returns the whole text.
    pub fn whole(self) -> String {
        self.train + &self.valid
    }

    /// Returns all characters that occur, in the order of their code points: the vocabulary of a
    /// character-level model.
    pub fn alphabet(&self) -> Vec<char> {
        let all: BTreeSet<char> = self.train.chars().chain(self.valid.chars()).collect();
        all.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::scratch::with_file;
    use super::*;

    #[test]
    fn nine_tenths_of_the_characters() {
        for (text, train) in [
            ("", ""),
            ("a", ""),
            ("ab", "a"),
            ("éèêëàâäîïô", "éèêëàâäîï"),
            ("0123456789ab", "0123456789"),
        ] {
            let parts = Characters::new(text.to_owned());
            assert_eq!(
                (parts.train.as_str(), parts.train.clone() + &parts.valid),
                (train, text.to_owned())
            );
        }
        assert_eq!(Characters::new("banana".into()).alphabet(), ['a', 'b', 'n']);
    }

    #[test]
    fn bytes_that_are_no_text_are_an_error() {
        let error = with_file("text", b"a\nb\xff", |path| Characters::read(path)).unwrap_err();
        assert!(error.to_string().contains("text: line 2: not UTF-8"), "{error}");
    }
}
