//! Named arrays as stored in a file.

use super::quantized;
use half::f16;
use regard_attention::ops::{QuantizedWeight, StoredRows};
use regard_attention::quant::Bits;
use regard_attention::storage::{Bytes, StorageType, Stored};
use safetensors::tensor::{Dtype, SafeTensorError, SafeTensors, TensorView};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

/// One array: shape, element type and bytes. Clones share the bytes.
#[derive(Clone, Debug)]
pub struct Array {
    /// Size of each axis.
    pub shape: Vec<usize>,
    dtype: Dtype,
    /// Row-major, little-endian; the length follows from shape and type. Empty if quantised.
    bytes: Bytes,
    /// A quantised weight instead of bytes.
    quantized: Option<QuantizedWeight>,
    /// Number of bits to which it is quantised if it becomes a weight matrix for inference.
    pub(crate) storage: Option<Bits>,
}

/// Arrays by name.
pub type Arrays = BTreeMap<String, Array>;

/// Floating-point type in which weights are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// `f32`, four bytes.
    #[default]
    Single,
    /// `f16`, two bytes; used for built-in models.
    Half,
}

impl Precision {
    /// Name in `config.json`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Precision::Single => "float32",
            Precision::Half => "float16",
        }
    }

    fn dtype(self) -> Dtype {
        match self {
            Precision::Single => Dtype::F32,
            Precision::Half => Dtype::F16,
        }
    }
}

/// Equality of shape and values; floats of different types compare by value.
impl PartialEq for Array {
    fn eq(&self, other: &Array) -> bool {
        let same = || match (self.floats(), other.floats()) {
            (Some(a), Some(b)) => a == b,
            (None, None) => self.dtype == other.dtype && self.bytes[..] == other.bytes[..],
            _ => false,
        };
        self.shape == other.shape && same()
    }
}

impl Array {
    /// Returns an array of `f32` values in row-major order.
    ///
    /// # Panics
    /// If their number does not match the shape.
    pub fn new(shape: Vec<usize>, floats: Vec<f32>) -> Array {
        let count = shape.iter().try_fold(1usize, |count, side| count.checked_mul(*side));
        assert_eq!(count, Some(floats.len()), "an array of the shape {shape:?}");
        Array { shape, dtype: Dtype::F32, bytes: floats.into(), quantized: None, storage: None }
    }

    /// Returns an array over bytes of a file; `None` if their number does not match the shape.
    pub(crate) fn in_file(shape: Vec<usize>, dtype: Dtype, bytes: Bytes) -> Option<Array> {
        let count = shape.iter().try_fold(1usize, |count, side| count.checked_mul(*side))?;
        let fits = count.checked_mul(dtype.bitsize())? == bytes.len().checked_mul(8)?;
        fits.then_some(Array { shape, dtype, bytes, quantized: None, storage: None })
    }

    /// Returns an array over the rows of a stored matrix, in any shape with the same element count.
    pub(super) fn of_rows(shape: Vec<usize>, rows: StoredRows) -> Array {
        let dtype = match rows.kind {
            StorageType::F32 => Dtype::F32,
            StorageType::F16 => Dtype::F16,
            StorageType::Bf16 => Dtype::BF16,
        };
        Array { shape, dtype, bytes: rows.bytes, quantized: None, storage: None }
    }

    /// Returns an array of this shape over a quantised weight.
    pub(crate) fn of_quantized(shape: Vec<usize>, weight: QuantizedWeight) -> Array {
        let dtype = match weight.bits() {
            Bits::Bf16 => Dtype::BF16,
            Bits::Int8 | Bits::Int8Groups => Dtype::I8,
            Bits::Int4 => Dtype::U8,
        };
        let bytes = Vec::<u8>::new().into();
        Array { shape, dtype, bytes, quantized: Some(weight), storage: None }
    }

    /// Returns the quantised weight, if it is one.
    pub(crate) fn as_quantized(&self) -> Option<&QuantizedWeight> {
        self.quantized.as_ref()
    }

    /// Whether it is a quantised weight.
    pub fn is_quantized(&self) -> bool {
        self.quantized.is_some()
    }

    /// Returns the number of bits of a quantised weight.
    pub fn quantized_bits(&self) -> Option<Bits> {
        self.quantized.as_ref().map(QuantizedWeight::bits)
    }

    /// Returns the array in floating point, if it is a quantised weight; others as they are.
    pub fn dequantized(self) -> Array {
        match &self.quantized {
            Some(weight) => Array::new(self.shape, weight.floats()),
            None => self,
        }
    }

    /// Size of the elements in memory, in bytes.
    pub fn size(&self) -> usize {
        match &self.quantized {
            Some(weight) => weight.matrix().0.bytes(),
            None => self.bytes.len(),
        }
    }

    /// Returns the elements as a matrix of `rows` rows; `None` if they are not floats. The type is
    /// kept if weights can be stored in it, otherwise converted to `f32`.
    pub(super) fn into_rows(self, rows: usize) -> Option<StoredRows> {
        let kind = match self.dtype {
            Dtype::F32 => StorageType::F32,
            Dtype::F16 => StorageType::F16,
            Dtype::BF16 => StorageType::Bf16,
            _ => {
                let bytes = self.into_floats()?.into();
                return Some(StoredRows { kind: StorageType::F32, bytes, rows });
            }
        };
        Some(StoredRows { kind, bytes: self.bytes, rows })
    }

    /// Element type.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Bytes of the elements as in the file, row-major.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Number of elements.
    pub fn count(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether the elements can be weights: floats of 16, 32 or 64 bits, or quantised.
    pub fn is_float(&self) -> bool {
        let float = matches!(self.dtype, Dtype::F64 | Dtype::F32 | Dtype::F16 | Dtype::BF16);
        float || self.quantized.is_some()
    }

    /// Returns the elements as `f32`, row-major; `None` if they are not floats. Copies only if the
    /// type in the file differs.
    pub fn floats(&self) -> Option<Cow<'_, [f32]>> {
        if let Some(weight) = &self.quantized {
            return Some(Cow::Owned(weight.floats()));
        }
        if self.dtype == Dtype::F32
            && let Some(floats) = self.bytes.numbers::<f32>()
        {
            return Some(Cow::Borrowed(floats));
        }
        let floats = match self.dtype {
            Dtype::F64 => {
                let chunks = self.bytes.as_chunks().0.iter();
                chunks.map(|b| f64::from_le_bytes(*b) as f32).collect()
            }
            // Rows of no elements cannot be counted.
            _ if self.is_float() && self.count() == 0 => vec![],
            _ => self.with_stored(self.count(), |stored| {
                let mut floats = vec![0.0; self.count()];
                stored.to_floats(&mut floats).expect("as many as there are");
                floats
            })?,
        };
        Some(Cow::Owned(floats))
    }

    /// Like [`Array::floats`], but consumes the array: if it was made from a `Vec<f32>`, returns
    /// that without copying.
    pub fn into_floats(self) -> Option<Vec<f32>> {
        if self.dtype != Dtype::F32 {
            return self.floats().map(Cow::into_owned);
        }
        let bytes = match self.bytes.into_floats() {
            Ok(floats) => return Some(floats),
            Err(bytes) => bytes,
        };
        Array { bytes, ..self }.floats().map(Cow::into_owned)
    }

    /// Modifies the elements as `f32`, which becomes the array's type.
    ///
    /// # Panics
    /// If they are not floats.
    pub fn change(&mut self, change: impl FnOnce(&mut [f32])) {
        let mut floats = self.floats().expect("only floats can be modified").into_owned();
        change(&mut floats);
        *self = Array::new(std::mem::take(&mut self.shape), floats);
    }

    /// Index and value of the first element that is NaN or infinite in `f32`; `None` for arrays
    /// that are not floats.
    pub(crate) fn not_finite(&self) -> Option<(usize, f32)> {
        if self.quantized.is_some() {
            // Checked when it was made.
            return None;
        }
        let bytes = &self.bytes;
        // One pass without a branch per element, which the compiler vectorises. An exponent of all
        // ones means infinity or NaN.
        let halves = |exponent: u16| {
            let fine = |b: &[u8; 2]| u16::from_le_bytes(*b) & exponent != exponent;
            bytes.as_chunks().0.iter().fold(true, |all, b| all & fine(b))
        };
        let fine = match self.dtype {
            Dtype::F16 => halves(0x7c00),
            Dtype::BF16 => halves(0x7f80),
            Dtype::F32 => {
                let fine = |b: &[u8; 4]| f32::from_le_bytes(*b).is_finite();
                bytes.as_chunks().0.iter().fold(true, |all, b| all & fine(b))
            }
            _ => self.floats()?.iter().fold(true, |all, x| all & x.is_finite()),
        };
        if fine {
            return None;
        }
        let floats = self.floats()?;
        floats.iter().position(|x| !x.is_finite()).map(|at| (at, floats[at]))
    }

    /// Calls `f` with the elements as a matrix with rows of `width`, if weights can be stored in
    /// their type. Unaligned memory is copied.
    fn with_stored<T>(&self, width: usize, f: impl FnOnce(Stored) -> T) -> Option<T> {
        let kind = match self.dtype {
            Dtype::F32 => StorageType::F32,
            Dtype::F16 => StorageType::F16,
            Dtype::BF16 => StorageType::Bf16,
            _ => return None,
        };
        let shape = [self.count().checked_div(width)?, width];
        match Stored::new(kind, &self.bytes, shape) {
            Ok(stored) => Some(f(stored)),
            Err(_) => Stored::new(kind, &self.bytes.aligned(), shape).ok().map(f),
        }
    }

    /// Writes the transpose of rows of `width` elements into some columns of a matrix, in single
    /// precision. Arrays that are not floats write nothing.
    pub(super) fn transpose_into(&self, width: usize, to: &mut [f32], columns: Columns) {
        if self.with_stored(width, |rows| transpose(rows, &mut *to, columns)).is_none()
            && let Some(floats) = self.floats()
            && let Ok(rows) = Stored::rows(&floats, width)
        {
            transpose(rows, to, columns);
        }
    }

    /// Refuses finite values that half precision cannot hold.
    fn check_half(&self, name: &str) -> Result<(), String> {
        let most = f16::MAX.to_f32();
        let floats = self.floats().unwrap_or_default();
        // Values within half a step of the largest one are rounded to it.
        let lost = |x: &&f32| x.is_finite() && f16::from_f32(**x).is_infinite();
        match floats.iter().find(lost) {
            None => Ok(()),
            Some(x) => Err(format!(
                "{name} has the value {x}, half precision holds at most {most}: use single precision"
            )),
        }
    }

    /// Type and bytes, unchanged.
    fn as_it_is(&self) -> (Dtype, Cow<'_, [u8]>) {
        (self.dtype, Cow::Borrowed(&self.bytes))
    }

    /// Bytes as written to a file of this precision. Arrays that are not floats are unchanged.
    fn encoded(&self, precision: Precision) -> (Dtype, Cow<'_, [u8]>) {
        let wanted = precision.dtype();
        match self.floats().filter(|_| self.dtype != wanted) {
            None => (self.dtype, Cow::Borrowed(&self.bytes)),
            Some(floats) => {
                let bytes = match precision {
                    Precision::Single => floats.iter().flat_map(|x| x.to_le_bytes()).collect(),
                    Precision::Half => {
                        floats.iter().flat_map(|x| f16::from_f32(*x).to_le_bytes()).collect()
                    }
                };
                (wanted, Cow::Owned(bytes))
            }
        }
    }
}

/// Columns of a matrix in memory: the first one, and how many the matrix has.
#[derive(Clone, Copy)]
pub(super) struct Columns {
    pub first: usize,
    pub of: usize,
}

/// Writes the transpose of a matrix into some columns of another.
fn transpose(rows: Stored, to: &mut [f32], columns: Columns) {
    /// Rows that are converted at once: they fill a cache line of each row of the result.
    const ROWS: usize = 16;
    let [count, width] = rows.shape();
    let mut some = vec![0.0; ROWS * width];
    for from in (0..count).step_by(ROWS) {
        let here = ROWS.min(count - from);
        for (row, line) in some.chunks_exact_mut(width).take(here).zip(from..) {
            rows.line(line, row);
        }
        for i in 0..width {
            let at = i * columns.of + columns.first + from;
            for (r, x) in to[at..at + here].iter_mut().enumerate() {
                *x = some[r * width + i];
            }
        }
    }
}

/// Returns all arrays of a safetensors file; they share its memory.
pub fn from_bytes(bytes: Bytes) -> Result<Arrays, String> {
    let file = SafeTensors::deserialize(&bytes).map_err(|e| unreadable(&e))?;
    let array = |view: TensorView| {
        let bytes = bytes.find(view.data()).expect("tensors are inside of their file");
        let (shape, dtype) = (view.shape().to_vec(), view.dtype());
        Array { shape, dtype, bytes, quantized: None, storage: None }
    };
    Ok(file.tensors().into_iter().map(|(name, view)| (name, array(view))).collect())
}

/// Returns an entry of the metadata of a safetensors file; `None` if it has none of this name.
pub fn metadata(bytes: &[u8], key: &str) -> Result<Option<String>, String> {
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|e| unreadable(&e))?;
    Ok(header.metadata().as_ref().and_then(|entries| entries.get(key).cloned()))
}

fn unreadable(error: &SafeTensorError) -> String {
    format!("not a complete safetensors file ({error}); it may be truncated")
}

/// Serialises arrays as a safetensors file.
///
/// # Errors
/// If a finite value would become infinite in half precision.
pub fn to_bytes(arrays: &Arrays, precision: Precision) -> Result<Vec<u8>, String> {
    // Metadata that transformers writes, and without which it refuses to read a file.
    serialize(arrays, precision, "format", "pt")
}

/// Serialises arrays as a safetensors file with one entry of metadata: with several, their order in
/// the file would be random.
///
/// # Errors
/// If a finite value would become infinite in half precision.
pub fn serialize(
    arrays: &Arrays,
    precision: Precision,
    key: &str,
    value: &str,
) -> Result<Vec<u8>, String> {
    if precision == Precision::Half {
        arrays.iter().try_for_each(|(name, array)| array.check_half(name))?;
    }
    let quantized = arrays.iter().filter_map(|(name, array)| {
        let weight = array.as_quantized()?;
        Some(quantized::split(name, &array.shape, weight))
    });
    let quantized: Vec<(String, Array)> = quantized.flatten().collect();
    let plain = arrays.iter().filter(|(_, array)| array.as_quantized().is_none());
    let plain = plain.map(|(name, array)| (name, array, array.encoded(precision)));
    // Scales keep their precision.
    let parts = quantized.iter().map(|(name, array)| (name, array, array.as_it_is()));
    let encoded: Vec<_> = plain.chain(parts).collect();
    let views: Result<Vec<_>, _> = encoded
        .iter()
        .map(|(name, array, (dtype, bytes))| {
            TensorView::new(*dtype, array.shape.clone(), bytes).map(|view| (name.as_str(), view))
        })
        .collect();
    let metadata = HashMap::from([(key.to_string(), value.to_string())]);
    views
        .and_then(|views| safetensors::serialize(views, Some(metadata)))
        .map_err(|e| format!("cannot be written: {e}"))
}
