//! The program `regard`: attention models in a terminal.
//!
//! Only this crate handles flags, terminals and exit codes. Tasks are in `regard-tasks`, models in
//! `regard-models`, kernels in `regard-kernels`. A verb is a file under `cli/` and a row of
//! `verbs!` in `cli/mod.rs`.
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
        Ok(cli::Outcome::Interrupted) => ExitCode::from(cli::INTERRUPTED),
        // The reader closed the pipe, as in `regard variants | head -3`.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // `eprintln!` would panic if standard error is closed.
            let text = regard_tasks::say::message(&format!("{error:#}"));
            let _ = writeln!(io::stderr(), "regard: {text}");
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
