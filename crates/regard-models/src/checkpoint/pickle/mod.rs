//! Reads pickles without executing them, and the checkpoints that PyTorch wrote as
//! `pytorch_model.bin`.
//!
//! A pickle is a program for a small virtual machine that may call any Python function by name.
//! Here the machine only records in a [`Tree`] what it would call, and a reader takes from the tree
//! what it recognises. The reader of PyTorch checkpoints recognises the few names that tensors are
//! made of and refuses a file with any other. Both formats are supported: the zip archive that
//! PyTorch writes since 1.6, and the sequence of pickles before that.
//!
//! The weights are the dictionary at the top of the file, or the one under `"state_dict"` or
//! `"model"`, where training programs put it, if that holds tensors. Other entries of such a
//! dictionary, like the epoch, are ignored. Floats of 16 and 32 bits keep their type; all other
//! numbers are converted to `f32`, integers too.

mod input;
mod legacy;
mod machine;
mod operations;
mod tensor;
mod torch;
mod tree;
mod zip;

#[cfg(test)]
mod tests;

pub use machine::read_tree;
pub use tree::{DictEntry, Made, Object, Tree, Value, ValueIndex};

use super::Arrays;
use regard_attention::storage::Bytes;
use tensor::Budget;
use torch::Pickled;
use zip::Archive;

/// Keys under which training programs store the weights.
const WITHIN: [&str; 2] = ["state_dict", "model"];
/// First bytes of a zip archive.
const ZIP: &[u8] = b"PK\x03\x04";
/// First byte of a pickle.
const PICKLE: &[u8] = b"\x80";

/// Returns all tensors of a PyTorch file; contiguous floats share the file's memory.
pub(super) fn from_bytes(bytes: &Bytes) -> Result<Arrays, String> {
    if bytes.starts_with(ZIP) {
        from_zip(bytes)
    } else if bytes.starts_with(PICKLE) {
        let (pickled, storages) = legacy::read(bytes)?;
        arrays(&pickled, bytes, |key| Ok(storages.get(key).copied()))
    } else {
        Err("not a checkpoint of PyTorch: neither a zip archive nor a pickle. \
             It may be the pointer that Git LFS leaves in place of a file"
            .to_string())
    }
}

fn from_zip(bytes: &Bytes) -> Result<Arrays, String> {
    let archive = Archive::open(bytes)?;
    let root = archive.root()?;
    if let Some(order) = archive.get(&format!("{root}/byteorder"))?
        && order != b"little"
    {
        let order = shown(&String::from_utf8_lossy(order));
        return Err(format!(
            "its values are in the byte order \"{order}\"; only \"little\" is supported. \
             Save it again on a little-endian machine, or with safetensors"
        ));
    }
    let pickle = archive.get(&format!("{root}/data.pkl"))?.unwrap_or_default();
    let (pickled, _) = Pickled::read(pickle)?;
    arrays(&pickled, bytes, |key| archive.get(&format!("{root}/data/{key}")))
}

/// Looks up the bytes of a storage by its key; `None` if the file does not have it.
trait Storages<'a>: Fn(&str) -> Result<Option<&'a [u8]>, String> {}

impl<'a, F: Fn(&str) -> Result<Option<&'a [u8]>, String>> Storages<'a> for F {}

/// Returns the tensors of a pickle, by name.
fn arrays<'a>(
    pickled: &Pickled,
    file: &Bytes,
    storages: impl Storages<'a>,
) -> Result<Arrays, String> {
    let (mut arrays, mut budget) = (Arrays::new(), Budget::of(file));
    for (name, value) in pickled.pairs(weights(pickled)?).into_iter().flatten() {
        if let (Some(name), Some(arguments)) = (pickled.tree.text(name), pickled.tensor(value)) {
            let in_tensor = |message| format!("{}: {message}", shown(name));
            budget.spend(name.len()).map_err(in_tensor)?;
            let array = tensor::read(pickled, arguments, file, &mut budget, &storages);
            arrays.insert(name.to_string(), array.map_err(in_tensor)?);
        }
    }
    if arrays.is_empty() {
        let message = "holds no tensors, neither at its top nor under \"state_dict\" or \"model\"";
        return Err(message.to_string());
    }
    Ok(arrays)
}

/// Finds the dictionary that holds the weights.
fn weights(pickled: &Pickled) -> Result<ValueIndex, String> {
    let top = pickled.tree.top();
    if pickled.pairs(top).is_none() {
        return Err("holds no dictionary of tensors. \
                    Save the model's state_dict(), best with safetensors"
            .to_string());
    }
    let has_tensors = |place: &ValueIndex| {
        let mut pairs = pickled.pairs(*place).into_iter().flatten();
        pairs.any(|(_, value)| pickled.tensor(value).is_some())
    };
    let within = WITHIN.iter().find_map(|name| pickled.entry(top, name).filter(has_tensors));
    Ok(within.unwrap_or(top))
}

/// Shortens and escapes a name from a file for an error message, so that it cannot control a
/// terminal.
fn shown(name: &str) -> String {
    const LONGEST: usize = 100;
    let mut start: String = name.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if name.chars().nth(LONGEST).is_some() {
        start.push('…');
    }
    start
}
