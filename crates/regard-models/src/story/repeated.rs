//! One Transformer layer that is applied repeatedly to the sentences of a story: the Universal
//! Transformer (Dehghani et al. 2019), as used for bAbI.

use super::sentences::{Sentences, Sizes, Times};
use super::stories::{Layout, Stories};
use super::{StoryLimits, StoryModel, describe};
use crate::checkpoint::{Arrays, Binder};
use crate::labels::Labels;
use crate::network::{Definition, Description, InputKind};
use crate::seq2seq::index;
use crate::sizes;
use crate::text::activation;
use burn::module::{Module, Param};
use burn::tensor::Tensor;
use regard_attention::layers::{
    Call, Dropout, Linear, LinearConfig, Norm, NormConfig, NormPlacement, RelativeTable, Residual,
    SelfAttention, SelfAttentionConfig, Tap,
};
use regard_attention::ops::{Activation, linear};
use regard_attention::{Attention, Init, Mode, WeightInit};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `model_type` in `config.json`.
pub const MODEL_TYPE: &str = "story";

/// Configuration of the Universal Transformer for stories, as in `config.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Size of the vocabulary; default 200.
    pub vocab_size: usize,
    /// Width `M`; default 64.
    pub hidden_size: usize,
    /// Number of heads `H`; default 4.
    pub num_attention_heads: usize,
    /// Hidden width of the feed-forward layer; default 128.
    pub intermediate_size: usize,
    /// Activation of the feed-forward layer; default `relu`.
    pub hidden_act: String,
    /// Number of times that the layer is applied; default 6.
    pub repetitions: usize,
    /// Most words of a sentence; default 12.
    pub max_words: usize,
    /// Most sentences of a story; default 130.
    pub max_sentences: usize,
    /// Encoding of a sentence's age; default sinusoidal.
    pub times: Times,
    /// Probability in training, per sentence, that all before it get one step older; default 0.1.
    pub time_noise: f32,
    /// Largest distance between sentences, in either direction, that has its own learned bias per
    /// head; 0 for no biases.
    pub reach: usize,
    /// Dropout of each sublayer's output; default 0.1.
    pub dropout: f32,
    /// Dropout of attention weights; default 0.
    pub attention_dropout: f32,
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
            hidden_size: 64,
            num_attention_heads: 4,
            intermediate_size: 128,
            hidden_act: "relu".into(),
            repetitions: 6,
            max_words: 12,
            max_sentences: 130,
            times: Times::Sines,
            time_noise: 0.1,
            reach: 0,
            dropout: 0.1,
            attention_dropout: 0.0,
            pad_token_id: 0,
            answers: Labels::default(),
        }
    }
}

impl Config {
    /// Checks sizes before any tensor is allocated.
    pub(super) fn check(&self) -> Result<(), String> {
        self.sentences().check(self.answers.count()?)?;
        sizes::check_depth("repetitions", self.repetitions)?;
        let (width, heads) = (self.hidden_size, self.num_attention_heads);
        let (inner, heads_) = ("intermediate_size", "num_attention_heads");
        let reach = ("reach", self.reach.saturating_mul(2).saturating_add(1));
        sizes::check(&[(inner, self.intermediate_size), (heads_, heads), reach])?;
        sizes::check_matrices(&[
            [("hidden_size", width), (inner, self.intermediate_size)],
            [(heads_, heads), reach],
        ])?;
        if !width.is_multiple_of(heads) {
            return Err(format!(
                "num_attention_heads: got {heads}, need a divisor of hidden_size = {width}"
            ));
        }
        sizes::check_shares(&[
            ("dropout", self.dropout),
            ("attention_dropout", self.attention_dropout),
        ])?;
        activation("hidden_act", &self.hidden_act).map(|_| ())
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
            deviation: 0.5,
            // Some answers depend on word order alone: with 0.1, task 4 of bAbI still had 17 %
            // errors after 320,000 questions (width 64), with 1.0 1.2 % after 256,000 (width 128).
            order: 1.0,
        }
    }
}

/// The Universal Transformer. It does not use the common block, because each repetition has its own
/// bias and dropout.
#[derive(Module, Debug)]
pub(crate) struct Repeated {
    sentences: Sentences,
    attention_norm: Norm,
    attention: SelfAttention,
    distances: Option<RelativeTable>,
    forward_norm: Norm,
    up: Linear,
    /// Without a bias: each repetition has its own, which identifies it.
    down: Linear,
    /// Biases of the repetitions, `[repetitions, M]`.
    steps: Param<Tensor<2>>,
    last: Norm,
    answer: Linear,
    /// Dropout of each repetition: attention weights, attention output, feed-forward output.
    dropout: Vec<[Dropout; 3]>,
    #[module(skip)]
    config: Config,
}

impl Repeated {
    pub fn new(config: &Config, init: &mut Init) -> Repeated {
        let Config { hidden_size: m, num_attention_heads: heads, .. } = *config;
        let weights = WeightInit::Xavier;
        let attention = SelfAttentionConfig { weights, ..SelfAttentionConfig::new(m, heads) };
        let activation = activation("hidden_act", &config.hidden_act).expect("it was checked");
        let up =
            LinearConfig { activation, weights, ..LinearConfig::new(m, config.intermediate_size) };
        let down =
            LinearConfig { bias: false, weights, ..LinearConfig::new(config.intermediate_size, m) };
        let answers = config.answers.count().expect("it was checked");
        let shares = [config.attention_dropout, config.dropout, config.dropout];
        Repeated {
            sentences: Sentences::new(&config.sentences(), init),
            attention_norm: NormConfig::layer(m).init(init),
            attention: attention.init(init),
            distances: (config.reach > 0).then(|| RelativeTable::new(heads, config.reach, init)),
            forward_norm: NormConfig::layer(m).init(init),
            up: up.init(init),
            down: down.init(init),
            steps: init.normal([config.repetitions, m], 0.02),
            last: NormConfig::layer(m).init(init),
            answer: LinearConfig::new(m, answers).init(init),
            dropout: (0..config.repetitions)
                .map(|_| shares.map(|p| Dropout::new(p, init)))
                .collect(),
            config: config.clone(),
        }
    }

    /// Output of the attention in a repetition, before its dropout.
    fn look(
        &self,
        x: Tensor<3>,
        attention: &Attention,
        looks: Option<&mut Vec<Tensor<3>>>,
    ) -> Tensor<3> {
        let Some(looks) = looks else {
            return self.attention.forward(x, Call::new(attention));
        };
        let mut tap = Tap::new();
        let y = self.attention.forward(x, Call::new(attention).tap(&mut tap));
        looks.extend(tap.into_weights().map(|weights| weights.squeeze_dim(0)));
        y
    }
}

impl Definition for Repeated {
    const READS: InputKind = InputKind::Stories;

    fn types() -> Vec<&'static str> {
        vec![MODEL_TYPE]
    }

    fn make(json: &Value, _weights: Option<&Arrays>, init: &mut Init) -> Result<Repeated, String> {
        let config: Config = crate::parse(json)?;
        config.check()?;
        Ok(Repeated::new(&config, init))
    }

    fn config(&self) -> Value {
        crate::config_json(MODEL_TYPE, &self.config)
    }

    fn bind(&mut self, b: &mut Binder) {
        self.sentences.bind(b);
        b.at("layer", |b| {
            b.norm("attention_norm", &mut self.attention_norm);
            let names = ["attention.query", "attention.key", "attention.value"];
            b.packed(&names, &mut self.attention.qkv);
            b.linear("attention.output", &mut self.attention.out);
            if let Some(distances) = &mut self.distances {
                b.tensor("attention.distances", &mut distances.table);
            }
            b.norm("forward_norm", &mut self.forward_norm);
            b.linear("up", &mut self.up);
            b.linear("down", &mut self.down);
            b.tensor("steps", &mut self.steps);
        });
        b.norm("last_norm", &mut self.last);
        b.linear("answer", &mut self.answer);
    }

    fn describe(&self) -> Description {
        describe(self, self.attention())
    }

    fn into_story(self: Box<Self>) -> Option<Box<dyn StoryModel>> {
        Some(self)
    }
}

impl Repeated {
    fn attention(&self) -> Vec<String> {
        let Config { num_attention_heads: heads, repetitions, reach, .. } = self.config;
        let each = self.config.hidden_size / heads;
        let near = match reach {
            0 => String::new(),
            reach => format!(", with a bias for each distance up to {reach}"),
        };
        vec![format!(
            "{heads} heads of {each}, dot product{near}, over sentences; the same layer {repetitions} times"
        )]
    }
}

impl StoryModel for Repeated {
    fn limits(&self) -> StoryLimits {
        self.config.sentences().limits(self.answer.weight.dims()[1])
    }

    fn read(
        &self,
        stories: &Stories,
        mode: Mode,
        mut looks: Option<&mut Vec<Tensor<3>>>,
    ) -> Tensor<2> {
        let (layout, device) = (Layout::new(stories), self.steps.device());
        let mut attention = Attention::dot().mask(layout.mask(stories));
        if let Some(distances) = &self.distances {
            attention = distances.forward(attention);
        }
        let m = self.config.hidden_size;
        let x = self.sentences.forward(stories, &layout, mode);
        let mut sum = Residual::new(NormPlacement::Pre, Some(&self.attention_norm), x);
        for (step, [weights, looked, added]) in self.dropout.iter().enumerate() {
            let attention = match mode.stream(weights.site) {
                Some(noise) if weights.p > 0.0 => attention.clone().dropout(weights.p, noise),
                _ => attention.clone(),
            };
            let seen = self.look(sum.input(), &attention, looks.as_deref_mut());
            sum.add(looked.forward(seen, mode), Some(&self.forward_norm));
            let which = self.steps.val().slice([step..step + 1, 0..m]).reshape([m]);
            let down = self.down.weight.val();
            let up = self.up.forward(sum.input());
            let more = linear(up, down, Some(which), Activation::Identity);
            sum.add(added.forward(more, mode), Some(&self.attention_norm));
        }
        let x = sum.sum();
        let [_, rows, _] = x.dims();
        let asked = index(&layout.questions(stories), &device);
        self.answer.forward(self.last.forward(x.reshape([rows, m]).select(0, asked)))
    }
}
