//! Tokenizers of Marian (`source.spm`, `target.spm`, `vocab.json`), and of any SentencePiece
//! model whose ids are in the order of its pieces (`spiece.model`).

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use regard_models::{Error, ModelFiles, Result};
use serde_json::{Map, Value, json};
use tokenizers::normalizers::precompiled::Precompiled;

use super::Tokenizer;
use super::folder::{read, read_of};
use super::spm::{Piece, SentencePiece, Use, malformed};

/// Files of a Marian model's vocabulary: a SentencePiece model for each side, and the ids that both
/// share.
pub const FILES: [&str; 3] = ["source.spm", "target.spm", "vocab.json"];

/// Prefix of an entry that no text may produce: a piece of the other language, which has an id
/// because both share one vocabulary, or an unused one. No normalised text contains it.
const HIDDEN: char = '\0';

/// Loads the source and target tokenizers of a Marian model.
pub fn load(model: &ModelFiles) -> Result<(Tokenizer, Tokenizer)> {
    let [source, target, ids] = FILES;
    let path = model.path(ids);
    let ids = read_of(model, ids)?;
    let ids: BTreeMap<String, u32> = serde_json::from_slice(&ids)
        .map_err(|e| Error::file(&path, format!("not an object of pieces and ids: {e}")))?;
    let side = |name: &str| {
        let pieces = SentencePiece::read(&read_of(model, name)?);
        let tokenizer = pieces.and_then(|pieces| with_ids(&pieces, &ids));
        tokenizer.map_err(|e| Error::file(model.path(name), e.to_string()))
    };
    Ok((side(source)?, side(target)?))
}

/// Loads the tokenizer of a SentencePiece model whose ids are in the order of its pieces.
pub fn sentencepiece(path: impl AsRef<Path>) -> Result<Tokenizer> {
    let path = path.as_ref();
    let model = read(path)?;
    let tokenizer = SentencePiece::read(&model).and_then(|model| from_model(&model));
    tokenizer.map_err(|e| Error::file(path, e.to_string()))
}

/// Makes the tokenizer of a parsed model whose ids are in the order of its pieces.
pub(super) fn from_model(model: &SentencePiece) -> Result<Tokenizer> {
    let ids = model.pieces.iter().map(|piece| piece.text.clone()).zip(0..).collect();
    with_ids(model, &ids)
}

/// Makes a tokenizer that segments as the model does and gives the ids of a vocabulary.
fn with_ids(model: &SentencePiece, ids: &BTreeMap<String, u32>) -> Result<Tokenizer> {
    let mut rows: Vec<Option<&str>> = vec![None; ids.len()];
    for (piece, &id) in ids {
        match rows.get_mut(id as usize) {
            Some(row @ None) => *row = Some(piece),
            _ => return Err(Error::invalid(format!("the ids are not 0 to {}", ids.len() - 1))),
        }
    }
    let known: HashMap<&str, &Piece> =
        model.pieces.iter().map(|piece| (piece.text.as_str(), piece)).collect();
    let scores = model.pieces.iter().filter(|piece| piece.used == Use::Normal).map(score);
    let (least, most) =
        scores.fold((0.0, f64::NEG_INFINITY), |(a, b), score| (score.min(a), score.max(b)));
    let (mut vocabulary, mut special, mut unknown) = (Vec::new(), Vec::new(), None);
    for (id, row) in rows.iter().enumerate() {
        let text = row.expect("as many rows as ids, and no id twice");
        match known.get(text) {
            Some(piece) if piece.used == Use::Normal => {
                vocabulary.push((text.into(), score(piece)))
            }
            // As in SentencePiece: no segmentation of such a piece has a better score.
            Some(piece) if piece.used == Use::User => {
                vocabulary.push((text.into(), text.chars().count() as f64 * most - 0.1));
            }
            Some(piece) if piece.used == Use::Unused => {
                vocabulary.push((format!("{HIDDEN}{text}"), least));
            }
            // Marian adds `<pad>`, which is not in the model.
            None if text != "<pad>" => vocabulary.push((format!("{HIDDEN}{text}"), least)),
            piece => {
                if piece.is_some_and(|piece| piece.used == Use::Unknown) {
                    unknown = Some(id);
                }
                special.push((id, text));
                vocabulary.push((text.into(), least));
            }
        }
    }
    let unknown = unknown.ok_or_else(|| malformed("its unknown piece is not in vocab.json"))?;
    let added = special.iter().map(|(id, name)| {
        json!({"id": id, "content": name, "single_word": false, "lstrip": false,
               "rstrip": false, "normalized": false, "special": true})
    });
    let whole = json!({
        "version": "1.0",
        "normalizer": normalizer(model)?,
        "pre_tokenizer": pre_tokenizer(model, &special),
        "decoder": {"type": "Sequence", "decoders": [
            replace(json!({"String": HIDDEN}), ""),
            replace(json!({"String": "▁"}), " "),
            {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": usize::from(model.space_in_front), "stop": 0},
        ]},
        "added_tokens": added.collect::<Vec<_>>(),
        "model": {"type": "Unigram", "unk_id": unknown, "vocab": vocabulary,
                  "byte_fallback": false},
    });
    let config = Map::from_iter([("split_special_tokens".to_owned(), json!(true))]);
    Tokenizer::new(whole.to_string().as_bytes(), config)
}

fn replace(pattern: Value, content: &str) -> Value {
    json!({"type": "Replace", "pattern": pattern, "content": content})
}

fn score(piece: &Piece) -> f64 {
    f64::from(piece.score)
}

/// SentencePiece's character map, then its treatment of spaces.
fn normalizer(model: &SentencePiece) -> Result<Value> {
    let mut steps = Vec::new();
    if !model.characters.is_empty() {
        let table =
            Precompiled::from(&model.characters).map_err(|_| malformed("its character map"))?;
        steps.push(serde_json::to_value(table).expect("bytes as text"));
    }
    if model.single_spaces {
        steps.push(replace(json!({"Regex": " {2,}"}), " "));
        steps.push(json!({"type": "Strip", "strip_left": true, "strip_right": true}));
    }
    Ok(json!({"type": "Sequence", "normalizers": steps}))
}

/// Maps spaces to `▁`. A special token is an entry like any other, so a text that looks like one
/// would become it: such a text is split after its first character.
fn pre_tokenizer(model: &SentencePiece, special: &[(usize, &str)]) -> Value {
    let mut steps = vec![json!({
        "type": "Metaspace", "replacement": "▁", "split": model.within_words,
        "prepend_scheme": if model.space_in_front { "always" } else { "never" },
    })];
    // Not all punctuation: `\<` is the start of a word.
    let literal = |text: &str| -> String {
        let escape =
            |c: char| if r"\.+*?()|[]{}^$".contains(c) { format!(r"\{c}") } else { c.into() };
        text.chars().map(escape).collect()
    };
    let cuts = special.iter().filter_map(|(_, name)| {
        let rest = name.char_indices().nth(1)?.0;
        Some(format!("{}(?={})", literal(&name[..rest]), literal(&name[rest..])))
    });
    let cuts: Vec<String> = cuts.collect();
    if !cuts.is_empty() {
        steps.push(json!({"type": "Split", "pattern": {"Regex": cuts.join("|")},
                          "behavior": "MergedWithPrevious", "invert": false}));
    }
    json!({"type": "Sequence", "pretokenizers": steps})
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::fs;
    use std::path::PathBuf;

    use super::*;
    use crate::text::spm::tests::model;

    /// A model that shares one vocabulary, in a directory like those of Marian.
    fn directory(name: &str, vocabulary: &str) -> PathBuf {
        let directory =
            env::temp_dir().join(format!("regard-marian-{}-{name}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let signs = [("<unk>", 0.0, 2), ("</s>", 0.0, 3), ("▁", -4.0, 1), ("s", -5.0, 1)];
        let source = [("▁go", -2.0, 1), ("<", -6.0, 1), ("/", -6.0, 1), (">", -6.0, 1)];
        let target = [("▁va", -2.0, 1), ("!", -3.0, 1), ("go", -9.0, 1)];
        fs::write(directory.join("source.spm"), model(&[&signs[..], &source].concat())).unwrap();
        fs::write(directory.join("target.spm"), model(&[&signs[..], &target].concat())).unwrap();
        fs::write(directory.join("vocab.json"), vocabulary).unwrap();
        directory
    }

    const VOCABULARY: &str = r#"{"</s>": 0, "<unk>": 1, "▁": 2, "s": 3, "▁va": 4, "▁go": 5,
        "!": 6, "<": 7, "/": 8, ">": 9, "go": 10, "<pad>": 11}"#;

    #[test]
    fn each_side_cuts_by_its_own_model_into_shared_ids() {
        let directory = directory("both", VOCABULARY);
        let (source, target) = load(&(&directory).into()).unwrap();
        fs::remove_dir_all(directory).unwrap();
        for (tokenizer, text, ids) in [
            (&source, "go", &[5][..]),
            (&source, "  go  gos ", &[5, 5, 3]),
            // The target's pieces are unknown to the source, and the other way round.
            (&source, "va!", &[2, 1]),
            (&target, "va!", &[4, 6]),
            (&target, "go", &[2, 10]),
            // No text produces the end of a sentence.
            (&source, "go</s>", &[5, 7, 8, 3, 9]),
            (&source, "<s>", &[2, 7, 3, 9]),
        ] {
            let encoding = tokenizer.encode(text).unwrap();
            assert_eq!(encoding.ids, ids, "{text} {:?}", encoding.tokens);
        }
        assert!(!source.encode("go <pad>").unwrap().ids.contains(&11));
        for tokenizer in [&source, &target] {
            assert_eq!(tokenizer.decode(&[4, 6, 5, 0, 11]).unwrap(), "va! go");
            let special = tokenizer.special();
            assert_eq!((special.pad, special.eos, special.unk), (Some(11), Some(0), Some(1)));
            assert_eq!(tokenizer.size(), 12);
        }
    }

    #[test]
    fn ids_with_holes_are_refused() {
        for (name, vocabulary, message) in [
            ("hole", r#"{"</s>": 0, "<unk>": 2}"#, "the ids are not 0 to 1"),
            ("twice", r#"{"</s>": 0, "<unk>": 0}"#, "the ids are not 0 to 1"),
            ("unk", r#"{"</s>": 0, "s": 1}"#, "unknown piece is not in vocab.json"),
            ("list", "[]", "not an object"),
        ] {
            let directory = directory(name, vocabulary);
            let error = load(&(&directory).into()).unwrap_err().to_string();
            fs::remove_dir_all(directory).unwrap();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn the_published_tokenizer_of_xlnet_agrees() {
        let Some(root) = env::var_os(crate::data::sets::VARIABLE).map(PathBuf::from) else {
            return regard_fuzz::skip("REGARD_DATA is not set");
        };
        let folder = root.join("vocab/xlnet-base-cased");
        let own = sentencepiece(folder.join("spiece.model")).unwrap();
        let published = Tokenizer::load(folder.join("tokenizer.json")).unwrap();
        let pairs = crate::data::Tsv::FORWARD.read(root.join("tatoeba-fra-eng/fra.txt")).unwrap();
        // The published one has two rules of its own, for quotation marks and for accents.
        let plain = |text: &str| text.is_ascii() && !text.contains("''") && !text.contains('<');
        let lines = pairs.iter().step_by(50).map(|pair| &*pair.source).filter(|line| plain(line));
        let mut checked = 0;
        for line in lines {
            let (own, published) = (own.encode(line).unwrap(), published.encode(line).unwrap());
            assert_eq!(own.ids, published.ids, "{line} {:?} {:?}", own.tokens, published.tokens);
            checked += 1;
        }
        assert!(checked > 2000, "{checked}");
    }
}
