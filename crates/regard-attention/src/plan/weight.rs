//! Weights as the kernels take them, by storage.

use crate::backend::{matrix, ok};
use crate::ops::{self, Packing, QuantizedWeight, StoredMatrix};
use burn::backend::TensorMetadata;
use burn::tensor::{Device, Tensor};
use burn_flex::FlexTensor;
use regard_kernels::gemm::{Epilogue, Matrix, MatrixMut};

/// Use of a weight in a plan.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WeightUse {
    /// `x·W`
    Product,
    /// `x·Wᵀ`
    Scores,
    /// Rows are looked up.
    Rows,
}

/// Weight `[I, O]` of a linear layer, or embedding table `[V, M]`.
pub(crate) enum PlannedWeight {
    Single(FlexTensor, Packing),
    Stored(StoredMatrix, bool),
    Quantized(QuantizedWeight),
}

impl PlannedWeight {
    pub fn single(weight: Tensor<2>, packing: Packing) -> PlannedWeight {
        let weight = weight.try_into_primitive::<burn::backend::Flex>();
        PlannedWeight::Single(weight.expect("a plan needs weights on the CPU"), packing)
    }

    /// `kept`: whether a packed copy may be made.
    pub fn stored(weight: StoredMatrix, kept: bool) -> PlannedWeight {
        match weight.by_rows() {
            true => PlannedWeight::Stored(weight, kept),
            // In parts that are not columns: converted once.
            false => PlannedWeight::single(weight.tensor(&Device::flex()), Packing::default()),
        }
    }

    /// `product`: whether it is multiplied by, not looked up in.
    pub fn quantized(weight: QuantizedWeight, product: bool) -> PlannedWeight {
        match product && !weight.matrix().1 {
            // Scales belong to its inputs, as in no layer that is read from a file.
            true => PlannedWeight::single(weight.tensor(&Device::flex()), Packing::default()),
            false => PlannedWeight::Quantized(weight),
        }
    }

    pub fn dims(&self) -> [usize; 2] {
        match self {
            PlannedWeight::Single(weight, _) => [weight.shape()[0], weight.shape()[1]],
            PlannedWeight::Stored(weight, _) => weight.dims(),
            PlannedWeight::Quantized(weight) => weight.dims(),
        }
    }

    /// # Shapes
    /// `x: [N, I]` → `y: [N, O]`
    pub fn product(&self, x: &[f32], y: &mut [f32], rest: Epilogue) {
        let [i, o] = self.dims();
        let n = x.len() / i;
        let rows = ok(Matrix::new(x, n, i));
        match self {
            PlannedWeight::Single(weight, packing) => {
                ops::linear_rows(rows, weight, Some(packing), ok(MatrixMut::new(y, n, o)), rest);
            }
            PlannedWeight::Stored(weight, kept) => ops::stored_rows(rows, weight, *kept, y, rest),
            PlannedWeight::Quantized(weight) => ops::quantized_rows(rows, weight, y, rest),
        }
    }

    /// A row of a table.
    pub fn row(&self, at: usize, to: &mut [f32]) {
        match self {
            PlannedWeight::Single(table, _) => {
                let table = ok(matrix(table));
                match table.row(at) {
                    Some(row) => to.copy_from_slice(row),
                    None => to.iter_mut().enumerate().for_each(|(i, x)| *x = table.get(at, i)),
                }
            }
            PlannedWeight::Stored(table, _) => table.row(at, to),
            PlannedWeight::Quantized(table) => table.row(at, to),
        }
    }
}
