//! Tokenizers of models that are one file, whose vocabulary is inside.

mod back;

use regard_models::vocabulary::{PreTokenizer, Splitting, TokenKind, Vocabulary};
use regard_models::{Error, Result};
use serde_json::{Map, Value, json};

use super::folder::template;
use super::{Tokenizer, byte_level, wordpiece};

/// Longest piece with a score, in characters: merges are found by trying all its splits.
const LONGEST: usize = 256;

/// Most bytes of the merges that are found of scores, for each byte of the vocabulary.
const MOST_MERGES: usize = 64;

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
            // A vocabulary without capitals is of texts without them. Letters such as ℝ have no
            // other case.
            let changes = |c: char| c.to_lowercase().ne([c]);
            let mut rows = tokens.iter().zip(&vocabulary.kinds).zip(specials(vocabulary));
            let is_cased = rows.any(|((token, kind), special)| {
                !special && *kind != TokenKind::Unused && token.chars().any(changes)
            });
            let normalizer = json!({
                "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                "strip_accents": null, "lowercase": !is_cased,
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
    // Without it, transformers takes a class by the type of the model.
    put("tokenizer_class", Some("PreTrainedTokenizerFast".into()));
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
fn merges_of_scores(vocabulary: &Vocabulary) -> Result<Vec<[&str; 2]>> {
    let text = |kind: TokenKind| matches!(kind, TokenKind::Normal | TokenKind::Added);
    let rows = vocabulary.tokens.iter().zip(&vocabulary.kinds).zip(&vocabulary.scores);
    let rows = rows.filter(|((_, kind), _)| text(**kind));
    let rows: Vec<(&str, f32)> = rows.map(|((token, _), score)| (&**token, *score)).collect();
    let known: std::collections::HashSet<&str> = rows.iter().map(|(token, _)| *token).collect();
    let mut rest: usize = rows.iter().map(|(token, _)| token.len() * MOST_MERGES).sum();
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
                rest = rest.checked_sub(token.len()).ok_or_else(|| {
                    Error::invalid(format!(
                        "its pieces are made of each other in too many ways: merges would take more \
                         than {MOST_MERGES} times the bytes of its tokens"
                    ))
                })?;
                merges.push((score, left, right));
            }
        }
    }
    // Of equal scores, a longer left part first; the sort keeps the order of ids.
    merges.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.len().cmp(&a.1.len())));
    Ok(merges.into_iter().map(|(_, left, right)| [left, right]).collect())
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

/// Whether each token is special.
fn specials(vocabulary: &Vocabulary) -> Vec<bool> {
    let is_special = |kind: &TokenKind| matches!(kind, TokenKind::Control | TokenKind::Unknown);
    let mut all: Vec<bool> = vocabulary.kinds.iter().map(is_special).collect();
    let of_bert = vocabulary.splitting == Splitting::WordPiece;
    if of_bert && !all.contains(&true) {
        // Files of BERT may have no kinds.
        let special = &vocabulary.special;
        let named = [special.bos, special.eos, special.separator, special.unknown];
        let named = named.into_iter().chain([special.padding, special.mask]).flatten();
        named.for_each(|id| all[id as usize] = true);
        for (token, special) in vocabulary.tokens.iter().zip(&mut all) {
            *special |= wordpiece::SPECIAL.contains(&token.as_str());
        }
    }
    all
}

/// Tokens that are found in a text before it is split.
fn added(vocabulary: &Vocabulary) -> Vec<Value> {
    let rows = vocabulary.tokens.iter().zip(&vocabulary.kinds).zip(specials(vocabulary));
    let rows = rows.enumerate().filter_map(|(id, ((token, kind), special))| {
        if !special && *kind != TokenKind::Added {
            return None;
        }
        Some(json!({"id": id, "content": token, "single_word": false, "lstrip": false,
                    "rstrip": false, "normalized": false, "special": special}))
    });
    rows.filter(|row| row["content"] != "").collect()
}

#[cfg(test)]
mod tests;
