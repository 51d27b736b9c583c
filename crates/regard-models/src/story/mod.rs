//! Models that answer a question about a story, given sentence by sentence.
//!
//! A sentence is one vector, and attention is between sentences, so attention weights show which
//! sentences a model used, hop by hop.
//!
//! ```
//! use burn::tensor::Device;
//! use regard_attention::Mode;
//! use regard_models::story::{Stories, StoryModel};
//! use regard_models::zoo;
//! use serde_json::json;
//!
//! let config = json!({
//!     "model_type": "story", "vocab_size": 30, "num_labels": 5, "hidden_size": 16,
//!     "num_attention_heads": 2, "intermediate_size": 32, "repetitions": 3,
//! });
//! let model = zoo::create::<dyn StoryModel>(&config, 7, &Device::flex()).unwrap();
//! let mut stories = Stories::new();
//! stories.push(&[vec![4, 7, 9], vec![5, 7, 8, 3]], &[6, 2, 4]);
//! stories.push(&[[5, 7, 9]], &[6, 2, 5]);
//! assert_eq!(model.forward(&stories, Mode::Eval).dims(), [2, 5]);
//! ```

pub mod hops;
pub mod repeated;
mod sentences;
mod stories;

pub use sentences::Times;
pub use stories::Stories;

pub(crate) use hops::Hops;
pub(crate) use repeated::Repeated;

use crate::network::{Description, Network};
use burn::tensor::Tensor;
use regard_attention::Mode;

/// Largest inputs of a model, and its number of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoryLimits {
    /// Most sentences of a story, without the question.
    pub sentences: usize,
    /// Most words of a sentence.
    pub words: usize,
    /// Size of the vocabulary.
    pub vocabulary: usize,
    /// Number of possible answers.
    pub answers: usize,
}

/// A model that answers questions about stories.
pub trait StoryModel: Network {
    /// Largest inputs of the model, and its number of answers.
    fn limits(&self) -> StoryLimits;

    /// Computes the logits of every answer to each question, `[B, answers]`. Appends attention
    /// weights to `looks`, if given. The stories must be within the limits.
    fn read(&self, stories: &Stories, mode: Mode, looks: Option<&mut Vec<Tensor<3>>>) -> Tensor<2>;

    /// Computes the logits of every answer to each question, `[B, answers]`.
    ///
    /// # Panics
    /// If a story or a sentence exceeds the limits.
    fn forward(&self, stories: &Stories, mode: Mode) -> Tensor<2> {
        stories.check(&self.limits());
        self.read(stories, mode, None)
    }

    /// Processes one story; returns the logits, and the weights of each attention, `[H, T, S]`,
    /// from each sentence (the question is the last) to each.
    ///
    /// # Panics
    /// As [`StoryModel::forward`], or if there is more than one story.
    fn forward_with_attention(&self, story: &Stories) -> (Tensor<2>, Vec<Tensor<3>>) {
        assert_eq!(story.len(), 1, "forward_with_attention: need one story");
        story.check(&self.limits());
        let mut looks = vec![];
        let scores = self.read(story, Mode::Eval, Some(&mut looks));
        (scores, looks)
    }
}

/// Describes a story model, given its attention.
fn describe(model: &impl StoryModel, attention: Vec<String>) -> Description {
    let StoryLimits { sentences, words, vocabulary, .. } = model.limits();
    let reads = format!("stories of up to {sentences} sentences of up to {words} words");
    Description { reads, vocabulary: Some(vocabulary), longest: None, attention }
}
