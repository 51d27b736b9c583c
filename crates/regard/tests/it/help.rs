//! Every `--help` as a snapshot, and its examples as commands that run.
//!
//! After a change of the help: `INSTA_UPDATE=always cargo test -p regard help`, and read the diff.

use crate::arrays::{floats, npz, numbers};
use crate::program::{command, finish, folder};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The help of a command, as a terminal of 100 columns shows it.
fn help(verb: &[&str]) -> String {
    let mut asked = command(&[verb, &["--help"]].concat());
    asked.env("COLUMNS", "100");
    let ran = finish(asked);
    assert_eq!((ran.code, &*ran.err), (0, ""), "{verb:?}");
    ran.out
}

/// The names in the list of commands of a help.
fn commands(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| line.starts_with("  "));
    let names = lines.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(String::from).collect()
}

/// Every command and command of a command, with its help.
fn all() -> Vec<(Vec<String>, String)> {
    let program = help(&[]);
    let mut found: Vec<(Vec<String>, String)> = vec![];
    for verb in commands(&program) {
        let text = help(&[&verb]);
        for inner in commands(&text) {
            found.push((vec![verb.clone(), inner.clone()], help(&[&verb, &inner])));
        }
        found.push((vec![verb], text));
    }
    found.push((vec![], program));
    found
}

#[test]
fn helps_are_as_they_were_read() {
    let all = all();
    assert!(all.len() > 30, "{}", all.len());
    for (verb, text) in all {
        let name = if verb.is_empty() { "regard".into() } else { verb.join("-") };
        for line in text.lines() {
            // An example is one line, so that it can be copied.
            let fits = line.chars().count() <= 100 || line.starts_with("  regard ");
            assert!(fits, "{name}: {line}");
        }
        insta::assert_snapshot!(name, text);
    }
}

/// Marks of examples that need more than a clone: a download, a data set, or a model that was
/// trained before. Their help says so.
const NEEDS_MORE: &[&str] = &[
    "download",
    "needs",
    "runs/",
    "FOLDER",
    "huggingface",
    "--model sentence-transformers/",
    "--model cross-encoder/",
    "--from MODEL",
];
/// Examples that train or measure for minutes, or need another program.
const NOT_RUN: &[&str] =
    &["regard train sort-10 ", "--quick", "compare --layers", "| jq", "| man", "~/", ".toml"];

/// The examples of a help. A line that ends with a backslash goes on in the next.
fn examples(help: &str) -> Vec<String> {
    let mut found: Vec<String> = vec![];
    let mut goes_on = false;
    for line in help.lines() {
        let (text, more) = match line.strip_suffix('\\') {
            Some(text) => (text, true),
            None => (line, false),
        };
        match found.last_mut().filter(|_| goes_on) {
            Some(last) => last.push_str(text.trim()),
            None if line.starts_with("  regard ") => found.push(text.trim_start().to_string()),
            None => continue,
        }
        goes_on = more;
    }
    found
}

/// The files that examples call the user's own.
fn own_files(here: &Path) {
    let write = |name: &str, bytes: &[u8]| fs::write(here.join(name), bytes).unwrap();
    for name in ["english", "french", "texts", "sentences", "prompts", "text", "zh"] {
        write(&format!("{name}.txt"), b"They are watching.\nI am hungry.\n");
    }
    write("words.conll", b"They PRON\nsleep VERB\n\nDogs NOUN\n");
    write("points.txt", b"0 0  1 0  1 1  0 1  0.5 0.4\n");
    write("pairs.tsv", b"They are watching.\tIls regardent.\n");
    let texts = |word: &str| (0..40).map(move |i| format!("{word} {i}")).collect::<Vec<_>>();
    let rows = texts("good").into_iter().map(|text| format!("{text},a\n"));
    let rows: String = rows.chain(texts("bad").into_iter().map(|t| format!("{t},b\n"))).collect();
    write("train.csv", format!("text,label\n{rows}").as_bytes());
    write("test.csv", b"text,label\nvery good,a\nvery bad,b\n");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::create_dir_all(here.join("examples")).unwrap();
    fs::copy(root.join("examples/reviews.csv"), here.join("examples/reviews.csv")).unwrap();
    let fixtures = root.join("fixtures");
    fs::copy(fixtures.join("pictures/grey.png"), here.join("shoe.png")).unwrap();
    ["seven", "number", "a", "b"].iter().for_each(|name| write(&format!("{name}.wav"), &tone()));
    // The folder of models in a clone.
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/en-fr");
    fs::create_dir_all(here.join("models/en-fr")).unwrap();
    for file in fs::read_dir(models).unwrap().flatten() {
        fs::copy(file.path(), here.join("models/en-fr").join(file.file_name())).unwrap();
    }
    let array = |name| (name, floats("(1, 4, 20, 8)", &numbers(640)));
    write("qkv.npz", &npz(&["q", "k", "v"].map(array)));
}

/// Half a second of a tone as a WAV file of 8 kHz.
fn tone() -> Vec<u8> {
    let sample = |i: u32| ((f64::from(i) * 0.3).sin() * 8000.0) as i16;
    let samples: Vec<u8> = (0..4000).flat_map(|i| sample(i).to_le_bytes()).collect();
    let size = samples.len() as u32;
    let mut file = b"RIFF".to_vec();
    file.extend((36 + size).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend(8000u32.to_le_bytes());
    file.extend(16000u32.to_le_bytes());
    file.extend(b"\x02\0\x10\0data");
    file.extend(size.to_le_bytes());
    file.extend(samples);
    file
}

/// A command line in a folder, without data sets and without a network.
fn shell(line: &str, here: &Path) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_regard")).parent().unwrap().display();
    let path = format!("{program}:{}", std::env::var("PATH").unwrap());
    let mut shell = Command::new("bash");
    shell.args(["-c", line]).current_dir(here).env("PATH", path).stdin(Stdio::null());
    shell.env_remove("REGARD_DATA").env("HF_HUB_OFFLINE", "1");
    shell
}

#[test]
fn examples_run_with_what_is_built_in() {
    let here = folder("help-examples");
    own_files(&here);
    let (mut ran, mut left, mut failed) = (0, vec![], vec![]);
    for (verb, text) in all() {
        for example in examples(&text) {
            if NEEDS_MORE.iter().chain(NOT_RUN).any(|mark| example.contains(mark)) {
                left.push(example);
                continue;
            }
            let done = finish(shell(&example, &here));
            // 1 is a negative result: a data set that is not here.
            if done.code != 0 && !(done.code == 1 && example.starts_with("regard data ")) {
                failed.push(format!("{verb:?}: {example}\n{}", done.err));
            }
            ran += 1;
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(ran >= 50, "{ran} examples ran; not run: {left:#?}");
}

/// A line of output without the digits of fractions, of which the last differ between instruction
/// sets.
fn shape(line: &str) -> String {
    let (mut kept, mut fraction) = (String::new(), false);
    for c in line.trim_end().chars() {
        fraction = c == '.' || (fraction && c.is_ascii_digit());
        if c == '.' || !fraction {
            kept.push(c);
        }
    }
    kept
}

/// The commands of the readme run, and print what it says.
#[test]
fn the_readme_is_true() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    assert!(readme.len() <= 9_000, "README.md has {} bytes, need at most 9,000", readme.len());
    let here = folder("readme");
    fs::create_dir_all(here.join("examples")).unwrap();
    fs::copy(root.join("examples/reviews.csv"), here.join("examples/reviews.csv")).unwrap();
    let (mut ran, mut compared) = (0, 0);
    // Output of the command above, within a block.
    let mut printed: Option<Vec<String>> = None;
    for line in readme.lines() {
        let command = line.strip_prefix("$ ").or(line.starts_with("regard ").then_some(line));
        match (command, &printed) {
            (Some(command), _) => {
                let done = finish(shell(command, &here));
                assert_eq!(done.code, 0, "{command}: {}{}", done.out, done.err);
                printed = Some(done.out.lines().chain(done.err.lines()).map(shape).collect());
                ran += 1;
            }
            (None, Some(_)) if line == "```" => printed = None,
            (None, Some(found)) if line != "…" => {
                assert!(found.contains(&shape(line)), "{line:?} is not in {found:#?}");
                compared += 1;
            }
            _ => {}
        }
    }
    assert!(ran >= 4 && compared >= 15, "{ran} commands, {compared} lines of output");
}

/// Files that are made by the program are as it makes them.
#[test]
fn generated_files_are_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (name, flags) in [
        ("RESULTS.md", &["recipes", "--markdown"][..]),
        ("docs/recipe-keys.md", &["recipes", "--keys", "--markdown"]),
    ] {
        let made = finish(command(flags)).out;
        let found = fs::read_to_string(root.join(name)).unwrap_or_default();
        assert!(made == found, "{name} is stale: regard {} > {name}", flags.join(" "));
    }
}

/// Completion scripts and manual pages name every command.
#[test]
fn completions_and_manual_pages() {
    let verbs = commands(&help(&[]));
    for shell in ["bash", "zsh", "fish"] {
        let script = finish(command(&["completions", shell])).out;
        verbs.iter().for_each(|verb| assert!(script.contains(verb.as_str()), "{shell}: {verb}"));
    }
    let here = folder("manual");
    let ran = finish(command(&["man", "--out", here.to_str().unwrap()]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    for verb in &verbs {
        let page = fs::read_to_string(here.join(format!("regard-{verb}.1"))).unwrap();
        assert!(page.contains(".SH NAME") && page.contains(verb.as_str()), "{verb}");
    }
    assert!(here.join("regard-models-export.1").exists() && !here.join("regard-help.1").exists());
    assert!(finish(command(&["man", "translat"])).err.contains("did you mean 'translate'"));
}
