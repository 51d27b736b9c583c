//! Quantised matrices: `y = f(x·W + b)` with weights of 16, 8 or 4 bits, and embedding lookup.
//!
//! Activations are quantised to 8 bits with a scale for each row, or rounded to `bfloat16` for
//! weights of 16 bits ([`regard_kernels::quant`]). A quantised matrix receives no gradient.

use super::Activation;
use crate::backend::{self, Buffer, Dense, Rows, ok, on_cpu};
use burn::backend::Flex;
use burn::tensor::{Device, Int, Tensor, TensorData};
use regard_kernels::gemm::{Epilogue, Matrix, MatrixMut};
use regard_kernels::quant::{Activations, Bits, QuantizedMatrix, product};
use regard_kernels::view::Error;
use std::ops::Range;
use std::sync::Arc;

/// Quantised weight `[rows, columns]`. Clones and transposes share the memory.
///
/// Scales belong to the rows in memory, which are the outputs of a linear layer or the entries of
/// an embedding table.
#[derive(Clone, Debug)]
pub struct QuantizedWeight {
    matrix: Arc<QuantizedMatrix>,
    /// Whether the weight is the transpose of the matrix in memory.
    turned: bool,
}

impl From<QuantizedMatrix> for QuantizedWeight {
    fn from(matrix: QuantizedMatrix) -> QuantizedWeight {
        QuantizedWeight { matrix: Arc::new(matrix), turned: false }
    }
}

impl QuantizedWeight {
    /// Quantises the rows of a tensor.
    ///
    /// # Errors
    /// If a value is not finite, or rows have more than 65,536 columns.
    pub fn of_rows(bits: Bits, weight: Tensor<2>) -> Result<QuantizedWeight, Error> {
        let [rows, width] = weight.dims();
        let floats: Vec<f32> =
            weight.into_data().convert::<f32>().try_into_vec().expect("they were just converted");
        let row = |at: usize, to: &mut [f32]| {
            to.copy_from_slice(&floats[at * width..(at + 1) * width]);
        };
        Ok(QuantizedMatrix::new(bits, [rows, width], &row)?.into())
    }

    /// Returns the numbers of rows and columns.
    pub fn dims(&self) -> [usize; 2] {
        let [rows, width] = self.matrix.shape();
        if self.turned { [width, rows] } else { [rows, width] }
    }

    /// Returns the number of bits of a weight.
    pub fn bits(&self) -> Bits {
        self.matrix.bits()
    }

    /// Returns the transpose, in the same memory.
    pub fn transpose(&self) -> QuantizedWeight {
        QuantizedWeight { matrix: self.matrix.clone(), turned: !self.turned }
    }

    /// Returns the matrix in memory, and whether the weight is its transpose.
    pub fn matrix(&self) -> (&QuantizedMatrix, bool) {
        (&self.matrix, self.turned)
    }

    /// The matrix in memory, in single precision.
    fn in_memory(&self) -> Vec<f32> {
        let [rows, width] = self.matrix.shape();
        let mut floats = vec![0f32; rows * width];
        for (at, to) in floats.chunks_mut(width).enumerate() {
            self.matrix.row(at, to);
        }
        floats
    }

    /// Returns the values in single precision, row-major.
    pub fn floats(&self) -> Vec<f32> {
        let (floats, [rows, width]) = (self.in_memory(), self.matrix.shape());
        match self.turned {
            false => floats,
            true => (0..rows * width).map(|at| floats[at % rows * width + at / rows]).collect(),
        }
    }

    /// Converts a row to single precision.
    ///
    /// # Panics
    /// If there is no such row, or `to` does not have exactly its length.
    pub(crate) fn row(&self, at: usize, to: &mut [f32]) {
        assert!(!self.turned, "a row of a transposed matrix");
        self.matrix.row(at, to);
    }

    /// Returns some rows of the matrix in memory as a weight of their own.
    ///
    /// # Panics
    /// If there are no such rows.
    pub fn part(&self, rows: Range<usize>) -> QuantizedWeight {
        let matrix = self.matrix.part(rows);
        QuantizedWeight { matrix: Arc::new(matrix), turned: self.turned }
    }

    /// Converts the values to a single-precision tensor on a device.
    pub fn tensor(&self, device: &Device) -> Tensor<2> {
        let ([rows, width], floats) = (self.matrix.shape(), self.in_memory());
        let tensor = Tensor::from_data(TensorData::new(floats, [rows, width]), device);
        if self.turned { tensor.transpose() } else { tensor }
    }
}

/// Computes `y = f(x·W + b)` for a quantised `W`. Gradients, other devices and a weight whose
/// scales belong to its inputs use the values in single precision.
///
/// # Shapes
/// `x: […, I]`, `weight: [I, O]`, `bias: [O]` → `[…, O]`
pub fn quantized_linear<const D: usize>(
    x: Tensor<D>,
    weight: &QuantizedWeight,
    bias: Option<Tensor<1>>,
    activation: Activation,
) -> Tensor<D> {
    let ([i, o], mut shape) = (weight.dims(), x.dims());
    assert_eq!(shape[D - 1], i, "linear: x is {shape:?}, the weight [{i}, {o}]");
    if x.is_autodiff() || !backend::fused(&x) || !weight.turned {
        let dense = weight.tensor(&x.device());
        return super::linear(x, dense, bias, activation);
    }
    let x = x.try_into_primitive::<Flex>().expect("it is on Flex");
    let (rows, bias) = (Rows::new(&x), bias.map(|bias| Dense::new(&on_cpu(bias))));
    let rows = ok(rows.matrix());
    let n = rows.shape()[0];
    let mut y = Buffer::new(n * o);
    let rest = Epilogue { bias: bias.as_deref(), activation, ..Epilogue::default() };
    quantized_rows(rows, weight, &mut y, rest);
    shape[D - 1] = o;
    Tensor::from_primitive::<Flex>(y.tensor(shape))
}

/// Computes `f(x·W + b)` of rows for a turned weight, whose scales belong to its outputs.
///
/// # Shapes
/// `rows: [N, I]`, `weight: [I, O]` → `y: [N, O]`
pub(crate) fn quantized_rows(
    rows: Matrix,
    weight: &QuantizedWeight,
    y: &mut [f32],
    rest: Epilogue,
) {
    assert!(weight.turned, "quantized_rows: needs scales for each output");
    let (n, [_, o]) = (rows.shape()[0], weight.dims());
    let x = ok(Activations::of(weight.bits(), rows));
    ok(product(&x, &weight.matrix, ok(MatrixMut::new(y, n, o)), rest));
}

/// Looks up rows of a quantised embedding table.
///
/// # Shapes
/// `table: [V, M]`, `ids: [B, T]` → `[B, T, M]`
///
/// # Panics
/// If an id is not in `0..V`.
pub fn quantized_embedding(table: &QuantizedWeight, ids: Tensor<2, Int>) -> Tensor<3> {
    let ([b, t], [v, m]) = (ids.dims(), table.dims());
    if table.turned {
        return super::embedding(table.tensor(&ids.device()), ids, None);
    }
    let device = ids.device();
    let known = |id: i64| {
        assert!((0..v as i64).contains(&id), "embedding: got id {id}, need one below {v}");
        id as usize
    };
    let ids: Vec<usize> = ids.into_data().iter::<i64>().map(known).collect();
    let mut y = Buffer::new(ids.len() * m);
    table.matrix.rows(&ids, &mut y);
    let y = Tensor::from_primitive::<Flex>(y.tensor([b, t, m]));
    if device.is_autodiff() { y.autodiff() } else { y }
}
