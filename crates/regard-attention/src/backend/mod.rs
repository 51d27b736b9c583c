//! Extension of Burn's backends with fused operations.
//!
//! An [`Operation`] maps float tensors to one float tensor, with a custom backward. On Burn's CPU
//! backend Flex, in single precision, it runs on Regard's kernels ([`fused`] tells whether); its
//! autodiff node is implemented once, here, for all operations. Elsewhere the same function is
//! composed of Burn's own tensor operations, which Burn differentiates, so models built from these
//! layers run on every device.

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

/// Fused operation with its backward, on the kernels.
pub trait Operation: Clone + std::fmt::Debug + Send + Sync + 'static {
    /// Values saved by the forward for the backward, besides the operands.
    type Saved: Clone + std::fmt::Debug + Send + 'static;

    /// Computes the result. Values used only by the backward may be omitted unless `tracked`.
    fn forward(&self, x: &Operands<Flex>, tracked: bool) -> (FlexTensor, Self::Saved);

    /// Computes the gradients of the float operands, in order. Those not
    /// `wanted` may be `None`.
    fn backward(
        &self,
        x: &Operands<Flex>,
        saved: Self::Saved,
        dy: FlexTensor,
        wanted: &[bool],
    ) -> Vec<Option<FlexTensor>>;
}

/// Backend extension that applies an [`Operation`].
#[backend_extension(Autodiff, Flex)]
pub trait Fused: Backend {
    /// Applies an operation, and records it on the autodiff graph where gradients are needed.
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

/// Applies an operation to tensors for which [`fused`] is true.
pub fn apply<const D: usize, O: Operation>(
    operation: O,
    floats: Vec<DispatchTensor>,
    ints: Vec<DispatchTensor>,
) -> Tensor<D> {
    Tensor::from_dispatch(Dispatch::apply(Operands { floats, ints }, operation))
}

/// Whether the kernels support a tensor: it is on Flex, in single precision.
pub fn fused<const D: usize>(x: &Tensor<D>) -> bool {
    let x = x.clone().into_dispatch();
    let flex = |kind: &DispatchTensorKind| matches!(kind, DispatchTensorKind::Flex(_));
    let on_flex = match &x.kind {
        DispatchTensorKind::Autodiff(inner) => flex(inner),
        kind => flex(kind),
    };
    on_flex && x.dtype() == DType::F32
}

/// Values as a tensor with the device and precision of another.
pub(crate) fn constant<const D: usize, const E: usize>(
    values: Vec<f32>,
    shape: [usize; D],
    like: &Tensor<E>,
) -> Tensor<D> {
    let (device, dtype) = (like.device(), like.dtype());
    Tensor::from_data(TensorData::new(values, shape).convert_dtype(dtype), (&device, dtype))
}

/// Panics with the kernel's message: shapes that do not match are programming errors.
#[track_caller]
pub(crate) fn ok<T>(result: Result<T, Error>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    }
}
