//! Elementwise activation functions.

use crate::backend::{self, Buffer, Dense, Operands, Operation, ok};
use burn::backend::{Flex, TensorMetadata};
use burn::tensor::{Tensor, activation};
use burn_flex::FlexTensor;
pub use regard_kernels::ops::activation::Activation;

#[derive(Clone, Copy, Debug)]
struct Function(Activation);

/// Computes `y = f(x)` for each element.
///
/// # Shapes
/// any → same shape
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use regard_attention::ops::{Activation, activate};
///
/// let x = Tensor::<1>::from_floats([-1.0, 0.0, 1.0], &Device::flex());
/// let y = activate(x, Activation::Gelu).to_data().try_to_vec::<f32>().unwrap();
/// assert!((y[2] - 0.8413447).abs() < 1e-6 && y[1] == 0.0);
/// ```
pub fn activate<const D: usize>(x: Tensor<D>, f: Activation) -> Tensor<D> {
    if f == Activation::Identity || !backend::fused(&x) {
        return composed(x, f);
    }
    backend::apply(Function(f), vec![x.into_dispatch()], vec![])
}

/// Composed of Burn's operations.
pub(super) fn composed<const D: usize>(x: Tensor<D>, f: Activation) -> Tensor<D> {
    match f {
        Activation::Identity => x,
        Activation::Gelu => {
            // On some backends Burn's GELU has the derivative of an approximation.
            let phi = ((x.clone() * std::f64::consts::FRAC_1_SQRT_2).erf() + 1.0) * 0.5;
            x * phi
        }
        Activation::GeluTanh => {
            let cube = x.clone() * x.clone() * x.clone();
            let u = (cube * 0.044715 + x.clone()) * (2.0 / std::f64::consts::PI).sqrt();
            x * 0.5 * (u.tanh() + 1.0)
        }
        Activation::Relu => activation::relu(x),
        Activation::Silu => activation::silu(x),
        Activation::Tanh => x.tanh(),
        Activation::Elu => {
            let below = x.clone().clamp_max(0.0).exp() - 1.0;
            activation::relu(x) + below
        }
    }
}

impl Operation for Function {
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
        let (input, dy) = (Dense::new(&x.floats[0]), Dense::new(&dy));
        let mut dx = Buffer::new(input.len());
        ok(self.0.backward(&input, &dy, &mut dx));
        vec![Some(dx.tensor(x.floats[0].shape()))]
    }
}
