//! Inference of question answering on stories.

use super::words::sentences;
use super::{StoryVocabulary, look};
use crate::logits::{finite, softmax};
use crate::text::Tokenizer;
use crate::train;
use burn::tensor::Device;
use regard_attention::backend;
use regard_models::story::{Stories, StoryLimits, StoryModel};
use regard_models::{Error, ModelFiles, Result, zoo};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A predicted answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reply {
    /// Answer: one word, or several separated by commas.
    pub answer: String,
    /// Probability of the answer, 0 to 1.
    pub score: f64,
}

/// A sentence that the model attended to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Support {
    /// Index of the sentence in the story, from 0.
    pub sentence: usize,
    /// Text of the sentence.
    pub text: String,
    /// Largest attention weight of the question on this sentence over all layers, 0 to 1.
    pub weight: f64,
}

/// Answers with the sentences that were attended to.
#[derive(Clone, Debug, PartialEq)]
pub struct StoryAnswer {
    /// Most probable answers, the best first.
    pub replies: Vec<Reply>,
    /// Attended sentences, in story order.
    pub support: Vec<Support>,
}

/// Story model with its vocabulary.
pub struct StoryAnswerer {
    model: Box<dyn StoryModel>,
    words: StoryVocabulary,
}

impl StoryAnswerer {
    /// Creates a story answerer from a model and its vocabulary.
    pub fn new(model: Box<dyn StoryModel>, words: StoryVocabulary) -> Result<StoryAnswerer> {
        let StoryLimits { vocabulary, answers, .. } = model.limits();
        let (known, given) = (words.size(), words.answers().len());
        if known > vocabulary || given != answers {
            return Err(Error::invalid(format!(
                "vocabulary: got {known} words and {given} answers, the model has {vocabulary} and \
                 {answers}"
            )));
        }
        Ok(StoryAnswerer { model, words })
    }

    /// Opens a model: from a folder, which may be a training run's, or a built-in one.
    pub fn load(model: impl Into<ModelFiles>) -> Result<StoryAnswerer> {
        let files = train::files(model)?;
        let model = zoo::open::<dyn StoryModel>(files.clone(), &Device::flex())?;
        let words = StoryVocabulary::new(Tokenizer::of(&files)?, &model.config());
        StoryAnswerer::new(model, words).map_err(|e| Error::file(files.place(), e.to_string()))
    }

    /// Returns the model.
    pub fn model(&self) -> &dyn StoryModel {
        &*self.model
    }

    /// Returns the vocabulary.
    pub fn words(&self) -> &StoryVocabulary {
        &self.words
    }

    /// Answers a question about a story with at most `top_k` replies. Of a story longer than the
    /// model's maximum the last sentences are kept, as in training.
    pub fn answer(&self, question: &str, story: &str, top_k: usize) -> Result<StoryAnswer> {
        let told = sentences(story);
        let first = told.len().saturating_sub(self.model.limits().sentences);
        let facts = told[first..].iter().map(|text| self.read(text));
        let facts: Vec<Vec<u32>> = facts.collect::<Result<_>>()?;
        let mut stories = Stories::new();
        stories.push(&facts, &self.read(question)?);
        let (logits, looks) = self.model.forward_with_attention(&stories);
        let mut scores = vec![];
        backend::numbers(logits, &mut scores);
        finite(&scores)?;
        let weights = look::weights(&looks, facts.len());
        let support = look::chosen(&weights).map(|at| Support {
            sentence: first + at,
            text: told[first + at].to_string(),
            weight: weights[at],
        });
        Ok(StoryAnswer { replies: self.replies(&scores, top_k), support: support.collect() })
    }

    fn read(&self, sentence: &str) -> Result<Vec<u32>> {
        let (ids, most) = (self.words.encode(sentence)?, self.model.limits().words);
        match ids.len() > most {
            false => Ok(ids),
            true => Err(Error::invalid(format!(
                "{sentence:?} has {} words, the model takes sentences of at most {most}",
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
