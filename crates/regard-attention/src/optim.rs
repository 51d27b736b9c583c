//! AdamW (Loshchilov and Hutter 2019) over all parameters of a module at once, with clipping by
//! the global norm.
//!
//! With `g` the gradient after clipping and `t` the step, counted from 1:
//!
//! ```text
//! p ← p·(1 − lr·decay)
//! m ← β₁·m + (1 − β₁)·g
//! v ← β₂·v + (1 − β₂)·g²
//! p ← p − lr/(1 − β₁ᵗ) · m / (√v/√(1 − β₂ᵗ) + ε)
//! ```

use crate::backend::{ok, on_cpu};
use burn::backend::{Flex, TensorMetadata};
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{DType, Gradients, Tensor, TensorData};
use burn_flex::FlexTensor;
use regard_kernels::ops::adamw;
use std::collections::{BTreeMap, VecDeque};

/// Parameters that weight decay applies to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Decay {
    /// Parameters with two or more axes: neither biases nor norms.
    #[default]
    Matrices,
    /// All parameters, as PyTorch does by default.
    All,
}

/// Configuration of [`AdamW`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamWConfig {
    /// `β₁`, the decay of the first moment. Default 0.9.
    pub beta1: f32,
    /// `β₂`, the decay of the second moment. Default 0.999.
    pub beta2: f32,
    /// `ε`, added to the denominator. Default 1e-8.
    pub eps: f32,
    /// Weight decay coefficient `decay`. Default 0.01.
    pub weight_decay: f32,
    /// Parameters that weight decay applies to. Default [`Decay::Matrices`].
    pub decay: Decay,
    /// Maximum global norm of the gradients; larger gradients are scaled down to it. `None`, the
    /// default, disables clipping.
    pub max_norm: Option<f32>,
}

impl Default for AdamWConfig {
    fn default() -> AdamWConfig {
        AdamWConfig {
            beta1: 0.9,
            beta2: 0.999,
            eps: 1e-8,
            weight_decay: 0.01,
            decay: Decay::Matrices,
            max_norm: None,
        }
    }
}

/// Optimiser moments of one parameter, in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Moments {
    /// First moment `m`.
    pub first: Vec<f32>,
    /// Second moment `v`.
    pub second: Vec<f32>,
}

/// State of [`AdamW`], keyed by the parameters' paths in the module. A run resumed from it
/// continues bit for bit as if it had never stopped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AdamWState {
    /// Number of steps taken.
    pub step: u64,
    /// Moments by parameter path, such as `layers.0.up.weight`.
    pub moments: BTreeMap<String, Moments>,
}

/// AdamW with clipping by the global norm.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use regard_attention::{AdamW, AdamWConfig, Init, layers::LinearConfig};
///
/// let device = Device::flex().autodiff();
/// let layer = LinearConfig::new(3, 1).init(&mut Init::new(0, &device));
/// let mut adamw = AdamW::new(AdamWConfig::default());
/// let loss = layer.forward(Tensor::<2>::ones([1, 3], &device)).sum();
/// let before = layer.weight.val();
/// let layer = adamw.step(0.1, layer, loss.backward());
/// let change = (before - layer.weight.val()).to_data().try_to_vec::<f32>().unwrap();
/// assert!(change.iter().all(|x| (*x - 0.1).abs() < 1e-2));
/// ```
#[derive(Clone, Debug)]
pub struct AdamW {
    config: AdamWConfig,
    state: AdamWState,
    norm: f32,
    /// Accumulated gradients of earlier parts of the batch, by path.
    gathered: BTreeMap<String, Vec<f32>>,
    without: Vec<String>,
}

impl AdamW {
    /// Creates an optimiser before its first step.
    pub fn new(config: AdamWConfig) -> AdamW {
        AdamW::resume(config, AdamWState::default())
    }

    /// Creates an optimiser that continues from a saved state.
    pub fn resume(config: AdamWConfig, state: AdamWState) -> AdamW {
        AdamW { config, state, norm: 0.0, gathered: BTreeMap::new(), without: vec![] }
    }

    /// Returns the state to save, for [`AdamW::resume`].
    pub fn state(&self) -> &AdamWState {
        &self.state
    }

    /// Returns the global norm of the gradients in the last step, before clipping. If it was not
    /// finite, that step changed nothing.
    pub fn norm(&self) -> f32 {
        self.norm
    }

    /// Returns the paths of the parameters that received no gradient in the last step and so did
    /// not change.
    pub fn without_gradient(&self) -> &[String] {
        &self.without
    }

    /// Accumulates the gradients of a part of a batch; the next step adds them to its own.
    pub fn accumulate<M: Module>(&mut self, module: &M, grads: Gradients) {
        module.visit(&mut Gather { grads, path: vec![], into: &mut self.gathered });
    }

    /// Updates all parameters that have a gradient, with the learning rate `lr`. Those that require
    /// none stay as they are.
    pub fn step<M: Module>(&mut self, lr: f64, module: M, grads: Gradients) -> M {
        let gathered = std::mem::take(&mut self.gathered);
        let mut take =
            Take { grads, gathered, path: vec![], taken: VecDeque::new(), without: vec![] };
        let module = module.map(&mut take);
        self.without = take.without;
        let mut taken = take.taken;
        let AdamWConfig { beta1, beta2, eps, weight_decay, decay, max_norm } = self.config;
        self.state.step += 1;
        let mut moments: Vec<Moments> = vec![];
        for one in &taken {
            let len = one.gradient.shape().num_elements();
            let found = self.state.moments.remove(&one.path);
            let found =
                found.unwrap_or_else(|| Moments { first: vec![0.0; len], second: vec![0.0; len] });
            assert_eq!(
                found.first.len(),
                len,
                "adamw: {} has {len} elements, its moments have {}",
                one.path,
                found.first.len()
            );
            moments.push(found);
        }
        let mut tensors: Vec<adamw::Tensor> = vec![];
        for (one, Moments { first, second }) in taken.iter_mut().zip(&mut moments) {
            let decays = decay == Decay::All || one.gradient.shape().num_dims() > 1;
            tensors.push(adamw::Tensor {
                value: one.value.storage_mut(),
                gradient: one.gradient.as_slice().expect("made contiguous"),
                first,
                second,
                decay: if decays { weight_decay } else { 0.0 },
            });
        }
        let kernel = adamw::AdamW { lr: lr as f32, beta1, beta2, eps, max_norm };
        self.norm = ok(kernel.step(self.state.step, &mut tensors));
        if !self.norm.is_finite() {
            self.state.step -= 1;
        }
        drop(tensors);
        for (one, moments) in taken.iter().zip(moments) {
            self.state.moments.insert(one.path.clone(), moments);
        }
        module.map(&mut Put { path: vec![], taken })
    }
}

struct Taken {
    path: String,
    value: FlexTensor,
    gradient: FlexTensor,
}

/// Takes each parameter that has a gradient out of the module, so that its memory has one owner and
/// can be updated in place.
struct Take {
    grads: Gradients,
    gathered: BTreeMap<String, Vec<f32>>,
    path: Vec<String>,
    taken: VecDeque<Taken>,
    without: Vec<String>,
}

/// Adds gradients to those accumulated from earlier parts of the batch.
struct Gather<'a> {
    grads: Gradients,
    path: Vec<String>,
    into: &'a mut BTreeMap<String, Vec<f32>>,
}

fn add(to: &mut [f32], from: &[f32]) {
    assert_eq!(to.len(), from.len(), "adamw: a parameter changed its size within a batch");
    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
}

impl ModuleVisitor for Gather<'_> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_string());
    }
    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(gradient) = param.val().grad_remove(&mut self.grads) else { return };
        let gradient = on_cpu(gradient);
        let numbers: &[f32] = gradient.as_slice().expect("made contiguous");
        match self.into.get_mut(&self.path.join(".")) {
            Some(sum) => add(sum, numbers),
            None => {
                self.into.insert(self.path.join("."), numbers.to_vec());
            }
        }
    }
}

/// Puts the updated parameters back into the module.
struct Put {
    path: Vec<String>,
    taken: VecDeque<Taken>,
}

/// The tensor in memory that it does not share, so that a step may update it in place.
fn alone(x: FlexTensor) -> FlexTensor {
    let whole = x.bytes().len() == 4 * x.shape().num_elements();
    if whole { x } else { FlexTensor::from_data(x.into_data()) }
}

impl ModuleMapper for Take {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_string());
    }
    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if !param.val().is_require_grad() {
            // It is frozen.
            return param;
        }
        let path = self.path.join(".");
        let gathered = self.gathered.remove(&path);
        let gradient = match (param.val().grad_remove(&mut self.grads), gathered) {
            (Some(last), None) => on_cpu(last),
            (None, None) => {
                self.without.push(path);
                return param;
            }
            (last, Some(mut sum)) => {
                if let Some(last) = last {
                    add(&mut sum, on_cpu(last).as_slice().expect("made contiguous"));
                }
                FlexTensor::from_data(TensorData::new(sum, param.dims()))
            }
        };
        let (id, value, mapper) = param.consume();
        let device = value.device();
        let left = Tensor::<D>::empty([0; D], &device);
        self.taken.push_back(Taken { path, value: alone(on_cpu(value)), gradient });
        Param::from_mapped_value(id, left, mapper)
    }
}

impl ModuleMapper for Put {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_string());
    }
    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let next = self.taken.front().is_some_and(|one| one.path == self.path.join("."));
        if !next {
            return param;
        }
        let Taken { value, .. } = self.taken.pop_front().expect("it was just seen");
        let (id, left, mapper) = param.consume();
        let (device, dtype) = (left.device(), left.dtype());
        let on_flex = crate::backend::fused(&left);
        let value = match on_flex {
            true => Tensor::<D>::from_primitive::<Flex>(value),
            false => {
                let data: TensorData = value.into_data();
                Tensor::from_data(data.convert_dtype(dtype), &device.inner())
            }
        };
        debug_assert!(dtype != DType::F32 || value.dtype() == DType::F32);
        Param::from_mapped_value(id, value.autodiff().require_grad(), mapper)
    }
}
