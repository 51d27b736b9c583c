//! Writes models to folders.

use super::{adapted, resolve};
use crate::hub::{self, Hub};
use anyhow::{Context, Result, anyhow, bail};
use regard_models::ModelFiles;
use regard_models::checkpoint::{self, Arrays, Precision};
use regard_tasks::embed::sentence;
use regard_tasks::text::Tokenizer;
use regard_tasks::{quantize, train};
use serde_json::Value;
use std::path::Path;

/// Writes a model to a folder: configuration and weights in floating point, and copies of its vocabulary
/// and generation settings.
pub fn export(asked: &str, hub: &Hub, to: &Path, precision: Precision) -> Result<()> {
    let files = adapted(&resolve(asked, hub)?, hub)?;
    let named = |e| anyhow!("{asked}: {e}");
    let weights = files.weights()?;
    let (config, weights) = quantize::dequantize(files.config()?, weights).map_err(named)?;
    write(to, &files, &config, &weights, precision)
}

/// Checks that a model can be written to a folder.
///
/// # Errors
/// If it is a file, is a run, or holds a model or a file that would be replaced.
pub fn check_out(folder: &Path) -> Result<()> {
    let shown = folder.display();
    if folder.is_file() {
        bail!("--out: {shown} is a file, need a folder");
    }
    if folder.join(checkpoint::CONFIG).exists() {
        bail!("--out: {shown} already holds a model");
    }
    if train::find(folder).is_ok() {
        bail!("--out: {shown} is a run, and holds a model");
    }
    let mut replaced = checkpoint::PLACES.into_iter().chain(hub::small_files());
    if let Some(name) = replaced.find(|name| folder.join(name).exists()) {
        bail!("--out: {shown} already holds {name}, which would be replaced");
    }
    Ok(())
}

/// Writes configuration and weights to a folder, with copies of the other files of a model.
pub fn write(
    to: &Path,
    files: &ModelFiles,
    config: &Value,
    weights: &Arrays,
    precision: Precision,
) -> Result<()> {
    let rest = beside(&train::files(files.clone())?)?;
    std::fs::create_dir_all(to).with_context(|| to.display().to_string())?;
    // Last the weights and config.json, which makes it a model: an interrupted one is none.
    for (name, bytes) in rest {
        let place = to.join(name);
        let folder = place.parent().unwrap_or(to);
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        checkpoint::write_file(&place, &bytes)?;
    }
    checkpoint::write(to, config, weights, precision)?;
    Ok(())
}

/// Reads the files of a model other than its configuration and weights.
fn beside(files: &ModelFiles) -> Result<Vec<(String, Vec<u8>)>> {
    if files.file().is_some() {
        let mut rest = Tokenizer::of(files)?.files();
        if let Some(settings) = sentence::read(files)? {
            rest.extend(sentence::written(settings, &files.config()?["hidden_size"]));
        }
        return Ok(rest);
    }
    let there = hub::small_files().into_iter().filter(|name| files.has(name));
    let read = |name: &str| Ok((name.to_string(), files.read(name, u64::MAX)?.into_owned()));
    there.map(read).collect()
}
