//! Vocabulary of summarisation. Out-of-vocabulary words of a text get temporary ids after the
//! vocabulary, valid for that text only.

use crate::text::{Encoding, Tokenizer, Train, VocabularyKind};
use regard_models::{Error, ModelFiles, Result};
use std::path::Path;

/// Name of the vocabulary's file.
const FILE: &str = "tokenizer.json";

/// An encoded text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// Ids of its words.
    pub ids: Vec<u32>,
    /// Out-of-vocabulary words, in the order of their ids.
    pub own: Vec<String>,
}

/// Vocabulary of words.
#[derive(Clone, Debug)]
pub struct SummaryVocabulary {
    tokenizer: Tokenizer,
    unknown: u32,
}

impl SummaryVocabulary {
    /// Wraps a tokenizer that splits text into words.
    pub fn new(tokenizer: Tokenizer) -> Result<SummaryVocabulary> {
        Ok(SummaryVocabulary { unknown: tokenizer.special().need_unk()?, tokenizer })
    }

    /// Collects the most frequent words of texts, in lower case.
    pub fn learn<'a>(
        texts: impl Iterator<Item = &'a str>,
        size: usize,
    ) -> Result<SummaryVocabulary> {
        let train = Train { lowercase: true, ..Train::new(VocabularyKind::WordLevel, size) };
        SummaryVocabulary::new(train.run(texts)?)
    }

    /// Reads the vocabulary from a model's folder.
    pub fn load(model: &ModelFiles) -> Result<SummaryVocabulary> {
        let tokenizer = Tokenizer::of_file(model, FILE)?;
        SummaryVocabulary::new(tokenizer).map_err(|e| Error::file(model.path(FILE), e.to_string()))
    }

    /// Writes the vocabulary to a model's folder.
    pub fn save(&self, folder: &Path) -> Result<()> {
        self.tokenizer.save(folder.join(FILE))
    }

    /// Returns the tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Returns the size of the vocabulary, special tokens included.
    pub fn size(&self) -> usize {
        self.tokenizer.size()
    }

    /// Returns the id of the unknown token.
    pub fn unknown(&self) -> u32 {
        self.unknown
    }

    /// Encodes texts, each truncated to `most` words.
    pub fn read<S: AsRef<str> + Sync>(&self, texts: &[S], most: usize) -> Result<Vec<Text>> {
        let encodings = self.tokenizer.encode_batch(texts)?;
        let one = |(encoding, text): (&Encoding, &S)| self.text(encoding, text.as_ref(), most);
        Ok(encodings.iter().zip(texts).map(one).collect())
    }

    fn text(&self, encoding: &Encoding, text: &str, most: usize) -> Text {
        let mut read = Text::default();
        for (id, (from, to)) in encoding.ids.iter().zip(&encoding.offsets).take(most) {
            if *id != self.unknown {
                read.ids.push(*id);
                continue;
            }
            let word = text.get(*from..*to).unwrap_or_default().to_lowercase();
            let place = read.own.iter().position(|other| *other == word).unwrap_or_else(|| {
                read.own.push(word);
                read.own.len() - 1
            });
            read.ids.push((self.size() + place) as u32);
        }
        read
    }

    /// Encodes a summary with the temporary ids of its text; words in neither the text nor the
    /// vocabulary are unknown.
    pub fn told(&self, summary: &Text, text: &Text) -> Vec<u32> {
        let number = |id: &u32| match (*id as usize).checked_sub(self.size()) {
            None => *id,
            Some(place) => {
                let there = text.own.iter().position(|word| *word == summary.own[place]);
                there.map_or(self.unknown, |place| (self.size() + place) as u32)
            }
        };
        summary.ids.iter().map(number).collect()
    }

    /// Returns the word of an id, with the temporary ids of a text.
    pub fn word(&self, id: u32, text: &Text) -> String {
        match (id as usize).checked_sub(self.size()) {
            None => self.tokenizer.token(id).unwrap_or_default(),
            Some(place) => text.own.get(place).cloned().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_the_vocabulary_has_not_are_numbered_behind_it() {
        let words =
            SummaryVocabulary::learn(["the deal is on", "the deal"].into_iter(), 7).unwrap();
        assert_eq!(words.size(), 7, "four special ones, and three");
        let known = |word: &str| words.tokenizer().id(word).unwrap();
        let all = words.read(&["The Bishops deal, Bishops Corner", "Corner the Deal grande"], 9);
        let [text, summary] = &all.unwrap()[..] else { panic!("two texts") };
        assert_eq!(text.own, ["bishops", ",", "corner"]);
        assert_eq!(text.ids, [known("the"), 7, known("deal"), 8, 7, 9]);
        let told = words.told(summary, text);
        assert_eq!(told, [9, known("the"), known("deal"), words.unknown()]);
        assert_eq!(words.word(9, text), "corner");
        assert_eq!(words.word(known("the"), text), "the");
        assert_eq!(words.read(&["a b c d"], 2).unwrap()[0].ids.len(), 2);
    }
}
