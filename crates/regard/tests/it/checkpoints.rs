//! The verbs that look at checkpoints and their speed.

use crate::program::{fails, folder, json, regard};
use std::path::Path;

/// A golden model of `fixtures/make/texts.py`.
fn golden(name: &str) -> String {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/texts");
    all.join(name).to_str().unwrap().to_string()
}

#[test]
fn a_checkpoint_says_what_was_recorded() {
    let model = golden("bert-ForPreTraining");
    let ran = regard(&["verify", &model]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    for what in ["layer.2", "attention.1", "logits", "follows", "all within 1e-4"] {
        assert!(ran.out.contains(what), "{}", ran.out);
    }
    // Nothing is exactly the same, so that the answer to this is no.
    let ran = regard(&["verify", &model, "--tolerance", "0", "--json"]);
    let said: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.code, &said["good"]), (1, &false.into()));
    assert!(said["differences"][0]["relative"].as_f64().unwrap() < 1e-4);
    let other = golden("xlnet-LMHeadModel/said.safetensors");
    let ran = regard(&["verify", &golden("bert-Model"), "--expected", &other]);
    assert_eq!(ran.code, 1, "{}", ran.out);
    // Former name of the flag.
    fails(&["verify", &model, "--said", "nothing"], &["nothing"]);
}

#[test]
fn a_checkpoint_is_told_in_words() {
    let text = regard(&["inspect", &golden("gpt2-scaled-LMHeadModel")]).out;
    for part in ["GPT2LMHeadModel (gpt2)", "vocabulary of 23", "up to 12 tokens", "2 heads of 4"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(text.contains("attention 1: ") && text.contains("scaled by"), "{text}");
    let text = regard(&["inspect", &golden("bert-Model"), "--tensors"]).out;
    assert!(text.contains("attention 0 to 1") && text.contains("pooler.dense.bias"), "{text}");
    let said = json(&["inspect", &golden("xlnet-Model"), "--json"]);
    assert_eq!((&said["model_type"], &said["longest"]), (&"xlnet".into(), &().into()));
    assert_eq!(said["attention"].as_array().unwrap().len(), 2);
    for (name, part) in
        [("en-fr", "vocabulary of 8000"), ("stories", "the same layer"), ("digits", "sounds")]
    {
        let text = regard(&["inspect", name]).out;
        assert!(text.contains(part), "{text}");
    }
    let strange = folder("inspect-strange");
    std::fs::write(strange.join("config.json"), r#"{"model_type": "mamba"}"#).unwrap();
    fails(&["inspect", strange.to_str().unwrap()], &["mamba", "bert", "bahdanau"]);
}

#[test]
fn reading_writing_and_learning_have_a_speed() {
    let model = golden("gpt2-LMHeadModel");
    let time = |more: &[&str]| {
        let fixed = ["bench", "texts", "--model", &model, "--rounds", "1", "--json"];
        json(&[&fixed, more].concat())
    };
    let said = time(&["--batch", "3", "--tokens", "9", "--ragged"]);
    assert_eq!((said["tokens"].as_u64(), &said["writing"]), (Some(18), &().into()));
    let said = time(&["--mode", "generate", "--tokens", "3", "--new-tokens", "2"]);
    assert!(said["writing"]["share_of_bandwidth"].as_f64().unwrap() > 0.0);
    // Former names of the flag and its value.
    assert!(time(&["--do", "learn", "--tokens", "4"])["ms"].as_f64().unwrap() > 0.0);
    let long = ["bench", "texts", "--model", &model, "--tokens", "99"];
    fails(&long, &["99 tokens", "12"]);
}
