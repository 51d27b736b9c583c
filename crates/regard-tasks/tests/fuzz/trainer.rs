//! The small files of a run's folder, with arbitrary contents.

use crate::small::{Folder, corpus, letters, recipe, train};
use regard_fuzz::{Scratch, fuzz};
use regard_tasks::train::{Event, RunDetails, TrainOutcome, recorded, write_checksums};
use regard_tasks::translate::{Corpus, Recipe};
use std::fs;
use std::path::Path;

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let into = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy(&path, &into),
            false => _ = fs::copy(&path, &into).unwrap(),
        }
    }
}

/// Calls `work` with a recipe and its corpus, and a folder with a run that was stopped at step 2.
fn with_stopped_run(name: &str, work: impl Fn((&Recipe, &Corpus), &Path)) {
    let model = "model_type = \"rnn\"\nembedding_size = 4\nhidden_size = 4";
    let how = "steps = 4\nbatch_tokens = 60\nlr = 1e-2\nwarmup = 1\neval_every = 2\nsave_every = 2";
    let recipe = recipe(model, how);
    let corpus = corpus(letters(20, 2..4, |words| words.reverse()), 4);
    let row = (&recipe, &corpus);
    let stopped = Folder::new(name);
    let watch = &mut |event: Event| !matches!(event, Event::Step { step: 2, .. });
    let end = train(row, &stopped.0, false, watch).unwrap();
    assert!(matches!(end, TrainOutcome::Interrupted { step: 2 }), "{end:?}");
    work(row, &stopped.0);
}

/// Position of a run in its data.
#[test]
fn fuzz_trainer() {
    with_stopped_run("fuzz-trainer", |row, stopped| {
        assert!(stopped.join("checkpoint-2/trainer.json").is_file());
        fuzz!("trainer", |bytes: &[u8]| {
            let scratch = Scratch::default();
            copy(stopped, scratch.folder());
            scratch.write("checkpoint-2/trainer.json", bytes);
            // A forged file can have a valid checksum.
            write_checksums(&scratch.folder().join("checkpoint-2")).unwrap();
            // It stops after its first step, if it begins.
            train(row, scratch.folder(), true, &mut |_| false).is_ok()
        });
    });
}

/// The small files of a run, each in turn with the others valid.
#[test]
fn fuzz_run() {
    with_stopped_run("fuzz-run", |row, stopped| {
        let names = ["run.json", "recipe.toml", "best.json", "checkpoint-2/SHA256SUMS"];
        names.iter().for_each(|name| assert!(stopped.join(name).is_file(), "{name}"));
        fuzz!("run", |bytes: &[u8]| {
            let read = names.map(|name| {
                let scratch = Scratch::default();
                copy(stopped, scratch.folder());
                scratch.write(name, bytes);
                // A list of runs is never stopped by one of them.
                assert!(RunDetails::of(scratch.folder()).is_some(), "{name}");
                let recorded = recorded(scratch.folder()).is_ok();
                recorded && train(row, scratch.folder(), true, &mut |_| false).is_ok()
            });
            read.contains(&true)
        });
    });
}
