//! BERT (Devlin et al. 2019, arXiv:1810.04805), with RoBERTa (arXiv:1907.11692) and DistilBERT
//! (arXiv:1910.01108), which differ from it in names, positions and token types only.

use crate::checkpoint::Binder;
use crate::keys::Keys;
use crate::sizes::{self, Stack};
use crate::text::{
    BeforeLabels, Biases, Body, Family, Head, PooledToken, Probe, Sizes, Texts, WordNames,
    dot_in_words,
};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use regard_attention::layers::{
    Block, BlockConfig, Dropout, Embedding, EmbeddingConfig, FeedForwardConfig, Norm, NormConfig,
    NormPlacement, SelfAttentionConfig,
};
use regard_attention::ops::Activation;
use regard_attention::{Attention, Init, WeightInit};
use serde_json::Value;
use std::sync::OnceLock;

/// Names of BERT's tensors, classes and configuration keys.
pub static BERT: Family = Family {
    model_type: "bert",
    keys: bert_keys,
    class: "Bert",
    prefix: "bert",
    classes: &[
        (Head::Bare, "Model"),
        (Head::Words, "ForMaskedLM"),
        (Head::Pretraining, "ForPreTraining"),
        (Head::Sequence, "ForSequenceClassification"),
        (Head::Tokens, "ForTokenClassification"),
        (Head::Span, "ForQuestionAnswering"),
    ],
    typed: true,
    speaker: PooledToken::First,
    pooled: true,
    before_labels: None,
    labels: "classifier",
    token_labels: "classifier",
    span: "qa_outputs",
    labels_bias: true,
    words: WordNames {
        dense: Some("cls.predictions.transform.dense"),
        norm: "cls.predictions.transform.LayerNorm",
        table: "cls.predictions.decoder.weight",
        bias: Some("cls.predictions.bias"),
    },
};

/// Names of RoBERTa's tensors, classes and configuration keys.
pub static ROBERTA: Family = Family {
    model_type: "roberta",
    keys: bert_keys,
    class: "Roberta",
    prefix: "roberta",
    before_labels: Some(BeforeLabels::of_texts("classifier.dense", Activation::Tanh)),
    labels: "classifier.out_proj",
    words: WordNames {
        dense: Some("lm_head.dense"),
        norm: "lm_head.layer_norm",
        table: "lm_head.decoder.weight",
        bias: Some("lm_head.bias"),
    },
    ..Family::ENCODER
};

/// Names of DistilBERT's tensors, classes and configuration keys.
pub static DISTILBERT: Family = Family {
    model_type: "distilbert",
    keys: || {
        static NAMES: OnceLock<Vec<&str>> = OnceLock::new();
        NAMES.get_or_init(|| Keys::names(Config::distilbert))
    },
    class: "DistilBert",
    prefix: "distilbert",
    before_labels: Some(BeforeLabels::of_texts("pre_classifier", Activation::Relu)),
    words: WordNames {
        dense: Some("vocab_transform"),
        norm: "vocab_layer_norm",
        table: "vocab_projector.weight",
        bias: Some("vocab_projector.bias"),
    },
    ..Family::ENCODER
};

fn bert_keys() -> &'static [&'static str] {
    static NAMES: OnceLock<Vec<&str>> = OnceLock::new();
    NAMES.get_or_init(|| Keys::names(|keys| Config::bert(keys, &BERT)))
}

/// Sizes of a model of any of the three families.
#[derive(Clone, Debug)]
pub struct Config {
    family: &'static Family,
    words: usize,
    width: usize,
    layers: usize,
    heads: usize,
    hidden: usize,
    activation: Activation,
    /// Rows of the position embedding table.
    positions: usize,
    /// Position embedding of a text's first token.
    first: usize,
    /// Number of token types; 0 if the family has none.
    types: usize,
    eps: f32,
    dropout: f32,
    attention_dropout: f32,
    label_dropout: f32,
    deviation: f32,
    padding: Option<u32>,
    tied: bool,
}

impl Config {
    /// Reads BERT's `config.json`, or RoBERTa's, whose positions start after the row of the
    /// padding token.
    fn bert(keys: &Keys, family: &'static Family) -> Result<Config, String> {
        let kind: Option<String> = keys.get("position_embedding_type", None)?;
        if let Some(kind) = kind.filter(|kind| kind != "absolute") {
            return Err(format!("position_embedding_type: got {kind:?}, need \"absolute\""));
        }
        if keys.get("is_decoder", false)? {
            return Err("is_decoder: a decoder of this family is not supported".into());
        }
        let stack = Stack {
            words: keys.size("vocab_size", 30522)?,
            width: keys.size("hidden_size", 768)?,
            layers: keys.size("num_hidden_layers", 12)?,
            heads: keys.size("num_attention_heads", 12)?,
            hidden: keys.size("intermediate_size", 3072)?,
            positions: keys.size("max_position_embeddings", 512)?,
        };
        let types = keys.size("type_vocab_size", 2)?;
        sizes::check_matrices(&[[types, stack.width]])?;
        let (padding, behind) = match family.model_type {
            "roberta" => (1, 1),
            _ => (0, 0),
        };
        let padding = keys.get("pad_token_id", None)?.unwrap_or(padding);
        sizes::check_ids(&[("pad_token_id", padding)], stack.words.1)?;
        let dropout = keys.share("hidden_dropout_prob", 0.1)?;
        let of_labels: Option<f32> = keys.get("classifier_dropout", None)?;
        sizes::check_shares(&[("classifier_dropout", of_labels.unwrap_or(dropout))])?;
        let config = Config {
            activation: keys.activation("hidden_act", "gelu")?,
            first: behind * (padding as usize + 1),
            types: types.1,
            eps: keys.get("layer_norm_eps", 1e-12)?,
            dropout,
            attention_dropout: keys.share("attention_probs_dropout_prob", 0.1)?,
            label_dropout: of_labels.unwrap_or(dropout),
            deviation: keys.get("initializer_range", 0.02)?,
            padding: Some(padding),
            tied: keys.get("tie_word_embeddings", true)?,
            ..Config::of(family, &stack)?
        };
        config.checked()
    }

    /// Reads DistilBERT's `config.json`.
    fn distilbert(keys: &Keys) -> Result<Config, String> {
        let stack = Stack {
            words: keys.size("vocab_size", 30522)?,
            width: keys.size("dim", 768)?,
            layers: keys.size("n_layers", 6)?,
            heads: keys.size("n_heads", 12)?,
            hidden: keys.size("hidden_dim", 3072)?,
            positions: keys.size("max_position_embeddings", 512)?,
        };
        let config = Config {
            activation: keys.activation("activation", "gelu")?,
            dropout: keys.share("dropout", 0.1)?,
            attention_dropout: keys.share("attention_dropout", 0.1)?,
            label_dropout: keys.share("seq_classif_dropout", 0.2)?,
            deviation: keys.get("initializer_range", 0.02)?,
            padding: keys.token("pad_token_id", Some(0), stack.words.1)?,
            tied: keys.get("tie_word_embeddings", true)?,
            ..Config::of(&DISTILBERT, &stack)?
        };
        config.checked()
    }

    /// Returns a configuration of these sizes, without token types, padding and dropout.
    fn of(family: &'static Family, stack: &Stack) -> Result<Config, String> {
        stack.check()?;
        Ok(Config {
            family,
            words: stack.words.1,
            width: stack.width.1,
            layers: stack.layers.1,
            heads: stack.heads.1,
            hidden: stack.hidden.1,
            activation: Activation::Gelu,
            positions: stack.positions.1,
            first: 0,
            types: 0,
            eps: 1e-12,
            dropout: 0.0,
            attention_dropout: 0.0,
            label_dropout: 0.0,
            deviation: 0.02,
            padding: None,
            tied: true,
        })
    }

    fn checked(self) -> Result<Config, String> {
        match self.first < self.positions {
            true => Ok(self),
            false => Err(format!(
                "max_position_embeddings: got {}, need more than {}",
                self.positions, self.first
            )),
        }
    }
}

/// The encoder without its heads.
#[derive(Module, Debug)]
pub(crate) struct Bert {
    words: Embedding,
    positions: Embedding,
    types: Option<Embedding>,
    norm: Norm,
    dropout: Dropout,
    layers: Vec<Block>,
    #[module(skip)]
    family: &'static Family,
    #[module(skip)]
    first: usize,
}

/// Configuration of one post-norm layer.
fn block(config: &Config) -> BlockConfig {
    let &Config { width, heads, eps, deviation, dropout, .. } = config;
    let weights = WeightInit::Normal(deviation);
    BlockConfig {
        norms: NormPlacement::Post,
        norm: NormConfig { eps, ..NormConfig::layer(width) },
        attention: SelfAttentionConfig {
            dropout: config.attention_dropout,
            weights,
            ..SelfAttentionConfig::new(width, heads)
        },
        forward: FeedForwardConfig {
            hidden: config.hidden,
            activation: config.activation,
            weights,
            ..FeedForwardConfig::new(width)
        },
        dropout: [dropout; 2],
        ..BlockConfig::new(width, heads)
    }
}

fn bind_block(b: &mut Binder, block: &mut Block, distilled: bool) {
    let (queries, out, after, up, down, last) = match distilled {
        true => (
            ["attention.q_lin", "attention.k_lin", "attention.v_lin"],
            "attention.out_lin",
            "sa_layer_norm",
            "ffn.lin1",
            "ffn.lin2",
            "output_layer_norm",
        ),
        false => (
            ["attention.self.query", "attention.self.key", "attention.self.value"],
            "attention.output.dense",
            "attention.output.LayerNorm",
            "intermediate.dense",
            "output.dense",
            "output.LayerNorm",
        ),
    };
    b.packed(&queries, &mut block.attention.qkv);
    b.linear(out, &mut block.attention.out);
    b.optional_norm(after, &mut block.attention_norm);
    b.linear(up, &mut block.forward.up);
    b.linear(down, &mut block.forward.down);
    b.norm(last, &mut block.forward_norm);
}

impl Body for Bert {
    const FAMILIES: &'static [&'static Family] = &[&BERT, &ROBERTA, &DISTILBERT];

    type Config = Config;

    fn configure(json: &Value, _head: Head) -> Result<Config, String> {
        let keys = Keys::new(json);
        match json["model_type"].as_str() {
            Some("roberta") => Config::bert(&keys, &ROBERTA),
            Some("distilbert") => Config::distilbert(&keys),
            _ => Config::bert(&keys, &BERT),
        }
    }

    fn new(config: &Config, init: &mut Init) -> Bert {
        let &Config { width, eps, deviation, .. } = config;
        let table = |entries, padding| EmbeddingConfig {
            padding,
            deviation,
            ..EmbeddingConfig::new(entries, width)
        };
        let norm = NormConfig { eps, ..NormConfig::layer(width) };
        let padding = config.padding.map(i64::from);
        Bert {
            words: table(config.words, padding).init(init),
            positions: table(config.positions, None).init(init),
            types: (config.types > 0).then(|| table(config.types, None).init(init)),
            norm: norm.init(init),
            dropout: Dropout::new(config.dropout, init),
            layers: (0..config.layers).map(|_| block(config).init(init)).collect(),
            family: config.family,
            first: config.first,
        }
    }

    fn sizes(config: &Config) -> Sizes {
        Sizes {
            width: config.width,
            words: config.words,
            labels: 0,
            eps: config.eps,
            deviation: config.deviation,
            activation: config.activation,
            dropout: config.label_dropout,
            tied: config.tied,
            cap: None,
            pool: None,
            biases: Biases::ALL,
        }
    }

    fn family(&self) -> &'static Family {
        self.family
    }

    fn bind(&mut self, b: &mut Binder) {
        let distilled = self.family.model_type == DISTILBERT.model_type;
        b.at("embeddings", |b| {
            b.embedding("word_embeddings", &mut self.words);
            b.embedding("position_embeddings", &mut self.positions);
            if let Some(types) = &mut self.types {
                b.embedding("token_type_embeddings", types);
            }
            b.norm("LayerNorm", &mut self.norm);
        });
        let stack = if distilled { "transformer.layer" } else { "encoder.layer" };
        for (i, layer) in self.layers.iter_mut().enumerate() {
            b.at(&format!("{stack}.{i}"), |b| bind_block(b, layer, distilled));
        }
    }

    fn read(&self, texts: &Texts, probe: &mut Probe) -> Tensor<3> {
        let device: Device = self.words.table.device();
        let mut x = self.words.forward(texts.words(&device))
            + self.positions.forward(texts.places(self.first, &device));
        if let Some(types) = &self.types {
            x = x + types.forward(texts.parts(&device));
        }
        let mut x = self.dropout.forward(self.norm.forward(x), probe.mode());
        let attention = Attention::dot().mask(texts.mask(false));
        for layer in &self.layers {
            probe.hidden(&x);
            x = layer.forward(x, probe.call(&attention));
        }
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
        Some(self.positions.table.dims()[0] - self.first)
    }

    fn attention(&self) -> Vec<String> {
        let layer = |layer: &Block| {
            format!("{}; every token sees every token of its text", dot_in_words(&layer.attention))
        };
        self.layers.iter().map(layer).collect()
    }
}
