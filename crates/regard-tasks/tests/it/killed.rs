//! A run that is killed at any moment, or whose disk is full, loses nothing that was saved.

use crate::resumed::{TRANSFORMER, left, small};
use crate::small::{Dice, Folder, recipe, train};
use regard_tasks::train::checkpoints;
use regard_tasks::translate::Recipe;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const RUN: &str = "REGARD_TEST_RUN";

/// A checkpoint after each step, so that most of the time one is being written.
fn saves_always() -> Recipe {
    let options = "steps = 30\nbatch_tokens = 60\naccumulate = 2\nlr = 1e-2\nwarmup = 5\n\
                   log_every = 1\neval_every = 5\nsave_every = 1\nkeep = 2";
    recipe(TRANSFORMER, options)
}

/// Not a test: the process that the other tests start and kill.
#[test]
#[ignore = "it is what others start"]
fn child() {
    let Ok(run) = std::env::var(RUN) else { return };
    let corpus = small();
    let end = train((&saves_always(), &corpus), Path::new(&run), true, &mut |_| true);
    end.unwrap_or_else(|e| panic!("{e}"));
}

/// `before` is a shell command that runs first.
fn start(run: &Path, before: &str) -> Command {
    let mut command = Command::new("sh");
    let program = std::env::current_exe().unwrap();
    let script = format!("{before} exec {:?} --exact killed::child --ignored", program);
    command.args(["-c", &script]).env(RUN, run).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn a_run_that_is_killed_loses_nothing() {
    let (whole, killed) = (Folder::new("whole-killed"), Folder::new("killed"));
    let corpus = small();
    train((&saves_always(), &corpus), &whole.0, false, &mut |_| true).unwrap();
    let (mut dice, mut kills) = (Dice(11), 0);
    for _ in 0..8 {
        let mut child = start(&killed.0, "").spawn().unwrap();
        // Some moment after it has saved once more, however fast or slow the machine is.
        let saved = checkpoints(&killed.0).last().copied();
        let mut over = false;
        while !over && checkpoints(&killed.0).last().copied() <= saved {
            std::thread::sleep(Duration::from_millis(1));
            over = child.try_wait().unwrap().is_some();
        }
        std::thread::sleep(Duration::from_micros(dice.below(8000) as u64));
        over |= child.try_wait().unwrap().is_some();
        // On Unix this is SIGKILL: nothing is flushed, nothing is cleaned up.
        _ = child.kill();
        child.wait().unwrap();
        if over {
            break;
        }
        kills += 1;
        for step in checkpoints(&killed.0) {
            let folder = killed.0.join(format!("checkpoint-{step}"));
            for file in ["trainer.json", "optimizer.safetensors", "tokenizer.json"] {
                assert!(folder.join(file).exists(), "kill {kills}: {step} has no {file}");
            }
        }
    }
    assert!(kills > 0, "it was over before it could be killed");
    let last = start(&killed.0, "").output().unwrap();
    assert!(last.status.success(), "{last:?}");
    assert!(left(&killed.0) == left(&whole.0), "after {kills} kills it is another run");
}

#[test]
fn what_was_left_unfinished_is_no_checkpoint() {
    let (whole, torn) = (Folder::new("whole-torn"), Folder::new("torn"));
    let (recipe, corpus) = (saves_always(), small());
    let row = (&recipe, &corpus);
    train(row, &whole.0, false, &mut |_| true).unwrap();
    let mut stop =
        |event: regard_tasks::train::Event| !matches!(event, regard_tasks::train::Event::Saved(7));
    train(row, &torn.0, false, &mut stop).unwrap();
    // Half of a checkpoint, and half of one that was being removed.
    for name in ["checkpoint-8.unfinished", "checkpoint-5.old.unfinished"] {
        let folder = torn.0.join(name);
        fs::create_dir_all(&folder).unwrap();
        let bytes = fs::read(torn.0.join("checkpoint-7/model.safetensors")).unwrap();
        fs::write(folder.join("model.safetensors"), &bytes[..bytes.len() / 2]).unwrap();
    }
    // The note on the best checkpoint is missing, as after a kill.
    fs::remove_file(torn.0.join("best.json")).unwrap();
    assert_eq!(checkpoints(&torn.0), [5, 6, 7]);
    train(row, &torn.0, true, &mut |_| true).unwrap();
    assert!(left(&torn.0) == left(&whole.0));
    let names: Vec<String> = fs::read_dir(&torn.0)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(names.iter().all(|name| !name.contains("unfinished")), "{names:?}");
}

#[test]
fn a_full_disk_costs_nothing_that_was_saved() {
    let (whole, full) = (Folder::new("whole-full"), Folder::new("full"));
    let (recipe, corpus) = (saves_always(), small());
    let row = (&recipe, &corpus);
    train(row, &whole.0, false, &mut |_| true).unwrap();
    let mut stop =
        |event: regard_tasks::train::Event| !matches!(event, regard_tasks::train::Event::Saved(6));
    train(row, &full.0, false, &mut stop).unwrap();
    let size = |name: &str| fs::metadata(full.0.join("checkpoint-6").join(name)).unwrap().len();
    // The weights still fit, the optimiser moments do not. A process that ignores the signal gets
    // an error from the write itself, as with a full disk.
    let blocks = size("model.safetensors").div_ceil(512) + 1;
    assert!(512 * blocks < size("optimizer.safetensors"));
    let limited = start(&full.0, &format!("trap '' XFSZ; ulimit -f {blocks};")).output().unwrap();
    let said = String::from_utf8_lossy(&limited.stdout).into_owned()
        + &String::from_utf8_lossy(&limited.stderr);
    assert!(!limited.status.success(), "{said}");
    assert!(said.contains("checkpoint-7.unfinished/optimizer.safetensors"), "{said}");
    assert_eq!(checkpoints(&full.0), [5, 6]);
    assert!(!full.0.join("checkpoint-7.unfinished").exists(), "it only fills the disk");
    train(row, &full.0, true, &mut |_| true).unwrap();
    assert!(left(&full.0) == left(&whole.0));
}
