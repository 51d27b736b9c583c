//! `regard generate` and `score`: stops, lengths, what `--json` tells, settings of a model's folder.

use crate::program::{fails, folder, json, regard};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// The built-in model in a folder, with these settings.
fn shakespeare(test: &str, settings: &str) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/shakespeare");
    let to = folder(test);
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
    fs::write(to.join("generation_config.json"), settings).unwrap();
    to
}

#[test]
fn a_stop_string_ends_the_text_and_is_not_shown() {
    let ask = ["generate", "ROMEO:", "--do-sample=false", "--max-new-tokens", "40"];
    let whole = regard(&ask).out;
    let text = whole.strip_prefix("ROMEO:").unwrap();
    // Two letters that the model writes as two tokens.
    let stop: String = text.chars().skip(10).take(2).collect();
    let want = format!("ROMEO:{}\n", &text[..text.find(&stop).unwrap()]);
    let with = |more: &[&str]| regard(&[&ask[..], &["--stop", &stop], more].concat()).out;
    assert_eq!(with(&[]), want);
    assert_eq!(with(&["--include-stop"]), format!("{}{stop}\n", want.trim_end_matches('\n')));
    let said = json(&[&ask[..], &["--stop", &stop, "--json", "--logprobs", "2"]].concat());
    assert_eq!(said["generated_text"], want[..want.len() - 1]);
    assert_eq!((&said["finish_reason"], &said["prompt_tokens"]), (&"stop".into(), &6.into()));
    let tokens = said["logprobs"].as_array().unwrap();
    assert_eq!(said["completion_tokens"], tokens.len());
    for token in tokens {
        // The best token, as nothing is drawn.
        assert_eq!(token["top_logprobs"].as_array().unwrap().len(), 2);
        assert_eq!(token["top_logprobs"][0]["token"], token["token"]);
        assert_eq!(token["top_logprobs"][0]["logprob"], token["logprob"]);
    }
    let long = json(&[&ask[..], &["--json"]].concat());
    assert_eq!(
        (&long["finish_reason"], &long["completion_tokens"]),
        (&"length".into(), &40.into())
    );
    assert_eq!(long["logprobs"], Value::Null);
    let token: String = text.chars().nth(4).unwrap().to_string();
    let said = json(&[&ask[..], &["--stop-token", &token, "--json"]].concat());
    assert_eq!(said["finish_reason"], "stop");
    assert!(!said["generated_text"].as_str().unwrap()["ROMEO:".len()..].contains(&token));
    let biased = regard(&[&ask[..], &["--logit-bias", "z=1000"]].concat()).out;
    assert_eq!(biased, format!("ROMEO:{}\n", "z".repeat(40)));
    fails(&["generate", "x", "--logit-bias", "z"], &["TOKEN=X"]);
    fails(&["generate", "x", "--logit-bias", "zz=1"], &["logit_bias: \"zz\" is 2 tokens"]);
}

#[test]
fn a_text_beyond_the_context_is_an_error_unless_it_may_be_cut() {
    let long = "To be, or not to be, that is the question. ".repeat(4);
    let numbers = format!("{} tokens, the model's context is 128", long.len());
    fails(&["generate", &long], &[&numbers, "truncate"]);
    fails(&["score", &long], &[&numbers, "truncate", "windows"]);
    let cut = long.len() - 128;
    // The last token to be scored need not be read.
    for (verb, cut) in [("generate", cut), ("score", cut - 1)] {
        let dropped = format!("its first {cut} tokens are dropped");
        let ran = regard(&[verb, &long, "--truncate"]);
        assert!(ran.code == 0 && ran.err.contains(&dropped), "{verb}: {}", ran.err);
    }
    let said = json(&["score", &long, "--truncate", "--json"]);
    assert_eq!(said["truncated_tokens"], cut - 1);
    let said = json(&["score", &long, "--windows", "--json"]);
    assert_eq!(said["tokens"].as_array().unwrap().len(), long.len());
    let said =
        json(&["generate", &long, "--truncate", "--json", "--max-new-tokens", "3", "--n", "2"]);
    assert_eq!((&said["prompt_tokens"], &said["truncated_tokens"]), (&128.into(), &cut.into()));
    assert_eq!(said["alternatives"].as_array().unwrap().len(), 1);
}

#[test]
fn settings_of_the_folder_are_defaults_and_unknown_ones_are_named_once() {
    let settings = r#"{"max_new_tokens": 5, "eos_token_id": [12, 13], "epsilon_cutoff": 0.01,
        "use_cache": true, "num_beam_groups": 1, "stop_strings": "zzz"}"#;
    let model = shakespeare("generation-settings", settings);
    let model = model.to_str().unwrap();
    let ask = ["generate", "ROMEO:", "ROMEO:", "--model", model, "--json"];
    let ran = regard(&ask);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(ran.err.matches("epsilon_cutoff (0.01) is not supported").count(), 1, "{}", ran.err);
    assert!(!ran.err.contains("use_cache") && !ran.err.contains("beam"), "{}", ran.err);
    let first: Value = serde_json::from_str(ran.out.lines().next().unwrap()).unwrap();
    assert!(first["completion_tokens"].as_u64().unwrap() <= 5);
    let said = json(&[
        "generate",
        "R",
        "--model",
        model,
        "--json",
        "--max-new-tokens",
        "7",
        "--logit-bias",
        "13=1000",
    ]);
    assert_eq!((&said["finish_reason"], &said["completion_tokens"]), (&"eos".into(), &1.into()));
}

#[test]
fn the_continuation_matches_a_pattern_or_a_schema() {
    let pattern = r"[A-Z]{3,8}: [a-z ]{10,20}\.";
    let matches = regex::Regex::new(&format!("^ROMEO:(?:{pattern})$")).unwrap();
    for more in [&[][..], &["--do-sample=false"], &["--num-beams", "3"], &["--n", "2"]] {
        let ran = regard(&[&["generate", "ROMEO:", "--regex", pattern], more].concat());
        assert!(ran.code == 0 && !ran.out.is_empty(), "{}", ran.err);
        assert!(ran.out.lines().all(|line| matches.is_match(line)), "{}", ran.out);
    }
    let said = json(&["generate", "ROMEO:", "--regex", pattern, "--json"]);
    assert_eq!(said["finish_reason"], "stop");
    assert!(matches.is_match(said["generated_text"].as_str().unwrap()));
    // The vocabulary has no brackets and no digit but 3.
    let schema = folder("generate-schema").join("schema.json");
    fs::write(&schema, r#"{"type": "integer", "minimum": 30, "maximum": 400}"#).unwrap();
    let schema = schema.to_str().unwrap();
    let said = json(&["generate", "ROMEO:", "--json-schema", schema, "--json"]);
    assert!(
        ["ROMEO:33", "ROMEO:333"].contains(&said["generated_text"].as_str().unwrap()),
        "{said}"
    );
    let inline = r#"{"enum": [true, null]}"#;
    fails(
        &["generate", "x", "--json-schema", inline, "--regex", "a"],
        &["--regex", "--json-schema"],
    );
    fails(&["generate", "x", "--regex", "a(b"], &["regex: unclosed group", "character 2"]);
    fails(&["generate", "x", "--regex", "[0-2]+"], &["regex: no text that matches"]);
    fails(&["generate", "x", "--json-schema", r#"{"not": {}}"#], &["\"not\" is not supported"]);
    fails(&["generate", "x", "--json-schema", "{"], &["--json-schema: not JSON"]);
    fails(&["generate", "x", "--json-schema", "missing.json"], &["missing.json"]);
    let ran = regard(&["generate", "ROMEO:", "--json-schema", inline]);
    assert!(["ROMEO:true\n", "ROMEO:null\n"].contains(&&ran.out[..]), "{} {}", ran.out, ran.err);
}
