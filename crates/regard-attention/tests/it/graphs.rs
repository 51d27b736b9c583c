//! Attention along edges against PyTorch Geometric.

use crate::close::{USUAL, check, random};
use crate::goldens::{Case, read};
use burn::module::Param;
use burn::tensor::{Device, Tensor};
use regard_attention::layers::{
    GraphAttention, GraphAttentionConfig, GraphEdges, GraphScore, NodeFeatures,
};
use regard_attention::layers::{Linear, LinearConfig};
use regard_attention::ops::{Sparse, sparse_linear};
use regard_attention::{Graph, Init, Mode};
use std::sync::Arc;

fn device() -> Device {
    Device::flex().autodiff()
}

fn linear(case: &Case, name: &str, bias: bool) -> Linear {
    let weight: Tensor<2> = case.tensor(&format!("{name}.weight"), &device());
    let [o, i] = weight.dims();
    let mut layer =
        LinearConfig { bias, ..LinearConfig::new(i, o) }.init(&mut Init::blank(&device()));
    layer.weight = Param::from_tensor(weight.transpose()).into();
    layer.bias = bias.then(|| Param::from_tensor(case.tensor(&format!("{name}.bias"), &device())));
    layer
}

/// `[1, H, D]` as `[H, D]`.
fn heads(case: &Case, name: &str) -> Param<Tensor<2>> {
    Param::from_tensor(case.tensor::<3>(name, &device()).squeeze_dim(0))
}

fn layer(case: &Case, options: &serde_json::Value) -> GraphAttention {
    let v2 = options["kind"] == "gatv2";
    let edge = case.has("edge_attr");
    let config = GraphAttentionConfig {
        concat: options["concat"] == true,
        score: if v2 { GraphScore::Gatv2 } else { GraphScore::Gat },
        ..GraphAttentionConfig::new(1, 1, 1)
    };
    GraphAttention {
        source: linear(case, if v2 { "lin_l" } else { "lin" }, v2),
        target: v2.then(|| linear(case, "lin_r", true)),
        a_source: heads(case, if v2 { "att" } else { "att_src" }),
        a_target: (!v2).then(|| heads(case, "att_dst")),
        edge: edge.then(|| linear(case, "lin_edge", false)),
        a_edge: (edge && !v2).then(|| heads(case, "att_edge")),
        bias: Param::from_tensor(case.tensor("bias", &device())),
        ..config.init(&mut Init::new(0, &device()))
    }
}

#[test]
fn layers_are_those_of_pytorch_geometric() {
    for value in read("graphs/layers").as_array().unwrap() {
        let case = Case(&value["tensors"]);
        let whole = |name: &str| case.numbers(name).iter().map(|x| *x as i64).collect::<Vec<_>>();
        let graph = Graph::new(&whole("indptr"), &whole("indices"));
        let edges = case.has("with_loops").then(|| case.tensor("with_loops", &device()));
        let (layer, along) = (layer(&case, &value["options"]), GraphEdges::new(graph, edges));
        let x: Tensor<2> = case.leaf("x", &device());
        let features = NodeFeatures::from(x.clone());
        let out = layer.forward(&features, &along, Mode::Eval);
        case.check("out", out.clone(), 1e-5);
        let weights: Vec<f64> =
            layer.weights(&features, &along).into_iter().map(f64::from).collect();
        crate::close::close("weights", &weights, &case.numbers("weights"), 1e-5);
        let grads = (out * case.tensor("dout", &device())).sum().backward();
        case.check("dx", x.grad(&grads).unwrap(), 2e-5);
        let v2 = value["options"]["kind"] == "gatv2";
        let mut matrices = vec![(if v2 { "lin_l" } else { "lin" }, &layer.source)];
        matrices.extend(layer.target.iter().map(|target| ("lin_r", target)));
        matrices.extend(layer.edge.iter().map(|edge| ("lin_edge", edge)));
        for (name, linear) in matrices {
            let dw = linear.weight.val().grad(&grads).unwrap().transpose();
            case.check(&format!("d{name}.weight"), dw, 2e-5);
            if let Some(bias) = &linear.bias {
                case.check(&format!("d{name}.bias"), bias.val().grad(&grads).unwrap(), 2e-5);
            }
        }
        let mut vectors = vec![(if v2 { "datt" } else { "datt_src" }, &layer.a_source)];
        vectors.extend(layer.a_target.iter().map(|a| ("datt_dst", a)));
        vectors.extend(layer.a_edge.iter().map(|a| ("datt_edge", a)));
        for (name, a) in vectors {
            case.check(name, a.val().grad(&grads).unwrap(), 2e-5);
        }
        case.check("dbias", layer.bias.val().grad(&grads).unwrap(), 2e-5);
    }
}

#[test]
fn features_that_are_mostly_zeros() {
    let rows: Vec<Vec<u32>> =
        (0..19u32).map(|n| (0..11).filter(|c| (c * 5 + n) % 4 == 0).collect()).collect();
    let x = Arc::new(Sparse::new(&rows, 11).unwrap());
    let values: Arc<Vec<f32>> = Arc::new((0..x.places()).map(|i| (i as f32 * 0.7).sin()).collect());
    check("sparse", &[random(1, &[11, 6])], USUAL, |inputs| {
        sparse_linear(x.clone(), values.clone(), inputs.two(0))
    });
    // The same as a dense product, and the same places dropped by the same step.
    let device = Device::flex();
    let mut dense = vec![0f32; 19 * 11];
    for n in 0..19 {
        for (c, value) in x.row(n).iter().zip(&values[x.range(n)]) {
            dense[n * 11 + *c as usize] = *value;
        }
    }
    let dense = Tensor::<1>::from_floats(&dense[..], &device).reshape([19, 11]);
    let layer = GraphAttentionConfig::new(11, 3, 2).init(&mut Init::new(1, &device));
    let indptr: Vec<i64> = (0..=19).collect();
    let along = GraphEdges::new(Graph::new(&indptr, &indptr[..19]), None);
    let sparse = NodeFeatures::Sparse(x, values);
    let run = |x: &NodeFeatures| crate::close::numbers(layer.forward(x, &along, Mode::Eval));
    crate::close::close("dense", &run(&sparse), &run(&NodeFeatures::from(dense)), 1e-6);
    let mode = Mode::Train { seed: 3, step: 1 };
    let (once, again) = (sparse.dropped(0.5, mode, 7), sparse.dropped(0.5, mode, 7));
    assert_eq!(run(&once), run(&again));
    assert_ne!(run(&once), run(&sparse));
}
