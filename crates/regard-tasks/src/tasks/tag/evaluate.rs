//! Evaluation of token classification.

use super::learn::{Tagged, Words};
use crate::evaluation::{DetailedMarks, Details, Metric};
use crate::metrics::{Entities, Scheme};
use crate::reader::learn::{EvaluationExamples, Evaluator, Marks, likeliest};
use crate::recipe::details::{JudgedLabel, ShownInput};
use regard_models::Result;
use std::collections::HashMap;

/// Label of a word outside all entities.
const OUTSIDE: &str = "O";
/// Number of words before and after a word that is shown in its sentence.
const AROUND: usize = 12;

impl EvaluationExamples for Tagged {
    fn asked(&self) -> usize {
        self.sentences.iter().map(|sentence| sentence.words.len()).sum()
    }

    fn mark(&self, exam: &Evaluator) -> Result<Marks> {
        Ok((self.marks(&exam.labels(&self.examples)?)?, None))
    }

    fn mark_in_detail(&self, exam: &Evaluator) -> Result<DetailedMarks> {
        let rows = exam.logits(&self.examples)?;
        let said: Vec<Vec<usize>> =
            rows.iter().map(|rows| rows.iter().map(|row| likeliest(row)).collect()).collect();
        let width = rows.iter().flatten().next().map_or(0, Vec::len);
        let mut names = exam.names(width);
        // Labels that the model does not have come after its own.
        let mut known: HashMap<&str, usize> = HashMap::new();
        let (mut judged, mut places) = (vec![], vec![]);
        for (sentence, Words { example, words }) in self.sentences.iter().enumerate() {
            for (word, (token, right)) in words.iter().enumerate() {
                let right = *known.entry(right.as_str()).or_insert_with(|| {
                    let own = exam.reader.label_number(right).filter(|at| *at < names.len());
                    own.unwrap_or_else(|| {
                        names.push(right.clone());
                        names.len() - 1
                    })
                });
                judged.push(match example.zip(*token) {
                    Some((example, token)) => {
                        JudgedLabel::new(&rows[example][token], said[example][token], right)
                    }
                    None => JudgedLabel::missed(right),
                });
                places.push((sentence, word));
            }
        }
        let show = |at: usize| {
            let (sentence, word) = places[at];
            let words = self.shown.get(sentence).map_or(&[][..], |words| &words[..]);
            let number = self.is_whole.then_some(sentence + 1);
            ShownInput { number, text: within(words, word) }
        };
        Ok((self.marks(&said)?, Some(Details::of_labels(&names, &judged, show))))
    }
}

/// Writes a word in brackets, with the words around it.
fn within(words: &[String], at: usize) -> String {
    let (from, to) = (at.saturating_sub(AROUND), (at + AROUND + 1).min(words.len()));
    let mut text = if from > 0 { "… ".to_string() } else { String::new() };
    for (place, word) in words.iter().enumerate().take(to).skip(from) {
        let between = if place > from { " " } else { "" };
        text += between;
        text += &if place == at { format!("[{word}]") } else { word.clone() };
    }
    if to < words.len() {
        text += " …";
    }
    text
}

impl Tagged {
    /// Computes the metrics of the predicted labels. Words without a token count as wrong.
    fn marks(&self, said: &[Vec<usize>]) -> Result<Vec<Metric>> {
        let mut entities = Entities::new(Scheme::Lenient);
        let (mut right, mut asked) = (0, 0);
        for Words { example, words } in &self.sentences {
            let say = |token: Option<usize>| -> Option<(usize, i64)> {
                let (example, token) = ((*example)?, token?);
                Some((said[example][token], self.examples[example].wanted[token]))
            };
            let tags: Vec<_> = words.iter().map(|(token, _)| say(*token)).collect();
            right += tags.iter().flatten().filter(|(said, right)| *said as i64 == *right).count();
            asked += words.len();
            if names_entities(&self.labels) {
                let name = |tag: &Option<(usize, i64)>| -> &str {
                    tag.and_then(|(said, _)| self.labels.get(said)).map_or(OUTSIDE, |name| name)
                };
                let tags: Vec<&str> = tags.iter().map(name).collect();
                let wanted: Vec<&str> = words.iter().map(|(_, right)| right.as_str()).collect();
                entities.add(&tags, &wanted)?;
            }
        }
        let accuracy = 100.0 * right as f64 / asked.max(1) as f64;
        let mut marks = vec![Metric { name: "accuracy", value: accuracy, unit: "% of words" }];
        if names_entities(&self.labels) {
            let micro = entities.micro();
            for (name, value) in [
                ("entity_f1", micro.f1),
                ("entity_precision", micro.precision),
                ("entity_recall", micro.recall),
            ] {
                marks.push(Metric { name, value: 100.0 * value, unit: "% of entities (seqeval)" });
            }
        }
        Ok(marks)
    }
}

/// Whether the labels use a scheme such as `B-PER`, `I-PER`, `O`.
fn names_entities(labels: &[String]) -> bool {
    let begins = |label: &String, letters: &[&str]| letters.iter().any(|l| label.starts_with(l));
    labels.iter().any(|label| begins(label, &["B-", "S-"]))
        && labels.iter().all(|label| label == OUTSIDE || begins(label, &["B-", "I-", "E-", "S-"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_shown_in_its_sentence() {
        let words: Vec<String> = (0..40).map(|i| format!("w{i}")).collect();
        assert_eq!(within(&words[..3], 1), "w0 [w1] w2");
        let inner = within(&words, 20);
        assert!(inner.starts_with("… w8 w9 ") && inner.ends_with(" w32 …"), "{inner}");
        assert!(inner.contains(" w19 [w20] w21 "), "{inner}");
        assert_eq!(within(&[], 3), "");
    }
}
