//! Equal to the tokenizers of transformers, whose outputs are in `fixtures/tokenizers`.

use super::{data, opened, published};
use regard_tasks::text::{Encoding, Tokenizer};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn json(path: impl AsRef<Path>) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn fixture(name: &str) -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tokenizers");
    json(root.join(format!("{name}.json")))
}

fn numbers(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as u32).collect()
}

/// Offsets in characters without spaces at their ends, which GPT-2's offsets in transformers have.
fn trimmed(text: &str, start: usize, end: usize) -> (usize, usize) {
    let slice: Vec<char> = text.chars().skip(start).take(end - start).collect();
    let Some(first) = slice.iter().position(|c| !c.is_whitespace()) else { return (start, end) };
    let last = slice.iter().rposition(|c| !c.is_whitespace()).unwrap();
    (start + first, start + last + 1)
}

fn same(name: &str, got: &Encoding, wanted: &Value, texts: &[&str]) {
    assert_eq!(got.ids, numbers(&wanted["ids"]), "{name} {texts:?} {:?}", got.tokens);
    assert_eq!(got.types, numbers(&wanted["types"]), "{name} {texts:?}");
    let wanted = numbers(&wanted["offsets"]);
    let wanted = wanted.chunks(2).zip(&got.texts).map(|(offset, of)| {
        let text = of.map_or("", |of| texts[of]);
        trimmed(text, offset[0] as usize, offset[1] as usize)
    });
    let wanted: Vec<_> = wanted.collect();
    assert_eq!(got.in_characters(texts), wanted, "{name} {texts:?} {:?}", got.tokens);
    for (at, of) in got.texts.iter().enumerate() {
        assert_eq!(got.special[at], of.is_none(), "{name} {texts:?}");
    }
}

fn compare(name: &str, tokenizer: &Tokenizer) {
    let (texts, golden) = (fixture("texts"), fixture(name));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    for (case, wanted) in golden["singles"].as_array().unwrap().iter().enumerate() {
        let text = text(&texts["texts"][case]);
        let got = tokenizer.encode_special(&text, None).unwrap();
        same(name, &got, wanted, &[&text]);
        if let Some(decoded) = golden["decoded"][case].as_str() {
            assert_eq!(tokenizer.decode(&got.ids).unwrap(), decoded, "{name} {text:?}");
        }
    }
    for (case, wanted) in golden["pairs"].as_array().unwrap().iter().enumerate() {
        let [first, second] = [0, 1].map(|of| text(&texts["pairs"][case][of]));
        let got = tokenizer.encode_special(&first, Some(&second)).unwrap();
        same(name, &got, wanted, &[&first, &second]);
    }
    let context = text(&texts["context"]);
    for case in golden["windows"].as_array().unwrap() {
        let [length, stride] = ["length", "stride"].map(|key| case[key].as_u64().unwrap() as usize);
        let (got, texts) = match case["question"].as_str() {
            Some(question) => (
                tokenizer.windows(question, Some(&context), length, stride),
                vec![question, &context],
            ),
            None => (tokenizer.windows(&context, None, length, stride), vec![&*context]),
        };
        let (got, wanted) = (got.unwrap(), case["rows"].as_array().unwrap());
        assert_eq!(got.len(), wanted.len(), "{name} {length} {stride}");
        for (got, wanted) in got.iter().zip(wanted) {
            same(name, got, wanted, &texts);
        }
    }
    let question = text(&texts["questions"][1]);
    for case in golden["within"].as_array().unwrap() {
        let length = case["length"].as_u64().unwrap() as usize;
        let got = tokenizer.encode_within(&question, Some(&context), length).unwrap();
        same(name, &got, &case["row"], &[&question, &context]);
    }
    let (special, padding) = (tokenizer.special(), tokenizer.padding());
    for (key, got) in [
        ("mask", special.mask),
        ("cls", special.cls),
        ("sep", special.sep),
        ("pad", special.pad),
        ("unk", special.unk),
        ("bos", special.bos),
        ("eos", special.eos),
    ] {
        // Where transformers has no beginning, `[CLS]` is one here.
        let wanted = golden["special"][key].as_u64().map(|id| id as u32);
        assert!(wanted.is_none() || got == wanted, "{name} {key} {got:?}");
    }
    assert_eq!(padding.left, golden["padding_side"] == "left", "{name}");
    // XLNet's padding had a separate token type until version 5 of transformers.
    assert_eq!(padding.of_type, if padding.left { 3 } else { 0 }, "{name}");
    assert_eq!(padding.id, special.pad);
}

#[test]
fn equal_to_transformers_from_the_oldest_files() {
    let Some(root) = data() else { return };
    for (name, tokenizer) in published(&root, "golden") {
        compare(name, &tokenizer);
    }
}

#[test]
fn equal_to_transformers_from_tokenizer_json() {
    let Some(root) = data() else { return };
    // The published one says of `<mask>` that the space before it is no part of it. That space
    // is no token either way, and it is not in trimmed offsets.
    compare("xlnet-base-cased", &Tokenizer::load(root.join("vocab/xlnet-base-cased")).unwrap());
    // What was saved is loaded, by its folder and by its file.
    for (name, tokenizer) in published(&root, "saved") {
        let folder = crate::small::Folder::new(&format!("tokenizer-saved-{name}"));
        tokenizer.save(&folder.0).unwrap();
        compare(name, &Tokenizer::load(&folder.0).unwrap());
        let loaded = Tokenizer::load(folder.0.join("tokenizer.json")).unwrap();
        assert_eq!(loaded.to_json(), tokenizer.to_json());
        assert_eq!(loaded.padding(), tokenizer.padding());
    }
}

#[test]
fn the_files_of_openai_are_those_of_others() {
    let Some(root) = data() else { return };
    let file = |name: &str| root.join("vocab").join(name);
    let files =
        [(file("gpt2-encoder.json"), "encoder.json"), (file("gpt2-vocab.bpe"), "vocab.bpe")];
    compare("gpt2", &opened("openai", &files, ""));
}

#[test]
fn roberta_and_albert_put_their_own_tokens_around_texts() {
    let Some(root) = data() else { return };
    let file = |name: &str| root.join("vocab").join(name);
    // GPT-2's pieces with RoBERTa's names in place of some that no text produces.
    let mut vocabulary = json(file("gpt2-encoder.json"));
    let pieces = vocabulary.as_object_mut().unwrap();
    let names = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"];
    for (id, name) in (pieces.len()..).zip(names) {
        pieces.insert(name.to_owned(), id.into());
    }
    let path = std::env::temp_dir().join(format!("regard-roberta-{}.json", std::process::id()));
    fs::write(&path, vocabulary.to_string()).unwrap();
    let files: [(PathBuf, &str); 2] =
        [(path.clone(), "vocab.json"), (file("gpt2-vocab.bpe"), "merges.txt")];
    for config in ["", r#"{"tokenizer_class": "RobertaTokenizer"}"#] {
        let roberta = opened("roberta", &files, config);
        let got = roberta.encode_special("Hello", Some("a <mask>.")).unwrap();
        // The space before a mask is a part of it.
        let wanted = ["<s>", "Hello", "</s>", "</s>", "a", " <mask>", ".", "</s>"];
        assert_eq!(got.tokens, wanted);
        assert_eq!(got.types, [0; 8]);
        let special = roberta.special();
        assert_eq!(special.cls, special.bos);
        assert_eq!(special.mask, roberta.id("<mask>"));
    }
    // The same files are GPT-2's where the configuration says so.
    let gpt2 = opened("not-roberta", &files, r#"{"tokenizer_class": "GPT2TokenizerFast"}"#);
    assert_eq!(gpt2.encode_special("Hello", None).unwrap().tokens, ["Hello"]);
    fs::remove_file(path).unwrap();

    let albert = opened("albert", &[(file("albert-spiece.model"), "spiece.model")], "");
    let got = albert.encode_special("Hélló", Some("a [MASK] in 2010,")).unwrap();
    let wanted = "[CLS] ▁hello [SEP] ▁a  [MASK] ▁in ▁2010 , [SEP]";
    assert_eq!(got.tokens.join(" "), wanted);
    assert_eq!(got.types, [0, 0, 0, 1, 1, 1, 1, 1, 1]);
    assert!(!albert.padding().left);
}

#[test]
fn all_questions_of_squad_as_bert_cuts_them() {
    let Some(root) = data() else { return };
    let set = root.join("bert-tokenizer-conformance");
    if !set.is_dir() {
        return regard_fuzz::skip("no bert-tokenizer-conformance");
    }
    let questions = json(set.join("question_tokens.json"));
    let ids = json(set.join("tokenized_questions.json"));
    let [(_, bert), ..] = published(&root, "squad");
    let (questions, ids) = (questions.as_array().unwrap(), ids.as_array().unwrap());
    assert_eq!((questions.len(), ids.len()), (10_570, 10_570));
    for (question, ids) in questions.iter().zip(ids) {
        let got = bert.encode(question["original"].as_str().unwrap()).unwrap();
        assert_eq!(got.ids, numbers(ids), "{question}");
        let wanted = question["wordpiece"].as_array().unwrap().iter().map(|t| t.as_str().unwrap());
        assert!(got.tokens.iter().eq(wanted), "{question} {:?}", got.tokens);
    }
}

#[test]
fn xlnets_own_scores_are_the_published_ones() {
    let Some(root) = data() else { return };
    let own = published(&root, "scores").into_iter().next_back().unwrap().1.to_json();
    let own: Value = serde_json::from_str(&own).unwrap();
    let theirs = json(root.join("vocab/xlnet-base-cased/tokenizer.json"));
    assert_eq!(own["model"]["vocab"], theirs["model"]["vocab"]);
    let names = |value: &Value| -> Vec<(Value, Value)> {
        let tokens = value["added_tokens"].as_array().unwrap().iter();
        tokens.map(|token| (token["id"].clone(), token["content"].clone())).collect()
    };
    assert_eq!(names(&own), names(&theirs));
    assert_eq!(own["normalizer"], theirs["normalizer"]);
}
