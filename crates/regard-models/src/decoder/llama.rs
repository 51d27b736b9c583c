//! Llama (Touvron et al. 2023, arXiv:2302.13971) and SmolLM3: RMS norms before each sublayer, rotary
//! positions, grouped heads and gated feed-forward networks.

use super::config::{Config, Defaults, RopeKeys};
use crate::keys::Keys;
use crate::text::Family;

/// Names of Llama's tensors, classes and configuration keys. SmolLM 1 and 2 are of this type.
pub static LLAMA: Family =
    Family { model_type: "llama", class: "Llama", keys: || keys!(read), ..Family::DECODER };

/// Names of SmolLM3's classes and configuration keys.
pub static SMOLLM3: Family = Family {
    model_type: "smollm3",
    class: "SmolLM3",
    keys: || keys!(read_smollm3),
    ..Family::DECODER
};

const ACTIVATION: (&str, &str) = ("hidden_act", "silu");

pub(super) fn read(keys: &Keys) -> Result<Config, String> {
    let defaults = Defaults {
        words: 32000,
        width: 4096,
        hidden: 11008,
        layers: 32,
        heads: 32,
        keys: None,
        head_width: None,
        positions: 2048,
        tied: false,
        activation: ACTIVATION,
    };
    let mut config = Config::read(keys, &LLAMA, &defaults)?;
    config.attention_bias(keys)?;
    config.block.forward.bias = keys.get("mlp_bias", false)?;
    config.rotary = vec![RopeKeys::read(keys, 10_000.0)?.all(&config)?];
    Ok(config)
}

pub(super) fn read_smollm3(keys: &Keys) -> Result<Config, String> {
    let defaults = Defaults {
        words: 128_256,
        width: 2048,
        hidden: 11008,
        layers: 36,
        heads: 16,
        keys: Some(4),
        head_width: None,
        positions: 32768,
        tied: true,
        activation: ACTIVATION,
    };
    let mut config = Config::read(keys, &SMOLLM3, &defaults)?;
    config.attention_bias(keys)?;
    config.block.forward.bias = keys.get("mlp_bias", false)?;
    config.rotary = vec![RopeKeys::read(keys, 2_000_000.0)?.all(&config)?];
    let sliding = keys.get("use_sliding_window", false)?;
    let window: Option<usize> = keys.get("sliding_window", None)?;
    let (_, every) = keys.size("no_rope_layer_interval", 4)?;
    // 1 for a layer with rotary positions, 0 for one without.
    let rotary: Option<Vec<u8>> = keys.get("no_rope_layers", None)?;
    let count = config.layers.len();
    let rotary = rotary
        .unwrap_or_else(|| (0..count).map(|i| u8::from(!(i + 1).is_multiple_of(every))).collect());
    if rotary.len() != count {
        let got = rotary.len();
        return Err(format!("no_rope_layers: got {got}, need one for each of {count} layers"));
    }
    let usual = |i: usize| sliding && window.is_some() && rotary[i] == 0;
    config.windows(keys, window, usual)?;
    for (layer, turned) in config.layers.iter_mut().zip(&rotary) {
        layer.rotary = (*turned != 0).then_some(0);
    }
    Ok(config)
}
