//! A GGUF file as output.

use super::super::{Global, Outcome, write_json};
use super::{Flags, print_quality};
use crate::cli::inputs::note;
use crate::show::bytes;
use anyhow::{Result, bail};
use regard_models::checkpoint;
use regard_models::gguf::Kind;
use regard_tasks::quantize::{GgufFile, Quality, Sample};
use regard_tasks::say::many;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

/// Outcome, as `--json` prints it.
#[derive(Serialize)]
struct Report<'a> {
    model: &'a str,
    out: &'a Path,
    storage: String,
    data: Option<&'a str>,
    quality: Option<&'a Quality>,
    /// Number of tensors by type.
    tensors: BTreeMap<&'static str, usize>,
    higher_precision: &'a [String],
    bytes_before: usize,
    bytes_after: usize,
}

/// Checks that a file can be written.
///
/// # Errors
/// If there is something, no folder to write to, or the name is not that of such a file.
pub fn check_out(file: &Path) -> Result<()> {
    let shown = file.display();
    if file.is_dir() {
        bail!("--out: {shown} is a folder, need a file for gguf, such as model.gguf");
    }
    if file.is_file() {
        bail!("--out: {shown} exists already");
    }
    if !file.exists() && file.extension().is_none_or(|end| end != "gguf") {
        bail!("--out: {shown}: need a name that ends in .gguf, by which such a file is opened");
    }
    if let Some(folder) = file.parent().filter(|at| !at.as_os_str().is_empty() && !at.is_dir()) {
        bail!("--out: there is no folder {}", folder.display());
    }
    Ok(())
}

/// Writes the file, and prints what it is.
pub fn write(
    flags: &Flags,
    kind: Kind,
    sample: &Sample,
    made: &GgufFile,
    global: &Global,
    out: &mut dyn Write,
) -> Result<Outcome> {
    let (output, halves) = (&made.output, &made.output.halves);
    checkpoint::write_file_with(&flags.out, |file| output.write(file))?;
    if !halves.is_empty() {
        note(&format!(
            "{} have rows that are no whole blocks of {}, and are in F16: {}",
            many(halves.len(), "weight"),
            kind.name(),
            regard_tasks::say::list(&halves.iter().map(String::as_str).collect::<Vec<_>>(), 8)
        ));
    }
    let (before, after) = (made.bytes_before, output.size());
    if global.json {
        let report = Report {
            model: &flags.model,
            out: &flags.out,
            storage: flags.to.name(),
            data: made.quality.is_some().then_some(&*sample.name),
            quality: made.quality.as_ref(),
            tensors: output.counts.iter().map(|(kind, count)| (kind.name(), *count)).collect(),
            higher_precision: &made.kept,
            bytes_before: before,
            bytes_after: after,
        };
        write_json(out, &report)?;
        return Ok(Outcome::Positive);
    }
    let counts = output.counts.iter().map(|(kind, count)| format!("{count} in {}", kind.name()));
    let counts: Vec<String> = counts.collect();
    let [large, small] = [before, after].map(|n| bytes(n as u64));
    writeln!(
        out,
        "{}: {} of {}, {large} → {small}; tensors: {}",
        flags.out.display(),
        flags.to.name(),
        flags.model,
        counts.join(", ")
    )?;
    if let Some(quality) = &made.quality {
        print_quality(quality, &made.kept, sample, out)?;
    }
    Ok(Outcome::Positive)
}
