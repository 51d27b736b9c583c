//! `[lora]` of a recipe: training of an adapter of low rank instead of all weights.

use regard_models::adapter::{AdapterConfig, Targets};
use serde::{Deserialize, Serialize};

/// Which updates are trained (Hu et al. 2021).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lora {
    /// Rank of the updates.
    pub rank: usize,
    /// Updates are scaled by `alpha / rank`; twice the rank by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    /// Ends of the names of linear layers that are updated; `all-linear`, the default, for all but
    /// the head.
    #[serde(default = "all")]
    pub targets: Vec<String>,
}

fn all() -> Vec<String> {
    vec!["all-linear".into()]
}

impl Lora {
    /// Returns the configuration of the adapter.
    ///
    /// # Errors
    /// If a value is out of range, with its key.
    pub(crate) fn config(&self) -> Result<AdapterConfig, String> {
        let alpha = self.alpha.unwrap_or(2.0 * self.rank as f64);
        if self.targets.is_empty() || self.targets.iter().any(|name| name.trim().is_empty()) {
            return Err("lora.targets: need names of linear layers, or all-linear".into());
        }
        let config = AdapterConfig::new(self.rank, alpha, Targets::named(&self.targets));
        config.map_err(|message| format!("lora.{message}"))
    }
}
