//! Qwen3 (Yang et al. 2025, arXiv:2505.09388): Llama with a norm of each head's queries and keys.

use super::config::{Config, Defaults, RopeKeys};
use crate::keys::Keys;
use crate::text::Family;

/// Names of Qwen3's classes and configuration keys.
pub static QWEN3: Family =
    Family { model_type: "qwen3", class: "Qwen3", keys: || keys!(read), ..Family::DECODER };

pub(super) fn read(keys: &Keys) -> Result<Config, String> {
    let defaults = Defaults {
        words: 151_936,
        width: 4096,
        hidden: 22016,
        layers: 32,
        heads: 32,
        keys: Some(32),
        head_width: Some(128),
        positions: 32768,
        tied: false,
        activation: ("hidden_act", "silu"),
    };
    let mut config = Config::read(keys, &QWEN3, &defaults)?;
    config.attention_bias(keys)?;
    config.head_norms();
    config.rotary = vec![RopeKeys::read(keys, 10_000.0)?.all(&config)?];
    let slides = keys.get("use_sliding_window", false)?;
    let window: Option<usize> = keys.get("sliding_window", Some(4096))?;
    let window = window.filter(|_| slides);
    let whole: usize = keys.get("max_window_layers", 28)?;
    config.windows(keys, window, |layer| window.is_some() && layer >= whole)?;
    Ok(config)
}
