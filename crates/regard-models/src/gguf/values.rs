//! Values of a file's metadata, with errors that name the key.

use super::Gguf;
use super::header::{Found, ValueType, integer, texts};
use crate::sizes::short;

/// Most characters of a text from a file in a message.
const SHOWN: usize = 60;

impl Gguf {
    fn found(&self, key: &str) -> Option<(&Found, &[u8])> {
        let found = self.header.values.get(key)?;
        Some((found, &self.bytes[found.range.clone()]))
    }

    /// Returns a text.
    ///
    /// # Errors
    /// If the value has another type, or is not UTF-8.
    pub fn text(&self, key: &str) -> Result<Option<&str>, String> {
        let Some((found, bytes)) = self.found(key) else { return Ok(None) };
        if found.kind != ValueType::Text || found.count.is_some() {
            return Err(format!("{key}: need a text"));
        }
        let text = std::str::from_utf8(&bytes[8..]);
        text.map(Some).map_err(|_| format!("{key}: is not UTF-8"))
    }

    /// Returns an integer of at least 0.
    ///
    /// # Errors
    /// If the value is none.
    pub fn integer(&self, key: &str) -> Result<Option<u64>, String> {
        self.header.number(&self.bytes, key)
    }

    /// Returns a size: an integer of at least 0 that indexes memory.
    ///
    /// # Errors
    /// If the value is none.
    pub fn size(&self, key: &str) -> Result<Option<usize>, String> {
        let size =
            |n| usize::try_from(n).map_err(|_| format!("{key}: got {n}, which is too large"));
        self.integer(key)?.map(size).transpose()
    }

    /// Returns a size that the file must have.
    ///
    /// # Errors
    /// If it has none, or the value is none.
    pub fn need(&self, key: &str) -> Result<usize, String> {
        self.size(key)?.ok_or_else(|| format!("has no {key}"))
    }

    /// Returns a size that may differ between layers; an array must have one for each of `layers`,
    /// and the same for all.
    ///
    /// # Errors
    /// If the value is none, or layers differ.
    pub fn same_size(&self, key: &str, layers: usize) -> Result<Option<usize>, String> {
        let Some((Found { kind, count: Some(count), .. }, bytes)) = self.found(key) else {
            return self.size(key);
        };
        if *count != layers || layers == 0 {
            return Err(format!(
                "{key}: has {count} numbers, need one for each of {layers} layers"
            ));
        }
        let Some(wide) = kind.size() else {
            return Err(format!("{key}: need numbers of at least 0"));
        };
        let mut sizes = bytes.chunks(wide).map(|b| integer(*kind, b));
        let first = sizes.next().flatten();
        match first.and_then(|n| usize::try_from(n).ok()) {
            None => Err(format!("{key}: need numbers of at least 0")),
            Some(_) if sizes.any(|size| size != first) => {
                Err(format!("{key}: differs between layers, which is not supported"))
            }
            same => Ok(same),
        }
    }

    /// Returns a number of single or double precision.
    ///
    /// # Errors
    /// If the value is none, or not finite.
    pub fn float(&self, key: &str) -> Result<Option<f64>, String> {
        let Some((found, bytes)) = self.found(key) else { return Ok(None) };
        let number = match (found.kind, found.count) {
            (ValueType::F32, None) => {
                // By its digits, so that 1e-5 does not become 9.99999974e-6 in a configuration.
                let single = f32::from_le_bytes(bytes.try_into().expect("4 bytes"));
                single.to_string().parse().ok()
            }
            (ValueType::F64, None) => Some(f64::from_le_bytes(bytes.try_into().expect("8 bytes"))),
            (kind, None) => integer(kind, bytes).map(|n| n as f64),
            _ => None,
        };
        let number = number.filter(|x| x.is_finite());
        number.map(Some).ok_or_else(|| format!("{key}: need a finite number"))
    }

    /// Returns a truth value.
    ///
    /// # Errors
    /// If the value is none.
    pub fn truth(&self, key: &str) -> Result<Option<bool>, String> {
        let Some((found, bytes)) = self.found(key) else { return Ok(None) };
        match (found.kind, found.count, bytes) {
            (ValueType::Bool, None, [0]) => Ok(Some(false)),
            (ValueType::Bool, None, [1]) => Ok(Some(true)),
            _ => Err(format!("{key}: need true or false")),
        }
    }

    /// Returns the texts of an array.
    ///
    /// # Errors
    /// If the value is none, has more than `most` texts, or a text is not UTF-8.
    pub fn texts(&self, key: &str, most: usize) -> Result<Option<Vec<String>>, String> {
        let Some((found, bytes)) = self.found(key) else { return Ok(None) };
        let Some(count) = found.count.filter(|_| found.kind == ValueType::Text) else {
            return Err(format!("{key}: need an array of texts"));
        };
        if count > most {
            return Err(format!("{key}: got {count} texts, need at most {most}"));
        }
        let text = |(i, text): (usize, &[u8])| {
            let text = std::str::from_utf8(text);
            text.map(str::to_string).map_err(|_| format!("{key}: element {i} is not UTF-8"))
        };
        texts(bytes, count).enumerate().map(text).collect::<Result<_, _>>().map(Some)
    }

    /// Returns the numbers of an array of single precision.
    ///
    /// # Errors
    /// If the value is none, or does not have exactly `count` numbers.
    pub fn floats(&self, key: &str, count: usize) -> Result<Option<Vec<f32>>, String> {
        let Some((found, bytes)) = self.found(key) else { return Ok(None) };
        let Some(got) = found.count.filter(|_| found.kind == ValueType::F32) else {
            return Err(format!("{key}: need an array of F32"));
        };
        counted(key, got, count)?;
        Ok(Some(bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()))
    }

    /// Returns the integers of an array.
    ///
    /// # Errors
    /// If the value is none, has a negative number, or does not have exactly `count` of them.
    pub fn integers(&self, key: &str, count: usize) -> Result<Option<Vec<u64>>, String> {
        let Some((found, bytes)) = self.found(key) else { return Ok(None) };
        let wrong = || format!("{key}: need an array of integers of at least 0");
        let (Some(got), Some(wide)) = (found.count, found.kind.size()) else { return Err(wrong()) };
        counted(key, got, count)?;
        let numbers = bytes.chunks(wide).map(|b| integer(found.kind, b));
        numbers.collect::<Option<_>>().map(Some).ok_or_else(wrong)
    }

    /// Refuses a text other than those that are supported.
    pub(super) fn only(&self, key: &str, supported: &[&str]) -> Result<Option<String>, String> {
        match self.text(key)? {
            Some(got) if !supported.contains(&got) => {
                let got = short(got, SHOWN);
                Err(format!("{key}: got {got:?}, need one of {}", supported.join(", ")))
            }
            found => Ok(found.map(str::to_string)),
        }
    }
}

/// Compares the number of values with what is needed, before any is decoded.
fn counted(key: &str, got: usize, need: usize) -> Result<(), String> {
    match got == need {
        true => Ok(()),
        false => Err(format!("{key}: got {got} numbers, need one for each of {need} tokens")),
    }
}
