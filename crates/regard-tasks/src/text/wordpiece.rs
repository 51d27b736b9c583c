//! Vocabularies of BERT: `vocab.txt`, a piece per line.

use regard_models::{Error, Result};
use serde_json::{Map, Value, json};

use super::Tokenizer;
use super::folder::{Known, added_tokens, flag, template, token_name};

/// Prefix of a piece that continues a word.
pub const WITHIN: &str = "##";

/// Special tokens of BERT's own vocabularies.
pub const SPECIAL: [&str; 5] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];

/// Longest word in characters; a longer one is unknown, because matching takes quadratic time.
const LONGEST_WORD: usize = 100;

/// Makes the tokenizer of a `vocab.txt`, configured as the folder says or as BERT's.
pub fn make(files: &[Vec<u8>], mut known: Known) -> Result<Tokenizer> {
    let text = std::str::from_utf8(&files[0])
        .map_err(|e| Error::invalid(format!("not UTF-8 from byte {} on", e.valid_up_to())))?;
    let text = text.strip_suffix('\n').unwrap_or(text);
    // If a piece occurs twice, its last line gives the id.
    let lines = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    let vocabulary: Map<String, Value> =
        lines.enumerate().map(|(id, piece)| (piece.to_owned(), json!(id))).collect();
    let id = |name: &str| Some(vocabulary.get(name)?.as_u64()? as u32);
    let added = std::mem::take(&mut known.added);
    let config = known.completed("bert");
    let name = |key: &str| token_name(&config, key).unwrap_or_default().to_owned();
    let (unknown, cls, sep) = (name("unk_token"), name("cls_token"), name("sep_token"));
    if id(&unknown).is_none() {
        return Err(Error::invalid(format!(
            "not a vocabulary of BERT: {unknown:?} is on none of its {} lines. Set `unk_token` in \
             tokenizer_config.json to its unknown token",
            vocabulary.len()
        )));
    }
    let normal = json!({
        "type": "BertNormalizer",
        "clean_text": true,
        "handle_chinese_chars": flag(&config, "tokenize_chinese_chars", true),
        "strip_accents": config.get("strip_accents").and_then(Value::as_bool),
        "lowercase": flag(&config, "do_lower_case", true),
    });
    let around = template(
        &[(&cls, 0), ("$A", 0), (&sep, 0)],
        &[(&cls, 0), ("$A", 0), (&sep, 0), ("$B", 1), (&sep, 1)],
        id,
    );
    let whole = json!({
        "version": "1.0",
        "added_tokens": added_tokens(&config, &added, id, false),
        "normalizer": normal,
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": around,
        "decoder": decoder(),
        "model": model(&vocabulary, &unknown),
    });
    Tokenizer::new(whole.to_string().as_bytes(), config)
}

/// Joins pieces to words and words to text.
pub fn decoder() -> Value {
    json!({"type": "WordPiece", "prefix": WITHIN, "cleanup": true})
}

/// Model that repeatedly takes the longest matching piece.
pub fn model(vocabulary: &Map<String, Value>, unknown: &str) -> Value {
    json!({"type": "WordPiece", "unk_token": unknown, "continuing_subword_prefix": WITHIN,
           "max_input_chars_per_word": LONGEST_WORD, "vocab": vocabulary})
}
