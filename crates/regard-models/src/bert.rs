//! BERT (Devlin et al. 2019, arXiv:1810.04805), with RoBERTa (arXiv:1907.11692) and DistilBERT
//! (arXiv:1910.01108), which differ from it in names, positions and token types only.

use crate::checkpoint::Binder;
use crate::fields::fields;
use crate::sizes;
use crate::text::{
    Body, Family, Head, Probe, Sizes, Speaker, Texts, WordNames, activation, dot_in_words,
};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use regard_attention::layers::{
    Block, BlockConfig, Dropout, Embedding, EmbeddingConfig, FeedForwardConfig, Norm, NormConfig,
    Norms, SelfAttentionConfig,
};
use regard_attention::ops::Activation;
use regard_attention::{Attention, Init, Weights};
use serde::Deserialize;
use serde_json::Value;

/// BERT's names.
pub static BERT: Family = Family {
    model_type: "bert",
    keys: fields::<BertKeys>,
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
    speaker: Speaker::First,
    pooled: true,
    before_labels: None,
    labels: "classifier",
    labels_bias: true,
    words: WordNames {
        dense: Some("cls.predictions.transform.dense"),
        norm: "cls.predictions.transform.LayerNorm",
        table: "cls.predictions.decoder.weight",
        bias: Some("cls.predictions.bias"),
    },
};

/// RoBERTa's names.
pub static ROBERTA: Family = Family {
    model_type: "roberta",
    keys: fields::<BertKeys>,
    class: "Roberta",
    prefix: "roberta",
    classes: HEADS,
    typed: false,
    speaker: Speaker::First,
    pooled: false,
    before_labels: Some(("classifier.dense", Activation::Tanh)),
    labels: "classifier.out_proj",
    labels_bias: true,
    words: WordNames {
        dense: Some("lm_head.dense"),
        norm: "lm_head.layer_norm",
        table: "lm_head.decoder.weight",
        bias: Some("lm_head.bias"),
    },
};

/// DistilBERT's names.
pub static DISTILBERT: Family = Family {
    model_type: "distilbert",
    keys: fields::<DistilBertKeys>,
    class: "DistilBert",
    prefix: "distilbert",
    classes: HEADS,
    typed: false,
    speaker: Speaker::First,
    pooled: false,
    before_labels: Some(("pre_classifier", Activation::Relu)),
    labels: "classifier",
    labels_bias: true,
    words: WordNames {
        dense: Some("vocab_transform"),
        norm: "vocab_layer_norm",
        table: "vocab_projector.weight",
        bias: Some("vocab_projector.bias"),
    },
};

const HEADS: &[(Head, &str)] = &[
    (Head::Bare, "Model"),
    (Head::Words, "ForMaskedLM"),
    (Head::Sequence, "ForSequenceClassification"),
    (Head::Tokens, "ForTokenClassification"),
    (Head::Span, "ForQuestionAnswering"),
];

/// Sizes, whatever the family calls them.
#[derive(Clone, Debug)]
pub struct Config {
    family: &'static Family,
    words: usize,
    width: usize,
    layers: usize,
    heads: usize,
    hidden: usize,
    activation: Activation,
    /// Rows of the table of positions.
    positions: usize,
    /// The row of a text's first token.
    first: usize,
    /// Kinds of tokens; 0 if the family has none.
    types: usize,
    eps: f32,
    dropout: f32,
    attention_dropout: f32,
    label_dropout: f32,
    deviation: f32,
    padding: Option<u32>,
    tied: bool,
}

/// The keys of BERT and RoBERTa.
#[derive(Deserialize)]
#[serde(default)]
struct BertKeys {
    vocab_size: usize,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    hidden_act: String,
    hidden_dropout_prob: f32,
    attention_probs_dropout_prob: f32,
    classifier_dropout: Option<f32>,
    max_position_embeddings: usize,
    type_vocab_size: usize,
    initializer_range: f32,
    layer_norm_eps: f32,
    pad_token_id: Option<u32>,
    tie_word_embeddings: bool,
    position_embedding_type: Option<String>,
    is_decoder: bool,
}

impl Default for BertKeys {
    fn default() -> BertKeys {
        BertKeys {
            vocab_size: 30522,
            hidden_size: 768,
            num_hidden_layers: 12,
            num_attention_heads: 12,
            intermediate_size: 3072,
            hidden_act: "gelu".into(),
            hidden_dropout_prob: 0.1,
            attention_probs_dropout_prob: 0.1,
            classifier_dropout: None,
            max_position_embeddings: 512,
            type_vocab_size: 2,
            initializer_range: 0.02,
            layer_norm_eps: 1e-12,
            pad_token_id: None,
            tie_word_embeddings: true,
            position_embedding_type: None,
            is_decoder: false,
        }
    }
}

/// The keys of DistilBERT.
#[derive(Deserialize)]
#[serde(default)]
struct DistilBertKeys {
    vocab_size: usize,
    dim: usize,
    n_layers: usize,
    n_heads: usize,
    hidden_dim: usize,
    activation: String,
    dropout: f32,
    attention_dropout: f32,
    seq_classif_dropout: f32,
    max_position_embeddings: usize,
    initializer_range: f32,
    pad_token_id: Option<u32>,
    tie_word_embeddings: bool,
}

impl Default for DistilBertKeys {
    fn default() -> DistilBertKeys {
        DistilBertKeys {
            vocab_size: 30522,
            dim: 768,
            n_layers: 6,
            n_heads: 12,
            hidden_dim: 3072,
            activation: "gelu".into(),
            dropout: 0.1,
            attention_dropout: 0.1,
            seq_classif_dropout: 0.2,
            max_position_embeddings: 512,
            initializer_range: 0.02,
            pad_token_id: Some(0),
            tie_word_embeddings: true,
        }
    }
}

impl Config {
    /// From BERT's `config.json`.
    pub(crate) fn bert(json: &Value) -> Result<Config, String> {
        let keys: BertKeys = crate::parse(json)?;
        keys.config(&BERT, 0, keys.pad_token_id.unwrap_or(0)).and_then(Config::checked)
    }

    /// From RoBERTa's, whose positions begin behind the row of the padding token.
    pub(crate) fn roberta(json: &Value) -> Result<Config, String> {
        let keys: BertKeys = crate::parse(json)?;
        let padding = keys.pad_token_id.unwrap_or(1);
        keys.config(&ROBERTA, padding as usize + 1, padding).and_then(Config::checked)
    }

    /// From DistilBERT's.
    pub(crate) fn distilbert(json: &Value) -> Result<Config, String> {
        let keys: DistilBertKeys = crate::parse(json)?;
        let config = Config {
            family: &DISTILBERT,
            words: keys.vocab_size,
            width: keys.dim,
            layers: keys.n_layers,
            heads: keys.n_heads,
            hidden: keys.hidden_dim,
            activation: activation("activation", &keys.activation)?,
            positions: keys.max_position_embeddings,
            first: 0,
            types: 0,
            eps: 1e-12,
            dropout: keys.dropout,
            attention_dropout: keys.attention_dropout,
            label_dropout: keys.seq_classif_dropout,
            deviation: keys.initializer_range,
            padding: keys.pad_token_id,
            tied: keys.tie_word_embeddings,
        };
        config.checked()
    }

    fn checked(self) -> Result<Config, String> {
        let names: [&str; 6] = match self.family.model_type {
            "distilbert" => [
                "vocab_size",
                "dim",
                "n_layers",
                "n_heads",
                "hidden_dim",
                "max_position_embeddings",
            ],
            _ => [
                "vocab_size",
                "hidden_size",
                "num_hidden_layers",
                "num_attention_heads",
                "intermediate_size",
                "max_position_embeddings",
            ],
        };
        let values = [self.words, self.width, self.layers, self.heads, self.hidden, self.positions];
        let named: Vec<(&str, usize)> = names.into_iter().zip(values).collect();
        sizes::check(&named)?;
        let [words, width, _, heads, hidden, positions] =
            [named[0], named[1], named[2], named[3], named[4], named[5]];
        sizes::check_matrices(&[
            [words, width],
            [width, hidden],
            [positions, width],
            [width, width],
        ])?;
        if !width.1.is_multiple_of(heads.1) {
            return Err(format!(
                "{}: got {}, need a divisor of {} = {}",
                heads.0, heads.1, width.0, width.1
            ));
        }
        if self.first >= self.positions {
            return Err(format!(
                "max_position_embeddings: got {}, need more than {}",
                self.positions, self.first
            ));
        }
        if let Some(padding) = self.padding {
            sizes::check_ids(&[("pad_token_id", padding)], self.words)?;
        }
        sizes::check_shares(&[
            ("dropout", self.dropout),
            ("attention dropout", self.attention_dropout),
            ("classifier dropout", self.label_dropout),
        ])?;
        Ok(self)
    }
}

impl BertKeys {
    fn config(
        &self,
        family: &'static Family,
        first: usize,
        padding: u32,
    ) -> Result<Config, String> {
        if let Some(kind) = self.position_embedding_type.as_deref().filter(|k| *k != "absolute") {
            return Err(format!("position_embedding_type: got {kind:?}, need \"absolute\""));
        }
        if self.is_decoder {
            return Err("is_decoder: a decoder of this family is not supported".into());
        }
        let types = ("type_vocab_size", self.type_vocab_size);
        sizes::check(&[types])?;
        sizes::check_matrices(&[[types, ("hidden_size", self.hidden_size)]])?;
        Ok(Config {
            family,
            words: self.vocab_size,
            width: self.hidden_size,
            layers: self.num_hidden_layers,
            heads: self.num_attention_heads,
            hidden: self.intermediate_size,
            activation: activation("hidden_act", &self.hidden_act)?,
            positions: self.max_position_embeddings,
            first,
            types: self.type_vocab_size,
            eps: self.layer_norm_eps,
            dropout: self.hidden_dropout_prob,
            attention_dropout: self.attention_probs_dropout_prob,
            label_dropout: self.classifier_dropout.unwrap_or(self.hidden_dropout_prob),
            deviation: self.initializer_range,
            padding: Some(padding),
            tied: self.tie_word_embeddings,
        })
    }
}

/// The model below its heads.
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

/// A layer, whose norms stand after each part.
fn block(config: &Config) -> BlockConfig {
    let &Config { width, heads, eps, deviation, dropout, .. } = config;
    let weights = Weights::Normal(deviation);
    BlockConfig {
        norms: Norms::Post,
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
        match json["model_type"].as_str() {
            Some("roberta") => Config::roberta(json),
            Some("distilbert") => Config::distilbert(json),
            _ => Config::bert(json),
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
            pool: None,
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
