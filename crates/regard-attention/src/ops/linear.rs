//! Linear layer with a fused activation: `y = f(x·W + b)`.

use super::activation::{Activation, composed as activate};
use super::packing::Packing;
use crate::backend::{self, Buffer, Operands, Operation, Rows, matrix, ok};
use burn::backend::{Flex, TensorMetadata};
use burn::tensor::Tensor;
use burn_flex::FlexTensor;
use regard_kernels::gemm::{Epilogue, Matrix, MatrixMut, product, seems_sparse};
use regard_kernels::ops::linear::{Linear as Kernel, LinearGradients, SavedLinear};

/// The operation, with operands `x`, `W` and optionally `b`.
#[derive(Clone, Debug)]
pub struct LinearOperation {
    /// Activation `f`.
    pub activation: Activation,
    /// Cache of the packed weight; `None` to pack it for each product.
    pub packing: Option<Packing>,
}

/// Computes `y = f(x·W + b)`.
///
/// # Shapes
/// `x: […, I]`, `weight: [I, O]`, `bias: [O]` → `[…, O]`
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use regard_attention::ops::{Activation, linear};
///
/// let device = Device::flex();
/// let x = Tensor::<2>::from_floats([[1.0, 2.0]], &device);
/// let w = Tensor::<2>::from_floats([[1.0, -1.0], [1.0, -1.0]], &device);
/// let y = linear(x, w, None, Activation::Relu);
/// assert_eq!(y.to_data().try_to_vec::<f32>().unwrap(), [3.0, 0.0]);
/// ```
pub fn linear<const D: usize>(
    x: Tensor<D>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
    activation: Activation,
) -> Tensor<D> {
    apply(x, weight, bias, LinearOperation { activation, packing: None })
}

/// Computes `y = f(x·W + b)` for a weight that is used repeatedly. While no gradient is needed, the
/// weight is kept packed in `packing`.
pub fn linear_packed<const D: usize>(
    x: Tensor<D>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
    activation: Activation,
    packing: &Packing,
) -> Tensor<D> {
    apply(x, weight, bias, LinearOperation { activation, packing: Some(packing.clone()) })
}

fn apply<const D: usize>(
    x: Tensor<D>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
    operation: LinearOperation,
) -> Tensor<D> {
    let ([i, o], shape) = (weight.dims(), x.dims());
    assert_eq!(shape[D - 1], i, "linear: x is {shape:?}, the weight [{i}, {o}]");
    if !backend::fused(&x) {
        return composed(x, weight, bias, operation.activation);
    }
    let mut floats = vec![x.into_dispatch(), weight.into_dispatch()];
    floats.extend(bias.map(Tensor::into_dispatch));
    backend::apply(operation, floats, vec![])
}

fn composed<const D: usize>(
    x: Tensor<D>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
    activation: Activation,
) -> Tensor<D> {
    let mut shape = x.dims();
    let [i, o] = weight.dims();
    let rows: usize = shape[..D - 1].iter().product();
    let mut y = x.reshape([rows, i]).matmul(weight);
    if let Some(bias) = bias {
        y = y + bias.unsqueeze();
    }
    shape[D - 1] = o;
    activate(y, activation).reshape(shape)
}

/// Computes `f(x·W + b)` of rows, with the packed weight where it pays off.
pub(crate) fn linear_rows(
    rows: Matrix,
    weight: &FlexTensor,
    packing: Option<&Packing>,
    to: MatrixMut,
    rest: Epilogue,
) {
    let w = ok(matrix(weight));
    let kept = match packing {
        Some(packing) if !seems_sparse(rows, w) => packing.of(weight, w, rows.shape()[0]),
        _ => None,
    };
    ok(match kept {
        Some(kept) => product(rows, kept.packed(), to, rest),
        None => {
            let Epilogue { bias, activation, pre, .. } = rest;
            Kernel { weight: w, bias, activation }.forward(rows, to, pre)
        }
    });
}

impl Operation for LinearOperation {
    /// Pre-activation values, unless `f` is the identity.
    type Saved = Option<FlexTensor>;

    fn forward(&self, x: &Operands<Flex>, tracked: bool) -> (FlexTensor, Self::Saved) {
        let [input, weight, bias @ ..] = &x.floats[..] else { panic!("x, W and perhaps b") };
        let rows = Rows::new(input);
        let rows = ok(rows.matrix());
        let (n, o) = (rows.shape()[0], weight.shape()[1]);
        let bias = bias.first().map(backend::Dense::new);
        let packing = match &self.packing {
            // The weight is about to change.
            Some(packing) if tracked => {
                packing.forget();
                None
            }
            packing => packing.as_ref(),
        };
        let mut y = Buffer::new(n * o);
        let keep = tracked && self.activation != Activation::Identity;
        let mut pre = keep.then(|| Buffer::new(n * o));
        let room = pre.as_deref_mut().map(|pre| ok(MatrixMut::new(pre, n, o)));
        let rest = Epilogue {
            bias: bias.as_deref(),
            activation: self.activation,
            pre: room,
            ..Epilogue::default()
        };
        linear_rows(rows, weight, packing, ok(MatrixMut::new(&mut y, n, o)), rest);
        let mut shape = input.shape();
        let last = shape.num_dims() - 1;
        shape[last] = o;
        (y.tensor(shape), pre.map(|pre| pre.tensor([n, o])))
    }

    fn backward(
        &self,
        x: &Operands<Flex>,
        saved: Self::Saved,
        dy: FlexTensor,
        wanted: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        let [input, weight, bias @ ..] = &x.floats[..] else { panic!("x, W and perhaps b") };
        let (rows, dy) = (Rows::new(input), Rows::new(&dy));
        let (rows, w) = (ok(rows.matrix()), ok(matrix(weight)));
        let ([n, i], o) = (rows.shape(), w.shape()[1]);
        let mut room = [(0, n * i), (1, i * o), (2, o)]
            .map(|(at, len)| wanted.get(at).is_some_and(|w| *w).then(|| Buffer::new(len)));
        let [dx, dw, db] = &mut room;
        let to = LinearGradients {
            x: dx.as_deref_mut().map(|x| ok(MatrixMut::new(x, n, i))),
            weight: dw.as_deref_mut().map(|w| ok(MatrixMut::new(w, i, o))),
            bias: db.as_deref_mut(),
        };
        let pre = saved.as_ref().map(|pre| ok(matrix(pre)));
        let kernel = Kernel { weight: w, bias: None, activation: self.activation };
        ok(kernel.backward(SavedLinear { x: rows, pre }, ok(dy.matrix()), to));
        let shapes =
            [input.shape(), weight.shape()].into_iter().chain(bias.iter().map(|b| b.shape()));
        room.into_iter().zip(shapes).map(|(room, shape)| room.map(|g| g.tensor(shape))).collect()
    }
}
