//! Embedding lookup: `y_n = W_{id_n}`.

use crate::backend::{self, Buffer, Dense, Operands, Operation, integers, ok};
use burn::backend::{Flex, TensorMetadata};
use burn::tensor::{Int, Tensor};
use burn_flex::FlexTensor;
use regard_kernels::ops::embedding::{Embedding as Kernel, backward};
use regard_kernels::storage::Stored;

#[derive(Clone, Copy, Debug)]
struct Lookup {
    padding: Option<i64>,
}

/// Looks up rows of an embedding table. The row of the id `padding` receives no gradient.
///
/// # Shapes
/// `table: [V, M]`, `ids: [B, T]` → `[B, T, M]`
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use regard_attention::ops::embedding;
///
/// let device = Device::flex();
/// let table = Tensor::<2>::from_floats([[0.0, 1.0], [2.0, 3.0]], &device);
/// let ids = Tensor::<2, Int>::from_ints([[1, 0, 1]], &device);
/// let y = embedding(table, ids, None);
/// assert_eq!(y.to_data().try_to_vec::<f32>().unwrap(), [2.0, 3.0, 0.0, 1.0, 2.0, 3.0]);
/// ```
pub fn embedding(table: Tensor<2>, ids: Tensor<2, Int>, padding: Option<i64>) -> Tensor<3> {
    if !backend::fused(&table) {
        return composed(table, ids, padding);
    }
    backend::apply(Lookup { padding }, vec![table.into_dispatch()], vec![ids.into_dispatch()])
}

fn composed(table: Tensor<2>, ids: Tensor<2, Int>, padding: Option<i64>) -> Tensor<3> {
    let ([b, t], [_, m]) = (ids.dims(), table.dims());
    let flat = ids.reshape([b * t]);
    let y = table.clone().select(0, flat.clone());
    let y = match padding {
        Some(padding) => {
            let still = table.detach().select(0, flat.clone());
            y.mask_where(flat.equal_elem(padding).unsqueeze_dim::<2>(1).expand([b * t, m]), still)
        }
        None => y,
    };
    y.reshape([b, t, m])
}

impl Operation for Lookup {
    type Saved = ();

    fn forward(&self, x: &Operands<Flex>, _: bool) -> (FlexTensor, ()) {
        let (table, ids) = (Dense::new(&x.floats[0]), integers(&x.ints[0]));
        let width = x.floats[0].shape()[1];
        let mut y = Buffer::new(ids.len() * width);
        ok(Kernel { table: ok(Stored::rows(&table, width)) }.forward(&ids, &mut y));
        let shape = x.ints[0].shape();
        (y.tensor([shape[0], shape[1], width]), ())
    }

    fn backward(
        &self,
        x: &Operands<Flex>,
        (): (),
        dy: FlexTensor,
        _: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        let shape = x.floats[0].shape();
        let (ids, dy) = (integers(&x.ints[0]), Dense::new(&dy));
        let mut table = Buffer::new(shape.num_elements());
        ok(backward(&ids, &dy, self.padding, shape[1], &mut table));
        vec![Some(table.tensor(shape))]
    }
}
