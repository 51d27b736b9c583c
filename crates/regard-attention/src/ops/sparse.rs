//! Product of a sparse matrix and a dense one.

use crate::backend::{self, Buffer, Dense, Operands, Operation, ok};
use burn::backend::{Flex, TensorMetadata};
use burn::tensor::{Int, Tensor, TensorData};
use burn_flex::FlexTensor;
pub use regard_kernels::ops::sparse::Sparse;
use std::sync::Arc;

#[derive(Clone, Debug)]
struct Product {
    x: Arc<Sparse>,
    values: Arc<Vec<f32>>,
}

/// Computes `y = x·W` for a sparse `x` that is data: only `W` receives a gradient.
///
/// # Shapes
/// `x: [N, C]` with one of `values` per nonzero, `w: [C, M]` → `[N, M]`
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use regard_attention::ops::{Sparse, sparse_linear};
/// use std::sync::Arc;
///
/// let x = Arc::new(Sparse::new(&[vec![0, 2], vec![1]], 3).unwrap());
/// let w = Tensor::<2>::from_floats([[1.0], [10.0], [100.0]], &Device::flex());
/// let y = sparse_linear(x, Arc::new(vec![1.0, 2.0, 3.0]), w);
/// assert_eq!(y.to_data().try_to_vec::<f32>().unwrap(), [201.0, 30.0]);
/// ```
pub fn sparse_linear(x: Arc<Sparse>, values: Arc<Vec<f32>>, w: Tensor<2>) -> Tensor<2> {
    assert_eq!(values.len(), x.places(), "values: need one for each nonzero of x");
    if !backend::fused(&w) {
        return composed(&x, &values, w);
    }
    backend::apply(Product { x, values }, vec![w.into_dispatch()], vec![])
}

fn composed(x: &Sparse, values: &[f32], w: Tensor<2>) -> Tensor<2> {
    let ([_, m], places) = (w.dims(), x.places());
    let device = w.device();
    let ints = |of: Vec<i64>| Tensor::<1, Int>::from_data(TensorData::new(of, [places]), &device);
    let rows = (0..x.rows()).flat_map(|n| vec![n as i64; x.row(n).len()]).collect();
    let columns = (0..x.rows()).flat_map(|n| x.row(n).iter().map(|c| i64::from(*c))).collect();
    let values = backend::constant(values.to_vec(), [places, 1], &w).expand([places, m]);
    let parts = w.clone().select(0, ints(columns)) * values;
    let zeros = Tensor::<2>::zeros([x.rows(), m], (&device, w.dtype()));
    zeros.select_assign(0, ints(rows), parts, burn::tensor::IndexingUpdateOp::Add)
}

impl Operation for Product {
    type Saved = ();

    fn forward(&self, x: &Operands<Flex>, _: bool) -> (FlexTensor, ()) {
        let (w, width) = (Dense::new(&x.floats[0]), x.floats[0].shape()[1]);
        let mut y = Buffer::new(self.x.rows() * width);
        ok(self.x.forward(&self.values, &w, &mut y));
        (y.tensor([self.x.rows(), width]), ())
    }

    fn backward(
        &self,
        x: &Operands<Flex>,
        (): (),
        dy: FlexTensor,
        _: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        let shape = x.floats[0].shape();
        let mut dw = Buffer::new(shape.num_elements());
        ok(self.x.backward(&self.values, &Dense::new(&dy), &mut dw));
        vec![Some(dw.tensor(shape))]
    }
}
