//! From a storage and a way to walk through it to numbers in rows.

use super::torch::{Pickled, Storage};
use super::tree::{Place, Value};
use super::{Storages, shown};
use crate::checkpoint::{Array, Dtype};
use half::{bf16, f16};
use regard_attention::storage::Bytes;

/// PyTorch has no tensors of more axes.
const MOST_AXES: usize = 64;

/// What a storage holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Single precision.
    Float,
    /// Double precision.
    Double,
    /// Half precision.
    Half,
    /// The upper half of single precision.
    BFloat16,
    /// Integers of eight bytes.
    Long,
    /// Integers of four bytes.
    Int,
    /// Integers of two bytes.
    Short,
    /// Integers of one byte.
    Char,
    /// Integers of one byte without a sign.
    Byte,
    /// True or false.
    Bool,
}

impl Kind {
    /// By the name of the storage's class, without `Storage` at its end.
    pub fn named(name: &str) -> Option<Kind> {
        Some(match name {
            "Float" => Kind::Float,
            "Double" => Kind::Double,
            "Half" => Kind::Half,
            "BFloat16" => Kind::BFloat16,
            "Long" => Kind::Long,
            "Int" => Kind::Int,
            "Short" => Kind::Short,
            "Char" => Kind::Char,
            // PyTorch reads a storage without a type as bytes.
            "Byte" | "Untyped" => Kind::Byte,
            "Bool" => Kind::Bool,
            _ => return None,
        })
    }

    /// The type of arrays that keep such numbers as they are.
    fn dtype(self) -> Option<Dtype> {
        match self {
            Kind::Float => Some(Dtype::F32),
            Kind::Half => Some(Dtype::F16),
            Kind::BFloat16 => Some(Dtype::BF16),
            _ => None,
        }
    }

    /// How many bytes a number takes.
    pub fn size(self) -> usize {
        match self {
            Kind::Double | Kind::Long => 8,
            Kind::Float | Kind::Int => 4,
            Kind::Half | Kind::BFloat16 | Kind::Short => 2,
            Kind::Char | Kind::Byte | Kind::Bool => 1,
        }
    }
}

/// How much may become of a file, so that a small one cannot fill the memory: a tensor can repeat
/// its numbers, and many names can share one storage.
///
/// A file of bytes grows to four times its size, and a model in half precision whose embeddings
/// have four names to eight times. The rest is for files of a few numbers.
pub struct Budget(usize);

impl Budget {
    const GROWTH: usize = 16;
    const LEAST: usize = 1 << 18;

    /// What may become of these bytes.
    pub fn of(file: &[u8]) -> Budget {
        Budget(file.len().saturating_mul(Self::GROWTH).saturating_add(Self::LEAST))
    }

    /// Takes so many bytes, if they are left.
    pub fn spend(&mut self, bytes: usize) -> Result<(), String> {
        self.0 = self.0.checked_sub(bytes).ok_or(
            "is too large: the tensors of this file would take far more memory than the file. \
             It repeats its numbers, or is damaged",
        )?;
        Ok(())
    }
}

/// A way to walk through a storage: where it starts, and for each axis how many steps it takes and
/// how long they are.
struct Walk {
    start: usize,
    axes: Vec<(usize, usize)>,
}

/// The tensor that arguments of `_rebuild_tensor_v2` describe.
pub fn read<'a>(
    pickled: &Pickled,
    arguments: Place,
    (file, budget): (&Bytes, &mut Budget),
    storages: &impl Storages<'a>,
) -> Result<Array, String> {
    let arguments = pickled.tree.items(arguments).ok_or("has no arguments")?;
    // Then come whether it is trained, its hooks, and sometimes how its numbers are meant.
    let [storage, start, sizes, strides, ..] = arguments[..] else {
        return Err("has too few arguments".to_string());
    };
    meant_as_they_are(pickled, arguments.get(6))?;
    let storage = pickled.storage(storage).ok_or("has no storage")?;
    let walk =
        Walk::new(whole(pickled, start)?, wholes(pickled, sizes)?, wholes(pickled, strides)?)?;
    let count = walk.count()?;
    budget.spend(count.saturating_mul(size_of::<f32>()))?;
    budget.spend(size_of_val(&walk.axes[..]))?;
    let shape: Vec<usize> = walk.axes.iter().map(|(size, _)| *size).collect();
    if count == 0 {
        return Ok(Array::new(shape, vec![]));
    }
    let bytes = numbers(&storage, storages)?;
    walk.check(storage.kind, bytes)?;
    let in_place = |dtype: Dtype| {
        let size = storage.kind.size();
        let part = &bytes[walk.start * size..(walk.start + count) * size];
        Array::in_file(shape.clone(), dtype, file.find(part)?)
    };
    let stored = storage.kind.dtype().filter(|_| walk.is_in_rows());
    match stored.and_then(in_place) {
        Some(array) => Ok(array),
        None => Ok(Array::new(shape, walk.read(storage.kind, bytes, count))),
    }
}

/// A tensor may say that its numbers are meant with the other sign. Models are not saved so.
fn meant_as_they_are(pickled: &Pickled, metadata: Option<&Place>) -> Result<(), String> {
    let Some(&place) = metadata else { return Ok(()) };
    let none = matches!(pickled.tree.at(place), Value::Nothing);
    if none || pickled.pairs(place).is_some_and(|mut pairs| pairs.next().is_none()) {
        return Ok(());
    }
    Err("is a conjugated or negated view, which is not read; clone() it first".to_string())
}

fn whole(pickled: &Pickled, place: Place) -> Result<usize, String> {
    let Value::Whole(number) = pickled.tree.at(place) else {
        return Err("has a size that is no integer".to_string());
    };
    usize::try_from(*number).map_err(|_| format!("has a size, stride or offset of {number}"))
}

fn wholes(pickled: &Pickled, place: Place) -> Result<Vec<usize>, String> {
    let places = pickled.sizes(place).ok_or("has no shape or no strides")?;
    if places.len() > MOST_AXES {
        return Err(format!("has {} axes; {MOST_AXES} is the most", places.len()));
    }
    places.iter().map(|place| whole(pickled, *place)).collect()
}

/// The bytes of the numbers of a storage, as many as it says.
fn numbers<'a>(storage: &Storage, storages: &impl Storages<'a>) -> Result<&'a [u8], String> {
    let key = shown(storage.key);
    let bytes = storages(storage.key)?.ok_or_else(|| format!("its storage {key} is missing"))?;
    let wanted = storage.count.checked_mul(storage.kind.size() as u64);
    let wanted = wanted.and_then(|wanted| usize::try_from(wanted).ok());
    wanted.and_then(|wanted| bytes.get(..wanted)).ok_or_else(|| {
        let (got, count, kind) = (bytes.len(), storage.count, storage.kind);
        format!("its storage {key} has {got} bytes, not {count} numbers of the type {kind:?}")
    })
}

impl Walk {
    fn new(start: usize, sizes: Vec<usize>, strides: Vec<usize>) -> Result<Walk, String> {
        if sizes.len() != strides.len() {
            return Err(format!("has the shape {sizes:?} but the strides {strides:?}"));
        }
        Ok(Walk { start, axes: sizes.into_iter().zip(strides).collect() })
    }

    /// How many numbers there are. What does not fit even if axes without any steps are passed
    /// over is an error, so that nobody who multiplies a shape has to be careful.
    fn count(&self) -> Result<usize, String> {
        let sizes = || self.axes.iter().map(|(size, _)| *size);
        let all = sizes().try_fold(1usize, |all, size| all.checked_mul(size.max(1)));
        match all.filter(|all| *all <= isize::MAX as usize) {
            Some(_) if sizes().any(|size| size == 0) => Ok(0),
            Some(all) => Ok(all),
            None => {
                let shape: Vec<usize> = sizes().collect();
                Err(format!("has the shape {shape:?}, which is beyond all size"))
            }
        }
    }

    /// The place of the farthest number, if it has one that can be said.
    fn farthest(&self) -> Option<usize> {
        self.axes.iter().try_fold(self.start, |place, (size, stride)| {
            place.checked_add(size.saturating_sub(1).checked_mul(*stride)?)
        })
    }

    /// Refuses to go beyond the storage.
    fn check(&self, kind: Kind, bytes: &[u8]) -> Result<(), String> {
        let held = bytes.len() / kind.size();
        match self.farthest() {
            Some(place) if place < held => Ok(()),
            _ => Err(format!("reaches beyond the {held} numbers of its storage")),
        }
    }

    /// Whether numbers follow each other in memory, row after row.
    fn is_in_rows(&self) -> bool {
        let mut next = 1;
        self.axes.iter().rev().all(|(size, stride)| {
            let fits = *size == 1 || *stride == next;
            next *= size;
            fits
        })
    }

    /// After [`Walk::check`].
    fn read(&self, kind: Kind, bytes: &[u8], count: usize) -> Vec<f32> {
        match kind {
            Kind::Float => self.gather(count, bytes, f32::from_le_bytes),
            Kind::Double => self.gather(count, bytes, |b| f64::from_le_bytes(b) as f32),
            Kind::Half => self.gather(count, bytes, |b| f16::from_le_bytes(b).to_f32()),
            Kind::BFloat16 => self.gather(count, bytes, |b| bf16::from_le_bytes(b).to_f32()),
            Kind::Long => self.gather(count, bytes, |b| i64::from_le_bytes(b) as f32),
            Kind::Int => self.gather(count, bytes, |b| i32::from_le_bytes(b) as f32),
            Kind::Short => self.gather(count, bytes, |b| f32::from(i16::from_le_bytes(b))),
            Kind::Char => self.gather(count, bytes, |b| f32::from(i8::from_le_bytes(b))),
            Kind::Byte => self.gather(count, bytes, |[b]: [u8; 1]| f32::from(b)),
            Kind::Bool => self.gather(count, bytes, |[b]: [u8; 1]| f32::from(b != 0)),
        }
    }

    fn gather<const SIZE: usize>(
        &self,
        count: usize,
        bytes: &[u8],
        number: impl Fn([u8; SIZE]) -> f32,
    ) -> Vec<f32> {
        let mut data = Vec::with_capacity(count);
        visit(&bytes.as_chunks().0[self.start..], &self.axes, &number, &mut data);
        data
    }
}

/// Puts the numbers of the axes that are left at the end of `data`. It calls itself once for each
/// axis, of which there are at most [`MOST_AXES`].
fn visit<const SIZE: usize>(
    storage: &[[u8; SIZE]],
    axes: &[(usize, usize)],
    number: &impl Fn([u8; SIZE]) -> f32,
    data: &mut Vec<f32>,
) {
    match axes {
        [] => data.push(number(storage[0])),
        [(size, 1)] => data.extend(storage[..*size].iter().map(|bytes| number(*bytes))),
        [(size, stride), rest @ ..] => {
            (0..*size).for_each(|step| visit(&storage[step * stride..], rest, number, data));
        }
    }
}
