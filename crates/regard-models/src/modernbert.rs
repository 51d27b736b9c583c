//! ModernBERT (Warner et al. 2024, arXiv:2412.13663): an encoder for long texts. Layers attend
//! globally or within a sliding window, each kind with its own rotary base; feed-forward layers
//! are gated.

use crate::checkpoint::Binder;
use crate::keys::Keys;
use crate::rope::Rope;
use crate::sizes::Stack;
use crate::text::{
    BeforeLabels, Biases, Body, Family, Head, Probe, Sizes, Texts, WordNames, dot_in_words,
};
use burn::module::Module;
use burn::tensor::Tensor;
use regard_attention::layers::{
    Block, BlockConfig, Dropout, Embedding, EmbeddingConfig, Norm, NormPlacement, Pool, Residual,
    Rotary, RotaryConfig,
};
use regard_attention::mask::window;
use regard_attention::{Attention, Init, WeightInit};
use serde::Deserialize;
use serde_json::Value;
use std::sync::OnceLock;

/// Names of ModernBERT's tensors, classes and configuration keys.
pub static MODERNBERT: Family = Family {
    model_type: "modernbert",
    keys: || {
        static NAMES: OnceLock<Vec<&str>> = OnceLock::new();
        NAMES.get_or_init(|| Keys::names(Config::read))
    },
    class: "ModernBert",
    before_labels: Some(BeforeLabels {
        dense: "head.dense",
        activation: None,
        norm: Some("head.norm"),
        heads: &[Head::Sequence, Head::Tokens, Head::Span],
    }),
    span: "classifier",
    words: WordNames {
        dense: Some("head.dense"),
        norm: "head.norm",
        table: "decoder.weight",
        bias: Some("decoder.bias"),
    },
    ..Family::ENCODER
};

#[derive(Clone, Copy, Debug, Deserialize)]
enum Sight {
    #[serde(rename = "full_attention")]
    Whole,
    #[serde(rename = "sliding_attention")]
    Window,
}

pub(crate) struct Config {
    words: EmbeddingConfig,
    dropout: f32,
    block: BlockConfig,
    sights: Vec<Sight>,
    /// Tokens on each side that a layer with a window attends to.
    reach: usize,
    /// Rotary positions of global layers, and of local ones.
    rotary: [RotaryConfig; 2],
    sizes: Sizes,
}

impl Config {
    fn read(keys: &Keys) -> Result<Config, String> {
        let stack = Stack {
            words: keys.size("vocab_size", 50368)?,
            width: keys.size("hidden_size", 768)?,
            layers: keys.size("num_hidden_layers", 22)?,
            heads: keys.size("num_attention_heads", 12)?,
            hidden: keys.size("intermediate_size", 1152)?,
            positions: keys.size("max_position_embeddings", 8192)?,
        };
        stack.check()?;
        let (words, width, heads) = (stack.words.1, stack.width.1, stack.heads.1);
        let deviation = keys.get("initializer_range", 0.02)?;
        let mut block = BlockConfig::new(width, heads);
        block.norm.eps = keys.get("norm_eps", 1e-5)?;
        block.norm.bias = keys.get("norm_bias", false)?;
        block.attention.bias = keys.get("attention_bias", false)?;
        block.attention.dropout = keys.share("attention_dropout", 0.0)?;
        block.attention.weights = WeightInit::Normal(deviation);
        block.forward.hidden = stack.hidden.1;
        block.forward.activation = keys.activation("hidden_activation", "gelu")?;
        block.forward.gated = true;
        block.forward.bias = keys.get("mlp_bias", false)?;
        block.forward.dropout = keys.share("mlp_dropout", 0.0)?;
        block.forward.weights = WeightInit::Normal(deviation);
        block.dropout[0] = block.attention.dropout;
        let padding = keys.token("pad_token_id", None, words)?.map(i64::from);
        let pool = match keys.get("classifier_pooling", "cls".to_string())?.as_str() {
            "cls" => None,
            "mean" => Some(Pool::Mean),
            other => return Err(format!("classifier_pooling: got {other:?}, need cls or mean")),
        };
        let rotary = |name: &str, theta: f32| {
            let all = keys.get("rope_parameters", Value::Null)?;
            if !all.is_null() && all[name].is_null() {
                return Err(format!("rope_parameters: has no {name}"));
            }
            Rope::read(&all[name])?.config(stack.positions.1, width / heads, theta)
        };
        let theta = keys.get("global_rope_theta", 160_000.0)?;
        let near = keys.get("local_rope_theta", Some(10_000.0))?.unwrap_or(theta);
        Ok(Config {
            words: EmbeddingConfig { padding, deviation, ..EmbeddingConfig::new(words, width) },
            dropout: keys.share("embedding_dropout", 0.0)?,
            sights: sights(keys, stack.layers.1)?,
            reach: keys.get::<usize>("local_attention", 128)? / 2,
            rotary: [rotary("full_attention", theta)?, rotary("sliding_attention", near)?],
            sizes: Sizes {
                width,
                words,
                labels: 0,
                eps: block.norm.eps,
                deviation,
                activation: keys.activation("classifier_activation", "gelu")?,
                dropout: keys.share("classifier_dropout", 0.0)?,
                tied: keys.get("tie_word_embeddings", true)?,
                cap: None,
                pool,
                biases: Biases {
                    dense: keys.get("classifier_bias", false)?,
                    norm: block.norm.bias,
                    words: keys.get("decoder_bias", true)?,
                },
            },
            block,
        })
    }
}

/// Whether each layer attends globally or locally.
fn sights(keys: &Keys, layers: usize) -> Result<Vec<Sight>, String> {
    let (_, every) = keys.size("global_attn_every_n_layers", 3)?;
    let sight = |i: usize| if i.is_multiple_of(every) { Sight::Whole } else { Sight::Window };
    let said: Option<Vec<Sight>> = keys.get("layer_types", None)?;
    let sights = said.unwrap_or_else(|| (0..layers).map(sight).collect());
    match sights.len() {
        got if got != layers => Err(format!("layer_types: got {got}, need {layers}")),
        _ => Ok(sights),
    }
}

/// The encoder without its heads.
#[derive(Module, Debug)]
pub(crate) struct ModernBert {
    words: Embedding,
    norm: Norm,
    dropout: Dropout,
    layers: Vec<Block>,
    last: Norm,
    rotary: [Rotary; 2],
    #[module(skip)]
    sights: Vec<Sight>,
    #[module(skip)]
    reach: usize,
}

impl Body for ModernBert {
    const FAMILIES: &'static [&'static Family] = &[&MODERNBERT];

    type Config = Config;

    fn configure(json: &Value, _head: Head) -> Result<Config, String> {
        Config::read(&Keys::new(json))
    }

    fn new(config: &Config, init: &mut Init) -> ModernBert {
        let mut model = ModernBert {
            words: config.words.init(init),
            norm: config.block.norm.init(init),
            dropout: Dropout::new(config.dropout, init),
            layers: config.sights.iter().map(|_| config.block.init(init)).collect(),
            last: config.block.norm.init(init),
            rotary: config.rotary.map(|rotary| rotary.init()),
            sights: config.sights.clone(),
            reach: config.reach,
        };
        // The input of the first layer is normalised already.
        model.layers[0].attention_norm = None;
        model
    }

    fn sizes(config: &Config) -> Sizes {
        config.sizes
    }

    fn bind(&mut self, b: &mut Binder) {
        b.embedding("embeddings.tok_embeddings", &mut self.words);
        b.norm("embeddings.norm", &mut self.norm);
        for (i, layer) in self.layers.iter_mut().enumerate() {
            b.at(&format!("layers.{i}"), |b| {
                b.optional_norm("attn_norm", &mut layer.attention_norm);
                b.linear("attn.Wqkv", &mut layer.attention.qkv);
                b.linear("attn.Wo", &mut layer.attention.out);
                b.norm("mlp_norm", &mut layer.forward_norm);
                b.linear("mlp.Wi", &mut layer.forward.up);
                b.linear("mlp.Wo", &mut layer.forward.down);
            });
        }
        b.norm("final_norm", &mut self.last);
    }

    fn read(&self, texts: &Texts, probe: &mut Probe) -> Tensor<3> {
        let x = self.words.forward(texts.words(&self.last.gamma.device()));
        let x = self.dropout.forward(self.norm.forward(x), probe.mode());
        let (mask, places) = (texts.mask(false), texts.rotary_places());
        let near = Attention::dot().mask(mask.clone() & window(self.reach, self.reach));
        let whole = Attention::dot().mask(mask);
        let mut residual = Residual::new(NormPlacement::Pre, None, x);
        for (i, (layer, sight)) in self.layers.iter().zip(&self.sights).enumerate() {
            probe.hidden(&residual.sum());
            let (attention, rotary) = match sight {
                Sight::Whole => (&whole, &self.rotary[0]),
                Sight::Window => (&near, &self.rotary[1]),
            };
            let call = probe.call(attention).rotary(rotary).positions(&places);
            let next = self.layers.get(i + 1).map_or(Some(&self.last), Block::entry);
            layer.forward_residual(&mut residual, call, next);
        }
        let x = residual.input();
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
        Some(self.rotary[0].angles.positions())
    }

    fn attention(&self) -> Vec<String> {
        let layer = |(layer, sight): (&Block, &Sight)| {
            let seen = match sight {
                Sight::Whole => "every token sees every token of its text".into(),
                Sight::Window => format!("a token sees {} tokens on each side", self.reach),
            };
            format!("{}, rotary; {seen}", dot_in_words(&layer.attention))
        };
        self.layers.iter().zip(&self.sights).map(layer).collect()
    }
}
