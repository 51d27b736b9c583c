//! `config.json` of a Transformer, with the keys of Hugging Face's Marian and Pegasus.

use crate::checkpoint::Arrays;
use crate::cross_attention::CrossAttentionKind;
use crate::sizes;
use regard_attention::ops::Activation;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Configuration of the Transformer, as in `config.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Config {
    /// Size of the source vocabulary.
    pub vocab_size: usize,
    /// Size of the target vocabulary; `None` if it is the source vocabulary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decoder_vocab_size: Option<usize>,
    /// Width of the model; default 256.
    #[serde(default = "of::<256>")]
    pub d_model: usize,
    /// Number of encoder layers; default 3.
    #[serde(default = "of::<3>")]
    pub encoder_layers: usize,
    /// Number of decoder layers; default 3.
    #[serde(default = "of::<3>")]
    pub decoder_layers: usize,
    /// Number of heads of an encoder layer; default 8.
    #[serde(default = "of::<8>")]
    pub encoder_attention_heads: usize,
    /// Number of heads of a decoder layer; default 8.
    #[serde(default = "of::<8>")]
    pub decoder_attention_heads: usize,
    /// Hidden width of an encoder layer's feed-forward part; default 1024.
    #[serde(default = "of::<1024>")]
    pub encoder_ffn_dim: usize,
    /// Hidden width of a decoder layer's feed-forward part; default 1024.
    #[serde(default = "of::<1024>")]
    pub decoder_ffn_dim: usize,
    /// Activation: `relu` (default), `gelu`, `gelu_new`, `swish` or `tanh`.
    #[serde(default = "relu")]
    pub activation_function: String,
    /// Dropout of embeddings and of each sublayer's output; default 0.
    #[serde(default)]
    pub dropout: f32,
    /// Dropout of attention weights; default 0.
    #[serde(default)]
    pub attention_dropout: f32,
    /// Dropout inside the feed-forward part; default 0.
    #[serde(default)]
    pub activation_dropout: f32,
    /// Longest row with learned positions, default 512; sinusoidal ones have no limit.
    #[serde(default = "of::<512>")]
    pub max_position_embeddings: usize,
    /// Whether embeddings are multiplied by `√d_model`; default true.
    #[serde(default = "yes")]
    pub scale_embedding: bool,
    /// Whether source and target share one embedding table; default true.
    #[serde(default = "yes")]
    pub share_encoder_decoder_embeddings: bool,
    /// Whether the output layer is tied to the target embeddings; default true.
    #[serde(default = "yes")]
    pub tie_word_embeddings: bool,
    /// Pre-norm or post-norm; default post-norm.
    #[serde(default)]
    pub norms: NormOrder,
    /// Position encoding; default sinusoidal.
    #[serde(default)]
    pub positions: PositionEncoding,
    /// Kind of attention of the decoder to the encoder; default global.
    #[serde(default, skip_serializing_if = "is_global")]
    pub attention: CrossAttentionKind,
    /// Kind of self-attention of the encoder: global (default) or a window.
    #[serde(default, skip_serializing_if = "is_global")]
    pub encoder_attention: CrossAttentionKind,
    /// Decoder layer whose attention, averaged over heads, is the alignment; the last by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alignment_layer: Option<usize>,
    /// Id of the padding token; default 0.
    #[serde(default)]
    pub pad_token_id: u32,
    /// Id of the first input token of the decoder; default 1.
    #[serde(default = "one")]
    pub decoder_start_token_id: u32,
    /// Id of the end token; default 2.
    #[serde(default = "two")]
    pub eos_token_id: u32,
}

/// Position of the norms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NormOrder {
    /// After each residual sum, as in the paper and in Marian.
    #[default]
    Post,
    /// Before each sublayer, and once at the end, as in Pegasus.
    Pre,
}

/// Position encoding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PositionEncoding {
    /// Sines and cosines.
    #[default]
    Sinusoidal,
    /// A learned vector for each position.
    Learned,
}

fn of<const N: usize>() -> usize {
    N
}

fn one() -> u32 {
    1
}

fn two() -> u32 {
    2
}

fn yes() -> bool {
    true
}

fn relu() -> String {
    "relu".to_string()
}

fn is_global(look: &CrossAttentionKind) -> bool {
    *look == CrossAttentionKind::Global
}

impl Config {
    /// Reads a configuration of this program or of Hugging Face's library.
    pub(crate) fn from_json(json: &Value) -> Result<Config, String> {
        let mut json = json.clone();
        // Hugging Face's library has no key for the position of norms; the type implies it.
        if json.get("norms").is_none() && json["model_type"] == "pegasus" {
            json["norms"] = json!("pre");
        }
        // Hugging Face's library omits defaults.
        if json["model_type"] != "transformer" && json.get("tie_word_embeddings").is_none() {
            json["tie_word_embeddings"] = json!(true);
        }
        let config: Config = crate::parse(&json)?;
        config.check()?;
        Ok(config)
    }

    /// Adapts to versions of Hugging Face's library that tie all of a model's tables or none,
    /// whatever the configuration says: there may be two tables where it promises one.
    pub(crate) fn follow(&mut self, weights: &Arrays) {
        let [read, written] =
            ["encoder", "decoder"].map(|part| format!("model.{part}.embed_tokens.weight"));
        if let (false, Some(read), Some(written)) =
            (self.tie_word_embeddings, weights.get(&read), weights.get(&written))
        {
            self.share_encoder_decoder_embeddings &= read == written;
        }
    }

    /// Size of the target vocabulary.
    pub fn target_words(&self) -> usize {
        self.decoder_vocab_size.unwrap_or(self.vocab_size)
    }

    /// `model_type` of Hugging Face's library for this model, or `transformer` if it has none.
    pub(crate) fn model_type(&self) -> &'static str {
        let theirs = self.positions == PositionEncoding::Sinusoidal
            && is_global(&self.attention)
            && is_global(&self.encoder_attention);
        match self.norms {
            NormOrder::Post if theirs => "marian",
            NormOrder::Pre if theirs && self.share_encoder_decoder_embeddings => "pegasus",
            _ => "transformer",
        }
    }

    pub(crate) fn architectures(&self) -> Value {
        match self.model_type() {
            "marian" => json!(["MarianMTModel"]),
            "pegasus" => json!(["PegasusForConditionalGeneration"]),
            _ => json!(["Transformer"]),
        }
    }

    pub(crate) fn activation(&self) -> Result<Activation, String> {
        match self.activation_function.as_str() {
            "relu" => Ok(Activation::Relu),
            "gelu" => Ok(Activation::Gelu),
            "gelu_new" | "gelu_pytorch_tanh" => Ok(Activation::GeluTanh),
            "swish" | "silu" => Ok(Activation::Silu),
            "tanh" => Ok(Activation::Tanh),
            other => Err(format!(
                "activation_function: got {other:?}, need relu, gelu, gelu_new, swish or tanh"
            )),
        }
    }

    fn check(&self) -> Result<(), String> {
        self.activation()?;
        let (m, reads) = (("d_model", self.d_model), ("vocab_size", self.vocab_size));
        let writes = ("decoder_vocab_size", self.target_words());
        let inside =
            [("encoder_ffn_dim", self.encoder_ffn_dim), ("decoder_ffn_dim", self.decoder_ffn_dim)];
        let places = ("max_position_embeddings", self.max_position_embeddings);
        sizes::check(&[m, reads, writes, inside[0], inside[1], places])?;
        sizes::check(&[
            ("encoder_layers", self.encoder_layers),
            ("decoder_layers", self.decoder_layers),
        ])?;
        // Queries, keys and values are one matrix.
        let matrices = [reads, writes, inside[0], inside[1], places, (m.0, 3 * m.1)];
        sizes::check_matrices(&matrices.map(|side| [side, m]))?;
        for (name, heads) in [
            ("encoder_attention_heads", self.encoder_attention_heads),
            ("decoder_attention_heads", self.decoder_attention_heads),
        ] {
            if heads == 0 || !m.1.is_multiple_of(heads) {
                return Err(format!("{name}: got {heads}, need a divisor of d_model = {}", m.1));
            }
        }
        if self.share_encoder_decoder_embeddings && self.target_words() != self.vocab_size {
            return Err(format!(
                "share_encoder_decoder_embeddings: got vocab_size {} and decoder_vocab_size {}, \
                 need equal sizes",
                self.vocab_size,
                self.target_words()
            ));
        }
        sizes::check_shares(&[
            ("dropout", self.dropout),
            ("attention_dropout", self.attention_dropout),
            ("activation_dropout", self.activation_dropout),
        ])?;
        let ids = [
            ("pad_token_id", self.pad_token_id),
            ("decoder_start_token_id", self.decoder_start_token_id),
            ("eos_token_id", self.eos_token_id),
        ];
        sizes::check_ids(&ids, writes.1)?;
        sizes::check_ids(&ids[..1], reads.1)?;
        let only_masks = matches!(
            self.encoder_attention,
            CrossAttentionKind::Global
                | CrossAttentionKind::Window { .. }
                | CrossAttentionKind::Expanded { .. }
                | CrossAttentionKind::GlobalTokens { .. }
        );
        if !only_masks {
            let got = &serde_json::json!(self.encoder_attention)["kind"];
            return Err(format!(
                "encoder_attention: got {got}, need global, window, expanded or global-tokens"
            ));
        }
        if let Some(got) = self.alignment_layer.filter(|layer| *layer >= self.decoder_layers) {
            let layers = self.decoder_layers;
            return Err(format!("alignment_layer: got {got}, need an index below {layers}"));
        }
        Ok(())
    }
}
