//! Values of a file's metadata, with errors that name the key.

use super::Gguf;
use super::header::{Found, ValueType, integer, texts};
use crate::sizes::short;

/// Most characters of a text from a file in a message.
const SHOWN: usize = 60;

impl Gguf {
    /// Whether there is a key.
    pub fn has(&self, key: &str) -> bool {
        self.header.values.contains_key(key)
    }

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

    /// Returns a size that may differ between layers; an array must have the same for all.
    ///
    /// # Errors
    /// If the value is none, or layers differ.
    pub fn same_size(&self, key: &str) -> Result<Option<usize>, String> {
        let Some((Found { kind, count: Some(count), .. }, bytes)) = self.found(key) else {
            return self.size(key);
        };
        let wide = bytes.len().checked_div(*count).filter(|wide| *wide > 0);
        let wide = wide.ok_or_else(|| format!("{key}: is an array of nothing"))?;
        let mut sizes = bytes.chunks(wide).map(|b| {
            // A text of an array is longer than any number.
            integer(*kind, b.get(..wide.min(8)).unwrap_or_default())
        });
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
    /// If the value is none, or a text is not UTF-8.
    pub fn texts(&self, key: &str) -> Result<Option<Vec<String>>, String> {
        let Some((found, bytes)) = self.found(key) else { return Ok(None) };
        let Some(count) = found.count.filter(|_| found.kind == ValueType::Text) else {
            return Err(format!("{key}: need an array of texts"));
        };
        let text = |(i, text): (usize, &[u8])| {
            let text = std::str::from_utf8(text);
            text.map(str::to_string).map_err(|_| format!("{key}: element {i} is not UTF-8"))
        };
        texts(bytes, count).enumerate().map(text).collect::<Result<_, _>>().map(Some)
    }

    /// Returns the numbers of an array of single precision.
    ///
    /// # Errors
    /// If the value is none.
    pub fn floats(&self, key: &str) -> Result<Option<Vec<f32>>, String> {
        let Some((found, bytes)) = self.found(key) else { return Ok(None) };
        if found.kind != ValueType::F32 || found.count.is_none() {
            return Err(format!("{key}: need an array of F32"));
        }
        Ok(Some(bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()))
    }

    /// Returns the integers of an array.
    ///
    /// # Errors
    /// If the value is none, or has a negative number.
    pub fn integers(&self, key: &str) -> Result<Option<Vec<u64>>, String> {
        let Some((found, bytes)) = self.found(key) else { return Ok(None) };
        let wrong = || format!("{key}: need an array of integers of at least 0");
        let count = found.count.ok_or_else(wrong)?;
        if count == 0 {
            return Ok(Some(vec![]));
        }
        if found.kind == ValueType::Text {
            return Err(wrong());
        }
        let numbers = bytes.chunks(bytes.len() / count).map(|b| integer(found.kind, b));
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
