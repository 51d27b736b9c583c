//! Files of a tar archive, in sequence; one file is in memory at a time.
//!
//! The common subset of tar formats is supported: names of up to 255 bytes and GNU's longer ones,
//! sizes in octal digits. Checksums of headers are verified.

use regard_models::{Error, Result};
use std::io::Read;
use std::path::Path;

use super::stream::open;

/// Size of the blocks of headers and contents.
const BLOCK: usize = 512;
/// Largest file in bytes: a file is held in memory as a whole.
const LARGEST: u64 = 1 << 26;

/// Calls `each` with the name and the contents of every file whose name is wanted.
pub fn read(
    path: &Path,
    wanted: impl Fn(&str) -> bool,
    mut each: impl FnMut(&str, Vec<u8>) -> Result<()>,
) -> Result<()> {
    let mut reader = open(path)?;
    let wrong = |message: &str| Error::file(path, format!("not a tar archive: {message}"));
    let mut long_name: Option<String> = None;
    loop {
        let mut header = [0; BLOCK];
        match reader.read_exact(&mut header) {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
                return Err(wrong("it is cut off before its end"));
            }
            Err(e) => return Err(Error::io(path)(e)),
        }
        if header.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        let header = Header::parse(&header).map_err(wrong)?;
        let name = long_name.take().unwrap_or(header.name);
        let keep = match header.kind {
            b'L' => true,
            b'0' | 0 => wanted(&name),
            _ => false,
        };
        let mut contents = vec![];
        let mut limited = (&mut reader).take(header.size);
        match keep {
            true if header.size > LARGEST => {
                let message = format!("{name} has {} bytes, need at most {LARGEST}", header.size);
                return Err(Error::file(path, message));
            }
            true => limited.read_to_end(&mut contents).map_err(Error::io(path))? as u64,
            false => std::io::copy(&mut limited, &mut std::io::sink()).map_err(Error::io(path))?,
        };
        if limited.limit() > 0 {
            return Err(wrong(&format!("it is cut off within {name}")));
        }
        let fill = (BLOCK as u64 - header.size % BLOCK as u64) % BLOCK as u64;
        let mut rest = (&mut reader).take(fill);
        std::io::copy(&mut rest, &mut std::io::sink()).map_err(Error::io(path))?;
        match header.kind {
            b'L' => {
                let text = String::from_utf8_lossy(&contents);
                long_name = Some(text.trim_end_matches('\0').to_string());
            }
            _ if keep => each(&name, contents)?,
            _ => {}
        }
    }
}

struct Header {
    name: String,
    size: u64,
    kind: u8,
}

impl Header {
    fn parse(bytes: &[u8; BLOCK]) -> Result<Header, &'static str> {
        // The checksum is the sum of all bytes, with spaces in place of the checksum itself.
        let sum: u64 = bytes.iter().map(|byte| u64::from(*byte)).sum();
        let own: u64 = bytes[148..156].iter().map(|byte| u64::from(*byte)).sum();
        if octal(&bytes[148..156]) != Some(sum - own + 8 * u64::from(b' ')) {
            return Err("a header has a wrong checksum");
        }
        let size = octal(&bytes[124..136]).ok_or("the size of a file is no octal number")?;
        let mut name = text(&bytes[..100]);
        if &bytes[257..262] == b"ustar" && bytes[345] != 0 && bytes[263..265] == *b"00" {
            name = format!("{}/{name}", text(&bytes[345..500]));
        }
        Ok(Header { name, size, kind: bytes[156] })
    }
}

/// Text up to the first zero byte.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn octal(bytes: &[u8]) -> Option<u64> {
    let text = text(bytes);
    u64::from_str_radix(text.trim(), 8).ok()
}

#[cfg(test)]
mod tests {
    use super::super::scratch::with_file;
    use super::*;

    fn entry(name: &str, kind: u8, contents: &[u8]) -> Vec<u8> {
        let mut header = [0; BLOCK];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..135].copy_from_slice(format!("{:011o}", contents.len()).as_bytes());
        header[148..156].fill(b' ');
        header[156] = kind;
        let sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
        header[148..154].copy_from_slice(format!("{sum:06o}").as_bytes());
        let mut all = [&header[..], contents].concat();
        all.resize(all.len().next_multiple_of(BLOCK), 0);
        all
    }

    fn all(bytes: &[u8]) -> Result<Vec<(String, usize)>, String> {
        let mut found = vec![];
        let keep = |name: &str, bytes: Vec<u8>| {
            found.push((name.to_string(), bytes.len()));
            Ok(())
        };
        with_file("archive.tar", bytes, |path| read(path, |name| !name.contains("not"), keep))
            .map_err(|e| e.to_string())?;
        Ok(found)
    }

    #[test]
    fn files_by_name() {
        let long = "x".repeat(120);
        let archive = [
            entry("pax_global_header", b'g', b"comment"),
            entry("a/", b'5', b""),
            entry("a/one", b'0', &[7; 513]),
            entry("a/not", b'0', b"left out"),
            entry("././@LongLink", b'L', format!("{long}\0").as_bytes()),
            entry("xxx", 0, b""),
            vec![0; 2 * BLOCK],
        ];
        let whole = archive.concat();
        assert_eq!(all(&whole).unwrap(), [("a/one".to_string(), 513), (long, 0)]);
    }

    #[test]
    fn what_is_no_archive_is_told() {
        let good = entry("a", b'0', b"text");
        let mut other = good.clone();
        other[0] = b'b';
        let mut huge = entry("a", b'0', b"");
        huge[124..135].copy_from_slice(b"77777777777");
        huge[148..156].fill(b' ');
        let sum: u64 = huge[..BLOCK].iter().map(|byte| u64::from(*byte)).sum();
        huge[148..154].copy_from_slice(format!("{sum:06o}").as_bytes());
        let rows = [
            (good.clone(), "cut off before its end"),
            (good[..BLOCK + 2].to_vec(), "cut off within a"),
            (other, "a wrong checksum"),
            (huge, "need at most"),
            (b"text".to_vec(), "cut off"),
            (vec![b'x'; 2000], "a wrong checksum"),
        ];
        for (bytes, says) in rows {
            let error = all(&bytes).unwrap_err();
            assert!(error.contains(says) && error.contains("archive.tar"), "{error}");
        }
    }
}
