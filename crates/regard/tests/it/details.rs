//! Details of evaluations: labels, confusions, worst examples.

use crate::program::{folder, json, regard};
use crate::tiny;
use regard_tasks::data::idx::to_bytes;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A classifier of two labels that was trained for a moment, in a folder with its data.
fn classifier(test: &str) -> PathBuf {
    let home = folder(test);
    for (part, from, count) in [("train", 0, 12), ("valid", 12, 6), ("test", 18, 14)] {
        let line = |i: usize| format!("text number {i} of many\t{}\n", ["bad", "good"][i % 2]);
        let text: String = (from..from + count).map(line).collect();
        fs::write(home.join(format!("{part}.tsv")), text).unwrap();
    }
    let data = |part: &str| format!("{part} = '{}'\n", home.join(format!("{part}.tsv")).display());
    let recipe = format!(
        "name = 'labels'\ntask = 'classify'\nseed = 4\n[data]\nset = 'files'\n{}{}{}\
         max_tokens = 16\n[model]\nmodel_type = 'bert'\nhidden_size = 16\nnum_hidden_layers = 1\n\
         num_attention_heads = 2\nintermediate_size = 16\nmax_position_embeddings = 32\n\
         [vocabulary]\nkind = 'wordpiece'\nsize = 100\n\
         [train]\nsteps = 2\neval_every = 2\nlog_every = 1\nlr = 1e-3\n",
        data("train"),
        data("valid"),
        data("test"),
    );
    fs::write(home.join("labels.toml"), recipe).unwrap();
    let ran = regard(&["train", &at(&home, "labels.toml"), "--out", &at(&home, "run")]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    home
}

fn at(home: &Path, name: &str) -> String {
    home.join(name).to_str().unwrap().to_string()
}

fn numbers(list: &Value, key: &str) -> Vec<f64> {
    let list = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    list.iter()
        .map(|each| each[key].as_f64().unwrap_or_else(|| panic!("no {key}: {each}")))
        .collect()
}

/// Numbers of a confusion matrix: all, and those that are right.
fn counts(details: &Value) -> (u64, u64) {
    let rows: Vec<Vec<u64>> = serde_json::from_value(details["confusion"].clone()).unwrap();
    let right = rows.iter().enumerate().map(|(at, row)| row[at]).sum();
    (rows.iter().flatten().sum(), right)
}

#[test]
fn labels_and_confusions_agree_with_the_metrics() {
    let home = classifier("details_labels");
    let run = at(&home, "run");
    let said = json(&["eval", &run, "--json"]);
    let details = &said["details"];
    let names: Vec<&str> = details["labels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| l["label"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["bad", "good"]);
    assert_eq!(numbers(&details["labels"], "support"), [7.0, 7.0]);
    let (all, right) = counts(details);
    assert_eq!(all, 14);
    let accuracy = 100.0 * right as f64 / all as f64;
    assert!((said["accuracy"].as_f64().unwrap() - accuracy).abs() < 1e-9, "{said:#}");
    let f1 = numbers(&details["labels"], "f1").iter().sum::<f64>() / 2.0;
    assert!((said["f1"].as_f64().unwrap() - f1).abs() < 1e-9, "{said:#}");
    let worst = &details["worst"];
    let probabilities = numbers(worst, "probability");
    assert_eq!(probabilities.len(), 10);
    assert!(probabilities.is_sorted(), "{probabilities:?}");
    // Numbers are those of the lines in the file.
    for each in worst.as_array().unwrap() {
        let number = 17 + each["number"].as_u64().unwrap();
        assert_eq!(each["text"], format!("text number {number} of many"));
        assert_eq!(each["label"], ["bad", "good"][number as usize % 2]);
    }
    let text = regard(&["eval", &run, "--details"]).out;
    for part in [
        "accuracy",
        "label  precision  recall",
        "confusion matrix: rows are true labels",
        "worst examples, by loss of the true label:",
        "\n5. ",
        "text number ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let short = regard(&["eval", &run]).out;
    assert!(!short.contains("precision") && !short.contains("worst"), "{short}");
    // The metrics are printed alike, but for the time.
    let lines = |text: &str| text.lines().skip(1).take(3).map(String::from).collect::<Vec<_>>();
    assert_eq!(lines(&text), lines(&short));
}

#[test]
fn translations_are_shown_with_their_references() {
    let model = tiny::model("details_translations", tiny::TRANSFORMER);
    let file = folder("details_pairs").join("pairs.tsv");
    let pairs: String = (0..12).map(|i| format!("Go on {i}!\tContinuez {i} !\n")).collect();
    fs::write(&file, pairs).unwrap();
    let file = file.to_str().unwrap();
    let said = json(&["eval", "--model", &model, "--data", file, "--json"]);
    let worst = &said["details"]["worst"];
    let scores = numbers(worst, "score");
    assert!(scores.len() == 10 && scores.is_sorted(), "{scores:?}");
    assert_eq!(said["details"]["worst_by"], "chrF2 of the sentence");
    for each in worst.as_array().unwrap() {
        let number = each["text"].as_str().unwrap().trim_matches(|c: char| !c.is_ascii_digit());
        assert_eq!(each["reference"], format!("Continuez {number} !"));
        assert!(each["hypothesis"].is_string(), "{each}");
    }
    let text = regard(&["eval", "--model", &model, "--data", file, "--details"]).out;
    for part in
        ["worst examples, by chrF2 of the sentence:\n1. ", "   input      Go on", "   output "]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn built_in_models_have_details_too() {
    let home = folder("details_built_in");
    let words =
        "1\tThey\tthey\tPRON\t_\t_\t0\troot\t_\t_\n2\tsleep\tsleep\tNOUN\t_\t_\t1\tdep\t_\t_\n\n";
    fs::write(home.join("words.conllu"), words).unwrap();
    let file = at(&home, "words.conllu");
    let said = json(&["eval", "--model", "en-pos", "--data", &file, "--json"]);
    let (all, right) = counts(&said["details"]);
    assert_eq!((all, 100.0 * right as f64 / 2.0), (2, said["accuracy"].as_f64().unwrap()));
    let worst = &said["details"]["worst"][0];
    assert_eq!((&worst["label"], &worst["text"]), (&"NOUN".into(), &"They [sleep]".into()));

    let images = home.join("t10k-images-idx3-ubyte");
    fs::write(&images, to_bytes(&[3, 28, 28], &[90; 3 * 784])).unwrap();
    fs::write(home.join("t10k-labels-idx1-ubyte"), to_bytes(&[3], &[0, 5, 9])).unwrap();
    let file = images.to_str().unwrap();
    let said = json(&["eval", "--model", "clothes", "--data", file, "--json"]);
    let (all, right) = counts(&said["details"]);
    assert_eq!(all, 3);
    assert!((said["accuracy"].as_f64().unwrap() - 100.0 * right as f64 / 3.0).abs() < 1e-9);
    let worst = said["details"]["worst"][0]["text"].as_str().unwrap();
    assert!(worst.starts_with("image ") && worst.ends_with("t10k-images-idx3-ubyte"), "{worst}");
    let text = regard(&["eval", "--model", "clothes", "--data", file, "--details"]).out;
    assert!(text.contains("confusion matrix: rows are"), "{text}");

    // Points have no labels.
    fs::write(home.join("points.txt"), "0 0 1 0 1 1 0 1 0.5 0.4 output 1 2 3 4 1\n").unwrap();
    let file = at(&home, "points.txt");
    let ran = regard(&["eval", "--model", "hull", "--data", &file, "--details"]);
    assert!(ran.code == 0 && ran.err.contains("--details: point has none"), "{}", ran.err);
    assert!(json(&["eval", "--model", "hull", "--data", &file, "--json"])["details"].is_null());
}
