//! The Stanford sentiment treebank as Kim (2014) and others used it: everything that is known of
//! the training part is learned from, phrases too, and whole sentences are decided on.

use std::collections::HashSet;
use std::path::Path;

use regard_models::Result;

use super::labelled::{LabelledTexts, Sentiment};
use super::split::Part;

/// What is learned from, and what decisions are made on, of the data set `sst2` in its folder.
///
/// Both forms of the set are one treebank in two spellings (one has lost its hyphens and full
/// stops), so that whatever has the letters of a sentence of the development or of the test part
/// is not learned from.
pub fn phrases_and_sentences(folder: impl AsRef<Path>) -> Result<(LabelledTexts, LabelledTexts)> {
    let read = |form, part| LabelledTexts::sentiment(&folder, form, part);
    let valid = read(Sentiment::Sentences, Part::Valid)?;
    let test = read(Sentiment::Sentences, Part::Test)?;
    let asked = valid.examples.iter().chain(&test.examples);
    let asked: HashSet<String> = asked.map(|example| letters(&example.text)).collect();
    let mut train = read(Sentiment::Phrases, Part::Train)?;
    train.examples.extend(read(Sentiment::Phrases, Part::Valid)?.examples);
    train.examples.extend(read(Sentiment::Sentences, Part::Train)?.examples);
    train.examples.retain(|example| !asked.contains(&letters(&example.text)));
    Ok((train, valid))
}

/// A text without its spaces and signs.
fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::super::sets;
    use super::*;

    #[test]
    fn two_spellings_of_a_sentence_are_one() {
        assert_eq!(letters("A well-made -lrb- film ."), letters("a well made lrb film"));
        assert_ne!(letters("a film"), letters("films"));
    }

    #[test]
    fn nothing_that_is_asked_is_learned() {
        let Ok(folder) = sets::find("sst2") else {
            return println!("skipped: {} has no sst2", sets::VARIABLE);
        };
        let (train, valid) = phrases_and_sentences(&folder).unwrap();
        let test = LabelledTexts::sentiment(&folder, Sentiment::Sentences, Part::Test).unwrap();
        let learned: HashSet<String> = train.examples.iter().map(|e| letters(&e.text)).collect();
        for example in valid.examples.iter().chain(&test.examples) {
            assert!(!learned.contains(&letters(&example.text)), "{}", example.text);
        }
        assert!(train.examples.len() > 70_000 && valid.examples.len() == 872);
    }
}
