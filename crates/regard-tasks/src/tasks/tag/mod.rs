//! Token classification: labels for the words of a text.

mod evaluate;
mod given;
pub(crate) mod learn;
mod pipeline;

use crate::logits::softmax;
use crate::reader::{AT_ONCE, TextEncoder, numbers};
use crate::text::Encoding;
pub use pipeline::{Parameters, Response, Tagger};
use regard_models::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Aggregation of neighbouring tokens with the same label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Grouping {
    /// Tokens are merged into entities by the `B-` and `I-` prefixes of their labels; tokens
    /// without a prefix are merged while the label stays the same. The score is the mean over the
    /// tokens. Tokens labelled `O` are left out.
    #[default]
    Entities,
    /// One result per word, with the label of its first token.
    Words,
    /// One result per token.
    Tokens,
}

/// A labelled span of the text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Entity {
    /// Label of the span; with `entities` aggregation, without its `B-` or `I-` prefix.
    pub entity_group: String,
    /// Probability of the label, 0 to 1.
    pub score: f64,
    /// Text of the span.
    pub word: String,
    /// Index of the first character in the text, from 0.
    pub start: usize,
    /// Index one past the last character in the text.
    pub end: usize,
}

/// A token with its predicted label.
struct Tagged {
    label: String,
    score: f64,
    bytes: (usize, usize),
    characters: (usize, usize),
    word: Option<u32>,
}

impl TextEncoder {
    /// Returns the labelled spans of each text. `O` is left out of entities. A text longer than the
    /// model's maximum length is encoded in windows that overlap by a quarter; a token's label
    /// comes from the window in which it is furthest from an end.
    pub fn tag(&self, texts: &[&str], grouping: Grouping) -> Result<Vec<Vec<Entity>>> {
        texts.iter().map(|text| self.tag_one(text, grouping)).collect()
    }

    /// Returns a label and its probability for each word of sentences that are already split into
    /// words.
    ///
    /// # Errors
    /// If the model's tokens are not words.
    pub fn tag_words(&self, sentences: &[Vec<&str>]) -> Result<Vec<Vec<(String, f64)>>> {
        let mut all = vec![vec![]; sentences.len()];
        let written: Vec<usize> =
            (0..sentences.len()).filter(|i| !sentences[*i].is_empty()).collect();
        let encode = |i: &usize| self.tokenizer.encode_words(&sentences[*i]);
        let encodings: Vec<Encoding> = written.iter().map(encode).collect::<Result<_>>()?;
        self.read(&encodings, |first, part, said| {
            let logits = said.logits.ok_or_else(|| self.without_head("ForTokenClassification"))?;
            let [_, labels] = logits.dims();
            let logits = numbers(logits)?;
            let mut rows = logits.chunks_exact(labels);
            for (sentence, encoding) in written[first..].iter().zip(part) {
                let likeliest = |row| self.likeliest(row);
                all[*sentence] = rows.by_ref().take(encoding.len()).map(likeliest).collect();
            }
            Ok(())
        })?;
        Ok(all)
    }

    fn likeliest(&self, logits: &[f32]) -> (String, f64) {
        let scores = softmax(logits);
        let best = (0..scores.len()).max_by(|a, b| scores[*a].total_cmp(&scores[*b])).unwrap_or(0);
        (self.label(best), scores.get(best).copied().unwrap_or(0.0))
    }

    fn tag_one(&self, text: &str, grouping: Grouping) -> Result<Vec<Entity>> {
        Ok(grouped(text, self.tokens(text)?, grouping))
    }

    /// Returns the tokens of a text with their labels.
    fn tokens(&self, text: &str) -> Result<Vec<Tagged>> {
        let longest = self.longest().min(AT_ONCE);
        let windows = self.tokenizer.windows(text, None, longest, longest / 4)?;
        if windows.iter().all(Encoding::is_empty) {
            return Ok(vec![]);
        }
        let mut tokens: Vec<(Tagged, usize)> = vec![];
        self.read(&windows, |_, part, said| {
            let logits = said.logits.ok_or_else(|| self.without_head("ForTokenClassification"))?;
            let [_, labels] = logits.dims();
            let logits = numbers(logits)?;
            let mut row = 0;
            for window in part {
                let rows = &logits[row * labels..(row + window.len()) * labels];
                let here = self.tagged(text, window, rows, labels);
                // Windows are slices of one token sequence: if the first token is aligned, all are.
                let first = here.first().map(|(tagged, _)| tagged.bytes);
                let same = tokens.iter().position(|(known, _)| Some(known.bytes) == first);
                let from = same.unwrap_or(tokens.len());
                for (i, (tagged, far)) in here.into_iter().enumerate() {
                    match tokens.get_mut(from + i) {
                        // Keeps the prediction of the window with more context around the token.
                        Some(known) if known.1 >= far => {}
                        Some(known) => *known = (tagged, far),
                        None => tokens.push((tagged, far)),
                    }
                }
                row += window.len();
            }
            Ok(())
        })?;
        Ok(tokens.into_iter().map(|(tagged, _)| tagged).collect())
    }

    /// Returns the non-special tokens of a window, each with its distance to the nearer end.
    fn tagged(
        &self,
        text: &str,
        window: &Encoding,
        logits: &[f32],
        labels: usize,
    ) -> Vec<(Tagged, usize)> {
        let characters = window.in_characters(&[text]);
        let real = (0..window.len()).filter(|at| !window.special[*at]);
        let one = |at: usize| {
            let (label, score) = self.likeliest(&logits[at * labels..][..labels]);
            let tagged = Tagged {
                label,
                score,
                bytes: window.offsets[at],
                characters: characters[at],
                word: window.words[at],
            };
            (tagged, at.min(window.len() - 1 - at))
        };
        real.map(one).collect()
    }
}

/// Returns whether a label begins an entity, and the label without its prefix.
fn kind(label: &str, grouping: Grouping) -> (bool, &str) {
    match (grouping, label.split_at_checked(2)) {
        (Grouping::Entities, Some(("B-", kind))) => (true, kind),
        (Grouping::Entities, Some(("I-", kind))) => (false, kind),
        _ => (false, label),
    }
}

fn grouped(text: &str, tokens: Vec<Tagged>, grouping: Grouping) -> Vec<Entity> {
    let mut groups: Vec<Vec<Tagged>> = vec![];
    for token in tokens {
        let joins =
            groups.last().and_then(|group| group.last()).is_some_and(|last| match grouping {
                Grouping::Tokens => false,
                Grouping::Words => last.word == token.word,
                Grouping::Entities => {
                    let (begins, kind_here) = kind(&token.label, grouping);
                    !begins && kind_here == kind(&last.label, grouping).1
                }
            });
        match groups.last_mut().filter(|_| joins) {
            Some(group) => group.push(token),
            None => groups.push(vec![token]),
        }
    }
    let entity = |group: Vec<Tagged>| {
        let (first, last) = (&group[0], &group[group.len() - 1]);
        let score = match grouping {
            Grouping::Entities => group.iter().map(|t| t.score).sum::<f64>() / group.len() as f64,
            _ => first.score,
        };
        Entity {
            entity_group: kind(&first.label, grouping).1.to_string(),
            score,
            word: text.get(first.bytes.0..last.bytes.1).unwrap_or_default().to_string(),
            start: first.characters.0,
            end: last.characters.1,
        }
    };
    let all = groups.into_iter().map(entity);
    all.filter(|entity| grouping != Grouping::Entities || entity.entity_group != "O").collect()
}
