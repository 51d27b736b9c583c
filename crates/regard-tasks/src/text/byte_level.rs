//! Vocabularies of GPT-2 and RoBERTa: byte-level BPE.

use regard_models::{Error, Result};
use serde_json::{Map, Value, json};

use super::Tokenizer;
use super::folder::{Known, added_tokens, flag, token_name};

/// Makes the tokenizer of a `vocab.json` and a `merges.txt`. RoBERTa puts special tokens around a
/// text and GPT-2 does not; where no configuration names the family, the token names decide.
pub fn make(files: &[Vec<u8>], mut known: Known) -> Result<Tokenizer> {
    let vocabulary: Map<String, Value> = serde_json::from_slice(&files[0])
        .map_err(|e| Error::invalid(format!("not an object of pieces and ids: {e}")))?;
    let id = |name: &str| u32::try_from(vocabulary.get(name)?.as_u64()?).ok();
    let merges = merges(&files[1])?;
    let roberta = match known.family {
        Some(family) => family.name() == "roberta",
        None => ["<s>", "</s>", "<mask>"].iter().all(|name| vocabulary.contains_key(*name)),
    };
    let added = std::mem::take(&mut known.added);
    let config = known.completed(if roberta { "roberta" } else { "gpt2" });
    let space_in_front = flag(&config, "add_prefix_space", false);
    let pair = |key: &str| {
        let name = token_name(&config, key).unwrap_or_default();
        let missing = || Error::invalid(format!("its {key} {name:?} is not in the vocabulary"));
        Ok::<_, Error>(json!([name, id(name).ok_or_else(missing)?]))
    };
    let around = match roberta {
        false => Value::Null,
        true => json!({"type": "RobertaProcessing", "sep": pair("sep_token")?,
                       "cls": pair("cls_token")?, "trim_offsets": true,
                       "add_prefix_space": space_in_front}),
    };
    let whole = json!({
        "version": "1.0",
        "added_tokens": added_tokens(&config, &added, id, roberta),
        "pre_tokenizer": pre_tokenizer(space_in_front),
        "post_processor": around,
        "decoder": decoder(),
        "model": {"type": "BPE", "vocab": vocabulary, "merges": merges},
    });
    Tokenizer::new(whole.to_string().as_bytes(), config)
}

/// Splits as GPT-2 does, and maps each byte to a printable character.
pub fn pre_tokenizer(space_in_front: bool) -> Value {
    json!({"type": "ByteLevel", "add_prefix_space": space_in_front, "trim_offsets": true,
           "use_regex": true})
}

/// Joins bytes to text; bytes that are not UTF-8 become `�`.
pub fn decoder() -> Value {
    json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true,
           "use_regex": true})
}

/// Parses the merges, one per line, in order of priority.
fn merges(bytes: &[u8]) -> Result<Vec<[&str; 2]>> {
    let text = std::str::from_utf8(bytes)
        .map_err(|e| Error::invalid(format!("its merges are not UTF-8: {e}")))?;
    let lines = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    let lines =
        lines.zip(1..).filter(|(line, _)| !line.is_empty() && !line.starts_with("#version"));
    lines.map(|(line, number)| merge(line, number)).collect()
}

fn merge(line: &str, number: usize) -> Result<[&str; 2]> {
    let parts: Vec<&str> = line.split(' ').collect();
    parts.try_into().map_err(|_| {
        Error::invalid(format!(
            "line {number} of its merges is {line:?}, need two pieces with a space between"
        ))
    })
}
