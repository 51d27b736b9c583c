//! What layers promise beyond their formulas.

use crate::close::{close, numbers};
use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Int, Tensor};
use regard_attention::layers::*;
use regard_attention::mask::{causal, lengths};
use regard_attention::ops::{Cell, TokenPositions};
use regard_attention::{Attention, Heads, Init, Mode};

pub fn device() -> Device {
    Device::flex().autodiff()
}

pub fn input(seed: u64, shape: [usize; 3]) -> Tensor<3> {
    Init::new(seed, &device()).normal(shape, 1.0).val()
}

fn grouped() -> SelfAttention {
    let config = SelfAttentionConfig {
        heads: Heads { queries: 4, keys: 2 },
        head_width: 6,
        ..SelfAttentionConfig::new(16, 4)
    };
    config.init(&mut Init::new(5, &device()))
}

/// Names of parameters without a gradient.
struct Missing<'a>(&'a Gradients, Vec<String>, Vec<String>);

impl ModuleVisitor for Missing<'_> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.1.push(name.to_string());
    }
    fn exit_module(&mut self, _: &str, _: &str) {
        self.1.pop();
    }
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if param.val().grad(self.0).is_none() {
            self.2.push(self.1.join("."));
        }
    }
}

pub fn all_have_gradients(module: &impl Module, loss: Tensor<1>) {
    let grads = loss.backward();
    let mut missing = Missing(&grads, vec![], vec![]);
    module.visit(&mut missing);
    assert!(missing.2.is_empty(), "no gradient for {:?}", missing.2);
}

#[test]
fn decoding_with_a_cache_is_the_whole_forward() {
    let (layer, rotary) = (grouped(), Rotary::new(200, 6));
    let attention = Attention::dot().mask(causal());
    let (b, t) = (2, 150);
    let x = input(1, [b, t, 16]);
    for rotary in [None, Some(&rotary)] {
        let whole = layer.forward(x.clone(), Call::new(&attention).rotary(rotary));
        let mut cache = KvCache::new();
        let mut parts = vec![];
        let mut from = 0;
        for new in [5, 1, 1, 80, 1, 62] {
            let x = x.clone().slice([0..b, from..from + new, 0..16]);
            let call = Call::new(&attention).rotary(rotary).cache(&mut cache);
            parts.push(layer.forward(x, call));
            from += new;
        }
        assert_eq!(cache.len(), t);
        close("cached", &numbers(Tensor::cat(parts, 1)), &numbers(whole), 1e-5);
    }
}

#[test]
fn a_cache_keeps_the_rows_that_a_beam_selects() {
    let layer = grouped();
    let attention = Attention::dot().mask(causal());
    let x = input(2, [3, 4, 16]);
    let mut cache = KvCache::new();
    layer.forward(x.clone(), Call::new(&attention).cache(&mut cache));
    cache.select(Tensor::<1, Int>::from_ints([2, 2, 0], &device()));
    let next = input(3, [3, 1, 16]);
    let got = layer.forward(next.clone(), Call::new(&attention).cache(&mut cache));
    let order = Tensor::<1, Int>::from_ints([2, 2, 0], &device());
    let all = Tensor::cat(vec![x.select(0, order), next], 1);
    let want = layer.forward(all, Call::new(&attention)).slice([0..3, 4..5, 0..16]);
    close("selected", &numbers(got), &numbers(want), 1e-5);
}

#[test]
fn weights_and_output_belong_together() {
    let layer = grouped();
    let attention = Attention::dot().mask(causal() & lengths(&[7, 3]));
    let x = input(4, [2, 7, 16]);
    let mut tap = Tap::new();
    let y = layer.forward(x.clone(), Call::new(&attention).tap(&mut tap));
    let weights = tap.into_weights().unwrap();
    let whole = layer.forward(x, Call::new(&attention));
    close("with weights", &numbers(y), &numbers(whole), 1e-6);
    assert_eq!(weights.dims(), [2, 4, 7, 7]);
    let sums = numbers(weights.sum_dim(3));
    assert!(sums.iter().all(|sum| (sum - 1.0).abs() < 1e-6));
}

#[test]
fn a_row_does_not_depend_on_its_neighbours() {
    let layer = grouped();
    let x = input(6, [3, 9, 16]);
    let whole = layer.forward(x.clone(), Call::new(&Attention::dot().mask(lengths(&[9, 4, 7]))));
    let alone = x.slice([1..2, 0..9, 0..16]);
    let alone = layer.forward(alone, Call::new(&Attention::dot().mask(lengths(&[4]))));
    assert_eq!(numbers(whole.slice([1..2, 0..9, 0..16])), numbers(alone));
}

#[test]
fn every_parameter_gets_a_gradient() {
    let attention = Attention::dot().mask(causal());
    let train = Mode::Train { seed: 1, step: 2 };
    let init = &mut Init::new(7, &device());
    let x = || input(8, [2, 5, 16]);
    let layer = SelfAttentionConfig { dropout: 0.2, ..SelfAttentionConfig::new(16, 4) }.init(init);
    all_have_gradients(&layer, layer.forward(x(), Call::new(&attention).mode(train)).sum());
    let layer = CrossAttentionConfig::new(16, 4).init(init);
    let y = layer.forward(x(), layer.remember(x()), Call::new(&Attention::dot()).mode(train));
    all_have_gradients(&layer, y.sum());
    let layer = FeedForwardConfig { dropout: 0.1, ..FeedForwardConfig::new(16) }.init(init);
    all_have_gradients(&layer, layer.forward(x(), train).sum());
    let config = AdditiveAttentionConfig { query: 16, key: 16, hidden: 8, dropout: 0.1 };
    let layer = config.init(init);
    let y = layer.forward(x(), layer.keys(x()), x(), lengths(&[5, 2]), train);
    all_have_gradients(&layer, y.sum());
    let config = RecurrentConfig {
        layers: 3,
        bidirectional: true,
        dropout: 0.2,
        ..RecurrentConfig::new(Cell::Lstm, 16, 5)
    };
    let layer = config.init(init);
    let (y, last) = layer.forward(x(), None, Some(&[5, 3]), train);
    assert_eq!((y.dims(), last.h.dims()), ([2, 5, 10], [6, 2, 5]));
    all_have_gradients(&layer, y.sum());
    let layer = LearnedPositions::new(9, 16, 0.02, init);
    all_have_gradients(&layer, layer.forward(x(), 3).sum());
    let layer = RelativeTable::new(4, 2, init);
    let q = x().reshape([2, 5, 4, 4]).swap_dims(1, 2);
    let out = layer.forward(Attention::dot()).attend(q.clone(), q.clone(), q);
    all_have_gradients(&layer, out.sum());
}

#[test]
fn training_is_a_function_of_seed_and_step() {
    let init = &mut Init::new(9, &device());
    let layer = SelfAttentionConfig { dropout: 0.3, ..SelfAttentionConfig::new(16, 4) }.init(init);
    let run = |seed, step| {
        let mode = Mode::Train { seed, step };
        numbers(layer.forward(input(1, [2, 6, 16]), Call::new(&Attention::dot()).mode(mode)))
    };
    assert_eq!(run(1, 1), run(1, 1));
    assert_ne!(run(1, 1), run(1, 2));
    assert_ne!(run(1, 1), run(2, 1));
}

#[test]
fn rotated_scores_depend_on_the_distance_alone() {
    let rotary = Rotary::new(100, 8);
    let (q, k) = (input(1, [1, 1, 8]), input(2, [1, 1, 8]));
    let score = |at: usize, key: usize| {
        let turn =
            |x: &Tensor<3>, at| rotary.forward(x.clone(), 1, &TokenPositions::From(vec![at]));
        let (q, k) = (turn(&q, at), turn(&k, key));
        numbers((q * k).sum())[0]
    };
    assert!((score(7, 3) - score(57, 53)).abs() < 1e-4);
    assert!((score(7, 3) - score(7, 4)).abs() > 1e-4);
}

#[test]
fn padding_rows_begin_and_stay_zero() {
    let config = EmbeddingConfig { padding: Some(2), ..EmbeddingConfig::new(5, 4) };
    let layer = config.init(&mut Init::new(1, &device()));
    assert!(layer.table.val().is_require_grad());
    let y = layer.forward(Tensor::<2, Int>::from_ints([[2, 1]], &device()));
    assert_eq!(numbers(y.clone())[..4], [0.0; 4]);
    let grads = y.sum().backward();
    let grads = numbers(layer.table.val().grad(&grads).unwrap());
    assert!(grads[8..12].iter().all(|x| *x == 0.0) && grads[4..8].iter().all(|x| *x == 1.0));
}
