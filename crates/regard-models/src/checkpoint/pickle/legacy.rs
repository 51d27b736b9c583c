//! The format of PyTorch before 1.6: pickles in a row, then the storages.

use super::input::{Input, little};
use super::tensor::Kind;
use super::torch::Pickled;
use super::tree::Value;
use std::collections::{BTreeMap, HashMap};

/// The number that the first pickle holds, the lowest byte first.
const MAGIC: &[u8] = b"\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
/// What the second pickle holds.
const VERSION: i64 = 1001;

/// The pickle that has the tensors, and the bytes of every storage by its key.
///
/// The third pickle describes the machine that wrote the file and is not needed: storages are
/// little-endian in this format, whatever the machine was.
pub fn read(bytes: &[u8]) -> Result<(Pickled<'_>, BTreeMap<&str, &[u8]>), String> {
    let (magic, rest) = Pickled::read(bytes)?;
    if !matches!(magic.top(), Value::Long(MAGIC)) {
        return Err("not a checkpoint of PyTorch: a pickle of something else".to_string());
    }
    let (version, rest) = Pickled::read(rest)?;
    if !matches!(version.top(), Value::Whole(VERSION)) {
        return Err(format!("its version is not {VERSION}, the only one that is known"));
    }
    let (_, rest) = Pickled::read(rest)?;
    let (pickled, rest) = Pickled::read(rest)?;
    let (keys, rest) = Pickled::read(rest)?;
    let storages = read_storages(&keys, &first_kinds(&pickled), Input(rest))?;
    Ok((pickled, storages))
}

/// What each storage holds where it is mentioned first, which decides how it is stored.
fn first_kinds<'a>(pickled: &Pickled<'a>) -> HashMap<&'a str, Kind> {
    let mut kinds = HashMap::new();
    for storage in pickled.storages() {
        kinds.entry(storage.key).or_insert(storage.kind);
    }
    kinds
}

/// The storages stand in the order of their keys, each with its count before it.
fn read_storages<'a>(
    keys: &Pickled<'a>,
    kinds: &HashMap<&str, Kind>,
    mut input: Input<'a>,
) -> Result<BTreeMap<&'a str, &'a [u8]>, String> {
    let tree = &keys.tree;
    let list = tree.items(tree.top()).ok_or("has no list of its storages")?;
    let mut storages = BTreeMap::new();
    for key in list {
        let key = tree.text(*key).ok_or("has a storage whose key is not text")?;
        let kind = kinds.get(key).ok_or("has a storage that no tensor uses")?;
        let count = little(input.take(8)?);
        let bytes = count.checked_mul(kind.size() as u64).ok_or("has a storage beyond all size")?;
        storages.insert(key, input.take(bytes)?);
    }
    Ok(storages)
}
