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

/// A vocabulary of BERT as llama.cpp's converter writes it, of the lines of `vocab.txt`.
fn of_bert(lines: &[&str], kinds: bool) -> Vocabulary {
    let is_special = |line: &&str| wordpiece::SPECIAL.contains(line);
    let token = |line: &&str| match line.strip_prefix("##") {
        Some(within) => within.to_string(),
        None if line.starts_with('[') && line.ends_with(']') => line.to_string(),
        None => format!("{SPACE}{line}"),
    };
    let kind = |line: &&str| match kinds && is_special(line) {
        true => TokenKind::Control,
        false => TokenKind::Normal,
    };
    let id = |name: &str| lines.iter().position(|line| *line == name).map(|id| id as u32);
    Vocabulary {
        splitting: Splitting::WordPiece,
        tokens: lines.iter().map(token).collect(),
        kinds: lines.iter().map(kind).collect(),
        scores: vec![],
        merges: vec![],
        special: regard_models::vocabulary::SpecialIds {
            bos: id("[CLS]"),
            separator: id("[SEP]"),
            unknown: id("[UNK]"),
            padding: id("[PAD]"),
            mask: id("[MASK]"),
            ..Default::default()
        },
        around: [true, true],
        space_before: false,
        chat_template: None,
    }
}

/// A letter without a small form is no capital, and special tokens have capitals in any vocabulary.
#[test]
fn capitals_are_those_that_have_a_small_form() {
    let plain = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "play", "ℝ", "##ℝ"];
    for kinds in [true, false] {
        let uncased = make(&of_bert(&plain, kinds)).unwrap();
        assert_eq!(uncased.encode("Play ℝ PLAYℝ").unwrap().ids, [6, 7, 6, 8], "{kinds}");
        // A token in brackets that is not special is a piece like any other.
        assert_eq!(uncased.encode("[CLS] [unused0]").unwrap().ids, [3, 2, 2, 2], "{kinds}");
        let cased = make(&of_bert(&[&plain[..], &["Play"]].concat(), kinds)).unwrap();
        assert_eq!(cased.encode("Play play PLAY").unwrap().ids, [9, 6, 2], "{kinds}");
        let brackets = make(&of_bert(&[&plain[..], &["[Play"]].concat(), kinds)).unwrap();
        assert_eq!(brackets.encode("PLAY").unwrap().ids, [2], "{kinds}");
    }
}

#[test]
fn a_real_vocabulary_without_capitals_is_uncased() {
    let file = std::env::var_os("REGARD_DATA").map(PathBuf::from);
    let file = file.map(|data| data.join("vocab/bert-base-uncased-vocab.txt"));
    let Some(text) = file.and_then(|file| std::fs::read_to_string(file).ok()) else {
        regard_fuzz::skip("REGARD_DATA has no vocab/bert-base-uncased-vocab.txt");
        return;
    };
    let lines: Vec<&str> = text.lines().collect();
    let tokenizer = make(&of_bert(&lines, true)).unwrap();
    let [a, b] = ["Paris, École", "paris, ecole"].map(|text| tokenizer.encode(text).unwrap().ids);
    assert_eq!(a, b);
    let again = tokenizer.vocabulary().unwrap();
    assert_eq!(again.tokens, of_bert(&lines, true).tokens);
}

/// Changes the JSON of a tokenizer, and takes its vocabulary.
fn changed(name: &str, change: impl Fn(&mut Value)) -> Result<Vocabulary> {
    let file = fixture(&format!("tokenizer-{name}.gguf"));
    let tokenizer = Tokenizer::of(&ModelFiles::from(&file)).unwrap();
    let mut whole: Value = serde_json::from_str(&tokenizer.to_json()).unwrap();
    change(&mut whole);
    Tokenizer::new(whole.to_string().as_bytes(), Map::new()).unwrap().vocabulary()
}

#[test]
fn tokenizers_that_would_encode_otherwise_are_refused() {
    let refused = |name: &str, change: &dyn Fn(&mut Value), part: &str| {
        let error = changed(name, change).unwrap_err().to_string();
        assert!(error.contains("a GGUF file cannot have this tokenizer"), "{name}: {error}");
        assert!(error.contains(part), "{name}: {error}");
    };
    let lower = json!({"type": "Lowercase"});
    refused("gpt-2", &|whole| whole["normalizer"] = lower.clone(), "normalizer");
    refused("qwen2", &|whole| whole["normalizer"] = Value::Null, "normalizer");
    refused("llama-bpe", &|whole| whole["model"]["ignore_merges"] = json!(false), "ignore_merges");
    refused(
        "scores",
        &|whole| {
            let own = whole["normalizer"].clone();
            whole["normalizer"] = json!({"type": "Sequence", "normalizers": [lower, own]});
        },
        "is encoded as",
    );
    for name in ["gpt-2", "qwen2", "llama-bpe", "scores"] {
        changed(name, |_| {}).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    // An empty sequence is no normalizer.
    let empty = json!({"type": "Sequence", "normalizers": []});
    changed("gpt-2", |whole| whole["normalizer"] = empty.clone()).unwrap();
}

/// A space before a text can come of a normalizer or of a pre-tokenizer.
#[test]
fn a_space_before_a_text_is_found_by_what_it_gives() {
    assert!(changed("scores", |_| {}).unwrap().space_before);
    let metaspace = |scheme: &str| {
        let scheme = scheme.to_string();
        changed("scores", move |whole| {
            whole["normalizer"] = Value::Null;
            whole["pre_tokenizer"] = json!({"type": "Metaspace", "replacement": SPACE,
                                            "prepend_scheme": scheme, "split": false});
        })
    };
    assert!(metaspace("always").unwrap().space_before);
    assert!(!metaspace("never").unwrap().space_before);
    let plain = changed("scores", |whole| {
        whole["normalizer"] = score_steps(false).0;
    });
    let plain = plain.unwrap();
    assert!(!plain.space_before);
    let [a, b] =
        [make(&plain).unwrap(), make(&Vocabulary { space_before: true, ..plain }).unwrap()]
            .map(|tokenizer| tokenizer.encode("a b").unwrap().ids);
    assert_ne!(a, b);
}

/// Tokens that are found in texts, and rows of the embeddings without a token.
#[test]
fn added_tokens_and_padding_come_back() {
    let file = fixture("tokenizer-qwen2.gguf");
    let mut whole = ModelFiles::from(&file).vocabulary().unwrap().unwrap();
    let count = whole.tokens.len() as u32;
    whole.tokens.extend(["<tool>".to_string(), format!("[PAD{}]", count + 1)]);
    whole.kinds.extend([TokenKind::Added, TokenKind::Unused]);
    let tokenizer = make(&whole).unwrap();
    assert_eq!(tokenizer.encode("<tool>").unwrap().ids, [count]);
    assert!(
        !tokenizer.encode(&whole.tokens[count as usize + 1]).unwrap().ids.contains(&(count + 1))
    );
    let again = tokenizer.vocabulary().unwrap();
    assert_eq!(again.tokens, whole.tokens);
    assert_eq!(again.kinds[count as usize], TokenKind::Added);
}

/// A small file could otherwise take a thousand times its memory.
#[test]
fn pieces_of_each_other_are_bounded() {
    let file = fixture("tokenizer-scores.gguf");
    let mut whole = ModelFiles::from(&file).vocabulary().unwrap().unwrap();
    make(&whole).unwrap();
    for length in 2..=LONGEST {
        whole.tokens.push("ß".repeat(length));
        whole.kinds.push(TokenKind::Normal);
        whole.scores.push(0.0);
    }
    whole.tokens.push("ß".into());
    whole.kinds.push(TokenKind::Normal);
    whole.scores.push(0.0);
    let error = make(&whole).unwrap_err().to_string();
    assert!(error.contains("more than 64 times the bytes of its tokens"), "{error}");
}

/// transformers would take a class by the type of the model.
#[test]
fn the_class_of_an_exported_tokenizer_is_written() {
    let file = fixture("tokenizer-gpt-2.gguf");
    let tokenizer = Tokenizer::of(&ModelFiles::from(&file)).unwrap();
    let class = tokenizer.config_value("tokenizer_class").and_then(Value::as_str);
    assert_eq!(class, Some("PreTrainedTokenizerFast"));
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
