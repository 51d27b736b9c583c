//! Checks that a `tokenizer.json` is safe to give to the tokenizers library, which trusts its
//! files: it uses their values as indices, and panics or aborts where these are out of bounds.
//!
//! Each rule here is for something that the library does not check; what it rejects itself, such
//! as values of a wrong type, is left to it. It parses with serde_json, whose limit of 128 nested
//! levels holds here too.

use std::collections::HashSet;

use regard_models::{Error, Result};
use serde_json::{Map, Value};

use super::charsmap;
use crate::say;

/// Largest number of ids: with more, the embedding table would not fit in memory.
const MOST_ROWS: u64 = 1 << 24;

/// Largest factor by which all replacements together may lengthen a text. Files in use need a
/// factor of three at most.
const MOST_GROWTH: usize = 64;

/// Longest prefix of `Prepend`, in bytes; usually it is a mark for a space.
const LONGEST_PREFIX: usize = 256;

/// Keys of a file.
const KEYS: [&str; 9] = [
    "version",
    "truncation",
    "padding",
    "added_tokens",
    "normalizer",
    "pre_tokenizer",
    "post_processor",
    "decoder",
    "model",
];

/// Parts that consist of steps, which may be sequences of steps.
const STEPS: [&str; 4] = ["normalizer", "pre_tokenizer", "post_processor", "decoder"];

/// Most objects and lists within each other in a part. The library recurses when it reads, copies,
/// runs and drops steps. Files in use have six: a sequence with a template with special tokens.
const DEEPEST: usize = 16;

/// Checks what must hold before the library sees the file.
pub fn before(whole: &Value) -> Result<()> {
    let model = &whole["model"];
    if !model.is_object() {
        return Err(Error::invalid("not a tokenizer.json: it has no model"));
    }
    let is_unknown = |key: &&String| !KEYS.contains(&key.as_str());
    if let Some(key) = whole.as_object().and_then(|file| file.keys().find(is_unknown)) {
        return Err(Error::invalid(say::unknown("a key of the file", key, &KEYS)));
    }
    for part in STEPS {
        let levels = depth(&whole[part]);
        if levels > DEEPEST {
            return Err(Error::invalid(format!(
                "{part}: its steps are nested {levels} levels deep; need at most {DEEPEST}"
            )));
        }
    }
    let mut ids = vocabulary(&model["vocab"])?;
    for token in whole["added_tokens"].as_array().into_iter().flatten() {
        let id = token["id"].as_u64();
        let name = token["content"].as_str().unwrap_or_default();
        ids.insert(id.filter(|id| *id < MOST_ROWS).ok_or_else(|| bad_id(name, &token["id"]))?);
    }
    if let (Some(pieces), Some(merges)) = (model["vocab"].as_object(), model["merges"].as_array()) {
        let prefix = model["continuing_subword_prefix"].as_str().unwrap_or_default();
        merges.iter().try_for_each(|merge| joined(merge, pieces, prefix))?;
    }
    for part in STEPS {
        each_object(&whole[part], &mut |object| component(object, &ids))?;
    }
    for part in ["normalizer", "decoder"] {
        check_growth(part, &whole[part])?;
    }
    let mut templates = 0;
    each_object(&whole["post_processor"], &mut |object| {
        templates += usize::from(object.contains_key("single"));
        Ok(())
    })?;
    if templates > 1 {
        return Err(Error::invalid(format!(
            "{templates} templates put special tokens around a text; need one at most"
        )));
    }
    Ok(())
}

/// Checks that the library gave added tokens the ids of the file. It gives them the next free
/// ones, whatever the file says, and a model would use other embeddings than in training.
pub fn after(whole: &Value, tokenizer: &tokenizers::Tokenizer) -> Result<()> {
    for token in whole["added_tokens"].as_array().into_iter().flatten() {
        let (Some(name), Some(id)) = (token["content"].as_str(), token["id"].as_u64()) else {
            continue;
        };
        let given = tokenizer.token_to_id(name);
        if !name.is_empty() && given.map(u64::from) != Some(id) {
            let given = given.map_or("none".to_owned(), |id| id.to_string());
            return Err(Error::invalid(format!(
                "the added token {name:?} has the id {id} in the file, but the tokenizer gives it \
                 {given}: ids must not repeat or leave gaps"
            )));
        }
    }
    Ok(())
}

/// The ids of a vocabulary: an object of pieces with ids, or a list of pieces with scores.
fn vocabulary(pieces: &Value) -> Result<HashSet<u64>> {
    let empty = || Error::invalid("its vocabulary is empty, or missing");
    if let Some(list) = pieces.as_array() {
        list.iter().filter_map(|row| row[0].as_str()).try_for_each(short_enough)?;
        let rows = list.len() as u64;
        return match rows {
            0 => Err(empty()),
            _ if rows > MOST_ROWS => Err(Error::invalid(format!(
                "the vocabulary has {rows} tokens, need at most {MOST_ROWS}"
            ))),
            _ => Ok((0..rows).collect()),
        };
    }
    let pieces = pieces.as_object().filter(|pieces| !pieces.is_empty()).ok_or_else(empty)?;
    let mut ids = HashSet::with_capacity(pieces.len());
    for (piece, value) in pieces {
        let id = value.as_u64().filter(|id| *id < MOST_ROWS);
        if !ids.insert(id.ok_or_else(|| bad_id(piece, value))?) {
            let other = pieces.iter().find(|(other, id)| *other != piece && *id == value);
            let other = other.map_or("", |(other, _)| other);
            return Err(Error::invalid(format!(
                "{piece:?} and {other:?} both have the id {value}"
            )));
        }
    }
    Ok(ids)
}

/// Longest piece of a unigram vocabulary, in bytes: a level of the trie below takes up to a
/// kilobyte of stack, and a thread may have two megabytes.
const LONGEST_PIECE: usize = 512;

/// Checks the length of a piece. The library keeps the pieces of a unigram model in a trie with a
/// level for each byte, and drops the trie recursively.
fn short_enough(piece: &str) -> Result<()> {
    match piece.len() <= LONGEST_PIECE {
        true => Ok(()),
        false => {
            let (begin, bytes) = (piece.chars().take(20).collect::<String>(), piece.len());
            Err(Error::invalid(format!(
                "the piece {begin:?}… has {bytes} bytes, need at most {LONGEST_PIECE}"
            )))
        }
    }
}

fn bad_id(token: &str, id: &Value) -> Error {
    Error::invalid(format!("{token:?} has the id {id}, need a number below {MOST_ROWS}"))
}

/// Checks that a merge joins two pieces to a third one. The library copies them to a buffer of
/// the length of the longest piece, without a bounds check.
fn joined(merge: &Value, pieces: &Map<String, Value>, prefix: &str) -> Result<()> {
    let pair = match merge {
        Value::String(text) => text.split_once(' '),
        _ => merge[0].as_str().zip(merge[1].as_str()),
    };
    // The library rejects anything but a pair.
    let Some((left, right)) = pair else { return Ok(()) };
    let rest = right.get(prefix.len()..);
    let whole = rest.map(|rest| [left, rest].concat());
    let known = |piece: &str| pieces.contains_key(piece);
    match whole {
        Some(whole) if known(left) && known(right) && known(&whole) => Ok(()),
        _ => Err(Error::invalid(format!(
            "it merges {left:?} and {right:?}, but these two pieces and the merged one are not all \
             in its vocabulary"
        ))),
    }
}

/// Number of objects and lists within each other.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
        Value::Object(object) => 1 + object.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Calls a function for an object and all objects within it.
fn each_object(
    value: &Value,
    call: &mut dyn FnMut(&Map<String, Value>) -> Result<()>,
) -> Result<()> {
    match value {
        Value::Array(list) => list.iter().try_for_each(|value| each_object(value, call)),
        Value::Object(object) => {
            call(object)?;
            object.values().try_for_each(|value| each_object(value, call))
        }
        _ => Ok(()),
    }
}

/// Limits how much a text can grow: a few replacements of one character by two, in sequence, make
/// a gigabyte of a word.
fn check_growth(part: &str, steps: &Value) -> Result<()> {
    let mut growth = 1usize;
    each_object(steps, &mut |step| {
        let length = |key: &str| step.get(key).and_then(Value::as_str).map(str::len);
        if let Some(bytes) = length("prepend").filter(|bytes| *bytes > LONGEST_PREFIX) {
            return Err(Error::invalid(format!(
                "{part}: puts {bytes} bytes in front of a text; need at most {LONGEST_PREFIX}"
            )));
        }
        if let (Some(pattern), Some(content)) = (step.get("pattern"), length("content")) {
            let plain = pattern["String"].as_str().map(str::len).filter(|length| *length > 0);
            // A regular expression can match the empty string between any two characters.
            let times = plain.map_or(content + 1, |length| content.div_ceil(length));
            growth = growth.saturating_mul(times.max(1));
        }
        match growth <= MOST_GROWTH {
            true => Ok(()),
            false => Err(Error::invalid(format!(
                "{part}: its replacements can make a text {growth} times as long; need at most \
                 {MOST_GROWTH} times"
            ))),
        }
    })
}

/// Checks a step by its keys and not by its type: the library accepts any type whose keys match.
fn component(step: &Map<String, Value>, ids: &HashSet<u64>) -> Result<()> {
    let precompiled = step.get("type").is_some_and(|kind| kind == "Precompiled");
    if precompiled || step.contains_key("precompiled_charsmap") {
        let table = step.get("precompiled_charsmap").and_then(Value::as_str);
        let table = table.and_then(base64).ok_or_else(|| {
            Error::invalid("the table of a Precompiled normalizer is not in base64")
        })?;
        charsmap::check(&table)?;
    }
    if step.get("length").is_some_and(|length| length == 0) {
        return Err(Error::invalid("a step splits texts into parts of length 0"));
    }
    if step.get("prepend").is_some_and(|prefix| prefix == "") {
        return Err(Error::invalid("a step prepends the empty string to a text"));
    }
    // The library would compute a length below zero.
    if step.get("stop").and_then(Value::as_u64).is_some_and(|stop| stop > 0) {
        return Err(Error::invalid("a decoder that strips the end of tokens is not supported"));
    }
    for key in ["sep", "cls"] {
        if let Some([_, id]) = step.get(key).and_then(Value::as_array).map(Vec::as_slice) {
            known(id, ids)?;
        }
    }
    match (step.get("single"), step.get("pair"), step.get("special_tokens")) {
        (Some(single), Some(pair), Some(special)) => {
            template(single, false, special, ids)?;
            template(pair, true, special, ids)
        }
        _ => Ok(()),
    }
}

/// Checks that the special tokens of a template exist.
fn template(pieces: &Value, pair: bool, special: &Value, ids: &HashSet<u64>) -> Result<()> {
    for piece in pieces.as_array().into_iter().flatten() {
        if !pair && piece["Sequence"]["id"] == "B" {
            return Err(Error::invalid("the template for one text contains a second text"));
        }
        let Some(name) = piece["SpecialToken"]["id"].as_str() else { continue };
        let token = &special[name];
        let count = |key: &str| token[key].as_array().map(Vec::len);
        if count("ids").is_none() || count("ids") != count("tokens") {
            return Err(Error::invalid(format!(
                "post_processor: special token {name:?} needs `ids` and `tokens` of equal length"
            )));
        }
        token["ids"].as_array().into_iter().flatten().try_for_each(|id| known(id, ids))?;
    }
    Ok(())
}

fn known(id: &Value, ids: &HashSet<u64>) -> Result<()> {
    match id.as_u64().is_some_and(|id| ids.contains(&id)) {
        true => Ok(()),
        false => Err(Error::invalid(format!("a special token has the unknown id {id}"))),
    }
}

/// Decodes canonical base64.
fn base64(text: &str) -> Option<Vec<u8>> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bare = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for four in bare.as_bytes().chunks(4) {
        let mut bits = 0_u32;
        for byte in four {
            bits = bits << 6 | DIGITS.iter().position(|digit| digit == byte)? as u32;
        }
        bits <<= 6 * (4 - four.len());
        let three = bits.to_be_bytes();
        let (used, unused) = three[1..].split_at(four.len() - 1);
        if unused.iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend(used);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_as_in_the_standard() {
        // The examples of RFC 4648.
        for (text, bytes) in [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg==", "foob"),
            ("Zm9vYmE=", "fooba"),
            ("Zm9vYmFy", "foobar"),
        ] {
            assert_eq!(base64(text).as_deref(), Some(bytes.as_bytes()), "{text}");
        }
        for bad in ["Zg=", "Zg", "Zh==", "Zm9=", "Z===", "====", "Zm 9", "Zm9v\n", "é==="] {
            assert_eq!(base64(bad), None, "{bad:?}");
        }
    }
}
