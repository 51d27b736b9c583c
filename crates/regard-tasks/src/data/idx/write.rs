//! Writing of IDX files.

use super::{AXES, Kind, LARGEST, LAST_CLASS};
use regard_models::{Error, Result, checkpoint};
use std::io::Write;
use std::path::Path;

impl Kind {
    /// Returns the header of a file with this shape.
    pub(super) fn header(self, shape: &[usize]) -> Vec<u8> {
        let axes = shape.iter().flat_map(|size| (*size as u32).to_be_bytes());
        [0, 0, self.code(), shape.len() as u8].into_iter().chain(axes).collect()
    }
}

/// Returns the bytes of an IDX file with this shape and data.
pub fn to_bytes(shape: &[usize], data: &[u8]) -> Vec<u8> {
    let mut bytes = Kind::Bytes.header(shape);
    bytes.extend_from_slice(data);
    bytes
}

/// Writes bytes with this shape. A file that exists is replaced at once, when all is written.
///
/// # Errors
/// If the shape has not 1 to 4 axes or holds another number of bytes, or the file cannot be
/// written.
pub fn write(path: &Path, shape: &[usize], data: &[u8]) -> Result<()> {
    let axes = u8::try_from(shape.len()).is_ok_and(|axes| AXES.contains(&axes));
    let count = shape.iter().try_fold(1u64, |count, size| count.checked_mul(*size as u64));
    let fits = count.is_some_and(|n| (1..=LARGEST).contains(&n) && n == data.len() as u64);
    if !axes || !fits {
        let message = format!(
            "got {} bytes for a shape of {shape:?}, need a shape of 1 to 4 axes that holds them, \
             at least 1 and at most {LARGEST}",
            data.len()
        );
        return Err(Error::file(path, message));
    }
    checkpoint::write_file_with(path, |file| {
        file.write_all(&Kind::Bytes.header(shape))?;
        file.write_all(data)
    })
}

/// Writes labels, as [`write()`] does: bytes if all of them fit, otherwise 32-bit integers.
///
/// # Errors
/// If there are no labels or too many, one is too large, or the file cannot be written.
pub fn write_labels(path: &Path, labels: &[usize]) -> Result<()> {
    let most = labels.iter().copied().max().unwrap_or(0);
    if most > LAST_CLASS {
        let message = format!("got a label of {most}, need 0 to {LAST_CLASS}");
        return Err(Error::file(path, message));
    }
    let kind = if most <= usize::from(u8::MAX) { Kind::Bytes } else { Kind::Integers };
    let room = LARGEST / kind.width();
    if !(1..=room).contains(&(labels.len() as u64)) {
        let message = format!("got {} labels, need 1 to {room}", labels.len());
        return Err(Error::file(path, message));
    }
    let mut bytes = kind.header(&[labels.len()]);
    match kind {
        Kind::Bytes => bytes.extend(labels.iter().map(|label| *label as u8)),
        Kind::Integers => {
            bytes.extend(labels.iter().flat_map(|label| (*label as u32).to_be_bytes()));
        }
    }
    checkpoint::write_file(path, &bytes)
}

#[cfg(test)]
mod tests {
    use super::super::{Idx, read, read_labels};
    use super::*;
    use crate::data::scratch::with_file;

    #[test]
    fn files_are_replaced_by_what_is_written() {
        let (shape, data): (_, Vec<u8>) = (vec![2, 2, 3, 3], (0..36).collect());
        let got = with_file("colours", b"before", |path| {
            write(path, &shape, &data).unwrap();
            read(path).unwrap()
        });
        assert_eq!(got, Idx { shape, data });
        // Bytes as long as they suffice.
        for (labels, size) in [(vec![3, 255, 0], 8 + 3), (vec![3, 256, 0], 8 + 4 * 3)] {
            let (got, bytes) = with_file("labels", b"before", |path| {
                write_labels(path, &labels).unwrap();
                (read_labels(path).unwrap(), std::fs::read(path).unwrap())
            });
            assert_eq!((got, bytes.len()), (labels, size));
        }
    }

    #[test]
    fn what_could_not_be_read_is_not_written() {
        let told = |shape: &[usize], data: &[u8]| {
            with_file("kept", b"before", |path| {
                let told = write(path, shape, data).unwrap_err().to_string();
                assert_eq!(std::fs::read(path).unwrap(), b"before");
                told
            })
        };
        assert!(told(&[2, 2], &[1; 3]).contains("got 3 bytes for a shape of [2, 2]"));
        let rows: [(&[usize], &[u8]); 3] = [(&[0, 2], &[]), (&[], &[1]), (&[1; 5], &[1])];
        for (shape, data) in rows {
            assert!(told(shape, data).contains("1 to 4 axes"), "{shape:?}");
        }
        assert!(told(&[usize::MAX, 2], &[1; 2]).contains("kept"));
        let told = |labels: &[usize]| {
            with_file("kept", b"", |path| write_labels(path, labels).unwrap_err().to_string())
        };
        assert!(told(&[]).contains("got 0 labels, need 1 to"));
        assert!(told(&[0, 1 << 20]).contains("got a label of 1048576, need 0 to 1048575"));
    }
}
