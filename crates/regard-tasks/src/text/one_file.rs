//! Tokenizers of models that are one file, whose vocabulary is inside, and the way back.

use std::collections::HashMap;

use regard_models::vocabulary::{PreTokenizer, Splitting, TokenKind, Vocabulary};
use regard_models::{Error, Result};
use serde_json::{Map, Value, json};

use super::folder::template;
use super::{Tokenizer, byte_level, wordpiece};

/// Longest piece with a score, in characters: merges are found by trying all its splits.
const LONGEST: usize = 256;

/// Mark of a space in pieces.
const SPACE: &str = "▁";

/// How Llama 3 and Qwen cut a text into words: contractions, words with one character before them,
/// digits, punctuation with the line ends after it, white space.
const WORDS: [&str; 2] = [
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
];

/// Makes the tokenizer of a vocabulary.
///
/// # Errors
/// If its parts do not fit each other.
pub fn make(vocabulary: &Vocabulary) -> Result<Tokenizer> {
    let config = configuration(vocabulary);
    let (pieces, model, normalizer, pre_tokenizer, decoder) = match vocabulary.splitting {
        Splitting::ByteLevel(of) => {
            let pieces = pieces(&vocabulary.tokens)?;
            let merges: Vec<[&str; 2]> = merges(&vocabulary.merges)?;
            let model = json!({"type": "BPE", "vocab": pieces, "merges": merges,
                               "ignore_merges": of == PreTokenizer::Llama3});
            let (normalizer, cut) = byte_level_steps(of);
            (pieces, model, normalizer, cut, byte_level::decoder())
        }
        Splitting::Scores => {
            let pieces = pieces(&vocabulary.tokens)?;
            let bytes = vocabulary.kinds.contains(&TokenKind::Byte);
            let model = json!({
                "type": "BPE", "vocab": pieces, "merges": merges_of_scores(vocabulary)?,
                "unk_token": name(vocabulary, vocabulary.special.unknown),
                "fuse_unk": true, "byte_fallback": bytes,
            });
            let (normalizer, decoder) = score_steps(vocabulary.space_before);
            (pieces, model, normalizer, Value::Null, decoder)
        }
        Splitting::WordPiece => {
            let tokens: Vec<String> = vocabulary.tokens.iter().map(|t| word_piece(t)).collect();
            let pieces = pieces(&tokens)?;
            let unknown = config.get("unk_token").and_then(Value::as_str).unwrap_or("[UNK]");
            let model = wordpiece::model(&pieces, unknown);
            // A vocabulary without capitals is of texts without them.
            let is_cased =
                |token: &&String| !token.starts_with('[') && token.chars().any(char::is_uppercase);
            let normalizer = json!({
                "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                "strip_accents": null, "lowercase": !tokens.iter().any(|t| is_cased(&t)),
            });
            let cut = json!({"type": "BertPreTokenizer"});
            (pieces, model, normalizer, cut, wordpiece::decoder())
        }
    };
    let id = |name: &str| Some(pieces.get(name)?.as_u64()? as u32);
    let around = around(vocabulary, &config, id);
    let whole = json!({
        "version": "1.0",
        "added_tokens": added(vocabulary),
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": around,
        "decoder": decoder,
        "model": model,
    });
    Tokenizer::new(whole.to_string().as_bytes(), config)
}

/// The keys of `tokenizer_config.json`.
fn configuration(vocabulary: &Vocabulary) -> Map<String, Value> {
    let special = &vocabulary.special;
    let of_bert = vocabulary.splitting == Splitting::WordPiece;
    let mut config = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            config.insert(key.to_string(), value);
        }
    };
    let named = |id| name(vocabulary, id).map(Value::from);
    put(if of_bert { "cls_token" } else { "bos_token" }, named(special.bos));
    put("eos_token", named(special.eos).filter(|_| !of_bert));
    put("sep_token", named(special.separator.or(special.eos.filter(|_| of_bert))));
    put("unk_token", named(special.unknown));
    put("pad_token", named(special.padding));
    put("mask_token", named(special.mask));
    put("chat_template", vocabulary.chat_template.clone().map(Value::from));
    if !of_bert {
        put("add_bos_token", Some(vocabulary.around[0].into()));
        put("add_eos_token", Some(vocabulary.around[1].into()));
    }
    config
}

fn name(vocabulary: &Vocabulary, id: Option<u32>) -> Option<&str> {
    vocabulary.tokens.get(id? as usize).map(String::as_str)
}

/// Ids by piece.
fn pieces(tokens: &[String]) -> Result<Map<String, Value>> {
    let mut pieces = Map::new();
    for (id, token) in tokens.iter().enumerate() {
        if let Some(other) = pieces.insert(token.clone(), json!(id)) {
            return Err(Error::invalid(format!("tokens {other} and {id} are both {token:?}")));
        }
    }
    Ok(pieces)
}

/// Splits merges at their space. A piece has no space, so that the first one is the only one.
fn merges(merges: &[String]) -> Result<Vec<[&str; 2]>> {
    let mut all = Vec::with_capacity(merges.len());
    for (i, merge) in merges.iter().enumerate() {
        let both = merge.split_once(' ').filter(|(a, b)| !a.is_empty() && !b.is_empty());
        let Some((left, right)) = both else {
            return Err(Error::invalid(format!(
                "merge {i} is {merge:?}, need two pieces with a space between"
            )));
        };
        all.push([left, right]);
    }
    Ok(all)
}

/// Merges of pieces with scores: every split of a piece into two others, best pieces first.
fn merges_of_scores(vocabulary: &Vocabulary) -> Result<Vec<[String; 2]>> {
    let text = |kind: TokenKind| matches!(kind, TokenKind::Normal | TokenKind::Added);
    let rows = vocabulary.tokens.iter().zip(&vocabulary.kinds).zip(&vocabulary.scores);
    let rows = rows.filter(|((_, kind), _)| text(**kind));
    let rows: Vec<(&str, f32)> = rows.map(|((token, _), score)| (&**token, *score)).collect();
    let known: std::collections::HashSet<&str> = rows.iter().map(|(token, _)| *token).collect();
    let mut merges = vec![];
    for (token, score) in rows {
        let count = token.chars().count();
        if count > LONGEST {
            let begin: String = token.chars().take(20).collect();
            return Err(Error::invalid(format!(
                "the token {begin:?}… has {count} characters, need at most {LONGEST}"
            )));
        }
        for (at, _) in token.char_indices().skip(1) {
            let (left, right) = token.split_at(at);
            if known.contains(left) && known.contains(right) {
                merges.push((score, left, right));
            }
        }
    }
    // Of equal scores, a longer left part first; the sort keeps the order of ids.
    merges.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.len().cmp(&a.1.len())));
    Ok(merges.into_iter().map(|(_, left, right)| [left.into(), right.into()]).collect())
}

/// Normalizer and pre-tokenizer of byte-level BPE.
fn byte_level_steps(of: PreTokenizer) -> (Value, Value) {
    let bytes = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                       "use_regex": false});
    let words = |digits: &str| {
        let [before, after] = WORDS;
        let regex = format!("{before}{digits}{after}");
        let split = json!({"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated",
                           "invert": false});
        json!({"type": "Sequence", "pretokenizers": [split, bytes]})
    };
    match of {
        PreTokenizer::Gpt2 => (Value::Null, byte_level::pre_tokenizer(false)),
        PreTokenizer::Llama3 => (Value::Null, words(r"\p{N}{1,3}")),
        PreTokenizer::Qwen2 => (json!({"type": "NFC"}), words(r"\p{N}")),
        PreTokenizer::SmolLm => {
            let digits = json!({"type": "Digits", "individual_digits": true});
            let cut = [digits, byte_level::pre_tokenizer(false)];
            (Value::Null, json!({"type": "Sequence", "pretokenizers": cut}))
        }
    }
}

/// Normalizer and decoder of pieces with scores.
fn score_steps(space_before: bool) -> (Value, Value) {
    let replace = |from: &str, to: &str| json!({"type": "Replace", "pattern": {"String": from}, "content": to});
    let marked = replace(" ", SPACE);
    let (normalizer, strip) = match space_before {
        true => {
            let steps = [json!({"type": "Prepend", "prepend": SPACE}), marked];
            (json!({"type": "Sequence", "normalizers": steps}), 1)
        }
        false => (marked, 0),
    };
    let decoder = json!({"type": "Sequence", "decoders": [
        replace(SPACE, " "),
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": strip, "stop": 0},
    ]});
    (normalizer, decoder)
}

/// A piece as in `vocab.txt`: files mark the pieces that begin a word, `vocab.txt` the others.
fn word_piece(token: &str) -> String {
    if token.starts_with('[') && token.ends_with(']') {
        return token.to_string();
    }
    match token.strip_prefix(SPACE) {
        Some(begins) => begins.to_string(),
        None => format!("{}{token}", wordpiece::WITHIN),
    }
}

/// Special tokens around a text.
fn around(
    vocabulary: &Vocabulary,
    config: &Map<String, Value>,
    id: impl Fn(&str) -> Option<u32>,
) -> Value {
    let named = |key: &str, usual: &'static str| {
        let found = config.get(key).and_then(Value::as_str).unwrap_or(usual);
        Some(found.to_string()).filter(|name| id(name).is_some())
    };
    let (first, last) = match vocabulary.splitting {
        Splitting::WordPiece => (named("cls_token", "[CLS]"), named("sep_token", "[SEP]")),
        _ => (named("bos_token", ""), named("eos_token", "")),
    };
    let first = first.filter(|_| vocabulary.around[0]);
    let last = last.filter(|_| vocabulary.around[1]);
    let row = |of: &[(&'static str, u32)]| {
        let mut row: Vec<(String, u32)> = vec![];
        row.extend(first.clone().map(|first| (first, 0)));
        for (text, kind) in of {
            row.push((text.to_string(), *kind));
            row.extend(last.clone().map(|last| (last, *kind)));
        }
        row
    };
    let (single, pair) = (row(&[("$A", 0)]), row(&[("$A", 0), ("$B", 1)]));
    if single.len() == 1 {
        return Value::Null;
    }
    let single: Vec<(&str, u32)> = single.iter().map(|(n, k)| (&**n, *k)).collect();
    let pair: Vec<(&str, u32)> = pair.iter().map(|(n, k)| (&**n, *k)).collect();
    template(&single, &pair, id).unwrap_or(Value::Null)
}

/// Tokens that are found in a text before it is split.
fn added(vocabulary: &Vocabulary) -> Vec<Value> {
    let of_bert = vocabulary.splitting == Splitting::WordPiece;
    let rows = vocabulary.tokens.iter().zip(&vocabulary.kinds).enumerate();
    let rows = rows.filter_map(|(id, (token, kind))| {
        let special = match kind {
            TokenKind::Control => true,
            TokenKind::Unknown => true,
            TokenKind::Added => false,
            // Files of BERT have no kinds of their own.
            _ if of_bert && word_piece(token) == *token => true,
            _ => return None,
        };
        Some(json!({"id": id, "content": token, "single_word": false, "lstrip": false,
                    "rstrip": false, "normalized": false, "special": special}))
    });
    rows.filter(|row| row["content"] != "").collect()
}

impl Tokenizer {
    /// Returns the vocabulary, for a model that is one file.
    ///
    /// # Errors
    /// If the tokenizer is of a kind that such files do not have.
    pub fn vocabulary(&self) -> Result<Vocabulary> {
        let whole: Value = serde_json::from_str(&self.to_json()).expect("JSON of the library");
        let model = &whole["model"];
        let splitting = splitting(&whole)?;
        let of_bert = splitting == Splitting::WordPiece;
        let mut tokens: Vec<Option<String>> = vec![None; self.size()];
        let mut kinds = vec![TokenKind::Unused; self.size()];
        for (token, id) in model["vocab"].as_object().into_iter().flatten() {
            let id = id.as_u64().unwrap_or(0) as usize;
            let is_byte = splitting == Splitting::Scores
                && token.len() == 6
                && token.starts_with("<0x")
                && token.ends_with('>');
            kinds[id] = if is_byte { TokenKind::Byte } else { TokenKind::Normal };
            tokens[id] = Some(match &splitting {
                Splitting::WordPiece => phantom(token),
                Splitting::Scores => token.replace(' ', SPACE),
                Splitting::ByteLevel(_) => token.clone(),
            });
        }
        for token in whole["added_tokens"].as_array().into_iter().flatten() {
            let (Some(id), Some(name)) = (token["id"].as_u64(), token["content"].as_str()) else {
                continue;
            };
            let special = token["special"] == true;
            kinds[id as usize] = if special { TokenKind::Control } else { TokenKind::Added };
            tokens[id as usize] = Some(name.to_string());
        }
        let special = self.special();
        if let Some(unknown) = special.unk.filter(|_| splitting == Splitting::Scores) {
            kinds[unknown as usize] = TokenKind::Unknown;
        }
        let tokens: Vec<String> = tokens
            .into_iter()
            .enumerate()
            .map(|(id, token)| token.unwrap_or_else(|| format!("[UNUSED{id}]")))
            .collect();
        let pair = |merge: &Value| match merge {
            Value::String(merge) => merge.clone(),
            both => {
                let part = |i: usize| both[i].as_str().unwrap_or_default();
                format!("{} {}", part(0), part(1))
            }
        };
        let merges: Vec<String> =
            model["merges"].as_array().into_iter().flatten().map(pair).collect();
        let with_scores = splitting == Splitting::Scores;
        let scores = if with_scores { scores(&tokens, &merges) } else { vec![] };
        let adds = |id: Option<u32>, last: bool| -> Result<bool> {
            let ids = self.encode_special("a", None)?.ids;
            let at = if last { ids.last() } else { ids.first() };
            Ok(id.is_some() && at.copied() == id)
        };
        let (first, last) = match of_bert {
            true => (special.cls, special.sep),
            false => (self.configured_bos(), special.eos),
        };
        let flag = |key: &str| self.config_value(key).and_then(Value::as_bool);
        let around = [
            flag("add_bos_token").map_or_else(|| adds(first, false), Ok)?,
            flag("add_eos_token").map_or_else(|| adds(last, true), Ok)?,
        ];
        let template = self.config_value("chat_template").and_then(Value::as_str);
        Ok(Vocabulary {
            special: regard_models::vocabulary::SpecialIds {
                bos: first,
                eos: last,
                turn: None,
                unknown: special.unk,
                padding: special.pad,
                separator: special.sep.filter(|_| of_bert),
                mask: special.mask.filter(|_| of_bert),
            },
            space_before: with_scores && whole["normalizer"].to_string().contains("Prepend"),
            chat_template: template.map(str::to_string),
            merges: if with_scores { vec![] } else { merges },
            splitting,
            tokens,
            kinds,
            scores,
            around,
        })
    }
}

/// The inverse of [`word_piece`].
fn phantom(token: &str) -> String {
    if token.starts_with('[') && token.ends_with(']') {
        return token.to_string();
    }
    match token.strip_prefix(wordpiece::WITHIN) {
        Some(within) => within.to_string(),
        None => format!("{SPACE}{token}"),
    }
}

/// Scores that give the order of merges: a piece has minus the rank of the first merge that makes it.
fn scores(tokens: &[String], merges: &[String]) -> Vec<f32> {
    let mut ranks: HashMap<String, usize> = HashMap::new();
    for (rank, merge) in merges.iter().enumerate() {
        ranks.entry(merge.replacen(' ', "", 1)).or_insert(rank);
    }
    let score = |token: &String| -(ranks.get(token).copied().unwrap_or(merges.len()) as f32);
    tokens.iter().map(score).collect()
}

/// Recognises how a tokenizer splits texts.
fn splitting(whole: &Value) -> Result<Splitting> {
    let model = &whole["model"];
    let kind = model["type"].as_str().unwrap_or("no type");
    match kind {
        "WordPiece" => return Ok(Splitting::WordPiece),
        // Pieces of one character need no merges.
        "WordLevel" if is_of_characters(whole) => return Ok(Splitting::Scores),
        "BPE" if model["byte_fallback"] == true => return Ok(Splitting::Scores),
        "BPE" => {}
        other => {
            return Err(Error::invalid(format!(
                "a GGUF file cannot have a tokenizer of type {other}: need BPE, WordPiece or characters"
            )));
        }
    }
    let cut = without_offsets(&whole["pre_tokenizer"]);
    let found = PreTokenizer::NAMES
        .iter()
        .find(|(_, of)| without_offsets(&byte_level_steps(*of).1) == cut)
        .map(|(_, of)| *of);
    let names = PreTokenizer::NAMES.map(|(name, _)| name).join(", ");
    found.map(Splitting::ByteLevel).ok_or_else(|| {
        Error::invalid(format!(
            "its pre_tokenizer is not one that a GGUF file can name: need that of {names}"
        ))
    })
}

/// Whether every character of a text is a token.
fn is_of_characters(whole: &Value) -> bool {
    let cut = &whole["pre_tokenizer"];
    cut["type"] == "Split"
        && cut["behavior"] == "Isolated"
        && [r"[\s\S]", "."].iter().any(|all| cut["pattern"]["Regex"] == *all)
        && whole["normalizer"]["normalizers"].as_array().is_none_or(Vec::is_empty)
}

/// A part without `trim_offsets`, which changes no token.
fn without_offsets(value: &Value) -> Value {
    match value {
        Value::Object(keys) => {
            let keys = keys.iter().filter(|(key, _)| *key != "trim_offsets");
            keys.map(|(key, value)| (key.clone(), without_offsets(value))).collect()
        }
        Value::Array(all) => all.iter().map(without_offsets).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests;
