//! The names of a model's tensors, said once for reading and for writing.

use super::{Array, Arrays, Problem};
use burn::module::Param;
use burn::tensor::{Device, Tensor, TensorData};
use regard_attention::layers::Weight;
use regard_attention::ops::StoredMatrix;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Goes through a model's tensors by name: puts into them what a checkpoint has, or takes out
/// what a checkpoint should have.
pub struct Binder<'a> {
    pub(super) way: Way<'a>,
    prefix: String,
    problems: Vec<Problem>,
}

/// A model of fewer bytes is converted to single precision when it is loaded: it stays in the cache
/// of the CPU, where rows of floats that lie in order are read fastest, and its memory is small.
static LEAST_STORED: AtomicUsize = AtomicUsize::new(32 << 20);

/// Sets how many bytes of weights a model has at least for its matrices to be used as its file has
/// them, which is 32 MiB unless said otherwise. Smaller models, and all that are trained, are
/// converted to single precision; results are the same to the bit.
pub fn set_least_stored(bytes: usize) {
    LEAST_STORED.store(bytes, Ordering::Relaxed);
}

pub(super) enum Way<'a> {
    Read {
        from: &'a mut Arrays,
        device: Device,
        /// Whether matrices stay as the file has them.
        stored: bool,
    },
    Compare(&'a Arrays),
    Write(&'a mut Arrays),
}

impl<'a> Binder<'a> {
    /// Takes arrays out of `from` and makes them tensors on a device. If nothing is trained there,
    /// the matrices of a large model stay as they are.
    pub fn read(from: &'a mut Arrays, device: &Device) -> Binder<'a> {
        let bytes: usize = from.values().map(|array| array.bytes().len()).sum();
        let stored = bytes >= LEAST_STORED.load(Ordering::Relaxed) && Weight::can_be_stored(device);
        let way = Way::Read { from, device: device.clone(), stored };
        Binder { way, prefix: String::new(), problems: vec![] }
    }

    /// Compares names and shapes with those of `with`, and changes nothing.
    pub fn compare(with: &'a Arrays) -> Binder<'a> {
        Binder { way: Way::Compare(with), prefix: String::new(), problems: vec![] }
    }

    /// Copies tensors into `to`.
    pub fn write(to: &'a mut Arrays) -> Binder<'a> {
        Binder { way: Way::Write(to), prefix: String::new(), problems: vec![] }
    }

    /// Everything that did not fit: missing names, other shapes.
    pub fn problems(self) -> Vec<Problem> {
        self.problems
    }

    /// Inside a part of the model.
    pub fn at(&mut self, name: &str, part: impl FnOnce(&mut Binder<'a>)) {
        let outside = self.prefix.len();
        self.prefix.push_str(name);
        self.prefix.push('.');
        part(self);
        self.prefix.truncate(outside);
    }

    /// Whether a checkpoint that is read has this name. Always true when writing.
    pub fn has(&self, name: &str) -> bool {
        match &self.way {
            Way::Read { from, .. } => from.contains_key(&format!("{}{name}", self.prefix)),
            Way::Compare(with) => with.contains_key(&format!("{}{name}", self.prefix)),
            Way::Write(_) => true,
        }
    }

    pub(super) fn take(&mut self, name: &str, shape: &[usize]) -> Option<Vec<f32>> {
        self.take_array(name, shape)?.into_floats()
    }

    /// An array of floats that are finite.
    pub(super) fn take_array(&mut self, name: &str, shape: &[usize]) -> Option<Array> {
        let name = format!("{}{name}", self.prefix);
        let (array, reads) = match &mut self.way {
            // It has a place, if perhaps another shape or type.
            Way::Read { from, .. } => (from.remove(&name), true),
            Way::Compare(with) => (with.get(&name).cloned(), false),
            Way::Write(_) => return None,
        };
        let wanted = shape.to_vec();
        let problem = match array {
            None => Problem::Missing { name, shape: wanted },
            Some(array) if array.shape != wanted => {
                Problem::Misshapen { name, got: array.shape, wanted }
            }
            Some(array) if !array.is_float() => {
                Problem::NotFloats { name, dtype: array.dtype().to_string() }
            }
            Some(_) if !reads => return None,
            Some(array) => match array.not_finite() {
                None => return Some(array),
                Some((at, number)) => Problem::NotFinite { name, at, number: number.to_string() },
            },
        };
        self.problems.push(problem);
        None
    }

    pub(super) fn put(&mut self, name: &str, shape: &[usize], data: Vec<f32>) {
        self.put_array(name, Array::new(shape.to_vec(), data));
    }

    pub(super) fn put_array(&mut self, name: &str, array: Array) {
        let name = format!("{}{name}", self.prefix);
        if let Way::Write(to) = &mut self.way {
            to.insert(name, array);
        }
    }

    pub(super) fn stores(&self) -> bool {
        matches!(self.way, Way::Read { stored: true, .. })
    }

    pub(super) fn fill<const D: usize>(&self, param: &mut Param<Tensor<D>>, data: Vec<f32>) {
        if let Way::Read { device, .. } = &self.way {
            let shape: [usize; D] = param.dims();
            *param = Param::from_data(TensorData::new(data, shape), device);
        }
    }

    /// A tensor that stands in the file as it stands in memory.
    pub fn tensor<const D: usize>(&mut self, name: &str, param: &mut Param<Tensor<D>>) {
        let shape = param.dims();
        match &self.way {
            Way::Write(_) => self.put(name, &shape, numbers(param.val())),
            Way::Read { .. } | Way::Compare(_) => {
                if let Some(data) = self.take(name, &shape) {
                    self.fill(param, data);
                }
            }
        }
    }

    /// A tensor that is one axis shorter or longer in the file, or otherwise shaped.
    pub fn shaped<const D: usize>(
        &mut self,
        name: &str,
        shape: &[usize],
        param: &mut Param<Tensor<D>>,
    ) {
        match &self.way {
            Way::Write(_) => self.put(name, shape, numbers(param.val())),
            Way::Read { .. } | Way::Compare(_) => {
                if let Some(data) = self.take(name, shape) {
                    self.fill(param, data);
                }
            }
        }
    }

    /// A matrix that stands in the file as it stands in memory: rows of inputs, or of a table.
    pub fn weight(&mut self, name: &str, weight: &mut Weight) {
        self.shaped_weight(name, &weight.dims(), weight);
    }

    /// A matrix that has another shape in the file.
    pub fn shaped_weight(&mut self, name: &str, shape: &[usize], weight: &mut Weight) {
        let [rows, width] = weight.dims();
        if let Way::Write(_) = self.way {
            let stored = weight.as_stored().and_then(|stored| stored.rows(0..rows));
            return match stored {
                Some(stored) => self.put_array(name, Array::of_rows(shape.to_vec(), stored)),
                None => self.put(name, shape, numbers(weight.val())),
            };
        }
        let Some(array) = self.take_array(name, shape) else { return };
        if self.stores() {
            let rows = array.into_rows(rows).into_iter().collect();
            *weight = Weight::stored(fits(StoredMatrix::new(rows, width)));
        } else if let Some(floats) = array.into_floats() {
            self.fill_weight(weight, floats);
        }
    }

    pub(super) fn fill_weight(&self, weight: &mut Weight, data: Vec<f32>) {
        if let Way::Read { device, .. } = &self.way {
            let shape = weight.dims();
            *weight = Param::from_data(TensorData::new(data, shape), device).into();
        }
    }
}

/// A matrix of an array whose shape and type were compared with those of its place.
pub(super) fn fits(matrix: Result<StoredMatrix, impl std::fmt::Display>) -> StoredMatrix {
    matrix.unwrap_or_else(|e| panic!("an array that fits: {e}"))
}

pub(super) fn numbers<const D: usize>(x: Tensor<D>) -> Vec<f32> {
    x.into_data().convert::<f32>().try_into_vec().expect("they were just converted")
}
