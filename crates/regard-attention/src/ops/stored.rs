//! Matrices used in the storage type of their file: `y = f(x·W + b)`, and embedding lookup.
//!
//! Values are converted to single precision when they are loaded into a register. Results are
//! bitwise those of [`linear`](super::linear) and [`embedding`](super::embedding) with the same
//! values in a tensor. A stored matrix receives no gradient.

use super::Activation;
use super::packing::{Kept, ROWS};
use crate::backend::{self, Buffer, Dense, Rows, ok, on_cpu};
use burn::backend::Flex;
use burn::tensor::{Device, Int, Tensor, TensorData};
use regard_kernels::gemm::{Epilogue, Matrix, MatrixMut, Packed, product, seems_sparse};
use regard_kernels::ops::embedding::Embedding as Kernel;
use regard_kernels::storage::{Bytes, StorageType, Stored};
use regard_kernels::view::Error;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Consecutive rows of a stored matrix.
#[derive(Clone, Debug)]
pub struct StoredRows {
    /// Storage type of the elements.
    pub kind: StorageType,
    /// Elements in row-major order.
    pub bytes: Bytes,
    /// Number of rows.
    pub rows: usize,
}

/// Matrix stored in a file's data type and memory. Clones and transposes share the memory.
///
/// It may consist of several parts: a checkpoint has the query, key and value projections of a
/// layer as three tensors.
#[derive(Clone, Debug)]
pub struct StoredMatrix {
    memory: Arc<Memory>,
    /// Whether the matrix is the transpose of the rows in memory.
    turned: bool,
}

#[derive(Debug)]
struct Memory {
    parts: Vec<StoredRows>,
    rows: usize,
    width: usize,
    /// For the matrix as stored, and for its transpose.
    uses: [Mutex<Uses>; 2],
}

/// Use of the matrix, and its packed copy.
#[derive(Debug, Default)]
struct Uses {
    used: bool,
    kept: Option<Arc<Kept>>,
}

impl StoredMatrix {
    /// Creates a matrix from rows of `width` elements, the parts in sequence. Unaligned parts are
    /// copied.
    ///
    /// # Errors
    /// If the size of a part does not match its number of rows.
    pub fn new(mut parts: Vec<StoredRows>, width: usize) -> Result<StoredMatrix, Error> {
        for StoredRows { kind, bytes, rows } in &mut parts {
            if Stored::new(*kind, bytes, [*rows, width]).is_err() {
                *bytes = bytes.aligned();
                Stored::new(*kind, bytes, [*rows, width])?;
            }
        }
        let rows = parts.iter().map(|part| part.rows).sum();
        let memory = Memory { parts, rows, width, uses: Default::default() };
        Ok(StoredMatrix { memory: Arc::new(memory), turned: false })
    }

    /// Returns the numbers of rows and columns.
    pub fn dims(&self) -> [usize; 2] {
        let Memory { rows, width, .. } = *self.memory;
        if self.turned { [width, rows] } else { [rows, width] }
    }

    /// Returns the transpose, in the same memory.
    pub fn transpose(&self) -> StoredMatrix {
        StoredMatrix { memory: self.memory.clone(), turned: !self.turned }
    }

    /// Returns a range of rows without copying; `None` if the matrix is transposed or the range
    /// spans several parts.
    pub fn rows(&self, range: Range<usize>) -> Option<StoredRows> {
        let mut first = 0;
        for StoredRows { kind, bytes, rows } in self.memory.parts.iter().filter(|_| !self.turned) {
            let inside = first..first + rows;
            if inside.start <= range.start && range.end <= inside.end {
                let at = |row: usize| kind.bytes((row - first) * self.memory.width);
                let bytes = bytes.part(at(range.start)?..at(range.end)?);
                return Some(StoredRows { kind: *kind, bytes, rows: range.len() });
            }
            first = inside.end;
        }
        None
    }

    /// Converts the values to a single-precision tensor on a device.
    pub fn tensor(&self, device: &Device) -> Tensor<2> {
        let Memory { rows, width, .. } = *self.memory;
        let mut floats = vec![0f32; rows * width];
        let mut rest = &mut floats[..];
        for part in self.parts() {
            let (to, after) = rest.split_at_mut(part.shape()[0] * width);
            ok(part.to_floats(to));
            rest = after;
        }
        let tensor = Tensor::from_data(TensorData::new(floats, [rows, width]), device);
        if self.turned { tensor.transpose() } else { tensor }
    }

    /// Converts a row to single precision.
    ///
    /// # Panics
    /// If there is no such row, or `to` does not have exactly its length.
    pub(crate) fn row(&self, mut at: usize, to: &mut [f32]) {
        assert!(!self.turned, "a row of a transposed matrix");
        for part in self.parts() {
            let rows = part.shape()[0];
            if at < rows {
                return part.line(at, to);
            }
            at -= rows;
        }
        panic!("row {at} past the end of a stored matrix");
    }

    /// Whether [`stored_rows`] takes it: its parts are columns, or there is only one.
    pub(crate) fn by_rows(&self) -> bool {
        self.turned || self.memory.parts.len() == 1
    }

    fn parts(&self) -> impl Iterator<Item = Stored<'_>> {
        let Memory { parts, width, .. } = &*self.memory;
        parts.iter().map(|part| ok(Stored::new(part.kind, &part.bytes, [part.rows, *width])))
    }

    /// The only part, if there is one.
    fn whole(&self) -> Option<Stored<'_>> {
        let mut parts = self.parts();
        let first = parts.next()?;
        parts.next().is_none().then_some(if self.turned { first.t() } else { first })
    }

    /// Returns the packed copy if packing pays off for these rows: from the second use on.
    fn kept(&self, x: Matrix) -> Option<Arc<Kept>> {
        let (rows, whole) = (x.shape()[0], self.whole());
        let floats = self.memory.parts.iter().all(|part| part.kind == StorageType::F32);
        // For few rows, reading the weight takes as long as multiplying by it: a packed copy is
        // larger than 16-bit elements and no faster than contiguous rows. A transposed matrix would
        // have to be transposed each time.
        if rows < ROWS && (!self.turned || !floats) {
            return None;
        }
        if let Some(weight) = whole.and_then(Stored::matrix)
            && seems_sparse(x, weight)
        {
            return None;
        }
        let uses = &self.memory.uses[usize::from(self.turned)];
        let mut uses = uses.lock().unwrap_or_else(PoisonError::into_inner);
        if uses.kept.is_none() && std::mem::replace(&mut uses.used, true) {
            uses.kept = Kept::new(self.dims(), || self.pack()).map(Arc::new);
        }
        uses.kept.clone()
    }

    fn pack(&self) -> Packed {
        let parts: Vec<Stored> = self.parts().collect();
        ok(match self.turned {
            true => Packed::of_columns(&parts),
            false => Packed::of_columns(&parts.into_iter().map(Stored::t).collect::<Vec<_>>()),
        })
    }
}

/// Computes `y = f(x·W + b)` for a stored `W`. With `kept`, a packed copy is made from the second
/// use on, as in [`linear_packed`](super::linear_packed).
///
/// # Shapes
/// `x: […, I]`, `weight: [I, O]`, `bias: [O]` → `[…, O]`
pub fn stored_linear<const D: usize>(
    x: Tensor<D>,
    weight: &StoredMatrix,
    bias: Option<Tensor<1>>,
    activation: Activation,
    kept: bool,
) -> Tensor<D> {
    let ([i, o], mut shape) = (weight.dims(), x.dims());
    assert_eq!(shape[D - 1], i, "linear: x is {shape:?}, the weight [{i}, {o}]");
    if x.is_autodiff() || !backend::fused(&x) || !weight.by_rows() {
        let dense = weight.tensor(&x.device());
        return super::linear(x, dense, bias, activation);
    }
    let x = x.try_into_primitive::<Flex>().expect("it is on Flex");
    let (rows, bias) = (Rows::new(&x), bias.map(|bias| Dense::new(&on_cpu(bias))));
    let rows = ok(rows.matrix());
    let n = rows.shape()[0];
    let mut y = Buffer::new(n * o);
    let rest = Epilogue { bias: bias.as_deref(), activation, ..Epilogue::default() };
    stored_rows(rows, weight, kept, &mut y, rest);
    shape[D - 1] = o;
    Tensor::from_primitive::<Flex>(y.tensor(shape))
}

/// Computes `f(x·W + b)` of rows for a stored weight that is whole or turned. With `kept`, a packed
/// copy is used where it pays off.
///
/// # Shapes
/// `rows: [N, I]`, `weight: [I, O]` → `y: [N, O]`
pub(crate) fn stored_rows(
    rows: Matrix,
    weight: &StoredMatrix,
    kept: bool,
    y: &mut [f32],
    rest: Epilogue,
) {
    let (n, [_, o]) = (rows.shape()[0], weight.dims());
    if let Some(kept) = kept.then(|| weight.kept(rows)).flatten() {
        return ok(product(rows, kept.packed(), ok(MatrixMut::new(y, n, o)), rest));
    }
    let Epilogue { bias, activation, .. } = rest;
    let mut first = 0;
    for part in weight.parts() {
        let part = if weight.turned { part.t() } else { part };
        let cols = first..first + part.shape()[1];
        let to = MatrixMut::strided(y, [n, cols.len()], [o as isize, 1], cols.start);
        let bias = bias.map(|bias| &bias[cols.clone()]);
        let rest = Epilogue { bias, activation, ..Epilogue::default() };
        ok(product(rows, part, ok(to), rest));
        first = cols.end;
    }
}

/// Looks up rows of a stored embedding table.
///
/// # Shapes
/// `table: [V, M]`, `ids: [B, T]` → `[B, T, M]`
pub fn stored_embedding(table: &StoredMatrix, ids: Tensor<2, Int>) -> Tensor<3> {
    let ([b, t], [_, m]) = (ids.dims(), table.dims());
    let Some(rows) = table.whole().filter(|_| !table.turned) else {
        return super::embedding(table.tensor(&ids.device()), ids, None);
    };
    let device = ids.device();
    let ids: Vec<i64> = ids.into_data().iter::<i64>().collect();
    let mut y = Buffer::new(ids.len() * m);
    ok(Kernel { table: rows }.forward(&ids, &mut y));
    let y = Tensor::from_primitive::<Flex>(y.tensor([b, t, m]));
    if device.is_autodiff() { y.autodiff() } else { y }
}

#[cfg(test)]
mod tests {
    use super::super::{embedding, linear};
    use super::*;

    /// A matrix of values that every storage type can represent, as bytes of each type.
    fn numbers([rows, cols]: [usize; 2], seed: usize) -> (Vec<f32>, [(StorageType, Bytes); 3]) {
        let one = |i: usize| ((i * 2654435761 + seed * 97) % 255) as f32 / 128.0 - 1.0;
        let all: Vec<f32> = (0..rows * cols).map(one).collect();
        let half = |x: &f32| burn::tensor::f16::from_f32(*x).to_le_bytes();
        let upper = |x: &f32| burn::tensor::bf16::from_f32(*x).to_le_bytes();
        let stored = [
            (StorageType::F32, all.clone().into()),
            (StorageType::F16, all.iter().flat_map(half).collect::<Vec<u8>>().into()),
            (StorageType::Bf16, all.iter().flat_map(upper).collect::<Vec<u8>>().into()),
        ];
        (all, stored)
    }

    fn tensor<const D: usize>(shape: [usize; D], seed: usize) -> Tensor<D> {
        let (all, _) = numbers([shape.iter().product(), 1], seed);
        Tensor::from_data(TensorData::new(all, shape), &Device::flex())
    }

    fn bits<const D: usize>(x: Tensor<D>) -> Vec<u32> {
        x.to_data().try_to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
    }

    /// A stored weight, used repeatedly with different numbers of rows, against the same values in
    /// a tensor.
    #[test]
    fn a_stored_weight_gives_the_bits_of_a_tensor() {
        for [i, o] in [[7, 5], [64, 64], [385, 49], [100, 131]] {
            let (all, stored) = numbers([o, i], 1);
            let data = TensorData::new(all, [o, i]);
            let dense = Tensor::<2>::from_data(data, &Device::flex());
            let bias = tensor([o], 3);
            for (kind, bytes) in stored {
                let size = kind.bytes(i).unwrap();
                let rows = |at: Range<usize>| StoredRows {
                    kind,
                    bytes: bytes.part(at.start * size..at.end * size),
                    rows: at.len(),
                };
                for cuts in [vec![0, o], vec![0, o / 3, o / 2, o]] {
                    let parts = cuts.windows(2).map(|w| rows(w[0]..w[1])).collect();
                    let turned = StoredMatrix::new(parts, i).unwrap().transpose();
                    assert_eq!(turned.dims(), [i, o]);
                    assert_eq!(
                        bits(turned.tensor(&Device::flex())),
                        bits(dense.clone().transpose())
                    );
                    for n in [1, 9, 16, 3, 130, 1] {
                        let x = tensor([1, n, i], n);
                        let (w, b) = (dense.clone().transpose(), Some(bias.clone()));
                        let want = linear(x.clone(), w, b.clone(), Activation::Gelu);
                        for kept in [true, false] {
                            let got = stored_linear(
                                x.clone(),
                                &turned,
                                b.clone(),
                                Activation::Gelu,
                                kept,
                            );
                            assert!(bits(got) == bits(want.clone()), "{kind:?} {n} [{i}, {o}]");
                        }
                        // The same memory transposed, as in a checkpoint of GPT-2.
                        let x = tensor([n, o], n);
                        let want = linear(x.clone(), dense.clone(), None, Activation::Identity);
                        let straight = turned.transpose();
                        let got = stored_linear(x, &straight, None, Activation::Identity, true);
                        assert!(bits(got) == bits(want), "{kind:?} {n} straight");
                    }
                    let kept = |uses: &Mutex<Uses>| uses.lock().unwrap().kept.is_some();
                    assert!(kept(&turned.memory.uses[1]));
                }
            }
        }
    }

    #[test]
    fn rows_of_a_stored_table_are_those_of_a_tensor() {
        let (all, stored) = numbers([11, 33], 5);
        let dense = Tensor::<2>::from_data(TensorData::new(all, [11, 33]), &Device::flex());
        let ids = Tensor::<2, Int>::from_ints([[0, 10, 3], [3, 5, 0]], &Device::flex());
        let want = bits(embedding(dense, ids.clone(), None));
        for (kind, bytes) in stored {
            let table = StoredMatrix::new(vec![StoredRows { kind, bytes, rows: 11 }], 33).unwrap();
            assert!(bits(stored_embedding(&table, ids.clone())) == want, "{kind:?}");
        }
    }

    /// Gradients pass through a stored weight to its input.
    #[test]
    fn a_stored_weight_passes_gradients_on() {
        let (_, [_, _, (kind, bytes)]) = numbers([5, 4], 2);
        let weight = StoredMatrix::new(vec![StoredRows { kind, bytes, rows: 5 }], 4).unwrap();
        let device = Device::flex().autodiff();
        let x = Tensor::<2>::from_data(tensor([3, 4], 1).to_data(), &device).require_grad();
        let y = stored_linear(x.clone(), &weight.transpose(), None, Activation::Identity, true);
        let grads = y.sum().backward();
        let got = x.grad(&grads).unwrap().to_data().try_to_vec::<f32>().unwrap();
        let dense = weight.tensor(&Device::flex()).sum_dim(0).to_data();
        assert_eq!(got[..4], dense.try_to_vec::<f32>().unwrap());
    }

    #[test]
    fn what_is_not_aligned_is_copied_and_what_does_not_fit_refused() {
        let (all, [_, _, (kind, bytes)]) = numbers([2, 3], 2);
        let odd: Vec<u8> = [&[0u8], &bytes[..]].concat();
        let odd = Bytes::from(odd).part(1..13);
        let rows = |bytes: Bytes, rows| vec![StoredRows { kind, bytes, rows }];
        let matrix = StoredMatrix::new(rows(odd, 2), 3).unwrap();
        assert_eq!(
            bits(matrix.tensor(&Device::flex())),
            all.iter().map(|x| x.to_bits()).collect::<Vec<_>>()
        );
        assert!(StoredMatrix::new(rows(bytes, 3), 3).is_err());
    }
}
