//! What the environment says of the Hub, in the words of Python's `huggingface_hub`.

use super::origin::Origin;
use anyhow::{Context, Result, bail};
use std::env;
use std::path::PathBuf;
use std::time::Duration;

/// Where models come from when nothing else is said.
const HUB: &str = "https://huggingface.co";
/// Seconds that a server may be silent when nothing else is said.
const PATIENCE: u64 = 60;
/// Seconds that it may be silent at most: a day.
const LONGEST: u64 = 86_400;

/// Where models come from, where they are kept, and who asks.
pub struct Settings {
    /// The folder of all models.
    pub cache: PathBuf,
    /// The address of the Hub, or of a mirror, without a slash at its end.
    pub endpoint: String,
    /// What proves who asks.
    pub token: Token,
    /// How long a server may be silent, before it answers and while it sends.
    pub patience: Duration,
}

/// The token, and whether it goes to the endpoint.
#[derive(Debug, PartialEq, Eq)]
pub enum Token {
    /// There is none.
    None,
    /// It goes to the endpoint, and nowhere else.
    Sent(String),
    /// There is one, and it is not sent; why.
    Withheld(String),
}

impl Token {
    /// The rule: a token that `hf auth login` saved is for huggingface.co alone. HF_TOKEN is for
    /// the endpoint, whichever it is, because both are said in the same place. Neither is sent
    /// unencrypted over a network.
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
    /// From `HF_HUB_CACHE` or `HF_HOME`, `HF_ENDPOINT`, `HF_TOKEN` or the file that
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

/// Whether the environment forbids the network.
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
