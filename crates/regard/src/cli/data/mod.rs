//! `regard data`: list, check and download of data sets.

mod fetch;

use super::{Global, Outcome, write_json};
use crate::show::{self, table::Table, terminal};
use anyhow::Result;
use clap::Args;
use regard_tasks::data::sets::{self, Checksums, KnownFile, KnownFolder, SETS, Set, SetState};
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};

/// List known data sets, or show, check and download one
///
/// No data set is built in. Regard looks for them in $REGARD_DATA, ./data and your data folder, in
/// this order.
#[derive(Args)]
#[command(after_help = "\
Examples:
  regard data
  regard data multi30k            # licence, source, files and their checksums
  regard data multi30k --fetch    # download missing files with curl or wget (needs a network)
  REGARD_DATA=/data regard data multi30k --json

REGARD_DATA_SOURCE is the address of a mirror, in which each set has its folder. The exit code is 1
if the set is missing or files differ.")]
pub struct Flags {
    /// Name of the data set
    name: Option<String>,
    /// Download missing files, and check them
    #[arg(long, requires = "name")]
    fetch: bool,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let Some(name) = flags.name else { return list(global, out) };
    let set = sets::set(&name)?;
    if flags.fetch {
        fetch::run(set)?;
    }
    show(set, global, out)
}

fn list(global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let roots = sets::roots();
    if global.json {
        let rows: Vec<Row> = SETS.iter().map(Row::new).collect();
        write_json(out, &rows)?;
        return Ok(Outcome::Positive);
    }
    let mut table = Table::new(["name", "description", "licence", "size", "found"]);
    for set in SETS {
        let found = set.find_in(&roots).map_or("–".into(), |folder| folder.display().to_string());
        let (what, licence) = (set.what.into(), set.licence.into());
        table.row([set.name.into(), what, licence, show::bytes(bytes(set)), found]);
    }
    write!(out, "{}", table.render("", terminal::width_of_terminal()))?;
    Ok(Outcome::Positive)
}

fn show(set: &Set, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let folder = set.find_in(&sets::roots()).ok();
    let files = match &folder {
        Some(folder) => set.verify(folder)?,
        None => set.files().map(|file| (file, SetState::Missing)).collect(),
    };
    let fine = |state: &SetState| match state {
        SetState::Same => true,
        SetState::Differs => set.checksums == Checksums::Informative,
        SetState::Missing => false,
    };
    let folders = set.count(folder.as_deref());
    let whole = folders.iter().all(|(known, found)| *found >= known.files);
    let good = whole && files.iter().all(|(_, state)| fine(state));
    let outcome = if good { Outcome::Positive } else { Outcome::Negative };
    if global.json {
        let file =
            |(file, state): &(KnownFile, SetState)| File { file: *file, state: word(*state) };
        let folder = |(known, found): &(KnownFolder, usize)| Folder {
            path: known.path,
            count: known.files,
            found: *found,
        };
        let row = Row {
            files: Some(files.iter().map(file).collect()),
            folders: Some(folders.iter().map(folder).collect()),
            ..Row::new(set)
        };
        write_json(out, &row)?;
        return Ok(outcome);
    }
    writeln!(out, "{}: {}", set.name, set.what)?;
    writeln!(out, "licence      {}", set.licence)?;
    writeln!(out, "attribution  {}", set.attribution)?;
    for source in set.sources {
        writeln!(out, "source       {source}")?;
    }
    writeln!(out, "files        {}", set.place)?;
    let found = folder.as_deref().map(Path::display);
    let found = found.map_or("not on this machine".into(), |folder| folder.to_string());
    writeln!(out, "found        {found}\n")?;
    let mut table = Table::new(["file", "bytes", "state"]);
    for (file, state) in &files {
        table.row([file.path.into(), file.bytes.to_string(), word(*state).into()]);
    }
    for (known, found) in &folders {
        let state = if *found >= known.files { "ok" } else { "missing files" };
        let count = format!("{found} of {} files", known.files);
        table.row([format!("{}/", known.path), count, state.into()]);
    }
    write!(out, "{}", table.render("  ", None))?;
    if set.checksums == Checksums::Informative {
        writeln!(out, "\nThe published files change over time, so `differs` is no error here.")?;
    }
    if !whole || files.iter().any(|(_, state)| *state == SetState::Missing) {
        match set.address()? {
            Some(_) => writeln!(out, "\nTo download it: regard data {} --fetch", set.name)?,
            None => writeln!(
                out,
                "\nTo get it: download it from its source, and put the files into {}",
                sets::home().join(set.name).display()
            )?,
        }
    }
    Ok(outcome)
}

/// A data set, as `--json` prints it.
#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    set: Set,
    bytes: u64,
    found: Option<PathBuf>,
    /// Files and their state; only if a single set is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<Vec<File>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    folders: Option<Vec<Folder>>,
}

#[derive(Serialize)]
struct File {
    #[serde(flatten)]
    file: KnownFile,
    state: &'static str,
}

#[derive(Serialize)]
struct Folder {
    path: &'static str,
    count: usize,
    found: usize,
}

impl Row {
    fn new(set: &Set) -> Row {
        Row {
            set: *set,
            bytes: bytes(set),
            found: set.find_in(&sets::roots()).ok(),
            files: None,
            folders: None,
        }
    }
}

fn word(state: SetState) -> &'static str {
    match state {
        SetState::Same => "ok",
        SetState::Differs => "differs",
        SetState::Missing => "missing",
    }
}

fn bytes(set: &Set) -> u64 {
    set.files().map(|file| file.bytes).sum()
}
