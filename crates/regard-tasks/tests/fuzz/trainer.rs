//! `trainer.json`, the place of a run in its data, as somebody else may have left it.

use crate::small::{Folder, corpus, letters, recipe, train};
use regard_fuzz::{Scratch, fuzz};
use regard_tasks::train::{Event, Outcome, write_checksums};
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

#[test]
fn fuzz_trainer() {
    let model = "model_type = \"rnn\"\nembedding_size = 4\nhidden_size = 4";
    let how = "steps = 4\nbatch_tokens = 60\nlr = 1e-2\nwarmup = 1\neval_every = 2\nsave_every = 2";
    let recipe = recipe(model, how);
    let corpus = corpus(letters(20, 2..4, |words| words.reverse()), 4);
    let row = (&recipe, &corpus);
    let stopped = Folder::new("fuzz-trainer");
    let watch = &mut |event: Event| !matches!(event, Event::Step { step: 2, .. });
    let end = train(row, &stopped.0, false, watch).unwrap();
    assert!(matches!(end, Outcome::Interrupted { step: 2 }), "{end:?}");
    assert!(stopped.0.join("checkpoint-2/trainer.json").is_file());
    fuzz!("trainer", |bytes: &[u8]| {
        let scratch = Scratch::default();
        copy(&stopped.0, scratch.folder());
        scratch.write("checkpoint-2/trainer.json", bytes);
        // Whoever forges the file can forge its checksum.
        write_checksums(&scratch.folder().join("checkpoint-2")).unwrap();
        // It stops after its first step, if it begins.
        train(row, scratch.folder(), true, &mut |_| false).is_ok()
    });
}
