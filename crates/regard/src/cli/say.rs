//! Messages on standard error, whose write errors are ignored.

use std::fmt::Display;
use std::io::{Write, stderr};

/// Writes a line to standard error. A closed terminal or pipe, or a full disk behind it, must not
/// end a training run; `eprintln!` would panic.
pub fn say(line: impl Display) {
    let _ = writeln!(stderr(), "{line}");
}

/// Quotes a command-line argument for a shell, if it needs quotes.
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
