//! Operands of an operation, passed through Burn's dispatch.

use burn::backend::{
    Backend, BackendTensor, Dispatch, DispatchAutodiffContext, DispatchTensor, DispatchTensorKind,
    ExtensionType,
    tensor::{FloatTensor, IntTensor},
};

/// Any number of float and integer tensors on one backend.
#[derive(Clone, Debug)]
pub struct Operands<B: Backend> {
    /// Float tensors, which may have gradients.
    pub floats: Vec<FloatTensor<B>>,
    /// Integer tensors: indices, targets, lengths.
    pub ints: Vec<IntTensor<B>>,
}

// Burn derives this only for structures with a fixed number of tensors.
impl<B: Backend> ExtensionType<B> for Operands<B> {
    type Target = Operands<Dispatch>;

    fn map_to_dispatch<F>(self, map_kind: F, autodiff: DispatchAutodiffContext) -> Self::Target
    where
        F: Fn(BackendTensor<B>) -> DispatchTensorKind,
    {
        let wrap = |tensor| DispatchTensor { kind: map_kind(tensor), autodiff };
        Operands {
            floats: self.floats.into_iter().map(|x| wrap(BackendTensor::Float(x))).collect(),
            ints: self.ints.into_iter().map(|x| wrap(BackendTensor::Int(x))).collect(),
        }
    }

    fn map_from_dispatch<F>(target: Self::Target, unwrap_kind: F) -> Self
    where
        F: Fn(DispatchTensor) -> BackendTensor<B>,
    {
        Operands {
            floats: target.floats.into_iter().map(|x| unwrap_kind(x).float()).collect(),
            ints: target.ints.into_iter().map(|x| unwrap_kind(x).int()).collect(),
        }
    }

    fn routing_tensor(target: &Self::Target) -> Option<&DispatchTensor> {
        target.floats.first().or_else(|| target.ints.first())
    }

    fn routing_float_tensor(target: &Self::Target) -> Option<&DispatchTensor> {
        target.floats.first()
    }

    fn autodiff_context(target: &Self::Target) -> DispatchAutodiffContext {
        let all = target.floats.iter().chain(&target.ints);
        all.fold(DispatchAutodiffContext::Disabled, |context, x| context.merge(x.autodiff))
    }
}
