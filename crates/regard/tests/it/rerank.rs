//! Texts ranked by a query: by a cross-encoder, by embeddings, and by a model trained here.

use crate::program::{fails, folder, json, piped, regard};
use std::fmt::Write;

fn fixture(name: &str) -> String {
    format!("{}/../../fixtures/reading/{name}", env!("CARGO_MANIFEST_DIR"))
}

const QUERY: &str = "the cat sat";
const TEXTS: [&str; 3] = ["on the mat", "a dog barked at the cat", "the cat sat on the mat"];

/// Compares the scores of a cross-encoder with the probabilities that `classify` gives to pairs.
fn check_cross_encoder(model: &str) {
    let file = folder("rerank").join("texts.txt");
    std::fs::write(&file, TEXTS.join("\n")).unwrap();
    let ask = ["rerank", QUERY, "--texts", file.to_str().unwrap(), "--model", model, "--json"];
    let results = json(&ask)["results"].as_array().unwrap().clone();
    assert_eq!(results.len(), 3);
    let score = |result: &serde_json::Value| result["score"].as_f64().unwrap();
    assert!(results.windows(2).all(|two| score(&two[0]) >= score(&two[1])), "{results:?}");
    for result in &results {
        let text = TEXTS[result["index"].as_u64().unwrap() as usize];
        assert_eq!(result["text"], text);
        let pair = format!("{QUERY}\t{text}");
        let said = json(&["classify", "--pair", &pair, "--model", model, "--json"]);
        assert_eq!(said["label"], "relevant");
        assert!((score(&said) - score(result)).abs() < 1e-6, "{said} {result}");
    }
    // The same from standard input, the best alone, and as a line.
    let ask = ["rerank", QUERY, "--top-n", "1", "--model", model];
    let out = String::from_utf8(piped(&ask, TEXTS.join("\n").as_bytes()).stdout).unwrap();
    let best = &results[0];
    let (number, text) = (best["index"].as_u64().unwrap() + 1, best["text"].as_str().unwrap());
    assert_eq!(out, format!("{:.4}\t{number}\t{text}\n", score(best)));
}

#[test]
fn embeddings_rank_by_their_cosine() {
    let model = fixture("BertModel");
    let texts = format!("{}\n{QUERY}\n", TEXTS.join("\n"));
    let said = piped(&["rerank", QUERY, "--model", &model, "--json"], texts.as_bytes());
    let said: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
    // The query itself is the most relevant text.
    assert_eq!(said["results"][0]["index"], 3, "{said}");
    assert!((said["results"][0]["score"].as_f64().unwrap() - 1.0).abs() < 1e-5, "{said}");
}

#[test]
fn a_model_of_own_data_is_trained_and_measured() {
    let folder = folder("rerank-learn");
    let colours = ["red", "green", "blue", "white", "black", "brown"];
    let mut table = String::from("query\ttext\tlabel\n");
    for (i, colour) in colours.iter().cycle().take(60).enumerate() {
        let other = colours[(i * 7 + 1) % 6];
        let other = if other == *colour { colours[(i + 1) % 6] } else { other };
        writeln!(table, "which one is {colour} {i}\tthe {colour} one\t1").unwrap();
        writeln!(table, "which one is {colour} {i}\tthe {other} one\t0").unwrap();
    }
    let file = folder.join("pairs.tsv");
    std::fs::write(&file, table).unwrap();
    let (file, run) = (file.to_str().unwrap(), folder.join("run"));
    let run = run.to_str().unwrap();
    let ran = regard(&[
        "train",
        "squad-rerank",
        "--out",
        run,
        "--set",
        &format!("data.train={file}"),
        "--set",
        &format!("from={}", fixture("BertModel")),
        "--set",
        "data.max_tokens=16",
        "--set",
        "train.steps=20",
        "--set",
        "train.eval_every=10",
        "--set",
        "train.batch_tokens=256",
    ]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("queries with"), "{}{}", ran.out, ran.err);
    let said = json(&["eval", "--model", run, "--data", file, "--json"]);
    let mrr = said["mrr"].as_f64().unwrap_or_else(|| panic!("{said}"));
    assert!((0.0..=100.0).contains(&mrr), "{said}");
    // Queries that no text is relevant to cannot be ranked; they are not in the training set.
    let mut table = String::from("query\ttext\tlabel\nwhich one is red\tthe red one\t1\n");
    table += "which one is red\tthe blue one\t0\nwhat is loud\tthe red one\t0\n";
    let some = folder.join("some.tsv");
    let some = some.to_str().unwrap();
    for (more, note) in [
        ("", "1 query excluded: no text is relevant to it"),
        ("who is late\tthe red one\t0\n", "2 queries excluded: no text is relevant to them"),
    ] {
        std::fs::write(some, format!("{table}{more}")).unwrap();
        let ran = regard(&["eval", "--model", run, "--data", some]);
        assert!(ran.code == 0 && ran.out.contains(note), "{}{}", ran.out, ran.err);
        assert!(!ran.out.contains("training set"), "{}", ran.out);
        let said = json(&["eval", "--model", run, "--data", some, "--json"]);
        assert_eq!((&said["asked"], &said["excluded"]), (&1.into(), &0.into()), "{said}");
        assert_eq!(said["note"], note);
    }
    check_cross_encoder(run);
}

#[test]
fn what_cannot_be_ranked_is_told() {
    let model = fixture("BertForSequenceClassification");
    let labels = piped(&["rerank", "q", "--model", &model], b"a\n");
    assert_eq!(labels.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&labels.stderr).contains("3 labels does not rank"));
    let empty = piped(&["rerank", "q", "--model", &model], b"");
    assert_eq!(empty.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&empty.stderr).contains("got no texts"));
    let blank = piped(&["rerank", "q", "--model", &model], b"a\n\nb\n");
    assert!(String::from_utf8_lossy(&blank.stderr).contains("line 2 is empty"));
    fails(&["rerank", "q", "--texts", "/none"], &["--model", "ranks texts", "squad-rerank"]);
    fails(&["rerank", "q", "--texts", "/none", "--model", "en-pos"], &["en-pos tags words"]);
}
