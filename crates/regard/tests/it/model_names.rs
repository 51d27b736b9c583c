//! Which model a name stands for, and notes about the one that was found.

use crate::program::{folder, succeeds_in as at};
use std::fs;
use std::path::Path;

#[test]
fn a_folder_with_the_name_of_a_built_in_model_is_noted() {
    let here = folder("model_names");
    at(&here, &["models", "export", "tsp", "--out", "runs/hull"]);
    let points = ["point", "0 0  1 0  1 1  0 1", "--model"];
    let ask = |model: &str| at(&here, &[&points[..], &[model]].concat()).err;
    let noted = "hull is the folder runs/hull; for the built-in model of this name: builtin:hull";
    assert_eq!(ask("hull").matches(noted).count(), 1, "{}", ask("hull"));
    for unambiguous in ["runs/hull", "builtin:hull", "tsp"] {
        assert!(!ask(unambiguous).contains("built-in model of this name"), "{unambiguous}");
    }
    let hull = at(&here, &["models", "builtin:hull", "--json"]).out;
    assert!(hull.contains("convex hulls"), "{hull}");
    // A copy of the built-in model is the same model.
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/hull");
    for entry in fs::read_dir(shipped).unwrap().flatten() {
        fs::copy(entry.path(), here.join("runs/hull").join(entry.file_name())).unwrap();
    }
    assert!(!ask("hull").contains("built-in model of this name"));
}

const RECIPE: &str = "name = 'tiny'\ntask = 'points'\nseed = 1\n[data]\nset = 'drawn'\n\
    problem = 'hull'\npoints = [4, 5]\ntrain = 200\nvalid = 8\ntest = 12\n[model]\n\
    model_type = 'pointer-network'\nhidden_size = 16\nnum_attention_heads = 2\n\
    intermediate_size = 16\nencoder_layers = 1\ndecoder_layers = 1\n[train]\nsteps = 4\n\
    eval_every = 2\nkeep = 4\nbatch_tokens = 60\n[result]\nmetric = 'none'\n";

#[test]
fn an_interrupted_run_is_noted_with_the_command_that_continues_it() {
    let here = folder("model_interrupted");
    fs::write(here.join("tiny.toml"), RECIPE).unwrap();
    at(&here, &["train", "tiny.toml", "--out", "runs/mine"]);
    let [point, eval] =
        [&["point", "0 0  1 0  1 1  0 1", "--model", "mine"][..], &["eval", "runs/mine"]];
    for args in [point, eval] {
        assert!(!at(&here, args).err.contains("interrupted"), "{args:?}: it is done");
    }
    fs::remove_dir_all(here.join("runs/mine/model")).unwrap();
    fs::remove_dir_all(here.join("runs/mine/checkpoint-4")).unwrap();
    fs::write(here.join("runs/mine/best.json"), "{\"step\": 2, \"measure\": 0.5}").unwrap();
    let noted = "note: runs/mine was interrupted at step 2 of 4; to continue: regard train \
                 --resume runs/mine";
    for args in [point, eval] {
        let err = at(&here, args).err;
        assert_eq!(err.matches(noted).count(), 1, "{args:?}: {err}");
    }
}
