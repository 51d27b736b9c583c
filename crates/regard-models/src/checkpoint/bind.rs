//! The names of a model's tensors, defined once for reading and for writing.

use super::{Array, Arrays, TensorProblem};
use burn::module::Param;
use burn::tensor::{Device, Tensor, TensorData};
use regard_attention::layers::Weight;
use regard_attention::ops::{QuantizedWeight, StoredMatrix};
use regard_attention::quant::Bits;
use std::cell::Cell;
use std::ops::Range;

/// Visits a model's tensors by name: fills them from a checkpoint, or copies them into one.
pub struct Binder<'a> {
    pub(super) way: Way<'a>,
    prefix: String,
    problems: Vec<TensorProblem>,
}

/// Default of [`with_least_stored`]. The weights of a smaller model stay in the CPU's cache, where
/// contiguous rows of `f32` are read fastest, and take little memory.
const LEAST_STORED: usize = 32 << 20;

thread_local! {
    static LEAST: Cell<usize> = const { Cell::new(LEAST_STORED) };
}

/// Within `open`, models with at least `bytes` of weights keep the file's type and layout; 32 MiB by
/// default. Smaller models, and all that are trained, are converted to single precision. Results
/// are bitwise the same. For tests.
#[doc(hidden)]
pub fn with_least_stored<T>(bytes: usize, open: impl FnOnce() -> T) -> T {
    /// Also restores the value if `open` panics.
    struct Restore(usize);
    impl Drop for Restore {
        fn drop(&mut self) {
            LEAST.set(self.0);
        }
    }
    let _restore = Restore(LEAST.replace(bytes));
    open()
}

/// Smallest side of a matrix that is quantised.
pub(crate) const LEAST_SIDE: usize = 32;

/// A linear layer of a model: a weight, or some columns of one in which several layers are packed.
pub(crate) struct LinearPart<'w> {
    /// Name of the layer, without `.weight`.
    pub name: String,
    /// The weight `[I, O]`, with autodiff or without.
    pub weight: &'w mut Weight,
    /// Columns that are this layer's.
    pub columns: Range<usize>,
    /// Whether the file has the weight as `[I, O]`, not as `[O, I]`.
    pub by_inputs: bool,
}

/// Whether the outputs of a matrix, each of which has its scale, are its rows or its columns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Outputs {
    /// Rows that are also looked up: a table of embeddings.
    Table,
    Rows,
    Columns,
}

pub(super) enum Way<'a> {
    Read {
        from: &'a mut Arrays,
        device: Device,
        /// Whether matrices keep the type and layout of the file.
        stored: bool,
        /// Number of bits to which matrices are quantised.
        bits: Option<Bits>,
    },
    Compare(&'a Arrays),
    Write(&'a mut Arrays),
    Quantize(Quantize<'a>),
    Visit(&'a mut dyn FnMut(LinearPart)),
}

/// Which matrices are quantised, and how.
pub(super) struct Quantize<'a> {
    bits: &'a dyn Fn(&str) -> Option<Bits>,
}

impl<'a> Binder<'a> {
    /// Moves arrays out of `from` into tensors on a device. If the device is without autodiff, the
    /// matrices of a large model keep the type and layout of the file.
    pub fn read(from: &'a mut Arrays, device: &Device) -> Binder<'a> {
        let bytes: usize = from.values().map(Array::size).sum();
        let inference = Weight::can_be_stored(device);
        let stored = bytes >= LEAST.get() && inference;
        let bits = from.values().find_map(|array| array.storage).filter(|_| inference);
        let way = Way::Read { from, device: device.clone(), stored, bits };
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

    /// Replaces matrices by quantised ones. `bits` gives the number of bits for a name; `None`
    /// leaves the matrix as it is.
    pub fn quantize(bits: &'a dyn Fn(&str) -> Option<Bits>) -> Binder<'a> {
        let way = Way::Quantize(Quantize { bits });
        Binder { way, prefix: String::new(), problems: vec![] }
    }

    /// Calls `visit` with each linear layer; tables and all that is not a matrix are left out.
    pub(crate) fn linear_parts(visit: &'a mut dyn FnMut(LinearPart)) -> Binder<'a> {
        Binder { way: Way::Visit(visit), prefix: String::new(), problems: vec![] }
    }

    /// Visits a linear layer by the name of its weight, if that is what is done.
    pub(super) fn visit_part(
        &mut self,
        name: &str,
        weight: &mut Weight,
        columns: Range<usize>,
        by_inputs: bool,
    ) {
        if let (Way::Visit(visit), Some(name)) = (&mut self.way, name.strip_suffix(".weight")) {
            let name = format!("{}{name}", self.prefix);
            visit(LinearPart { name, weight, columns, by_inputs });
        }
    }

    /// Quantises a matrix of which each row, or each column, has its scale, if this is asked for.
    pub(super) fn quantize_weight(&self, name: &str, weight: &mut Weight, by: Outputs) {
        let [rows, width] = weight.dims();
        // Small matrices take no time and little memory.
        if weight.as_quantized().is_some() || rows.min(width) < LEAST_SIDE {
            return;
        }
        let bits = match &self.way {
            Way::Read { bits, .. } => *bits,
            Way::Quantize(Quantize { bits }) => bits(&format!("{}{name}", self.prefix)),
            Way::Compare(_) | Way::Write(_) | Way::Visit(_) => None,
        };
        let Some(mut bits) = bits else { return };
        if by == Outputs::Table && bits == Bits::Int4 {
            // Tables of embeddings lose more in 4 bits than they save.
            bits = Bits::Int8;
        }
        let turned = by == Outputs::Columns;
        let values = weight.val();
        let values = if turned { values.transpose() } else { values };
        // A value that is not finite stays, and is reported where the weights are used.
        if let Ok(matrix) = QuantizedWeight::of_rows(bits, values) {
            let matrix = if turned { matrix.transpose() } else { matrix };
            *weight = Weight::quantized(matrix);
        }
    }

    /// Returns all problems found: missing names, wrong shapes or types, non-finite values.
    pub fn problems(self) -> Vec<TensorProblem> {
        self.problems
    }

    /// Visits a part of the model: `name.` is prefixed to all names within `part`.
    pub fn at(&mut self, name: &str, part: impl FnOnce(&mut Binder<'a>)) {
        let outside = self.prefix.len();
        self.prefix.push_str(name);
        self.prefix.push('.');
        part(self);
        self.prefix.truncate(outside);
    }

    /// Whether the checkpoint that is read has this name. Always true when writing.
    pub fn has(&self, name: &str) -> bool {
        match &self.way {
            Way::Read { from, .. } => from.contains_key(&format!("{}{name}", self.prefix)),
            Way::Compare(with) => with.contains_key(&format!("{}{name}", self.prefix)),
            Way::Write(_) | Way::Quantize(_) | Way::Visit(_) => true,
        }
    }

    pub(super) fn take(&mut self, name: &str, shape: &[usize]) -> Option<Vec<f32>> {
        self.take_array(name, shape)?.into_floats()
    }

    /// Takes an array of this shape whose elements are finite floats; else records a problem.
    pub(super) fn take_array(&mut self, name: &str, shape: &[usize]) -> Option<Array> {
        let name = format!("{}{name}", self.prefix);
        let (array, reads) = match &mut self.way {
            // Removed even if shape or type are wrong: the name is known to the model.
            Way::Read { from, .. } => (from.remove(&name), true),
            Way::Compare(with) => (with.get(&name).cloned(), false),
            Way::Write(_) | Way::Quantize(_) | Way::Visit(_) => return None,
        };
        let wanted = shape.to_vec();
        let problem = match array {
            None => TensorProblem::Missing { name, shape: wanted },
            Some(array) if array.shape != wanted => {
                TensorProblem::Misshapen { name, got: array.shape, wanted }
            }
            Some(array) if !array.is_float() => {
                TensorProblem::NotFloats { name, dtype: array.dtype().to_string() }
            }
            Some(_) if !reads => return None,
            Some(array) => match array.not_finite() {
                None => return Some(array),
                Some((at, number)) => {
                    TensorProblem::NotFinite { name, at, number: number.to_string() }
                }
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

    /// Whether weights are read for inference on the CPU.
    pub(super) fn can_store(&self) -> bool {
        matches!(&self.way, Way::Read { device, .. } if Weight::can_be_stored(device))
    }

    pub(super) fn fill<const D: usize>(&self, param: &mut Param<Tensor<D>>, data: Vec<f32>) {
        if let Way::Read { device, .. } = &self.way {
            let shape: [usize; D] = param.dims();
            *param = Param::from_data(TensorData::new(data, shape), device);
        }
    }

    /// Binds a tensor that has the same shape in the file as in memory.
    pub fn tensor<const D: usize>(&mut self, name: &str, param: &mut Param<Tensor<D>>) {
        let shape = param.dims();
        match &self.way {
            Way::Write(_) => self.put(name, &shape, numbers(param.val())),
            _ => {
                if let Some(data) = self.take(name, &shape) {
                    self.fill(param, data);
                }
            }
        }
    }

    /// Binds a tensor that has another shape in the file, for example one axis more or less.
    pub fn shaped<const D: usize>(
        &mut self,
        name: &str,
        shape: &[usize],
        param: &mut Param<Tensor<D>>,
    ) {
        match &self.way {
            Way::Write(_) => self.put(name, shape, numbers(param.val())),
            _ => {
                if let Some(data) = self.take(name, shape) {
                    self.fill(param, data);
                }
            }
        }
    }

    /// Binds a weight `[I, O]` that has the same layout in the file as in memory.
    pub fn weight(&mut self, name: &str, weight: &mut Weight) {
        self.shaped_weight(name, &weight.dims(), weight);
    }

    /// Binds a table of vectors `[V, M]`: embeddings, or the output layer that shares them.
    pub fn table(&mut self, name: &str, table: &mut Weight) {
        self.matrix(name, &table.dims(), table, Outputs::Table);
    }

    /// Binds a weight `[O, I]` whose outputs are its rows, in the file as in memory.
    pub fn weight_by_outputs(&mut self, name: &str, weight: &mut Weight) {
        self.matrix(name, &weight.dims(), weight, Outputs::Rows);
    }

    /// Binds a weight `[I, O]` that has another shape in the file.
    pub fn shaped_weight(&mut self, name: &str, shape: &[usize], weight: &mut Weight) {
        self.matrix(name, shape, weight, Outputs::Columns);
    }

    fn matrix(&mut self, name: &str, shape: &[usize], weight: &mut Weight, by: Outputs) {
        let [rows, width] = weight.dims();
        if let Way::Quantize(_) = self.way {
            return self.quantize_weight(name, weight, by);
        }
        if let Way::Write(_) = self.way {
            if let Some(quantized) = weight.as_quantized() {
                let array = Array::of_quantized(shape.to_vec(), quantized.clone());
                return self.put_array(name, array);
            }
            let stored = weight.as_stored().and_then(|stored| stored.rows(0..rows));
            return match stored {
                Some(stored) => self.put_array(name, Array::of_rows(shape.to_vec(), stored)),
                None => self.put(name, shape, numbers(weight.val())),
            };
        }
        let Some(array) = self.take_array(name, shape) else { return };
        if let Some(quantized) = array.as_quantized().filter(|_| self.can_store())
            && quantized.dims() == [rows, width]
        {
            *weight = Weight::quantized(quantized.clone());
        } else if self.stores() {
            let rows = array.into_rows(rows).into_iter().collect();
            *weight = Weight::stored(fits(StoredMatrix::new(rows, width)));
        } else if let Some(floats) = array.into_floats() {
            self.fill_weight(weight, floats);
        }
        self.quantize_weight(name, weight, by);
    }

    pub(super) fn fill_weight(&self, weight: &mut Weight, data: Vec<f32>) {
        if let Way::Read { device, .. } = &self.way {
            let shape = weight.dims();
            *weight = Param::from_data(TensorData::new(data, shape), device).into();
        }
    }
}

/// Unwraps a matrix whose array was already checked for shape and type.
pub(super) fn fits(matrix: Result<StoredMatrix, impl std::fmt::Display>) -> StoredMatrix {
    matrix.unwrap_or_else(|e| panic!("an array that fits: {e}"))
}

pub(super) fn numbers<const D: usize>(x: Tensor<D>) -> Vec<f32> {
    x.into_data().convert::<f32>().try_into_vec().expect("they were just converted")
}
