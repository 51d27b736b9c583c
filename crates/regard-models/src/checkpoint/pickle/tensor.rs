//! Reads a tensor from a storage by its offset, shape and strides.

use super::torch::{Pickled, Storage};
use super::tree::{Value, ValueIndex};
use super::{Storages, shown};
use crate::checkpoint::{Array, Dtype};
use regard_attention::storage::Bytes;

/// Most axes of a tensor; PyTorch's own limit.
const MOST_AXES: usize = 64;

/// Element type of a storage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ElementType {
    /// `f32`
    Float,
    /// `f64`
    Double,
    /// `f16`
    Half,
    /// `bf16`, the upper half of an `f32`.
    BFloat16,
    /// `i64`
    Long,
    /// `i32`
    Int,
    /// `i16`
    Short,
    /// `i8`
    Char,
    /// `u8`
    Byte,
    /// `bool`, one byte.
    Bool,
}

impl ElementType {
    /// Finds a type by the name of the storage's class without the suffix `Storage`.
    pub fn named(name: &str) -> Option<ElementType> {
        Some(match name {
            "Float" => ElementType::Float,
            "Double" => ElementType::Double,
            "Half" => ElementType::Half,
            "BFloat16" => ElementType::BFloat16,
            "Long" => ElementType::Long,
            "Int" => ElementType::Int,
            "Short" => ElementType::Short,
            "Char" => ElementType::Char,
            // PyTorch reads a storage without a type as bytes.
            "Byte" | "Untyped" => ElementType::Byte,
            "Bool" => ElementType::Bool,
            _ => return None,
        })
    }

    /// The same type in an array.
    fn dtype(self) -> Dtype {
        match self {
            ElementType::Float => Dtype::F32,
            ElementType::Double => Dtype::F64,
            ElementType::Half => Dtype::F16,
            ElementType::BFloat16 => Dtype::BF16,
            ElementType::Long => Dtype::I64,
            ElementType::Int => Dtype::I32,
            ElementType::Short => Dtype::I16,
            ElementType::Char => Dtype::I8,
            ElementType::Byte => Dtype::U8,
            ElementType::Bool => Dtype::BOOL,
        }
    }

    /// Bytes of an element.
    pub fn size(self) -> usize {
        match self {
            ElementType::Double | ElementType::Long => 8,
            ElementType::Float | ElementType::Int => 4,
            ElementType::Half | ElementType::BFloat16 | ElementType::Short => 2,
            ElementType::Char | ElementType::Byte | ElementType::Bool => 1,
        }
    }
}

/// Memory that the tensors of a file may take, so that a small file cannot exhaust it: a tensor
/// can repeat its elements by a stride of 0, and many names can share one storage.
///
/// A file of bytes grows to four times its size, and a model in half precision whose embeddings
/// have four names to eight times. The constant term is for very small files.
pub struct Budget(usize);

impl Budget {
    const GROWTH: usize = 16;
    const LEAST: usize = 1 << 18;

    /// Returns the budget of a file.
    pub fn of(file: &[u8]) -> Budget {
        Budget(file.len().saturating_mul(Self::GROWTH).saturating_add(Self::LEAST))
    }

    /// Takes `bytes` from the budget.
    pub fn spend(&mut self, bytes: usize) -> Result<(), String> {
        self.0 = self.0.checked_sub(bytes).ok_or(
            "is too large: the tensors of this file would take far more memory than the file. \
             It repeats its values, or is damaged",
        )?;
        Ok(())
    }
}

/// A strided view of a storage: offset, and size and stride of each axis, in elements.
struct StridedView {
    start: usize,
    axes: Vec<(usize, usize)>,
}

/// Reads the tensor that the arguments of `_rebuild_tensor_v2` describe.
pub fn read<'a>(
    pickled: &Pickled,
    arguments: ValueIndex,
    file: &Bytes,
    budget: &mut Budget,
    storages: &impl Storages<'a>,
) -> Result<Array, String> {
    let arguments = pickled.tree.items(arguments).ok_or("has no arguments")?;
    // The others are `requires_grad`, the backward hooks, and sometimes metadata.
    let [storage, start, sizes, strides, ..] = arguments[..] else {
        return Err("has too few arguments".to_string());
    };
    meant_as_they_are(pickled, arguments.get(6))?;
    let storage = pickled.storage(storage).ok_or("has no storage")?;
    let walk = StridedView::new(
        whole(pickled, start)?,
        wholes(pickled, sizes)?,
        wholes(pickled, strides)?,
    )?;
    let count = walk.count()?;
    let size = storage.kind.size();
    // Narrower elements may be converted to f32 later, so at least four bytes are counted.
    budget.spend(count.saturating_mul(size.max(size_of::<f32>())))?;
    budget.spend(size_of_val(&walk.axes[..]))?;
    let shape: Vec<usize> = walk.axes.iter().map(|(size, _)| *size).collect();
    let bytes = match count {
        0 => Vec::<u8>::new().into(),
        _ => {
            let bytes = numbers(&storage, storages)?;
            walk.check(storage.kind, bytes)?;
            let part = || file.find(&bytes[walk.start * size..(walk.start + count) * size]);
            let in_place = walk.is_in_rows().then(part).flatten();
            in_place.unwrap_or_else(|| walk.copy(size, bytes, count).into())
        }
    };
    Array::in_file(shape, storage.kind.dtype(), bytes)
        .ok_or_else(|| "its bytes do not match its shape".to_string())
}

/// Refuses metadata such as the negative bit: the values would have another sign.
fn meant_as_they_are(pickled: &Pickled, metadata: Option<&ValueIndex>) -> Result<(), String> {
    let Some(&place) = metadata else { return Ok(()) };
    let none = matches!(pickled.tree.at(place), Value::Nothing);
    if none || pickled.pairs(place).is_some_and(|mut pairs| pairs.next().is_none()) {
        return Ok(());
    }
    Err("is a conjugated or negated view, which is not supported; clone() it first".to_string())
}

fn whole(pickled: &Pickled, place: ValueIndex) -> Result<usize, String> {
    let Value::Whole(number) = pickled.tree.at(place) else {
        return Err("has a size that is not an integer".to_string());
    };
    usize::try_from(*number).map_err(|_| format!("has a size, stride or offset of {number}"))
}

fn wholes(pickled: &Pickled, place: ValueIndex) -> Result<Vec<usize>, String> {
    let places = pickled.sizes(place).ok_or("has no shape or no strides")?;
    if places.len() > MOST_AXES {
        return Err(format!("has {} axes; {MOST_AXES} is the most", places.len()));
    }
    places.iter().map(|place| whole(pickled, *place)).collect()
}

/// Returns the bytes of a storage, as many as its element count needs.
fn numbers<'a>(storage: &Storage, storages: &impl Storages<'a>) -> Result<&'a [u8], String> {
    let key = shown(storage.key);
    let bytes = storages(storage.key)?.ok_or_else(|| format!("its storage {key} is missing"))?;
    let wanted = storage.count.checked_mul(storage.kind.size() as u64);
    let wanted = wanted.and_then(|wanted| usize::try_from(wanted).ok());
    wanted.and_then(|wanted| bytes.get(..wanted)).ok_or_else(|| {
        let (got, count, kind) = (bytes.len(), storage.count, storage.kind);
        format!("its storage {key} has {got} bytes, not {count} elements of the type {kind:?}")
    })
}

impl StridedView {
    fn new(start: usize, sizes: Vec<usize>, strides: Vec<usize>) -> Result<StridedView, String> {
        if sizes.len() != strides.len() {
            return Err(format!("has the shape {sizes:?} but the strides {strides:?}"));
        }
        Ok(StridedView { start, axes: sizes.into_iter().zip(strides).collect() })
    }

    /// Number of elements. A shape whose product overflows even without its zeros is an error, so
    /// that callers can multiply sizes unchecked.
    fn count(&self) -> Result<usize, String> {
        let sizes = || self.axes.iter().map(|(size, _)| *size);
        let all = sizes().try_fold(1usize, |all, size| all.checked_mul(size.max(1)));
        match all.filter(|all| *all <= isize::MAX as usize) {
            Some(_) if sizes().any(|size| size == 0) => Ok(0),
            Some(all) => Ok(all),
            None => {
                let shape: Vec<usize> = sizes().collect();
                Err(format!("has the shape {shape:?}, which overflows"))
            }
        }
    }

    /// Index of the last element in the storage; `None` if it overflows.
    fn farthest(&self) -> Option<usize> {
        self.axes.iter().try_fold(self.start, |place, (size, stride)| {
            place.checked_add(size.saturating_sub(1).checked_mul(*stride)?)
        })
    }

    /// Refuses a view that reaches beyond the storage.
    fn check(&self, kind: ElementType, bytes: &[u8]) -> Result<(), String> {
        let held = bytes.len() / kind.size();
        match self.farthest() {
            Some(place) if place < held => Ok(()),
            _ => Err(format!("reaches beyond the {held} elements of its storage")),
        }
    }

    /// Whether the view is contiguous, row-major.
    fn is_in_rows(&self) -> bool {
        let mut next = 1;
        self.axes.iter().rev().all(|(size, stride)| {
            let fits = *size == 1 || *stride == next;
            next *= size;
            fits
        })
    }

    /// The bytes of the tensor, row by row. Call [`StridedView::check`] first.
    fn copy(&self, size: usize, bytes: &[u8], count: usize) -> Vec<u8> {
        let mut data = Vec::with_capacity(count * size);
        visit(&bytes[self.start * size..], &self.axes, size, &mut data);
        data
    }
}

/// Appends the elements of the remaining axes to `data`. It calls itself once for each axis, of
/// which there are at most [`MOST_AXES`].
fn visit(storage: &[u8], axes: &[(usize, usize)], size: usize, data: &mut Vec<u8>) {
    match axes {
        [] => data.extend_from_slice(&storage[..size]),
        [(count, 1)] => data.extend_from_slice(&storage[..count * size]),
        [(count, stride), rest @ ..] => {
            (0..*count).for_each(|step| visit(&storage[step * stride * size..], rest, size, data))
        }
    }
}
