//! Settings of the Hub from environment variables, as in Python's `huggingface_hub`.

use super::origin::Origin;
use anyhow::{Context, Result, bail};
use std::env;
use std::path::PathBuf;
use std::time::Duration;

/// Default endpoint.
const HUB: &str = "https://huggingface.co";
/// Default timeout in seconds without data.
const PATIENCE: u64 = 60;
/// Maximum timeout in seconds: a day.
const LONGEST: u64 = 86_400;

/// Cache, endpoint, token and timeout.
pub struct Settings {
    /// Folder of the model cache.
    pub cache: PathBuf,
    /// URL of the Hub or a mirror, without a trailing slash.
    pub endpoint: String,
    /// Access token sent with requests to the Hub.
    pub token: Token,
    /// Timeout without data, before and during a response.
    pub patience: Duration,
}

/// Access token, and whether it is sent to the endpoint.
#[derive(Debug, PartialEq, Eq)]
pub enum Token {
    /// No token.
    None,
    /// Token that is sent to the endpoint, and to no other server.
    Sent(String),
    /// Token that is not sent, with the reason.
    Withheld(String),
}

impl Token {
    /// Decides whether a token is sent: one saved by `hf auth login` only to huggingface.co, that
    /// of HF_TOKEN to any endpoint. Neither is sent unencrypted over a network.
    fn decide(said: Option<String>, saved: Option<String>, endpoint: &Origin) -> Token {
        let filled = |token: Option<String>| {
            token.map(|token| token.trim().to_string()).filter(|token| !token.is_empty())
        };
        match (filled(said), filled(saved)) {
            (Some(token), _) if endpoint.is_private() => Token::Sent(token),
            (Some(_), _) => Token::Withheld(
                "HF_TOKEN was not sent, because HF_ENDPOINT begins with http://: use https://"
                    .into(),
            ),
            (None, Some(token)) if endpoint.is_hugging_face() => Token::Sent(token),
            (None, Some(_)) => Token::Withheld(format!(
                "the saved token was not sent, because it is for {HUB} and HF_ENDPOINT is another \
                 server: set HF_TOKEN to a token for that server"
            )),
            (None, None) => Token::None,
        }
    }
}

impl Settings {
    /// Reads `HF_HUB_CACHE` or `HF_HOME`, `HF_ENDPOINT`, `HF_TOKEN` or the file that
    /// `hf auth login` writes, and `HF_HUB_DOWNLOAD_TIMEOUT`.
    pub fn of_environment() -> Result<Settings> {
        let home = match (variable("HF_HOME"), variable("XDG_CACHE_HOME")) {
            (Some(home), _) => PathBuf::from(home),
            (None, Some(caches)) => PathBuf::from(caches).join("huggingface"),
            (None, None) => {
                let user = env::home_dir().context("HF_HOME: need a folder for models")?;
                user.join(".cache").join("huggingface")
            }
        };
        let endpoint = variable("HF_ENDPOINT").unwrap_or(HUB.into());
        let Some(origin) = Origin::of(&endpoint) else {
            bail!("HF_ENDPOINT: got {endpoint:?}, need an address with http:// or https://");
        };
        let file = variable("HF_TOKEN_PATH").map_or_else(|| home.join("token"), PathBuf::from);
        let saved = std::fs::read_to_string(file).ok();
        Ok(Settings {
            cache: variable("HF_HUB_CACHE").map_or_else(|| home.join("hub"), PathBuf::from),
            endpoint: endpoint.trim_end_matches('/').to_string(),
            token: Token::decide(variable("HF_TOKEN"), saved, &origin),
            patience: patience(variable("HF_HUB_DOWNLOAD_TIMEOUT"))?,
        })
    }
}

fn patience(said: Option<String>) -> Result<Duration> {
    let Some(said) = said else { return Ok(Duration::from_secs(PATIENCE)) };
    match said.trim().parse() {
        Ok(seconds @ 1..=LONGEST) => Ok(Duration::from_secs(seconds)),
        _ => bail!("HF_HUB_DOWNLOAD_TIMEOUT: got {said:?}, need whole seconds, 1 to {LONGEST}"),
    }
}

/// Whether `HF_HUB_OFFLINE` is set.
pub fn is_offline() -> bool {
    let yes = ["1", "on", "yes", "true"];
    variable("HF_HUB_OFFLINE").is_some_and(|said| yes.contains(&said.to_lowercase().as_str()))
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_is_a_number_of_seconds() {
        let of = |said: &str| patience(Some(said.into())).map_err(|e| e.to_string());
        assert_eq!(patience(None).unwrap(), Duration::from_secs(60));
        assert_eq!(of("10").unwrap(), Duration::from_secs(10));
        for wrong in ["0", "-1", "ten", "1.5", "99999999999999999999"] {
            assert!(of(wrong).unwrap_err().contains("HF_HUB_DOWNLOAD_TIMEOUT"), "{wrong}");
        }
    }

    #[test]
    fn a_token_goes_only_where_it_belongs() {
        let decide = |said: Option<&str>, saved: Option<&str>, endpoint: &str| {
            let own = |text: Option<&str>| text.map(str::to_string);
            Token::decide(own(said), own(saved), &Origin::of(endpoint).unwrap())
        };
        let sent = |token: &str| Token::Sent(token.into());
        assert_eq!(decide(None, None, HUB), Token::None);
        assert_eq!(decide(Some(" \n"), Some(""), HUB), Token::None);
        assert_eq!(decide(None, Some("saved\n"), HUB), sent("saved"));
        assert_eq!(decide(Some("said"), Some("saved"), HUB), sent("said"));
        assert_eq!(decide(Some("said"), None, "https://mirror.co"), sent("said"));
        assert_eq!(decide(Some("said"), None, "http://127.0.0.1:9"), sent("said"));
        for endpoint in
            ["https://mirror.co", "http://127.0.0.1:9", "http://huggingface.co", "https://hf.co"]
        {
            let token = decide(None, Some("saved"), endpoint);
            assert!(matches!(token, Token::Withheld(_)), "{endpoint}: {token:?}");
        }
        let token = decide(Some("said"), Some("saved"), "http://mirror.co");
        assert!(matches!(token, Token::Withheld(_)), "{token:?}");
    }
}
