//! Checkpoints in the Hugging Face layout: a folder with `config.json` and `model.safetensors`, or
//! an older one with `pytorch_model.bin`; either may be sharded, with an index of the shards.
//!
//! Names and shapes are described once, by a model's `bind`, for both directions. Files are written
//! to a temporary name, synced, and renamed last, so that a crash leaves either the old file or the
//! new one.

mod arrays;
mod bind;
mod layers;
pub mod pickle;
mod problem;
mod quantized;
mod read;
mod write;

pub use arrays::{Array, Arrays, Precision};
pub use bind::{Binder, with_least_stored};
pub(crate) use bind::{LEAST_SIDE, LinearPart};
pub(crate) use problem::NOT_FINITE;
pub use problem::TensorProblem;
pub use read::{LARGEST_TEXT, map_file, open_file, read_file, read_text};
pub use safetensors::Dtype;
pub use write::{is_stream, write_file, write_file_with};

use crate::{Error, Result};
use regard_attention::quant::Bits;
use regard_attention::storage::Bytes;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// File name of a model's configuration.
pub const CONFIG: &str = "config.json";
/// Name of bfloat16 in `config.json`.
const BF16: &str = "bfloat16";
/// File name of a model's weights.
pub const WEIGHTS: &str = "model.safetensors";
/// File names under which weights are looked for, in order of preference: weights, or an index of
/// shards.
pub const PLACES: [&str; 4] =
    [WEIGHTS, "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json"];

/// Reads `config.json`.
pub fn read_config(folder: &Path) -> Result<Value> {
    let path = folder.join(CONFIG);
    let text = read_text(&path)?;
    serde_json::from_str(&text).map_err(|e| Error::file(&path, format!("not JSON: {e}")))
}

/// Returns the path of a folder's weights: the weights themselves, or an index of shards.
pub fn weights_file(folder: &Path) -> PathBuf {
    let there = PLACES.iter().map(|name| folder.join(name)).find(|path| path.exists());
    there.unwrap_or_else(|| folder.join(WEIGHTS))
}

/// Reads all weights into memory, from one file or from the shards that an index names.
///
/// For a run's own checkpoints, which it deletes and rewrites, and for training, which modifies
/// the weights anyway.
pub fn read_weights(folder: &Path) -> Result<Arrays> {
    weights(folder, &|path| read_file(path, u64::MAX).map(Bytes::from))
}

/// Maps all weights into memory, from one file or from the shards that an index names: nothing is
/// read before it is used, and pages in use are those of the system's file cache.
///
/// For inference only. See [`map_file`] for what happens if the files change meanwhile.
pub fn map_weights(folder: &Path) -> Result<Arrays> {
    weights(folder, &map_file)
}

fn weights(folder: &Path, open: &dyn Fn(&Path) -> Result<Bytes>) -> Result<Arrays> {
    let index = weights_file(folder);
    if index.extension().is_none_or(|end| end != "json") {
        let mut all = arrays_of(&index, open(&index)?)?;
        quantized::join(&mut all).map_err(|message| Error::file(&index, message))?;
        return Ok(all);
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
        let message =
            format!("lists tensors that are in none of the shards: {}", missing.join(", "));
        return Err(Error::file(&index, message));
    }
    quantized::join(&mut all).map_err(|message| Error::file(&index, message))?;
    Ok(all)
}

/// Returns the names of the shards that an index of weights lists, which are in its folder.
pub fn shards(index: &Path) -> Result<Vec<String>> {
    let map = weight_map(index)?;
    let mut shards: Vec<String> =
        map.values().filter_map(|name| Some(name.as_str()?.to_string())).collect();
    shards.sort_unstable();
    shards.dedup();
    // A name that leads out of the folder is refused.
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
    let is_bf16 = |array: &Array| array.quantized_bits() == Some(Bits::Bf16);
    match weights.values().any(is_bf16) {
        true => {
            let mut config = config.clone();
            config["dtype"] = BF16.into();
            write_named(folder, config, BF16)
        }
        false => write_config(folder, config, precision),
    }
}

/// Writes `config.json` into a folder that exists. The type of weights that it names, if any,
/// becomes that of the precision: transformers converts weights to it when it reads them.
pub fn write_config(folder: &Path, config: &Value, precision: Precision) -> Result<()> {
    write_named(folder, config.clone(), precision.name())
}

/// Writes `config.json` with the name of the type of weights, where it names one.
fn write_named(folder: &Path, mut config: Value, dtype: &str) -> Result<()> {
    for key in ["dtype", "torch_dtype"] {
        if let Some(kind) = config.get_mut(key) {
            *kind = dtype.into();
        }
    }
    let mut text = serde_json::to_string_pretty(&config).expect("JSON values can be written");
    text.push('\n');
    write_file(&folder.join(CONFIG), text.as_bytes())
}

/// Reads the arrays of one file: PyTorch's pickle format if it ends in `.bin`, else safetensors.
pub fn read_arrays(path: &Path) -> Result<Arrays> {
    arrays_of(path, read_file(path, u64::MAX)?.into())
}

/// Parses the arrays of a file, in the format that its extension implies.
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

/// Serialises arrays as a safetensors file in single precision, with one entry of metadata.
pub fn to_bytes_with_metadata(arrays: &Arrays, key: &str, value: &str) -> Result<Vec<u8>, String> {
    arrays::serialize(arrays, Precision::Single, key, value)
}

/// Returns an entry of the metadata of a safetensors file that is already in memory; `None` if it
/// has none of this name.
pub fn metadata_from_bytes(bytes: &[u8], key: &str) -> Result<Option<String>, String> {
    arrays::metadata(bytes, key)
}

/// Returns the arrays of a safetensors file that is already in memory.
pub fn weights_from_bytes(bytes: impl Into<Bytes>) -> Result<Arrays, String> {
    let mut arrays = arrays::from_bytes(bytes.into())?;
    quantized::join(&mut arrays)?;
    Ok(arrays)
}
