//! Encodes the words of a sentence as one vector.

use super::StoryLimits;
use super::stories::{Layout, Stories};
use crate::checkpoint::Binder;
use crate::sizes;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use regard_attention::layers::{Embedding, EmbeddingConfig, sinusoidal};
use regard_attention::{Init, Mode, ops};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, OnceLock};

/// Encoding of a sentence's age.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Times {
    /// A sinusoidal vector for each age.
    #[default]
    Sines,
    /// A learned vector for each age.
    Learned,
}

/// Most sentences of a story with sinusoidal ages, where no tensor limits them.
const MOST_SENTENCES: usize = 1 << 16;

/// Sizes of [`Sentences`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub vocabulary: usize,
    pub width: usize,
    pub words: usize,
    pub sentences: usize,
    pub padding: u32,
    pub times: Times,
    pub noise: f32,
    /// Standard deviation of the initial embeddings.
    pub deviation: f32,
    /// Standard deviation of the initial position vectors, in the second half of their features.
    pub order: f32,
}

impl Sizes {
    /// Checks sizes before any tensor is allocated.
    pub fn check(&self, answers: usize) -> Result<(), String> {
        let (words, width) = (("vocab_size", self.vocabulary), ("hidden_size", self.width));
        let (wide, long) = (("max_words", self.words), ("max_sentences", self.sentences));
        sizes::check(&[words, width, wide, long])?;
        // Sinusoidal vectors are not in the file, so nothing else limits their number.
        if self.times == Times::Sines && self.sentences > MOST_SENTENCES {
            return Err(format!(
                "max_sentences: got {}, need 1 to {MOST_SENTENCES} with times \"sines\"",
                self.sentences
            ));
        }
        let answers = ("num_labels", answers);
        sizes::check_matrices(&[
            [words, width],
            [width, width],
            [wide, width],
            [long, width],
            [answers, width],
        ])?;
        sizes::check_ids(&[("pad_token_id", self.padding)], self.vocabulary)?;
        sizes::check_shares(&[("time_noise", self.noise)])
    }

    pub fn limits(&self, answers: usize) -> StoryLimits {
        let Sizes { vocabulary, words, sentences, .. } = *self;
        StoryLimits { sentences, words, vocabulary, answers }
    }
}

/// `Σ_j place_j ⊙ word_j + time`: word embeddings multiplied with a vector for their position in
/// the sentence, so that order counts (fixed in Sukhbaatar et al. 2015, learned in Henaff et al.
/// 2017), plus a vector for the age of the sentence.
#[derive(Module, Debug)]
pub(super) struct Sentences {
    words: Embedding,
    /// Position vectors, `[words, M]`.
    places: Param<Tensor<2>>,
    /// Age vectors, `[sentences + 1, M]`, if they are learned.
    times: Option<Param<Tensor<2>>>,
    /// Probability in training that ages skip a step before a sentence, so that ages are learned
    /// with some tolerance (random empty memories in Sukhbaatar et al.).
    #[module(skip)]
    noise: f32,
    #[module(skip)]
    site: u64,
    /// Age vectors, `[sentences + 1, M]`, if they are sinusoidal. Made on first use: until the
    /// weights were compared, the size is merely a number in a configuration.
    #[module(skip)]
    sines: Arc<OnceLock<TensorData>>,
    #[module(skip)]
    most: usize,
}

impl Sentences {
    pub fn new(sizes: &Sizes, init: &mut Init) -> Sentences {
        let padding = Some(i64::from(sizes.padding));
        let words = EmbeddingConfig {
            padding,
            deviation: sizes.deviation,
            ..EmbeddingConfig::new(sizes.vocabulary, sizes.width)
        };
        let (rows, width) = (sizes.sentences + 1, sizes.width);
        let half = width as u64 / 2;
        Sentences {
            words: words.init(init),
            places: init.fill([sizes.words, width], |noise, i| {
                let order = if i % width as u64 >= half { sizes.order } else { 0.1 };
                1.0 + order * noise.normal(i)
            }),
            times: match sizes.times {
                Times::Learned => Some(init.normal([rows, sizes.width], sizes.deviation)),
                Times::Sines => None,
            },
            noise: sizes.noise,
            site: init.site(),
            sines: Arc::default(),
            most: sizes.sentences,
        }
    }

    pub fn bind(&mut self, b: &mut Binder) {
        b.embedding("words", &mut self.words);
        b.tensor("places", &mut self.places);
        if let Some(times) = &mut self.times {
            b.tensor("times", times);
        }
    }

    /// Encodes all sentences: `[1, rows, M]`
    pub fn forward(&self, stories: &Stories, layout: &Layout, mode: Mode) -> Tensor<3> {
        let device: Device = self.places.device();
        let pad = self.words.padding.expect("words have a padding") as u32;
        // The same width in every batch: the order of summation might depend on it.
        let [wide, m] = self.places.dims();
        let words = self.words.forward(layout.words(stories, wide, pad, &device));
        let sum = (words * self.places.val().unsqueeze()).sum_dim(1);
        let noise = mode.stream(self.site);
        let pause = |sentence: usize| {
            noise.is_some_and(|noise| noise.uniform(sentence as u64) < self.noise)
        };
        let times = layout.times(stories, self.most, pause, &device);
        let table = match &self.times {
            Some(learned) => learned.val(),
            None => {
                let made = || sinusoidal(self.most + 1, m, &Device::flex()).into_data();
                Tensor::from_data(self.sines.get_or_init(made).clone(), &device)
            }
        };
        sum.reshape([1, layout.rows, m]) + ops::embedding(table, times, None)
    }
}
