//! `--adapter`, and `train --lora`.

use crate::program::{fails, folder, json, regard};
use std::fs;

/// Runs the program, which must succeed, and returns what it printed.
fn runs(args: &[&str]) -> String {
    let ran = regard(args);
    assert_eq!(ran.code, 0, "{args:?}: {}{}", ran.out, ran.err);
    ran.out
}

#[test]
fn a_language_model_is_adapted_used_and_merged_as_the_program_says() {
    let home = folder("adapters");
    let place = |name: &str| home.join(name).to_str().unwrap().to_string();
    let (base, run, text) = (place("base"), place("run"), place("text.txt"));
    runs(&["models", "export", "shakespeare", "--out", &base]);
    fs::write(&text, "The dog barks at the cat. The cat does not bark.\n".repeat(400)).unwrap();
    let short = ["train.steps=6", "train.eval_every=3", "train.warmup=1", "train.lr=0.01"];
    let short = short.map(|key| ["--set", key]).concat();
    let train = ["train", "generate", "--data", &text, "--from", &base, "--out", &run, "--quick"];
    let lora = ["--lora", "2", "--lora-alpha", "8", "--lora-targets", "c_attn,mlp.c_proj"];
    let out = runs(&[&train[..], &lora, &short].concat());
    for part in ["it is a LoRA adapter, as PEFT reads it", "models export", "loss"] {
        assert!(out.contains(part), "{out}");
    }
    let adapter = home.join("run/model");
    let config = fs::read(adapter.join("adapter_config.json")).unwrap();
    let config: serde_json::Value = serde_json::from_slice(&config).unwrap();
    for (key, value) in [("r", "2"), ("lora_alpha", "8.0"), ("fan_in_fan_out", "true")] {
        assert_eq!(config[key].to_string(), value, "{key}");
    }
    assert!(!adapter.join("model.safetensors").exists());
    // The three ways that the program names give one model.
    let merged = place("merged");
    runs(&["models", "export", &run, "--out", &merged]);
    let score = |args: &[&str]| {
        let said = json(&[&["score", "The dog barks.", "--json"], args].concat());
        said["logprob"].as_f64().unwrap()
    };
    let own = score(&["--model", &run]);
    assert_eq!(own, score(&["--model", &base, "--adapter", adapter.to_str().unwrap()]));
    assert_eq!(own, score(&["--model", &base, "--adapter", &run]));
    assert_eq!(own, score(&["--model", &merged]));
    assert!(own > score(&["--model", &base]) + 1.0);
    // Updates are added to floating point, which is then quantised.
    let near = score(&["--model", &base, "--adapter", &run, "--storage", "int8"]);
    assert!((near - own).abs() < 1.0 && near != own, "{near} {own}");
    fails(
        &["score", "a", "--model", "builtin:shakespeare", "--adapter", &run],
        &["is quantised", "regard models export"],
    );
    let other =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/adapters/llama-patterns/adapter");
    fails(
        &["score", "a", "--model", &base, "--adapter", other],
        &["has an update of model.layers.0", "the adapter is for another model"],
    );
    fails(
        &["score", "a", "--model", &base, "--adapter", &base],
        &["--adapter", "holds no adapter: need one with adapter_config.json"],
    );
    fails(&["models", "--adapter", &run], &["--adapter"]);
}

#[test]
fn what_trains_no_adapter_says_what_does() {
    let home = folder("adapters-refused");
    let table = home.join("table.csv");
    let row = |i: usize| format!("a text {i},{}\n", ["x", "y"][i % 2]);
    let rows = "text,label\n".to_string() + &(0..30).map(row).collect::<String>();
    fs::write(&table, rows).unwrap();
    let table = table.to_str().unwrap();
    fails(
        &["train", "classify", "--data", table, "--lora", "4"],
        &["--lora: classify trains all weights", "regard train generate --data FILE --from MODEL"],
    );
    fails(&["train", "sort-10", "--lora", "4"], &["--lora: point trains all weights"]);
    fails(
        &["train", "shakespeare-gpt", "--lora", "4"],
        &["lora: is an adapter of the model in `from`"],
    );
}
