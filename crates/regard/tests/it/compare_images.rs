//! `compare` of image classifiers tells images apart by their contents.

use crate::images::{SIDE, data, recipe};
use crate::program::{fails, regard};
use regard_tasks::data::idx::to_bytes;
use std::fs;
use std::path::Path;

fn train(folder: &Path) -> String {
    let (recipe, run) = (recipe(folder, ""), folder.join("run"));
    let run = run.to_str().unwrap();
    let short = ["--set", "train.steps=1", "--set", "train.eval_every=1"];
    let ran = regard(&[&["train", &recipe, "--out", run][..], &short].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    run.to_string()
}

#[test]
fn idx_files_of_the_same_name_and_labels_are_not_the_same_images() {
    let [one, copy, other] = ["one", "copy", "other"].map(|n| data(&format!("compare-images-{n}")));
    let pixels: Vec<u8> = (0..48 * SIDE * SIDE).map(|at| (at % 251) as u8).collect();
    let bytes = to_bytes(&[48, SIDE, SIDE], &pixels);
    fs::write(other.join("t10k-images-idx3-ubyte"), bytes).unwrap();
    let [one, copy, other] = [&one, &copy, &other].map(|folder| train(folder));
    let ran = regard(&["compare", &one, &copy]);
    assert_eq!(ran.code, 0, "equal files in two folders: {}", ran.err);
    fails(&["compare", &one, &other], &["were evaluated on different examples, 48 and 48"]);
}
