//! A zip archive with uncompressed entries, as PyTorch writes it.
//!
//! Checksums are not verified: PyTorch does not either, and writing them is optional.

use super::input::{Input, little};
use super::shown;
use std::collections::BTreeMap;

const END: &[u8] = b"PK\x05\x06";
const END_64: &[u8] = b"PK\x06\x06";
const END_64_LOCATOR: &[u8] = b"PK\x06\x07";
const IN_DIRECTORY: &[u8] = b"PK\x01\x02";
const IN_FILE: &[u8] = b"PK\x03\x04";

/// Placeholder in a field of four bytes if the value is in the zip64 extra field.
const ELSEWHERE: u64 = u32::MAX as u64;
/// Id of the zip64 extra field.
const LARGE: u64 = 1;

/// An archive with its central directory.
pub struct Archive<'a> {
    bytes: &'a [u8],
    entries: BTreeMap<&'a str, Entry>,
}

/// An entry of the central directory.
struct Entry {
    flags: u64,
    method: u64,
    packed: u64,
    size: u64,
    header: u64,
}

impl<'a> Archive<'a> {
    /// Reads the central directory.
    pub fn open(bytes: &'a [u8]) -> Result<Archive<'a>, String> {
        let (count, offset) = find_directory(bytes)?;
        let mut input = Input::at(bytes, offset)?;
        let mut entries = BTreeMap::new();
        for _ in 0..count {
            let (name, entry) = read_entry(&mut input)?;
            // Readers that differ in which one they use would see different contents.
            if entries.insert(name, entry).is_some() {
                return Err(format!("has two entries of the name {}", shown(name)));
            }
        }
        Ok(Archive { bytes, entries })
    }

    /// Returns the folder in which PyTorch stores everything; its name is arbitrary.
    pub fn root(&self) -> Result<&'a str, String> {
        let roots = self.entries.keys().filter_map(|name| name.strip_suffix("/data.pkl"));
        let roots: Vec<&str> = roots.filter(|root| !root.contains('/')).collect();
        match roots[..] {
            [root] => Ok(root),
            [] => Err("not a checkpoint of PyTorch: a zip archive without data.pkl".to_string()),
            _ => Err("has more than one data.pkl".to_string()),
        }
    }

    /// Returns the contents of an entry, if there is one of this name.
    pub fn get(&self, name: &str) -> Result<Option<&'a [u8]>, String> {
        let entry = self.entries.get(name);
        let contents = entry.map(|entry| entry.contents(self.bytes));
        contents.transpose().map_err(|message| format!("{}: {message}", shown(name)))
    }
}

impl Entry {
    fn contents<'a>(&self, bytes: &'a [u8]) -> Result<&'a [u8], String> {
        if self.flags & 1 != 0 {
            return Err("is encrypted".to_string());
        }
        if self.method != 0 || self.packed != self.size {
            return Err("is compressed, which PyTorch never does; \
                        pack the archive again without compression"
                .to_string());
        }
        // The local header repeats the directory, but its extra field has another length: PyTorch
        // pads it so that the data is aligned to 64 bytes.
        let mut input = Input::at(bytes, self.header)?;
        let header = record::<30>(&mut input, IN_FILE)?;
        input.take(little(&header[26..28]) + little(&header[28..30]))?;
        input.take(self.size)
    }
}

/// Returns the number of entries of the central directory, and its offset.
fn find_directory(bytes: &[u8]) -> Result<(u64, u64), String> {
    const SIZE: usize = 22;
    const LOCATOR_SIZE: usize = 20;
    // A comment of up to 65,535 bytes may follow.
    let last = bytes.len().saturating_sub(SIZE);
    let first = last.saturating_sub(usize::from(u16::MAX));
    let is_end = |at: &usize| {
        let record = &bytes[*at..];
        record.starts_with(END)
            && record.len() >= SIZE
            && little(&record[20..22]) == (record.len() - SIZE) as u64
    };
    let end = (first..=last).rev().find(is_end);
    let end = end.ok_or("its zip archive has no directory at the end; it is truncated")?;
    let locator = end.checked_sub(LOCATOR_SIZE).map(|at| &bytes[at..end]);
    if let Some(locator) = locator.filter(|locator| locator.starts_with(END_64_LOCATOR)) {
        let mut input = Input::at(bytes, little(&locator[8..16]))?;
        let record = record::<56>(&mut input, END_64)?;
        return Ok((little(&record[32..40]), little(&record[48..56])));
    }
    Ok((little(&bytes[end + 10..end + 12]), little(&bytes[end + 16..end + 20])))
}

/// Takes a record of fixed size that starts with a signature.
fn record<'a, const SIZE: usize>(
    input: &mut Input<'a>,
    signature: &[u8],
) -> Result<&'a [u8; SIZE], String> {
    let (record, rest) =
        input.0.split_first_chunk().ok_or("its zip archive ends too early; it is truncated")?;
    if !record.starts_with(signature) {
        return Err("its zip archive is damaged: a header is not where it should be".to_string());
    }
    input.0 = rest;
    Ok(record)
}

/// Reads the next entry of the central directory.
fn read_entry<'a>(input: &mut Input<'a>) -> Result<(&'a str, Entry), String> {
    let header = record::<46>(input, IN_DIRECTORY)?;
    let field = |at: usize, width: usize| little(&header[at..at + width]);
    let name = input.take(field(28, 2))?;
    let extra = input.take(field(30, 2))?;
    input.take(field(32, 2))?;
    let name = str::from_utf8(name).map_err(|_| "its zip archive has a name that is not UTF-8")?;
    let [size, packed, header] = large(extra, [field(24, 4), field(20, 4), field(42, 4)])?;
    Ok((name, Entry { flags: field(8, 2), method: field(10, 2), packed, size, header }))
}

/// Replaces placeholders by the values of the zip64 extra field, which has them in this order.
fn large(extra: &[u8], numbers: [u64; 3]) -> Result<[u64; 3], String> {
    if !numbers.contains(&ELSEWHERE) {
        return Ok(numbers);
    }
    let mut fields = Input(extra);
    while !fields.0.is_empty() {
        let kind = fields.number(2)?;
        let mut field = Input(fields.counted(2)?);
        if kind == LARGE {
            let mut numbers = numbers;
            for number in numbers.iter_mut().filter(|number| **number == ELSEWHERE) {
                *number = field.number(8)?;
            }
            return Ok(numbers);
        }
    }
    Ok(numbers)
}
