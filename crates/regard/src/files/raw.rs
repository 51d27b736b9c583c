//! Arrays as bytes with a type and a shape, and their conversion to float32 or integers.

use anyhow::{Result, anyhow, bail};
use half::{bf16, f16};
use std::io::Read;

/// Element type of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DType {
    /// Float with this number of bits.
    Float(u32),
    /// bfloat16, the upper half of a float32.
    Bfloat16,
    /// Signed integer with this number of bits.
    Int(u32),
    /// Unsigned integer with this number of bits.
    Uint(u32),
    /// Boolean in one byte.
    Bool,
    /// Unsupported type, by its name in the file.
    Other(String),
}

impl DType {
    /// Name as in numpy.
    pub fn name(&self) -> String {
        match self {
            DType::Float(bits) => format!("float{bits}"),
            DType::Bfloat16 => "bfloat16".into(),
            DType::Int(bits) => format!("int{bits}"),
            DType::Uint(bits) => format!("uint{bits}"),
            DType::Bool => "bool".into(),
            DType::Other(name) => name.clone(),
        }
    }

    /// Bytes per element; 0 if the type is unsupported.
    pub fn bytes(&self) -> usize {
        match self {
            DType::Float(bits) | DType::Int(bits) | DType::Uint(bits) => *bits as usize / 8,
            DType::Bfloat16 => 2,
            DType::Bool => 1,
            DType::Other(_) => 0,
        }
    }
}

/// Shape and type of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Element type.
    pub kind: DType,
    /// Whether values are big-endian.
    pub big_endian: bool,
    /// Whether the array is in column-major (Fortran) order.
    pub fortran: bool,
    /// Sizes of the axes.
    pub shape: Vec<usize>,
}

/// Bytes read at a time; a multiple of every element size.
const PART: usize = 1 << 16;

impl Header {
    /// Number of elements; None if their size in bytes overflows.
    pub fn count(&self) -> Option<usize> {
        let bytes = self.shape.iter().try_fold(8usize, |n, axis| n.checked_mul((*axis).max(1)))?;
        (bytes <= isize::MAX as usize).then(|| self.shape.iter().product())
    }

    /// Checks that the type is a float, as [`Header::floats`] needs it.
    pub fn check_floats(&self) -> Result<()> {
        match self.kind {
            DType::Float(_) | DType::Bfloat16 => Ok(()),
            _ => bail!("got {}, need float32: x.astype(numpy.float32)", self.kind.name()),
        }
    }

    /// Reads the values as float32: other floats are converted, other types refused.
    pub fn floats(&self, from: RawData) -> Result<Vec<f32>> {
        self.check_floats()?;
        let read: fn([u8; 8]) -> f32 = match self.kind {
            DType::Float(16) => |b| f16::from_le_bytes([b[0], b[1]]).to_f32(),
            DType::Float(32) => |b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]),
            DType::Bfloat16 => |b| bf16::from_le_bytes([b[0], b[1]]).to_f32(),
            _ => |b| f64::from_le_bytes(b) as f32,
        };
        self.numbers(from, read)
    }

    /// Reads the values as integers: floats are refused.
    pub fn integers(&self, from: RawData) -> Result<Vec<i64>> {
        let read: fn([u8; 8]) -> i64 = match self.kind {
            DType::Int(8) => |b| i64::from(b[0] as i8),
            DType::Int(16) => |b| i64::from(i16::from_le_bytes([b[0], b[1]])),
            DType::Int(32) => |b| i64::from(i32::from_le_bytes([b[0], b[1], b[2], b[3]])),
            DType::Int(64) => i64::from_le_bytes,
            // Saturates at the largest i64, which is refused as an index.
            DType::Uint(_) => |b| u64::from_le_bytes(b).min(i64::MAX as u64) as i64,
            DType::Bool => |b| i64::from(b[0] != 0),
            _ => bail!("got {}, need integers or booleans", self.kind.name()),
        };
        self.numbers(from, read)
    }

    /// Converts every value with `read`, which gets its bytes in little-endian order, padded with
    /// zeros. Bytes are read in small parts: only the values are held in memory.
    fn numbers<T: Copy + Default>(
        &self,
        RawData { bytes, from }: RawData,
        read: fn([u8; 8]) -> T,
    ) -> Result<Vec<T>> {
        let each = self.kind.bytes();
        let (count, kind) = (self.count(), self.kind.name());
        let need = count.and_then(|n| n.checked_mul(each)).map(|need| need as u64);
        let wrong = |got: u64| {
            let shape = &self.shape;
            anyhow!("got {got} bytes of data, which is not {shape:?} of {kind}; truncated?")
        };
        let (Some(count), true) = (count, need == Some(bytes)) else {
            return Err(wrong(bytes));
        };
        let mut numbers = vec![];
        if numbers.try_reserve_exact(count).is_err() {
            bail!("{count} values do not fit into memory");
        }
        let mut places = self.fortran.then(|| FortranIndices::new(&self.shape));
        if places.is_some() {
            numbers.resize(count, T::default());
        }
        let (mut part, mut left) = (vec![0; PART.min(count * each)], count * each);
        while left > 0 {
            let part = &mut part[..PART.min(left)];
            from.read_exact(part)?;
            left -= part.len();
            let decoded = part.chunks_exact(each).map(|stored| {
                let mut bytes = [0; 8];
                bytes[..each].copy_from_slice(stored);
                if self.big_endian {
                    bytes[..each].reverse();
                }
                read(bytes)
            });
            match &mut places {
                None => numbers.extend(decoded),
                Some(places) => decoded.zip(places).for_each(|(x, place)| numbers[place] = x),
            }
        }
        Ok(numbers)
    }
}

/// Stored data of an array.
pub struct RawData<'a> {
    /// Number of bytes.
    pub bytes: u64,
    /// Reader, at the first byte of the data.
    pub from: &'a mut dyn Read,
}

/// Iterator over row-major indices of values stored in column-major order.
struct FortranIndices<'a> {
    shape: &'a [usize],
    /// Row-major stride of each axis.
    strides: Vec<usize>,
    index: Vec<usize>,
}

impl FortranIndices<'_> {
    fn new(shape: &[usize]) -> FortranIndices<'_> {
        let mut strides = vec![1; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis];
        }
        FortranIndices { shape, strides, index: vec![0; shape.len()] }
    }
}

impl Iterator for FortranIndices<'_> {
    type Item = usize;

    /// Never ends: the caller stops after the last value.
    fn next(&mut self) -> Option<usize> {
        let place = self.index.iter().zip(&self.strides).map(|(i, stride)| i * stride).sum();
        for (index, size) in self.index.iter_mut().zip(self.shape) {
            *index += 1;
            if *index < *size {
                break;
            }
            *index = 0;
        }
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(kind: DType, shape: &[usize]) -> Header {
        Header { kind, big_endian: false, fortran: false, shape: shape.to_vec() }
    }

    fn floats(header: &Header, mut bytes: &[u8]) -> Result<Vec<f32>> {
        header.floats(RawData { bytes: bytes.len() as u64, from: &mut bytes })
    }

    fn integers(header: &Header, mut bytes: &[u8]) -> Result<Vec<i64>> {
        header.integers(RawData { bytes: bytes.len() as u64, from: &mut bytes })
    }

    #[test]
    fn floats_are_converted_and_others_refused() {
        let one = [
            (DType::Float(16), vec![0x00, 0x3c]),
            (DType::Bfloat16, vec![0x80, 0x3f]),
            (DType::Float(32), 1f32.to_le_bytes().to_vec()),
            (DType::Float(64), 1f64.to_le_bytes().to_vec()),
        ];
        for (kind, bytes) in one {
            assert_eq!(floats(&header(kind, &[1]), &bytes).unwrap(), [1.0]);
        }
        let mut big = header(DType::Float(32), &[1]);
        big.big_endian = true;
        assert_eq!(floats(&big, &1f32.to_be_bytes()).unwrap(), [1.0]);
        let error = floats(&header(DType::Int(32), &[1]), &[0; 4]).unwrap_err().to_string();
        assert!(error.contains("int32") && error.contains("float32"), "{error}");
        assert_eq!(integers(&header(DType::Int(16), &[1]), &[0xff, 0xff]).unwrap(), [-1]);
        assert!(floats(&header(DType::Float(32), &[3]), &[0; 8]).is_err());
        assert!(floats(&header(DType::Float(32), &[usize::MAX, 2]), &[0; 8]).is_err());
        assert!(integers(&header(DType::Other("U3".into()), &[1]), &[]).is_err());
    }

    #[test]
    fn arrays_of_more_than_one_part_are_whole() {
        let bytes: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
        let numbers = integers(&header(DType::Uint(32), &[1000, 100]), &bytes).unwrap();
        assert!(numbers.iter().copied().eq(0..100_000), "{:?}", &numbers[..5]);
    }

    #[test]
    fn columns_become_rows() {
        let mut turned = header(DType::Int(8), &[2, 3]);
        turned.fortran = true;
        assert_eq!(integers(&turned, &[0, 3, 1, 4, 2, 5]).unwrap(), [0, 1, 2, 3, 4, 5]);
    }
}
