//! Checkpoints in the Hugging Face layout: a folder with `config.json` and `model.safetensors`, or
//! an older one with `pytorch_model.bin`; either may be cut into shards, which an index names.
//!
//! Names and shapes are described once, by a model's `bind`, for both directions. Whatever is
//! written goes to a temporary file first, is synced, and takes its name last, so that a crash
//! leaves either the old file or the new one.

mod arrays;
mod bind;
mod layers;
pub mod pickle;
mod problem;
mod read;
mod write;

pub use arrays::{Array, Arrays, Precision};
pub use bind::{Binder, set_least_stored};
pub(crate) use problem::NOT_FINITE;
pub use problem::Problem;
pub use read::{LARGEST_TEXT, map_file, open_file, read_file, read_text};
pub use safetensors::Dtype;
pub use write::{is_stream, write_file, write_file_with};

use crate::{Error, Result};
use regard_attention::storage::Bytes;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// The file that says what a model is.
pub const CONFIG: &str = "config.json";
/// The file that holds its weights.
pub const WEIGHTS: &str = "model.safetensors";
/// Where weights may be, the best first: files, or indices of files.
pub const PLACES: [&str; 4] =
    [WEIGHTS, "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json"];

/// Reads `config.json`.
pub fn read_config(folder: &Path) -> Result<Value> {
    let path = folder.join(CONFIG);
    let text = read_text(&path)?;
    serde_json::from_str(&text).map_err(|e| Error::file(&path, format!("not JSON: {e}")))
}

/// The file that says where a folder's weights are: the weights themselves, or an index of shards.
pub fn weights_file(folder: &Path) -> PathBuf {
    let there = PLACES.iter().map(|name| folder.join(name)).find(|path| path.exists());
    there.unwrap_or_else(|| folder.join(WEIGHTS))
}

/// Reads all weights into memory, from one file or from the shards that an index names.
///
/// For a run's own checkpoints, which it removes and writes again, and for training, which changes
/// the weights anyway.
pub fn read_weights(folder: &Path) -> Result<Arrays> {
    weights(folder, &|path| read_file(path, u64::MAX).map(Bytes::from))
}

/// All weights in place, from one file or from the shards that an index names: nothing is read
/// before it is used, and what is used needs no memory but the system's cache of files.
///
/// For models that are only used. [`map_file`] says what becomes of them if their files change.
pub fn map_weights(folder: &Path) -> Result<Arrays> {
    weights(folder, &map_file)
}

fn weights(folder: &Path, open: &dyn Fn(&Path) -> Result<Bytes>) -> Result<Arrays> {
    let index = weights_file(folder);
    if index.extension().is_none_or(|end| end != "json") {
        return arrays_of(&index, open(&index)?);
    }
    let map = weight_map(&index)?;
    let mut all = Arrays::new();
    for shard in shards(&index)? {
        let path = folder.join(shard);
        all.extend(arrays_of(&path, open(&path)?)?);
    }
    let missing: Vec<&str> =
        map.keys().filter(|name| !all.contains_key(*name)).map(String::as_str).collect();
    if !missing.is_empty() {
        let message = format!("its shards lack {}", missing.join(", "));
        return Err(Error::file(&index, message));
    }
    Ok(all)
}

/// The files that an index of weights names, which are beside it.
pub fn shards(index: &Path) -> Result<Vec<String>> {
    let map = weight_map(index)?;
    let mut shards: Vec<String> =
        map.values().filter_map(|name| Some(name.as_str()?.to_string())).collect();
    shards.sort_unstable();
    shards.dedup();
    // A name that climbs out of the folder is not a shard of it.
    let outside = |name: &&String| {
        Path::new(name).components().count() != 1 || name.starts_with('.') || name.contains('\\')
    };
    match shards.iter().find(outside) {
        Some(name) => Err(Error::file(index, format!("names a shard outside its folder: {name}"))),
        None => Ok(shards),
    }
}

fn weight_map(index: &Path) -> Result<Map<String, Value>> {
    let text = read_text(index)?;
    let mut json: Value =
        serde_json::from_str(&text).map_err(|e| Error::file(index, format!("not JSON: {e}")))?;
    match json.get_mut("weight_map").map(Value::take) {
        Some(Value::Object(map)) => Ok(map),
        _ => Err(Error::file(index, "has no \"weight_map\"")),
    }
}

/// Writes `config.json` and `model.safetensors` into a folder that exists.
pub fn write(folder: &Path, config: &Value, weights: &Arrays, precision: Precision) -> Result<()> {
    write_arrays(&folder.join(WEIGHTS), weights, precision)?;
    let mut text = serde_json::to_string_pretty(config).expect("JSON values can be written");
    text.push('\n');
    write_file(&folder.join(CONFIG), text.as_bytes())
}

/// Reads the arrays of one file: of safetensors, or of PyTorch's pickles if it ends in `.bin`.
pub fn read_arrays(path: &Path) -> Result<Arrays> {
    arrays_of(path, read_file(path, u64::MAX)?.into())
}

/// The arrays of a file, by its name.
fn arrays_of(path: &Path, bytes: Bytes) -> Result<Arrays> {
    let arrays = match path.extension().is_some_and(|end| end == "bin") {
        true => pickle::from_bytes(&bytes),
        false => arrays::from_bytes(bytes),
    };
    arrays.map_err(|message| Error::file(path, message))
}

/// Writes arrays to one file.
pub fn write_arrays(path: &Path, arrays: &Arrays, precision: Precision) -> Result<()> {
    let bytes =
        arrays::to_bytes(arrays, precision).map_err(|message| Error::file(path, message))?;
    write_file(path, &bytes)
}

/// The arrays of a safetensors file that is already in memory.
pub fn weights_from_bytes(bytes: impl Into<Bytes>) -> Result<Arrays, String> {
    arrays::from_bytes(bytes.into())
}
