//! `regard completions`: completion scripts for shells.

use super::{Global, Outcome};
use anyhow::Result;
use clap::Args;
use clap_complete::Shell;
use std::io::Write;

/// Print a completion script for a shell
#[derive(Args)]
#[command(after_help = "\
Examples:
  regard completions bash > ~/.local/share/bash-completion/completions/regard
  regard completions zsh > ~/.zfunc/_regard     # a folder in $fpath
  regard completions fish > ~/.config/fish/completions/regard.fish")]
pub struct Flags {
    /// Shell
    shell: Shell,
}

pub fn run(flags: Flags, _: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let mut script = vec![];
    clap_complete::generate(flags.shell, &mut super::command(), "regard", &mut script);
    out.write_all(&script)?;
    Ok(Outcome::Positive)
}
