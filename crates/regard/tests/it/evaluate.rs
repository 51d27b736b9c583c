//! `regard eval` of every task, and what a run leaves behind.

use crate::program::{Ran, fails, folder, json, regard};
use crate::tiny;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

const MODEL: &str = "[model]\nmodel_type = 'bert'\nhidden_size = 16\nnum_hidden_layers = 1\n\
    num_attention_heads = 2\nintermediate_size = 16\nmax_position_embeddings = 32\n\
    [vocabulary]\nkind = 'wordpiece'\nsize = 100\n\
    [train]\nsteps = 2\neval_every = 2\nlog_every = 1\nlr = 1e-3\n";

/// A recipe that learns to label texts, in a folder of its own.
fn classifier(test: &str) -> PathBuf {
    let home = folder(test);
    for (part, from) in [("train", 0), ("valid", 8), ("test", 12)] {
        let line = |i: usize| format!("text number {i} of many\t{}\n", ["bad", "good"][i % 2]);
        let text: String = (from..from + 6).map(line).collect();
        fs::write(home.join(format!("{part}.tsv")), text).unwrap();
    }
    let data = |part: &str| format!("{part} = '{}'\n", home.join(format!("{part}.tsv")).display());
    let text = format!(
        "name = 'labels'\ntask = 'classify'\nseed = 4\n[data]\nset = 'files'\n{}{}{}\
         max_tokens = 16\n{MODEL}",
        data("train"),
        data("valid"),
        data("test"),
    );
    fs::write(home.join("labels.toml"), text).unwrap();
    home
}

fn at(home: &Path, name: &str) -> String {
    home.join(name).to_str().unwrap().to_string()
}

fn train(home: &Path, more: &[&str]) -> Ran {
    let (recipe, run) = (at(home, "labels.toml"), at(home, "run"));
    regard(&[&["train", &recipe, "--out", &run], more].concat())
}

#[test]
fn a_run_is_measured_by_its_own_recipe() {
    let home = classifier("eval_run");
    assert_eq!(train(&home, &[]).code, 0);
    let (recipe, run) = (at(&home, "labels.toml"), at(&home, "run"));
    let log = fs::read_to_string(home.join("run/metrics.jsonl")).unwrap();
    let logged = |name: &str| -> f64 {
        let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter_map(|line| line[name].as_f64()).next_back().unwrap()
    };
    let valid = json(&["eval", &run, "--part", "valid", "--json"]);
    for (name, logged) in [("accuracy", logged("valid_accuracy")), ("f1", logged("valid_f1"))] {
        assert!((valid[name].as_f64().unwrap() - logged).abs() < 1e-9, "{valid}");
    }
    for (key, wanted) in [("name", "labels"), ("task", "classify"), ("part", "valid")] {
        assert_eq!(valid[key], wanted);
    }
    assert_eq!((&valid["asked"], &valid["unit"]), (&6.into(), &"texts".into()));
    assert!(valid["parameters"].as_u64().unwrap() > 1000 && valid["seconds"].is_number());
    // The recipe and the model apart, the run alone, its model's folder: all the same.
    let test = json(&["eval", &recipe, "--model", &run, "--json"]);
    assert_eq!(test["part"], "test");
    for args in [[&run, "--json"].to_vec(), ["--model", &at(&home, "run/model"), "--json"].to_vec()]
    {
        let other = json(&[&["eval"], &args[..]].concat());
        assert_eq!((&other["accuracy"], &other["part"]), (&test["accuracy"], &test["part"]));
    }
    let text = regard(&["eval", &run]).out;
    for part in ["labels: 6 texts of files, test", "accuracy", "% of texts", "macro-F1"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_model_is_measured_on_a_file() {
    let home = classifier("eval_file");
    assert_eq!(train(&home, &[]).code, 0);
    // A model that left its run behind.
    fs::rename(home.join("run/model"), home.join("alone")).unwrap();
    let (alone, file) = (at(&home, "alone"), at(&home, "test.tsv"));
    let said = json(&["eval", "--model", &alone, "--data", &file, "--json"]);
    assert_eq!((&said["asked"], &said["data"]), (&6.into(), &file.as_str().into()));
    assert!(said["part"].is_null() && said["accuracy"].is_number());
    fails(&["eval"], &["need a recipe"]);
    fails(&["eval", "--model", &alone], &["without a recipe", "--data FILE"]);
    fails(&["eval", &alone], &["holds no recipe.toml"]);
    fails(&["eval", "--model", &alone, "--data", "no/such.tsv"], &["--data", "no/such.tsv"]);
    fails(
        &["eval", "--model", &alone, "--data", "nothing"],
        &["--data", "nothing", "sst2-phrases"],
    );
    fails(
        &["eval", "--model", &alone, "--data", &file, "--part", "test"],
        &["--part", "as a whole"],
    );
    fails(&["eval", "--model", &alone, "--data", &file, "--save", "x"], &["translations"]);
    fails(&["eval", "no-such.toml"], &["no-such.toml"]);
}

#[test]
fn translations_are_measured_on_a_file_too() {
    let model = tiny::model("eval_translations", tiny::TRANSFORMER);
    let file = folder("eval_pairs").join("pairs.tsv");
    fs::write(&file, "They are watching.\tIls regardent.\nGo on!\tContinuez !\n").unwrap();
    let file = file.to_str().unwrap();
    let said = json(&["eval", "--model", &model, "--data", file, "--json"]);
    assert_eq!((&said["sentences"], &said["task"]), (&2.into(), &"translate".into()));
    assert!(said["bleu"].is_number() && said["chrf"].is_number(), "{said}");
    // What ships knows its recipe.
    let said = json(&["eval", "--model", "en-fr", "--data", file, "--json"]);
    assert_eq!(said["name"], "tatoeba-en-fr-transformer");
    assert!(said["chrf"].as_f64().unwrap() > 50.0, "{said}");
}
