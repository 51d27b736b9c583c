//! Layer norm and RMS norm over rows, alone or fused with an addition.
//!
//! ```text
//! layer: y = (x − mean)/√(var + ε)·γ + β        rms: y = x/√(mean(x²) + ε)·γ
//! ```

use crate::backend::{self, Buffer, Dense, Operands, Operation, ok};
use burn::backend::{Flex, TensorMetadata};
use burn::tensor::Tensor;
use burn_flex::FlexTensor;
pub use regard_kernels::ops::norm::NormKind;
use regard_kernels::ops::norm::{Norm as Kernel, NormGradients, Outputs, SavedNorm};
use std::sync::{Arc, Mutex};

/// Parameters of a norm.
///
/// # Shapes
/// `gamma, beta: [M]`
#[derive(Clone, Debug)]
pub struct NormParams {
    /// Layer norm or RMS norm.
    pub kind: NormKind,
    /// `ε`, added to the variance or mean square.
    pub eps: f32,
    /// Scale `γ`.
    pub gamma: Tensor<1>,
    /// Bias `β`; `None` for none.
    pub beta: Option<Tensor<1>>,
}

/// Normalises each row.
///
/// # Shapes
/// `x: […, M]` → same shape
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use regard_attention::ops::{NormParams, NormKind, norm};
///
/// let device = Device::flex();
/// let x = Tensor::<2>::from_floats([[1.0, 3.0]], &device);
/// let gamma = Tensor::<1>::ones([2], &device);
/// let y = norm(x, &NormParams { kind: NormKind::Layer, eps: 0.0, gamma, beta: None });
/// assert_eq!(y.to_data().try_to_vec::<f32>().unwrap(), [-1.0, 1.0]);
/// ```
pub fn norm<const D: usize>(x: Tensor<D>, norm: &NormParams) -> Tensor<D> {
    if !backend::fused(&x) {
        return composed(x, norm);
    }
    let operation = Rows { kind: norm.kind, eps: norm.eps, done: None };
    backend::apply(operation, with_parameters(vec![x.into_dispatch()], norm), vec![])
}

/// Computes the sum `x + residual` and its norm in one pass, as between two sublayers of a pre-norm
/// Transformer.
///
/// # Shapes
/// `x, residual: […, M]` → both of the same shape
pub fn add_norm<const D: usize>(
    x: Tensor<D>,
    residual: Tensor<D>,
    with: &NormParams,
) -> (Tensor<D>, Tensor<D>) {
    assert_eq!(x.dims(), residual.dims(), "add_norm: x and residual must have the same shape");
    if !backend::fused(&x) {
        let sum = x + residual;
        return (sum.clone(), composed(sum, with));
    }
    // Burn's nodes have one output, so there are two nodes: the first computes both results and
    // leaves the norm for the second, which only returns it.
    let left = Left::default();
    let NormParams { kind, eps, .. } = *with;
    let floats = with_parameters(vec![x.into_dispatch(), residual.into_dispatch()], with);
    let sum: Tensor<D> = backend::apply(Sum { kind, eps, left: left.clone() }, floats, vec![]);
    let operation = Rows { kind, eps, done: Some(left) };
    let y =
        backend::apply(operation, with_parameters(vec![sum.clone().into_dispatch()], with), vec![]);
    (sum, y)
}

fn with_parameters(
    mut floats: Vec<burn::backend::DispatchTensor>,
    norm: &NormParams,
) -> Vec<burn::backend::DispatchTensor> {
    floats.push(norm.gamma.clone().into_dispatch());
    floats.extend(norm.beta.clone().map(Tensor::into_dispatch));
    floats
}

fn composed<const D: usize>(x: Tensor<D>, norm: &NormParams) -> Tensor<D> {
    let x = match norm.kind {
        NormKind::Layer => x.clone() - x.mean_dim(D - 1),
        NormKind::Rms => x,
    };
    let square = (x.clone() * x.clone()).mean_dim(D - 1);
    let y = x / (square + norm.eps).sqrt() * norm.gamma.clone().unsqueeze();
    match &norm.beta {
        Some(beta) => y + beta.clone().unsqueeze(),
        None => y,
    }
}

/// Mean and reciprocal standard deviation of each row.
type Statistics = Arc<(Vec<f32>, Vec<f32>)>;
/// A norm that was computed together with a sum.
type Left = Arc<Mutex<Option<(FlexTensor, Statistics)>>>;

/// The norm of rows, with operands `x`, `γ` and optionally `β`.
#[derive(Clone, Debug)]
struct Rows {
    kind: NormKind,
    eps: f32,
    done: Option<Left>,
}

/// `x + residual`, with its norm as a side result; operands `x`, the residual, `γ` and optionally
/// `β`.
#[derive(Clone, Debug)]
struct Sum {
    kind: NormKind,
    eps: f32,
    left: Left,
}

struct Made {
    y: Buffer,
    sum: Option<Buffer>,
    statistics: Statistics,
}

fn forward(kind: NormKind, eps: f32, x: &[FlexTensor], residual: Option<&FlexTensor>) -> Made {
    let (rows, gamma) = (Dense::new(&x[0]), Dense::new(&x[1]));
    let beta = x.get(2).map(Dense::new);
    let residual = residual.map(Dense::new);
    let n = rows.len() / gamma.len().max(1);
    let mut y = Buffer::new(rows.len());
    let mut sum = residual.as_ref().map(|r| Buffer::new(r.len()));
    let (mut mean, mut rstd) = (vec![0.0; n], vec![0.0; n]);
    let kernel = Kernel { kind, gamma: &gamma, beta: beta.as_deref(), eps };
    let to = Outputs { y: &mut y, sum: sum.as_deref_mut(), mean: &mut mean, rstd: &mut rstd };
    ok(kernel.forward(&rows, residual.as_deref(), to));
    Made { y, sum, statistics: Arc::new((mean, rstd)) }
}

impl Operation for Rows {
    type Saved = Statistics;

    fn forward(&self, x: &Operands<Flex>, _: bool) -> (FlexTensor, Statistics) {
        if let Some(left) = &self.done {
            let mut left = left.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            return left.take().expect("the sum has left its norm");
        }
        let made = forward(self.kind, self.eps, &x.floats, None);
        (made.y.tensor(x.floats[0].shape()), made.statistics)
    }

    fn backward(
        &self,
        x: &Operands<Flex>,
        saved: Statistics,
        dy: FlexTensor,
        _: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        let (rows, gamma, dy) =
            (Dense::new(&x.floats[0]), Dense::new(&x.floats[1]), Dense::new(&dy));
        let has_beta = x.floats.len() > 2;
        let mut dx = Buffer::new(rows.len());
        let mut dgamma = Buffer::new(gamma.len());
        let mut dbeta = has_beta.then(|| Buffer::new(gamma.len()));
        let kernel = Kernel { kind: self.kind, gamma: &gamma, beta: None, eps: self.eps };
        let to = NormGradients { x: &mut dx, gamma: &mut dgamma, beta: dbeta.as_deref_mut() };
        ok(kernel.backward(SavedNorm { x: &rows, mean: &saved.0, rstd: &saved.1 }, &dy, None, to));
        let width = gamma.len();
        let mut found = vec![Some(dx.tensor(x.floats[0].shape())), Some(dgamma.tensor([width]))];
        found.extend(dbeta.map(|beta| Some(beta.tensor([width]))));
        found
    }
}

impl Operation for Sum {
    type Saved = ();

    fn forward(&self, x: &Operands<Flex>, _: bool) -> (FlexTensor, ()) {
        let mut operands = x.floats.clone();
        let residual = operands.remove(1);
        let made = forward(self.kind, self.eps, &operands, Some(&residual));
        let shape = x.floats[0].shape();
        let mut left = self.left.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        *left = Some((made.y.tensor(shape.clone()), made.statistics));
        (made.sum.expect("there is a residual").tensor(shape), ())
    }

    fn backward(
        &self,
        _: &Operands<Flex>,
        (): (),
        dy: FlexTensor,
        _: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        // sum = x + residual; the parameters act through the norm, whose node has their gradients
        vec![Some(dy.clone()), Some(dy)]
    }
}
