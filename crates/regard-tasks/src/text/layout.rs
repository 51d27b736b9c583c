//! The steps of each kind of tokenizer around its model, in the format of `tokenizer.json`.
//!
//! A space is written `▁`. Subword pieces keep it in front of them, so decoding is exact. Words
//! do not (`école` is one entry of the vocabulary, at the start of a sentence, after a space and
//! after `l'`); only punctuation does, because that is where languages differ: `Go!` is `Go !`
//! and « Va ! » is `Va ▁!`.

use serde_json::{Value, json};

use super::special::NAMES;
use super::train::{Normalise, SpaceHandling, Train, UnicodeForm, VocabularyKind};
use super::{byte_level, english, folder, wordpiece};

/// Pre-tokens that no piece crosses: words (an apostrophe belongs to the letters before it,
/// `▁l' école`), single digits, runs of anything else.
const PIECES: &str = r"▁?[\p{L}\p{M}]+['’]?|▁?\p{N}|▁?[^▁\p{L}\p{M}\p{N}]+|▁+";

/// Words: numbers with their periods, `a.m.` and similar, elisions (`l'`, but not before an English
/// ending), runs of letters and digits, English endings (`'re`), and single signs.
const WORDS: &str = concat!(
    r"\p{N}+(?:[.,:]\p{N}+)+",
    r"|\p{L}\.(?:\p{L}\.)+",
    r"|\p{L}+['’](?=\p{L})(?!(?i:s|t|m|d|re|ve|ll)(?!\p{L}))",
    r"|[\p{L}\p{M}\p{N}]+",
    r"|(?<=[\p{L}\p{N}])['’](?i:s|t|m|d|re|ve|ll)(?!\p{L})",
    r"|▁?[^▁\p{L}\p{M}\p{N}]",
);

/// Patterns that are removed in sequence from words joined by spaces. Only a lookaround
/// distinguishes a sign that had a space before it (`▁-`) from one that had none.
const REJOIN: [&str; 6] = [
    // Space after an elision.
    r"(?<=\p{L}['’]) (?=\p{L})",
    // After a quotation mark or similar that had a space before it; between currency and number.
    "(?<=▁[\"'“‘„‚#@]) ",
    r"(?<=▁\p{Sc}) (?=\p{N})",
    // After an opening bracket, and after a sign that joins words.
    r"(?<=[(\[{¿¡]) |(?<= [-‐‑/@_\\=+*#&~^|]) ",
    // Before every sign that had no space before it.
    r" (?=[^▁\p{L}\p{M}\p{N} ])",
    "▁",
];

/// Returns a whole `tokenizer.json` around a model.
pub fn tokenizer(train: &Train, model: Value) -> Value {
    let special = train.kind.special().iter().enumerate().map(|(id, (_, name))| {
        json!({"id": id, "content": name, "single_word": false, "lstrip": false,
               "rstrip": false, "normalized": false, "special": true})
    });
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": special.collect::<Vec<_>>(),
        "normalizer": normalizer(train),
        "pre_tokenizer": pre_tokenizer(train.kind),
        "post_processor": post_processor(train.kind),
        "decoder": decoder(train.kind),
        "model": model,
    })
}

/// Returns a model of special tokens only, to count pre-tokens.
pub fn empty_model(kind: VocabularyKind) -> Value {
    let names = kind.special().iter().map(|(_, name)| name.to_string());
    let vocabulary: serde_json::Map<_, _> = names.zip(0..).map(|(n, id)| (n, json!(id))).collect();
    json!({"type": "WordLevel", "vocab": vocabulary, "unk_token": kind.special()[0].1})
}

/// Returns a model with one id per word.
pub fn words_model(words: &[String]) -> Value {
    let names = NAMES.iter().map(|name| name.to_string()).chain(words.iter().cloned());
    let vocabulary: serde_json::Map<_, _> =
        names.enumerate().map(|(id, word)| (word, json!(id))).collect();
    json!({"type": "WordLevel", "vocab": vocabulary, "unk_token": NAMES[3]})
}

fn sequence(kind: &str, steps: Vec<Value>) -> Value {
    json!({"type": "Sequence", kind: steps})
}

fn replace(pattern: Value, content: &str) -> Value {
    json!({"type": "Replace", "pattern": pattern, "content": content})
}

fn normalizer(train: &Train) -> Value {
    let Normalise { form, spaces, .. } = train.normalise;
    let mut steps = match form {
        UnicodeForm::Keep => vec![],
        UnicodeForm::Nfc => vec![json!({"type": "NFC"})],
        UnicodeForm::Nfkc => vec![json!({"type": "NFKC"})],
    };
    if train.lowercase {
        steps.push(json!({"type": "Lowercase"}));
    }
    let any_space = json!({"Regex": r"\s+"});
    match spaces {
        SpaceHandling::Keep => {}
        SpaceHandling::Plain => {
            steps.push(replace(any_space, " "));
            steps.push(json!({"type": "Strip", "strip_left": true, "strip_right": true}));
        }
        SpaceHandling::Drop => steps.push(replace(any_space, "")),
    }
    if train.kind == VocabularyKind::WordPiece {
        steps.push(json!({"type": "BertNormalizer", "clean_text": true,
                          "handle_chinese_chars": true, "strip_accents": null,
                          "lowercase": train.lowercase}));
    }
    if matches!(
        train.kind,
        VocabularyKind::WordLevel | VocabularyKind::Bpe | VocabularyKind::Unigram
    ) {
        steps.push(json!({"type": "Prepend", "prepend": "▁"}));
        steps.push(replace(json!({"String": " "}), "▁"));
    }
    sequence("normalizers", steps)
}

fn pre_tokenizer(kind: VocabularyKind) -> Value {
    let split = |pattern: &str, behavior: &str| {
        json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior,
               "invert": false})
    };
    match kind {
        VocabularyKind::Bpe | VocabularyKind::Unigram => split(PIECES, "Isolated"),
        VocabularyKind::WordLevel => {
            let steps = vec![split(WORDS, "Isolated"), split("^[▁\\s]+$", "Removed")];
            sequence("pretokenizers", steps)
        }
        VocabularyKind::Treebank => {
            let steps = [(english::words(), "Isolated"), (r"^\s+$".into(), "Removed")];
            let steps = steps.into_iter().chain([(english::parts(), "Isolated")]);
            let steps = steps.map(|(pattern, behavior)| split(&pattern, behavior));
            sequence("pretokenizers", steps.collect())
        }
        // Not `(?s).`: the library's Python build has another engine, with other flags.
        VocabularyKind::Char => split(r"[\s\S]", "Isolated"),
        VocabularyKind::WordPiece => json!({"type": "BertPreTokenizer"}),
        VocabularyKind::ByteLevel => byte_level::pre_tokenizer(false),
    }
}

/// Special tokens around texts: only BERT's kind was trained with them.
fn post_processor(kind: VocabularyKind) -> Value {
    let id = |name: &str| kind.special().iter().position(|row| row.1 == name).map(|id| id as u32);
    let single = [("[CLS]", 0), ("$A", 0), ("[SEP]", 0)];
    let pair = [("[CLS]", 0), ("$A", 0), ("[SEP]", 0), ("$B", 1), ("[SEP]", 1)];
    folder::template(&single, &pair, id).into()
}

fn decoder(kind: VocabularyKind) -> Value {
    match kind {
        VocabularyKind::Char => json!({"type": "Fuse"}),
        VocabularyKind::WordPiece => wordpiece::decoder(),
        // With a space between any two words.
        VocabularyKind::Treebank => Value::Null,
        VocabularyKind::ByteLevel => byte_level::decoder(),
        VocabularyKind::Bpe | VocabularyKind::Unigram => {
            let spaces = replace(json!({"String": "▁"}), " ");
            let strip = json!({"type": "Strip", "content": " ", "start": 1, "stop": 0});
            sequence("decoders", vec![spaces, json!({"type": "Fuse"}), strip])
        }
        VocabularyKind::WordLevel => {
            // No word has this prefix, so that a space is put before every word but the first.
            let join = json!({"type": "WordPiece", "prefix": "▁▁", "cleanup": false});
            let mut steps = vec![join, json!({"type": "Fuse"})];
            steps.extend(REJOIN.map(|pattern| replace(json!({"Regex": pattern}), "")));
            sequence("decoders", steps)
        }
    }
}
