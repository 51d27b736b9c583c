//! How fused operations become part of Burn.
//!
//! An [`Operation`] is floats in, one tensor of floats out, with a backward of its own. On Burn's
//! CPU backend Flex, in single precision, it runs on Regard's kernels ([`fused`] says when); its
//! autodiff node is written once, here, for all operations. Everywhere else the same function is
//! composed of Burn's own tensor operations, whose derivatives Burn knows, so that a model that
//! is made of these layers runs on every device.

mod memory;
mod node;
mod operands;

pub use memory::{Buffer, numbers, recycled, release_memory};
pub(crate) use memory::{Dense, Rows, by_rows, integers, matrix, on_cpu, view4};
pub use operands::Operands;

use burn::backend::{
    Autodiff, Backend, Dispatch, DispatchTensor, DispatchTensorKind, Flex, TensorMetadata,
    autodiff::checkpoint::strategy::CheckpointStrategy, backend_extension, tensor::FloatTensor,
};
use burn::tensor::{DType, Tensor, TensorData};
use burn_flex::FlexTensor;
use regard_kernels::view::Error;

/// A fused operation with its backward, on the kernels.
pub trait Operation: Clone + std::fmt::Debug + Send + Sync + 'static {
    /// What the forward keeps for the backward, besides its operands.
    type Saved: Clone + std::fmt::Debug + Send + 'static;

    /// Computes the result. What is only for the backward need not be made unless `tracked`.
    fn forward(&self, x: &Operands<Flex>, tracked: bool) -> (FlexTensor, Self::Saved);

    /// The gradient of each float operand that is wanted, in order.
    fn backward(
        &self,
        x: &Operands<Flex>,
        saved: Self::Saved,
        dy: FlexTensor,
        wanted: &[bool],
    ) -> Vec<Option<FlexTensor>>;
}

/// The one extension of the backends: it applies an operation.
#[backend_extension(Autodiff, Flex)]
pub trait Fused: Backend {
    /// Applies an operation, and records it where gradients are asked for.
    fn apply<O: Operation>(
        #[extension_type] operands: Operands<Self>,
        operation: O,
    ) -> FloatTensor<Self>;
}

impl Fused for Flex {
    fn apply<O: Operation>(operands: Operands<Self>, operation: O) -> FloatTensor<Self> {
        operation.forward(&operands, false).0
    }
}

impl<C: CheckpointStrategy> Fused for Autodiff<Flex, C> {
    fn apply<O: Operation>(operands: Operands<Self>, operation: O) -> FloatTensor<Self> {
        node::record::<O, C>(operands, operation)
    }
}

/// Applies an operation to tensors that [`fused`] said yes to.
pub fn apply<const D: usize, O: Operation>(
    operation: O,
    floats: Vec<DispatchTensor>,
    ints: Vec<DispatchTensor>,
) -> Tensor<D> {
    Tensor::from_dispatch(Dispatch::apply(Operands { floats, ints }, operation))
}

/// Whether a tensor lives where the kernels run: on Flex, in single precision.
pub fn fused<const D: usize>(x: &Tensor<D>) -> bool {
    let x = x.clone().into_dispatch();
    let flex = |kind: &DispatchTensorKind| matches!(kind, DispatchTensorKind::Flex(_));
    let on_flex = match &x.kind {
        DispatchTensorKind::Autodiff(inner) => flex(inner),
        kind => flex(kind),
    };
    on_flex && x.dtype() == DType::F32
}

/// Numbers as a tensor of the same device and precision as another.
pub(crate) fn constant<const D: usize, const E: usize>(
    values: Vec<f32>,
    shape: [usize; D],
    like: &Tensor<E>,
) -> Tensor<D> {
    let (device, dtype) = (like.device(), like.dtype());
    Tensor::from_data(TensorData::new(values, shape).convert_dtype(dtype), (&device, dtype))
}

/// Shapes that do not fit are errors of the programmer: they stop with the kernel's own words.
#[track_caller]
pub(crate) fn ok<T>(result: Result<T, Error>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    }
}
