use std::path::{Path, PathBuf};

use regard_models::ModelFiles;
use serde::Deserialize;

use super::*;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/gguf").join(name)
}

#[derive(Deserialize)]
struct Row {
    text: String,
    ids: Vec<u32>,
    decoded: String,
}

/// `fixtures/make/one_file_tokenizers.py` has the ids of the tokenizers library and SentencePiece.
#[test]
fn vocabularies_give_the_recorded_ids() {
    for name in ["gpt-2", "llama-bpe", "qwen2", "smollm", "scores"] {
        let file = fixture(&format!("tokenizer-{name}.gguf"));
        let tokenizer = Tokenizer::of(&ModelFiles::from(&file)).unwrap_or_else(|e| panic!("{e}"));
        let rows = std::fs::read(fixture(&format!("tokenizer-{name}.json"))).unwrap();
        let rows: Vec<Row> = serde_json::from_slice(&rows).unwrap();
        // Written into another file and read again, it is the same.
        let again = make(&tokenizer.vocabulary().unwrap()).unwrap();
        assert!(rows.len() > 10);
        for Row { text, ids, decoded } in &rows {
            assert_eq!(&tokenizer.encode(text).unwrap().ids, ids, "{name} {text:?}");
            assert_eq!(&again.encode(text).unwrap().ids, ids, "{name} again {text:?}");
            let plain = &tokenizer.decode(ids).unwrap();
            assert_eq!(plain, decoded, "{name} {text:?}");
        }
        let (first, adds) = (tokenizer.configured_bos(), name == "scores");
        assert_eq!(first, Some(u32::from(adds)), "{name}");
        let prompt = tokenizer.encode_prompt("a", first).unwrap();
        assert_eq!(prompt.first() == first.as_ref(), adds, "{name}");
        let template = tokenizer.config_value("chat_template").is_some();
        assert_eq!(template, !adds, "{name}");
    }
}

#[test]
fn word_pieces_are_marked_the_other_way() {
    let tokens =
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "\u{2581}play", "ing", "\u{2581}ed", "\u{2581},"];
    let vocabulary = Vocabulary {
        splitting: Splitting::WordPiece,
        tokens: tokens.map(str::to_string).to_vec(),
        kinds: vec![TokenKind::Normal; tokens.len()],
        scores: vec![],
        merges: vec![],
        special: regard_models::vocabulary::SpecialIds {
            bos: Some(2),
            eos: Some(3),
            unknown: Some(1),
            ..Default::default()
        },
        around: [true, true],
        space_before: false,
        chat_template: None,
    };
    let tokenizer = make(&vocabulary).unwrap();
    let encoding = tokenizer.encode_special("Playing, ed", Some("ed playx")).unwrap();
    assert_eq!(encoding.ids, [2, 4, 5, 7, 6, 3, 6, 1, 3]);
    assert_eq!(encoding.types, [0, 0, 0, 0, 0, 0, 1, 1, 1]);
    assert_eq!(tokenizer.vocabulary().unwrap().tokens, vocabulary.tokens);
}

#[test]
fn vocabularies_that_do_not_fit_are_refused() {
    let file = fixture("tokenizer-gpt-2.gguf");
    let whole = ModelFiles::from(&file).vocabulary().unwrap().unwrap();
    let check = |change: &dyn Fn(&mut Vocabulary), part: &str| {
        let mut changed = whole.clone();
        change(&mut changed);
        let error = make(&changed).unwrap_err().to_string();
        assert!(error.contains(part), "{error} / {part}");
    };
    check(&|v| v.tokens[5] = v.tokens[4].clone(), "tokens 4 and 5 are both");
    check(&|v| v.merges[2] = "ab".into(), "merge 2 is \"ab\", need two pieces");
    check(&|v| v.merges[2] = "q_q_q x".into(), "q_q_q");
    let long = "x".repeat(300);
    check(
        &|v| {
            v.splitting = Splitting::Scores;
            v.scores = vec![0.0; v.tokens.len()];
            v.tokens[9] = long.clone();
        },
        "has 300 characters, need at most 256",
    );
}
