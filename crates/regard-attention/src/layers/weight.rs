//! Weight matrix of a layer: a trainable parameter, a matrix in the storage type of its file, or a
//! quantised one.

use super::LowRank;
use super::low_rank::Updates;
use crate::backend;
use crate::ops::{self, Activation, Packing, QuantizedWeight, StoredMatrix, activate};
use crate::plan::{PlannedWeight, WeightUse};
use burn::module::{
    Content, Devices, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor,
    Param, ParamId,
};
use burn::tensor::{Device, Int, Tensor};

/// Weight matrix `[I, O]` of a linear layer, or embedding table `[V, M]`.
///
/// It is a trainable single-precision Burn parameter, or a [`StoredMatrix`] in the storage type of
/// its file, or a [`QuantizedWeight`]. The last two cannot be trained. Optimisers, records and
/// parameter counts see all of them; of a fixed matrix they see a placeholder with its shape and a
/// single value.
///
/// A parameter may have updates of low rank ([`LowRank`]), which are trained in its place. A copy
/// without autodiff has them added to the matrix.
#[derive(Clone, Debug)]
pub struct Weight {
    /// The parameter; for a fixed matrix, a placeholder of its shape.
    param: Param<Tensor<2>>,
    fixed: Option<Fixed>,
    /// Packed copy of the parameter, while it does not change.
    packing: Packing,
    /// Updates of the parameter in training.
    updates: Updates,
}

/// Matrix that cannot be trained.
#[derive(Clone, Debug)]
enum Fixed {
    Stored(StoredMatrix),
    Quantized(QuantizedWeight),
}

impl Fixed {
    fn tensor(&self, device: &Device) -> Tensor<2> {
        match self {
            Fixed::Stored(matrix) => matrix.tensor(device),
            Fixed::Quantized(matrix) => matrix.tensor(device),
        }
    }
}

impl From<Param<Tensor<2>>> for Weight {
    fn from(param: Param<Tensor<2>>) -> Weight {
        Weight { param, fixed: None, packing: Packing::default(), updates: Updates::default() }
    }
}

impl Weight {
    /// Wraps a stored matrix, for inference on the CPU.
    pub fn stored(matrix: StoredMatrix) -> Weight {
        Weight::fixed(matrix.dims(), Fixed::Stored(matrix))
    }

    /// Wraps a quantised matrix, for inference on the CPU.
    pub fn quantized(matrix: QuantizedWeight) -> Weight {
        Weight::fixed(matrix.dims(), Fixed::Quantized(matrix))
    }

    fn fixed(shape: [usize; 2], matrix: Fixed) -> Weight {
        let blank = Tensor::<1>::zeros([1], &Device::flex()).expand(shape);
        let param = Param::initialized(ParamId::new(), blank);
        let (packing, updates) = Default::default();
        Weight { param, fixed: Some(matrix), packing, updates }
    }

    /// Whether a device supports stored weights: the kernels run on it and it is not an autodiff
    /// device.
    pub fn can_be_stored(device: &Device) -> bool {
        !device.is_autodiff() && backend::fused(&Tensor::<1>::zeros([1], device))
    }

    /// Returns the numbers of rows and columns.
    pub fn dims(&self) -> [usize; 2] {
        self.param.dims()
    }

    /// Returns the device.
    pub fn device(&self) -> Device {
        self.param.device()
    }

    /// Returns the parameter; `None` if the matrix cannot be trained.
    pub fn param(&self) -> Option<&Param<Tensor<2>>> {
        self.fixed.is_none().then_some(&self.param)
    }

    /// Adds an update, or replaces that of the same columns.
    ///
    /// # Panics
    /// If the matrix cannot be trained, the update has other sizes, or it overlaps with another one.
    pub fn update(&mut self, update: LowRank) {
        let ([inputs, outputs], LowRank { a, b, columns, .. }) = (self.dims(), &update);
        let ([a_inputs, rank], [b_rank, wide]) = (a.dims(), b.dims());
        assert!(
            a_inputs == inputs
                && rank == b_rank
                && wide == columns.len()
                && columns.end <= outputs
                && self.fixed.is_none(),
            "update: A [{a_inputs}, {rank}] and B [{b_rank}, {wide}] of the columns {columns:?}, \
             for a weight [{inputs}, {outputs}] in training"
        );
        self.updates.set(update);
    }

    /// Returns the updates, in the order of their columns.
    pub fn updates(&self) -> &[LowRank] {
        self.updates.all()
    }

    /// Returns the stored matrix, if it is one.
    pub fn as_stored(&self) -> Option<&StoredMatrix> {
        match &self.fixed {
            Some(Fixed::Stored(matrix)) => Some(matrix),
            _ => None,
        }
    }

    /// Returns the quantised matrix, if it is one.
    pub fn as_quantized(&self) -> Option<&QuantizedWeight> {
        match &self.fixed {
            Some(Fixed::Quantized(matrix)) => Some(matrix),
            _ => None,
        }
    }

    /// Returns the values in single precision, without updates. A matrix that is not a parameter is
    /// converted on every call.
    pub fn val(&self) -> Tensor<2> {
        match &self.fixed {
            Some(fixed) => fixed.tensor(&self.device()),
            None => self.param.val(),
        }
    }

    /// Computes `f(x·W + b)`. While no gradient is needed, a parameter is kept packed.
    ///
    /// # Shapes
    /// `x: […, I]`, `W: [I, O]`, `bias: [O]` → `[…, O]`
    pub fn linear<const D: usize>(
        &self,
        x: Tensor<D>,
        bias: Option<Tensor<1>>,
        activation: Activation,
    ) -> Tensor<D> {
        match &self.fixed {
            Some(Fixed::Stored(w)) => ops::stored_linear(x, w, bias, activation, true),
            Some(Fixed::Quantized(w)) => ops::quantized_linear(x, w, bias, activation),
            None if self.updates.is_empty() => {
                ops::linear_packed(x, self.param.val(), bias, activation, &self.packing)
            }
            None => {
                let (w, plain) = (self.param.val(), Activation::Identity);
                let y = ops::linear_packed(x.clone(), w, bias, plain, &self.packing);
                let y = self.updates.add(x, y);
                if activation == plain { y } else { activate(y, activation) }
            }
        }
    }

    /// Computes `x·Wᵀ + b`: the logits of tied embeddings, for instance.
    ///
    /// # Shapes
    /// `x: […, M]`, `W: [V, M]`, `bias: [V]` → `[…, V]`
    pub fn scores<const D: usize>(&self, x: Tensor<D>, bias: Option<Tensor<1>>) -> Tensor<D> {
        let plain = Activation::Identity;
        match &self.fixed {
            Some(Fixed::Stored(w)) => ops::stored_linear(x, &w.transpose(), bias, plain, false),
            Some(Fixed::Quantized(w)) => ops::quantized_linear(x, &w.transpose(), bias, plain),
            None => {
                let table = self.param.val().transpose();
                ops::linear_packed(x, table, bias, plain, &self.packing)
            }
        }
    }

    /// Looks up rows of an embedding table. The row of the id `padding` receives no gradient.
    ///
    /// # Shapes
    /// `ids: [B, T]`, `W: [V, M]` → `[B, T, M]`
    pub fn rows(&self, ids: Tensor<2, Int>, padding: Option<i64>) -> Tensor<3> {
        match &self.fixed {
            Some(Fixed::Stored(table)) => ops::stored_embedding(table, ids),
            Some(Fixed::Quantized(table)) => ops::quantized_embedding(table, ids),
            None => ops::embedding(self.param.val(), ids, padding),
        }
    }

    /// Plans a use of the weight on slices.
    ///
    /// # Panics
    /// If the weight is not on the CPU in single precision.
    pub(crate) fn plan(&self, using: WeightUse) -> PlannedWeight {
        let turned = using == WeightUse::Scores;
        match &self.fixed {
            Some(Fixed::Stored(w)) => {
                let (w, kept) = if turned { (w.transpose(), false) } else { (w.clone(), true) };
                PlannedWeight::stored(w, kept)
            }
            Some(Fixed::Quantized(w)) => {
                let w = if turned { w.transpose() } else { w.clone() };
                PlannedWeight::quantized(w, using != WeightUse::Rows)
            }
            None => {
                let w = self.param.val();
                let w = if turned { w.transpose() } else { w };
                PlannedWeight::single(w, self.packing.clone())
            }
        }
    }

    /// As a parameter on a device, with its updates.
    fn trained(self, device: &Device) -> (Param<Tensor<2>>, Updates) {
        match self.fixed {
            Some(fixed) => (Param::from_tensor(fixed.tensor(device)), Updates::default()),
            None => (self.param, self.updates),
        }
    }

    /// Of a parameter and its updates, each changed by `change`.
    fn changed(
        (param, updates): (Param<Tensor<2>>, Updates),
        change: impl Fn(Param<Tensor<2>>) -> Param<Tensor<2>>,
    ) -> Weight {
        Weight { updates: updates.with(&change), ..change(param).into() }
    }
}

/// Visited under the name of the field that holds it, like a Burn parameter.
impl Module for Weight {
    fn collect_devices(&self, devices: Devices) -> Devices {
        self.param.collect_devices(devices)
    }

    fn fork(self, device: &Device) -> Weight {
        match self.device() == *device {
            true => {
                let updates = self.updates.with(|param| param.fork(device));
                Weight { param: self.param.fork(device), updates, ..self }
            }
            false => Weight::changed(self.trained(device), |param| param.fork(device)),
        }
    }

    fn to_device(self, device: &Device) -> Weight {
        match self.device() == *device {
            true => self,
            false => Weight::changed(self.trained(device), |param| param.to_device(device)),
        }
    }

    fn train(self) -> Weight {
        let device = self.device();
        Weight::changed(self.trained(&device), Module::train)
    }

    fn valid(&self) -> Weight {
        let param = self.param.valid();
        if self.updates.is_empty() {
            return Weight { param, ..self.clone() };
        }
        let updates = self.updates.clone().with(|param| param.valid());
        Param::from_tensor(updates.merged(param.val())).into()
    }

    fn materialize(self) -> Weight {
        let updates = self.updates.with(Module::materialize);
        Weight { param: self.param.materialize(), updates, ..self }
    }

    fn visit<V: ModuleVisitor>(&self, visitor: &mut V) {
        self.param.visit(visitor);
        self.updates.visit(visitor);
    }

    fn map<M: ModuleMapper>(self, mapper: &mut M) -> Weight {
        let param = Module::map(self.param, mapper);
        Weight { param, updates: self.updates.map(mapper), ..self }
    }
}

impl ModuleDisplayDefault for Weight {
    fn content(&self, content: Content) -> Option<Content> {
        self.param.content(content)
    }
}

impl ModuleDisplay for Weight {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::{Linear, LinearConfig};
    use crate::ops::StoredRows;
    use crate::{AdamW, AdamWConfig, Init};
    use regard_kernels::storage::StorageType;

    fn stored([rows, width]: [usize; 2]) -> StoredMatrix {
        let floats: Vec<f32> = (0..rows * width).map(|i| i as f32 / 8.0).collect();
        let rows = StoredRows { kind: StorageType::F32, bytes: floats.into(), rows };
        StoredMatrix::new(vec![rows], width).unwrap()
    }

    #[test]
    fn a_stored_weight_counts_as_a_parameter_and_trains_as_one() {
        let mut layer = LinearConfig::new(3, 2).init(&mut Init::new(1, &Device::flex()));
        let trained = layer.clone().train();
        layer.weight = Weight::stored(stored([2, 3]).transpose());
        assert_eq!((Module::num_params(&layer), layer.weight.dims()), (8, [3, 2]));
        let valid = layer.valid();
        assert!(valid.weight.as_stored().is_some() && valid.weight.param().is_none());
        let again: Linear = layer.train();
        assert!(again.weight.param().is_some_and(|param| param.val().is_require_grad()));
        let numbers =
            |layer: &Linear| layer.weight.val().into_data().try_into_vec::<f32>().unwrap();
        assert_eq!(numbers(&again), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0].map(|x| x / 8.0));
        // Its parameter path is the field's name.
        for layer in [again, trained] {
            let x = Tensor::<2>::ones([1, 3], &Device::flex().autodiff());
            let mut adamw = AdamW::new(AdamWConfig::default());
            let loss = layer.forward(x).sum();
            adamw.step(0.1, layer, loss.backward());
            assert!(adamw.state().moments.keys().eq(["bias", "weight"]));
        }
    }
}
