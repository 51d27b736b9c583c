//! Messages on standard error, whose write errors are ignored.

pub use regard_tasks::say::quoted;

use std::fmt::Display;
use std::io::{Write, stderr};

/// Writes a line to standard error. A closed terminal or pipe, or a full disk behind it, must not
/// end a training run; `eprintln!` would panic.
pub fn say(line: impl Display) {
    let _ = writeln!(stderr(), "{line}");
}
