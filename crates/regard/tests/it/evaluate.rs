//! `regard eval` of every task, and what a run leaves behind.

use crate::program::{Ran, fails, folder, json, piped, regard};
use crate::tiny;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

const MODEL: &str = "[model]\nmodel_type = 'bert'\nhidden_size = 16\nnum_hidden_layers = 1\n\
    num_attention_heads = 2\nintermediate_size = 16\nmax_position_embeddings = 32\n\
    [vocabulary]\nkind = 'wordpiece'\nsize = 100\n\
    [train]\nsteps = 2\neval_every = 2\nlog_every = 1\nlr = 1e-3\n";

/// A recipe that learns to label texts, in a folder of its own.
fn classifier(test: &str) -> PathBuf {
    let home = folder(test);
    for (part, from) in [("train", 0), ("valid", 8), ("test", 12)] {
        let line = |i: usize| format!("text number {i} of many\t{}\n", ["bad", "good"][i % 2]);
        let text: String = (from..from + 6).map(line).collect();
        fs::write(home.join(format!("{part}.tsv")), text).unwrap();
    }
    let data = |part: &str| format!("{part} = '{}'\n", home.join(format!("{part}.tsv")).display());
    let text = format!(
        "name = 'labels'\ntask = 'classify'\nseed = 4\n[data]\nset = 'files'\n{}{}{}\
         max_tokens = 16\n{MODEL}",
        data("train"),
        data("valid"),
        data("test"),
    );
    fs::write(home.join("labels.toml"), text).unwrap();
    home
}

fn at(home: &Path, name: &str) -> String {
    home.join(name).to_str().unwrap().to_string()
}

fn train(home: &Path, more: &[&str]) -> Ran {
    let (recipe, run) = (at(home, "labels.toml"), at(home, "run"));
    regard(&[&["train", &recipe, "--out", &run], more].concat())
}

#[test]
fn a_run_is_measured_by_its_own_recipe() {
    let home = classifier("eval_run");
    assert_eq!(train(&home, &[]).code, 0);
    let (recipe, run) = (at(&home, "labels.toml"), at(&home, "run"));
    let log = fs::read_to_string(home.join("run/metrics.jsonl")).unwrap();
    let logged = |name: &str| -> f64 {
        let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter_map(|line| line[name].as_f64()).next_back().unwrap()
    };
    let valid = json(&["eval", &run, "--part", "valid", "--json"]);
    for (name, logged) in [("accuracy", logged("valid_accuracy")), ("f1", logged("valid_f1"))] {
        assert!((valid[name].as_f64().unwrap() - logged).abs() < 1e-9, "{valid}");
    }
    for (key, wanted) in [("name", "labels"), ("task", "classify"), ("part", "valid")] {
        assert_eq!(valid[key], wanted);
    }
    assert_eq!((&valid["asked"], &valid["unit"]), (&6.into(), &"texts".into()));
    assert!(valid["parameters"].as_u64().unwrap() > 1000 && valid["seconds"].is_number());
    // The recipe and the model apart, the run alone, its model's folder: all the same.
    let test = json(&["eval", &recipe, "--model", &run, "--json"]);
    assert_eq!(test["part"], "test");
    for args in [[&run, "--json"].to_vec(), ["--model", &at(&home, "run/model"), "--json"].to_vec()]
    {
        let other = json(&[&["eval"], &args[..]].concat());
        assert_eq!((&other["accuracy"], &other["part"]), (&test["accuracy"], &test["part"]));
    }
    let text = regard(&["eval", &run]).out;
    for part in ["labels: 6 texts of files, test", "accuracy", "% of texts", "macro-F1"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_model_is_measured_on_a_file() {
    let home = classifier("eval_file");
    assert_eq!(train(&home, &[]).code, 0);
    // A model that left its run behind.
    fs::rename(home.join("run/model"), home.join("alone")).unwrap();
    let (alone, file) = (at(&home, "alone"), at(&home, "test.tsv"));
    let said = json(&["eval", "--model", &alone, "--data", &file, "--json"]);
    assert_eq!((&said["asked"], &said["data"]), (&6.into(), &file.as_str().into()));
    assert!(said["part"].is_null() && said["accuracy"].is_number());
    fails(&["eval"], &["need a recipe"]);
    fails(&["eval", "--model", &alone], &["without a recipe", "--data FILE"]);
    fails(&["eval", &alone], &["holds no recipe.toml"]);
    fails(&["eval", "--model", &alone, "--data", "no/such.tsv"], &["--data", "no/such.tsv"]);
    fails(
        &["eval", "--model", &alone, "--data", "nothing"],
        &["--data", "nothing", "sst2-phrases"],
    );
    fails(
        &["eval", "--model", &alone, "--data", &file, "--part", "test"],
        &["--part", "as a whole"],
    );
    fails(&["eval", "--model", &alone, "--data", &file, "--save", "x"], &["translations"]);
    fails(&["eval", "no-such.toml"], &["no-such.toml"]);
}

#[test]
fn translations_are_measured_on_a_file_too() {
    let model = tiny::model("eval_translations", tiny::TRANSFORMER);
    let file = folder("eval_pairs").join("pairs.tsv");
    fs::write(&file, "They are watching.\tIls regardent.\nGo on!\tContinuez !\n").unwrap();
    let file = file.to_str().unwrap();
    let said = json(&["eval", "--model", &model, "--data", file, "--json"]);
    assert_eq!((&said["sentences"], &said["task"]), (&2.into(), &"translate".into()));
    assert!(said["bleu"].is_number() && said["chrf"].is_number(), "{said}");
    // What ships knows its recipe.
    let said = json(&["eval", "--model", "en-fr", "--data", file, "--json"]);
    assert_eq!(said["name"], "tatoeba-en-fr-transformer");
    assert!(said["chrf"].as_f64().unwrap() > 50.0, "{said}");
}

#[test]
fn every_verb_goes_on_after_an_empty_line() {
    let home = classifier("eval_gpt");
    let recipe = fs::read_to_string(home.join("labels.toml")).unwrap();
    let (data, _) = recipe.split_once("[model]").unwrap();
    let model = "[model]\nmodel_type = 'gpt2'\nn_embd = 16\nn_layer = 1\nn_head = 2\n\
        [vocabulary]\nkind = 'bytes'\nsize = 300\n[train]\nsteps = 2\neval_every = 2\n";
    fs::write(home.join("labels.toml"), format!("{data}{model}")).unwrap();
    assert_eq!(train(&home, &[]).code, 0);
    let output = piped(&["classify", "--model", &at(&home, "run")], b"one\n\ntwo\n");
    let out = String::from_utf8(output.stdout).unwrap();
    let columns: Vec<usize> = out.lines().map(|line| line.split('\t').count()).collect();
    assert_eq!((output.status.code(), columns), (Some(1), vec![2, 1, 2]), "{out}");
}

#[test]
fn a_run_is_not_written_over_and_tells_its_speed_in_texts() {
    let home = classifier("eval_refused");
    let ran = train(&home, &[]);
    assert_eq!(ran.code, 0);
    let speeds: Vec<&str> = ran.err.lines().filter(|line| line.contains("/s ·")).collect();
    assert!(
        speeds.len() == 2 && speeds.iter().all(|line| line.contains(" texts/s")),
        "{}",
        ran.err
    );
    let written = || -> Vec<(String, Vec<u8>)> {
        let files = fs::read_dir(home.join("run")).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<PathBuf> = files.filter(|path| path.is_file()).collect();
        files.sort();
        files.iter().map(|path| (path.display().to_string(), fs::read(path).unwrap())).collect()
    };
    let before = written();
    // Refused before anything is read: the data are gone, and that is not what is told.
    let data = fs::read(home.join("train.tsv")).unwrap();
    fs::remove_file(home.join("train.tsv")).unwrap();
    let ran = train(&home, &["--set", "train.steps=9", "--seed", "8"]);
    assert!(ran.code == 2 && ran.err.contains("holds a run at step 2"), "{}", ran.err);
    assert_eq!(written(), before);
    for entry in fs::read_dir(home.join("run")).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_str().unwrap().starts_with("checkpoint-") {
            fs::remove_dir_all(path).unwrap();
        }
    }
    let ran = train(&home, &[]);
    assert!(ran.code == 2 && ran.err.contains("holds a model"), "{}", ran.err);
    // Resumed, it would begin again and replace the model.
    fs::write(home.join("train.tsv"), data).unwrap();
    let ran = train(&home, &["--resume"]);
    assert!(ran.code == 2 && ran.err.contains("the run is finished"), "{}", ran.err);
}

#[test]
fn compare_trains_with_the_seed_that_is_asked_for() {
    let home = folder("compare_seed");
    for part in ["train", "valid", "test"] {
        let lines = |words: [&str; 3]| (words.join("\n") + "\n").repeat(4);
        fs::write(home.join(format!("{part}.en")), lines(["go on", "I read", "we go"])).unwrap();
        fs::write(home.join(format!("{part}.fr")), lines(["va", "je lis", "on y va"])).unwrap();
    }
    for name in ["one", "two"] {
        let recipe = format!(
            "name = '{name}'\ntask = 'translate'\nseed = 3\n[data]\nset = 'files'\nsource = 'en'\n\
             target = 'fr'\nfolder = '{}'\n[vocabulary.shared]\nkind = 'word'\n[model]\n{}\
             [train]\nsteps = 1\neval_every = 1\n[decode]\nmax_length = 6\n",
            home.display(),
            tiny::TRANSFORMER
        );
        fs::write(home.join(format!("{name}.toml")), recipe).unwrap();
    }
    let (one, two, runs) = (at(&home, "one.toml"), at(&home, "two.toml"), at(&home, "runs"));
    let ran = regard(&["compare", &one, &two, "--train", "--runs", &runs, "--seed", "77"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    for name in ["one", "two"] {
        let written = fs::read_to_string(home.join(format!("runs/{name}/recipe.toml"))).unwrap();
        assert!(written.contains("seed = 77"), "{written}");
    }
}

/// A model that ships has the same measures as its exported folder.
#[test]
fn models_that_ship_are_measured() {
    let home = folder("eval_shipped");
    let file = |name: &str, text: &str| {
        fs::write(home.join(name), text).unwrap();
        at(&home, name)
    };
    let words =
        "1\tThey\tthey\tPRON\t_\t_\t0\troot\t_\t_\n2\tsleep\tsleep\tVERB\t_\t_\t1\tdep\t_\t_\n\n";
    let story = "1 Mary moved to the bathroom.\n2 Where is Mary?\tbathroom\t1\n";
    let points = "0 0 1 0 1 1 0 1 0.5 0.4 output 1 2 3 4 1\n";
    for (model, data, measure) in [
        ("shakespeare", file("text.txt", "First Citizen: speak, speak.\n"), "perplexity"),
        ("en-pos", file("words.conllu", words), "accuracy"),
        ("hull", file("points.txt", points), "accuracy"),
    ] {
        let shipped = json(&["eval", "--model", model, "--data", &data, "--json"]);
        let exported = at(&home, model);
        assert_eq!(regard(&["models", "export", model, "--out", &exported]).code, 0);
        let folder = json(&["eval", "--model", &exported, "--data", &data, "--json"]);
        let [shipped, folder] = [&shipped, &folder].map(|found| found[measure].as_f64().unwrap());
        // A quantised model rounds activations too; in floating point only its weights are rounded.
        let within = if model == "shakespeare" { 0.005 * folder } else { 0.0 };
        assert!((shipped - folder).abs() <= within, "{model}: {shipped} {folder}");
    }
    let stories = file("story.txt", story);
    fails(&["eval", "--model", "stories", "--data", &stories], &["qa1_single-supporting-fact"]);
    let ran =
        regard(&["bench", "texts", "--model", "shakespeare", "--tokens", "8", "--rounds", "1"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
}
