//! Vocabularies of XLNet and ALBERT: SentencePiece models, read as the fast tokenizers of Hugging
//! Face do, which differ from SentencePiece itself.

use regard_models::Result;
use serde_json::{Value, json};
use tokenizers::normalizers::precompiled::Precompiled;

use super::folder::{Known, added_tokens, flag, template, token_name};
use super::spm::{Piece, SentencePiece, Use, malformed};
use super::{Tokenizer, marian};

/// Penalty on the score of a piece like `3,`, which is enough to split it: models were trained on
/// numbers without the comma after them.
const COMMA: f64 = 100.0;

/// Makes the tokenizer of a `spiece.model`. One that is neither XLNet's nor ALBERT's has no special
/// tokens around texts.
pub fn make(files: &[Vec<u8>], mut known: Known) -> Result<Tokenizer> {
    let model = SentencePiece::read(&files[0])?;
    let id = |name: &str| Some(model.pieces.iter().position(|p| p.text == name)? as u32);
    let family = match known.family {
        Some(family) => family.name(),
        None if id("<cls>").and(id("<sep>")).is_some() => "xlnet",
        None if id("[CLS]").and(id("[SEP]")).is_some() => "albert",
        None => "",
    };
    let xlnet = family == "xlnet";
    if !xlnet && family != "albert" {
        return marian::from_model(&model);
    }
    let mut added = std::mem::take(&mut known.added);
    // Control tokens that have no name in a configuration. Two of XLNet's, for the end of a
    // paragraph and of a document, are normal pieces in the file.
    let sign = |piece: &Piece| {
        piece.used == Use::Control || xlnet && ["<eop>", "<eod>"].contains(&&*piece.text)
    };
    let signs = model.pieces.iter().zip(0..).filter(|(piece, _)| sign(piece));
    added.extend(signs.map(|(piece, id)| (id, piece.text.clone())));
    let config = known.completed(family);
    let name = |key: &str| token_name(&config, key).unwrap_or_default().to_owned();
    let (cls, sep) = (name("cls_token"), name("sep_token"));
    let around = if xlnet {
        template(
            &[("$A", 0), (&sep, 0), (&cls, 2)],
            &[("$A", 0), (&sep, 0), ("$B", 1), (&sep, 1), (&cls, 2)],
            id,
        )
    } else {
        template(
            &[(&cls, 0), ("$A", 0), (&sep, 0)],
            &[(&cls, 0), ("$A", 0), (&sep, 0), ("$B", 1), (&sep, 1)],
            id,
        )
    };
    let unknown = model.pieces.iter().position(|piece| piece.used == Use::Unknown);
    let vocabulary: Vec<(&str, f64)> =
        model.pieces.iter().map(|piece| (&*piece.text, score(piece))).collect();
    let metaspace = json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always",
                           "split": true});
    let lowercase = flag(&config, "do_lower_case", !xlnet);
    let keep_accents = flag(&config, "keep_accents", false);
    let whole = json!({
        "version": "1.0",
        "added_tokens": added_tokens(&config, &added, id, true),
        "normalizer": normalizer(&model, lowercase, keep_accents)?,
        "pre_tokenizer": {"type": "Sequence",
                          "pretokenizers": [{"type": "WhitespaceSplit"}, metaspace.clone()]},
        "post_processor": around,
        "decoder": metaspace,
        "model": {"type": "Unigram", "unk_id": unknown, "vocab": vocabulary,
                  "byte_fallback": false},
    });
    Tokenizer::new(whole.to_string().as_bytes(), config)
}

/// Log-probability of a piece. It is that of the file even for pieces that SentencePiece itself
/// would never produce.
fn score(piece: &Piece) -> f64 {
    let mut last = piece.text.chars().rev();
    let number = last.next() == Some(',') && last.next().is_some_and(char::is_numeric);
    f64::from(piece.score) - if number { COMMA } else { 0.0 }
}

/// Replaces quotation marks in LaTeX style, strips accents, then applies SentencePiece's character
/// map.
fn normalizer(model: &SentencePiece, lowercase: bool, keep_accents: bool) -> Result<Value> {
    let quote =
        |marks: &str| json!({"type": "Replace", "pattern": {"String": marks}, "content": "\""});
    let mut steps = vec![quote("``"), quote("''")];
    if !keep_accents {
        steps.extend([json!({"type": "NFKD"}), json!({"type": "StripAccents"})]);
    }
    if lowercase {
        steps.push(json!({"type": "Lowercase"}));
    }
    if !model.characters.is_empty() {
        let table =
            Precompiled::from(&model.characters).map_err(|_| malformed("its character map"))?;
        steps.push(serde_json::to_value(table).expect("bytes as text"));
    }
    Ok(json!({"type": "Sequence", "normalizers": steps}))
}
