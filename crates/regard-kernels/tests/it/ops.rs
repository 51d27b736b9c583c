//! The operations against golden tensors from PyTorch, made by `fixtures/make/ops.py`.

use regard_kernels::gemm::{Matrix, MatrixMut};
use regard_kernels::ops::activation::Activation;
use regard_kernels::ops::adamw::{self, AdamW};
use regard_kernels::ops::embedding;
use regard_kernels::ops::linear::{self, Linear};
use regard_kernels::ops::loss::{CrossEntropy, LossRows};
use regard_kernels::ops::norm::{self, Norm};
use regard_kernels::ops::recurrent::{self, Cell, CellWeights, Recurrent, State, StateMut, Tape};
use regard_kernels::pool;
use serde_json::Value;

struct Case(Value);

impl Case {
    fn name(&self) -> &str {
        self.0["name"].as_str().unwrap()
    }
    fn option(&self, name: &str) -> &Value {
        &self.0["options"][name]
    }
    fn number(&self, name: &str) -> f32 {
        self.option(name).as_f64().unwrap() as f32
    }
    fn shape(&self, name: &str) -> Vec<usize> {
        let shape = self.0["tensors"][name]["shape"].as_array().unwrap();
        shape.iter().map(|n| n.as_u64().unwrap() as usize).collect()
    }
    fn data(&self, name: &str) -> Vec<f32> {
        let data = self.0["tensors"][name]["data"].as_array();
        let data = data.unwrap_or_else(|| panic!("{}: no tensor {name}", self.name()));
        data.iter().map(|x| x.as_f64().unwrap() as f32).collect()
    }
    fn zeros(&self, name: &str) -> Vec<f32> {
        vec![0.0; self.data(name).len()]
    }

    /// Asserts that a result is the golden one.
    fn check(&self, name: &str, got: &[f32]) {
        self.check_with(name, got, &self.data(name));
    }
    fn check_with(&self, name: &str, got: &[f32], want: &[f32]) {
        assert_eq!(got.len(), want.len(), "{} {name}", self.name());
        for (i, (got, want)) in got.iter().zip(want).enumerate() {
            let limit = 1e-5 + 1e-4 * want.abs();
            let case = self.name();
            assert!((got - want).abs() <= limit, "{case}: {name}[{i}] is {got}, not {want}");
        }
    }
}

fn cases(op: &str) -> Vec<Case> {
    let path = format!("{}/../../fixtures/ops/{op}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let cases: Value = serde_json::from_str(&text).unwrap();
    cases.as_array().unwrap().iter().cloned().map(Case).collect()
}

fn activation(name: &str) -> Activation {
    match name {
        "identity" => Activation::Identity,
        "gelu" => Activation::Gelu,
        "gelu_tanh" => Activation::GeluTanh,
        "relu" => Activation::Relu,
        "silu" => Activation::Silu,
        "tanh" => Activation::Tanh,
        _ => panic!("no activation {name}"),
    }
}

#[test]
fn activations() {
    for case in cases("activation") {
        let f = activation(case.name());
        let (x, mut y, mut dx) = (case.data("x"), case.zeros("y"), case.zeros("dx"));
        f.forward(&x, &mut y).unwrap();
        f.backward(&x, &case.data("dy"), &mut dx).unwrap();
        case.check("y", &y);
        case.check("dx", &dx);
    }
}

#[test]
fn linear_layers() {
    for case in cases("linear") {
        let [x, w, b, dy] = ["x", "w", "b", "dy"].map(|n| case.data(n));
        let (n, i, o) = (case.shape("x")[0], case.shape("x")[1], b.len());
        let weight = Matrix::new(&w, o, i).unwrap().t();
        let layer = Linear { weight, bias: Some(&b), activation: activation(case.name()) };
        let (mut y, mut pre) = (case.zeros("y"), case.zeros("y"));
        let mx = Matrix::new(&x, n, i).unwrap();
        let keep = MatrixMut::new(&mut pre, n, o).unwrap();
        layer.forward(mx, MatrixMut::new(&mut y, n, o).unwrap(), Some(keep)).unwrap();
        case.check("y", &y);
        let [mut dx, mut dw, mut db] = ["dx", "dw", "db"].map(|n| case.zeros(n));
        let to = linear::LinearGradients {
            x: Some(MatrixMut::new(&mut dx, n, i).unwrap()),
            weight: Some(MatrixMut::new(&mut dw, o, i).unwrap().t()),
            bias: Some(&mut db),
        };
        let saved = linear::SavedLinear { x: mx, pre: Some(Matrix::new(&pre, n, o).unwrap()) };
        layer.backward(saved, Matrix::new(&dy, n, o).unwrap(), to).unwrap();
        case.check("dx", &dx);
        case.check("dw", &dw);
        case.check("db", &db);
    }
}

#[test]
fn norms() {
    for case in cases("norm") {
        let layer = case.name() == "layer";
        let [x, gamma, beta, dy] = ["x", "gamma", "beta", "dy"].map(|n| case.data(n));
        let rows = case.shape("x")[0];
        let norm = Norm {
            kind: if layer { norm::NormKind::Layer } else { norm::NormKind::Rms },
            gamma: &gamma,
            beta: layer.then_some(&beta[..]),
            eps: case.number("eps"),
        };
        let mut y = case.zeros("y");
        let (mut mean, mut rstd) = (vec![0.0; rows], vec![0.0; rows]);
        let to = norm::Outputs { y: &mut y, sum: None, mean: &mut mean, rstd: &mut rstd };
        norm.forward(&x, None, to).unwrap();
        case.check("y", &y);
        let [mut dx, mut dgamma, mut dbeta] = ["dx", "dgamma", "dbeta"].map(|n| case.zeros(n));
        let beta = layer.then_some(&mut dbeta[..]);
        let to = norm::NormGradients { x: &mut dx, gamma: &mut dgamma, beta };
        let saved = norm::SavedNorm { x: &x, mean: &mean, rstd: &rstd };
        norm.backward(saved, &dy, None, to).unwrap();
        case.check("dx", &dx);
        case.check("dgamma", &dgamma);
        case.check("dbeta", &dbeta);
    }
}

#[test]
fn losses() {
    for case in cases("loss") {
        let (x, targets) = (case.data("x"), case.data("t"));
        let targets: Vec<i64> = targets.iter().map(|t| *t as i64).collect();
        let loss = CrossEntropy {
            smoothing: case.number("smoothing"),
            ignore: case.option("ignore").as_i64(),
        };
        let rows = LossRows { logits: &x, targets: &targets };
        let (mut lse, mut dx) = (vec![0.0; targets.len()], case.zeros("dx"));
        case.check("loss", &[loss.forward(rows, &mut lse).unwrap().loss]);
        loss.backward(rows, &lse, case.number("dloss"), &mut dx).unwrap();
        case.check("dx", &dx);
    }
}

/// Both directions of a bidirectional layer write into one `[B, T, 2H]`.
#[test]
fn recurrent_layers() {
    for case in cases("recurrent") {
        let cell = match case.name() {
            "rnn" => Cell::Rnn,
            "gru" => Cell::Gru,
            _ => Cell::Lstm,
        };
        let lstm = cell == Cell::Lstm;
        let lengths = case.option("lengths").as_array().unwrap();
        let lengths: Vec<usize> = lengths.iter().map(|n| n.as_u64().unwrap() as usize).collect();
        let [batch, steps, input] = case.shape("x")[..] else { panic!("x has three axes") };
        let hidden = case.shape("h")[2];
        let shape = recurrent::Shape { batch, steps, input, hidden };
        let (x, dy, half) = (case.data("x"), case.data("dy"), batch * hidden);
        let (mut y, mut dx) = (case.zeros("y"), case.zeros("x"));
        for (direction, suffix) in ["", "_reverse"].into_iter().enumerate() {
            let at = direction * half..(direction + 1) * half;
            let name = |part: &str| format!("{part}_l0{suffix}");
            let names = ["weight_ih", "weight_hh", "bias_ih", "bias_hh"].map(name);
            let [wi, wh, bi, bh] = names.each_ref().map(|n| case.data(n));
            let layer = Recurrent {
                cell,
                weights: CellWeights {
                    input: &wi,
                    hidden: &wh,
                    input_bias: Some(&bi),
                    hidden_bias: Some(&bh),
                },
                shape,
                lengths: Some(&lengths),
                reverse: direction == 1,
            };
            let [h0, c0, dh, dc] =
                ["h0", "c0", "dh", "dc"].map(|n| case.data(n)[at.clone()].to_vec());
            let start = State { h: Some(&h0), c: lstm.then_some(&c0[..]) };
            let (mut h, mut c) = (vec![0.0; half], vec![0.0; half]);
            let end = StateMut { h: Some(&mut h), c: lstm.then_some(&mut c[..]) };
            let (rows, strides) = ([batch * steps, hidden], [2 * hidden as isize, 1]);
            let out = MatrixMut::strided(&mut y, rows, strides, direction * hidden).unwrap();
            let mut tape = Tape::default();
            layer.forward(&x, start, out, end, &mut tape).unwrap();
            case.check_with("h", &h, &case.data("h")[at.clone()]);
            case.check_with("c", &c, &case.data("c")[at.clone()]);

            let mut part = case.zeros("x");
            let [mut gwi, mut gwh, mut gbi, mut gbh] = names.each_ref().map(|n| case.zeros(n));
            let (mut gh0, mut gc0) = (vec![0.0; half], vec![0.0; half]);
            let to = recurrent::RecurrentGradients {
                x: Some(&mut part),
                input: Some(&mut gwi),
                hidden: Some(&mut gwh),
                input_bias: Some(&mut gbi),
                hidden_bias: Some(&mut gbh),
                start: StateMut { h: Some(&mut gh0), c: lstm.then_some(&mut gc0[..]) },
            };
            let dy = Matrix::strided(&dy, rows, strides, direction * hidden).unwrap();
            let dend = State { h: Some(&dh), c: lstm.then_some(&dc[..]) };
            let saved = recurrent::SavedRecurrent { x: &x, start, tape: &tape };
            layer.backward(saved, Some(dy), dend, to).unwrap();
            for (name, got) in names.iter().zip([gwi, gwh, gbi, gbh]) {
                case.check(&format!("grad_{name}"), &got);
            }
            case.check_with("grad_h0", &gh0, &case.data("grad_h0")[at.clone()]);
            if lstm {
                case.check_with("grad_c0", &gc0, &case.data("grad_c0")[at]);
            }
            dx.iter_mut().zip(&part).for_each(|(sum, part)| *sum += part);
        }
        case.check("y", &y);
        case.check("grad_x", &dx);
    }
}

#[test]
fn ten_steps_of_adamw() {
    for case in cases("adamw") {
        let optimizer = AdamW {
            lr: case.number("lr"),
            beta1: case.number("beta1"),
            beta2: case.number("beta2"),
            eps: case.number("eps"),
            max_norm: case.option("max_norm").as_f64().map(|n| n as f32),
        };
        let mut values = ["p0", "p1"].map(|n| case.data(n));
        let [mut first, mut second] = [0; 2].map(|_| ["p0", "p1"].map(|n| case.zeros(n)));
        let (gradients, width) = (case.data("gradients"), case.shape("gradients")[1]);
        let mut norms = Vec::new();
        for (step, row) in gradients.chunks(width).enumerate() {
            let (g0, g1) = row.split_at(values[0].len());
            let decays = case.option("decays").as_array().unwrap();
            let all = values.iter_mut().zip(first.iter_mut().zip(&mut second));
            let mut tensors: Vec<_> = all
                .zip([g0, g1])
                .zip(decays)
                .map(|(((value, (first, second)), gradient), decay)| {
                    let decay = decay.as_f64().unwrap() as f32;
                    adamw::Tensor { value, gradient, first, second, decay }
                })
                .collect();
            norms.push(optimizer.step(step as u64 + 1, &mut tensors).unwrap());
        }
        case.check("norms", &norms);
        case.check("end0", &values[0]);
        case.check("end1", &values[1]);
    }
}

/// Products, sums over rows, scattered sums and norms, with one thread and with several.
#[test]
fn the_number_of_threads_changes_nothing() {
    let (n, i, o) = (700, 70, 130);
    let wave = |n: usize, f: f32| (0..n).map(|i| (i as f32 * f).sin()).collect::<Vec<f32>>();
    let (x, w, b) = (wave(n * i, 0.7), wave(i * o, 0.3), wave(o, 0.1));
    let ids: Vec<i64> = (0..n as i64).map(|i| i * i % 37).collect();
    let run = || {
        let weight = Matrix::new(&w, i, o).unwrap();
        let layer = Linear { weight, bias: Some(&b), activation: Activation::Gelu };
        let (mut y, mut pre) = (vec![0.0; n * o], vec![0.0; n * o]);
        let mx = Matrix::new(&x, n, i).unwrap();
        let keep = MatrixMut::new(&mut pre, n, o).unwrap();
        layer.forward(mx, MatrixMut::new(&mut y, n, o).unwrap(), Some(keep)).unwrap();
        let (mut dx, mut dw, mut db) = (vec![0.0; n * i], vec![0.0; i * o], vec![0.0; o]);
        let to = linear::LinearGradients {
            x: Some(MatrixMut::new(&mut dx, n, i).unwrap()),
            weight: Some(MatrixMut::new(&mut dw, i, o).unwrap()),
            bias: Some(&mut db),
        };
        let saved = linear::SavedLinear { x: mx, pre: Some(Matrix::new(&pre, n, o).unwrap()) };
        layer.backward(saved, Matrix::new(&y, n, o).unwrap(), to).unwrap();
        let norm = Norm { kind: norm::NormKind::Layer, gamma: &b, beta: None, eps: 1e-5 };
        let (mut z, mut mean, mut rstd) = (vec![0.0; n * o], vec![0.0; n], vec![0.0; n]);
        let to = norm::Outputs { y: &mut z, sum: None, mean: &mut mean, rstd: &mut rstd };
        norm.forward(&y, None, to).unwrap();
        let (mut dz, mut dgamma) = (vec![0.0; n * o], vec![0.0; o]);
        let saved = norm::SavedNorm { x: &y, mean: &mean, rstd: &rstd };
        let to = norm::NormGradients { x: &mut dz, gamma: &mut dgamma, beta: None };
        norm.backward(saved, &z, None, to).unwrap();
        let mut table = vec![0.0; 37 * o];
        embedding::backward(&ids, &dz, None, o, &mut table).unwrap();
        [y, dx, dw, db, dz, dgamma, table].concat()
    };
    let before = pool::threads();
    let results = [1, 2, 5].map(|threads| {
        pool::set_threads(threads);
        run()
    });
    pool::set_threads(before);
    assert!(results[0] == results[1] && results[0] == results[2]);
}
