//! `compare` of classifiers: metrics side by side, agreement, significance, differences.

use crate::program::{Ran, command, finish, folder};
use std::fs;
use std::path::Path;

fn at(here: &Path, args: &[&str]) -> Ran {
    let mut command = command(args);
    command.current_dir(here).env_remove("REGARD_DATA");
    finish(command)
}

fn train(here: &Path, name: &str, file: &str, steps: usize) {
    train_with(here, name, file, steps, &[]);
}

fn train_with(here: &Path, name: &str, file: &str, steps: usize, more: &[&str]) {
    let (out, steps) = (format!("runs/{name}"), format!("train.steps={steps}"));
    let short = ["--set", &steps, "--set", "train.eval_every=10", "--set", "train.warmup=1"];
    let args = ["train", "classify", "--data", file, "--quick", "--out", &out];
    let ran = at(here, &[&args[..], &short, more].concat());
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
}

fn rows(word: &str, count: usize) -> String {
    let row = |i: usize| {
        // Nothing tells the labels apart, so that two models differ.
        let label = ["good", "bad"][i * i / 3 % 2];
        format!("{word} kind{} sort{} number{i},{label}\n", i % 7, i % 5)
    };
    "text,label\n".to_string() + &(0..count).map(row).collect::<String>()
}

#[test]
fn two_classifiers_are_compared() {
    let here = folder("compare_classifiers");
    fs::write(here.join("a.csv"), rows("film", 120)).unwrap();
    fs::write(here.join("b.csv"), rows("meal", 90)).unwrap();
    train(&here, "short", "a.csv", 1);
    train(&here, "long", "a.csv", 40);
    train(&here, "other", "b.csv", 40);
    let ran = at(&here, &["compare", "short", "long"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    for part in [
        "accuracy %",
        "F1 %",
        "\nshort ",
        "\nlong ",
        "short and long: the same prediction for ",
        "right: both ",
        "McNemar's exact test: p = ",
        "different predictions:\n1. ",
        "a.csv:",
    ] {
        assert!(ran.out.contains(part), "{part:?}: {}", ran.out);
    }
    let found: serde_json::Value =
        serde_json::from_str(&at(&here, &["compare", "short", "long", "--json"]).out).unwrap();
    let (models, pair) = (&found["models"], &found["pairs"][0]);
    let count = |key: &str| pair[key].as_u64().unwrap();
    let [both, first, second, none] =
        ["both_right", "only_first_right", "only_second_right", "both_wrong"].map(count);
    let asked = models[0]["asked"].as_u64().unwrap();
    assert_eq!(both + first + second + none, asked);
    let accuracy = |at: usize| models[at]["accuracy"].as_f64().unwrap();
    let share = |right: u64| 100.0 * right as f64 / asked as f64;
    assert!((accuracy(0) - share(both + first)).abs() < 1e-9, "{found}");
    assert!((accuracy(1) - share(both + second)).abs() < 1e-9, "{found}");
    // A run beside itself.
    let found = at(&here, &["compare", "long", "long"]).out;
    assert!(found.contains("for 100.00 %") && found.contains("p = 1.0000"), "{found}");
    // Other data: a file for both is needed.
    let ran = at(&here, &["compare", "long", "other"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.err.contains("different examples") && ran.err.contains("--data FILE"),
        "{}",
        ran.err
    );
    let ran = at(&here, &["compare", "long", "other", "--data", "b.csv"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
}

/// Two files with equal labels in equal order are still two files.
#[test]
fn classifiers_of_different_texts_are_not_compared() {
    let here = folder("compare_same_labels");
    fs::write(here.join("a.csv"), rows("film", 60)).unwrap();
    for (name, word) in [("one", "play"), ("two", "meal")] {
        let test = format!("{name}.csv");
        fs::write(here.join(&test), rows(word, 20)).unwrap();
        train_with(&here, name, "a.csv", 1, &["--test", &test]);
    }
    let ran = at(&here, &["compare", "one", "two"]);
    assert_eq!(ran.code, 2, "{}{}", ran.out, ran.err);
    let told = "one and two were evaluated on different examples, 20 and 20";
    assert!(ran.err.contains(told), "{}", ran.err);
    assert!(ran.err.contains("regard compare one two --data FILE"), "{}", ran.err);
    let ran = at(&here, &["compare", "one", "two", "--data", "one.csv"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
}

#[test]
fn what_is_not_compared_is_told_with_a_command() {
    let here = folder("compare_others");
    let ran = at(&here, &["compare", "shakespeare-gpt", "shakespeare-gpt"]);
    assert_eq!(ran.code, 2);
    let told = "regard eval shakespeare-gpt; regard eval shakespeare-gpt";
    assert!(ran.err.contains(told), "{}", ran.err);
    let ran = at(&here, &["compare", "sst2-words", "multi30k-transformer"]);
    let told = "sst2-words is for the task classify, and multi30k-transformer for translate";
    assert!(ran.code == 2 && ran.err.contains(told), "{}", ran.err);
}
