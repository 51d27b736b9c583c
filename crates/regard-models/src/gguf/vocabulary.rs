//! The vocabulary inside a file: the keys `tokenizer.*`.

use super::Gguf;
use crate::vocabulary::{PreTokenizer, SpecialIds, Splitting, TokenKind, Vocabulary};
use serde_json::Value;

const TOKENS: &str = "tokenizer.ggml.tokens";

/// Most tokens, and most merges.
const MOST: usize = 1 << 24;

/// Reads the vocabulary; `None` if the file has none.
pub fn read(file: &Gguf) -> Result<Option<Vocabulary>, String> {
    let Some(tokens) = file.texts(TOKENS, MOST)? else { return Ok(None) };
    let count = tokens.len();
    let key = "tokenizer.ggml.model";
    let model = file.only(key, &["gpt2", "llama", "bert"])?;
    let splitting = match model.as_deref() {
        Some("gpt2") => Splitting::ByteLevel(pre_tokenizer(file)?),
        Some("llama") => Splitting::Scores,
        Some(_) => Splitting::WordPiece,
        None => return Err(format!("has no {key}")),
    };
    let with_scores = splitting == Splitting::Scores;
    let scores = match with_scores {
        true => file
            .floats("tokenizer.ggml.scores", count)?
            .ok_or_else(|| "has no tokenizer.ggml.scores, which its tokenizer needs".to_string())?,
        false => vec![],
    };
    if let Some(at) = scores.iter().position(|score| !score.is_finite()) {
        return Err(format!("tokenizer.ggml.scores: element {at} is {}", scores[at]));
    }
    let kinds = kinds(file, count)?;
    let merges = match splitting {
        Splitting::ByteLevel(_) => file.texts("tokenizer.ggml.merges", MOST)?.unwrap_or_default(),
        _ => vec![],
    };
    let special = special(file, Some(count))?;
    let truth = |key: &str, usual: bool| {
        let found = file.truth(&format!("tokenizer.ggml.{key}"))?;
        Ok::<bool, String>(found.unwrap_or(usual))
    };
    let usual = match splitting {
        Splitting::ByteLevel(of) => [of == PreTokenizer::Llama3, false],
        Splitting::Scores => [true, false],
        Splitting::WordPiece => [true, true],
    };
    Ok(Some(Vocabulary {
        around: [truth("add_bos_token", usual[0])?, truth("add_eos_token", usual[1])?],
        space_before: truth("add_space_prefix", with_scores)?,
        chat_template: file.text("tokenizer.chat_template")?.map(str::to_string),
        splitting,
        tokens,
        kinds,
        scores,
        merges,
        special,
    }))
}

fn pre_tokenizer(file: &Gguf) -> Result<PreTokenizer, String> {
    let names = PreTokenizer::NAMES.map(|(name, _)| name);
    let key = "tokenizer.ggml.pre";
    let Some(name) = file.only(key, &names)? else {
        return Err(format!("has no {key}, need one of {}", names.join(", ")));
    };
    let row = PreTokenizer::NAMES.iter().find(|(known, _)| *known == name);
    Ok(row.expect("it is one of them").1)
}

fn kinds(file: &Gguf, count: usize) -> Result<Vec<TokenKind>, String> {
    let key = "tokenizer.ggml.token_type";
    let Some(numbers) = file.integers(key, count)? else {
        return Ok(vec![TokenKind::Normal; count]);
    };
    let kind = |(i, number): (usize, &u64)| {
        let found = usize::try_from(*number).ok().and_then(|n| n.checked_sub(1));
        let found = found.and_then(|n| TokenKind::ALL.get(n).copied());
        found.ok_or_else(|| format!("{key}: element {i} is {number}, need 1 to 6"))
    };
    numbers.iter().enumerate().map(kind).collect()
}

/// Ids of special tokens, which must be below `count` if that is given.
pub fn special(file: &Gguf, count: Option<usize>) -> Result<SpecialIds, String> {
    let id = |name: &str| {
        let key = format!("tokenizer.ggml.{name}_token_id");
        let Some(id) = file.integer(&key)? else { return Ok(None) };
        let most = count.unwrap_or(MOST) as u64;
        match u32::try_from(id) {
            Ok(id) if u64::from(id) < most => Ok(Some(id)),
            // Some converters write the highest number for no token.
            Ok(u32::MAX) => Ok(None),
            _ => Err(format!("{key}: got {id}, the vocabulary has {most} tokens")),
        }
    };
    let separator = match id("separator")? {
        Some(id) => Some(id),
        // The name that older converters wrote.
        None => id("seperator")?,
    };
    let first = match id("bos")? {
        Some(id) => Some(id),
        // The name that older converters wrote for BERT.
        None => id("cls")?,
    };
    Ok(SpecialIds {
        bos: first,
        eos: id("eos")?,
        turn: id("eot")?,
        unknown: id("unknown")?,
        padding: id("padding")?,
        separator,
        mask: id("mask")?,
    })
}

impl Gguf {
    /// Ids of special tokens for `config.json`.
    pub(super) fn special_ids(&self) -> Result<Vec<(&'static str, Value)>, String> {
        Ok(special(self, None)?.config())
    }
}
