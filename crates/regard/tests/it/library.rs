//! A run that is made through the library leaves what one of the program leaves.

use crate::program::{folder, regard};
use crate::resume::recipe;
use regard_tasks::train::{RunOptions, TrainOutcome, start};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// JSON without the time that something took.
fn timeless(line: &str) -> String {
    let mut value: Value = serde_json::from_str(line).unwrap();
    value.as_object_mut().expect("an object").remove("seconds");
    value.to_string()
}

/// Every file of a run with its contents, but for times and what follows from them.
fn files(run: &Path, inside: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(inside).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(run, &path, found);
            continue;
        }
        let name = path.strip_prefix(run).unwrap().to_str().unwrap().to_string();
        let text = || fs::read_to_string(&path).unwrap();
        let end = path.file_name().unwrap().to_str().unwrap();
        let (name, contents) = match end {
            "metrics.jsonl" => (name, text().lines().map(timeless).collect::<String>().into()),
            "trainer.json" => (name, timeless(&text()).into()),
            // The names of files; the hash of trainer.json holds a time.
            "SHA256SUMS" => {
                let text = text();
                let names: Vec<&str> =
                    text.lines().filter_map(|line| Some(line.split_once("  ")?.1)).collect();
                (name, names.join("\n").into())
            }
            // The number of the process.
            "run.lock" => (name, vec![]),
            // TensorBoard's files are named by the time, and every record has one.
            end if end.contains("tfevents") => ("events".to_string(), vec![]),
            _ => (name, fs::read(&path).unwrap()),
        };
        found.insert(name, contents);
    }
}

#[test]
fn a_run_of_the_library_is_a_run_of_the_program() {
    let here = folder("library");
    let path = recipe(&here);
    let sets = ["train.steps=12", "train.average=2"];
    let [ours, theirs] = ["library", "program"].map(|name| here.join(name));
    let args = ["train", &path, "--out", theirs.to_str().unwrap(), "--set", sets[0], "--set"];
    let ran = regard(&[&args[..], &[sets[1]]].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    let table = regard_tasks::recipe::read(Path::new(&path), &sets.map(str::to_string)).unwrap();
    let task = regard_tasks::recipe::task(table).unwrap();
    let run = RunOptions { folder: &ours, resume: false, memory: None };
    let outcome = start(&*task, &run, &mut |_| true).unwrap();
    assert!(matches!(outcome, TrainOutcome::Done { step: 12, .. }), "{outcome:?}");
    let all = [&ours, &theirs].map(|run| {
        let mut found = BTreeMap::new();
        files(run, run, &mut found);
        found
    });
    for name in ["recipe.toml", "run.json", "best.json", "metrics.jsonl", "events"] {
        assert!(all[0].contains_key(name), "{name}: {:?}", all[0].keys());
    }
    assert_eq!(all[0].keys().collect::<Vec<_>>(), all[1].keys().collect::<Vec<_>>());
    for (name, contents) in &all[0] {
        assert!(contents == &all[1][name], "{name} differs");
    }
}
