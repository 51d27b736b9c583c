//! Dropout: `y = x·m/(1 − p)`, where a fraction `p` of the mask `m` is 0, drawn by index.

use crate::backend::{self, Buffer, Dense, Operands, Operation, ok};
use burn::backend::{Flex, TensorMetadata};
use burn::tensor::Tensor;
use burn_flex::FlexTensor;
use regard_kernels::ops::dropout::Dropout as Kernel;
use regard_kernels::rng::Stream;

#[derive(Clone, Copy, Debug)]
struct Drop(Kernel);

/// Sets a fraction `p` of the elements to 0 and scales the others by `1/(1 − p)`. The choice is a
/// function of the stream and the element's index alone, on every device; nothing is stored for the
/// backward.
///
/// # Shapes
/// any → same shape
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use regard_attention::ops::dropout;
/// use regard_attention::Stream;
///
/// let x = Tensor::<1>::ones([1000], &Device::flex());
/// let y = dropout(x, 0.5, Stream::new(7, 0, 0)).to_data().try_to_vec::<f32>().unwrap();
/// assert!(y.iter().all(|y| *y == 0.0 || *y == 2.0));
/// assert!((400..600).contains(&y.iter().filter(|y| **y == 0.0).count()));
/// ```
pub fn dropout<const D: usize>(x: Tensor<D>, p: f32, stream: Stream) -> Tensor<D> {
    assert!((0.0..1.0).contains(&p), "dropout: got p = {p}, need at least 0 and below 1");
    if p == 0.0 {
        return x;
    }
    let kernel = Kernel { p, stream };
    if !backend::fused(&x) {
        let shape = x.dims();
        let ones = vec![1.0; shape.iter().product()];
        let mut factors = vec![0.0; ones.len()];
        ok(kernel.forward(&ones, &mut factors));
        return x.clone() * backend::constant(factors, shape, &x);
    }
    backend::apply(Drop(kernel), vec![x.into_dispatch()], vec![])
}

impl Operation for Drop {
    type Saved = ();

    fn forward(&self, x: &Operands<Flex>, _: bool) -> (FlexTensor, ()) {
        let input = Dense::new(&x.floats[0]);
        let mut y = Buffer::new(input.len());
        ok(self.0.forward(&input, &mut y));
        (y.tensor(x.floats[0].shape()), ())
    }

    fn backward(
        &self,
        x: &Operands<Flex>,
        (): (),
        dy: FlexTensor,
        _: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        let dy = Dense::new(&dy);
        let mut dx = Buffer::new(dy.len());
        ok(self.0.backward(&dy, &mut dx));
        vec![Some(dx.tensor(x.floats[0].shape()))]
    }
}
