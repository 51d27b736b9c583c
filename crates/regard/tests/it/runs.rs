//! `regard runs`, and runs by their names.

use crate::program::{Ran, command, finish, folder};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Settings of a run that takes a moment.
const SMALL: [&str; 7] = [
    "data.train=64",
    "data.valid=16",
    "data.test=16",
    "train.steps=4",
    "train.eval_every=2",
    "model.hidden_size=8",
    // Both checkpoints, although the second is as good as the first.
    "train.keep=2",
];

fn within(home: &Path, args: &[&str]) -> Ran {
    let mut command = command(args);
    command.current_dir(home);
    finish(command)
}

fn json(home: &Path, args: &[&str]) -> Value {
    let ran = within(home, args);
    assert_eq!(ran.code, 0, "{args:?}: {}", ran.err);
    serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("{args:?}: {e}: {}", ran.out))
}

/// Trains a model that sorts numbers, in a folder without other runs.
fn train(home: &Path, more: &[&str], settings: &[&str]) {
    let mut args = vec!["train", "sort-10"];
    args.extend(more);
    SMALL.iter().chain(settings).for_each(|each| args.extend(["--set", each]));
    let ran = within(home, &args);
    assert_eq!(ran.code, 0, "{args:?}: {}", ran.err);
}

/// Copies a folder with everything in it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        match path.is_dir() {
            true => copy(&path, &to),
            false => drop(fs::copy(&path, &to).unwrap()),
        }
    }
}

fn row<'a>(rows: &'a Value, name: &str) -> &'a Value {
    let rows = rows.as_array().unwrap();
    rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name} in {rows:#?}"))
}

#[test]
fn runs_are_listed_and_shown() {
    let home = folder("runs_listed");
    let nothing = within(&home, &["runs"]);
    assert!(nothing.code == 0 && nothing.out.starts_with("no runs in runs;"), "{}", nothing.out);
    assert_eq!(json(&home, &["runs", "--json"]), serde_json::json!([]));
    train(&home, &["--out", "runs/try"], &[]);
    train(
        &home,
        &["--out", "runs/early"],
        &["train.patience=1", "train.steps=60", "train.lr=1e-12"],
    );
    train(&home, &["--out", "runs/twice", "--seeds", "2"], &[]);
    // A run that was killed after its first checkpoint.
    copy(&home.join("runs/try"), &home.join("runs/killed"));
    fs::remove_dir_all(home.join("runs/killed/model")).unwrap();
    fs::remove_dir_all(home.join("runs/killed/checkpoint-4")).unwrap();
    let rows = json(&home, &["runs", "--json"]);
    assert_eq!(rows.as_array().unwrap().len(), 4, "{rows:#}");
    let done = row(&rows, "try");
    for (key, wanted) in
        [("task", "point"), ("data", "drawn"), ("state", "done"), ("folder", "runs/try")]
    {
        assert_eq!(done[key], wanted, "{done:#}");
    }
    assert!(done["best"].is_f64() && done["parameters"].as_u64().unwrap() > 100, "{done:#}");
    assert_eq!(done["changed"].as_str().unwrap().len(), "2025-01-31T12:00:00Z".len());
    assert_eq!(row(&rows, "early")["state"], "stopped_early");
    let killed = row(&rows, "killed");
    assert_eq!((&killed["state"], &killed["step"]), (&"interrupted".into(), &2.into()));
    let twice = row(&rows, "twice");
    assert_eq!(
        (&twice["state"], &twice["done"], &twice["of"]),
        (&"seeds".into(), &2.into(), &2.into())
    );
    let list = within(&home, &["runs"]).out;
    for part in [
        "name",
        "changed (UTC)",
        "done",
        "stopped early",
        "interrupted at step 2 of 4",
        "seeds: 2 of 2",
        "(mean)",
    ] {
        assert!(list.contains(part), "{part}: {list}");
    }
    // The newest is the first.
    assert!(list.lines().nth(1).unwrap().starts_with("killed"), "{list}");

    let shown = within(&home, &["runs", "try"]).out;
    for part in [
        "try: done\n",
        "recipe      sort-10\n",
        "task        point\n",
        "step 4 of 4 steps",
        "last, step 4",
        "regard eval runs/try --details\n",
        "--model runs/try\n",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("--resume"), "{shown}");
    let shown = json(&home, &["runs", "runs/try", "--json"]);
    assert_eq!(shown["last"]["step"], 4);
    assert!(shown["last"]["metrics"]["valid_accuracy"].is_f64(), "{shown:#}");
    assert_eq!(shown["settings"]["train"]["steps"], 4);
    let killed = within(&home, &["runs", "killed"]).out;
    assert!(killed.contains("  regard train --resume runs/killed\n"), "{killed}");
    let twice = within(&home, &["runs", "twice"]).out;
    assert!(twice.contains("seed-0") && twice.contains("regard eval runs/twice/seed-0"), "{twice}");
    // The command that is told continues the run.
    let resumed = within(&home, &["train", "--resume", "runs/killed"]);
    assert_eq!(resumed.code, 0, "{}", resumed.err);
    assert_eq!(row(&json(&home, &["runs", "--json"]), "killed")["state"], "done");

    // While a process holds the folder, it is training.
    let lock = fs::File::options().write(true).open(home.join("runs/try/run.lock")).unwrap();
    lock.lock().unwrap();
    assert_eq!(row(&json(&home, &["runs", "--json"]), "try")["state"], "running");
    drop(lock);
    assert_eq!(row(&json(&home, &["runs", "--json"]), "try")["state"], "done");

    let missing = within(&home, &["runs", "tri"]);
    assert_eq!(missing.code, 2);
    assert!(missing.err.contains("did you mean 'try'?"), "{}", missing.err);
    let missing = within(&home, &["runs", "--folder", "nowhere"]);
    assert!(missing.code == 2 && missing.err.contains("nowhere"), "{}", missing.err);
    let other = json(&home.join("runs"), &["runs", "--folder", ".", "--json"]);
    assert_eq!(row(&other, "try")["folder"], "./try");
    let inside = within(&home, &["runs", "--folder", "runs/try"]).out;
    assert!(inside.contains("regard runs runs/try"), "{inside}");
    let several = within(&home, &["eval", "twice"]);
    assert!(several.code == 2 && several.err.contains("runs/twice/seed-0"), "{}", several.err);
}

#[test]
fn a_run_goes_by_its_name_even_if_a_recipe_has_it() {
    let home = folder("runs_named");
    train(&home, &[], &[]);
    train(&home, &["--out", "runs/try"], &["data.test=8"]);
    // A folder of the same name that is no run.
    fs::create_dir_all(home.join("try")).unwrap();
    let numbers = "0.7 0.1 0.4";
    for name in ["sort-10", "runs/sort-10", "try", "runs/try"] {
        let ran = within(&home, &["point", "--problem", "sort", numbers, "--model", name]);
        assert_eq!(ran.code, 0, "{name}: {}", ran.err);
        assert_eq!(within(&home, &["inspect", name]).code, 0, "{name}");
        assert_eq!(within(&home, &["models", name]).code, 0, "{name}");
    }
    for (name, asked) in [("sort-10", 16), ("try", 8), ("runs/try", 8)] {
        let measured = json(&home, &["eval", name, "--json"]);
        assert_eq!(measured["asked"], asked, "{name}");
    }
    for (name, asked) in [("sort-10", 16), ("try", 8), ("runs/try", 8)] {
        assert_eq!(json(&home, &["eval", "--model", name, "--json"])["asked"], asked, "{name}");
    }
    assert_eq!(json(&home, &["runs", "sort-10", "--json"])["state"], "done");
}

/// Damage becomes a row, and never ends the list.
#[test]
fn damaged_runs_are_told_and_the_others_are_listed() {
    let home = folder("runs_damaged");
    train(&home, &["--out", "runs/whole"], &[]);
    let whole = home.join("runs/whole");
    let damage = |name: &str, change: &dyn Fn(&Path)| {
        let run = home.join("runs").join(name);
        copy(&whole, &run);
        change(&run);
    };
    let cut = |path: &Path| {
        let bytes = fs::read(path).unwrap();
        fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    };
    let fifo = |path: &Path| {
        let _ = fs::remove_file(path);
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    let deep = |open: &str| open.repeat(200_000);
    damage("recipe-binary", &|run| fs::write(run.join("recipe.toml"), [0xff, 0, 1]).unwrap());
    damage("recipe-deep", &|run| {
        fs::write(run.join("recipe.toml"), format!("a = {}", deep("["))).unwrap();
    });
    damage("recipe-edited", &|run| {
        let text = fs::read_to_string(run.join("recipe.toml")).unwrap();
        fs::write(run.join("recipe.toml"), text + "\n").unwrap();
    });
    damage("recipe-pipe", &|run| fifo(&run.join("recipe.toml")));
    damage("recipe-missing", &|run| fs::remove_file(run.join("recipe.toml")).unwrap());
    damage("notes-deep", &|run| fs::write(run.join("run.json"), deep("[")).unwrap());
    damage("best-wrong", &|run| fs::write(run.join("best.json"), "{\"step\":-1}").unwrap());
    damage("best-pipe", &|run| fifo(&run.join("best.json")));
    damage("state-cut", &|run| cut(&run.join("checkpoint-4/trainer.json")));
    damage("weights-cut", &|run| cut(&run.join("model/model.safetensors")));
    damage("weights-missing", &|run| {
        fs::remove_file(run.join("model/model.safetensors")).unwrap();
    });
    // Not damage: a lock that is a pipe holds nothing, and a log is not needed for the list.
    damage("lock-pipe", &|run| fifo(&run.join("run.lock")));
    damage("log-wrong", &|run| fs::write(run.join("metrics.jsonl"), "{}\noops\n{}\n").unwrap());
    damage("odd \u{1b}[31mname", &|_| {});
    std::os::unix::fs::symlink("../runs", home.join("runs/loop")).unwrap();
    std::os::unix::fs::symlink("/nowhere", home.join("runs/dangling")).unwrap();
    fs::write(home.join("runs/file"), "").unwrap();

    let rows = json(&home, &["runs", "--json"]);
    for each in rows.as_array().unwrap() {
        let name = each["name"].as_str().unwrap();
        let is_whole =
            ["whole", "lock-pipe", "log-wrong"].contains(&name) || name.starts_with("odd");
        let wanted = if is_whole { "done" } else { "damaged" };
        assert_eq!(each["state"], wanted, "{each:#}");
        assert!(is_whole || !each["why"].as_str().unwrap().is_empty(), "{each:#}");
        let shown = within(&home, &["runs", name]);
        assert_eq!(shown.code, 0, "{name}: {}", shown.err);
        assert!(!shown.out.contains('\u{1b}'), "{}", shown.out);
    }
    let list = within(&home, &["runs"]);
    assert!(list.code == 0 && !list.out.contains('\u{1b}'), "{}{}", list.out, list.err);
    assert!(list.out.contains("damaged: recipe.toml"), "{}", list.out);
    let log = within(&home, &["runs", "log-wrong"]).out;
    assert!(log.contains("damaged     metrics.jsonl: line 2"), "{log}");
    // An older checkpoint is not needed, but compared.
    cut(&whole.join("checkpoint-2/config.json"));
    let shown = within(&home, &["runs", "whole"]).out;
    assert!(shown.contains("whole: done") && shown.contains("damaged     checkpoint-2"), "{shown}");
}
