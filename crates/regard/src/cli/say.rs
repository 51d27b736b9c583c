//! Lines on standard error that may get lost.

use std::fmt::Display;
use std::io::{Write, stderr};

/// Writes a line to standard error. A terminal that is gone, a closed pipe or a full disk behind
/// it must not end a training run, which `eprintln!` would do by panicking.
pub fn say(line: impl Display) {
    let _ = writeln!(stderr(), "{line}");
}

/// A word of a command line, quoted where a shell would read it otherwise.
pub fn quoted(word: impl Display) -> String {
    let word = word.to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_shell_reads_the_same_word() {
        for word in ["runs/x", "my runs/x", "it's", "", "$HOME", "a;b", "模型"] {
            let script = format!("printf %s {}", quoted(word));
            let ran = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(ran.stdout).unwrap(), word);
        }
    }
}
