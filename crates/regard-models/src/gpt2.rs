//! GPT-2 (Radford et al. 2019): a causal Transformer language model.

use crate::checkpoint::Binder;
use crate::fields::fields;
use crate::seq2seq::index;
use crate::sizes;
use crate::text::{
    Biases, Body, Family, Following, Head, PooledToken, Probe, Sizes, Texts, Walks, WordNames,
    activation, dot_in_words,
};
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor};
use regard_attention::layers::{
    Block, BlockConfig, Call, Dropout, Embedding, EmbeddingConfig, FeedForwardConfig, KvCache,
    Norm, NormConfig, SelfAttentionConfig,
};
use regard_attention::mask::{Mask, causal};
use regard_attention::ops::Activation;
use regard_attention::plan::{DecoderLayer, DecoderLayers};
use regard_attention::{Attention, Init, WeightInit};
use serde::Deserialize;
use serde_json::Value;

/// Names of GPT-2's tensors, classes and configuration keys.
pub static GPT2: Family = Family {
    model_type: "gpt2",
    keys: fields::<Config>,
    class: "GPT2",
    prefix: "transformer",
    classes: &[
        (Head::Bare, "Model"),
        (Head::Words, "LMHeadModel"),
        (Head::Sequence, "ForSequenceClassification"),
        (Head::Tokens, "ForTokenClassification"),
        (Head::Span, "ForQuestionAnswering"),
    ],
    typed: false,
    speaker: PooledToken::Last,
    pooled: false,
    before_labels: None,
    labels: "score",
    token_labels: "classifier",
    span: "qa_outputs",
    labels_bias: false,
    words: WordNames { dense: None, norm: "", table: "lm_head.weight", bias: None },
};

/// Configuration of GPT-2, with transformers' keys and defaults.
#[derive(Clone, Debug, Deserialize)]
#[serde(default)]
pub struct Config {
    vocab_size: usize,
    n_positions: usize,
    n_embd: usize,
    n_layer: usize,
    n_head: usize,
    n_inner: Option<usize>,
    activation_function: String,
    resid_pdrop: f32,
    embd_pdrop: f32,
    attn_pdrop: f32,
    layer_norm_epsilon: f32,
    initializer_range: f32,
    scale_attn_weights: bool,
    scale_attn_by_inverse_layer_idx: bool,
    tie_word_embeddings: bool,
    #[serde(skip)]
    activation: Activation,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            vocab_size: 50257,
            n_positions: 1024,
            n_embd: 768,
            n_layer: 12,
            n_head: 12,
            n_inner: None,
            activation_function: "gelu_new".into(),
            resid_pdrop: 0.1,
            embd_pdrop: 0.1,
            attn_pdrop: 0.1,
            layer_norm_epsilon: 1e-5,
            initializer_range: 0.02,
            scale_attn_weights: true,
            scale_attn_by_inverse_layer_idx: false,
            tie_word_embeddings: true,
            activation: Activation::GeluTanh,
        }
    }
}

impl Config {
    /// Reads and checks `config.json`.
    pub(crate) fn read(json: &Value) -> Result<Config, String> {
        let mut config: Config = crate::parse(json)?;
        config.activation = activation("activation_function", &config.activation_function)?;
        let stack = sizes::Stack {
            words: ("vocab_size", config.vocab_size),
            width: ("n_embd", config.n_embd),
            layers: ("n_layer", config.n_layer),
            heads: ("n_head", config.n_head),
            hidden: ("n_inner", config.inner()),
            positions: ("n_positions", config.n_positions),
        };
        stack.check()?;
        sizes::check_shares(&[
            ("resid_pdrop", config.resid_pdrop),
            ("embd_pdrop", config.embd_pdrop),
            ("attn_pdrop", config.attn_pdrop),
        ])?;
        Ok(config)
    }

    fn inner(&self) -> usize {
        self.n_inner.unwrap_or(self.n_embd.saturating_mul(4))
    }
}

/// The decoder without its heads.
#[derive(Module, Debug)]
pub(crate) struct Gpt2 {
    words: Embedding,
    positions: Embedding,
    dropout: Dropout,
    layers: Vec<Block>,
    last: Norm,
    /// Scale of each layer's scores; `None` for the usual `1/√D`.
    #[module(skip)]
    scales: Vec<Option<f32>>,
}

fn norm(config: &Config) -> NormConfig {
    NormConfig { eps: config.layer_norm_epsilon, ..NormConfig::layer(config.n_embd) }
}

/// Makes one pre-norm layer.
fn block(config: &Config, init: &mut Init) -> Block {
    let (width, heads) = (config.n_embd, config.n_head);
    let weights = WeightInit::Normal(config.initializer_range);
    let block = BlockConfig {
        norm: norm(config),
        attention: SelfAttentionConfig {
            dropout: config.attn_pdrop,
            weights,
            ..SelfAttentionConfig::new(width, heads)
        },
        forward: FeedForwardConfig {
            hidden: config.inner(),
            activation: config.activation,
            weights,
            ..FeedForwardConfig::new(width)
        },
        dropout: [config.resid_pdrop; 2],
        ..BlockConfig::new(width, heads)
    };
    let mut block = block.init(init);
    // Projections into the residual stream are initialised smaller the more layers there are.
    let smaller = config.initializer_range / ((2 * config.n_layer) as f32).sqrt();
    for part in [&mut block.attention.out, &mut block.forward.down] {
        let [inputs, outputs] = part.weight.dims();
        part.weight = init.weights(inputs, outputs, WeightInit::Normal(smaller)).into();
    }
    block
}

fn bind_block(b: &mut Binder, block: &mut Block) {
    b.optional_norm("ln_1", &mut block.attention_norm);
    b.linear_by_inputs("attn.c_attn", &mut block.attention.qkv);
    b.linear_by_inputs("attn.c_proj", &mut block.attention.out);
    b.norm("ln_2", &mut block.forward_norm);
    b.linear_by_inputs("mlp.c_fc", &mut block.forward.up);
    b.linear_by_inputs("mlp.c_proj", &mut block.forward.down);
}

/// Scale of layer `number`; `None` for the usual `1/√D`.
fn scale(config: &Config, number: usize) -> Option<f32> {
    let usual = 1.0 / ((config.n_embd / config.n_head) as f32).sqrt();
    let scale = if config.scale_attn_weights { usual } else { 1.0 };
    let by_layer = config.scale_attn_by_inverse_layer_idx;
    let scale = if by_layer { scale / (number + 1) as f32 } else { scale };
    (scale != usual).then_some(scale)
}

impl Body for Gpt2 {
    const FAMILIES: &'static [&'static Family] = &[&GPT2];

    const GENERATES: bool = true;

    type Config = Config;

    fn configure(json: &Value, _head: Head) -> Result<Config, String> {
        Config::read(json)
    }

    fn new(config: &Config, init: &mut Init) -> Gpt2 {
        let deviation = config.initializer_range;
        let table =
            |entries| EmbeddingConfig { deviation, ..EmbeddingConfig::new(entries, config.n_embd) };
        Gpt2 {
            words: table(config.vocab_size).init(init),
            positions: table(config.n_positions).init(init),
            dropout: Dropout::new(config.embd_pdrop, init),
            layers: (0..config.n_layer).map(|_| block(config, init)).collect(),
            last: norm(config).init(init),
            scales: (0..config.n_layer).map(|i| scale(config, i)).collect(),
        }
    }

    fn sizes(config: &Config) -> Sizes {
        Sizes {
            width: config.n_embd,
            words: config.vocab_size,
            labels: 0,
            eps: config.layer_norm_epsilon,
            deviation: config.initializer_range,
            activation: config.activation,
            dropout: 0.0,
            tied: config.tie_word_embeddings,
            cap: None,
            pool: None,
            biases: Biases::ALL,
        }
    }

    fn bind(&mut self, b: &mut Binder) {
        b.embedding("wte", &mut self.words);
        b.embedding("wpe", &mut self.positions);
        for (i, layer) in self.layers.iter_mut().enumerate() {
            b.at(&format!("h.{i}"), |b| bind_block(b, layer));
        }
        b.norm("ln_f", &mut self.last);
    }

    fn read(&self, texts: &Texts, probe: &mut Probe) -> Tensor<3> {
        let device: Device = self.words.table.device();
        let mut x = self.words.forward(texts.words(&device))
            + self.positions.forward(texts.places(0, &device));
        if texts.has_parts() {
            // transformers has no table for token types: they are looked up in the word embeddings.
            x = x + self.words.forward(texts.parts(&device));
        }
        let mut x = self.dropout.forward(x, probe.mode());
        for (layer, attention) in self.layers.iter().zip(self.attentions(texts.mask(true))) {
            probe.hidden(&x);
            x = layer.forward(x, probe.call(&attention));
        }
        let x = self.last.forward(x);
        probe.hidden(&x);
        x
    }

    fn words(&self) -> Option<&Embedding> {
        Some(&self.words)
    }

    fn words_mut(&mut self) -> Option<&mut Embedding> {
        Some(&mut self.words)
    }

    fn longest(&self) -> Option<usize> {
        Some(self.positions.table.dims()[0])
    }

    fn attention(&self) -> Vec<String> {
        let layer = |(layer, scale): (&Block, &Option<f32>)| {
            let scale = scale.map_or(String::new(), |scale| format!(", scaled by {scale}"));
            let heads = dot_in_words(&layer.attention);
            format!("{heads}{scale}; a token sees itself and the tokens before it")
        };
        self.layers.iter().zip(&self.scales).map(layer).collect()
    }

    fn decoder(&self) -> Option<DecoderLayers<'_>> {
        let layer = |(block, scale): (_, &Option<f32>)| DecoderLayer {
            block,
            rotary: None,
            window: None,
            scale: *scale,
            cap: None,
        };
        Some(DecoderLayers {
            words: &self.words,
            positions: Some(&self.positions),
            embedding_scale: None,
            layers: self.layers.iter().zip(&self.scales).map(layer).collect(),
            last: &self.last,
        })
    }

    fn follow(&self, read: &[&[u32]]) -> Option<Box<dyn Following + '_>> {
        Some(self.planned_or_walk(read))
    }
}

impl Gpt2 {
    /// The attention of each layer.
    fn attentions(&self, mask: Mask) -> impl Iterator<Item = Attention> {
        let attention = Attention::dot().mask(mask);
        self.scales.iter().map(move |scale| match scale {
            Some(scale) => attention.clone().scale(*scale),
            None => attention.clone(),
        })
    }
}

impl Walks for Gpt2 {
    fn caches(&self) -> Vec<KvCache> {
        vec![KvCache::new(); self.layers.len()]
    }

    fn walk(&self, words: Tensor<2, Int>, caches: &mut [KvCache]) -> Tensor<3> {
        let from = caches[0].len();
        let [_, new] = words.dims();
        let places: Vec<usize> = (from..from + new).collect();
        let places = self.positions.forward(index(&places, &words.device()).unsqueeze());
        let mut x = self.words.forward(words) + places;
        let layers = self.layers.iter().zip(self.attentions(causal()));
        for ((layer, attention), cache) in layers.zip(caches) {
            x = layer.forward(x, Call::new(&attention).cache(cache));
        }
        self.last.forward(x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::planned_as_walked;

    #[test]
    fn a_plan_gives_the_hidden_states_of_the_tensors() {
        let device = Device::flex();
        for by_layer in [false, true] {
            let json = serde_json::json!({
                "model_type": "gpt2", "vocab_size": 31, "n_positions": 40, "n_embd": 36,
                "n_layer": 3, "n_head": 3, "scale_attn_by_inverse_layer_idx": by_layer,
            });
            let model = Gpt2::new(&Config::read(&json).unwrap(), &mut Init::new(2, &device));
            for prompt in [vec![], vec![5u32, 6, 7, 30, 2]] {
                planned_as_walked(&model, &prompt, 2e-5);
            }
        }
    }
}
