//! BERT, for embeddings: files have no head and no pooler.

use super::names::{Change, Names};
use super::{Architecture, llama, refused};
use serde_json::json;

pub(super) static BERT: Architecture = Architecture {
    name: "bert",
    config: |file| {
        let eps = file.float("bert.attention.layer_norm_epsilon")?;
        let width = file.need("bert.embedding_length")?;
        let heads = file.need("bert.attention.head_count")?;
        refused::check(file, "bert", false, (heads as f64 / width as f64).sqrt())?;
        let types = match file.shape("token_types.weight").as_deref() {
            Some([types, _]) => *types,
            _ => return Err("has no token_types.weight with two sides".into()),
        };
        Ok(json!({
            "model_type": "bert",
            "architectures": ["BertModel"],
            "vocab_size": llama::words(file)?,
            "type_vocab_size": types,
            "max_position_embeddings": file.need("bert.context_length")?,
            "hidden_size": width,
            "intermediate_size": file.need("bert.feed_forward_length")?,
            "num_hidden_layers": file.need("bert.block_count")?,
            "num_attention_heads": heads,
            "hidden_act": "gelu",
            "layer_norm_eps": eps.unwrap_or(1e-12),
            "add_pooling_layer": false,
        }))
    },
    names: &[
        Names("token_embd", "embeddings.word_embeddings", Change::None),
        Names("position_embd", "embeddings.position_embeddings", Change::None),
        Names("token_types", "embeddings.token_type_embeddings", Change::None),
        Names("token_embd_norm", "embeddings.LayerNorm", Change::None),
        Names("blk.#.attn_q", "encoder.layer.#.attention.self.query", Change::None),
        Names("blk.#.attn_k", "encoder.layer.#.attention.self.key", Change::None),
        Names("blk.#.attn_v", "encoder.layer.#.attention.self.value", Change::None),
        Names("blk.#.attn_output", "encoder.layer.#.attention.output.dense", Change::None),
        Names("blk.#.attn_output_norm", "encoder.layer.#.attention.output.LayerNorm", Change::None),
        Names("blk.#.ffn_up", "encoder.layer.#.intermediate.dense", Change::None),
        Names("blk.#.ffn_down", "encoder.layer.#.output.dense", Change::None),
        Names("blk.#.layer_output_norm", "encoder.layer.#.output.LayerNorm", Change::None),
    ],
};
