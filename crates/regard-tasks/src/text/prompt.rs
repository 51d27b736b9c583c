//! The start token of a prompt.

use super::Tokenizer;
use regard_models::Result;
use serde_json::Value;

impl Tokenizer {
    /// Returns the id of the configured start token; `None` if the configuration names none.
    pub fn configured_bos(&self) -> Option<u32> {
        self.configured_token("bos_token").and_then(|name| self.id(name))
    }

    /// Tokenises a prompt that a model continues. `bos` goes in front where `add_bos_token` of
    /// `tokenizer_config.json` says so, or without that key where the tokenizer puts it in front of
    /// a text; never twice. Other special tokens around a text, such as an end token after it, are
    /// left out: the text is to be continued.
    pub fn encode_prompt(&self, text: &str, bos: Option<u32>) -> Result<Vec<u32>> {
        let mut ids = self.encode(text)?.ids;
        let Some(bos) = bos else { return Ok(ids) };
        if self.adds_bos(text, bos)? && ids.first() != Some(&bos) {
            ids.insert(0, bos);
        }
        Ok(ids)
    }

    fn adds_bos(&self, text: &str, bos: u32) -> Result<bool> {
        if let Some(adds) = self.config_value("add_bos_token").and_then(Value::as_bool) {
            return Ok(adds);
        }
        let around = self.encode_special(text, None)?;
        let before = around.texts.iter().take_while(|text| text.is_none()).count();
        Ok(around.ids[..before].contains(&bos))
    }
}
