//! `regard eval RUN --data FILE` for a run that was trained on files of the user: the file is read
//! as those were, with the columns, the header, the separator and the labels that the run recorded.

use super::{Flags, Part};
use crate::cli::inputs::note;
use crate::cli::say::{quoted, say};
use anyhow::{Context, Result, bail};
use regard_tasks::data;
use regard_tasks::evaluation::EvaluationData;
use regard_tasks::import::{self, Purpose, Request, Severity, TrainedImport};
use regard_tasks::recipe::Table;
use regard_tasks::say::many;
use std::path::{Path, PathBuf};

/// Keys of a recipe that name columns; of imported files, flags do.
const KEYS: [(&str, &str); 3] =
    [("data.text", "--text"), ("data.label", "--label"), ("data.header", "--no-header")];

/// Examples of the user, written in the format that recipes read.
pub struct OwnExamples {
    /// The data to evaluate on.
    pub on: EvaluationData,
    /// Names of the user's files.
    pub shown: String,
    keys: Table,
    /// Kept until the evaluation is over.
    _folder: ScratchFolder,
}

/// Returns the record of a run's import, if --data names files of the user.
pub fn record(flags: &Flags, run: Option<&Path>) -> Result<Option<TrainedImport>> {
    let is_file = |data: &String| Path::new(data).exists() || data.contains(['/', '\\', '.']);
    match run.filter(|_| flags.data.iter().any(is_file)) {
        Some(run) => Ok(TrainedImport::of_run(run)?),
        None => Ok(None),
    }
}

/// Reads and checks the files, and says what was read.
pub fn read(flags: &Flags, trained: TrainedImport) -> Result<OwnExamples> {
    for (key, flag) in KEYS {
        if flags.overrides.iter().any(|set| set.split('=').next() == Some(key)) {
            bail!("--set {key}: this run was trained with --data; {flag} chooses the columns");
        }
    }
    let mut request = Request::new(trained.task.clone());
    request.data = flags.data.iter().map(PathBuf::from).collect();
    flags.columns.apply(&mut request);
    request.part = flags.part.map(|part| match part {
        Part::Valid => data::Part::Valid,
        Part::Test => data::Part::Test,
    });
    request.purpose = Purpose::Evaluate(trained.clone());
    let (import, findings) = import::read(&request).context("--data")?;
    if let Some(import) = &import {
        import.summary.iter().for_each(say);
    }
    let told = findings.text();
    if !told.is_empty() {
        say(told.trim_end());
    }
    if !findings.has_errors() && import.as_ref().is_none_or(|import| import.parts[2] == 0) {
        bail!("--data {}: no example is left to evaluate", flags.data.join(", "));
    }
    let Some(import) = import else {
        let mut errors = findings.list().iter().filter(|each| each.severity == Severity::Error);
        let skip = match errors.all(|each| each.is_row) {
            true => "; --skip-bad leaves such rows out",
            false => "",
        };
        let count = many(findings.count(Severity::Error), "problem");
        bail!("{count} in the data, nothing was evaluated{skip}");
    };
    // Images and recordings are not listed: their folders are.
    let read = if import.read.is_empty() { &request.data } else { &import.read };
    let is_whole = import.read.is_empty() || request.edges.is_some();
    let is_test = is_whole && import.chosen == Some(data::Part::Test);
    if let Some(known) = trained.has_read(read).filter(|_| !is_test) {
        note(&format!(
            "the run was trained on {}: examples that it has seen are evaluated too; without \
             --data, only the test part is",
            known.display()
        ));
    }
    let folder = ScratchFolder::new()?;
    import.write(&folder.0)?;
    let (on, keys) = import.evaluation(&folder.0);
    Ok(OwnExamples { on, shown: flags.data.join(", "), keys, _folder: folder })
}

impl OwnExamples {
    /// Sets the keys of the recipe that name the written files.
    pub fn name_files(&self, recipe: &mut Table) {
        let data = recipe.get_mut("data").and_then(|data| data.as_table_mut());
        let keys = self.keys.get("data").and_then(|keys| keys.as_table());
        let (Some(data), Some(keys)) = (data, keys) else { return };
        keys.iter().for_each(|(key, value)| drop(data.insert(key.clone(), value.clone())));
    }
}

/// Refuses flags that only apply to runs on files of the user.
pub fn refuse_columns(flags: &Flags) -> Result<()> {
    if let Some(flag) = flags.columns.given() {
        bail!(
            "{flag}: columns are chosen for runs that were trained by regard train TASK --data \
             FILE; this model reads the formats that regard eval --help lists"
        );
    }
    if let [_, second, ..] = &flags.data[..] {
        bail!(
            "--data {}: several files are read for runs that were trained on such files; name one",
            quoted(second)
        );
    }
    Ok(())
}

/// A folder that is removed at the end.
struct ScratchFolder(PathBuf);

impl ScratchFolder {
    fn new() -> Result<ScratchFolder> {
        let mut builder = std::fs::DirBuilder::new();
        // The examples are the user's.
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        let place = std::env::temp_dir();
        for number in 0..1000 {
            let folder = place.join(format!("regard-eval-{}-{number}", std::process::id()));
            match builder.create(&folder) {
                Ok(()) => return Ok(ScratchFolder(folder)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).with_context(|| folder.display().to_string()),
            }
        }
        bail!("{}: holds too many folders regard-eval-…; remove them", place.display())
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
