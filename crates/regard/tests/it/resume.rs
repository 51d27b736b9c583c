//! Runs that are stopped, killed, damaged or resumed with something else: what can be saved is
//! saved, and nothing is taken for what it is not.

use crate::program::{Ran, command, fails, finish, folder, regard};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Settings that only the command line of the first run has. So many steps that a test which waits
/// for its turn is not too late to stop it.
const SETS: [&str; 4] = ["--set", "train.steps=300", "--set", "train.lr=0.003"];
/// Longest wait for a run.
const PATIENCE: Duration = Duration::from_secs(120);

/// A recipe for a small language model on two files beside it.
pub fn recipe(here: &Path) -> String {
    let text = |n: usize| {
        let words = ["the cat", "sat on", "a mat", "and saw", "the dog", "run by"];
        (0..n).map(|i| words[(i * i + i / 3) % 6].to_string() + " ").collect::<String>()
    };
    fs::write(here.join("train.txt"), text(900)).unwrap();
    fs::write(here.join("valid.txt"), text(90)).unwrap();
    let recipe = format!(
        "name = 'small'\ntask = 'language'\nseed = 5\ncontext = 16\n\
         [data]\nset = 'files'\ntrain = {:?}\nvalid = {:?}\n\
         [vocabulary]\nkind = 'char'\n\
         [model]\nmodel_type = 'gpt2'\nn_embd = 16\nn_layer = 1\nn_head = 2\n\
         [train]\nsteps = 2000\nbatch_tokens = 64\nlr = 1e-3\nwarmup = 5\nschedule = 'cosine'\n\
         label_smoothing = 0.0\nlog_every = 1\neval_every = 10\nsave_every = 5\nkeep = 3\n",
        here.join("train.txt"),
        here.join("valid.txt"),
    );
    let path = here.join("small.toml");
    fs::write(&path, recipe).unwrap();
    path.to_str().unwrap().to_string()
}

/// A run that nobody disturbed.
fn whole(here: &Path, recipe: &str) -> PathBuf {
    let run = here.join("whole");
    let ran = regard(&[&["train", recipe, "--out", run.to_str().unwrap()], &SETS[..]].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    run
}

/// Starts the program with the signals that a terminal would give it.
fn start(args: &[&str]) -> Command {
    let program = command(args);
    let mut fresh = Command::new("env");
    fresh.arg("--default-signal").arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => fresh.env(name, value),
            None => fresh.env_remove(name),
        };
    }
    fresh.stdout(Stdio::piped()).stderr(Stdio::piped());
    fresh
}

fn wait_for_checkpoint(run: &Path, child: &mut Child) {
    wait_for_checkpoints(run, child, 1);
}

/// Waits until a run has this many checkpoints.
fn wait_for_checkpoints(run: &Path, child: &mut Child, count: usize) {
    let began = Instant::now();
    while regard_tasks::train::checkpoints(run).len() < count {
        assert!(began.elapsed() < PATIENCE, "not {count} checkpoints");
        assert!(child.try_wait().unwrap().is_none(), "it ended: {:?}", child.wait());
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn send(signal: &str, child: &Child) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

fn end(child: Child) -> Ran {
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap_or(-1);
    Ran { code, out: text(output.stdout), err: text(output.stderr) }
}

/// A run that is stopped by a signal after its first checkpoint.
fn stopped(recipe: &str, run: &Path, signal: &str) -> Ran {
    let args = [&["train", recipe, "--out", run.to_str().unwrap()], &SETS[..]].concat();
    let mut child = start(&args).spawn().unwrap();
    wait_for_checkpoint(run, &mut child);
    send(signal, &child);
    end(child)
}

/// Runs the command that a run printed, as a shell would.
fn follow(hint: &str) -> Ran {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_regard"));
    let mut shell = Command::new("sh");
    let path = std::env::var("PATH").unwrap_or_default();
    shell.args(["-c", hint]);
    shell.env("PATH", format!("{}:{path}", program.parent().unwrap().display()));
    finish(shell)
}

/// The command behind "to continue: ".
fn hint(ran: &Ran) -> String {
    let hint = ran.out.lines().find_map(|line| line.strip_prefix("to continue: "));
    hint.unwrap_or_else(|| panic!("no hint in {}{}", ran.out, ran.err)).to_string()
}

/// The bytes by which two runs are the same: weights, log without times, recipe.
fn left(run: &Path) -> (Vec<u8>, Vec<serde_json::Value>, String) {
    let lines = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let timeless = |line: &str| {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        line.as_object_mut().unwrap().remove("seconds");
        line
    };
    (
        fs::read(run.join("model/model.safetensors")).unwrap(),
        lines.lines().map(timeless).collect(),
        fs::read_to_string(run.join("recipe.toml")).unwrap(),
    )
}

#[test]
fn the_printed_hint_resumes_with_every_setting() {
    let here = folder("resume-hint");
    let recipe = recipe(&here);
    let whole = whole(&here, &recipe);
    for signal in ["-INT", "-TERM", "-HUP"] {
        // A folder that a shell would take for two words.
        let run = here.join(format!("my run{signal}"));
        let ran = stopped(&recipe, &run, signal);
        assert_eq!(ran.code, 130, "{signal}: {}{}", ran.out, ran.err);
        let written = fs::read(run.join("recipe.toml")).unwrap();
        let on = follow(&hint(&ran));
        assert_eq!(on.code, 0, "{signal}: {}", on.err);
        assert!(on.err.contains("continuing from step"), "{}", on.err);
        assert_eq!(fs::read(run.join("recipe.toml")).unwrap(), written);
        assert!(left(&run) == left(&whole), "{signal}: another run");
    }
}

/// Kills a run so many times, at random moments and by several signals, and resumes it by the
/// command that it printed.
fn kills(here: &Path, count: usize) {
    let recipe = recipe(here);
    // Longer than the others, or it would be over before so many kills.
    let steps = format!("train.steps={}", 200 * count);
    let sets = ["--set", &steps, "--set", "train.lr=0.003", "--set", "train.keep=2"];
    let train = |run: &Path| {
        [&["train", &recipe, "--out", run.to_str().unwrap()], &sets[..]]
            .concat()
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    let whole = here.join("whole");
    let args = train(&whole);
    let ran = regard(&args.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(ran.code, 0, "{}", ran.err);
    let run = here.join("killed");
    let mut command = train(&run);
    let (mut dice, mut done, mut signals) = (7u64, 0, [0; 4]);
    let mut roll = |below: u64| {
        dice = dice.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (dice >> 33) % below
    };
    while done < count {
        let args: Vec<&str> = command.iter().map(String::as_str).collect();
        let mut child = start(&args).spawn().unwrap();
        // Some moment between the first line that it says and some steps after a checkpoint.
        let saved = regard_tasks::train::checkpoints(&run).last().copied();
        let (began, patient) = (Instant::now(), roll(4) > 0);
        let moved = || !patient || regard_tasks::train::checkpoints(&run).last().copied() > saved;
        while !moved() && child.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < PATIENCE, "no checkpoint");
            std::thread::sleep(Duration::from_micros(200));
        }
        std::thread::sleep(Duration::from_micros(roll(30_000)));
        let kind = roll(4) as usize;
        let over = child.try_wait().unwrap().is_some();
        if !over {
            send(["-KILL", "-TERM", "-INT", "-HUP"][kind], &child);
        }
        let ran = end(child);
        assert!(!ran.err.contains("panicked"), "{}", ran.err);
        if run.join("model").is_dir() {
            break;
        }
        signals[kind] += 1;
        done += 1;
        let hint = format!("{}{}", ran.out, ran.err);
        if let Some((_, hint)) = hint.split_once("to continue: regard ") {
            command = hint.lines().next().unwrap().split(' ').map(str::to_string).collect();
        }
    }
    println!("{done} kills: {signals:?} of KILL, TERM, INT, HUP");
    assert_eq!(done, count, "it was over too soon");
    let ran = regard(&["train", "--resume", run.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(left(&run) == left(&whole), "after {done} kills it is another run");
}

#[test]
fn kills_at_random_moments_lose_nothing() {
    kills(&folder("resume-killed"), 6);
}

#[test]
#[ignore = "takes minutes; .ci/full runs it"]
fn thirty_kills_lose_nothing() {
    kills(&folder("resume-killed-often"), 30);
}

/// An error that comes after the program has said what it reads.
fn refused(args: &[&str], says: &[&str]) {
    let ran = regard(args);
    assert_eq!(ran.code, 2, "{args:?}: {}{}", ran.out, ran.err);
    let error = ran.err.lines().position(|line| line.starts_with("regard: "));
    let error = ran.err.lines().skip(error.expect("an error")).collect::<Vec<_>>().join("\n");
    for part in says {
        assert!(error.contains(part), "{args:?} should say {part:?}: {error}");
    }
}

#[test]
fn what_differs_is_named_and_nothing_is_touched() {
    let here = folder("resume-differs");
    let recipe = recipe(&here);
    let run = here.join("run");
    let name = run.to_str().unwrap();
    assert_eq!(stopped(&recipe, &run, "-TERM").code, 130);
    let kept = |run: &Path| {
        ["recipe.toml", "run.json", "metrics.jsonl"].map(|file| fs::read(run.join(file)).unwrap())
    };
    let before = kept(&run);
    let hint = format!("regard train --resume {name}");
    // The recipe's own file says 2000 steps; the run was begun with 300.
    let cases: [(&[&str], &[&str]); 6] = [
        (&["train", &recipe, "--out", name, "--resume"], &["train.steps", "300", "2000", &hint]),
        (&["train", "--resume", name, "--seed", "6"], &["seed", "5", "6", &hint]),
        (&["train", "--resume", name, "--set", "train.lr=0.1"], &["train.lr", "0.003", "0.1"]),
        (&["train", "--resume", name, "--set", "train.steps=30"], &["train.steps", "300", "30"]),
        (&["train", "--resume", name, "--set", "model.n_head=4"], &["model.n_head", "2", "4"]),
        (&["train", "hull-5", "--out", name, "--resume"], &["task", "generate", "point"]),
    ];
    for (args, says) in cases {
        fails(args, says);
        assert!(kept(&run) == before, "{args:?}");
    }
    // Without --resume, the folder is another run's.
    fails(&["train", &recipe, "--out", name], &["holds a run at step", &hint]);
    fails(&["train", "--resume", "no-such-run"], &["no-such-run", "runs/no-such-run"]);
    fails(&["train", "--resume"], &["name the run's folder"]);
    fails(&["train"], &["RECIPE"]);
    assert!(kept(&run) == before);
    // Other data, of the same length.
    let data = here.join("train.txt");
    let text = fs::read_to_string(&data).unwrap();
    fs::write(&data, format!("{}{}", &text[5..], &text[..5])).unwrap();
    refused(&["train", "--resume", name], &["train.txt", "other data", "SHA-256"]);
    assert!(kept(&run) == before);
    fs::write(&data, text).unwrap();
    assert_eq!(regard(&["train", "--resume", name]).code, 0);
}

#[test]
fn settings_that_may_change_are_said_and_kept() {
    let here = folder("resume-changes");
    let recipe = recipe(&here);
    let run = here.join("run");
    let name = run.to_str().unwrap();
    assert_eq!(stopped(&recipe, &run, "-TERM").code, 130);
    let more = ["--set", "train.steps = 400", "--set", "train.eval_every=20"];
    let mut child = start(&[&["train", "--resume", name], &more[..]].concat()).spawn().unwrap();
    let saved = regard_tasks::train::checkpoints(&run);
    let began = Instant::now();
    while regard_tasks::train::checkpoints(&run) == saved && child.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(1));
    }
    send("-TERM", &child);
    let ran = end(child);
    for part in ["train.steps: 400 instead of 300", "train.eval_every: 20 instead of 10"] {
        assert!(ran.err.contains(part), "{}", ran.err);
    }
    // The next resume goes on with them.
    let dumped = regard(&["train", "--resume", name, "--dump-config"]).out;
    assert!(dumped.contains("steps = 400") && dumped.contains("eval_every = 20"), "{dumped}");
    let ran = regard(&["train", "--resume", name]);
    assert!(ran.code == 0 && ran.out.contains("after step 400"), "{}{}", ran.out, ran.err);
    let written = fs::read_to_string(run.join("recipe.toml")).unwrap();
    assert!(written.contains("steps = 300"), "{written}");
    // A setting that is changed in the file would be none of the steps that were taken.
    fs::write(run.join("recipe.toml"), written.replace("steps = 300", "steps = 500")).unwrap();
    refused(&["train", "--resume", name], &["recipe.toml", "was changed after the run began"]);
}

#[test]
fn damaged_checkpoints_are_refused_by_name() {
    let here = folder("resume-damaged");
    let recipe = recipe(&here);
    let whole = whole(&here, &recipe);
    let run = here.join("run");
    let name = run.to_str().unwrap();
    let args = [&["train", &recipe, "--out", name], &SETS[..]].concat();
    let mut child = start(&args).spawn().unwrap();
    wait_for_checkpoints(&run, &mut child, 3);
    send("-TERM", &child);
    assert_eq!(end(child).code, 130);
    let steps = regard_tasks::train::checkpoints(&run);
    let last = run.join(format!("checkpoint-{}", steps.last().unwrap()));
    let files: Vec<PathBuf> =
        fs::read_dir(&last).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= 5, "{files:?}");
    let mut dice = 3u64;
    for flip in 0..30 {
        let file = &files[flip % files.len()];
        let bytes = fs::read(file).unwrap();
        dice = dice.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let mut flipped = bytes.clone();
        flipped[(dice >> 33) as usize % bytes.len()] ^= 1 << (flip % 8);
        fs::write(file, flipped).unwrap();
        let (newest, damaged) = regard_tasks::train::newest_whole(&run);
        assert!(newest < steps.last().copied() && damaged.len() == 1, "{file:?} was accepted");
        // Whoever uses the checkpoint is refused too.
        let inside = file.file_name().unwrap().to_str().unwrap();
        if flip < files.len() {
            fails(&["generate", "the", "--model", last.to_str().unwrap()], &[inside, "damaged"]);
        }
        fs::write(file, bytes).unwrap();
    }
    // Resumed, it goes on from the one before, says so, and is the same run at the end.
    let file = last.join("model.safetensors");
    let mut bytes = fs::read(&file).unwrap();
    let end = bytes.len() - 3;
    bytes[end] ^= 64;
    fs::write(&file, bytes).unwrap();
    let ran = regard(&["train", "--resume", name]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let damaged = last.file_name().unwrap().to_str().unwrap();
    let before = format!("continuing from step {}", steps[steps.len() - 2]);
    for part in [damaged, "model.safetensors is damaged", &before] {
        assert!(ran.err.contains(part), "no {part:?} in {}", ran.err);
    }
    assert!(run.join(format!("{damaged}.damaged")).is_dir());
    assert!(left(&run) == left(&whole));
}

#[test]
fn an_older_damaged_checkpoint_does_not_keep_a_run_from_its_end() {
    let here = folder("resume-older");
    let recipe = recipe(&here);
    let run = here.join("run");
    let name = run.to_str().unwrap();
    let sets = ["--set", "train.average=3"];
    let args = [&["train", &recipe, "--out", name], &SETS[..], &sets].concat();
    let mut child = start(&args).spawn().unwrap();
    wait_for_checkpoints(&run, &mut child, 3);
    send("-TERM", &child);
    assert_eq!(end(child).code, 130);
    // All but the newest, the best among them.
    let steps = regard_tasks::train::checkpoints(&run);
    for step in &steps[..steps.len() - 1] {
        let file = run.join(format!("checkpoint-{step}/trainer.json"));
        fs::write(&file, "{}").unwrap();
    }
    let ran = regard(&["train", "--resume", name]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("trainer.json is damaged"), "{}", ran.err);
    assert!(ran.err.contains(&format!("continuing from step {}", steps.last().unwrap())));
}

#[test]
fn a_run_without_its_recipe_is_not_resumed_with_another() {
    let here = folder("resume-no-recipe");
    let recipe = recipe(&here);
    let run = here.join("run");
    let name = run.to_str().unwrap();
    assert_eq!(stopped(&recipe, &run, "-TERM").code, 130);
    fs::remove_file(run.join("recipe.toml")).unwrap();
    fails(&["train", "--resume", name], &["holds no run", "recipe.toml"]);
    let args = [&["train", &recipe, "--out", name, "--resume"], &SETS[..]].concat();
    fails(&["train", &recipe, "--resume", "--out", "no-such"], &["no-such", "no run", "--resume"]);
    refused(&args, &["checkpoints but no recipe.toml"]);
    assert!(!run.join("recipe.toml").exists());
}

/// A run deletes only its own files.
#[test]
fn a_run_keeps_what_others_put_into_its_folder() {
    let here = folder("resume-foreign");
    let recipe = recipe(&here);
    let train = |run: &Path| ["train", &recipe, "--out", run.to_str().unwrap()].map(str::to_string);
    let started = |run: &Path, more: &[&str]| {
        let args = train(run);
        regard(&[&args.iter().map(String::as_str).collect::<Vec<_>>(), more].concat())
    };
    // A folder of the user's where the model would go.
    let thesis = here.join("project/model/thesis.txt");
    fs::create_dir_all(thesis.parent().unwrap()).unwrap();
    fs::write(&thesis, "precious").unwrap();
    let ran = started(&here.join("project"), &["--set", "train.steps=2"]);
    assert!(ran.code == 2 && ran.err.contains("a folder model"), "{}", ran.err);
    // Notes beside a model, and a run that is resumed with nothing left to do.
    let run = here.join("run");
    assert_eq!(started(&run, &["--set", "train.steps=5"]).code, 0);
    fs::create_dir_all(run.join("model/more")).unwrap();
    fs::write(run.join("model/NOTES.txt"), "my notes").unwrap();
    fs::write(run.join("model/more/x"), "y").unwrap();
    let ran = regard(&["train", "--resume", run.to_str().unwrap(), "--set", "train.steps=10"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(fs::read_to_string(run.join("model/NOTES.txt")).unwrap(), "my notes");
    assert_eq!(fs::read_to_string(run.join("model/more/x")).unwrap(), "y");
    assert!(run.join("model/config.json").is_file() && thesis.is_file());
    // A run inside a model, or where one will be.
    for inside in ["model", "checkpoint-5", "checkpoint-7"] {
        let ran = started(&run.join(inside), &[]);
        assert!(ran.code == 2 && ran.err.contains("choose another folder"), "{}", ran.err);
    }
}

/// Some programs send a signal twice in a row: that is not a person who is in a hurry.
#[test]
fn two_signals_at_once_are_one() {
    let here = folder("resume-twice");
    let recipe = recipe(&here);
    for signal in ["-TERM", "-INT"] {
        let run = here.join(format!("run{signal}"));
        let args = ["train", &recipe, "--out", run.to_str().unwrap()];
        let mut child = start(&args).spawn().unwrap();
        wait_for_checkpoint(&run, &mut child);
        let id = child.id();
        let script = format!("kill {signal} {id}; kill {signal} {id}; kill {signal} {id}; true");
        Command::new("sh").args(["-c", &script]).status().unwrap();
        let ran = end(child);
        assert_eq!(ran.code, 130, "{}", ran.err);
        assert!(ran.out.contains("to continue: "), "{signal}: {}{}", ran.out, ran.err);
    }
}

/// Files that a folder of a model may hold beside those that are always read.
#[test]
fn files_of_a_run_cannot_make_the_program_wait() {
    let here = folder("resume-pipes");
    let recipe = recipe(&here);
    let run = here.join("run");
    assert_eq!(stopped(&recipe, &run, "-TERM").code, 130);
    let last = regard_tasks::train::checkpoints(&run).pop().unwrap();
    let checkpoint = format!("checkpoint-{last}");
    for file in ["best.json".to_string(), format!("{checkpoint}/SHA256SUMS")] {
        let path = run.join(&file);
        // There is no best one before the first evaluation.
        let _ = fs::remove_file(&path);
        let made = Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let model = run.join(&checkpoint);
        for model in [&run, &model] {
            let mut limited = Command::new("timeout");
            limited.args(["60", env!("CARGO_BIN_EXE_regard"), "inspect"]).arg(model);
            let ran = finish(limited);
            assert!([0, 2].contains(&ran.code), "{file}: {} {}", ran.code, ran.err);
        }
        fs::remove_file(&path).unwrap();
    }
    // Others have files of this name too.
    fs::remove_file(run.join(&checkpoint).join("trainer.json")).unwrap();
    fs::write(run.join(&checkpoint).join("SHA256SUMS"), "0123  model.safetensors\n").unwrap();
    let model = run.join(&checkpoint);
    let ran = regard(&["inspect", model.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.err);
}

#[test]
fn one_process_a_run() {
    let here = folder("resume-locked");
    let recipe = recipe(&here);
    let run = here.join("run");
    let name = run.to_str().unwrap();
    let args = ["train", &recipe, "--out", name];
    let mut child = start(&args).spawn().unwrap();
    wait_for_checkpoint(&run, &mut child);
    let process = format!("process {} is training here", child.id());
    fails(&["train", "--resume", name], &["run", &process]);
    fails(&args, &["run", &process]);
    // A process that is gone holds nothing.
    child.kill().unwrap();
    child.wait().unwrap();
    let mut child = start(&["train", "--resume", name]).spawn().unwrap();
    let mut read = [0; 1];
    child.stderr.as_mut().unwrap().read_exact(&mut read).unwrap();
    send("-TERM", &child);
    let ran = end(child);
    assert_eq!(ran.code, 130, "{}", ran.err);
}

#[test]
fn nobody_has_to_read_what_a_run_says() {
    let here = folder("resume-unread");
    let recipe = recipe(&here);
    let whole = whole(&here, &recipe);
    for (name, redirect) in [("pipe", "2>&1 | head -1 >/dev/null"), ("full", "2>/dev/full")] {
        let run = here.join(name);
        let script = format!(
            "{:?} train {recipe:?} --out {run:?} {} {redirect}; true",
            env!("CARGO_BIN_EXE_regard"),
            SETS.join(" ")
        );
        let mut shell = Command::new("bash");
        shell.args(["-c", &script]);
        let ran = finish(shell);
        assert!(!ran.err.contains("panicked"), "{}", ran.err);
        assert!(left(&run) == left(&whole), "{name}");
    }
}

#[test]
fn a_run_started_by_nohup_outlives_its_terminal() {
    let here = folder("resume-nohup");
    let recipe = recipe(&here);
    let run = here.join("run");
    let script = format!(
        "trap '' HUP; exec {:?} train {recipe:?} --out {run:?} {}",
        env!("CARGO_BIN_EXE_regard"),
        SETS.join(" ")
    );
    let mut child = Command::new("bash");
    child.args(["-c", &script]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    wait_for_checkpoint(&run, &mut child);
    send("-HUP", &child);
    let ran = end(child);
    assert!(ran.code == 0 && run.join("model").is_dir(), "{}{}", ran.code, ran.err);
}

#[test]
fn settings_that_cannot_be() {
    let here = folder("resume-bounds");
    let recipe = recipe(&here);
    let run = here.join("run");
    let out = ["train", &recipe, "--out", run.to_str().unwrap()];
    let fails_with = |set: &str, says: &[&str]| fails(&[&out[..], &["--set", set]].concat(), says);
    fails_with("train.accumulate=1000000000", &["train.accumulate", "1000000000", "65536"]);
    fails_with("train.batch_tokens=9000000000", &["train.batch_tokens"]);
    fails_with("train.average=100000", &["train.average"]);
    let seeds = ["--seeds", "2", "--seed", "18446744073709551615"];
    fails(&[&out[..], &seeds].concat(), &["--seeds 2", "18446744073709551615"]);
    // A name that would lead out of runs/.
    for name in ["../../outside", "/tmp/outside", "", ".", "a/b"] {
        let set = format!("name={name:?}");
        fails(&["train", &recipe, "--set", &set], &["name:", "--out"]);
    }
    assert!(!run.exists() && !here.join("../../outside").exists());
}

#[test]
fn an_interrupted_series_of_seeds_goes_on() {
    let here = folder("resume-seeds");
    let recipe = recipe(&here);
    let run = here.join("runs");
    let name = run.to_str().unwrap();
    let args = [&["train", &recipe, "--out", name, "--seeds", "2"], &SETS[..]].concat();
    let mut child = start(&args).spawn().unwrap();
    wait_for_checkpoint(&run.join("seed-0"), &mut child);
    send("-TERM", &child);
    let ran = end(child);
    assert_eq!(ran.code, 130, "{}", ran.err);
    let on = follow(&hint(&ran));
    assert_eq!(on.code, 0, "{}", on.err);
    for seed in [0, 1] {
        let written = fs::read_to_string(run.join(format!("seed-{seed}/recipe.toml"))).unwrap();
        assert!(written.contains(&format!("seed = {seed}\n")), "{written}");
        assert!(written.contains("steps = 300\n"), "{written}");
    }
    assert!(run.join("seeds.json").is_file());
    // A mean is over runs of one kind: those that are done are trained further too, or refused.
    let more = ["train", "--resume", name, "--seeds", "3", "--set", "train.steps=320"];
    let ran = regard(&more);
    assert_eq!(ran.code, 0, "{}", ran.err);
    for seed in [0, 1, 2] {
        let log = fs::read_to_string(run.join(format!("seed-{seed}/metrics.jsonl"))).unwrap();
        assert!(log.contains("{\"step\":320,"), "seed {seed}: {}", log.lines().last().unwrap());
    }
}
