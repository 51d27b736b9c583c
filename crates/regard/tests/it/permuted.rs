//! Measuring models that do not translate.

use crate::program::{folder, json, regard};
use serde_json::Value;

const LINES: &str = "the quick brown fox jumps over the lazy dog\n";

/// A recipe over a text of many small documents, in a file.
fn recipe(test: &str) -> (String, String) {
    let here = folder(test);
    let document = |i: usize| format!("{i} {}{LINES}\n", LINES.repeat(1 + i % 3));
    let text: String = (0..60).map(document).collect();
    std::fs::write(here.join("text.txt"), text).unwrap();
    let recipe = format!(
        "name = 'tiny'\ntask = 'permute'\nseed = 1\ncontext = 16\n\
         [data]\nset = 'files'\nfiles = [{:?}]\n[vocabulary]\nkind = 'bytes'\nsize = 290\n\
         [filling]\nspans = 20\n\
         [model]\nmodel_type = 'xlnet'\nd_model = 8\nn_layer = 1\nn_head = 2\nd_inner = 8\n\
         [train]\nsteps = 4\nbatch_tokens = 128\neval_every = 2\nwarmup = 1\n",
        here.join("text.txt")
    );
    let file = here.join("tiny.toml");
    std::fs::write(&file, recipe).unwrap();
    let name = |path: std::path::PathBuf| path.to_str().unwrap().to_string();
    (name(file), name(here.join("run")))
}

#[test]
fn a_model_is_measured_as_it_was_in_training() {
    let (recipe, run) = recipe("eval");
    let trained = json(&["train", &recipe, "--out", &run, "--json"]);
    let measured = json(&["eval", &recipe, "--model", &run, "--json"]);
    assert_eq!(measured["loss"], trained["best"]);
    // The log has the same numbers, at the step that was best.
    let log = std::fs::read_to_string(format!("{run}/metrics.jsonl")).unwrap();
    let logged = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let best = logged.into_iter().find(|line| line["valid_loss"] == measured["loss"]);
    assert_eq!(best.unwrap()["valid_span_loss"], measured["span_loss"]);
    // Other spans are another measure, of the same model.
    let other = ["eval", &recipe, "--model", &run, "--json", "--set", "filling.spans=40"];
    let other = json(&other);
    assert_eq!(other["loss"], measured["loss"]);
    assert_ne!(other["span_loss"], measured["span_loss"]);
    let text = regard(&["eval", &recipe, "--model", &run]).out;
    assert!(text.contains("of files, valid in") && text.contains("span_accuracy"), "{text}");
}
