//! File of embeddings, with everything that they depend on.
//!
//! It is in the safetensors format: an array `embeddings` of shape `[texts, dimension]` in single
//! precision, and in its metadata, under `regard-index`, a JSON object with the format's version
//! and the [`IndexOrigin`]. The metadata come first in the file, so that a truncated one is recognised.

use super::embeddings::Embeddings;
use crate::embed::SentencePooling;
use regard_attention::storage::Bytes;
use regard_models::checkpoint::{self, Arrays};
use regard_models::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// End of the name of an index, after that of its file.
pub const EXTENSION: &str = "regard-index";
/// Name of the metadata.
const KEY: &str = "regard-index";
/// Name of the array.
const EMBEDDINGS: &str = "embeddings";
/// Version of the format, and of how a text becomes an embedding.
const VERSION: u32 = 1;
/// Bytes of every index after the eight that hold the length of the header.
const MAGIC: &[u8] = b"{\"__metadata__\":{\"regard-index\":";

/// Everything that the embeddings of an index depend on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndexOrigin {
    /// SHA-256 of the file that was indexed.
    pub file: String,
    /// Column of its table; `None` if its lines were indexed.
    pub column: Option<String>,
    /// Identity of the model: see [`Searcher::origin`](super::Searcher::origin).
    pub model: String,
    /// Pooling of the token vectors.
    pub pooling: SentencePooling,
}

/// Embeddings with their origin.
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    /// What the embeddings were computed from.
    pub origin: IndexOrigin,
    /// Embeddings of the texts, in the order of the file.
    pub embeddings: Embeddings,
}

/// State of an index on the disk.
#[derive(Clone, Debug, PartialEq)]
pub enum IndexFile {
    /// There is none, or an empty file.
    Absent,
    /// It is truncated, damaged or of another version, as the message says.
    Damaged(String),
    /// It is complete.
    Whole(Index),
}

#[derive(Serialize, Deserialize)]
struct Header {
    version: u32,
    origin: IndexOrigin,
}

impl Index {
    /// Reads an index.
    ///
    /// # Errors
    /// If something else is there, which must not be overwritten: another file, a link, a device.
    pub fn open(path: &Path) -> Result<IndexFile> {
        Ok(match contents(path)? {
            None => IndexFile::Absent,
            Some(bytes) => {
                Index::from_bytes(bytes).map_or_else(IndexFile::Damaged, IndexFile::Whole)
            }
        })
    }

    /// Parses the contents of an index. Nothing is allocated before its sizes are compared with
    /// those of the file.
    ///
    /// # Errors
    /// If it is truncated, damaged or of another version.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Index, String> {
        let bytes = bytes.into();
        let header = checkpoint::metadata_from_bytes(&bytes, KEY)?;
        let header = header.ok_or_else(|| format!("has no metadata {KEY:?}"))?;
        let header: serde_json::Value =
            serde_json::from_str(&header).map_err(|e| format!("{KEY}: not JSON: {e}"))?;
        match header.get("version").and_then(serde_json::Value::as_u64) {
            Some(version) if version == u64::from(VERSION) => {}
            found => return Err(format!("is of version {found:?}, need {VERSION}")),
        }
        let Header { origin, .. } =
            serde_json::from_value(header).map_err(|e| format!("{KEY}: {e}"))?;
        let mut arrays = checkpoint::weights_from_bytes(bytes)?;
        let array = arrays.remove(EMBEDDINGS).ok_or_else(|| format!("has no {EMBEDDINGS:?}"))?;
        Ok(Index { origin, embeddings: Embeddings::new(array)? })
    }

    /// Writes the index: to a temporary file that is synced and renamed.
    ///
    /// # Errors
    /// If it cannot be written, or as [`Index::open`].
    pub fn write(&self, path: &Path) -> Result<()> {
        // Something else may be there by now: the embeddings may have taken hours.
        contents(path)?;
        let header = Header { version: VERSION, origin: self.origin.clone() };
        let header = serde_json::to_string(&header).expect("strings are JSON");
        let arrays = Arrays::from([(EMBEDDINGS.to_string(), self.embeddings.array().clone())]);
        let bytes = checkpoint::to_bytes_with_metadata(&arrays, KEY, &header);
        checkpoint::write_file(path, &bytes.map_err(|message| Error::file(path, message))?)
    }

    /// Returns why the index is not that of this origin and this number of texts; `None` if it is.
    pub fn stale(&self, origin: &IndexOrigin, texts: usize) -> Option<&'static str> {
        let IndexOrigin { file, column, model, pooling } = &self.origin;
        let same = [
            (*file == origin.file, "the file has changed"),
            (*column == origin.column, "it is an index of another column"),
            (*model == origin.model, "it was made with another model"),
            (*pooling == origin.pooling, "it was made with another pooling"),
            (self.embeddings.rows() == texts, "it has another number of texts"),
        ];
        same.into_iter().find(|(same, _)| !same).map(|(_, why)| why)
    }
}

/// Returns the bytes of an index that may be replaced; `None` if there is none.
fn contents(path: &Path) -> Result<Option<Bytes>> {
    let wrong = |what: &str| {
        Error::file(
            path,
            format!(
                "{what}, need an index of regard search or no file: move it, or name another index"
            ),
        )
    };
    let kind = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        found => found.map_err(Error::io(path))?,
    };
    match kind.file_type() {
        kind if kind.is_symlink() => return Err(wrong("is a link")),
        kind if kind.is_dir() => return Err(wrong("is a folder")),
        kind if !kind.is_file() => return Err(wrong("is not a regular file")),
        _ => {}
    }
    if kind.len() == 0 {
        return Ok(None);
    }
    let bytes = checkpoint::map_file(path)?;
    match bytes.get(8..).is_some_and(|header| header.starts_with(MAGIC)) {
        true => Ok(Some(bytes)),
        false => Err(wrong("is another file")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::embeddings::tests::embeddings;
    use super::*;
    use crate::data::scratch::with_file;

    fn index() -> Index {
        let origin = IndexOrigin {
            file: "f".repeat(64),
            column: Some("text".into()),
            model: "m".repeat(64),
            pooling: SentencePooling::Cls,
        };
        Index { origin, embeddings: embeddings(1, 5, 3) }
    }

    /// The file of an index.
    fn bytes() -> Vec<u8> {
        with_file("index-bytes", b"", |path| {
            index().write(path).unwrap();
            fs::read(path).unwrap()
        })
    }

    fn read(bytes: &[u8]) -> Result<IndexFile, String> {
        with_file("x.regard-index", bytes, |path| Index::open(path).map_err(|e| e.to_string()))
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = bytes();
        assert!(bytes[8..].starts_with(MAGIC), "{}", String::from_utf8_lossy(&bytes));
        assert_eq!(read(&bytes).unwrap(), IndexFile::Whole(index()));
        let again = with_file("index-again", &bytes, |path| {
            index().write(path).unwrap();
            fs::read(path).unwrap()
        });
        assert_eq!(again, bytes, "the same index is the same file");
        assert_eq!(read(b"").unwrap(), IndexFile::Absent);
        assert_eq!(Index::open(Path::new("/no/such/folder/x")).unwrap(), IndexFile::Absent);
    }

    #[test]
    fn what_has_changed_is_told() {
        let (index, origin) = (index(), index().origin);
        assert_eq!(index.stale(&origin, 5), None);
        let other = |change: &dyn Fn(&mut IndexOrigin)| {
            let mut other = origin.clone();
            change(&mut other);
            index.stale(&other, 5).unwrap()
        };
        assert!(other(&|o| o.file = "g".repeat(64)).contains("file has changed"));
        assert!(other(&|o| o.column = None).contains("column"));
        assert!(other(&|o| o.model.clear()).contains("model"));
        assert!(other(&|o| o.pooling = SentencePooling::Mean).contains("pooling"));
        assert!(index.stale(&origin, 6).unwrap().contains("number of texts"));
    }

    #[test]
    fn a_truncated_index_is_damaged_and_never_a_panic() {
        let whole = bytes();
        for length in 1..whole.len() {
            let found = read(&whole[..length]);
            match length < 8 + MAGIC.len() {
                // Nothing shows that it is an index.
                true => assert!(found.unwrap_err().contains("is another file"), "{length}"),
                false => assert!(matches!(found, Ok(IndexFile::Damaged(_))), "{length}"),
            }
        }
        let longer = [&whole[..], b"x"].concat();
        assert!(matches!(read(&longer), Ok(IndexFile::Damaged(_))));
    }

    #[test]
    fn a_hostile_header_is_damaged() {
        let bytes = bytes();
        let changed = |from: &str, to: &str| {
            assert_eq!(from.len(), to.len());
            let at = bytes.windows(from.len()).position(|window| window == from.as_bytes());
            let at = at.unwrap_or_else(|| panic!("{from} is not there"));
            let mut bytes = bytes.clone();
            bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
            match read(&bytes) {
                Ok(IndexFile::Damaged(why)) => why,
                other => panic!("{from} to {to}: {other:?}"),
            }
        };
        changed("\"shape\":[5,3]", "\"shape\":[9,9]");
        changed("\"shape\":[5,3]", "\"shape\":[3,5]");
        changed("\"dtype\":\"F32\"", "\"dtype\":\"I32\"");
        changed("[0,60]", "[0,99]");
        changed("\"embeddings\"", "\"embeddingz\"");
        assert!(changed("\\\"version\\\":1", "\\\"version\\\":7").contains("version"));
        changed("\\\"cls\\\"", "\\\"all\\\"");
        // A length of the header beyond the file.
        for length in [u64::MAX, 1 << 40, bytes.len() as u64] {
            let mut bytes = bytes.clone();
            bytes[..8].copy_from_slice(&length.to_le_bytes());
            assert!(matches!(read(&bytes), Ok(IndexFile::Damaged(_))), "{length}");
        }
        let mut nan = bytes.clone();
        let end = nan.len();
        nan[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
        assert!(matches!(read(&nan), Ok(IndexFile::Damaged(_))));
    }

    #[test]
    fn what_is_no_index_is_not_overwritten() {
        for other in [&b"my notes\n"[..], b"\x08\0\0\0\0\0\0\0{\"a\":{}}", b"regard-index"] {
            with_file("other", other, |path| {
                for error in [Index::open(path).unwrap_err(), index().write(path).unwrap_err()] {
                    let error = error.to_string();
                    assert!(error.contains("other") && error.contains("move it"), "{error}");
                }
                assert_eq!(fs::read(path).unwrap(), other);
            });
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_and_devices_are_not_written_through() {
        with_file("real", &bytes(), |path| {
            let link = path.with_file_name("link");
            std::os::unix::fs::symlink(path, &link).unwrap();
            for (place, what) in [
                (link.as_path(), "is a link"),
                (Path::new("/dev/null"), "is not a regular file"),
                (path.parent().unwrap(), "is a folder"),
            ] {
                let [read, written] = [
                    Index::open(place).unwrap_err().to_string(),
                    index().write(place).unwrap_err().to_string(),
                ];
                assert!(read.contains(what) && written.contains(what), "{read}; {written}");
            }
        });
    }
}
