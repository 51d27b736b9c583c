//! `regard point`, from training to a picture.

use crate::program::{fails, folder, json, piped, regard};
use std::path::Path;

const RECIPE: &str = "name = 'tiny'\ntask = 'points'\nseed = 1\n[data]\nset = 'drawn'\n\
    problem = 'hull'\npoints = [4, 5]\ntrain = 200\nvalid = 8\ntest = 12\n[model]\n\
    model_type = 'pointer-network'\nhidden_size = 16\nnum_attention_heads = 2\n\
    intermediate_size = 16\nencoder_layers = 1\ndecoder_layers = 1\n[train]\nsteps = 3\n\
    batch_tokens = 60\n[result]\nmetric = 'none'\n";

/// A run of three steps.
fn run(test: &str) -> String {
    let place = folder(test);
    let (recipe, run) = (place.join("tiny.toml"), place.join("run"));
    std::fs::write(&recipe, RECIPE).unwrap();
    let (recipe, run) = (recipe.to_str().unwrap(), run.to_str().unwrap());
    let trained = regard(&["train", recipe, "--out", run]);
    assert_eq!(trained.code, 0, "{}", trained.err);
    assert!(trained.err.contains("train  drawn by the program: "), "{}", trained.err);
    run.to_string()
}

const SQUARE: &str = "0 0  1 0  1 1  0 1  0.5 0.4";

#[test]
fn points_from_arguments_files_and_lines() {
    let model = run("point");
    let report = json(&["eval", &model, "--json"]);
    assert_eq!((&report["asked"], &report["unit"]), (&12.into(), &"sets of points".into()));
    assert!(report["accuracy"].is_number() && report["area"].is_number());

    let said =
        json(&["point", SQUARE, "--problem", "hull", "--model", &model, "--json", "--attend"]);
    assert_eq!(said["solution"], serde_json::json!([1, 2, 3, 4, 1]));
    let answer: Vec<u64> =
        said["answer"].as_array().unwrap().iter().map(|at| at.as_u64().unwrap()).collect();
    assert_eq!(answer.first(), answer.last());
    assert_eq!(said["right"], answer == [1, 2, 3, 4, 1]);
    let weights = said["weights"].as_array().unwrap();
    assert!(weights.len() >= answer.len() - 1);
    assert!(weights.iter().all(|row| row.as_array().unwrap().len() == 6));

    let told: Vec<String> = answer.iter().map(|at| at.to_string()).collect();
    let text = regard(&["point", SQUARE, "--model", &model]).out;
    assert_eq!(text.trim_end(), told.join(" "));
    let file = Path::new(&model).join("points.txt");
    std::fs::write(&file, format!("{SQUARE} output 1 2 3 4 1\n\n0 0 1 0 0.2 1\n")).unwrap();
    let file = file.to_str().unwrap();
    let text = regard(&["point", "--file", file, "--model", &model]).out;
    assert_eq!(text.lines().count(), 2);
    assert_eq!(text.lines().next(), Some(told.join(" ").as_str()));
    let ran = piped(&["point", "--model", &model], format!("{SQUARE}\n1 2 3 x\n").as_bytes());
    assert_eq!(ran.status.code(), Some(1), "a line was wrong");
    assert_eq!(String::from_utf8(ran.stdout).unwrap(), format!("{}\n\n", told.join(" ")));
    let note = String::from_utf8(ran.stderr).unwrap();
    assert!(note.contains("line 2: number 4: got \"x\", need a number"), "{note}");

    let drawn = regard(&["point", SQUARE, "--model", &model, "--attend"]).out;
    assert!(drawn.contains("attention of each step") && drawn.contains("end"), "{drawn}");
    let svg = Path::new(&model).join("hull.svg");
    let svg = svg.to_str().unwrap();
    assert_eq!(regard(&["point", SQUARE, "--model", &model, "--svg", svg]).code, 0);
    let picture = std::fs::read_to_string(svg).unwrap();
    assert_eq!(picture.matches("<circle").count(), 5);
    assert!(picture.contains("<title>solution<") && picture.contains("<title>answer<"));
}

#[test]
fn what_cannot_be_asked() {
    let model = run("point-wrong");
    let ask = |args: &[&str], says: &[&str]| {
        fails(&[&["point", "--model", &model], args].concat(), says);
    };
    ask(&["0 0 1 1"], &["got 2 points, hull needs 3"]);
    ask(&["0 0 1 1 2"], &["got 5 numbers, need a multiple of 2"]);
    ask(&["0 0 1 1 nan 2"], &["number 5: got NaN, need a finite number"]);
    ask(&["0 0 1 1 inf 2"], &["got inf"]);
    ask(&[SQUARE, "--problem", "sort"], &["--problem: got sort", "trained for hull"]);
    ask(&[SQUARE, "--problem", "knot"], &["--problem", "hull, sort, tsp"]);
    ask(&["--file", "/no/such/file"], &["/no/such/file"]);
    ask(&[SQUARE, SQUARE, "--svg", "/tmp/never.svg"], &["more than one set of points"]);
    fails(&["point", "0.3 0.1", "--problem", "sort"], &["--model is required", "train sort-10"]);
    fails(&["point", SQUARE, "--model", "en-fr"], &["translates"]);
}
