//! The format of PyTorch before 1.6: five pickles in sequence, then the storages.

use super::input::{Input, little};
use super::tensor::ElementType;
use super::torch::Pickled;
use super::tree::Value;
use std::collections::{BTreeMap, HashMap};

/// Magic number in the first pickle, little-endian.
const MAGIC: &[u8] = b"\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
/// Protocol version in the second pickle.
const VERSION: i64 = 1001;

/// Returns the pickle of the tensors, and the bytes of every storage by its key.
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
        return Err(format!("got another protocol version of PyTorch, need {VERSION}"));
    }
    let (_, rest) = Pickled::read(rest)?;
    let (pickled, rest) = Pickled::read(rest)?;
    let (keys, rest) = Pickled::read(rest)?;
    let storages = read_storages(&keys, &first_kinds(&pickled), Input(rest))?;
    Ok((pickled, storages))
}

/// Element type of each storage at its first mention, which determines how it is stored.
fn first_kinds<'a>(pickled: &Pickled<'a>) -> HashMap<&'a str, ElementType> {
    let mut kinds = HashMap::new();
    for storage in pickled.storages() {
        kinds.entry(storage.key).or_insert(storage.kind);
    }
    kinds
}

/// Reads the storages, which follow in the order of their keys, each preceded by its element count.
fn read_storages<'a>(
    keys: &Pickled<'a>,
    kinds: &HashMap<&str, ElementType>,
    mut input: Input<'a>,
) -> Result<BTreeMap<&'a str, &'a [u8]>, String> {
    let tree = &keys.tree;
    let list = tree.items(tree.top()).ok_or("has no list of its storages")?;
    let mut storages = BTreeMap::new();
    for key in list {
        let key = tree.text(*key).ok_or("has a storage whose key is not text")?;
        let kind = kinds.get(key).ok_or("has a storage that no tensor uses")?;
        let count = little(input.take(8)?);
        let bytes = count.checked_mul(kind.size() as u64).ok_or("has a storage that overflows")?;
        storages.insert(key, input.take(bytes)?);
    }
    Ok(storages)
}
