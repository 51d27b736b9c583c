//! The `.npy` format (numpy's NEP 1); an `.npz` file is a zip of these.
//!
//! The header is one dictionary of three known keys, so no general parser of Python literals is
//! needed, which a malicious header could overflow by nesting.

use super::raw::{DType, Header};
use anyhow::{Context, Result, bail};
use std::io::Read;

const MAGIC: &[u8] = b"\x93NUMPY";

/// Maximum length of a header in bytes, as in numpy.
const LONGEST: usize = 10_000;

/// Reads the header of a `.npy` file of `size` bytes; also returns the number of data bytes.
pub fn start(from: &mut dyn Read, size: u64) -> Result<(Header, u64)> {
    let cut_off = || format!("{size} bytes are not a complete npy file; it may be truncated");
    let mut start = [0; 10];
    from.read_exact(&mut start).with_context(cut_off)?;
    if &start[..6] != MAGIC {
        bail!("not an npy file: it does not begin with \\x93NUMPY");
    }
    let (begin, length) = match start[6] {
        1 => (10, usize::from(u16::from_le_bytes([start[8], start[9]]))),
        2 | 3 => {
            let mut more = [0; 2];
            from.read_exact(&mut more).with_context(cut_off)?;
            (12, u32::from_le_bytes([start[8], start[9], more[0], more[1]]) as usize)
        }
        version => bail!("npy format version {version}, need 1 to 3"),
    };
    if length > LONGEST {
        bail!("an npy header of {length} bytes, need at most {LONGEST}");
    }
    let mut text = vec![0; length];
    from.read_exact(&mut text).with_context(cut_off)?;
    let text = std::str::from_utf8(&text).context("the npy header is not text")?;
    let written = header(text).context("the npy header")?;
    let (big_endian, kind) = kind(&written.descr);
    let left = size.checked_sub(begin + length as u64).with_context(cut_off)?;
    let Written { fortran, shape, .. } = written;
    Ok((Header { kind, big_endian, fortran, shape }, left))
}

/// Header of a `.npy` file of float32.
pub fn header_of_f32(shape: &[usize]) -> Vec<u8> {
    header_of("<f4", shape)
}

/// A complete `.npy` file of strings: numpy's fixed-length UTF-32, padded with zeros.
pub fn words(words: &[String]) -> Vec<u8> {
    // numpy has no strings of length 0.
    let longest = words.iter().map(|word| word.chars().count()).max().unwrap_or(0).max(1);
    let mut bytes = header_of(&format!("<U{longest}"), &[words.len()]);
    for word in words {
        let letters = word.chars().map(u32::from).chain(std::iter::repeat(0));
        bytes.extend(letters.take(longest).flat_map(u32::to_le_bytes));
    }
    bytes
}

fn header_of(descr: &str, shape: &[usize]) -> Vec<u8> {
    let axes: String = shape.iter().map(|axis| format!("{axis}, ")).collect();
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({axes}), }}");
    // Data begin at a multiple of 64 bytes, for memory mapping.
    let padding = (64 - (10 + text.len() + 1) % 64) % 64;
    text += &" ".repeat(padding);
    text.push('\n');
    let length = u16::try_from(text.len()).expect("a few axes").to_le_bytes();
    [MAGIC, &[1, 0], &length, text.as_bytes()].concat()
}

/// Parses a type such as `'<f4'`: whether it is big-endian, and its kind.
fn kind(descr: &str) -> (bool, DType) {
    let big_endian = descr.starts_with('>');
    let plain = descr.trim_start_matches(['<', '>', '|', '=']);
    let kind = match plain {
        "f2" => DType::Float(16),
        "f4" => DType::Float(32),
        "f8" => DType::Float(64),
        "i1" | "i2" | "i4" | "i8" => DType::Int(bits(plain)),
        "u1" | "u2" | "u4" | "u8" => DType::Uint(bits(plain)),
        "b1" => DType::Bool,
        _ => DType::Other(format!("dtype {}", crate::show::label(descr, 40))),
    };
    (big_endian, kind)
}

fn bits(plain: &str) -> u32 {
    8 * u32::from(plain.as_bytes()[1] - b'0')
}

/// Contents of a header.
struct Written {
    descr: String,
    fortran: bool,
    shape: Vec<usize>,
}

/// Parses `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`.
fn header(text: &str) -> Result<Written> {
    let (mut descr, mut fortran, mut shape) = (None, None, None);
    let mut rest = expect(text, "{")?;
    while !rest.starts_with('}') {
        let (key, after) = quoted(rest)?;
        let value = expect(after, ":")?;
        rest = match key {
            "descr" => {
                if value.starts_with('[') {
                    bail!("got a structured type, need plain numbers");
                }
                let (name, after) = quoted(value)?;
                descr = Some(name.to_string());
                after
            }
            "fortran_order" => {
                fortran = Some(value.starts_with("True"));
                expect(value, "True").or_else(|_| expect(value, "False"))?
            }
            "shape" => {
                let (axes, after) = tuple(value)?;
                shape = Some(axes);
                after
            }
            _ => bail!("unknown key {:?}", crate::show::label(key, 40)),
        };
        rest = expect(rest, ",").unwrap_or(rest);
    }
    match (descr, fortran, shape) {
        (Some(descr), Some(fortran), Some(shape)) => Ok(Written { descr, fortran, shape }),
        _ => bail!("one of descr, fortran_order and shape is missing"),
    }
}

/// Removes `token` and the spaces around it.
fn expect<'a>(text: &'a str, token: &str) -> Result<&'a str> {
    match text.trim_start().strip_prefix(token) {
        Some(rest) => Ok(rest.trim_start()),
        None => bail!("need {token:?} before {:?}", crate::show::label(text.trim_start(), 20)),
    }
}

fn quoted(text: &str) -> Result<(&str, &str)> {
    let quote = if text.starts_with('"') { "\"" } else { "'" };
    let rest = expect(text, quote)?;
    let parts = rest.split_once(quote).map(|(name, rest)| (name, rest.trim_start()));
    parts.context("unterminated string")
}

fn tuple(text: &str) -> Result<(Vec<usize>, &str)> {
    let inside = expect(text, "(")?;
    let (inside, rest) =
        inside.split_once(')').context("a shape without its closing parenthesis")?;
    let axes = inside.split(',').map(str::trim).filter(|axis| !axis.is_empty());
    // Python 2 wrote long integers as 3L.
    let axes = axes.map(|axis| axis.trim_end_matches('L').parse().context("the shape"));
    Ok((axes.collect::<Result<_>>()?, rest.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: &[u8]) -> Result<(Header, u64)> {
        start(&mut &bytes[..], bytes.len() as u64)
    }

    #[test]
    fn headers_are_read() {
        for shape in [vec![], vec![3], vec![2, 3], vec![1, 2, 3, 4]] {
            let mut bytes = header_of_f32(&shape);
            assert_eq!(bytes.len() % 64, 0);
            bytes.extend([0; 4]);
            let (header, left) = parse(&bytes).unwrap();
            assert_eq!((header.kind, header.shape, left), (DType::Float(32), shape, 4));
        }
        let odd = header("{\"shape\":(3L,), 'fortran_order':True,'descr':'>f8'}  \n").unwrap();
        assert_eq!(
            (odd.shape, odd.fortran, kind(&odd.descr)),
            (vec![3], true, (true, DType::Float(64)))
        );
    }

    #[test]
    fn what_is_no_header_is_an_error() {
        let whole = header_of_f32(&[2, 3]);
        for length in 0..whole.len() {
            assert!(parse(&whole[..length]).is_err(), "{length}");
        }
        let rows = [
            "",
            "{",
            "{}",
            "{'descr'}",
            "{'descr': [('a', '<f4')], }",
            "{'shape': (1, -2)}",
            "{'shape': (99999999999999999999999,)}",
            "{'shape': (((((((",
            "{'shape': (1, 2}",
            "{'fortran_order': Maybe}",
            "{'descr': '<f4', 'fortran_order': False}",
            "{'x': 1}",
        ];
        for text in rows {
            assert!(header(text).is_err(), "{text}");
        }
        // A header of 4 GB in a file of 12 bytes.
        let huge = [MAGIC, &[2, 0], &u32::MAX.to_le_bytes()].concat();
        assert!(parse(&huge).err().unwrap().to_string().contains("4294967295"));
    }
}
