//! The header of a GGUF file: metadata by key, and the place of each tensor.
//!
//! Everything here is untrusted. Nothing is allocated by a number in the file: a value is the range
//! of bytes that it was found in, and numbers of things are bounded by the bytes that they take.

use super::kinds::Kind;
use crate::sizes::short;
use regard_attention::storage::Bytes;
use std::collections::BTreeMap;
use std::ops::Range;

/// First bytes of every file.
pub const MAGIC: [u8; 4] = *b"GGUF";
/// Versions that are read. The first one had 32-bit lengths and is in no file of today.
const VERSIONS: [u32; 2] = [2, 3];
/// Alignment of tensors where `general.alignment` does not say it.
pub const ALIGNMENT: usize = 32;
/// Most keys, and most tensors.
const MOST: u64 = 1 << 16;
/// Longest key and longest name of a tensor, in bytes.
const LONGEST_NAME: u64 = 1 << 10;
/// Most axes of a tensor.
const MOST_AXES: u32 = 4;
/// Most characters of a name in a message.
const SHOWN: usize = 80;

/// Type of a value of metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    Text,
    Array,
    U64,
    I64,
    F64,
}

impl ValueType {
    /// All types, by their number in a file.
    const ALL: [ValueType; 13] = {
        use ValueType::{Array, Bool, F32, F64, I8, I16, I32, I64, Text, U8, U16, U32, U64};
        [U8, I8, U16, I16, U32, I32, F32, Bool, Text, Array, U64, I64, F64]
    };

    /// Size in bytes; `None` for texts and arrays.
    pub(super) fn size(self) -> Option<usize> {
        match self {
            ValueType::U8 | ValueType::I8 | ValueType::Bool => Some(1),
            ValueType::U16 | ValueType::I16 => Some(2),
            ValueType::U32 | ValueType::I32 | ValueType::F32 => Some(4),
            ValueType::U64 | ValueType::I64 | ValueType::F64 => Some(8),
            ValueType::Text | ValueType::Array => None,
        }
    }
}

/// A value of metadata: where it is in the file.
#[derive(Clone, Debug)]
pub struct Found {
    /// Type of the value, or of the elements of an array.
    pub kind: ValueType,
    /// Number of elements of an array; `None` if it is not one.
    pub count: Option<usize>,
    /// Bytes of the value, or of all elements. Texts have their lengths before them.
    pub range: Range<usize>,
}

/// Place of a tensor.
#[derive(Clone, Debug)]
pub struct Place {
    /// Sizes of the axes, in the order of the file: the first one varies fastest.
    pub axes: Vec<usize>,
    /// Type of the elements.
    pub kind: Kind,
    /// Bytes in the file.
    pub range: Range<usize>,
}

/// A parsed header.
#[derive(Clone, Debug)]
pub struct Header {
    /// Values by key.
    pub values: BTreeMap<String, Found>,
    /// Tensors by name.
    pub tensors: BTreeMap<String, Place>,
}

/// Reads a file from its beginning.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn take(&mut self, size: u64) -> Result<Range<usize>, String> {
        let rest = self.bytes.len() - self.at;
        let Some(size) = usize::try_from(size).ok().filter(|size| *size <= rest) else {
            return Err(format!(
                "its header is not complete: {size} bytes at byte {}, of which the file has {rest}; \
                 it may be truncated",
                self.at
            ));
        };
        let range = self.at..self.at + size;
        self.at += size;
        Ok(range)
    }

    fn u32(&mut self) -> Result<u32, String> {
        let range = self.take(4)?;
        Ok(u32::from_le_bytes(self.bytes[range].try_into().expect("4 bytes")))
    }

    fn u64(&mut self) -> Result<u64, String> {
        let range = self.take(8)?;
        Ok(u64::from_le_bytes(self.bytes[range].try_into().expect("8 bytes")))
    }

    /// A key or the name of a tensor.
    fn name(&mut self, what: &str) -> Result<String, String> {
        let size = self.u64()?;
        if !(1..=LONGEST_NAME).contains(&size) {
            return Err(format!("{what} has {size} bytes, need 1 to {LONGEST_NAME}"));
        }
        let range = self.take(size)?;
        let text = std::str::from_utf8(&self.bytes[range]);
        Ok(text.map_err(|_| format!("{what} is not UTF-8"))?.to_string())
    }

    fn value_type(&mut self, key: &str) -> Result<ValueType, String> {
        let number = self.u32()?;
        let found = ValueType::ALL.get(number as usize).copied();
        found.ok_or_else(|| format!("{key}: its type is {number}, need 0 to 12"))
    }

    fn value(&mut self, key: &str) -> Result<Found, String> {
        let kind = self.value_type(key)?;
        let from = self.at;
        if kind != ValueType::Array {
            self.elements(kind, 1)?;
            return Ok(Found { kind, count: None, range: from..self.at });
        }
        let of = self.value_type(key)?;
        let count = self.u64()?;
        let from = self.at;
        if of == ValueType::Array {
            return Err(format!("{key}: is an array of arrays, need one of numbers or texts"));
        }
        self.elements(of, count).map_err(|e| format!("{key}: {e}"))?;
        // As many elements as there are bytes, at most.
        Ok(Found { kind: of, count: Some(count as usize), range: from..self.at })
    }

    fn elements(&mut self, kind: ValueType, count: u64) -> Result<(), String> {
        if let Some(size) = kind.size() {
            return self.take(count.saturating_mul(size as u64)).map(|_| ());
        }
        // Each has a length of 8 bytes at least, so that this ends with the file.
        for _ in 0..count {
            let size = self.u64()?;
            self.take(size)?;
        }
        Ok(())
    }
}

impl Header {
    /// Parses the header of a file of `size` bytes, of which `bytes` are the first ones.
    ///
    /// # Errors
    /// With what was found and what is needed.
    pub fn parse(bytes: &Bytes, size: usize) -> Result<Header, String> {
        let mut cursor = Cursor { bytes, at: 0 };
        if bytes.get(..4) != Some(&MAGIC) {
            return Err("is not a GGUF file: it does not begin with \"GGUF\"".into());
        }
        cursor.take(4)?;
        let version = cursor.u32()?;
        if VERSIONS.contains(&version.swap_bytes()) {
            return Err("is a big-endian GGUF file, need a little-endian one".into());
        }
        if !VERSIONS.contains(&version) {
            return Err(format!("is of version {version} of GGUF, need 2 or 3"));
        }
        let (tensors, keys) = (cursor.u64()?, cursor.u64()?);
        for (what, count) in [("tensors", tensors), ("keys", keys)] {
            if count > MOST {
                return Err(format!("has {count} {what} by its header, need at most {MOST}"));
            }
        }
        let mut values = BTreeMap::new();
        for _ in 0..keys {
            let key = cursor.name("a key")?;
            let value = cursor.value(&short(&key, SHOWN))?;
            if values.contains_key(&key) {
                return Err(format!("has the key {} twice", short(&key, SHOWN)));
            }
            values.insert(key, value);
        }
        let mut header = Header { values, tensors: BTreeMap::new() };
        let mut offsets = vec![];
        for _ in 0..tensors {
            offsets.push(header.tensor(&mut cursor)?);
        }
        header.place(bytes, size, cursor.at, offsets)?;
        Ok(header)
    }

    /// Reads the description of a tensor; returns its name and offset.
    fn tensor(&mut self, cursor: &mut Cursor) -> Result<(String, u64), String> {
        let name = cursor.name("the name of a tensor")?;
        let shown = short(&name, SHOWN);
        let count = cursor.u32()?;
        if !(1..=MOST_AXES).contains(&count) {
            return Err(format!("{shown}: has {count} axes, need 1 to {MOST_AXES}"));
        }
        let axes: Vec<u64> = (0..count).map(|_| cursor.u64()).collect::<Result<_, _>>()?;
        let kind = Kind::numbered(cursor.u32()?).map_err(|e| format!("{shown}: {e}"))?;
        let offset = cursor.u64()?;
        let elements = axes.iter().try_fold(1u64, |n, axis| n.checked_mul(*axis));
        let (block, size) = kind.block();
        let bytes = elements
            .filter(|n| *n > 0)
            .and_then(|n| (n / block as u64).checked_mul(size as u64))
            .and_then(|n| usize::try_from(n).ok());
        let Some(bytes) = bytes else {
            return Err(format!("{shown}: has axes of {axes:?}, which no file can hold"));
        };
        if !axes[0].is_multiple_of(block as u64) {
            return Err(format!(
                "{shown}: has rows of {} elements of {}, need a multiple of {block}",
                axes[0],
                kind.name()
            ));
        }
        let axes = axes.iter().map(|axis| *axis as usize).collect();
        // The range follows when the beginning of the data is known.
        if self.tensors.insert(name.clone(), Place { axes, kind, range: 0..bytes }).is_some() {
            return Err(format!("has the tensor {shown} twice"));
        }
        Ok((name, offset))
    }

    /// Computes where tensors are in a file of `whole` bytes, of which the header ends at a byte.
    fn place(
        &mut self,
        bytes: &Bytes,
        whole: usize,
        end: usize,
        offsets: Vec<(String, u64)>,
    ) -> Result<(), String> {
        let alignment = match self.values.get("general.alignment") {
            None => ALIGNMENT,
            Some(_) => {
                let found = self.number(bytes, "general.alignment")?.unwrap_or(0);
                match usize::try_from(found) {
                    Ok(n) if n.is_power_of_two() && (8..=1 << 16).contains(&n) => n,
                    _ => {
                        return Err(format!(
                            "general.alignment: got {found}, need a power of 2 from 8 to 65536"
                        ));
                    }
                }
            }
        };
        let data = end.next_multiple_of(alignment) as u64;
        let mut ends = vec![];
        for (name, offset) in offsets {
            let place = self.tensors.get_mut(&name).expect("it was just read");
            let (shown, size) = (short(&name, SHOWN), place.range.len() as u64);
            if !offset.is_multiple_of(alignment as u64) {
                return Err(format!(
                    "{shown}: begins at {offset} of the data, need a multiple of {alignment}"
                ));
            }
            let from = data.checked_add(offset);
            let to = from.and_then(|from| from.checked_add(size));
            match (from, to) {
                (Some(from), Some(to)) if to <= whole as u64 => {
                    place.range = from as usize..to as usize;
                    ends.push((place.range.clone(), name));
                }
                _ => {
                    return Err(format!(
                        "{shown}: has {size} bytes at {offset} of the data, and the data {}; it may \
                         be truncated",
                        (whole as u64).saturating_sub(data)
                    ));
                }
            }
        }
        // A small file could otherwise stand for any number of large weights.
        ends.sort_by_key(|(range, _)| range.start);
        match ends.windows(2).find(|two| two[0].0.end > two[1].0.start) {
            None => Ok(()),
            Some(two) => Err(format!(
                "{} and {} have the same bytes",
                short(&two[0].1, SHOWN),
                short(&two[1].1, SHOWN)
            )),
        }
    }

    /// Returns an integer of any width; `None` if there is no such key.
    pub fn number(&self, bytes: &[u8], key: &str) -> Result<Option<u64>, String> {
        let Some(found) = self.values.get(key) else { return Ok(None) };
        let wrong = || format!("{key}: need a number of at least 0");
        match found.count {
            None => integer(found.kind, &bytes[found.range.clone()]).map(Some).ok_or_else(wrong),
            Some(_) => Err(wrong()),
        }
    }
}

/// Decodes an integer of at least 0; `None` if the value is of another type.
pub fn integer(kind: ValueType, bytes: &[u8]) -> Option<u64> {
    let size = kind.size()?;
    let mut wide = [0; 8];
    wide[..size].copy_from_slice(bytes.get(..size)?);
    let number = u64::from_le_bytes(wide);
    let unused = 64 - 8 * size as u32;
    match kind {
        ValueType::U8 | ValueType::U16 | ValueType::U32 | ValueType::U64 => Some(number),
        ValueType::I8 | ValueType::I16 | ValueType::I32 | ValueType::I64 => {
            u64::try_from(((number << unused) as i64) >> unused).ok()
        }
        _ => None,
    }
}

/// Splits the texts of an array.
pub fn texts(bytes: &[u8], count: usize) -> impl Iterator<Item = &[u8]> {
    let mut at = 0;
    (0..count).map(move |_| {
        let size = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes")) as usize;
        at += 8 + size;
        &bytes[at - size..at]
    })
}
