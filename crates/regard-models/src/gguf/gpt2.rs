//! GPT-2.

use super::names::{Change, Names};
use super::{Architecture, llama};
use serde_json::json;

pub(super) static GPT2: Architecture = Architecture {
    name: "gpt2",
    config: |file| {
        let eps = file.float("gpt2.attention.layer_norm_epsilon")?;
        Ok(json!({
            "model_type": "gpt2",
            "architectures": ["GPT2LMHeadModel"],
            "vocab_size": llama::words(file)?,
            "n_positions": file.need("gpt2.context_length")?,
            "n_embd": file.need("gpt2.embedding_length")?,
            "n_layer": file.need("gpt2.block_count")?,
            "n_head": file.need("gpt2.attention.head_count")?,
            "n_inner": file.size("gpt2.feed_forward_length")?,
            "activation_function": "gelu_new",
            "layer_norm_epsilon": eps.unwrap_or(1e-5),
            "tie_word_embeddings": file.shape("output.weight").is_none(),
        }))
    },
    names: &[
        Names("token_embd", "transformer.wte", Change::None),
        Names("position_embd", "transformer.wpe", Change::None),
        Names("blk.#.attn_norm", "transformer.h.#.ln_1", Change::None),
        Names("blk.#.attn_qkv", "transformer.h.#.attn.c_attn", Change::Turned),
        Names("blk.#.attn_output", "transformer.h.#.attn.c_proj", Change::Turned),
        Names("blk.#.ffn_norm", "transformer.h.#.ln_2", Change::None),
        Names("blk.#.ffn_up", "transformer.h.#.mlp.c_fc", Change::Turned),
        Names("blk.#.ffn_down", "transformer.h.#.mlp.c_proj", Change::Turned),
        Names("output_norm", "transformer.ln_f", Change::None),
        Names("output", "lm_head", Change::None),
    ],
};
