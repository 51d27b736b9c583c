//! GPT-2.

use super::names::{Change, Names};
use super::{Architecture, llama, refused};
use serde_json::json;

pub(super) static GPT2: Architecture = Architecture {
    name: "gpt2",
    config: |file| {
        let eps = file.float("gpt2.attention.layer_norm_epsilon")?;
        let width = file.need("gpt2.embedding_length")?;
        let heads = file.need("gpt2.attention.head_count")?;
        refused::check(file, "gpt2", true, (heads as f64 / width as f64).sqrt())?;
        Ok(json!({
            "model_type": "gpt2",
            "architectures": ["GPT2LMHeadModel"],
            "vocab_size": llama::words(file)?,
            "n_positions": file.need("gpt2.context_length")?,
            "n_embd": width,
            "n_layer": file.need("gpt2.block_count")?,
            "n_head": heads,
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
        Names("blk.#.attn_qkv", "transformer.h.#.attn.c_attn", Change::Transposed),
        Names("blk.#.attn_output", "transformer.h.#.attn.c_proj", Change::Transposed),
        Names("blk.#.ffn_norm", "transformer.h.#.ln_2", Change::None),
        Names("blk.#.ffn_up", "transformer.h.#.mlp.c_fc", Change::Transposed),
        Names("blk.#.ffn_down", "transformer.h.#.mlp.c_proj", Change::Transposed),
        Names("output_norm", "transformer.ln_f", Change::None),
        Names("output", "lm_head", Change::None),
    ],
};
