//! IDX, the format of MNIST and its relatives: a magic number, the sizes of all axes, values.
//!
//! The header is 0, 0, the type and the number of axes, one byte each; then each axis as a
//! big-endian 32-bit integer; then the values in row-major order. Values are bytes (type 8); labels
//! may also be big-endian 32-bit integers (type 12). A file may be compressed with gzip, which is
//! detected by its first bytes and not by its name.

mod write;

pub use write::{to_bytes, write, write_labels};

use flate2::bufread::MultiGzDecoder;
use regard_models::{Error, Result};
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

/// Largest size of all values, in bytes; a header that says more is rejected.
const LARGEST: u64 = 1 << 31;
/// Largest label. A model has a row of weights for each class below it, so that one wrong number
/// must not decide how much memory is allocated.
const LAST_CLASS: usize = (1 << 20) - 1;
/// Bytes that are allocated before any data was read.
const FIRST: usize = 1 << 20;
/// Numbers of axes that a file may have.
const AXES: std::ops::RangeInclusive<u8> = 1..=4;

/// Bytes with a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idx {
    /// The sizes of all axes.
    pub shape: Vec<usize>,
    /// Values in row-major order.
    pub data: Vec<u8>,
}

/// Contents of a file.
pub enum Held {
    /// Bytes with a shape.
    Idx(Idx),
    /// Another format: a reader at its first byte.
    Other(Box<dyn BufRead>),
}

/// Type of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bytes,
    Integers,
}

impl Kind {
    /// Number in the header.
    fn code(self) -> u8 {
        match self {
            Kind::Bytes => 8,
            Kind::Integers => 12,
        }
    }

    /// Bytes per value.
    fn width(self) -> u64 {
        match self {
            Kind::Bytes => 1,
            Kind::Integers => 4,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Bytes => "8 (unsigned bytes)",
            Kind::Integers => "12 (32-bit integers)",
        }
    }
}

/// Reads a file if it begins as IDX does, compressed or not.
pub fn read_if(path: &Path) -> Result<Held> {
    let mut reader = open(path)?;
    let begin = reader.fill_buf().map_err(Error::io(path))?;
    match begin.starts_with(&[0, 0]) {
        true => parse(reader).map(Held::Idx).map_err(|message| Error::file(path, message)),
        false => Ok(Held::Other(reader)),
    }
}

/// Reads a file.
pub fn read(path: impl AsRef<Path>) -> Result<Idx> {
    let path = path.as_ref();
    parse(open(path)?).map_err(|message| Error::file(path, message))
}

/// Reads a file of labels, which has one axis: bytes or 32-bit integers.
pub fn read_labels(path: impl AsRef<Path>) -> Result<Vec<usize>> {
    let path = path.as_ref();
    parse_labels(open(path)?).map_err(|message| Error::file(path, message))
}

fn open(path: &Path) -> Result<Box<dyn BufRead>> {
    super::ledger::note(path);
    let mut file = BufReader::new(File::open(path).map_err(Error::io(path))?);
    let begin = file.fill_buf().map_err(Error::io(path))?;
    Ok(match begin.starts_with(&[0x1f, 0x8b]) {
        true => Box::new(BufReader::new(MultiGzDecoder::new(file))),
        false => Box::new(file),
    })
}

fn parse(reader: impl BufRead) -> Result<Idx, String> {
    let Values { shape, bytes: data, .. } = Values::parse(reader, &[Kind::Bytes])?;
    Ok(Idx { shape, data })
}

fn parse_labels(reader: impl BufRead) -> Result<Vec<usize>, String> {
    let Values { kind, shape, bytes } = Values::parse(reader, &[Kind::Bytes, Kind::Integers])?;
    if shape.len() != 1 {
        return Err(format!("byte 3: got a shape of {shape:?}, need [labels]"));
    }
    let integer = |(i, bytes): (usize, &[u8; 4])| {
        let label = i32::from_be_bytes(*bytes);
        usize::try_from(label).ok().filter(|label| *label <= LAST_CLASS).ok_or_else(|| {
            format!("byte {}: got a label of {label}, need 0 to {LAST_CLASS}", 8 + 4 * i)
        })
    };
    match kind {
        Kind::Bytes => Ok(bytes.into_iter().map(usize::from).collect()),
        Kind::Integers => bytes.as_chunks::<4>().0.iter().enumerate().map(integer).collect(),
    }
}

/// Values as they are in a file.
struct Values {
    kind: Kind,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Values {
    /// Reads a file whose values have one of these types.
    fn parse(mut reader: impl BufRead, kinds: &[Kind]) -> Result<Values, String> {
        let mut magic = [0; 4];
        fill(&mut reader, &mut magic, 0, "the magic number")?;
        let [zero, one, code, axes] = magic;
        if (zero, one) != (0, 0) || !AXES.contains(&axes) {
            return Err(
                "byte 0: is not an IDX file, which begins with 0, 0, 8 and 1 to 4 axes".to_string()
            );
        }
        let Some(kind) = kinds.iter().copied().find(|kind| kind.code() == code) else {
            let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
            return Err(format!("byte 2: got type {code}, need {}", names.join(" or ")));
        };
        let (mut shape, mut count) = (vec![], 1u64);
        for axis in 0..axes {
            let at = 4 + 4 * u64::from(axis);
            let mut size = [0; 4];
            fill(&mut reader, &mut size, at, &format!("the size of axis {axis}"))?;
            let size = u32::from_be_bytes(size);
            if size == 0 {
                return Err(format!("byte {at}: axis {axis} is empty, need at least 1"));
            }
            count = count.saturating_mul(u64::from(size));
            shape.push(size as usize);
        }
        let most = LARGEST / kind.width();
        if count > most {
            return Err(format!("byte 4: a shape of {shape:?}, need at most {most} values"));
        }
        let (begin, size) = (4 + 4 * u64::from(axes), count * kind.width());
        let mut bytes = Vec::with_capacity(FIRST.min(size as usize));
        let read = reader.by_ref().take(size).read_to_end(&mut bytes);
        let got = bytes.len() as u64;
        read.map_err(|e| format!("byte {}: {e}", begin + got))?;
        if got < size {
            return Err(format!(
                "byte {}: the file ends after {} of the {count} values of its shape {shape:?}",
                begin + got,
                got / kind.width()
            ));
        }
        match reader.fill_buf() {
            Ok([]) => Ok(Values { kind, shape, bytes }),
            Ok(_) => {
                Err(format!("byte {}: more follows than the shape {shape:?} holds", begin + size))
            }
            Err(e) => Err(format!("byte {}: {e}", begin + size)),
        }
    }
}

fn fill(reader: &mut impl Read, bytes: &mut [u8], at: u64, what: &str) -> Result<(), String> {
    reader.read_exact(bytes).map_err(|e| match e.kind() {
        ErrorKind::UnexpectedEof => format!("byte {at}: the file ends within {what}"),
        _ => format!("byte {at}: {e}"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::scratch::with_file;
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    #[test]
    fn what_is_written_is_read_compressed_or_not() {
        let wanted = Idx { shape: vec![2, 3, 1], data: vec![1, 2, 3, 4, 5, 255] };
        let bytes = to_bytes(&wanted.shape, &wanted.data);
        let mut zipped = GzEncoder::new(vec![], Compression::fast());
        zipped.write_all(&bytes).unwrap();
        for bytes in [bytes, zipped.finish().unwrap()] {
            let (got, held) = with_file("idx", &bytes, |path| (read(path), read_if(path)));
            assert_eq!(got.unwrap(), wanted);
            assert!(matches!(held, Ok(Held::Idx(held)) if held == wanted));
        }
        let other = with_file("idx", b"PNG", |path| match read_if(path).unwrap() {
            Held::Idx(_) => panic!("it begins as no such file"),
            Held::Other(mut file) => {
                let mut bytes = vec![];
                file.read_to_end(&mut bytes).unwrap();
                bytes
            }
        });
        assert_eq!(other, b"PNG");
    }

    fn refused(bytes: &[u8]) -> String {
        with_file("idx-file", bytes, |path| read(path).unwrap_err().to_string())
    }

    #[test]
    fn hostile_files_are_told_with_the_place() {
        let whole = to_bytes(&[2, 2, 2], &[7; 8]);
        let mut longer = whole.clone();
        longer.push(0);
        let mut zipped = GzEncoder::new(vec![], Compression::fast());
        zipped.write_all(&whole).unwrap();
        let zipped = zipped.finish().unwrap();
        let rows: [(&[u8], &str); 10] = [
            (b"", "byte 0: the file ends within the magic number"),
            (&whole[..3], "byte 0: the file ends within the magic number"),
            (b"\x89PNG\r\n", "byte 0: is not an IDX file"),
            (&[0, 0, 13, 1, 0, 0, 0, 1], "byte 2: got type 13"),
            (&[0, 0, 8, 9, 0, 0], "byte 0: is not an IDX file"),
            (&whole[..10], "byte 8: the file ends within the size of axis 1"),
            (&[0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 0, 0], "byte 8: axis 1 is empty"),
            (&to_bytes(&[u32::MAX as usize; 3], &[]), "need at most"),
            (&whole[..20], "byte 20: the file ends after 4 of the 8 values"),
            (&longer, "byte 24: more follows"),
        ];
        for (bytes, wanted) in rows {
            let error = refused(bytes);
            assert!(error.contains(wanted), "{error} is not {wanted}");
            assert!(error.contains("idx-file"), "{error}");
        }
        assert!(refused(&zipped[..zipped.len() - 9]).contains("byte "));
        // A header with a false length allocates no memory before data comes.
        let liar = to_bytes(&[1 << 15, 1 << 15], &[1; 5]);
        assert!(refused(&liar).contains("after 5 of the 1073741824"));
    }

    /// The header of 32-bit integers, and the integers.
    fn integers(shape: &[usize], values: &[i32]) -> Vec<u8> {
        let values = values.iter().flat_map(|value| value.to_be_bytes());
        Kind::Integers.header(shape).into_iter().chain(values).collect()
    }

    #[test]
    fn labels_are_bytes_or_integers() {
        let read = |bytes: &[u8]| with_file("labels", bytes, |path| read_labels(path).unwrap());
        assert_eq!(read(&to_bytes(&[3], &[2, 255, 0])), [2, 255, 0]);
        assert_eq!(read(&integers(&[3], &[70_000, 0, 256])), [70_000, 0, 256]);
        let two = integers(&[2], &[1, 1 << 20]);
        let rows: [(&[u8], &str); 7] = [
            (&integers(&[2], &[1, -3]), "byte 12: got a label of -3, need 0 to 1048575"),
            (&two, "byte 12: got a label of 1048576"),
            (&two[..14], "byte 14: the file ends after 1 of the 2 values"),
            (&integers(&[1], &[1, 2]), "byte 12: more follows"),
            (&integers(&[1 << 30], &[1]), "need at most 536870912 values"),
            (&to_bytes(&[2, 1], &[1, 2]), "got a shape of [2, 1], need [labels]"),
            (&[0, 0, 13, 1, 0, 0, 0, 1], "got type 13, need 8 (unsigned bytes) or 12 (32-bit"),
        ];
        for (bytes, wanted) in rows {
            let told = with_file("labels", bytes, |path| read_labels(path).unwrap_err());
            assert!(told.to_string().contains(wanted), "{told} is not {wanted}");
        }
        // Images are bytes.
        assert!(refused(&integers(&[1, 1, 1], &[5])).contains("byte 2: got type 12, need 8"));
        // A header with a false length allocates no memory before data comes.
        assert!(
            with_file("labels", &integers(&[1 << 29], &[1]), |path| read_labels(path).unwrap_err())
                .to_string()
                .contains("after 1 of the 536870912")
        );
    }
}
