//! Where the program writes: a regular file is replaced as a whole, a link stays a link, and what
//! is no file (a FIFO, a device) is written to and never replaced.
#![cfg(unix)]

use crate::program::{Ran, command, fails, finish, folder, regard};
use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

/// Arguments that draw the demonstration.
const TEXT: &str = "catfish";

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Every verb's output flags.
fn drawn(flag: &str, to: &str) -> Ran {
    regard(&["attend", "--demo", TEXT, flag, to])
}

fn exit_code(script: &str) -> (i32, String) {
    let mut shell = Command::new("bash");
    shell.args(["-c", script]).env("R", env!("CARGO_BIN_EXE_regard"));
    let Ran { code, out, err } = finish(shell);
    (code, out + &err)
}

#[test]
fn a_link_stays_and_what_it_leads_to_is_replaced() {
    let here = folder("outputs_link");
    fs::create_dir(here.join("elsewhere")).unwrap();
    let (real, link) = (here.join("elsewhere/real.svg"), here.join("link.svg"));
    fs::write(&real, "old").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
    symlink("elsewhere/real.svg", &link).unwrap();
    let second = here.join("second.svg");
    symlink("link.svg", &second).unwrap();
    for to in [&link, &second] {
        fs::write(&real, "old").unwrap();
        let ran = drawn("--svg", text(to));
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(fs::symlink_metadata(to).unwrap().is_symlink(), "{to:?} is a link no more");
        assert!(fs::read_to_string(&real).unwrap().contains("<svg"), "{to:?}");
    }
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o600);
    // A link to what is not there yet: it is made there.
    let dangling = here.join("dangling.html");
    symlink("elsewhere/new.html", &dangling).unwrap();
    assert_eq!(drawn("--html", text(&dangling)).code, 0);
    assert!(fs::symlink_metadata(&dangling).unwrap().is_symlink());
    assert!(here.join("elsewhere/new.html").is_file());
    // Links that lead to each other, and folders, are no place to write to.
    let (a, b) = (here.join("a.svg"), here.join("b.svg"));
    symlink("b.svg", &a).unwrap();
    symlink("a.svg", &b).unwrap();
    for bad in [&a, &here.join("elsewhere")] {
        let ran = drawn("--svg", text(bad));
        assert!(ran.code == 2 && ran.err.contains(text(bad)), "{}", ran.err);
    }
    let left = |at: &Path| fs::read_dir(at).unwrap().map(|e| e.unwrap().file_name()).collect();
    let names: Vec<std::ffi::OsString> = left(&here.join("elsewhere"));
    assert_eq!(names.len(), 2, "nothing is left beside: {names:?}");
}

#[test]
fn a_fifo_is_written_to() {
    let here = folder("outputs_fifo");
    let picture = here.join("square.png");
    let script = |verb: &str| {
        format!(
            "cd {here} && rm -f ff.npz got && mkfifo ff.npz || exit 9; \
             timeout 60 cat ff.npz > got & reader=$!; \
             timeout 60 $R {verb} ff.npz || {{ code=$?; kill $reader; exit $code; }}; wait $reader",
            here = here.display()
        )
    };
    let square = regard_tasks::data::Image { size: [40, 40], channels: 1, pixels: vec![90; 1600] };
    square.write_png(&picture).unwrap();
    for (verb, begins) in [
        ("attend --demo catfish --svg", &b"<svg"[..]),
        ("attend --demo catfish --html", b"<!DOCTYPE html>"),
        ("classify --image square.png --attention", b"\x89PNG"),
        ("attend --translate 'They are watching.' --save", b"PK"),
    ] {
        let (code, said) = exit_code(&script(verb));
        assert_eq!(code, 0, "{verb}: {said}");
        let kind = fs::symlink_metadata(here.join("ff.npz")).unwrap().file_type();
        assert!(kind.is_fifo(), "{verb}: the FIFO was replaced");
        let got = fs::read(here.join("got")).unwrap();
        let head = &got[..got.len().min(20)];
        assert!(
            got.to_ascii_lowercase().starts_with(&begins.to_ascii_lowercase()),
            "{verb}: {head:?}"
        );
    }
}

#[test]
fn what_is_open_already_is_written_to() {
    let here = folder("outputs_open");
    let at = here.display();
    let (code, said) = exit_code("$R attend --demo catfish --svg >(cat) | cat");
    assert!(code == 0 && said.contains("<svg"), "{code}: {said}");
    let (code, said) = exit_code("$R attend --demo catfish --svg /dev/stdout | cat");
    assert!(code == 0 && said.contains("<svg"), "{code}: {said}");
    // Standard output that is a file keeps what is printed before and after.
    let (code, said) =
        exit_code(&format!("$R attend --demo catfish --svg /dev/stdout > {at}/out.txt"));
    assert_eq!(code, 0, "{said}");
    let out = fs::read_to_string(here.join("out.txt")).unwrap();
    let printed = regard(&["attend", "--demo", TEXT]).out;
    assert!(out.contains("<svg") && out.len() > printed.len(), "{out}");
    let first = printed.lines().next().unwrap();
    assert!(out.contains(first), "what was printed is lost: {out}");
}

/// A device is not replaced. `/dev/full` itself is not touched, in case this fails as root: the
/// link is.
#[test]
fn a_device_is_written_to() {
    let here = folder("outputs_device");
    let link = here.join("full.svg");
    symlink("/dev/full", &link).unwrap();
    let ran = drawn("--svg", text(&link));
    assert!(ran.code == 2 && ran.err.contains("No space left"), "{}: {}", ran.code, ran.err);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    symlink("/dev/null", here.join("null.svg")).unwrap();
    let ran = drawn("--svg", text(&here.join("null.svg")));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
}

/// A file that somebody put where the temporary one would be is not written through.
#[test]
fn what_is_exported_does_not_go_through_links() {
    let here = folder("outputs_export");
    let out = here.join("model");
    fs::create_dir(&out).unwrap();
    let victim = here.join("victim.txt");
    fs::write(&victim, "precious").unwrap();
    for name in ["model.safetensors.tmp", "config.json.tmp", "tokenizer.json.tmp"] {
        symlink(&victim, out.join(name)).unwrap();
    }
    let ran = finish(command(&["models", "export", "en-pos", "--out", text(&out)]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
}

/// A command refuses to write over its own input.
#[test]
fn an_output_does_not_replace_an_input() {
    let home = folder("outputs_inputs");
    let text = home.join("text.txt");
    let words = "a few words\n".repeat(20);
    fs::write(&text, &words).unwrap();
    let at = text.to_str().unwrap();
    let args = ["tokenizer", "train", "--kind", "char", "--size", "100", "--out", at, at];
    fails(&args, &["--out", at, "is an input file"]);
    fails(&["point", "--file", at, "--svg", at], &["--svg", "is an input file"]);
    fails(&["attend", at, "--html", at], &["--html", "is an input file"]);
    fails(&["attend", "--demo", "--svg", at, "--html", at], &["name the same file"]);
    fails(&["classify", "--image", at, "--attention", at], &["--attention", "is an input file"]);
    fails(
        &["eval", "--model", "en-fr", "--data", at, "--save", at],
        &["--save would overwrite --data", "is an input file"],
    );
    let nodes = ["classify", "--graph", "edges.tsv", "--nodes", at, "--svg", at, "--model", "x"];
    let ran = finish(command(&nodes));
    assert_eq!(ran.code, 2, "{}", ran.out);
    assert_eq!(fs::read_to_string(&text).unwrap(), words);
}
