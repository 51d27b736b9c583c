//! An array as bytes with a type and a shape, and what the engine takes instead.

use anyhow::{Result, bail};
use half::{bf16, f16};

/// The type of a number in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A float of so many bits.
    Float(u32),
    /// The upper half of a float32.
    Bfloat16,
    /// A signed integer of so many bits.
    Int(u32),
    /// An unsigned integer of so many bits.
    Uint(u32),
    /// A truth value in a byte.
    Bool,
    /// What nothing here reads, by its name in the file.
    Other(String),
}

impl Kind {
    /// As numpy calls it.
    pub fn name(&self) -> String {
        match self {
            Kind::Float(bits) => format!("float{bits}"),
            Kind::Bfloat16 => "bfloat16".into(),
            Kind::Int(bits) => format!("int{bits}"),
            Kind::Uint(bits) => format!("uint{bits}"),
            Kind::Bool => "bool".into(),
            Kind::Other(name) => name.clone(),
        }
    }

    /// Bytes of a number; 0 if unknown.
    pub fn bytes(&self) -> usize {
        match self {
            Kind::Float(bits) | Kind::Int(bits) | Kind::Uint(bits) => *bits as usize / 8,
            Kind::Bfloat16 => 2,
            Kind::Bool => 1,
            Kind::Other(_) => 0,
        }
    }
}

/// An array as it is stored.
pub struct Raw {
    /// The numbers' type.
    pub kind: Kind,
    /// Whether the high byte comes first.
    pub big_endian: bool,
    /// Whether the first axis is the contiguous one.
    pub fortran: bool,
    /// The sizes of the axes.
    pub shape: Vec<usize>,
    /// The numbers.
    pub bytes: Vec<u8>,
}

impl Raw {
    /// How many numbers the shape asks for, if their bytes can be counted at all.
    pub fn count(shape: &[usize]) -> Option<usize> {
        let bytes = shape.iter().try_fold(8usize, |n, axis| n.checked_mul((*axis).max(1)))?;
        (bytes <= isize::MAX as usize).then(|| shape.iter().product())
    }

    /// As float32: other floats are converted, anything else is refused.
    pub fn to_f32(&self) -> Result<Vec<f32>> {
        let read: fn([u8; 8]) -> f32 = match self.kind {
            Kind::Float(16) => |b| f16::from_le_bytes([b[0], b[1]]).to_f32(),
            Kind::Float(32) => |b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]),
            Kind::Float(64) => |b| f64::from_le_bytes(b) as f32,
            Kind::Bfloat16 => |b| bf16::from_le_bytes([b[0], b[1]]).to_f32(),
            _ => bail!("got {}, need float32: x.astype(numpy.float32)", self.kind.name()),
        };
        self.numbers(read)
    }

    /// As integers: floats are refused.
    pub fn to_i64(&self) -> Result<Vec<i64>> {
        let read: fn([u8; 8]) -> i64 = match self.kind {
            Kind::Int(8) => |b| i64::from(b[0] as i8),
            Kind::Int(16) => |b| i64::from(i16::from_le_bytes([b[0], b[1]])),
            Kind::Int(32) => |b| i64::from(i32::from_le_bytes([b[0], b[1], b[2], b[3]])),
            Kind::Int(64) => i64::from_le_bytes,
            // Beyond the largest i64 an index means nothing; it is refused where it is used.
            Kind::Uint(_) => |b| u64::from_le_bytes(b).min(i64::MAX as u64) as i64,
            Kind::Bool => |b| i64::from(b[0] != 0),
            _ => bail!("got {}, need integers or truth values", self.kind.name()),
        };
        self.numbers(read)
    }

    /// Every number by `read`, which is given its bytes in little-endian order and zeros behind.
    fn numbers<T: Copy>(&self, read: fn([u8; 8]) -> T) -> Result<Vec<T>> {
        let each = self.kind.bytes();
        let need = Raw::count(&self.shape).and_then(|n| n.checked_mul(each));
        if need != Some(self.bytes.len()) {
            let (got, kind) = (self.bytes.len(), self.kind.name());
            bail!("got {got} bytes of data, which is not {:?} of {kind}: cut off?", self.shape);
        }
        let mut numbers = vec![];
        let count = self.bytes.len() / each.max(1);
        if numbers.try_reserve_exact(count).is_err() {
            bail!("{count} numbers do not fit into memory");
        }
        numbers.extend(self.bytes.chunks_exact(each).map(|stored| {
            let mut bytes = [0; 8];
            bytes[..each].copy_from_slice(stored);
            if self.big_endian {
                bytes[..each].reverse();
            }
            read(bytes)
        }));
        Ok(if self.fortran { by_rows(&numbers, &self.shape) } else { numbers })
    }
}

/// Numbers that are stored first axis first, last axis first.
fn by_rows<T: Copy>(numbers: &[T], shape: &[usize]) -> Vec<T> {
    let mut index = vec![0; shape.len()];
    let mut strides = vec![1; shape.len()];
    for axis in 1..shape.len() {
        strides[axis] = strides[axis - 1] * shape[axis - 1];
    }
    let mut rows = Vec::with_capacity(numbers.len());
    for _ in 0..numbers.len() {
        rows.push(numbers[index.iter().zip(&strides).map(|(i, stride)| i * stride).sum::<usize>()]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(kind: Kind, shape: &[usize], bytes: &[u8]) -> Raw {
        let (shape, bytes) = (shape.to_vec(), bytes.to_vec());
        Raw { kind, big_endian: false, fortran: false, shape, bytes }
    }

    #[test]
    fn floats_are_converted_and_others_refused() {
        let one = [
            (Kind::Float(16), vec![0x00, 0x3c]),
            (Kind::Bfloat16, vec![0x80, 0x3f]),
            (Kind::Float(32), 1f32.to_le_bytes().to_vec()),
            (Kind::Float(64), 1f64.to_le_bytes().to_vec()),
        ];
        for (kind, bytes) in one {
            assert_eq!(raw(kind, &[1], &bytes).to_f32().unwrap(), [1.0]);
        }
        let mut big = raw(Kind::Float(32), &[1], &1f32.to_be_bytes());
        big.big_endian = true;
        assert_eq!(big.to_f32().unwrap(), [1.0]);
        let error = raw(Kind::Int(32), &[1], &[0; 4]).to_f32().unwrap_err().to_string();
        assert!(error.contains("int32") && error.contains("float32"), "{error}");
        assert_eq!(raw(Kind::Int(16), &[1], &[0xff, 0xff]).to_i64().unwrap(), [-1]);
        assert!(raw(Kind::Float(32), &[3], &[0; 8]).to_f32().is_err());
        assert!(raw(Kind::Float(32), &[usize::MAX, 2], &[0; 8]).to_f32().is_err());
        assert!(raw(Kind::Other("U3".into()), &[1], &[]).to_i64().is_err());
    }

    #[test]
    fn columns_become_rows() {
        let mut raw = raw(Kind::Int(8), &[2, 3], &[0, 3, 1, 4, 2, 5]);
        raw.fortran = true;
        assert_eq!(raw.to_i64().unwrap(), [0, 1, 2, 3, 4, 5]);
    }
}
