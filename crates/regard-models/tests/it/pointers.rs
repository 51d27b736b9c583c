//! Pointer networks.

use crate::batch::{largest_difference, numbers};
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use regard_attention::ops::negative_log_likelihood;
use regard_attention::{AdamW, AdamWConfig, Mode};
use regard_models::pointer::{MARKER, PointerNet, Points};
use regard_models::{Network, zoo};
use serde_json::{Value, json};

/// Every kind of model, with every option.
fn zoo() -> Vec<Value> {
    let base = json!({ "model_type": "pointer-network", "hidden_size": 16, "waves": 2,
        "num_attention_heads": 2, "intermediate_size": 24, "encoder_layers": 2,
        "decoder_layers": 2, "dropout": 0.1 });
    let with = |more: Value| {
        let mut config = base.clone();
        more.as_object().unwrap().iter().for_each(|(key, value)| config[key] = value.clone());
        config
    };
    vec![
        with(json!({})),
        with(json!({ "score": "dot", "choice": "all", "waves": 0 })),
        with(json!({ "encoder": "lstm" })),
        with(json!({ "encoder": "lstm", "score": "dot", "choice": "free" })),
    ]
}

/// Distinct sets of these sizes.
fn sets(sizes: &[usize]) -> Vec<Vec<f32>> {
    let number = |a: usize, i: usize| ((a * 37 + i * 61 + a * i * 13) % 101) as f32 / 101.0;
    let set = |(a, n): (usize, &usize)| (0..2 * n).map(|i| number(a, i)).collect();
    sizes.iter().enumerate().map(set).collect()
}

fn points(sets: &[Vec<f32>]) -> Points {
    let mut points = Points::new(2);
    sets.iter().for_each(|set| points.push(set));
    points
}

fn create(config: &Value) -> PointerNet {
    *zoo::create::<PointerNet>(config, 5, &Device::flex()).unwrap()
}

#[test]
fn weights_are_a_distribution_over_what_may_be_pointed_at() {
    let sets = sets(&[5, 3, 4]);
    let answers = [vec![4, 0, 2, 1, 3], vec![1, 2, 0], vec![3, 0, 1, 2]];
    for config in zoo() {
        let weights = create(&config).forward(&points(&sets), &answers, Mode::Eval);
        assert_eq!(weights.dims(), [3, 6, 6]);
        let weights = numbers(weights);
        for (set, answer) in answers.iter().enumerate() {
            for step in 0..=answer.len() {
                let row = &weights[(set * 6 + step) * 6..][..6];
                assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{config}: {row:?}");
                let behind = &row[answer.len() + 1..];
                assert!(behind.iter().all(|x| *x == 0.0), "{config}: padding in {row:?}");
                if config["choice"] != "free" {
                    let before = answer[..step].iter().map(|at| row[*at as usize + 1]);
                    assert!(before.into_iter().all(|x| x == 0.0), "{config}: twice in {row:?}");
                }
                if config["choice"] == "all" && step < answer.len() {
                    assert_eq!(row[MARKER as usize], 0.0, "{config}: an early end");
                }
            }
        }
    }
}

#[test]
fn steps_are_what_was_taught_all_at_once() {
    let sets = sets(&[4, 3]);
    let answers = [vec![3, 0, 2, 1], vec![1, 2, 0]];
    for config in zoo() {
        let net = create(&config);
        let all = numbers(net.forward(&points(&sets), &answers, Mode::Eval));
        let mut walk = net.walk(&points(&sets));
        let mut at = vec![MARKER, MARKER];
        for step in 0..4 {
            let got = numbers(walk.step(&at));
            for set in 0..2 {
                let wanted = &all[(set * 5 + step) * 5..][..5];
                let difference = largest_difference(&got[set * 5..][..5], wanted);
                assert!(difference < 1e-5, "{config}: step {step} of set {set}: {difference}");
            }
            at = answers.iter().map(|a| a.get(step).map_or(MARKER, |at| at + 1)).collect();
        }
    }
}

#[test]
fn beams_go_on_as_those_they_came_from() {
    let sets = sets(&[4, 5]);
    for config in zoo() {
        let net = create(&config);
        let mut walk = net.walk(&points(&sets));
        walk.step(&[MARKER, MARKER]);
        // Two rows for each set, then only the second set, its rows swapped.
        walk.reorder(&[0, 0, 1, 1]);
        walk.step(&[1, 2, 3, 4]);
        walk.reorder(&[3, 2]);
        let got = numbers(walk.step(&[5, 1]));
        let mut alone = net.walk(&points(&sets[1..]));
        for (row, way) in [[4, 5], [3, 1]].iter().enumerate() {
            alone.step(&[MARKER]);
            way.iter().take(1).for_each(|at| drop(alone.step(&[*at])));
            let wanted = numbers(alone.step(&[way[1]]));
            let difference = largest_difference(&got[row * 6..][..6], &wanted);
            assert!(difference < 1e-5, "{config}: row {row}: {difference}");
            alone = net.walk(&points(&sets[1..]));
        }
    }
}

#[test]
fn attention_takes_points_for_a_set() {
    let set = &sets(&[5])[0];
    let order = [3, 1, 4, 0, 2];
    let turned: Vec<f32> = order.iter().flat_map(|i| [set[2 * i], set[2 * i + 1]]).collect();
    let net = create(&zoo()[0]);
    let read = |set: &Vec<f32>, answer: Vec<u32>| {
        numbers(net.forward(&points(std::slice::from_ref(set)), &[answer], Mode::Eval))
    };
    let (plain, other) = (read(set, vec![3, 4]), read(&turned, vec![0, 2]));
    for step in 0..3 {
        for (to, from) in order.iter().enumerate() {
            let (a, b) = (plain[step * 6 + from + 1], other[step * 6 + to + 1]);
            assert!((a - b).abs() < 1e-5, "step {step}: {a} and {b}");
        }
    }
}

#[test]
fn every_parameter_learns_and_is_saved() {
    let device = Device::flex().autodiff();
    let sets = sets(&[5, 3]);
    let answers = [vec![4, 0, 2, 1, 3], vec![1, 2, 0]];
    for config in zoo() {
        let mut net = zoo::create::<PointerNet>(&config, 5, &device).unwrap();
        let mut adamw = AdamW::new(AdamWConfig::default());
        let mut costs = vec![];
        for step in 1..=40 {
            let mode = Mode::Train { seed: 1, step };
            let weights = net.forward(&points(&sets), &answers, mode);
            let [b, t, s] = weights.dims();
            let wanted: Vec<i64> = vec![5, 1, 3, 2, 4, 0, 2, 3, 1, 0, -1, -1];
            let wanted = Tensor::<1, Int>::from_data(TensorData::new(wanted, [b * t]), &device);
            let cost = negative_log_likelihood(weights.reshape([b * t, s]), wanted, -1);
            costs.push(cost.clone().into_scalar::<f32>());
            net.step(&mut adamw, 1e-2, cost.backward());
            assert!(adamw.without_gradient().is_empty(), "{:?}", adamw.without_gradient());
        }
        assert!(costs[39] < 0.7 * costs[0], "{config}: {costs:?}");
        let frozen = net.valid();
        let again = zoo::load::<PointerNet>(&net.config(), net.weights(), &Device::flex()).unwrap();
        let [a, b] =
            [frozen, *again].map(|net| numbers(net.forward(&points(&sets), &answers, Mode::Eval)));
        assert_eq!(a, b, "{config}");
    }
}

#[test]
fn what_cannot_be_is_turned_down() {
    let rows = [
        (json!({ "num_attention_heads": 3 }), "num_attention_heads: got 3"),
        (json!({ "waves": 30 }), "waves: got 30"),
        (json!({ "input_size": 0 }), "input_size: got 0"),
        (json!({ "hidden_size": 1 << 30 }), "hidden_size"),
        (json!({ "encoder": "lstm", "decoder_layers": 1 }), "decoder_layers: got 1"),
        (json!({ "encoder": "gru" }), "gru"),
        (json!({ "model_type": "marian" }), "pointer-network"),
    ];
    for (more, says) in rows {
        let mut config = zoo()[0].clone();
        more.as_object().unwrap().iter().for_each(|(key, value)| config[key] = value.clone());
        let error =
            zoo::create::<PointerNet>(&config, 0, &Device::flex()).err().unwrap().to_string();
        assert!(error.contains(says), "{more}: {error}");
    }
    let config = &zoo()[0];
    let mut weights = create(config).weights();
    weights.remove("marker");
    let error =
        zoo::load::<PointerNet>(config, weights, &Device::flex()).err().unwrap().to_string();
    assert!(error.contains("marker [1, 16] is missing"), "{error}");
}
