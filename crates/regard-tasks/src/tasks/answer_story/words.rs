//! Vocabulary of stories, and their answers.

use super::Tales;
use crate::text::{Tokenizer, Train, VocabularyKind};
use regard_models::{Error, Labels, Result};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// Vocabulary limit, above the size of any set of stories.
const MANY: usize = 1 << 16;

/// Vocabulary of a model and the answers it can give. A list of several words is one answer, as in
/// the literature.
#[derive(Clone)]
pub struct StoryVocabulary {
    tokenizer: Tokenizer,
    answers: Vec<String>,
}

impl StoryVocabulary {
    /// Collects words and answers of stories.
    pub fn learn(tales: &[Tales]) -> Result<StoryVocabulary> {
        let train = Train { lowercase: true, ..Train::new(VocabularyKind::WordLevel, MANY) };
        let tokenizer = train.run(said(tales).into_iter().map(spoken))?;
        let stories = tales.iter().flat_map(|tales| &tales.stories);
        let asked = stories.flat_map(|story| &story.questions);
        let answers: BTreeSet<String> = asked.map(|question| question.answers.join(",")).collect();
        Ok(StoryVocabulary { tokenizer, answers: answers.into_iter().collect() })
    }

    /// Combines a tokenizer with the answers of a configuration.
    pub fn new(tokenizer: Tokenizer, config: &Value) -> StoryVocabulary {
        StoryVocabulary { tokenizer, answers: Labels::names(config) }
    }

    /// Returns the tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Writes the tokenizer to a folder; the answers are in the configuration.
    pub fn save(&self, folder: &Path) -> Result<()> {
        self.tokenizer.save(folder.join("tokenizer.json"))
    }

    /// Returns the size of the vocabulary, special tokens included.
    pub fn size(&self) -> usize {
        self.tokenizer.size()
    }

    /// Returns the answers, in index order.
    pub fn answers(&self) -> &[String] {
        &self.answers
    }

    /// Returns the index of an answer; `None` if it is unknown.
    pub fn answer(&self, words: &[String]) -> Option<usize> {
        self.answers.binary_search(&words.join(",")).ok()
    }

    /// Encodes a sentence, without the punctuation mark at its end.
    pub fn encode(&self, sentence: &str) -> Result<Vec<u32>> {
        let encoding = self.tokenizer.encode(spoken(sentence))?;
        let unknown = self.tokenizer.special().unk;
        match encoding.ids.iter().position(|id| Some(*id) == unknown) {
            Some(at) => {
                let (from, to) = encoding.offsets[at];
                let word = spoken(sentence).get(from..to).unwrap_or(sentence);
                Err(Error::invalid(format!(
                    "{:?} in {:?} is not one of the {} words that the model knows: it was trained on \
                     simple stories. For other texts name a model that was trained to find answers \
                     in them, as `regard train squad-minilm` does: --model MODEL",
                    crate::say::short(word, 60),
                    crate::say::short(sentence, 100),
                    self.known()
                )))
            }
            None if encoding.is_empty() => {
                Err(Error::invalid(format!("{sentence:?} has no words")))
            }
            None => Ok(encoding.ids),
        }
    }

    /// Returns the size of the vocabulary without special tokens.
    fn known(&self) -> usize {
        self.size() - VocabularyKind::WordLevel.special().len()
    }
}

/// Returns the distinct sentences and questions of stories.
pub(super) fn said(tales: &[Tales]) -> BTreeSet<&str> {
    let stories = tales.iter().flat_map(|tales| &tales.stories);
    let texts = stories.flat_map(|story| {
        let asked = story.questions.iter().map(|question| question.text.as_str());
        story.facts.iter().map(|fact| fact.text.as_str()).chain(asked)
    });
    texts.collect()
}

/// Strips the punctuation mark at the end of a sentence.
fn spoken(sentence: &str) -> &str {
    sentence.trim().trim_end_matches(['.', '?', '!']).trim_end()
}

/// Splits a text into sentences, each with its punctuation mark.
pub(super) fn sentences(text: &str) -> Vec<&str> {
    let mut sentences = vec![];
    let mut rest = text;
    while !rest.is_empty() {
        let is_end = |c: char| matches!(c, '.' | '?' | '!' | '\n');
        let end = rest.find(is_end).map_or(rest.len(), |at| at + 1);
        // Consecutive marks end one sentence.
        let end = end + rest[end..].len() - rest[end..].trim_start_matches(is_end).len();
        let (sentence, after) = rest.split_at(end);
        if !spoken(sentence).is_empty() {
            sentences.push(sentence.trim());
        }
        rest = after;
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::babi::{Fact, Story, StoryQuestion};

    fn words() -> StoryVocabulary {
        let fact = |id, text: &str| Fact { id, text: text.into() };
        let question = |text: &str, answers: &[&str]| StoryQuestion {
            text: text.into(),
            answers: answers.iter().map(|word| word.to_string()).collect(),
            support: vec![],
            after: 2,
        };
        let facts = vec![fact(1, "John took the milk."), fact(2, "John went to the hall.")];
        let questions = vec![
            question("Where is John?", &["hall"]),
            question("What is John carrying?", &["milk", "apple"]),
        ];
        let tales = Tales { task: 1, stories: vec![Story { facts, questions }] };
        StoryVocabulary::learn(&[tales]).unwrap()
    }

    #[test]
    fn a_sentence_is_its_words() {
        let words = words();
        let ids = words.encode("john took the MILK").unwrap();
        assert_eq!(ids.len(), 4);
        assert_eq!(words.encode("John took the milk.").unwrap(), ids);
        assert_eq!(words.answers(), ["hall", "milk,apple"]);
        assert_eq!(words.answer(&["milk".into(), "apple".into()]), Some(1));
        assert_eq!(words.answer(&["milk".into()]), None);
        let error = words.encode("John took the sword.").unwrap_err().to_string();
        assert!(error.contains("\"sword\"") && error.contains("11 words"), "{error}");
        assert!(words.encode(" . ").unwrap_err().to_string().contains("no words"));
    }

    #[test]
    fn a_text_is_its_sentences() {
        let text = " John left. Where to?\nMary  stayed!!  \n\n so ";
        assert_eq!(sentences(text), ["John left.", "Where to?", "Mary  stayed!!", "so"]);
        assert!(sentences(" .\n ").is_empty());
    }
}
