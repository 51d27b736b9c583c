//! Repeated attention over a memory: the end-to-end memory network (Sukhbaatar et al. 2015,
//! arXiv:1503.08895).
//!
//! ```text
//! p_i = softmax_i(u · m_i)        o = Σ_i p_i c_i        u ← H u + o
//! ```
//!
//! `m_i` and `c_i` are the key and the value of sentence `i`, and `u` is the query: first the
//! question, then after each hop also what was retrieved. All hops share `H` and the embeddings
//! (the paper's layer-wise tying).

use super::sentences::{Sentences, Sizes, Times};
use super::stories::{Layout, Stories};
use super::{StoryLimits, StoryModel, describe};
use crate::checkpoint::{Arrays, Binder};
use crate::labels::Labels;
use crate::network::{Definition, Description, InputKind};
use crate::seq2seq::index;
use crate::sizes;
use burn::module::Module;
use burn::tensor::Tensor;
use regard_attention::layers::{Dropout, Linear, LinearConfig};
use regard_attention::mask::segments_between;
use regard_attention::{Attention, Init, Mode};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `model_type` in `config.json`.
pub const MODEL_TYPE: &str = "memn2n";

/// Configuration of the end-to-end memory network, as in `config.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Size of the vocabulary; default 200.
    pub vocab_size: usize,
    /// Width `M`; default 50.
    pub hidden_size: usize,
    /// Number of hops; default 3.
    pub hops: usize,
    /// Most words of a sentence; default 12.
    pub max_words: usize,
    /// Most sentences of a story; default 130.
    pub max_sentences: usize,
    /// Encoding of a sentence's age; default learned.
    pub times: Times,
    /// Probability in training, per sentence, that all before it get one step older; default 0.1.
    pub time_noise: f32,
    /// Dropout of each hop's retrieved vector; default 0.
    pub dropout: f32,
    /// Id of the padding word; default 0.
    pub pad_token_id: u32,
    /// Possible answers.
    #[serde(flatten)]
    pub answers: Labels,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            vocab_size: 200,
            hidden_size: 50,
            hops: 3,
            max_words: 12,
            max_sentences: 130,
            times: Times::Learned,
            time_noise: 0.1,
            dropout: 0.0,
            pad_token_id: 0,
            answers: Labels::default(),
        }
    }
}

impl Config {
    /// Checks sizes before any tensor is allocated.
    pub(super) fn check(&self) -> Result<(), String> {
        self.sentences().check(self.answers.count()?)?;
        sizes::check_depth("hops", self.hops)?;
        sizes::check_shares(&[("dropout", self.dropout)])
    }

    fn sentences(&self) -> Sizes {
        Sizes {
            vocabulary: self.vocab_size,
            width: self.hidden_size,
            words: self.max_words,
            sentences: self.max_sentences,
            padding: self.pad_token_id,
            times: self.times,
            noise: self.time_noise,
            // Scores are products of two of these vectors, and should be small initially.
            deviation: 0.1,
            order: 0.1,
        }
    }
}

/// The end-to-end memory network.
#[derive(Module, Debug)]
pub(crate) struct Hops {
    /// Keys of the sentences, and the initial query from the question.
    keys: Sentences,
    /// Values of the sentences.
    values: Sentences,
    /// `H`, which carries the query to the next hop.
    goes_on: Linear,
    answer: Linear,
    /// Dropout of each hop.
    dropout: Vec<Dropout>,
    #[module(skip)]
    config: Config,
}

impl Hops {
    pub fn new(config: &Config, init: &mut Init) -> Hops {
        let m = config.hidden_size;
        let answers = config.answers.count().expect("it was checked");
        let linear = |outputs| LinearConfig { bias: false, ..LinearConfig::new(m, outputs) };
        Hops {
            keys: Sentences::new(&config.sentences(), init),
            values: Sentences::new(&config.sentences(), init),
            goes_on: linear(m).init(init),
            answer: linear(answers).init(init),
            dropout: (0..config.hops).map(|_| Dropout::new(config.dropout, init)).collect(),
            config: config.clone(),
        }
    }
}

impl Definition for Hops {
    const READS: InputKind = InputKind::Stories;

    fn types() -> Vec<&'static str> {
        vec![MODEL_TYPE]
    }

    fn make(json: &Value, _weights: Option<&Arrays>, init: &mut Init) -> Result<Hops, String> {
        let config: Config = crate::parse(json)?;
        config.check()?;
        Ok(Hops::new(&config, init))
    }

    fn config(&self) -> Value {
        crate::config_json(MODEL_TYPE, &self.config)
    }

    fn bind(&mut self, b: &mut Binder) {
        b.at("keys", |b| self.keys.bind(b));
        b.at("values", |b| self.values.bind(b));
        b.linear("goes_on", &mut self.goes_on);
        b.linear("answer", &mut self.answer);
    }

    fn describe(&self) -> Description {
        describe(self, self.attention())
    }

    fn into_story(self: Box<Self>) -> Option<Box<dyn StoryModel>> {
        Some(self)
    }
}

impl Hops {
    fn attention(&self) -> Vec<String> {
        let words = "one head, dot product, from the question to the sentences";
        vec![words.into(); self.config.hops]
    }
}

impl StoryModel for Hops {
    fn limits(&self) -> StoryLimits {
        self.config.sentences().limits(self.answer.weight.dims()[1])
    }

    fn read(
        &self,
        stories: &Stories,
        mode: Mode,
        mut looks: Option<&mut Vec<Tensor<3>>>,
    ) -> Tensor<2> {
        let (layout, device) = (Layout::new(stories), self.goes_on.weight.device());
        let (count, m) = (stories.len(), self.config.hidden_size);
        let asked = layout.questions(stories);
        // A question is not one of the sentences that are attended to.
        let mut owners = layout.owners(stories);
        asked.iter().for_each(|row| owners[*row] = -1 - *row as i64);
        let numbers: Vec<i64> = (0..count as i64).collect();
        let mask = segments_between(&numbers, &owners);
        let attention = Attention::dot().scale(1.0).mask(mask);
        let keys = self.keys.forward(stories, &layout, mode);
        let values = self.values.forward(stories, &layout, mode).unsqueeze_dim::<4>(1);
        let asked = index(&asked, &device);
        let mut u: Tensor<2> = keys.clone().squeeze_dim::<2>(0).select(0, asked);
        let keys = keys.unsqueeze_dim::<4>(1);
        for dropout in &self.dropout {
            let q = u.clone().reshape([1, 1, count, m]);
            let found = match looks.as_deref_mut() {
                None => attention.attend(q, keys.clone(), values.clone()),
                Some(looks) => {
                    let (found, weights) =
                        attention.attend_with_weights(q, keys.clone(), values.clone());
                    looks.push(weights.squeeze_dim(0));
                    found
                }
            };
            u = self.goes_on.forward(u) + dropout.forward(found.reshape([count, m]), mode);
        }
        self.answer.forward(u)
    }
}
