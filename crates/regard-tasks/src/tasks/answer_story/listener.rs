//! A model that is told a story and asked.

use super::words::sentences;
use super::{Words, look};
use crate::logits::{finite, softmax};
use crate::text::Tokenizer;
use crate::train;
use burn::tensor::Device;
use regard_attention::backend;
use regard_models::story::{Limits, Stories, StoryModel};
use regard_models::{Error, ModelFiles, Result, zoo};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a model answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reply {
    /// A word, or several with commas between them.
    pub answer: String,
    /// How sure the model is.
    pub score: f64,
}

/// A sentence that a model looked at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Support {
    /// Its number in the story, from 0.
    pub sentence: usize,
    /// Its text.
    pub text: String,
    /// How much of a look the question took at it, at most, at any time.
    pub weight: f64,
}

/// What a model answers, and what it looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct Heard {
    /// The likeliest answers, the likeliest first.
    pub replies: Vec<Reply>,
    /// The sentences that it looked at, in their order.
    pub support: Vec<Support>,
}

/// A model that listens, with its words.
pub struct Listener {
    model: Box<dyn StoryModel>,
    words: Words,
}

impl Listener {
    /// From a model and its words.
    pub fn new(model: Box<dyn StoryModel>, words: Words) -> Result<Listener> {
        let Limits { vocabulary, answers, .. } = model.limits();
        let (known, given) = (words.size(), words.answers().len());
        if known > vocabulary || given != answers {
            return Err(Error::invalid(format!(
                "{known} words and {given} answers, of which the model has {vocabulary} and \
                 {answers}"
            )));
        }
        Ok(Listener { model, words })
    }

    /// Opens a model: of a folder, which may be a training run's, or of a part of the program.
    pub fn load(model: impl Into<ModelFiles>) -> Result<Listener> {
        let files = train::files(model)?;
        let model = zoo::open::<dyn StoryModel>(files.clone(), &Device::flex())?;
        let words = Words::new(Tokenizer::of(&files)?, &model.config());
        Listener::new(model, words).map_err(|e| Error::file(files.place(), e.to_string()))
    }

    /// Its model.
    pub fn model(&self) -> &dyn StoryModel {
        &*self.model
    }

    /// Its words.
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// Answers a question about a story, with so many replies at most. Of a story that is longer
    /// than the model reads, what was said last is kept, as in training.
    pub fn answer(&self, question: &str, story: &str, top_k: usize) -> Result<Heard> {
        let told = sentences(story);
        let first = told.len().saturating_sub(self.model.limits().sentences);
        let facts = told[first..].iter().map(|text| self.read(text));
        let facts: Vec<Vec<u32>> = facts.collect::<Result<_>>()?;
        let mut stories = Stories::new();
        stories.push(&facts, &self.read(question)?);
        let (logits, looks) = self.model.look_inside(&stories);
        let mut scores = vec![];
        backend::numbers(logits, &mut scores);
        finite(&scores)?;
        let weights = look::weights(&looks, facts.len());
        let support = look::chosen(&weights).map(|at| Support {
            sentence: first + at,
            text: told[first + at].to_string(),
            weight: weights[at],
        });
        Ok(Heard { replies: self.replies(&scores, top_k), support: support.collect() })
    }

    fn read(&self, sentence: &str) -> Result<Vec<u32>> {
        let (ids, most) = (self.words.encode(sentence)?, self.model.limits().words);
        match ids.len() > most {
            false => Ok(ids),
            true => Err(Error::invalid(format!(
                "{sentence:?} has {} words, the model reads sentences of at most {most}",
                ids.len()
            ))),
        }
    }

    fn replies(&self, scores: &[f32], top_k: usize) -> Vec<Reply> {
        let all = softmax(scores).into_iter().zip(self.words.answers());
        let mut all: Vec<Reply> =
            all.map(|(score, answer)| Reply { answer: answer.clone(), score }).collect();
        all.sort_by(|a, b| b.score.total_cmp(&a.score));
        all.truncate(top_k);
        all
    }
}
