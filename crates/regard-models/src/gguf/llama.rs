//! Llama, Qwen3 and Gemma 3.

use super::names::{Change, Names};
use super::{Architecture, Gguf, refused};
use regard_attention::layers::{RotaryConfig, Scaling};
use serde_json::{Map, Value, json};

/// Llama, and what llama.cpp takes for it: SmolLM, Mistral.
pub(super) static LLAMA: Architecture = Architecture {
    name: "llama",
    config: |file| {
        let mut config = decoder(file, "llama", ("llama", "LlamaForCausalLM"))?;
        refused::no_window(file, "llama")?;
        config["rope_parameters"] = rope(file, "llama")?;
        config["attention_bias"] = json!(file.shape("blk.0.attn_q.bias").is_some());
        config["mlp_bias"] = json!(file.shape("blk.0.ffn_up.bias").is_some());
        Ok(config)
    },
    names: &[
        Names("token_embd", "model.embed_tokens", Change::None),
        Names("blk.#.attn_norm", "model.layers.#.input_layernorm", Change::None),
        Names("blk.#.attn_q", "model.layers.#.self_attn.q_proj", Change::Queries),
        Names("blk.#.attn_k", "model.layers.#.self_attn.k_proj", Change::Keys),
        Names("blk.#.attn_v", "model.layers.#.self_attn.v_proj", Change::None),
        Names("blk.#.attn_output", "model.layers.#.self_attn.o_proj", Change::None),
        Names("blk.#.ffn_norm", "model.layers.#.post_attention_layernorm", Change::None),
        Names("blk.#.ffn_gate", "model.layers.#.mlp.gate_proj", Change::None),
        Names("blk.#.ffn_up", "model.layers.#.mlp.up_proj", Change::None),
        Names("blk.#.ffn_down", "model.layers.#.mlp.down_proj", Change::None),
        Names("output_norm", "model.norm", Change::None),
        Names("output", "lm_head", Change::None),
        Names("rope_freqs", "rope_freqs", Change::InConfig),
    ],
};

pub(super) static QWEN3: Architecture = Architecture {
    name: "qwen3",
    config: |file| {
        let mut config = decoder(file, "qwen3", ("qwen3", "Qwen3ForCausalLM"))?;
        refused::no_window(file, "qwen3")?;
        config["rope_parameters"] = rope(file, "qwen3")?;
        config["attention_bias"] = json!(file.shape("blk.0.attn_q.bias").is_some());
        config["use_sliding_window"] = json!(false);
        Ok(config)
    },
    names: &[
        Names("token_embd", "model.embed_tokens", Change::None),
        Names("blk.#.attn_norm", "model.layers.#.input_layernorm", Change::None),
        Names("blk.#.attn_q", "model.layers.#.self_attn.q_proj", Change::None),
        Names("blk.#.attn_k", "model.layers.#.self_attn.k_proj", Change::None),
        Names("blk.#.attn_v", "model.layers.#.self_attn.v_proj", Change::None),
        Names("blk.#.attn_q_norm", "model.layers.#.self_attn.q_norm", Change::None),
        Names("blk.#.attn_k_norm", "model.layers.#.self_attn.k_norm", Change::None),
        Names("blk.#.attn_output", "model.layers.#.self_attn.o_proj", Change::None),
        Names("blk.#.ffn_norm", "model.layers.#.post_attention_layernorm", Change::None),
        Names("blk.#.ffn_gate", "model.layers.#.mlp.gate_proj", Change::None),
        Names("blk.#.ffn_up", "model.layers.#.mlp.up_proj", Change::None),
        Names("blk.#.ffn_down", "model.layers.#.mlp.down_proj", Change::None),
        Names("output_norm", "model.norm", Change::None),
        Names("output", "lm_head", Change::None),
    ],
};

pub(super) static GEMMA3: Architecture = Architecture {
    name: "gemma3",
    config: gemma3,
    names: &[
        Names("token_embd", "model.embed_tokens", Change::None),
        Names("blk.#.attn_norm", "model.layers.#.input_layernorm", Change::PlusOne),
        Names("blk.#.attn_q", "model.layers.#.self_attn.q_proj", Change::None),
        Names("blk.#.attn_k", "model.layers.#.self_attn.k_proj", Change::None),
        Names("blk.#.attn_v", "model.layers.#.self_attn.v_proj", Change::None),
        Names("blk.#.attn_q_norm", "model.layers.#.self_attn.q_norm", Change::PlusOne),
        Names("blk.#.attn_k_norm", "model.layers.#.self_attn.k_norm", Change::PlusOne),
        Names("blk.#.attn_output", "model.layers.#.self_attn.o_proj", Change::None),
        Names(
            "blk.#.post_attention_norm",
            "model.layers.#.post_attention_layernorm",
            Change::PlusOne,
        ),
        Names("blk.#.ffn_norm", "model.layers.#.pre_feedforward_layernorm", Change::PlusOne),
        Names("blk.#.post_ffw_norm", "model.layers.#.post_feedforward_layernorm", Change::PlusOne),
        Names("blk.#.ffn_gate", "model.layers.#.mlp.gate_proj", Change::None),
        Names("blk.#.ffn_up", "model.layers.#.mlp.up_proj", Change::None),
        Names("blk.#.ffn_down", "model.layers.#.mlp.down_proj", Change::None),
        Names("output_norm", "model.norm", Change::PlusOne),
        Names("output", "lm_head", Change::None),
    ],
};

/// Layers of Gemma 3 of which the last one sees all tokens.
const PATTERN: usize = 6;
/// Base of the rotary frequencies of files that do not say it, as in llama.cpp.
const THETA: f64 = 10_000.0;

/// Gemma 3. What files leave out is as llama.cpp has it.
fn gemma3(file: &Gguf) -> Result<Value, String> {
    let of = "gemma3";
    let mut config = decoder(file, of, ("gemma3_text", "Gemma3ForCausalLM"))?;
    let full = rope(file, of)?;
    let near = file.float("gemma3.rope.freq_base_swa")?.unwrap_or(THETA);
    config["rope_parameters"] = json!({
        "full_attention": full,
        "sliding_attention": {"rope_type": "default", "rope_theta": near},
    });
    let layers = file.need("gemma3.block_count")?;
    let key = "gemma3.attention.sliding_window_pattern";
    match file.size(key)? {
        None | Some(PATTERN) => {}
        Some(other) => return Err(format!("{key}: got {other}, need {PATTERN}")),
    }
    let window = file.size("gemma3.attention.sliding_window")?;
    let type_of = |layer: usize| match window {
        Some(1..) if !(layer + 1).is_multiple_of(PATTERN) => "sliding_attention",
        _ => "full_attention",
    };
    if layers > 1 << 10 {
        return Err(format!("gemma3.block_count: got {layers}, need at most 1024"));
    }
    config["layer_types"] = json!((0..layers).map(type_of).collect::<Vec<_>>());
    config["sliding_window"] = json!(window.filter(|window| *window > 0));
    config["hidden_activation"] = json!("gelu_pytorch_tanh");
    config["query_pre_attn_scalar"] = json!(scalar(&config)?);
    config["final_logit_softcapping"] = json!(file.float("gemma3.final_logit_softcapping")?);
    Ok(config)
}

/// What the scores of a configuration are divided by the root of: the width of a head, but for the
/// largest Gemma 3, of 62 layers, which has that of a head as wide as its share of the model.
fn scalar(config: &Value) -> Result<u64, String> {
    let number = |key: &str| config[key].as_u64().filter(|n| *n > 0);
    let [layers, width, heads, head] =
        ["num_hidden_layers", "hidden_size", "num_attention_heads", "head_dim"].map(number);
    let share = width.and_then(|width| width.checked_div(heads?));
    let of_share = layers == Some(62) && config["model_type"] == "gemma3_text";
    let found = if of_share { share } else { head };
    found.ok_or_else(|| "its heads have no width".into())
}

/// The keys that the families share.
fn decoder(file: &Gguf, of: &str, (kind, class): (&str, &str)) -> Result<Value, String> {
    let layers = file.need(&format!("{of}.block_count"))?;
    let need = |key: &str| {
        let key = format!("{of}.{key}");
        file.same_size(&key, layers)?.ok_or_else(|| format!("has no {key}"))
    };
    let (width, [heads, keys]) = (need("embedding_length")?, file.heads(of)?);
    let own = file.size(&format!("{of}.attention.key_length"))?;
    let head = own.or_else(|| width.checked_div(heads)).unwrap_or(0);
    let values = file.size(&format!("{of}.attention.value_length"))?;
    if values.is_some_and(|values| values != head) {
        return Err(format!(
            "{of}.attention.value_length: got {}, need that of keys, {head}",
            values.unwrap_or(0)
        ));
    }
    let turned = file.size(&format!("{of}.rope.dimension_count"))?;
    if turned.is_some_and(|turned| turned != head) {
        return Err(format!(
            "{of}.rope.dimension_count: got {}, need the width of a head, {head}",
            turned.unwrap_or(0)
        ));
    }
    let eps = format!("{of}.attention.layer_norm_rms_epsilon");
    let config = json!({
        "model_type": kind,
        "architectures": [class],
        "vocab_size": words(file)?,
        "hidden_size": width,
        "intermediate_size": need("feed_forward_length")?,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": keys,
        "head_dim": head,
        "max_position_embeddings": need("context_length")?,
        "rms_norm_eps": file.float(&eps)?.ok_or_else(|| format!("has no {eps}"))?,
        "tie_word_embeddings": file.shape("output.weight").is_none(),
    });
    refused::check(file, of, true, 1.0 / (scalar(&config)? as f64).sqrt())?;
    Ok(config)
}

/// Number of rows of the embeddings.
pub(super) fn words(file: &Gguf) -> Result<usize, String> {
    match file.shape("token_embd.weight").as_deref() {
        Some([words, _]) => Ok(*words),
        Some(shape) => Err(format!("token_embd.weight has the shape {shape:?}, need two sides")),
        None => Err("has no token_embd.weight".into()),
    }
}

/// Rotary positions as in `rope_parameters`.
fn rope(file: &Gguf, of: &str) -> Result<Value, String> {
    let theta = file.float(&format!("{of}.rope.freq_base"))?.unwrap_or(THETA);
    let mut rope = Map::new();
    rope.insert("rope_type".into(), json!("default"));
    rope.insert("rope_theta".into(), json!(theta));
    let kind = file.only(&format!("{of}.rope.scaling.type"), &["none", "linear"])?;
    let factor = match file.float(&format!("{of}.rope.scaling.factor"))? {
        None => file.float(&format!("{of}.rope.scale_linear"))?,
        found => found,
    };
    if let Some(factor) = factor.filter(|factor| *factor != 1.0 && kind.as_deref() != Some("none"))
    {
        rope.insert("rope_type".into(), json!("linear"));
        rope.insert("factor".into(), json!(factor));
    }
    // Of other architectures the tensor is an unexpected one, which opening the file refuses.
    if let Some(divisors) = file.tensor("rope_freqs.weight").filter(|_| of == "llama") {
        let divisors = divisors.floats().map(|floats| floats.into_owned()).unwrap_or_default();
        if divisors.iter().any(|x| *x != 1.0) {
            if rope["rope_type"] == "linear" {
                return Err(format!(
                    "{of}.rope.scaling.factor: not supported together with rope_freqs.weight"
                ));
            }
            llama3(&divisors, theta, &mut rope)?;
        }
    }
    Ok(rope.into())
}

/// Finds the settings of Llama 3's scaling that give these divisors of the frequencies: files have
/// these instead of the settings.
fn llama3(divisors: &[f32], theta: f64, rope: &mut Map<String, Value>) -> Result<(), String> {
    let factor = f64::from(divisors.iter().copied().fold(1.0, f32::max));
    let width = 2 * divisors.len();
    if factor.is_finite() && width <= 1 << 12 {
        for original in (6..=20).map(|power| f64::from(1 << power)) {
            let scaling = Scaling::Llama3 { factor, low: 1.0, high: 4.0, original };
            let of = |scaling| RotaryConfig {
                base: theta as f32,
                scaling,
                ..RotaryConfig::new(1, width)
            };
            let (plain, scaled) = (of(Scaling::None).frequencies(), of(scaling).frequencies());
            let close = |((plain, scaled), by): ((&f64, &f64), &f32)| {
                (plain / scaled / f64::from(*by) - 1.0).abs() < 1e-4
            };
            if plain.iter().zip(&scaled).zip(divisors).all(close) {
                let settings = [
                    ("factor", factor),
                    ("low_freq_factor", 1.0),
                    ("high_freq_factor", 4.0),
                    ("original_max_position_embeddings", original),
                ];
                rope.insert("rope_type".into(), json!("llama3"));
                rope.extend(settings.map(|(key, number)| (key.to_string(), json!(number))));
                return Ok(());
            }
        }
    }
    Err("rope_freqs.weight: is not the scaling of Llama 3, with frequency factors of 1 and 4; no \
         other is supported"
        .into())
}
