//! The scripts of docs/your-data.md: each runs, with the trainings cut to a few steps.

use crate::program::{Ran, finish, folder};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Pretrained model that the document downloads; the test has no network.
const DOWNLOADED: &str = "sentence-transformers/all-MiniLM-L6-v2";
/// Settings that end a training soon.
const SHORT: &str = " --set train.steps=4 --set train.eval_every=2 --set train.warmup=1 \
                     --set train.save_every=0";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The scripts of the document, with the heading that each stands below.
fn scripts(text: &str) -> Vec<(String, String)> {
    let (mut found, mut heading, mut script) = (vec![], String::new(), None::<String>);
    for line in text.lines() {
        match (&mut script, line) {
            (None, "```sh") => script = Some(String::new()),
            (Some(_), "```") => found.push((heading.clone(), script.take().unwrap())),
            (Some(script), line) => {
                script.push_str(line);
                script.push('\n');
            }
            (None, line) => {
                if let Some(title) = line.strip_prefix("## ") {
                    heading = title.to_string();
                }
            }
        }
    }
    found
}

fn shell(here: &Path, script: &str) -> Ran {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_regard"));
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", script]).current_dir(here).env("HF_HUB_OFFLINE", "1");
    shell.env_remove("REGARD_DATA").stdin(std::process::Stdio::null());
    shell.env("PATH", format!("{}:{path}", program.parent().unwrap().display()));
    finish(shell)
}

#[test]
fn every_script_of_the_document_runs() {
    let here = folder("your_data");
    let _ = fs::remove_dir_all(&here);
    fs::create_dir_all(&here).unwrap();
    for name in ["examples", "README.md"] {
        std::os::unix::fs::symlink(root().join(name), here.join(name)).unwrap();
    }
    let model = root().join("fixtures/reading/BertModel").display().to_string();
    let text = fs::read_to_string(root().join("docs/your-data.md")).unwrap();
    let all = scripts(&text);
    assert!(all.len() >= 12, "{} scripts", all.len());
    for (heading, script) in all {
        let short =
            |line: &str| match line.starts_with("regard train ") && !line.contains("--dry-run") {
                true => format!("{line}{SHORT}\n"),
                false => format!("{line}\n"),
            };
        let script: String = script.lines().map(short).collect();
        let ran = shell(&here, &script.replace(DOWNLOADED, &model));
        assert_eq!(ran.code, 0, "{heading}:\n{script}\n{}{}", ran.out, ran.err);
        assert!(!ran.out.is_empty(), "{heading} prints nothing");
        if script.contains("regard train ") {
            let (_, next) = ran.out.split_once("\nNext:\n").unwrap_or_default();
            assert!(
                next.lines().next().unwrap_or("").contains("regard "),
                "{heading}: {}",
                ran.out
            );
        }
    }
}
