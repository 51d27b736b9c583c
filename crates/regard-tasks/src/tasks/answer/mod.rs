//! Extractive question answering: the answer is a span of the text.

pub(crate) mod learn;
mod pipeline;

use crate::reader::{TextEncoder, numbers};
pub use pipeline::{Answerer, Inputs, Response};
use regard_models::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A candidate answer: a span of the context.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// Text of the span; empty if the model predicts that there is no answer.
    pub answer: String,
    /// Probability of the span, 0 to 1: that of its start times that of its end.
    pub score: f64,
    /// Index of the first character in the context, from 0.
    pub start: usize,
    /// Index one past the last character in the context.
    pub end: usize,
}

/// Parameters of extractive question answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Asking {
    /// Maximum number of answers to return, the most probable first.
    pub top_k: usize,
    /// Maximum number of tokens in an answer.
    pub max_answer_len: usize,
    /// Maximum number of tokens in a window, question and special tokens included; capped at the
    /// model's maximum length.
    pub max_seq_len: usize,
    /// Number of tokens by which consecutive windows of a long context overlap.
    pub doc_stride: usize,
    /// Whether "no answer" may be returned: scored by the start and end probabilities of the
    /// `[CLS]` token.
    pub handle_impossible_answer: bool,
}

impl Asking {
    /// Checks the parameters.
    ///
    /// # Errors
    /// If a count is 0; the message names the first such parameter.
    pub fn check(&self) -> Result<()> {
        let counts = [
            ("top_k", self.top_k),
            ("max_answer_len", self.max_answer_len),
            ("max_seq_len", self.max_seq_len),
        ];
        match counts.iter().find(|(_, count)| *count == 0) {
            Some((name, _)) => Err(Error::invalid(format!("{name}: got 0, need at least 1"))),
            None => Ok(()),
        }
    }
}

impl Default for Asking {
    /// Returns the defaults of Hugging Face's question-answering pipeline.
    fn default() -> Asking {
        Asking {
            top_k: 1,
            max_answer_len: 15,
            max_seq_len: 384,
            doc_stride: 128,
            handle_impossible_answer: false,
        }
    }
}

impl TextEncoder {
    /// Returns the most probable answer spans of a context, the best first. A long context is
    /// encoded in overlapping windows.
    pub fn answer(&self, question: &str, context: &str, asking: &Asking) -> Result<Vec<Answer>> {
        let length = asking.max_seq_len.min(self.longest());
        let stride = asking.doc_stride.min(length / 2);
        let windows = self.tokenizer.windows(question, Some(context), length, stride)?;
        let (mut found, mut nothing): (Vec<Answer>, f64) = (vec![], 1.0);
        let cls = match (asking.handle_impossible_answer, self.tokenizer.special().cls) {
            (true, None) => {
                let message = "handle_impossible_answer: the score of \"no answer\" needs a [CLS] \
                               token, and the vocabulary has none";
                return Err(Error::invalid(message));
            }
            (asked, cls) => cls.filter(|_| asked),
        };
        self.read(&windows, |_, part, said| {
            let logits = said.logits.ok_or_else(|| self.without_head("ForQuestionAnswering"))?;
            let logits = numbers(logits)?;
            let mut row = 0;
            for window in part {
                let places = window.places(1);
                let ends = |side: usize| -> Vec<f32> {
                    (0..window.len()).map(|at| logits[2 * (row + at) + side]).collect()
                };
                // BERT has `[CLS]` at the start, XLNet at the end.
                let is_nowhere = |at: &usize| window.special[*at] && Some(window.ids[*at]) == cls;
                let nowhere = (0..window.len()).find(is_nowhere);
                let allowed: Vec<bool> = (0..window.len())
                    .map(|at| places.contains(&at) || Some(at) == nowhere)
                    .collect();
                let (start, end) = (shares(&ends(0), &allowed), shares(&ends(1), &allowed));
                if let Some(at) = nowhere {
                    nothing = nothing.min(start[at] * end[at]);
                }
                let characters = window.in_characters(&[question, context]);
                for from in places.clone() {
                    let last = places.end.min(from.saturating_add(asking.max_answer_len));
                    for to in from..last {
                        let bytes = (window.offsets[from].0, window.offsets[to].1);
                        found.push(Answer {
                            answer: context.get(bytes.0..bytes.1).unwrap_or_default().to_string(),
                            score: start[from] * end[to],
                            start: characters[from].0,
                            end: characters[to].1,
                        });
                    }
                }
                row += window.len();
            }
            Ok(())
        })?;
        if asking.handle_impossible_answer {
            found.push(Answer { answer: String::new(), score: nothing, start: 0, end: 0 });
        }
        found.sort_by(|a, b| b.score.total_cmp(&a.score));
        let mut best: Vec<Answer> = vec![];
        for answer in found {
            // Overlapping windows may contain the same span.
            if best.len() < asking.top_k && !best.iter().any(|known| same(known, &answer)) {
                best.push(answer);
            }
        }
        Ok(best)
    }
}

fn same(one: &Answer, other: &Answer) -> bool {
    (one.start, one.end) == (other.start, other.end)
}

/// Computes the softmax over the allowed positions; the others get 0.
fn shares(logits: &[f32], allowed: &[bool]) -> Vec<f64> {
    let inside = logits.iter().zip(allowed).filter(|(_, allowed)| **allowed);
    let most = inside.map(|(x, _)| *x).fold(f32::NEG_INFINITY, f32::max);
    let power = |(x, allowed): (&f32, &bool)| {
        if *allowed { f64::from(x - most).exp() } else { 0.0 }
    };
    let powers: Vec<f64> = logits.iter().zip(allowed).map(power).collect();
    let sum: f64 = powers.iter().sum();
    powers.into_iter().map(|x| if sum > 0.0 { x / sum } else { 0.0 }).collect()
}
