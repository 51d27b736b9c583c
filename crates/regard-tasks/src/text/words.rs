//! Encoding of texts that are split into words already.

use regard_models::{Error, Result};
use tokenizers::{NormalizedString, Normalizer};

use super::tokenizer::failed;
use super::{Encoding, Tokenizer};

impl Tokenizer {
    /// Encodes words that are split already: one token for each, known or not. Offsets are those
    /// in the words joined by spaces.
    ///
    /// # Errors
    /// If the tokenizer has no alphabet, so that its tokens need not be words.
    pub fn encode_words(&self, words: &[&str]) -> Result<Encoding> {
        let alphabet = self.alphabet().ok_or_else(|| {
            Error::invalid(
                "tokenizer: need one of words with characters (kind \"treebank\") to encode words \
                 that are split already",
            )
        })?;
        let unknown = self.special().need_unk()?;
        let mut encoding = Encoding::default();
        let mut start = 0;
        for (number, word) in words.iter().enumerate() {
            let token = self.normal(word)?;
            let id = self.id(&token).filter(|id| self.is_text(*id));
            encoding.ids.push(id.unwrap_or(unknown));
            let known = id.is_some().then_some(token);
            let name = || self.token(unknown).unwrap_or_default();
            encoding.tokens.push(known.unwrap_or_else(name));
            encoding.offsets.push((start, start + word.len()));
            encoding.words.push(Some(number as u32));
            encoding.types.push(0);
            encoding.texts.push(Some(0));
            encoding.special.push(false);
            encoding.letters.push(alphabet.spell(word));
            start += word.len() + 1;
        }
        Ok(encoding)
    }

    /// Normalises a word as the vocabulary does.
    fn normal(&self, word: &str) -> Result<String> {
        let mut normalized = NormalizedString::from(self.prepare(word).as_ref());
        if let Some(normalizer) = self.inner().get_normalizer() {
            normalizer.normalize(&mut normalized).map_err(failed)?;
        }
        Ok(normalized.get().to_string())
    }
}
