//! Tokens that a request names: by id or as they are spelled.

use super::Generator;
use regard_models::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A token: its id, or its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "need a token id or the text of a token")]
pub enum TokenName {
    /// Id in the vocabulary.
    Id(u32),
    /// Spelling in the vocabulary, or a text of one token. Digits alone are an id.
    Text(String),
}

impl From<&str> for TokenName {
    fn from(text: &str) -> TokenName {
        let id = text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
        id.map_or_else(|| TokenName::Text(text.to_string()), TokenName::Id)
    }
}

impl Generator {
    /// Returns the id of a token; `key` names the setting in messages.
    ///
    /// # Errors
    /// If the id is outside the vocabulary, or the text is not one token.
    pub fn token_id(&self, key: &str, name: &TokenName) -> Result<u32> {
        let words = self.model.vocabulary();
        let text = match name {
            TokenName::Text(text) => match TokenName::from(text.as_str()) {
                TokenName::Text(text) => text,
                id => return self.token_id(key, &id),
            },
            TokenName::Id(id) if (*id as usize) < words => return Ok(*id),
            TokenName::Id(id) => {
                return Err(Error::invalid(format!(
                    "{key}: got token {id}, the vocabulary has {words} tokens"
                )));
            }
        };
        if let Some(id) = self.tokenizer().id(&text) {
            return Ok(id);
        }
        match self.tokenizer().encode(&text)?.ids[..] {
            [id] => Ok(id),
            ref ids => Err(Error::invalid(format!(
                "{key}: {text:?} is {} tokens, need one: a token as the vocabulary spells it, or \
                 its id",
                ids.len()
            ))),
        }
    }
}
