//! XLNet (Yang et al. 2019, arXiv:1906.08237): a Transformer with relative positions, trained to
//! predict tokens in any order (permutation language modelling).
//!
//! Texts are encoded by the content stream, as by other models. Predictions are made by the query
//! stream, see [`Permuting`].

mod config;
mod layer;
mod permuted;
mod questions;

pub use config::Config;
pub use permuted::{Memory, Permuted, Permuting, Predicted, Sight};

use crate::checkpoint::Binder;
use crate::fields::fields;
use crate::text::{
    BeforeLabels, Biases, Body, Family, Head, PooledToken, Probe, Sizes, Texts, TwoStreams,
    WordNames,
};
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use config::Rules;
use layer::{Layer, Scene, distances};
use regard_attention::layers::{Dropout, Embedding, EmbeddingConfig};
use regard_attention::mask::{Mask, window};
use regard_attention::ops::Activation;
use regard_attention::{Init, Mode};
use serde_json::Value;

/// Names of XLNet's tensors, classes and configuration keys.
pub static XLNET: Family = Family {
    model_type: "xlnet",
    keys: fields::<Config>,
    class: "XLNet",
    prefix: "transformer",
    classes: &[
        (Head::Bare, "Model"),
        (Head::Words, "LMHeadModel"),
        (Head::Sequence, "ForSequenceClassification"),
        (Head::Tokens, "ForTokenClassification"),
        (Head::Span, "ForQuestionAnsweringSimple"),
    ],
    typed: true,
    speaker: PooledToken::Last,
    pooled: false,
    before_labels: Some(BeforeLabels::of_texts("sequence_summary.summary", Activation::Tanh)),
    labels: "logits_proj",
    token_labels: "classifier",
    span: "qa_outputs",
    labels_bias: true,
    words: WordNames { dense: None, norm: "", table: "lm_loss.weight", bias: Some("lm_loss.bias") },
};

/// The encoder without its heads.
#[derive(Module, Debug)]
pub(crate) struct Xlnet {
    words: Embedding,
    /// `[1, M]`: initial query of a target (the mask embedding).
    unknown: Param<Tensor<2>>,
    layers: Vec<Layer>,
    /// Dropout of embeddings, of distances, and of the output.
    dropout: [Dropout; 3],
    #[module(skip)]
    rules: Rules,
}

impl Xlnet {
    fn device(&self) -> Device {
        self.words.table.device()
    }

    /// Word embeddings of texts, `[B, T, M]`.
    fn begin(&self, texts: &Texts, mode: Mode) -> Tensor<3> {
        self.dropout[0].forward(self.words.forward(texts.words(&self.device())), mode)
    }

    /// Makes the shared inputs of the scores, for texts after a memory of `memory` tokens.
    fn scene(&self, texts: &Texts, memory: usize, mode: Mode) -> Scene {
        let ([_, t], longest) = (texts.shape(), texts.longest());
        let width = self.words.table.dims()[1];
        let (from, to) = ((memory + longest) as i64, 1 - longest as i64);
        let known = Tensor::from_data(distances(from, to, width, &self.rules), &self.device());
        Scene {
            distances: self.dropout[1].forward(known, mode),
            between: t - longest,
            parts: texts.has_parts().then(|| parts(texts, memory)),
        }
    }

    /// Mask of the tokens that a token attends to, without a permutation.
    fn seen(&self, texts: &Texts, memory: usize) -> Mask {
        let all = texts.mask(self.rules.left_to_right);
        if self.rules.same_length { all & window(memory, 0) } else { all }
    }
}

/// `[B·S]`: segment of each key. The memory belongs to the first.
fn parts(texts: &Texts, memory: usize) -> Vec<i64> {
    let [_, t] = texts.shape();
    let rows = texts.types().chunks(t.max(1));
    let before = || std::iter::repeat_n(0, memory);
    rows.flat_map(|row| before().chain(row.iter().map(|part| i64::from(*part)))).collect()
}

impl Body for Xlnet {
    const FAMILIES: &'static [&'static Family] = &[&XLNET];

    type Config = Config;

    fn configure(json: &Value, head: Head) -> Result<Config, String> {
        Config::read(json, head)
    }

    fn new(config: &Config, init: &mut Init) -> Xlnet {
        let deviation = config.initializer_range;
        let words = EmbeddingConfig {
            deviation,
            ..EmbeddingConfig::new(config.vocab_size, config.d_model)
        };
        Xlnet {
            words: words.init(init),
            unknown: init.normal([1, config.d_model], deviation),
            layers: (0..config.n_layer).map(|_| Layer::new(config, init)).collect(),
            dropout: [(); 3].map(|()| Dropout::new(config.dropout, init)),
            rules: config.rules(),
        }
    }

    fn sizes(config: &Config) -> Sizes {
        Sizes {
            width: config.d_model,
            words: config.vocab_size,
            labels: 0,
            eps: config.layer_norm_eps,
            deviation: config.initializer_range,
            activation: config.activation,
            dropout: config.label_dropout,
            tied: config.tie_word_embeddings,
            cap: None,
            pool: None,
            biases: Biases::ALL,
        }
    }

    /// The mask embedding is used by one head only, and segments by pairs of texts only.
    fn allows_missing_gradient(&self, name: &str) -> bool {
        ["unknown", ".parts", ".to_parts"].iter().any(|end| name.ends_with(end))
    }

    fn bind(&mut self, b: &mut Binder) {
        let [_, m] = self.unknown.dims();
        b.embedding("word_embedding", &mut self.words);
        b.shaped("mask_emb", &[1, 1, m], &mut self.unknown);
        for (i, layer) in self.layers.iter_mut().enumerate() {
            b.at(&format!("layer.{i}"), |b| layer.bind(b));
        }
    }

    fn read(&self, texts: &Texts, probe: &mut Probe) -> Tensor<3> {
        let mode = probe.mode();
        let mut x = self.begin(texts, mode);
        let (scene, mask) = (self.scene(texts, 0, mode), self.seen(texts, 0));
        for layer in &self.layers {
            probe.hidden(&x);
            let attention = layer.score(&scene).mask(mask.clone());
            let (queries, keys) = (layer.queries(x.clone()), layer.keys(x.clone()));
            let seen = layer.look(probe.call(&attention), queries, keys);
            x = layer.conclude(x, seen, mode);
        }
        probe.hidden(&x);
        self.dropout[2].forward(x, mode)
    }

    fn words(&self) -> Option<&Embedding> {
        Some(&self.words)
    }

    fn words_mut(&mut self) -> Option<&mut Embedding> {
        Some(&mut self.words)
    }

    fn longest(&self) -> Option<usize> {
        None
    }

    fn attention(&self) -> Vec<String> {
        let order = match self.rules.left_to_right {
            true => "a token sees itself and the tokens before it",
            false => "every token sees every token of its text, or those before it in some order",
        };
        let layer = |layer: &Layer| {
            let [heads, wide] = layer.heads();
            format!("{heads} heads of {wide}, dot product, distance and segment; {order}")
        };
        self.layers.iter().map(layer).collect()
    }

    fn two_streams(&self) -> Option<&dyn TwoStreams> {
        Some(self)
    }
}
