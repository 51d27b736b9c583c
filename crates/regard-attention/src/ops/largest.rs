//! Segment-wise max pooling: `y_s = max_{n ∈ s} x_n`, column by column.

use crate::backend::{self, Buffer, Dense, Operands, Operation, ok};
use burn::backend::{Flex, TensorMetadata};
use burn::tensor::{Int, Tensor, TensorData};
use burn_flex::FlexTensor;
use regard_kernels::ops::largest::Runs;
use std::sync::Arc;

#[derive(Clone, Debug)]
struct Largest {
    lengths: Arc<Vec<usize>>,
}

/// Computes the maximum of each column within each segment of rows. Of several equal maxima, the
/// first receives the gradient.
///
/// # Shapes
/// `x: [N, M]`, lengths `[S]`, each at least 1 and summing to `N` → `[S, M]`
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use regard_attention::ops::largest;
///
/// let x = Tensor::<2>::from_floats([[1., 5.], [3., 2.], [0., 0.]], &Device::flex());
/// let y = largest(x, &[2, 1]);
/// assert_eq!(y.to_data().try_to_vec::<f32>().unwrap(), [3., 5., 0., 0.]);
/// ```
pub fn largest(x: Tensor<2>, lengths: &[usize]) -> Tensor<2> {
    if !backend::fused(&x) {
        return composed(x, lengths);
    }
    let lengths = Arc::new(lengths.to_vec());
    backend::apply(Largest { lengths }, vec![x.into_dispatch()], vec![])
}

/// Segments are padded to equal length with their own first row, which changes no maximum.
fn composed(x: Tensor<2>, lengths: &[usize]) -> Tensor<2> {
    let ([n, m], s) = (x.dims(), lengths.len());
    assert_eq!(lengths.iter().sum::<usize>(), n, "largest: need lengths that sum to {n} rows");
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let mut first = 0;
    let mut rows: Vec<i64> = Vec::with_capacity(s * longest);
    for length in lengths {
        rows.extend((0..longest).map(|i| (first + if i < *length { i } else { 0 }) as i64));
        first += length;
    }
    let rows = Tensor::<1, Int>::from_data(TensorData::new(rows, [s * longest]), &x.device());
    x.select(0, rows).reshape([s, longest, m]).max_dim(1).reshape([s, m])
}

impl Operation for Largest {
    type Saved = Arc<Vec<u32>>;

    fn forward(&self, x: &Operands<Flex>, _: bool) -> (FlexTensor, Self::Saved) {
        let (input, width) = (Dense::new(&x.floats[0]), x.floats[0].shape()[1]);
        let runs = Runs { lengths: &self.lengths, width };
        let mut y = Buffer::new(self.lengths.len() * width);
        let mut rows = vec![0; y.len()];
        ok(runs.forward(&input, &mut y, &mut rows));
        (y.tensor([self.lengths.len(), width]), Arc::new(rows))
    }

    fn backward(
        &self,
        x: &Operands<Flex>,
        rows: Self::Saved,
        dy: FlexTensor,
        _: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        let shape = x.floats[0].shape();
        let mut dx = Buffer::new(shape.num_elements());
        let runs = Runs { lengths: &self.lengths, width: shape[1] };
        ok(runs.backward(&rows, &Dense::new(&dy), &mut dx));
        vec![Some(dx.tensor(shape))]
    }
}
