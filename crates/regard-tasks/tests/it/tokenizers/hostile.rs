//! Untrusted files: an error that names the file, never a panic.

use crate::small::{Dice, Folder};
use regard_tasks::text::Tokenizer;
use serde_json::{Value, json};
use std::fs;

/// Small files with every part that the library knows.
fn good() -> Vec<Value> {
    let token = |id: u32, name: &str| {
        json!({"id": id, "content": name, "single_word": false, "lstrip": false, "rstrip": false,
               "normalized": false, "special": true})
    };
    let template = json!({"type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}},
                   {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}},
                 {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [1], "tokens": ["[CLS]"]}}});
    let replace = json!({"type": "Replace", "pattern": {"Regex": "x+"}, "content": "a"});
    vec![
        json!({"version": "1.0", "truncation": null, "padding": null,
            "added_tokens": [token(0, "[UNK]"), token(1, "[CLS]"), token(5, "new")],
            "normalizer": {"type": "BertNormalizer", "clean_text": true,
                           "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": template,
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
            "model": {"type": "WordPiece", "unk_token": "[UNK]",
                      "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                      "vocab": {"[UNK]": 0, "[CLS]": 1, "a": 2, "##b": 3, "é": 4}}}),
        json!({"version": "1.0", "truncation": {"max_length": 4, "strategy": "LongestFirst",
                                                "stride": 1, "direction": "Right"},
            "padding": {"strategy": {"Fixed": 8}, "direction": "Right", "pad_to_multiple_of": null,
                        "pad_id": 0, "pad_type_id": 0, "pad_token": "<s>"},
            "added_tokens": [token(0, "<s>"), token(1, "</s>")],
            "normalizer": {"type": "Sequence", "normalizers": [
                {"type": "NFKC"}, {"type": "Prepend", "prepend": "a"}, replace.clone(),
                {"type": "Strip", "strip_left": true, "strip_right": true}]},
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": "\\s+"}, "behavior": "Removed",
                 "invert": false},
                {"type": "Digits", "individual_digits": true},
                {"type": "FixedLength", "length": 3},
                {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true,
                 "use_regex": true}]},
            "post_processor": {"type": "Sequence", "processors": [
                {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true},
                {"type": "RobertaProcessing", "sep": ["</s>", 1], "cls": ["<s>", 0],
                 "trim_offsets": true, "add_prefix_space": true}]},
            "decoder": {"type": "Sequence", "decoders": [
                {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true},
                replace.clone(),
                {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
            "model": {"type": "BPE", "dropout": null, "unk_token": "<s>",
                      "continuing_subword_prefix": "", "end_of_word_suffix": "", "fuse_unk": true,
                      "byte_fallback": true, "ignore_merges": false,
                      "vocab": {"<s>": 0, "</s>": 1, "a": 2, "b": 3, "ab": 4, "Ġ": 5, "Ġab": 6},
                      "merges": [["a", "b"], ["Ġ", "ab"]]}}),
        json!({"version": "1.0", "added_tokens": [token(0, "<unk>")],
            "normalizer": {"type": "Sequence", "normalizers": [
                {"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"},
                {"type": "Nmt"}]},
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                {"type": "WhitespaceSplit"}, {"type": "Punctuation", "behavior": "Isolated"},
                {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always",
                 "split": true}, {"type": "UnicodeScripts"}]},
            "decoder": {"type": "Sequence", "decoders": [
                {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always",
                 "split": true}, {"type": "ByteFallback"}, {"type": "Fuse"}]},
            "model": {"type": "Unigram", "unk_id": 0, "byte_fallback": false,
                      "vocab": [["<unk>", 0.0], ["▁", -2.0], ["a", -3.0], ["ab", -3.5]]}}),
        json!({"version": "1.0", "added_tokens": [],
            "pre_tokenizer": {"type": "CharDelimiterSplit", "delimiter": " "},
            "post_processor": {"type": "BertProcessing", "sep": ["b", 1], "cls": ["a", 0]},
            "decoder": {"type": "CTC", "pad_token": "a", "word_delimiter_token": "|",
                        "cleanup": true},
            "model": {"type": "WordLevel", "unk_token": "a", "vocab": {"a": 0, "b": 1}}}),
        json!({"version": "1.0", "pre_tokenizer": {"type": "Whitespace"},
            "decoder": {"type": "BPEDecoder", "suffix": "</w>"},
            "model": {"type": "BPE", "continuing_subword_prefix": "@", "end_of_word_suffix": "</w>",
                      "vocab": {"a": 0, "@b": 1, "ab": 2, "@b</w>": 3, "ab</w>": 4, "a</w>": 5},
                      "merges": ["a @b", "a @b</w>"]}}),
    ]
}

const TEXTS: [&str; 8] = [
    "",
    " ",
    "ab a xx",
    "é 漢字 12345",
    "new[CLS]new",
    "\0\u{301}👨‍👩‍👧 \n",
    "<s></s>",
    "abababab xxx",
];

/// Calls every function of a tokenizer; errors are fine.
fn use_it(tokenizer: &Tokenizer) {
    for text in TEXTS {
        let one = tokenizer.encode(text);
        _ = tokenizer.encode_special(text, Some("ab"));
        _ = tokenizer.encode_within(text, Some("a b"), 4);
        _ = tokenizer.windows("a", Some(text), 6, 1);
        let Ok(one) = one else { continue };
        assert_eq!(one.in_characters(&[text]).len(), one.len());
        _ = tokenizer.decode(&one.ids);
    }
    let ids: Vec<u32> = (0..9).chain([0, u32::MAX]).collect();
    _ = tokenizer.decode(&ids);
    _ = tokenizer.decode(&[]);
    let mut stream = tokenizer.stream();
    ids.iter().for_each(|id| _ = stream.push(*id));
    _ = stream.finish();
    _ = tokenizer.to_json();
}

#[test]
fn good_files_are_read() {
    for file in good() {
        let tokenizer = Tokenizer::from_bytes(file.to_string().as_bytes()).unwrap();
        assert!(!tokenizer.encode("ab a b").unwrap().is_empty());
        use_it(&tokenizer);
    }
}

/// Changes one thing somewhere in a value.
fn change(value: &mut Value, dice: &mut Dice, others: &[Value]) {
    let inner = match value {
        Value::Array(list) if !list.is_empty() && dice.below(8) > 0 => {
            let at = dice.below(list.len());
            match dice.below(12) {
                0 => return drop(list.remove(at)),
                1 => return list.push(list[at].clone()),
                _ => &mut list[at],
            }
        }
        Value::Object(object) if !object.is_empty() && dice.below(12) > 0 => {
            let at = dice.below(object.len());
            let key = object.keys().nth(at).unwrap().clone();
            match dice.below(12) {
                0 => return drop(object.remove(&key)),
                _ => object.get_mut(&key).unwrap(),
            }
        }
        _ => {
            *value = others[dice.below(others.len())].clone();
            return;
        }
    };
    change(inner, dice, others);
}

#[test]
fn changed_files_are_refused_or_read() {
    let mut others: Vec<Value> = serde_json::from_value(json!([
        null, true, false, 0, 1, -1, 2, 4, 7, 100, 4294967295u32, 18446744073709551615u64, 0.5,
        1e300, "", "a", "b", "é", "▁", " ", "ab", "##", "[CLS]", "<unk>", "B", "x*", "(", "\\b",
        "(?=a)", "[]", [], {}, [[]], ["a", "b"], ["a", 0], [["a", 0.0]], {"a": 0}, {"String": ""},
        {"Regex": ""}, {"Regex": "$|^"}, {"type": "Precompiled", "precompiled_charsmap": "AAAA"},
        {"type": "Precompiled"}, {"type": "FixedLength", "length": 0}, {"type": "Sequence"},
    ]))
    .unwrap();
    let files = good();
    for file in &files {
        let parts = ["normalizer", "pre_tokenizer", "post_processor", "decoder", "model"];
        others.extend(parts.iter().map(|part| file[*part].clone()));
    }
    let (mut dice, mut read) = (Dice(7), 0);
    for case in 0..12_000 {
        let mut file = files[case % files.len()].clone();
        for _ in 0..=dice.below(3) {
            let parts = file.as_object_mut().unwrap();
            let at = dice.below(parts.len());
            change(parts.values_mut().nth(at).unwrap(), &mut dice, &others);
        }
        let text = file.to_string();
        // Where this test fails, the last line is the file.
        println!("{text}");
        if let Ok(tokenizer) = Tokenizer::from_bytes(text.as_bytes()) {
            read += 1;
            use_it(&tokenizer);
        }
    }
    assert!(read > 500, "{read} were read");
}

#[test]
fn what_would_stop_the_program_is_named() {
    let folder = Folder::new("hostile");
    let path = folder.0.join("tokenizer.json");
    let deep = |open: &str, close: &str| format!("{}1{}", open.repeat(5000), close.repeat(5000));
    let sequence = deep(r#"{"type":"Sequence","normalizers":["#, "]}");
    let with = |of: usize, place: &str, value: Value| {
        let mut file = good().swap_remove(of);
        *file.pointer_mut(place).unwrap() = value;
        file.to_string()
    };
    let mut misspelt = good().swap_remove(0);
    misspelt["normaliser"] = json!(null);
    let cases = [
        (String::new(), "not a tokenizer.json"),
        ("[]".into(), "it has no model"),
        (misspelt.to_string(), "did you mean 'normalizer'"),
        (deep("[", "]"), "recursion limit"),
        (deep(r#"{"model":"#, "}"), "recursion limit"),
        (format!(r#"{{"version":"1.0","normalizer":{sequence}}}"#), "recursion limit"),
        (with(0, "/model/vocab", json!({})), "vocabulary is empty"),
        (with(2, "/model/vocab", json!([])), "vocabulary is empty"),
        (with(0, "/model/vocab/a", json!(1)), "both have the id 1"),
        (with(0, "/model/vocab/a", json!(-1)), "has the id -1"),
        (with(0, "/model/vocab/a", json!("2")), "has the id \"2\""),
        (with(0, "/model/vocab/a", json!(4294967295_u32)), "need a number below"),
        (with(0, "/added_tokens/2/id", json!(9)), "has the id 9 in the file"),
        (with(0, "/added_tokens/2/id", json!(1)), "has the id 1 in the file"),
        (with(1, "/model/merges/0/1", json!("a")), "it merges \"a\" and \"a\""),
        (with(4, "/model/continuing_subword_prefix", json!("@@@")), "it merges \"a\" and \"@b\""),
        (with(2, "/model/unk_id", json!(99)), "UnkIdNotInVocabulary"),
        (with(1, "/pre_tokenizer/pretokenizers/2/length", json!(0)), "length 0"),
        (with(1, "/decoder/decoders/2/stop", json!(3)), "strips the end"),
        (with(0, "/post_processor/special_tokens", json!({})), "token \"[CLS]\" needs `ids`"),
        (with(0, "/post_processor/special_tokens/[CLS]/ids/0", json!(77)), "id 77"),
        (with(3, "/post_processor/sep/1", json!(77)), "id 77"),
        (with(0, "/post_processor/single/1/Sequence/id", json!("B")), "second text"),
        (
            with(2, "/normalizer", json!({"type": "Precompiled", "precompiled_charsmap": "A"})),
            "base64",
        ),
        (
            with(2, "/normalizer", json!({"type": "Precompiled", "precompiled_charsmap": "BAAA"})),
            "precompiled_charsmap: an offset is out of range",
        ),
    ];
    for (text, message) in cases {
        fs::write(&path, &text).unwrap();
        let error = Tokenizer::load(&folder.0).unwrap_err().to_string();
        let short: String = text.chars().take(200).collect();
        assert!(error.contains("tokenizer.json") && error.contains(message), "{error}\n{short}");
    }
}

/// The library recurses for each step within a step. A test's thread has the two megabytes of
/// stack that other threads have.
#[test]
fn steps_that_are_nested_too_deep_are_refused() {
    let nested = |list: &str, times: usize| {
        let step = match list {
            "processors" => json!({"type": "ByteLevel", "add_prefix_space": true,
                                   "trim_offsets": true, "use_regex": true}),
            "decoders" => json!({"type": "Fuse"}),
            "pretokenizers" => json!({"type": "Whitespace"}),
            _ => json!({"type": "Lowercase"}),
        };
        (0..times).fold(step, |step, _| json!({"type": "Sequence", list: [step]}))
    };
    // Without names of their keys, lists are sequences too.
    let lists = |times: usize| (0..times).fold(json!([]), |list, _| json!([list]));
    for (part, list) in [
        ("normalizer", "normalizers"),
        ("pre_tokenizer", "pretokenizers"),
        ("post_processor", "processors"),
        ("decoder", "decoders"),
    ] {
        let load = |value: Value| {
            let mut file = good().swap_remove(1);
            file[part] = value;
            Tokenizer::from_bytes(file.to_string().as_bytes())
        };
        for (deep, levels) in [(nested(list, 60), 121), (lists(120), 121), (nested(list, 8), 17)] {
            let error = load(deep).unwrap_err().to_string();
            assert!(error.contains(&format!("{part}: its steps are nested {levels}")), "{error}");
        }
        use_it(&load(nested(list, 7)).unwrap());
    }
}

/// The library reads all values of a key, a check of the parsed file only the last one.
#[test]
fn what_a_repeated_key_hides_does_no_harm() {
    let mut file = good().swap_remove(2);
    let short = file["model"].to_string();
    file["model"]["vocab"].as_array_mut().unwrap().push(json!(["(".repeat(40_000), -4.0]));
    let long = file["model"].to_string();
    let both = |first: &str, last: &str| {
        let text = file.to_string();
        text.replace(&format!("\"model\":{long}"), &format!("\"model\":{first},\"model\":{last}"))
    };
    let tokenizer = Tokenizer::from_bytes(both(&long, &short).as_bytes()).unwrap();
    assert_eq!(tokenizer.size(), 4);
    use_it(&tokenizer);
    let error = Tokenizer::from_bytes(both(&short, &long).as_bytes()).unwrap_err().to_string();
    assert!(error.contains("has 40000 bytes"), "{error}");
}

#[test]
fn a_panic_of_the_library_is_an_error() {
    let mut file = good().swap_remove(1);
    file["normalizer"]["normalizers"][2]["pattern"] = json!({"Regex": "(?=a)"});
    let tokenizer = Tokenizer::from_bytes(file.to_string().as_bytes()).unwrap();
    use_it(&tokenizer);
    assert!(TEXTS.iter().any(|text| tokenizer.encode(text).is_err()));
}

#[test]
fn older_files_that_are_broken_are_named() {
    for (name, files, message) in [
        ("none", &[][..], "has no tokenizer: need one of tokenizer.json"),
        ("half", &[("vocab.json", "{}")], "has no tokenizer"),
        ("empty", &[("vocab.txt", "")], "vocab.txt: not a vocabulary of BERT"),
        ("bert", &[("vocab.txt", "a\nb\n")], "\"[UNK]\" is on none of its 2 lines"),
        ("list", &[("vocab.json", "[]"), ("merges.txt", "")], "vocab.json: not an object"),
        ("void", &[("vocab.json", "{}"), ("merges.txt", "")], "vocabulary is empty"),
        ("merge", &[("vocab.json", r#"{"a":0}"#), ("merges.txt", "#version\na\n")], "line 2"),
        ("pair", &[("vocab.json", r#"{"a":0}"#), ("merges.txt", "a a")], "it merges \"a\""),
        ("spiece", &[("spiece.model", "no")], "spiece.model: not a SentencePiece model"),
        ("config", &[("vocab.txt", "[UNK]"), ("tokenizer_config.json", "[1]")], "config.json: not"),
    ] {
        let folder = Folder::new(&format!("broken-{name}"));
        for (file, text) in files {
            fs::write(folder.0.join(file), text).unwrap();
        }
        let error = Tokenizer::load(&folder.0).unwrap_err().to_string();
        assert!(error.contains(message), "{name}: {error}");
    }
}

#[test]
fn replacements_that_make_a_text_grow_without_end_are_refused() {
    let file = |steps: Value| {
        json!({"version": "1.0", "added_tokens": [], "normalizer": steps,
               "model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}})
        .to_string()
    };
    let replace = |pattern: Value, content: &str| json!({"type": "Replace", "pattern": pattern, "content": content});
    let sequence = |step: Value, times: usize| {
        file(json!({"type": "Sequence", "normalizers": vec![step; times]}))
    };
    let twice = replace(json!({"String": "e"}), "ee");
    let error = |text: String| Tokenizer::from_bytes(text.as_bytes()).err().unwrap().to_string();
    let refused = error(sequence(twice.clone(), 28));
    assert!(refused.contains("normalizer") && refused.contains("at most 64 times"), "{refused}");
    assert!(Tokenizer::from_bytes(sequence(twice.clone(), 6).as_bytes()).is_ok());
    let empty = replace(json!({"Regex": "x?"}), &"ab".repeat(40));
    assert!(error(sequence(empty.clone(), 1)).contains("81 times"));
    assert!(error(sequence(replace(json!({"String": ""}), &"e".repeat(64)), 1)).contains("65"));
    let long = json!({"type": "Prepend", "prepend": "▁".repeat(1000)});
    assert!(error(sequence(long, 1)).contains("3000 bytes in front"));
    // Decoders replace too.
    let mut decoding: Value = serde_json::from_str(&file(json!(null))).unwrap();
    decoding["decoder"] = json!({"type": "Sequence", "decoders": vec![twice; 28]});
    assert!(error(decoding.to_string()).contains("decoder: its replacements"));
    // What tokenizers in use have.
    let space = replace(json!({"String": " "}), "▁");
    let spaces = replace(json!({"Regex": " {2,}"}), " ");
    let usual = json!({"type": "Sequence", "normalizers": [space, spaces]});
    assert!(Tokenizer::from_bytes(file(usual).as_bytes()).is_ok());
}
