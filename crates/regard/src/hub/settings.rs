//! What the environment says of the Hub, in the words of Python's `huggingface_hub`.

use anyhow::{Context, Result, bail};
use std::env;
use std::path::PathBuf;

/// Where models come from, where they are kept, and who asks.
pub struct Settings {
    /// The folder of all models.
    pub cache: PathBuf,
    /// The address of the Hub, or of a mirror, without a slash at its end.
    pub endpoint: String,
    /// What proves who asks.
    pub token: Option<String>,
}

impl Settings {
    /// From `HF_HUB_CACHE` or `HF_HOME`, `HF_ENDPOINT`, `HF_TOKEN` or the file that
    /// `hf auth login` writes.
    pub fn of_environment() -> Result<Settings> {
        let home = match (variable("HF_HOME"), variable("XDG_CACHE_HOME")) {
            (Some(home), _) => PathBuf::from(home),
            (None, Some(caches)) => PathBuf::from(caches).join("huggingface"),
            (None, None) => {
                let user = env::home_dir().context("HF_HOME: need a folder for models")?;
                user.join(".cache").join("huggingface")
            }
        };
        let endpoint = variable("HF_ENDPOINT").unwrap_or("https://huggingface.co".into());
        if !["http://", "https://"].iter().any(|start| endpoint.starts_with(start)) {
            bail!("HF_ENDPOINT: got {endpoint:?}, need an address with http:// or https://");
        }
        let file = variable("HF_TOKEN_PATH").map_or_else(|| home.join("token"), PathBuf::from);
        let saved = || std::fs::read_to_string(file).ok();
        let token = variable("HF_TOKEN").or_else(saved);
        let token = token.map(|token| token.trim().to_string());
        Ok(Settings {
            cache: variable("HF_HUB_CACHE").map_or_else(|| home.join("hub"), PathBuf::from),
            endpoint: endpoint.trim_end_matches('/').to_string(),
            token: token.filter(|token| !token.is_empty()),
        })
    }
}

/// Whether the environment forbids the network.
pub fn is_offline() -> bool {
    let yes = ["1", "on", "yes", "true"];
    variable("HF_HUB_OFFLINE").is_some_and(|said| yes.contains(&said.to_lowercase().as_str()))
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.trim().is_empty())
}
