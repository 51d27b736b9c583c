//! Mistral (Jiang et al. 2023, arXiv:2310.06825): Llama with a sliding window.

use super::config::{Config, Defaults, RopeKeys};
use crate::keys::Keys;
use crate::text::Family;

/// Names of Mistral's classes and configuration keys.
pub static MISTRAL: Family =
    Family { model_type: "mistral", class: "Mistral", keys: || keys!(read), ..Family::DECODER };

pub(super) fn read(keys: &Keys) -> Result<Config, String> {
    let defaults = Defaults {
        words: 32000,
        width: 4096,
        hidden: 14336,
        layers: 32,
        heads: 32,
        keys: Some(8),
        head_width: None,
        positions: 4096 * 32,
        tied: false,
        activation: ("hidden_act", "silu"),
    };
    let mut config = Config::read(keys, &MISTRAL, &defaults)?;
    config.rotary = vec![RopeKeys::read(keys, 10_000.0)?.all(&config)?];
    let window = keys.get("sliding_window", Some(4096))?;
    config.windows(keys, window, |_| window.is_some())?;
    Ok(config)
}
