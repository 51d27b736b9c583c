//! The Transformer (Vaswani et al. 2017, arXiv:1706.03762): an encoder–decoder of attention alone.
//!
//! Names and keys are those of Marian in Hugging Face's library (post-norm, as in the paper) and of
//! Pegasus (pre-norm, with one more norm at the end), so that their checkpoints load here and vice
//! versa. What neither has, such as learned positions or another attention between decoder and
//! encoder, is saved as `transformer`.

mod config;
pub(crate) mod decoding;
mod plan;
mod sinusoids;
pub(crate) mod stack;

pub use config::{Config, NormOrder, PositionEncoding};

use crate::checkpoint::{Arrays, Binder};
use crate::network::{Definition, Description, InputKind};
use crate::seq2seq::{Decoding, Scores, Seq2Seq, Source};
use burn::module::{Module, Param};
use burn::tensor::{Int, Tensor};
use regard_attention::layers::{Embedding, EmbeddingConfig, Weight};
use regard_attention::{Init, Mode};
use serde_json::Value;
use stack::{Ask, Decoder, Encoder};

/// Values of `model_type` in `config.json`.
pub const MODEL_TYPES: [&str; 3] = ["marian", "pegasus", "transformer"];

#[derive(Module, Debug)]
pub(crate) struct Transformer {
    /// Source embeddings; target embeddings too, if they are shared.
    words: Embedding,
    /// Target embeddings.
    target_words: Option<Embedding>,
    encoder: Encoder,
    decoder: Decoder,
    /// `[V, M]`: output layer; `None` if it is tied to the target embeddings.
    head: Option<Weight>,
    /// `[V]`
    bias: Param<Tensor<1>>,
    #[module(skip)]
    config: Config,
}

impl Transformer {
    pub fn new(config: &Config, init: &mut Init) -> Transformer {
        let (m, v) = (config.d_model, config.target_words());
        let deviation = if config.scale_embedding { (m as f32).powf(-0.5) } else { 0.02 };
        let table = |entries| EmbeddingConfig {
            padding: Some(i64::from(config.pad_token_id)),
            deviation,
            ..EmbeddingConfig::new(entries, m)
        };
        let shared = config.share_encoder_decoder_embeddings;
        Transformer {
            words: table(config.vocab_size).init(init),
            target_words: (!shared).then(|| table(v).init(init)),
            encoder: Encoder::new(config, init),
            decoder: Decoder::new(config, init),
            head: (!config.tie_word_embeddings).then(|| init.normal([v, m], deviation).into()),
            bias: init.constant([v], 0.0),
            config: config.clone(),
        }
    }

    fn written(&self) -> &Embedding {
        self.target_words.as_ref().unwrap_or(&self.words)
    }

    fn read(&self, source: &Source, mode: Mode) -> Tensor<3> {
        let x = self.encoder.vectors.forward(&self.words, source.ids.clone(), 0, mode);
        self.encoder.forward(x, &source.valid(), mode)
    }

    fn logits(&self, x: Tensor<3>) -> Tensor<3> {
        self.table().scores(x, Some(self.bias.val()))
    }

    /// `[V, M]`: output layer.
    fn table(&self) -> &Weight {
        self.head.as_ref().unwrap_or(&self.written().table)
    }
}

impl Definition for Transformer {
    const READS: InputKind = InputKind::Pairs;

    fn types() -> Vec<&'static str> {
        MODEL_TYPES.to_vec()
    }

    fn make(
        json: &Value,
        weights: Option<&Arrays>,
        init: &mut Init,
    ) -> Result<Transformer, String> {
        let mut config = Config::from_json(json)?;
        if let Some(weights) = weights {
            config.follow(weights);
        }
        Ok(Transformer::new(&config, init))
    }

    fn config(&self) -> Value {
        let mut json = crate::config_json(self.config.model_type(), &self.config);
        json["architectures"] = self.config.architectures();
        json
    }

    fn describe(&self) -> Description {
        let config = &self.config;
        let texts = Description::of_texts(Some(config.vocab_size), Seq2Seq::longest(self));
        let heads = |n: usize| format!("{n} heads of {}, dot product", config.d_model / n);
        let (reads, writes) =
            (heads(config.encoder_attention_heads), heads(config.decoder_attention_heads));
        let encoder = (0..config.encoder_layers)
            .map(|i| format!("encoder {i}: {reads}; {}", config.encoder_attention.in_words()));
        let look = config.attention.in_words();
        let decoder = (0..config.decoder_layers).flat_map(|i| {
            [
                format!("decoder {i}: {writes}; a token sees itself and the tokens before it"),
                format!("decoder {i} to encoder: {writes}; {look}"),
            ]
        });
        Description { attention: encoder.chain(decoder).collect(), ..texts }
    }

    fn into_seq2seq(self: Box<Self>) -> Option<Box<dyn Seq2Seq>> {
        Some(self)
    }

    fn bind(&mut self, b: &mut Binder) {
        let [v] = self.bias.dims();
        b.shaped("final_logits_bias", &[1, v], &mut self.bias);
        b.at("model", |b| {
            match &mut self.target_words {
                None => bind_shared(b, &mut self.words, self.config.tie_word_embeddings),
                Some(target) => {
                    b.embedding("encoder.embed_tokens", &mut self.words);
                    b.embedding("decoder.embed_tokens", target);
                }
            }
            b.at("encoder", |b| self.encoder.bind(b));
            b.at("decoder", |b| self.decoder.bind(b));
        });
        if let Some(head) = &mut self.head {
            b.weight("lm_head.weight", head);
        }
    }

    fn ignores(&self, name: &str) -> bool {
        // Sinusoids are computed, and a shared table has more than one name.
        let learned = self.config.positions == PositionEncoding::Learned;
        let side = name.strip_prefix("model.encoder.").or(name.strip_prefix("model.decoder."));
        match side {
            Some("embed_positions.weight") => !learned,
            Some("embed_tokens.weight") => self.target_words.is_none(),
            Some(_) => false,
            None if name == "lm_head.weight" => self.head.is_none(),
            None => name == "model.shared.weight",
        }
    }
}

impl Seq2Seq for Transformer {
    fn forward(&self, source: &Source, words: Tensor<2, Int>, mode: Mode) -> Scores {
        let memory = self.read(source, mode);
        let x = self.decoder.vectors.forward(self.written(), words, 0, mode);
        let lengths = source.valid();
        let ask = Ask { lengths: &lengths, mode, look: None };
        let (x, looked) = self.decoder.forward(x, memory, &ask);
        Scores { logits: self.logits(x), log_prob: looked.log_prob }
    }

    fn decode<'a>(&'a self, source: &Source, look: bool) -> Box<dyn Decoding + 'a> {
        // A plan returns no attention weights.
        match (!look).then(|| plan::Planned::new(self, source)).flatten() {
            Some(plan) => Box::new(plan),
            None => Box::new(decoding::Walk::new(self, source, look)),
        }
    }

    fn longest(&self) -> Option<usize> {
        let learned = self.config.positions == PositionEncoding::Learned;
        learned.then_some(self.config.max_position_embeddings)
    }
}

/// Binds the shared embedding table. A file has it once, under any of its names; if the output
/// layer is not tied to it, Hugging Face's library ties nothing and needs it under all of them.
fn bind_shared(b: &mut Binder, words: &mut Embedding, tied: bool) {
    let all = ["shared", "encoder.embed_tokens", "decoder.embed_tokens"];
    let mut names: Vec<&str> =
        all.into_iter().filter(|name| b.has(&format!("{name}.weight"))).collect();
    if names.is_empty() {
        names.push(all[0]);
    }
    if tied {
        names.truncate(1);
    }
    names.iter().for_each(|name| b.embedding(name, words));
}
