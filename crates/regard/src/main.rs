//! The program `regard`: attention models in a terminal.
//!
//! This crate alone knows flags, files, terminals and exit codes; what it computes with is
//! `regard-kernels`. A verb is a file under `cli/` and a row in its list.
#![forbid(unsafe_code)]

mod choice;
mod cli;
mod files;
#[cfg(test)]
mod fuzz;
mod hub;
mod machine;
mod models;
mod problem;
mod recipe;
mod self_test;
mod show;
mod yardstick;

use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::run() {
        Ok(cli::Outcome::Positive) => ExitCode::SUCCESS,
        Ok(cli::Outcome::Negative) => ExitCode::from(1),
        Ok(cli::Outcome::Interrupted) => ExitCode::from(130),
        // Whoever read the output has seen enough: `regard variants | head -3`.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let message = shortened(format!("{error:#}"));
            // A closed standard error is no reason to panic.
            let _ = writeln!(io::stderr(), "regard: {message}");
            ExitCode::from(2)
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let kind = match cause.downcast_ref::<serde_json::Error>() {
            Some(json) => json.io_error_kind(),
            None => cause.downcast_ref::<io::Error>().map(io::Error::kind),
        };
        kind == Some(io::ErrorKind::BrokenPipe)
    })
}

/// Messages repeat what stands in files and arguments, which may be of any length.
const LONGEST_MESSAGE: usize = 900;

/// A message with its middle left out if it is too long to be read.
fn shortened(message: String) -> String {
    if message.len() <= LONGEST_MESSAGE {
        return message;
    }
    let head = message.floor_char_boundary(LONGEST_MESSAGE * 2 / 3);
    let tail = message.ceil_char_boundary(message.len() - LONGEST_MESSAGE / 4);
    let left_out = tail - head;
    format!("{} … ({left_out} bytes left out) … {}", &message[..head], &message[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_lose_their_middle() {
        assert_eq!(shortened("short".into()), "short");
        let long = format!("recipe.toml: {}: the end", "é".repeat(100_000));
        let short = shortened(long);
        assert!(short.len() < 1000, "{}", short.len());
        assert!(short.starts_with("recipe.toml: é") && short.ends_with("é: the end"), "{short}");
        assert!(short.contains("bytes left out"), "{short}");
    }
}
