//! The way back: the vocabulary of a tokenizer, for a model that is one file.

use std::collections::HashMap;

use regard_models::vocabulary::{PreTokenizer, SpecialIds, Splitting, TokenKind, Vocabulary};
use regard_models::{Error, Result};
use serde_json::Value;

use super::super::{Tokenizer, wordpiece};
use super::{SPACE, byte_level_steps, make};

/// Texts in which tokenizers differ that are configured otherwise: capitals, accents in both forms,
/// digits, white space, contractions, other scripts, and a word that is too long.
const TEXTS: [&str; 16] = [
    "The quick brown fox jumps over the lazy dog.",
    "HELLO World, iPhone McDONALD",
    "Crème brûlée, naïve, Ångström, İstanbul, straße, ÉCOLE",
    "cre\u{300}me bru\u{302}le\u{301}e, A\u{30a}",
    "1 12 123 1234 12345678 3.14 1,000,000 2024-01-31 ½ ² ７",
    " leading",
    "trailing ",
    "two  spaces   three    four",
    "a\nb\n\nc\r\nd\te\u{a0}f\u{3000}g",
    "I'll don't we've I'LL DON'T rock'n'roll",
    "x = foo(bar_baz)[0] != \"q\" && y <= 3; // end --- ...",
    "中文字符 日本語のテキスト 한국어 ภาษาไทย हिन्दी",
    "Привет, мир! Ελληνικά العربية עברית",
    "😀👍🏽👩‍👩‍👧 ™ ﬁ ﬂ Ⅳ ℝ",
    "a\u{0}b\u{200b}c\u{ad}d\u{fffd}e\u{7}",
    concat!(
        "Donaudampfschifffahrtselektrizitaetenhauptbetriebswerkbauunterbeamtengesellschaft",
        "donaudampfschifffahrtselektrizitaetenhauptbetriebswerkbauunterbeamtengesellschaft"
    ),
];
/// Most tokens whose texts are compared.
const TOKENS: usize = 4096;

impl Tokenizer {
    /// Returns the vocabulary, for a model that is one file. It has no chat template, which may be
    /// in a file of its own.
    ///
    /// # Errors
    /// If the tokenizer is of a kind that such files do not have, or one that is made of the
    /// vocabulary would encode texts otherwise.
    pub fn vocabulary(&self) -> Result<Vocabulary> {
        let whole: Value = serde_json::from_str(&self.to_json()).expect("JSON of the library");
        let mut vocabulary = self.parts(&whole)?;
        let mut difference = self.difference(&whole, &vocabulary)?;
        if vocabulary.splitting == Splitting::Scores && difference.is_some() {
            // Several steps can put a space before a text: whether one does is seen in what it gives.
            vocabulary.space_before = false;
            difference = self.difference(&whole, &vocabulary)?;
        }
        match difference {
            None => Ok(vocabulary),
            Some(difference) => {
                Err(Error::invalid(format!("a GGUF file cannot have this tokenizer: {difference}")))
            }
        }
    }

    /// Says how a tokenizer that is made of a vocabulary differs from this one, if it does.
    fn difference(&self, whole: &Value, vocabulary: &Vocabulary) -> Result<Option<String>> {
        let again = make(vocabulary)?;
        if matches!(vocabulary.splitting, Splitting::ByteLevel(_)) {
            let other: Value = serde_json::from_str(&again.to_json()).expect("JSON of the library");
            let ignores = |whole: &Value| whole["model"]["ignore_merges"] == true;
            for (part, differs) in [
                ("normalizer", steps(&whole["normalizer"]) != steps(&other["normalizer"])),
                ("model.ignore_merges", ignores(whole) != ignores(&other)),
            ] {
                if differs {
                    return Ok(Some(format!("{part} is not that of its pre_tokenizer")));
                }
            }
        }
        let every = vocabulary.tokens.len().div_ceil(TOKENS).max(1);
        let added = (0..vocabulary.tokens.len())
            .filter(|id| vocabulary.kinds[*id] == TokenKind::Added)
            .map(|id| format!("a {} b", vocabulary.tokens[id]));
        let mut texts: Vec<String> = TEXTS.into_iter().map(str::to_string).collect();
        texts.extend(added.take(TOKENS));
        for id in (0..vocabulary.tokens.len()).step_by(every) {
            if vocabulary.kinds[id] == TokenKind::Normal {
                texts.push(self.decode(&[id as u32])?);
            }
        }
        // Some tokenizers with scores put no space before a text that begins with one; llama.cpp does
        // for all.
        if vocabulary.splitting == Splitting::Scores {
            texts.retain(|text| !text.starts_with(char::is_whitespace));
        }
        if vocabulary.splitting == Splitting::WordPiece {
            let ids = |of: &Tokenizer| of.encode_special("a b", None).map(|found| found.ids);
            let (ids, others) = (ids(self)?, ids(&again)?);
            if ids != others {
                return Ok(Some(format!(
                    "with special tokens a text is encoded as {ids:?}, and would be as {others:?}"
                )));
            }
        }
        // Characters that no token has are told in another way, with scores.
        let unknown = self.special().unk.filter(|_| vocabulary.splitting == Splitting::Scores);
        for text in &texts {
            // A vocabulary of characters may have none for those it does not have.
            let Ok(encoding) = self.encode(text) else { continue };
            let (ids, others) = (encoding.ids, again.encode(text)?.ids);
            if ids != others && !unknown.is_some_and(|unknown| ids.contains(&unknown)) {
                let some = |ids: &[u32]| ids.iter().take(8).copied().collect::<Vec<u32>>();
                let at = ids.iter().zip(&others).take_while(|(a, b)| a == b).count();
                return Ok(Some(format!(
                    "{:?} is encoded as {:?} from token {at} on, and would be as {:?}",
                    text.chars().take(60).collect::<String>(),
                    some(&ids[at..]),
                    some(&others[at..])
                )));
            }
        }
        Ok(None)
    }

    /// The parts of a vocabulary.
    fn parts(&self, whole: &Value) -> Result<Vocabulary> {
        let model = &whole["model"];
        let splitting = splitting(whole)?;
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
        Ok(Vocabulary {
            special: SpecialIds {
                bos: first,
                eos: last,
                turn: None,
                unknown: special.unk,
                padding: special.pad,
                separator: special.sep.filter(|_| of_bert),
                mask: special.mask.filter(|_| of_bert),
            },
            space_before: with_scores,
            chat_template: None,
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

/// The steps of a normalizer.
fn steps(normalizer: &Value) -> Vec<&Value> {
    match normalizer["normalizers"].as_array() {
        Some(all) => all.iter().flat_map(steps).collect(),
        None if normalizer.is_null() => vec![],
        None => vec![normalizer],
    }
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
