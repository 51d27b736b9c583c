//! AdamW against PyTorch, and a run that was resumed against one that never stopped.

use crate::close::numbers;
use crate::goldens::{Case, adamw};
use burn::module::{Module, Param};
use burn::tensor::{Device, Gradients, Tensor, TensorData};
use regard_attention::layers::{FeedForward, FeedForwardConfig};
use regard_attention::{AdamW, AdamWConfig, Init, Mode};

#[derive(Module, Debug)]
struct Two {
    matrix: Param<Tensor<2>>,
    vector: Param<Tensor<1>>,
}

/// Gradients that are the given numbers: of `Σ p·g`.
fn gradients(two: &Two, given: &[f32]) -> Gradients {
    let (matrix, vector) = (two.matrix.val(), two.vector.val());
    let n = matrix.shape().num_elements();
    let device = matrix.device();
    let of = |from: usize, to: usize| given[from..to].to_vec();
    let g0 = Tensor::<2>::from_data(TensorData::new(of(0, n), matrix.shape()), &device);
    let g1 = Tensor::<1>::from_data(TensorData::new(of(n, given.len()), vector.shape()), &device);
    ((matrix * g0).sum() + (vector * g1).sum()).backward()
}

#[test]
fn ten_steps_as_pytorch() {
    for value in adamw().as_array().unwrap() {
        let (case, device) = (Case::of(value), Device::flex().autodiff());
        let mut two =
            Two { matrix: case.parameter("p0", &device), vector: case.parameter("p1", &device) };
        let option = |name: &str| value["options"][name].as_f64().map(|x| x as f32);
        let mut adamw = AdamW::new(AdamWConfig {
            beta1: option("beta1").unwrap(),
            beta2: option("beta2").unwrap(),
            eps: option("eps").unwrap(),
            weight_decay: value["options"]["decays"][0].as_f64().unwrap() as f32,
            max_norm: option("max_norm"),
            ..AdamWConfig::default()
        });
        let norms = case.rows("norms", 1);
        for (step, given) in case.rows("gradients", 29).iter().enumerate() {
            let grads = gradients(&two, given);
            two = adamw.step(f64::from(option("lr").unwrap()), two, grads);
            assert!((adamw.norm() - norms[step][0]).abs() < 1e-4 * norms[step][0]);
        }
        case.same("end0", two.matrix.val(), 1e-6);
        case.same("end1", two.vector.val(), 1e-6);
        assert!(two.matrix.val().is_require_grad());
    }
}

fn step(adamw: &mut AdamW, layer: FeedForward, at: u64) -> FeedForward {
    let device = Device::flex().autodiff();
    let x = Init::new(100 + at, &device).normal([3, 4], 1.0).val().detach();
    let mode = Mode::Train { seed: 1, step: at };
    let loss = layer.forward(x, mode).powf_scalar(2.0).sum();
    adamw.step(0.01, layer, loss.backward())
}

fn everything(layer: &FeedForward) -> Vec<f64> {
    let bias = |x: &Option<Param<Tensor<1>>>| numbers(x.as_ref().unwrap().val());
    [
        numbers(layer.up.weight.val()),
        bias(&layer.up.bias),
        numbers(layer.down.weight.val()),
        bias(&layer.down.bias),
    ]
    .concat()
}

#[test]
fn resumed_is_never_stopped() {
    let device = Device::flex().autodiff();
    let config = FeedForwardConfig { dropout: 0.5, ..FeedForwardConfig::new(4) };
    let fresh = || config.init(&mut Init::new(3, &device));
    let mut whole = fresh();
    let mut adamw = AdamW::new(AdamWConfig::default());
    for at in 0..6 {
        whole = step(&mut adamw, whole, at);
    }
    let mut half = fresh();
    let mut adamw = AdamW::new(AdamWConfig::default());
    for at in 0..3 {
        half = step(&mut adamw, half, at);
    }
    let (record, state) = (half.into_record(), adamw.state().clone());
    assert_eq!(state.step, 3);
    assert!(state.moments.contains_key("up.weight"), "{:?}", state.moments.keys());
    let mut resumed = fresh().load_record(record);
    let mut adamw = AdamW::resume(AdamWConfig::default(), state);
    for at in 3..6 {
        resumed = step(&mut adamw, resumed, at);
    }
    assert_eq!(everything(&whole), everything(&resumed));
}

#[test]
fn a_gradient_that_is_not_finite_changes_nothing() {
    let device = Device::flex().autodiff();
    let two = Two {
        matrix: Init::new(0, &device).normal([3, 4], 1.0),
        vector: Init::new(1, &device).normal([17], 1.0),
    };
    let before = numbers(two.matrix.val());
    let mut given = vec![1.0; 29];
    given[5] = f32::NAN;
    let grads = gradients(&two, &given);
    let mut adamw = AdamW::new(AdamWConfig::default());
    let two = adamw.step(0.1, two, grads);
    assert!(!adamw.norm().is_finite() && adamw.state().step == 0);
    assert_eq!(numbers(two.matrix.val()), before);
}
