//! Gemma 2 (arXiv:2408.00118) and the texts of Gemma 3 (arXiv:2503.19786): norms before and after
//! each sublayer, scaled embeddings and sliding windows; Gemma 2 limits its scores and logits,
//! Gemma 3 normalises queries and keys, and has a rotary base for each kind of layer.

use super::config::{Config, Defaults, LayerType, RopeKeys};
use crate::keys::Keys;
use crate::text::{Family, Head};

/// Names of Gemma 2's classes and configuration keys.
pub static GEMMA2: Family =
    Family { model_type: "gemma2", class: "Gemma2", keys: || keys!(read), ..Family::DECODER };

/// Names of the classes and configuration keys of Gemma 3's language model.
pub static GEMMA3: Family = Family {
    model_type: "gemma3_text",
    class: "Gemma3",
    classes: &[
        (Head::Bare, "TextModel"),
        (Head::Words, "ForCausalLM"),
        (Head::Sequence, "TextForSequenceClassification"),
    ],
    keys: || keys!(read_gemma3),
    ..Family::DECODER
};

const DEFAULTS: Defaults = Defaults {
    words: 256_000,
    width: 2304,
    hidden: 9216,
    layers: 26,
    heads: 8,
    keys: Some(4),
    head_width: Some(256),
    positions: 8192,
    tied: true,
    activation: ("hidden_activation", "gelu_pytorch_tanh"),
};

pub(super) fn read(keys: &Keys) -> Result<Config, String> {
    let mut config = Config::read(keys, &GEMMA2, &DEFAULTS)?;
    config.gemma(keys, [Some(50.0), Some(30.0)])?;
    config.rotary = vec![RopeKeys::read(keys, 10_000.0)?.all(&config)?];
    let window = keys.get("sliding_window", Some(4096))?;
    config.windows(keys, window, |layer| layer.is_multiple_of(2))?;
    Ok(config)
}

pub(super) fn read_gemma3(keys: &Keys) -> Result<Config, String> {
    let defaults = Defaults { words: 262_208, positions: 131_072, ..DEFAULTS };
    let mut config = Config::read(keys, &GEMMA3, &defaults)?;
    config.gemma(keys, [None; 2])?;
    config.head_norms();
    let rope = RopeKeys::read(keys, 1_000_000.0)?;
    let near = keys.get("rope_local_base_freq", 10_000.0)?;
    config.rotary = vec![
        rope.of_type("full_attention", &config, rope.theta(), true)?,
        rope.of_type("sliding_attention", &config, near, false)?,
    ];
    let window = keys.get("sliding_window", Some(4096))?;
    let (_, every) = keys.size("sliding_window_pattern", 6)?;
    let types = config.windows(keys, window, |layer| !(layer + 1).is_multiple_of(every))?;
    for (layer, of) in config.layers.iter_mut().zip(types) {
        layer.rotary = Some(usize::from(of == LayerType::Sliding));
    }
    Ok(config)
}
