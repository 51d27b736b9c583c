//! Quantisation to the blocks of GGUF, with the same bytes as llama.cpp's reference.

use super::super::kinds::Kind;
use crate::checkpoint::{Array, Dtype};
use half::f16;
use regard_attention::quant::Bits;

/// Returns the bytes of an array that is of a type already; `None` if it must be converted.
pub fn as_they_are(array: &Array, turned: bool, kind: Kind) -> Option<Vec<u8>> {
    if let Some(weight) = array.as_quantized() {
        let (matrix, by_columns) = weight.matrix();
        let bits = match kind {
            Kind::Q4_0 => Bits::Int4,
            Kind::Q8_0 => Bits::Int8Groups,
            _ => return None,
        };
        // Scales must belong to the rows that are written.
        if matrix.bits() != bits || by_columns != turned {
            return None;
        }
        let mut bytes = vec![0; matrix.shape()[0] * matrix.row_block_bytes()?];
        let size = bytes.len() / matrix.shape()[0];
        bytes.chunks_mut(size).enumerate().for_each(|(row, to)| matrix.row_blocks(row, to));
        return Some(bytes);
    }
    // Other changes than a transpose are of values, in single precision.
    let is_same = kind == Kind::F16 && array.dtype() == Dtype::F16 && !turned;
    is_same.then(|| array.bytes().to_vec())
}

/// Quantises rows of whole blocks.
///
/// # Errors
/// If a value is not finite, or beyond half precision.
pub fn quantize(floats: &[f32], kind: Kind) -> Result<Vec<u8>, String> {
    if let Some(at) = floats.iter().position(|x| !x.is_finite()) {
        return Err(format!("element {at} is {}, need finite numbers", floats[at]));
    }
    let beyond = |x: f32| {
        format!("has the value {x}, half precision holds at most {}: use gguf:F32", f16::MAX)
    };
    let mut to = vec![];
    match kind {
        Kind::F32 => floats.iter().for_each(|x| to.extend(x.to_le_bytes())),
        Kind::F16 => {
            for x in floats {
                let half = f16::from_f32(*x);
                if half.is_infinite() {
                    return Err(beyond(*x));
                }
                to.extend(half.to_le_bytes());
            }
        }
        Kind::Q8_0 => {
            for block in floats.as_chunks::<32>().0 {
                let scale = q8_0(block, &mut to);
                if scale.is_infinite() {
                    return Err(beyond(largest(block)));
                }
            }
        }
        Kind::Q4_0 => {
            for block in floats.as_chunks::<32>().0 {
                let scale = q4_0(block, &mut to);
                if scale.is_infinite() {
                    return Err(beyond(largest(block)));
                }
            }
        }
        other => return Err(format!("cannot be written in {}", other.name())),
    }
    Ok(to)
}

/// The value of the largest magnitude, the first of several.
fn largest(block: &[f32; 32]) -> f32 {
    block.iter().fold(0.0, |most: f32, x| if x.abs() > most.abs() { *x } else { most })
}

fn q8_0(block: &[f32; 32], to: &mut Vec<u8>) -> f16 {
    let scale = largest(block).abs() / 127.0;
    let inverse = if scale == 0.0 { 0.0 } else { 1.0 / scale };
    let half = f16::from_f32(scale);
    to.extend(half.to_le_bytes());
    to.extend(block.iter().map(|x| (x * inverse).round() as i8 as u8));
    half
}

fn q4_0(block: &[f32; 32], to: &mut Vec<u8>) -> f16 {
    let scale = largest(block) / -8.0;
    let inverse = if scale == 0.0 { 0.0 } else { 1.0 / scale };
    let half = f16::from_f32(scale);
    to.extend(half.to_le_bytes());
    let value = |x: f32| ((f64::from(x) * f64::from(inverse) + 8.5) as u8).min(15);
    to.extend((0..16).map(|i| value(block[i]) | value(block[i + 16]) << 4));
    half
}

#[cfg(test)]
mod tests {
    use super::super::super::Gguf;
    use super::*;
    use std::path::Path;

    /// The file has the floats, and the blocks that PyPI gguf makes of them.
    #[test]
    fn blocks_are_those_of_the_reference() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/gguf");
        let file = Gguf::open(&folder.join("kinds.gguf")).unwrap();
        let floats = file.tensor("F32.weight").unwrap().into_floats().unwrap();
        for kind in [Kind::F32, Kind::F16, Kind::Q8_0, Kind::Q4_0] {
            let place = &file.header.tensors[&format!("{}.weight", kind.name())];
            let got = quantize(&floats, kind).unwrap();
            assert!(got[..] == file.bytes[place.range.clone()], "{}", kind.name());
        }
        let zeros = quantize(&[0.0; 32], Kind::Q4_0).unwrap();
        assert_eq!(zeros, [&[0u8, 0x80][..], &[0x88; 16]].concat());
        assert!(quantize(&[1e9; 32], Kind::F16).unwrap_err().contains("use gguf:F32"));
        assert!(quantize(&[1e9; 32], Kind::Q8_0).unwrap_err().contains("half precision"));
        assert!(quantize(&[f32::NAN; 32], Kind::F32).unwrap_err().contains("element 0 is NaN"));
    }
}
