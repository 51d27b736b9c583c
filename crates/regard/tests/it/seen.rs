//! `eval RUN --data FILE` on examples that the run was trained on says so.

use crate::program::{folder, succeeds_in as at};
use std::fs;

fn rows(from: usize, count: usize) -> String {
    let one = |i: usize| format!("A review with the number {i},{}\n", ["good", "bad"][i % 2]);
    "text,label\n".to_string() + &(from..from + count).map(one).collect::<String>()
}

#[test]
fn a_copy_of_the_training_data_is_noted_with_its_count() {
    let here = folder("seen");
    fs::write(here.join("train.csv"), rows(0, 60)).unwrap();
    let short = ["--set", "train.steps=2", "--set", "train.eval_every=2", "--set"];
    let train = ["train", "classify", "--data", "train.csv", "--quick", "--out", "runs/mine"];
    at(&here, &[&train[..], &short, &["train.warmup=1"]].concat());
    let eval = |file: &str| at(&here, &["eval", "runs/mine", "--data", file]).err;
    fs::write(here.join("copy.csv"), rows(0, 60)).unwrap();
    fs::write(here.join("new.csv"), rows(1000, 60)).unwrap();
    let noted = "48 of 60 examples are in the training part of this run";
    let copy = eval("copy.csv");
    assert!(copy.contains(noted), "{copy}");
    let same = eval("train.csv");
    assert!(same.contains(&format!("the run was trained on train.csv: {noted}")), "{same}");
    let new = eval("new.csv");
    assert!(!new.contains("training part"), "{new}");
    // A run whose copy of the data is gone cannot tell.
    fs::remove_file(here.join("runs/mine/data/train.jsonl")).unwrap();
    let unknown = eval("copy.csv");
    assert!(unknown.contains("trained on these examples is not known"), "{unknown}");
    assert!(unknown.contains("train.jsonl"), "{unknown}");
}
