//! Labels of sentences that are already split into words: every word keeps its form.

use super::{Entity, Grouping, Tagged, grouped};
use crate::data::conllu::Sentence;
use crate::reader::{AT_ONCE, TextEncoder};
use crate::say;
use regard_models::{Error, Result};
use std::borrow::Cow;
use std::ops::Range;

impl TextEncoder {
    /// Returns the labelled spans of a sentence that is already split into words, as
    /// [`TextEncoder::tag`] does for a text. A word has the label of its first token, as in training.
    /// Offsets are those in the text of the sentence, or in its words with spaces between them if
    /// they are not found in its text.
    ///
    /// # Errors
    /// If a word has no token, and with [`Grouping::Tokens`]: tokens are not those words.
    pub fn tag_sentence(&self, sentence: &Sentence, grouping: Grouping) -> Result<Vec<Entity>> {
        if grouping == Grouping::Tokens {
            let message = "the words are given and get a label each; tokens are for texts";
            return Err(Error::invalid(message));
        }
        let forms: Vec<&str> = sentence.words.iter().map(|word| word.form.as_str()).collect();
        let (mut text, mut places) = written(sentence).unwrap_or_else(|| joined(&forms));
        let labels = match self.tokenizer.alphabet().is_some() {
            true => {
                let longest = self.longest().clamp(1, AT_ONCE);
                let parts: Vec<Vec<&str>> = forms.chunks(longest).map(<[&str]>::to_vec).collect();
                self.tag_words(&parts)?.concat()
            }
            false => {
                let mut labels = first_labels(&self.tokens(&text)?, &places);
                if labels.contains(&None) {
                    // A token of the text spans two words.
                    (text, places) = joined(&forms);
                    labels = first_labels(&self.tokens(&text)?, &places);
                }
                let lacks = |at: usize| {
                    let form = say::short(forms[at], 40);
                    Error::invalid(format!("word {}, {form:?}, has no token", at + 1))
                };
                let each = labels.into_iter().enumerate();
                each.map(|(at, label)| label.ok_or_else(|| lacks(at))).collect::<Result<_>>()?
            }
        };
        let words = labels.into_iter().zip(&places).enumerate();
        let words = words.map(|(at, ((label, score), place))| {
            let start = text[..place.start].chars().count();
            let characters = (start, start + text[place.clone()].chars().count());
            let bytes = (place.start, place.end);
            Tagged { label, score, bytes, characters, word: Some(at as u32) }
        });
        Ok(grouped(&text, words.collect(), grouping))
    }
}

/// Text of a sentence and the places of its words; `None` if one is not found in it.
fn written(sentence: &Sentence) -> Option<(Cow<'_, str>, Vec<Range<usize>>)> {
    let places = sentence.words.iter().map(|word| word.place.clone()).collect::<Option<_>>()?;
    Some((sentence.text.as_deref()?.into(), places))
}

/// Words with spaces between them, and their places.
fn joined(forms: &[&str]) -> (Cow<'static, str>, Vec<Range<usize>>) {
    let mut start = 0;
    let place = |form: &&str| {
        let place = start..start + form.len();
        start = place.end + 1;
        place
    };
    let places = forms.iter().map(place).collect();
    (forms.join(" ").into(), places)
}

/// Label of the first token of each word; `None` for a word that has none of
/// its own.
fn first_labels(tokens: &[Tagged], places: &[Range<usize>]) -> Vec<Option<(String, f64)>> {
    let mut from = 0;
    let one = |place: &Range<usize>| {
        let touches =
            |at: &usize| tokens[*at].bytes.1 > place.start && tokens[*at].bytes.0 < place.end;
        let at = (from..tokens.len()).find(touches)?;
        let token = &tokens[at];
        (token.bytes.0 >= place.start).then(|| {
            from = at + 1;
            (token.label.clone(), token.score)
        })
    };
    places.iter().map(one).collect()
}
