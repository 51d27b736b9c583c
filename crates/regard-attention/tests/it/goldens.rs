//! Layers against PyTorch: tensors that `fixtures/make` wrote.

use crate::close::{close, numbers};
use burn::module::Param;
use burn::tensor::{Device, Int, Tensor, TensorData};
use regard_attention::layers::*;
use regard_attention::mask::{causal, lengths};
use regard_attention::ops::{self, Activation, Cell, CrossEntropy, NormKind};
use regard_attention::{Attention, Init, Mode};
use serde_json::Value;

pub fn read(file: &str) -> Value {
    let path = format!("{}/../../fixtures/{file}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    serde_json::from_str(&text).unwrap()
}

/// The tensors of one case.
pub struct Case<'a>(pub &'a Value);

impl Case<'_> {
    pub fn has(&self, name: &str) -> bool {
        self.0.get(name).is_some()
    }

    pub fn numbers(&self, name: &str) -> Vec<f64> {
        let data = self.0[name]["data"].as_array().unwrap_or_else(|| panic!("no {name}"));
        data.iter().map(|x| x.as_f64().unwrap()).collect()
    }

    pub fn tensor<const D: usize>(&self, name: &str, device: &Device) -> Tensor<D> {
        let shape: Vec<usize> = self.0[name]["shape"]
            .as_array()
            .unwrap()
            .iter()
            .map(|x| x.as_u64().unwrap() as usize)
            .collect();
        let values: Vec<f32> = self.numbers(name).iter().map(|x| *x as f32).collect();
        Tensor::from_data(TensorData::new(values, shape), device)
    }

    pub fn leaf<const D: usize>(&self, name: &str, device: &Device) -> Tensor<D> {
        self.tensor::<D>(name, device).require_grad()
    }

    pub fn check<const D: usize>(&self, name: &str, got: Tensor<D>, limit: f64) {
        close(name, &numbers(got), &self.numbers(name), limit);
    }
}

fn device() -> Device {
    Device::flex().autodiff()
}

fn linear(weight: Tensor<2>, bias: Tensor<1>) -> Linear {
    let weight = Param::from_tensor(weight.detach().transpose());
    Linear::new(weight, Some(Param::from_tensor(bias.detach())), Activation::Identity)
}

/// Rows `from..to` of PyTorch's packed projection as a layer.
fn part(case: &Case, device: &Device, from: usize, to: usize) -> Linear {
    let weight: Tensor<2> = case.tensor("in_weight", device);
    let bias: Tensor<1> = case.tensor("in_bias", device);
    let m = weight.dims()[1];
    linear(weight.slice([from..to, 0..m]), bias.narrow(0, from, to - from))
}

#[test]
fn multi_head_attention() {
    for file in ["attention/multi_head_self", "attention/multi_head_cross"] {
        let (value, device) = (read(file), device());
        let case = Case(&value);
        let (x, y): (Tensor<3>, Tensor<3>) = (case.leaf("x", &device), case.leaf("y", &device));
        let (m, h) = (x.dims()[2], case.numbers("heads")[0] as usize);
        let mut layer = CrossAttentionConfig::new(m, h).init(&mut Init::new(0, &device));
        layer.q = part(&case, &device, 0, m);
        layer.kv = part(&case, &device, m, 3 * m);
        layer.out = linear(case.tensor("out_weight", &device), case.tensor("out_bias", &device));
        let attention = match case.has("causal") {
            true => Attention::dot().mask(causal()),
            false => {
                let valid: Vec<i64> = case.numbers("lengths").iter().map(|x| *x as i64).collect();
                Attention::dot().mask(lengths(&valid))
            }
        };
        let out = layer.forward(x.clone(), layer.remember(y.clone()), Call::new(&attention));
        case.check("out", out.clone(), 1e-5);
        let mut tap = Tap::new();
        let call = Call::new(&attention).tap(&mut tap);
        let same = layer.forward(x.clone(), layer.remember(y.clone()), call);
        case.check("out", same, 1e-5);
        case.check("weights", tap.into_weights().unwrap(), 1e-5);
        let grads = (out * case.tensor("dout", &device)).sum().backward();
        case.check("dx", x.grad(&grads).unwrap(), 2e-5);
        case.check("dy", y.grad(&grads).unwrap(), 2e-5);
        let of = |x: &Weight| x.val().grad(&grads).unwrap().transpose();
        let din = Tensor::cat(vec![of(&layer.q.weight), of(&layer.kv.weight)], 0);
        case.check("din_weight", din, 2e-5);
        case.check("dout_weight", of(&layer.out.weight), 2e-5);
        let bias = |l: &Linear| l.bias.as_ref().unwrap().val().grad(&grads).unwrap();
        case.check("dout_bias", bias(&layer.out), 2e-5);
        let din = Tensor::cat(vec![bias(&layer.q), bias(&layer.kv)], 0);
        case.check("din_bias", din, 2e-5);
    }
}

#[test]
fn norms() {
    for value in read("ops/norm").as_array().unwrap() {
        let (case, device) = (Case(&value["tensors"]), device());
        let kind = if value["name"] == "rms" { NormKind::Rms } else { NormKind::Layer };
        let x: Tensor<2> = case.leaf("x", &device);
        let (gamma, beta): (Tensor<1>, Tensor<1>) =
            (case.leaf("gamma", &device), case.leaf("beta", &device));
        let layer = Norm {
            gamma: Param::from_tensor(gamma),
            beta: (kind == NormKind::Layer).then(|| Param::from_tensor(beta)),
            kind,
            eps: value["options"]["eps"].as_f64().unwrap() as f32,
            offset: 0.0,
        };
        let y = layer.forward(x.clone());
        case.check("y", y.clone(), 1e-5);
        let grads = (y * case.tensor("dy", &device)).sum().backward();
        case.check("dx", x.grad(&grads).unwrap(), 1e-5);
        case.check("dgamma", layer.gamma.val().grad(&grads).unwrap(), 1e-5);
        if let Some(beta) = &layer.beta {
            case.check("dbeta", beta.val().grad(&grads).unwrap(), 1e-5);
        }
    }
}

#[test]
fn losses() {
    for value in read("ops/loss").as_array().unwrap() {
        let (case, device) = (Case(&value["tensors"]), device());
        let options = CrossEntropy {
            smoothing: value["options"]["smoothing"].as_f64().unwrap() as f32,
            ignore: value["options"]["ignore"].as_i64(),
        };
        let logits: Tensor<2> = case.leaf("x", &device);
        let targets: Vec<i64> = case.numbers("t").iter().map(|x| *x as i64).collect();
        let n = targets.len();
        let targets = Tensor::<1, Int>::from_data(TensorData::new(targets, [n]), &device);
        let loss = ops::cross_entropy(logits.clone(), targets, options);
        case.check("loss", loss.clone(), 1e-5);
        let scale = value["options"]["dloss"].as_f64().unwrap();
        let grads = (loss * scale).backward();
        case.check("dx", logits.grad(&grads).unwrap(), 1e-5);
    }
}

#[test]
fn losses_of_letters() {
    for value in read("ops/ctc").as_array().unwrap() {
        let (case, device, options) = (Case(&value["tensors"]), device(), &value["options"]);
        let mut said = ops::CtcTargets::new();
        let whole = |value: &Value| value.as_i64().unwrap();
        let rows = options["rows"].as_array().unwrap();
        for (rows, letters) in rows.iter().zip(options["texts"].as_array().unwrap()) {
            let letters: Vec<i64> = letters.as_array().unwrap().iter().map(whole).collect();
            said.push(whole(rows) as usize, &letters);
        }
        let blank = whole(&options["blank"]) as usize;
        let logits: Tensor<2> = case.leaf("x", &device);
        let losses = ops::ctc_loss(logits.clone(), said, ops::Ctc { blank, zero_infinity: false });
        case.check("losses", losses.clone(), 1e-5);
        let grads = (losses * case.tensor("dlosses", &device)).sum().backward();
        case.check("dx", logits.grad(&grads).unwrap(), 1e-5);
    }
}

fn weights(case: &Case, device: &Device, suffix: &str) -> RecurrentWeights {
    let two = |name: &str| Param::from_tensor(case.tensor(&format!("{name}{suffix}"), device));
    let one = |name: &str| Param::from_tensor(case.tensor(&format!("{name}{suffix}"), device));
    RecurrentWeights {
        weight_ih: two("weight_ih_l0").into(),
        weight_hh: two("weight_hh_l0").into(),
        bias_ih: Some(one("bias_ih_l0")),
        bias_hh: Some(one("bias_hh_l0")),
    }
}

#[test]
fn recurrent_layers() {
    for value in read("ops/recurrent").as_array().unwrap() {
        let (case, device) = (Case(&value["tensors"]), device());
        let cell = match value["name"].as_str().unwrap() {
            "rnn" => Cell::Rnn,
            "gru" => Cell::Gru,
            _ => Cell::Lstm,
        };
        let valid = value["options"]["lengths"].as_array().unwrap();
        let valid: Vec<usize> = valid.iter().map(|x| x.as_u64().unwrap() as usize).collect();
        let x: Tensor<3> = case.leaf("x", &device);
        let config = RecurrentConfig {
            bidirectional: true,
            ..RecurrentConfig::new(cell, x.dims()[2], case.tensor::<3>("h0", &device).dims()[2])
        };
        let mut layer = config.init(&mut Init::new(0, &device));
        layer.layers[0].directions =
            vec![weights(&case, &device, ""), weights(&case, &device, "_reverse")];
        let lstm = cell == Cell::Lstm;
        let start =
            LayerStates { h: case.leaf("h0", &device), c: lstm.then(|| case.leaf("c0", &device)) };
        let (y, last) = layer.forward(x.clone(), Some(&start), Some(&valid), Mode::Eval);
        case.check("y", y.clone(), 1e-5);
        case.check("h", last.h.clone(), 1e-5);
        let mut loss = (y * case.tensor("dy", &device)).sum();
        loss = loss + (last.h * case.tensor("dh", &device)).sum();
        if let Some(c) = last.c {
            case.check("c", c.clone(), 1e-5);
            loss = loss + (c * case.tensor("dc", &device)).sum();
        }
        let grads = loss.backward();
        case.check("grad_x", x.grad(&grads).unwrap(), 2e-5);
        case.check("grad_h0", start.h.grad(&grads).unwrap(), 2e-5);
        if let Some(c) = start.c {
            case.check("grad_c0", c.grad(&grads).unwrap(), 2e-5);
        }
        for (direction, suffix) in layer.layers[0].directions.iter().zip(["", "_reverse"]) {
            let name = |name: &str| format!("grad_{name}_l0{suffix}");
            let of = |x: &Weight| x.val().grad(&grads).unwrap();
            case.check(&name("weight_ih"), of(&direction.weight_ih), 2e-5);
            case.check(&name("weight_hh"), of(&direction.weight_hh), 2e-5);
            let of = |x: &Option<Param<Tensor<1>>>| x.as_ref().unwrap().val().grad(&grads).unwrap();
            case.check(&name("bias_ih"), of(&direction.bias_ih), 2e-5);
            case.check(&name("bias_hh"), of(&direction.bias_hh), 2e-5);
        }
    }
}

pub fn adamw() -> Value {
    read("ops/adamw")
}

impl<'a> Case<'a> {
    pub fn of(value: &'a Value) -> Case<'a> {
        Case(&value["tensors"])
    }
    pub fn parameter<const D: usize>(&self, name: &str, device: &Device) -> Param<Tensor<D>> {
        Param::from_tensor(self.tensor(name, device))
    }
    pub fn rows(&self, name: &str, width: usize) -> Vec<Vec<f32>> {
        let all: Vec<f32> = self.numbers(name).iter().map(|x| *x as f32).collect();
        all.chunks(width).map(<[f32]>::to_vec).collect()
    }
    pub fn same<const D: usize>(&self, name: &str, got: Tensor<D>, limit: f64) {
        self.check(name, got, limit);
    }
}

#[test]
fn rotary_frequencies() {
    for value in read("ops/rotary").as_array().unwrap() {
        let (case, options) = (Case(&value["tensors"]), &value["options"]);
        let number = |name: &str| options[name].as_f64();
        let width = number("width").unwrap();
        let factor = number("factor").unwrap_or(1.0);
        let scaling = match options["rope_type"].as_str().unwrap() {
            "linear" => Scaling::Linear { factor },
            "llama3" => Scaling::Llama3 {
                factor,
                low: number("low_freq_factor").unwrap(),
                high: number("high_freq_factor").unwrap(),
                original: number("original_max_position_embeddings").unwrap(),
            },
            _ => Scaling::None,
        };
        let config = RotaryConfig {
            rotary_dim: (width * number("partial_rotary_factor").unwrap_or(1.0)) as usize,
            base: number("rope_theta").unwrap() as f32,
            scaling,
            ..RotaryConfig::new(9, width as usize)
        };
        let rotary = config.init();
        let wanted = case.numbers("frequencies");
        assert_eq!(rotary.angles.frequencies().len(), wanted.len(), "{config:?}");
        for (got, wanted) in rotary.angles.frequencies().iter().zip(wanted) {
            // Theirs are computed in single precision.
            assert!((got - wanted).abs() <= 3e-6 * wanted, "{config:?}: {got}, need {wanted}");
        }
    }
}
