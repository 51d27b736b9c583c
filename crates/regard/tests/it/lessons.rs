//! Lessons, vectors of words, and comparisons, through the program.

use crate::program::{fails, folder, json, regard};
use serde_json::Value;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("a number, not {value}"))
}

#[test]
fn the_lesson_about_pooling_computes_draws_and_tells() {
    let place = folder("lesson");
    let svg = place.join("lesson.svg").display().to_string();
    let ran = regard(&["attend", "--lesson", "pooling", "--svg", &svg]);
    assert!(ran.code == 0 && ran.err.starts_with(&format!("wrote {svg}, ")), "{}", ran.err);
    for part in ["average pooling", "max pooling", "fully connected", "learned width", "●", "█"]
    {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    assert!(ran.out.lines().all(|line| line.chars().count() <= 100), "{}", ran.out);
    let picture = std::fs::read_to_string(&svg).unwrap();
    // Two maps of fifty queries and fifty points, below the curves.
    assert_eq!(picture.matches("<rect class=\"cell\"").count(), 2 * 50 * 50);
    assert!(picture.contains("<polyline") && picture.contains("What is y at x?"));
    let document = json(&["attend", "--lesson", "pooling", "--seed", "5", "--json"]);
    let methods = document["methods"].as_array().unwrap();
    let error = |name: &str| {
        let found = methods.iter().find(|method| method["name"] == name).unwrap();
        number(&found["error"])
    };
    assert!(error("Gaussian, learned width") < error("Gaussian, width 1"));
    assert!(error("Gaussian, width 1") < error("average pooling"));
    assert_eq!(document["learning"].as_array().unwrap().len(), 200);
    assert_eq!(json(&["attend", "--lesson", "pooling", "--seed", "5", "--json"]), document);
    fails(&["attend", "--lesson", "pooling", "--demo"], &["--lesson", "--demo"]);
    for (flag, value) in [("--head", "1"), ("--batch", "1"), ("--rows", "0:2"), ("--keys", "1")] {
        let told = format!("attend --lesson: leave out {flag}: a lesson draws all of its own data");
        fails(&["attend", "--lesson", "pooling", flag, value], &[&told]);
    }
    fails(&["attend", "--lesson", "flying"], &["flying", "pooling"]);
}

#[test]
fn regression_is_measured_beside_its_exponentials() {
    let place = folder("regression").display().to_string();
    let args = ["--points", "3000", "--queries", "200", "--repeat", "2", "--save", &place];
    let found = json(&[&["bench", "regression", "--json"][..], &args].concat());
    assert_eq!(found["pairs"], 600_000);
    assert!(number(&found["ratio_to_exp"]) > 0.0 && number(&found["median_ms"]) > 0.0);
    let said = std::fs::read(format!("{place}/predictions")).unwrap();
    assert_eq!(said.len(), 4 * 200);
    fails(&["bench", "regression", "--points", "0", "--queries", "1"], &["--points", "0"]);
    let bad = ["bench", "regression", "--points", "5", "--queries", "1", "--width", "-1"];
    fails(&bad, &["--width"]);
    fails(&[&bad[..6], &["--width=-1"]].concat(), &["--width", "positive"]);
}

const VECTORS: &str = "man 1 0 0.1\nwoman 0 1 0.1\nking 1 0 1\nqueen 0 1 1\napple 0.5 0.5 -1\n";

fn vectors(test: &str) -> String {
    let file = folder(test).join("vectors.txt");
    std::fs::write(&file, VECTORS).unwrap();
    file.display().to_string()
}

#[test]
fn words_have_neighbours_and_stand_in_proportion() {
    let file = vectors("word_vectors");
    let of = ["--vectors", &file];
    let ran = regard(&[&["embed", "--words", "king", "--nearest", "2"][..], &of].concat());
    assert_eq!((ran.code, &*ran.err), (0, ""));
    assert_eq!(ran.out, "king\n  0.7740  man\n  0.5000  queen\n");
    let said = json(&[&["embed", "--json", "--analogy", "man", "king", "woman"][..], &of].concat());
    assert_eq!(said["analogy"]["said"][0]["word"], "queen");
    let ran = regard(&[&["embed", "--words", "man", "woman"][..], &of].concat());
    assert_eq!(ran.out, "1 0 0.1\n0 1 0.1\n");
    let said =
        json(&[&["embed", "--json", "--one-hot", "--words", "man", "king"][..], &of].concat());
    assert_eq!(said["one_hot"]["width"], 5);
    assert_eq!(said["one_hot"]["cosine"], serde_json::json!([[1.0, 0.0], [0.0, 1.0]]));
    assert!((number(&said["one_hot"]["embedding_cosine"][0][1]) - 0.7739).abs() < 1e-4);
    let ran = regard(&[&["embed", "--one-hot", "--words", "man", "king"][..], &of].concat());
    assert!(
        ran.out.contains("king: 1 at index 2 of 5") && ran.out.contains("1.414"),
        "{}",
        ran.out
    );
}

#[test]
fn words_that_cannot_be_are_told() {
    let file = vectors("word_errors");
    let fails = |args: &[&str], says: &[&str]| {
        fails(&[&["embed", "--vectors", &file][..], args].concat(), says);
    };
    fails(&["--words", "King", "--nearest", "1"], &["\"King\" has no vector", "\"king\" has one"]);
    fails(&["--analogy", "man", "king"], &["--analogy", "3"]);
    fails(&["--nearest", "3"], &["--words"]);
    fails(&["--words", "king", "--model", "bert"], &["--model", "words"]);
    fails(&["some text"], &["--model"]);
    crate::program::fails(
        &["embed", "--words", "king", "--vectors", "/no/such/file"],
        &["/no/such/file", "glove-subset"],
    );
}

#[test]
fn glove_agrees_with_people_as_published_files_say() {
    if std::env::var_os("REGARD_DATA").is_none() {
        return regard_fuzz::skip("REGARD_DATA is not set");
    }
    let said = json(&["embed", "--similarity", "--json"]);
    let all = said["similarity"].as_array().unwrap();
    assert_eq!(all.len(), 13);
    let wanted = [("EN-WS-353-ALL", 0.566), ("EN-SIMLEX-999", 0.304), ("EN-MEN-TR-3k", 0.717)];
    for (set, spearman) in wanted {
        let found = all.iter().find(|one| one["set"] == set).unwrap();
        assert!((number(&found["spearman"]) - spearman).abs() < 6e-4, "{found}");
        assert!(number(&found["covered"]) < number(&found["pairs"]));
    }
}

#[test]
fn layers_are_compared_by_name() {
    let place = folder("compare").join("figures");
    let path = place.display().to_string();
    let args = ["compare", "--layers", "--quick", "--only", "gradient,path", "--svg", &path];
    let ran = regard(&args);
    let is_wrote = |line: &str| line.starts_with(&format!("wrote {path}/"));
    assert!(ran.code == 0 && ran.err.lines().all(is_wrote), "{}{}", ran.out, ran.err);
    for part in ["gradient:", "path:", "self-attention", "RNN against self-attention", "●"] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    for name in ["gradient.svg", "path.svg"] {
        let picture = std::fs::read_to_string(place.join(name)).unwrap();
        assert_eq!(picture.matches("<polyline").count(), 5, "{name}");
    }
    let found = json(&["compare", "--layers", "--quick", "--only", "path", "--json"]);
    let numbers = &found["findings"][0]["numbers"];
    assert_eq!(numbers["RNN.steps_to_1024"], 1023.0);
    assert_eq!(numbers["self-attention.steps_to_1024"], 1.0);
    assert_eq!(numbers["truncated.steps_to_1024"], 128.0);
    assert_eq!(found["summary"]["heading"].as_array().unwrap().len(), 6);
}

#[test]
fn comparisons_that_cannot_be_are_told() {
    fails(&["compare"], &["two or more recipes", "--layers"]);
    fails(&["compare", "--layers", "--only", "taste"], &["--only", "\"taste\"", "cost"]);
    fails(&["compare", "--quick"], &["--layers"]);
    fails(&["compare", "one-recipe"], &["2"]);
    fails(&["compare", "--layers", "--train"], &["--train", "recipes"]);
    fails(&["compare", "--probe", "RNN"], &["--probe", "LAYER:LENGTH"]);
    fails(&["compare", "--probe", "GRU:8"], &["--probe", "\"GRU\""]);
    let said = json(&["compare", "--probe", "self-attention:64", "--json"]);
    assert!(number(&said["peak_memory"]) > 1e6, "{said}");
}
