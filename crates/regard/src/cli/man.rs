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
        let mut pages = vec![];
        collect(&program, "", &mut pages);
        for (name, command) in &pages {
            checkpoint::write_file(&folder.join(format!("{name}.1")), &page(name, command)?)?;
        }
        writeln!(out, "{} pages written to {}", pages.len(), folder.display())?;
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
    let name = flags.command.map_or("regard".into(), |name| format!("regard-{name}"));
    out.write_all(&page(&name, command)?)?;
    Ok(Outcome::Positive)
}

/// A command and the commands below it, with the names of their pages: `regard-models-export`.
fn collect<'a>(command: &'a Command, above: &str, pages: &mut Vec<(String, &'a Command)>) {
    let name = format!("{above}{}", command.get_name());
    let below = command.get_subcommands().filter(|command| command.get_name() != "help");
    below.for_each(|inner| collect(inner, &format!("{name}-"), pages));
    pages.push((name, command));
}

fn page(name: &str, command: &Command) -> Result<Vec<u8>> {
    let mut page = vec![];
    Man::new(command.clone()).title(name).render(&mut page)?;
    Ok(page)
}
