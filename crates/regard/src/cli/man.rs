//! `regard man`: manual pages.

use super::{Global, Outcome};
use anyhow::{Context, Result};
use clap::{Args, Command};
use clap_mangen::Man;
use regard_models::checkpoint;
use regard_tasks::say;
use std::io::Write;
use std::path::PathBuf;

/// Print a manual page, or write all of them to a folder
#[derive(Args)]
#[command(after_help = "\
Examples:
  regard man | man -l -
  regard man translate | man -l -
  regard man --out ~/.local/share/man/man1")]
pub struct Flags {
    /// Command to describe [default: the program]
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
    /// Write the pages of the program and of every command to this folder
    #[arg(long, value_name = "FOLDER", conflicts_with = "command")]
    out: Option<PathBuf>,
}

pub fn run(flags: Flags, _: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let mut program = super::command();
    program.build();
    if let Some(folder) = flags.out {
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let pages = std::iter::once(&program).chain(program.get_subcommands());
        let mut count = 0;
        for command in pages {
            let name = page_name(command);
            checkpoint::write_file(&folder.join(format!("{name}.1")), &page(command)?)?;
            count += 1;
        }
        writeln!(out, "{count} pages written to {}", folder.display())?;
        return Ok(Outcome::Positive);
    }
    let command = match &flags.command {
        None => &program,
        Some(name) => program.find_subcommand(name).with_context(|| {
            let names: Vec<&str> = program.get_subcommands().map(Command::get_name).collect();
            let near = say::did_you_mean(name, &names);
            format!("{name}: no such command. {near}`regard --help` lists them")
        })?,
    };
    out.write_all(&page(command)?)?;
    Ok(Outcome::Positive)
}

/// The name of a page: `regard`, or `regard-translate`.
fn page_name(command: &Command) -> String {
    match command.get_name() {
        "regard" => "regard".into(),
        verb => format!("regard-{verb}"),
    }
}

fn page(command: &Command) -> Result<Vec<u8>> {
    let mut page = vec![];
    Man::new(command.clone()).title(page_name(command)).render(&mut page)?;
    Ok(page)
}
