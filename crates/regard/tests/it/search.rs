//! Files searched by meaning: what is found, and the index beside a file.

use crate::program::{Ran, fails, folder, json, piped, regard};
use regard_models::checkpoint::{self, Array, Precision};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> String {
    format!("{}/../../fixtures/reading/{name}", env!("CARGO_MANIFEST_DIR"))
}

const TEXTS: [&str; 6] = [
    "the cat sat on the mat",
    "",
    "ann is in paris",
    "a very long day and a very long night",
    "bob sees the red house",
    "ann is in paris",
];

/// A folder with a file of texts, and its name.
fn notes(test: &str) -> (PathBuf, String) {
    let here = folder(test);
    let file = here.join("notes.txt");
    fs::write(&file, TEXTS.join("\n")).unwrap();
    (here, file.to_str().unwrap().to_string())
}

fn search(args: &[&str]) -> Ran {
    let ran = regard(&[&["search"], args].concat());
    assert_eq!(ran.code, 0, "{args:?}: {}{}", ran.out, ran.err);
    ran
}

fn results(said: &Value) -> Vec<(u64, f64, String)> {
    let one = |found: &Value| {
        let text = found["text"].as_str().unwrap().to_string();
        (found["line"].as_u64().unwrap(), found["score"].as_f64().unwrap(), text)
    };
    said["results"].as_array().unwrap().iter().map(one).collect()
}

/// Scores are the cosines of what `embed` prints, in order, with equal texts in theirs.
#[test]
fn the_most_similar_lines_come_first() {
    let (_, file) = notes("search");
    let model = fixture("BertModel");
    let query = "Bob is in Paris";
    let said = json(&["search", &file, query, "--model", &model, "--json", "--top-k", "9"]);
    assert_eq!(said["query"], query);
    let found = results(&said);
    assert_eq!(found.len(), 5, "all lines but the empty one: {found:?}");
    let vector = |text: &str| -> Vec<f64> {
        let said = json(&["embed", text, "--normalize", "--model", &model, "--json"]);
        said["embedding"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
    };
    let query = vector(query);
    for (line, score, text) in &found {
        assert_eq!(TEXTS[*line as usize - 1], text);
        let cosine: f64 = vector(text).iter().zip(&query).map(|(a, b)| a * b).sum();
        assert!((cosine - score).abs() < 1e-5, "{text}: {cosine} {score}");
    }
    assert!(found.windows(2).all(|two| two[0].1 >= two[1].1), "{found:?}");
    let paris: Vec<usize> = (0..5).filter(|at| found[*at].2 == TEXTS[2]).collect();
    assert_eq!(paris[0] + 1, paris[1]);
    assert_eq!((found[paris[0]].0, found[paris[1]].0), (3, 6));
    // As text: rank, score, line, text.
    let ran = search(&[&file, "the cat sat on the mat", "--top-k", "2", "--model", &model]);
    let rows: Vec<Vec<&str>> = ran.out.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!((rows.len(), &rows[0][..]), (2, &["1", "1.0000", "1", TEXTS[0]][..]));
    // With several queries, each is above its results.
    let ran = search(&[&file, "ann", "bob", "--top-k", "1", "--model", &model]);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!((lines.len(), lines[0], lines[2], lines[3]), (5, "ann", "", "bob"), "{}", ran.out);
}

#[test]
fn an_index_is_kept_and_made_again_when_it_must_be() {
    let (here, file) = notes("search_index");
    let model = fixture("BertModel");
    let index = here.join("notes.txt.regard-index");
    let base = [file.as_str(), "the cat", "--json", "--model", &model];
    let with = |more: &[&str]| search(&[&base[..], more].concat());
    let first = with(&[]);
    assert!(
        first.err.contains("embedded 5 texts") && first.err.contains("kept in"),
        "{}",
        first.err
    );
    let bytes = fs::read(&index).unwrap();
    // The model was not trained for embeddings, which is told each time, and nothing else.
    let is_quiet = |err: &str| err.lines().count() == 1 && err.contains("trained to embed texts");
    let again = with(&[]);
    assert!(again.out == first.out && is_quiet(&again.err), "{}", again.err);
    assert_eq!(fs::read(&index).unwrap(), bytes);
    // A copy elsewhere is the same file.
    let other = here.join("kept").to_str().unwrap().to_string();
    fs::copy(&index, &other).unwrap();
    let there = with(&["--index", &other]);
    assert!(there.out == first.out && is_quiet(&there.err), "{}", there.err);
    // What has changed is told, and the result is that of the change.
    let cls = with(&["--pooling", "cls"]);
    assert!(cls.err.contains("another pooling") && cls.out != first.out, "{}", cls.err);
    let back = with(&[]);
    assert!(back.err.contains("another pooling") && back.out == first.out, "{}", back.err);
    let masked = fixture("BertForMaskedLM");
    let ran = search(&[&file, "the cat", "--json", "--model", &masked]);
    assert!(ran.err.contains("another model") && ran.out != first.out, "{}", ran.err);
    fs::write(&file, format!("{}\nthe cat", TEXTS.join("\n"))).unwrap();
    let ran = search(&[&file, "the cat", "--json", "--model", &masked]);
    assert!(ran.err.contains("the file has changed"), "{}", ran.err);
    assert_eq!(results(&serde_json::from_str(&ran.out).unwrap())[0].0, 7);
    fs::write(&file, TEXTS.join("\n")).unwrap();
    // A damaged index is made again.
    with(&[]);
    for damage in [&bytes[..bytes.len() - 1], &bytes[..60], &[&bytes[..], b"x"].concat()] {
        fs::write(&index, damage).unwrap();
        let ran = with(&[]);
        assert!(ran.err.contains("making it again") && ran.out == first.out, "{}", ran.err);
        assert_eq!(fs::read(&index).unwrap(), bytes);
    }
    let left: Vec<_> =
        fs::read_dir(&here).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "nothing is left beside: {left:?}");
}

#[test]
fn nothing_but_an_index_is_overwritten() {
    let (here, file) = notes("search_place");
    let model = fixture("BertModel");
    let base = ["search", &file, "the cat", "--model", &model];
    let at = |path: &Path| path.to_str().unwrap().to_string();
    let own = here.join("own.txt");
    fs::write(&own, "my own\n").unwrap();
    fails(&[&base[..], &["--index", &at(&own)]].concat(), &["own.txt", "is another file"]);
    assert_eq!(fs::read(&own).unwrap(), b"my own\n");
    fails(&[&base[..], &["--index", &file]].concat(), &["notes.txt", "is another file"]);
    fails(&[&base[..], &["--index", &at(&here)]].concat(), &["is a folder"]);
    #[cfg(unix)]
    {
        let link = here.join("notes.txt.regard-index");
        std::os::unix::fs::symlink(&own, &link).unwrap();
        fails(&base, &["notes.txt.regard-index", "is a link"]);
        fs::remove_file(&link).unwrap();
        assert_eq!(fs::read(&own).unwrap(), b"my own\n");
        fails(&[&base[..], &["--index", "/dev/null"]].concat(), &["is not a regular file"]);
    }
    // Where nothing can be written, nothing is kept, and the search goes on.
    let nowhere = at(&here.join("none/index"));
    let ran = search(&[&file, "the cat", "--model", &model, "--index", &nowhere]);
    assert!(ran.err.contains("none/index: cannot be written"), "{}", ran.err);
    assert!(ran.err.contains("not cached") && ran.out.lines().count() == 5, "{}", ran.out);
    assert!(!here.join("none").exists() && !here.join("notes.txt.regard-index").exists());
    // Standard input has no index.
    let args = ["search", "-", "the cat", "--model", &model];
    let ran = piped(&args, TEXTS.join("\n").as_bytes());
    assert_eq!(ran.status.code(), Some(0));
    let told = String::from_utf8_lossy(&ran.stderr);
    assert!(told.lines().count() == 1 && told.contains("trained to embed texts"), "{told}");
    assert!(ran.stdout.starts_with(b"1\t"));
}

#[test]
fn a_column_of_a_table_is_searched() {
    let here = folder("search_table");
    let model = fixture("BertModel");
    let put = |name: &str, text: &str| {
        let path = here.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_string()
    };
    let table = put("x.csv", "id,review,ort\n1,\"the cat\nsat\",ann\n2,a red house,bob\n");
    let ask = |file: &str, more: &[&str]| {
        search(
            &[&[file, "a red house", "--json", "--top-k", "1", "--model", &model], more].concat(),
        )
    };
    let line = |ran: &Ran| results(&serde_json::from_str(&ran.out).unwrap())[0].clone();
    let ran = ask(&table, &[]);
    assert!(ran.err.contains("searching column \"review\""), "{}", ran.err);
    assert_eq!((line(&ran).0, &*line(&ran).2), (4, "a red house"));
    let ran = ask(&table, &["--column", "Ort"]);
    assert!(ran.err.contains("another column"), "{}", ran.err);
    assert!(ran.err.contains("searching column \"ort\" of 2 rows"), "{}", ran.err);
    let rows = put(
        "x.jsonl",
        "{\"n\": 1, \"body\": \"the cat\"}\n{\"n\": 2, \"body\": \"a red house\"}\n",
    );
    assert_eq!(line(&ask(&rows, &[])).0, 2);
    let base = ["search", &table, "x", "--model", &model];
    fails(&[&base[..], &["--column", "rewiew"]].concat(), &["x.csv", "did you mean 'review'?"]);
    // Semicolons, a line that names them, and several text columns, as training reads them.
    let rows = "id;title;body\n1;the cat;sat, on\n2;a red;house\n";
    for (name, text) in [("s.csv", rows.to_string()), ("t.csv", format!("sep=;\n{rows}"))] {
        let ran = ask(&put(name, &text), &[]);
        assert!(ran.err.contains("searching column \"title + body\" of 2 rows"), "{}", ran.err);
        assert_eq!(line(&ran).2, "a red house");
    }
    let unclear = put("y.tsv", "eins\tzwei\na\tb\n");
    fails(&["search", &unclear, "x", "--model", &model], &["y.tsv", "--column NAME", "\"zwei\""]);
    // A table whose name does not say so.
    let hidden = put("z.txt", "id;review\n1;the cat sat on the mat\n2;a red house\n");
    let ran = ask(&hidden, &[]);
    assert!(ran.err.contains("looks like a table") && ran.err.contains("--column review"));
    assert_eq!(line(&ask(&hidden, &["--column", "review"])).0, 3);
}

#[test]
fn queries_come_from_standard_input() {
    let (_, file) = notes("search_queries");
    let model = fixture("BertModel");
    let args = ["search", &file, "--json", "--top-k", "1", "--model", &model];
    let ran = piped(&args, b"the cat sat on the mat\n\nann is in paris\n");
    assert_eq!(ran.status.code(), Some(1));
    let lines = String::from_utf8(ran.stdout).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((results(&lines[0])[0].0, results(&lines[2])[0].0), (1, 3));
    assert_eq!(lines[1]["error"], "line 2: the query is empty");
    fails(&["search", "-", "--model", &model], &["standard input", "as arguments"]);
    fails(&["search", &file, " ", "--model", &model], &["text 1", "the query is empty"]);
}

/// A cross-encoder with one label, made of the classifier of the fixtures.
fn cross_encoder(into: &Path) -> String {
    fs::create_dir_all(into).unwrap();
    let from = PathBuf::from(fixture("BertForSequenceClassification"));
    for name in ["vocab.txt", "tokenizer_config.json"] {
        fs::copy(from.join(name), into.join(name)).unwrap();
    }
    let mut config = checkpoint::read_config(&from).unwrap();
    config["id2label"] = serde_json::json!({ "0": "relevant" });
    config["label2id"] = serde_json::json!({ "relevant": 0 });
    let mut weights = checkpoint::read_weights(&from).unwrap();
    for (name, shape) in [("classifier.weight", vec![1, 16]), ("classifier.bias", vec![1])] {
        let count: usize = shape.iter().product();
        let floats = weights[name].floats().unwrap()[..count].to_vec();
        weights.insert(name.into(), Array::new(shape, floats));
    }
    checkpoint::write(into, &config, &weights, Precision::Single).unwrap();
    into.to_str().unwrap().to_string()
}

#[test]
fn the_best_candidates_are_ranked_again() {
    let (here, file) = notes("search_rerank");
    let model = fixture("BertModel");
    let cross = cross_encoder(&here.join("cross"));
    let base = ["search", &file, "ann", "--json", "--model", &model];
    let with = |more: &[&str]| results(&json(&[&base[..], more].concat()));
    let plain = with(&["--top-k", "4"]);
    // The scores are those of `rerank`, of all that are candidates.
    let ranked = with(&["--rerank", &cross, "--candidates", "4", "--top-k", "4"]);
    let lines = |found: &[(u64, f64, String)]| {
        let mut lines: Vec<u64> = found.iter().map(|found| found.0).collect();
        lines.sort_unstable();
        lines
    };
    assert_eq!(lines(&plain), lines(&ranked));
    let texts: Vec<&str> = ranked.iter().map(|found| found.2.as_str()).collect();
    let said = piped(&["rerank", "ann", "--json", "--model", &cross], texts.join("\n").as_bytes());
    let said: Value = serde_json::from_slice(&said.stdout).unwrap();
    for (found, wanted) in ranked.iter().zip(said["results"].as_array().unwrap()) {
        assert!((found.1 - wanted["score"].as_f64().unwrap()).abs() < 1e-6, "{found:?} {wanted}");
    }
    // Of fewer candidates fewer can be found.
    let two = with(&["--rerank", &cross, "--candidates", "2", "--top-k", "2"]);
    assert_eq!(two.len(), 2);
    let embedded = with(&["--rerank", &model]);
    assert_eq!(embedded.len(), 5);
    let few = [&base[..], &["--rerank", &cross, "--candidates", "2"]].concat();
    fails(&few, &["--candidates 2 is below --top-k 5"]);
    fails(&[&base[..], &["--candidates", "9"]].concat(), &["--rerank"]);
    let labels = fixture("BertForSequenceClassification");
    fails(&[&base[..], &["--rerank", &labels]].concat(), &["3 labels does not rank"]);
    fails(&[&base[..], &["--rerank", "en-pos"]].concat(), &["--rerank", "en-pos"]);
    fails(&[&base[..], &["--rerank", "/no/folder"]].concat(), &["--rerank", "/no/folder"]);
}

#[test]
fn what_cannot_be_searched_is_told() {
    let (here, file) = notes("search_refused");
    let model = fixture("BertModel");
    fails(&["search", &file, "x"], &["--model is required", "--model sentence-transformers/"]);
    fails(&["search", &file, "x", "--model", "en-pos"], &["en-pos tags words"]);
    fails(&["search", "/none.txt", "x", "--model", &model], &["/none.txt"]);
    let empty = here.join("empty.txt");
    fs::write(&empty, "\n \n").unwrap();
    let empty = empty.to_str().unwrap();
    fails(&["search", empty, "x", "--model", &model], &["empty.txt", "has no texts"]);
    fails(
        &["search", &file, "x", "--model", &model, "--column", "text"],
        &["notes.txt", "--column: there is no column \"text\""],
    );
    fails(&["search", &file, "x", "--model", &model, "--top-k", "0"], &["--top-k"]);
    fs::write(here.join("latin.txt"), b"caf\xe9\n").unwrap();
    let latin = here.join("latin.txt").to_str().unwrap().to_string();
    fails(&["search", &latin, "x", "--model", &model], &["latin.txt", "line 1: not UTF-8"]);
}
