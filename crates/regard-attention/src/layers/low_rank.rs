//! Update of low rank of a frozen weight: `y = x·W + s·(x·A)·B` (LoRA, Hu et al. 2021,
//! arXiv:2106.09685).

use crate::init::{Init, WeightInit};
use crate::ops::{Activation, linear};
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::Tensor;
use std::ops::Range;

/// Update `s·A·B` of some columns of a weight `[I, O]`: of all, or of one of the layers that are
/// packed in it.
#[derive(Clone, Debug)]
pub struct LowRank {
    /// `A`, `[I, r]`: the transpose of PEFT's `lora_A`.
    pub a: Param<Tensor<2>>,
    /// `B`, `[r, columns]`: the transpose of PEFT's `lora_B`.
    pub b: Param<Tensor<2>>,
    /// `s`, the scale.
    pub scale: f32,
    /// Columns of the weight that are updated.
    pub columns: Range<usize>,
}

impl LowRank {
    /// Makes an update that is zero at first: `A` uniform in ±1/√I as in PEFT, `B` of zeros.
    pub fn new(
        inputs: usize,
        columns: Range<usize>,
        rank: usize,
        scale: f32,
        init: &mut Init,
    ) -> LowRank {
        let a = init.weights(inputs, rank, WeightInit::Uniform);
        let b = init.constant([rank, columns.len()], 0.0);
        LowRank { a, b, scale, columns }
    }

    /// Computes `s·(x·A)·B`.
    ///
    /// # Shapes
    /// `x: […, I]` → `[…, columns]`
    fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let narrow = linear(x, self.a.val(), None, Activation::Identity) * self.scale;
        linear(narrow, self.b.val(), None, Activation::Identity)
    }

    /// Calls `f` with a copy whose parameters were changed.
    fn with(self, mut f: impl FnMut(Param<Tensor<2>>) -> Param<Tensor<2>>) -> LowRank {
        let LowRank { a, b, scale, columns } = self;
        LowRank { a: f(a), b: f(b), scale, columns }
    }
}

/// Updates of one weight, in the order of their columns.
#[derive(Clone, Debug, Default)]
pub(super) struct Updates(Vec<LowRank>);

impl Updates {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn all(&self) -> &[LowRank] {
        &self.0
    }

    /// Adds one, or replaces that of the same columns.
    ///
    /// # Panics
    /// If it overlaps with another one.
    pub fn set(&mut self, update: LowRank) {
        self.0.retain(|known| known.columns != update.columns);
        self.0.push(update);
        self.0.sort_by_key(|update| update.columns.start);
        let apart = self.0.windows(2).all(|two| two[0].columns.end <= two[1].columns.start);
        assert!(apart, "low-rank updates of overlapping columns of a weight");
    }

    /// Adds all updates to `y = x·W`.
    ///
    /// # Shapes
    /// `x: […, I]`, `y: […, O]` → `[…, O]`
    pub fn add<const D: usize>(&self, x: Tensor<D>, y: Tensor<D>) -> Tensor<D> {
        let (mut parts, mut at, wide) = (vec![], 0, y.dims()[D - 1]);
        let gap = |width: usize| {
            let mut shape = y.dims();
            shape[D - 1] = width;
            Tensor::<D>::zeros(shape, &y.device())
        };
        for update in &self.0 {
            if update.columns.start > at {
                parts.push(gap(update.columns.start - at));
            }
            parts.push(update.forward(x.clone()));
            at = update.columns.end;
        }
        if at < wide {
            parts.push(gap(wide - at));
        }
        let all = if parts.len() == 1 { parts.remove(0) } else { Tensor::cat(parts, D - 1) };
        y + all
    }

    /// Adds all updates to the weight itself.
    ///
    /// # Shapes
    /// `w: [I, O]` → `[I, O]`
    pub fn merged(&self, mut w: Tensor<2>) -> Tensor<2> {
        let [inputs, _] = w.dims();
        for LowRank { a, b, scale, columns } in &self.0 {
            let update = a.val().matmul(b.val()) * *scale;
            let place = [0..inputs, columns.clone()];
            let part = w.clone().slice(place.clone()) + update;
            w = w.slice_assign(place, part);
        }
        w
    }

    pub fn with(self, mut f: impl FnMut(Param<Tensor<2>>) -> Param<Tensor<2>>) -> Updates {
        Updates(self.0.into_iter().map(|update| update.with(&mut f)).collect())
    }

    /// Visits the parameters as `update_0_a`, `update_0_b` and so on.
    pub fn visit<V: ModuleVisitor>(&self, visitor: &mut V) {
        for (i, update) in self.0.iter().enumerate() {
            for (name, param) in [("a", &update.a), ("b", &update.b)] {
                let name = format!("update_{i}_{name}");
                visitor.enter_module(&name, CONTAINER);
                param.visit(visitor);
                visitor.exit_module(&name, CONTAINER);
            }
        }
    }

    pub fn map<M: ModuleMapper>(self, mapper: &mut M) -> Updates {
        let numbered = self.0.into_iter().enumerate();
        let each = |(i, LowRank { a, b, scale, columns }): (usize, LowRank)| {
            let mut one = |name: &str, param: Param<Tensor<2>>| {
                let name = format!("update_{i}_{name}");
                mapper.enter_module(&name, CONTAINER);
                let param = Module::map(param, mapper);
                mapper.exit_module(&name, CONTAINER);
                param
            };
            LowRank { a: one("a", a), b: one("b", b), scale, columns }
        };
        Updates(numbered.map(each).collect())
    }
}

/// Type of the containing module, as Burn's derived modules name theirs.
const CONTAINER: &str = "Struct:Weight";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::{Linear, LinearConfig};
    use crate::{AdamW, AdamWConfig};
    use burn::tensor::Device;

    fn numbers<const D: usize>(x: Tensor<D>) -> Vec<f32> {
        x.into_data().try_into_vec().unwrap()
    }

    /// A frozen layer of 6 outputs with updates of the columns 1..3 and 5..6.
    fn updated(activation: Activation) -> Linear {
        let device = Device::flex().autodiff();
        let init = &mut Init::new(3, &device);
        let config = LinearConfig { activation, ..LinearConfig::new(4, 6) };
        let mut layer = config.init(init).no_grad();
        for columns in [5..6, 1..3] {
            let mut update = LowRank::new(4, columns.clone(), 2, 0.5, init);
            update.b = init.uniform([2, columns.len()], 1.0);
            layer.weight.update(update);
        }
        layer
    }

    #[test]
    fn an_update_beside_the_weight_is_one_in_the_weight() {
        let x = Init::new(8, &Device::flex()).normal([2, 3, 4], 1.0).val();
        for activation in [Activation::Identity, Activation::Gelu] {
            let layer = updated(activation);
            let beside = numbers(layer.forward(x.clone().autodiff()));
            let merged = layer.valid();
            assert!(merged.weight.updates().is_empty() && layer.weight.updates().len() == 2);
            let inside = numbers(merged.forward(x.clone()));
            let apart = beside.iter().zip(&inside).map(|(a, b)| (a - b).abs());
            assert!(apart.fold(0f32, f32::max) < 1e-6);
            let plain =
                Linear::new(layer.weight.param().unwrap().clone(), layer.bias.clone(), activation);
            let plain = numbers(plain.valid().forward(x.clone()));
            let changed: Vec<bool> = (0..6).map(|i| plain[i] != inside[i]).collect();
            assert_eq!(changed, [false, true, true, false, false, true]);
        }
    }

    /// Only the updates have gradients, moments and changes.
    #[test]
    fn a_step_changes_updates_and_nothing_else() {
        let layer = updated(Activation::Identity);
        let base = numbers(layer.weight.param().unwrap().val());
        let b = numbers(layer.weight.updates()[0].b.val());
        let x = Tensor::<2>::ones([3, 4], &Device::flex().autodiff());
        let mut adamw = AdamW::new(AdamWConfig::default());
        let grads = layer.forward(x).sum().backward();
        let layer = adamw.step(0.1, layer, grads);
        let names: Vec<&str> = adamw.state().moments.keys().map(String::as_str).collect();
        let all = ["0_a", "0_b", "1_a", "1_b"].map(|end| format!("weight.update_{end}"));
        assert_eq!(names, all);
        assert!(adamw.without_gradient().is_empty(), "{:?}", adamw.without_gradient());
        assert_eq!(numbers(layer.weight.param().unwrap().val()), base);
        assert_ne!(numbers(layer.weight.updates()[0].b.val()), b);
    }
}
