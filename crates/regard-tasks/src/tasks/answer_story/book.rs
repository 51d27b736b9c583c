//! Encoded stories with their reference answers.

use super::{StoryVocabulary, Tales};
use regard_models::Result;
use regard_models::story::{Stories, StoryLimits};
use std::collections::HashMap;

/// Questions with their stories. Sentences recur often, so each is stored once.
#[derive(Clone, Debug, Default)]
pub(super) struct Book {
    sentences: Vec<Vec<u32>>,
    pub questions: Vec<StoryQuestion>,
    /// Number of unusable questions of each task: with a word or an answer unknown to the model, or
    /// a sentence that is too long.
    pub unreadable: Vec<(usize, usize)>,
}

/// A question, as indices into the sentences.
#[derive(Clone, Debug)]
pub(super) struct StoryQuestion {
    pub task: usize,
    facts: Vec<u32>,
    question: u32,
    pub answer: usize,
    /// Indices of the supporting sentences, from the first sentence that is kept.
    pub support: Vec<usize>,
}

impl Book {
    /// Encodes stories. Of long stories the last sentences are kept, as in the literature.
    pub fn new(tales: &[Tales], words: &StoryVocabulary, limits: &StoryLimits) -> Result<Book> {
        let mut book = Book::default();
        let mut known: HashMap<&str, Option<u32>> = HashMap::new();
        for Tales { task, stories } in tales {
            let mut unreadable = 0;
            for (facts, question) in stories.iter().flat_map(|story| story.asked()) {
                let kept = facts.len().saturating_sub(limits.sentences);
                let mut number = |text: &'_ str| book.number(text, words, limits);
                let mut numbers = vec![];
                for text in facts[kept..].iter().map(|fact| fact.text.as_str()) {
                    let entry = known.entry(text);
                    numbers.push(*entry.or_insert_with(|| number(text)));
                }
                let asked = *known.entry(&question.text).or_insert_with(|| number(&question.text));
                let facts_read: Option<Vec<u32>> = numbers.into_iter().collect();
                let answer = words.answer(&question.answers);
                let (Some(read), Some(asked), Some(answer)) = (facts_read, asked, answer) else {
                    unreadable += 1;
                    continue;
                };
                let place = |id: &usize| facts[kept..].iter().position(|fact| fact.id == *id);
                let support = question.support.iter().filter_map(place).collect();
                let task = *task;
                book.questions.push(StoryQuestion {
                    task,
                    facts: read,
                    question: asked,
                    answer,
                    support,
                });
            }
            book.unreadable.push((*task, unreadable));
        }
        Ok(book)
    }

    /// Encodes and stores a new sentence; `None` if it has unknown words or is too long.
    fn number(&mut self, text: &str, words: &StoryVocabulary, limits: &StoryLimits) -> Option<u32> {
        let ids = words.encode(text).ok().filter(|ids| ids.len() <= limits.words)?;
        self.sentences.push(ids);
        Some(self.sentences.len() as u32 - 1)
    }

    /// Converts questions to model input.
    pub fn stories<'a>(&self, asked: impl Iterator<Item = &'a StoryQuestion>) -> Stories {
        let mut stories = Stories::new();
        for StoryQuestion { facts, question, .. } in asked {
            let facts: Vec<&Vec<u32>> =
                facts.iter().map(|at| &self.sentences[*at as usize]).collect();
            stories.push(&facts, &self.sentences[*question as usize]);
        }
        stories
    }
}
