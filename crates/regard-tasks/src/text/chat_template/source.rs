//! Where templates are found, and what is checked before they are parsed.

use super::{ChatTemplate, TAG_TOKENS};
use crate::text::Tokenizer;
use crate::text::folder::token_name;
use crate::text::special::KEYS;
use minijinja::ErrorKind;
use minijinja::machinery::{Token, tokenize};
use minijinja::syntax::SyntaxConfig;
use regard_models::{Error, ModelFiles, Result};
use serde_json::Value;

/// Key of `tokenizer_config.json`.
const CHAT_TEMPLATE: &str = "chat_template";

/// File of a model's folder, which goes before the key.
pub const CHAT_TEMPLATE_FILE: &str = "chat_template.jinja";

/// Largest template, in bytes.
pub const LARGEST: usize = 128 << 10;

impl ChatTemplate {
    /// Reads the template of a model: `chat_template.jinja`, or `chat_template` of
    /// `tokenizer_config.json` or of a GGUF file. `None` if it has none.
    ///
    /// # Errors
    /// If it cannot be read, or is no template.
    pub fn of(files: &ModelFiles, tokenizer: &Tokenizer) -> Result<Option<ChatTemplate>> {
        let Some((name, text)) = source(files, tokenizer)? else { return Ok(None) };
        let made = ChatTemplate::new(&text, name, tokenizer);
        made.map(Some).map_err(|e| Error::file(files.place(), e.to_string()))
    }

    /// Returns the text of the template of a model, if it has one.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn text_of(files: &ModelFiles, tokenizer: &Tokenizer) -> Result<Option<String>> {
        Ok(source(files, tokenizer)?.map(|(_, text)| text))
    }
}

/// The template of a model, and the name of its file or key.
fn source(files: &ModelFiles, tokenizer: &Tokenizer) -> Result<Option<(&'static str, String)>> {
    if files.file().is_none() && files.has(CHAT_TEMPLATE_FILE) {
        let bytes = files.read(CHAT_TEMPLATE_FILE, LARGEST as u64)?;
        let text = String::from_utf8(bytes.into_owned());
        let text = text
            .map_err(|e| Error::file(files.path(CHAT_TEMPLATE_FILE), format!("not UTF-8: {e}")))?;
        return Ok(Some((CHAT_TEMPLATE_FILE, text)));
    }
    match tokenizer.config_value(CHAT_TEMPLATE) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let text = named(value).map_err(|e| Error::file(files.place(), e.to_string()))?;
            Ok(Some((CHAT_TEMPLATE, text.to_string())))
        }
    }
}

/// The template of a configuration: a string, or the one named `default` of a list.
fn named(value: &Value) -> Result<&str> {
    if let Some(text) = value.as_str() {
        return Ok(text);
    }
    let rows = value.as_array().ok_or_else(|| {
        let got = crate::say::short(&value.to_string(), 40);
        Error::invalid(format!("{CHAT_TEMPLATE}: got {got}, need a text or a list of templates"))
    })?;
    let default = rows.iter().find(|row| row["name"] == "default");
    default.and_then(|row| row["template"].as_str()).ok_or_else(|| {
        let names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
        Error::invalid(format!(
            "{CHAT_TEMPLATE}: none of its templates is named default ({})",
            names.join(", ")
        ))
    })
}

impl Tokenizer {
    /// Returns the special tokens that the configuration names, by its keys, such as `bos_token`.
    pub fn special_tokens(&self) -> Vec<(&'static str, String)> {
        let named = |key: &'static str| Some((key, token_name(self.config(), key)?.to_string()));
        KEYS.into_iter().filter_map(named).collect()
    }
}

/// Delimiters and treatment of white space, as in transformers.
pub fn syntax() -> SyntaxConfig {
    let mut syntax = SyntaxConfig::builder();
    syntax.trim_blocks(true).lstrip_blocks(true);
    syntax.build().expect("the delimiters are Jinja's own")
}

/// Checks the size, ends lines as Jinja does, and replaces the tags `generation` and
/// `endgeneration`, with which templates mark what the assistant says for training, by a condition
/// that is true.
pub fn prepared(source: &str) -> Result<String, String> {
    if source.len() > LARGEST {
        return Err(format!("the template has {} bytes, need at most {LARGEST}", source.len()));
    }
    let source = source.replace("\r\n", "\n").replace('\r', "\n");
    let mut text = String::with_capacity(source.len());
    let mut rest = source.as_str();
    while let Some(at) = rest.find("{%") {
        let (before, tag) = rest.split_at(at + 2);
        text.push_str(before);
        rest = tag;
        let inside = tag.trim_start_matches(['-', '+']);
        let word = inside.trim_start();
        let replaced = [("endgeneration", "endif"), ("generation", "if true")]
            .into_iter()
            .find_map(|(name, instead)| {
                let after = word.strip_prefix(name)?;
                let end = after.trim_start();
                let ends = end.strip_prefix(['-', '+']).unwrap_or(end).starts_with("%}");
                ends.then_some((instead, after))
            });
        if let Some((instead, after)) = replaced {
            text.push_str(&tag[..tag.len() - word.len()]);
            text.push_str(instead);
            rest = after;
        }
    }
    text.push_str(rest);
    Ok(text)
}

/// Checks the number of tokens in each tag.
pub fn check_tags(source: &str) -> Result<(), minijinja::Error> {
    let mut count = 0;
    for token in tokenize(source, false, syntax()) {
        match token?.0 {
            Token::VariableStart | Token::BlockStart => count = 0,
            _ => count += 1,
        }
        if count > TAG_TOKENS {
            return Err(minijinja::Error::new(
                ErrorKind::InvalidOperation,
                format!("a tag has more than {TAG_TOKENS} tokens"),
            ));
        }
    }
    Ok(())
}
