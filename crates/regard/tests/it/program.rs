//! Runs the binary.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// What came of a run.
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// A run with nothing in its environment that would change what it prints.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_regard"));
    for name in ["REGARD_ISA", "REGARD_NUM_THREADS", "NO_COLOR", "COLORTERM", "COLUMNS", "TERM"] {
        command.env_remove(name);
    }
    command.args(args);
    command
}

pub fn finish(mut command: Command) -> Ran {
    let Output { status, stdout, stderr } = command.output().expect("the binary starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Ran { code: status.code().expect("an exit code"), out: text(stdout), err: text(stderr) }
}

pub fn regard(args: &[&str]) -> Ran {
    finish(command(args))
}

/// A run with these bytes on standard input.
pub fn piped(args: &[&str], input: &[u8]) -> Output {
    let mut child = command(args);
    child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().expect("the binary starts");
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // Both ends at once, or full pipes would wait for each other.
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

/// Runs it, asks for success, and reads what it printed as JSON.
pub fn json(args: &[&str]) -> serde_json::Value {
    let ran = regard(args);
    assert_eq!(ran.code, 0, "{args:?}: {}", ran.err);
    serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("{args:?}: {e}: {}", ran.out))
}

/// Runs it and asks for an error that says all of these.
pub fn fails(args: &[&str], says: &[&str]) {
    let ran = regard(args);
    assert_eq!(ran.code, 2, "{args:?}: {}{}", ran.out, ran.err);
    // What was read of the user's data may come before it.
    let is_error = |line: &str| line.starts_with("regard: ");
    assert!(ran.err.lines().any(is_error), "{args:?}: {}", ran.err);
    assert!(!ran.err.contains("panicked"), "{args:?}: {}", ran.err);
    for part in says {
        assert!(ran.err.contains(part), "{args:?} should say {part:?}: {}", ran.err);
    }
}

/// A directory of its own for each test, empty.
pub fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    folder
}

/// Runs the program in a folder, without data sets and network. It must succeed.
pub fn succeeds_in(here: &Path, args: &[&str]) -> Ran {
    let mut command = command(args);
    command.current_dir(here).env_remove("REGARD_DATA").env("HF_HUB_OFFLINE", "1");
    let ran = finish(command);
    assert_eq!(ran.code, 0, "{args:?}: {}{}", ran.out, ran.err);
    ran
}
