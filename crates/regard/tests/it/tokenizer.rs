//! `regard tokenizer`.

use crate::arrays::write;
use crate::program::{fails, folder, json, regard};

const TEXT: &str = "They are watching.\nThe cat is watching us.\nthey're here!\n";

#[test]
fn a_vocabulary_is_trained_and_used() {
    let folder = folder("tokenizer");
    let text = write(&folder, "text.txt", TEXT.as_bytes());
    for kind in ["word", "bpe", "unigram", "char"] {
        let out = folder.join(format!("{kind}.json"));
        let out = out.to_str().unwrap();
        let args = ["tokenizer", "train", "--kind", kind, "--size", "60", "--out", out, &text];
        let made = json(&[&args[..], &["--json"]].concat());
        assert_eq!(made["lines"], 3);
        assert!(made["size"].as_u64().unwrap() <= 60, "{made}");
        let line = "The cat is watching us.";
        let encoded = json(&["tokenizer", "encode", "--tokenizer", out, "--json", line]);
        let ids: Vec<u64> = serde_json::from_value(encoded["ids"].clone()).unwrap();
        let offsets: Vec<(usize, usize)> =
            serde_json::from_value(encoded["offsets"].clone()).unwrap();
        assert_eq!(offsets.len(), ids.len());
        assert_eq!(encoded["tokens"].as_array().unwrap().len(), ids.len());
        assert_eq!(offsets.last().unwrap().1, line.len(), "{kind}");
        let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
        let back = regard(&["tokenizer", "decode", "--tokenizer", out, &ids.join(" ")]);
        assert_eq!(back.out, format!("{line}\n"), "{kind}");
        let table = regard(&["tokenizer", "encode", "--tokenizer", out, line]);
        assert_eq!(table.out.lines().count(), ids.len() + 1, "{}", table.out);
    }
    let small = folder.join("small.json");
    let small = small.to_str().unwrap();
    let flags = ["--kind", "word", "--size", "60", "--lowercase", "--out", small, &text];
    let ran = regard(&[&["tokenizer", "train"], &flags[..]].concat());
    assert!(ran.code == 0 && ran.out.contains("3 lines"), "{}{}", ran.out, ran.err);
    let encoded = json(&["tokenizer", "encode", "--tokenizer", small, "--json", "THE CAT"]);
    assert_eq!(encoded["tokens"], serde_json::json!(["the", "cat"]));
}

#[test]
fn what_is_wrong_is_named() {
    let folder = folder("tokenizer_wrong");
    let text = write(&folder, "text.txt", TEXT.as_bytes());
    let bad = write(&folder, "bad.txt", b"fine\n\xff\n");
    let out = folder.join("t.json");
    let out = out.to_str().unwrap();
    let train = ["tokenizer", "train", "--out", out];
    let fail = |flags: &[&str], says: &[&str]| fails(&[&train, flags].concat(), says);
    fail(&["--kind", "words", "--size", "60", &text], &["words", "unigram"]);
    fail(&["--kind", "bpe", "--size", "4", &text], &["got 4, need more than 4"]);
    fail(&["--kind", "bpe", "--size", "60", &bad], &["bad.txt", "line 2", "UTF-8"]);
    fail(&["--kind", "bpe", "--size", "60", "no-such.txt"], &["no-such.txt"]);
    assert!(!std::path::Path::new(out).exists(), "nothing is written");
    regard(&[&train[..], &["--kind", "char", "--size", "60", &text]].concat());
    fails(&["tokenizer", "decode", "--tokenizer", out, "1 x"], &["\"x\" is not an id"]);
    fails(&["tokenizer", "decode", "--tokenizer", out, "99999"], &["99999", "need 0 to"]);
    fails(&["tokenizer", "encode", "--tokenizer", &text, "a"], &["not a tokenizer.json"]);
}
