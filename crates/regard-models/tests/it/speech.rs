//! Speech models: whole sounds and streams, alone and in a batch, saved and loaded, trained.

use burn::tensor::{Device, Int, Tensor};
use regard_attention::ops::{CrossEntropy, Ctc, CtcTargets, cross_entropy, ctc_loss};
use regard_attention::{AdamW, AdamWConfig, Mode};
use regard_models::speech::{Sounds, Speech};
use regard_models::{Network, zoo};
use serde_json::{Value, json};

const WIDTH: usize = 5;

fn config(changes: Value) -> Value {
    let mut config = json!({
        "model_type": "speech", "feature_size": WIDTH, "num_labels": 4, "hidden_size": 16,
        "num_attention_heads": 2, "intermediate_size": 24, "num_hidden_layers": 3,
        "left_context": 5, "right_context": 2, "pooling_size": 6, "dropout": 0.0,
    });
    for (key, value) in changes.as_object().unwrap() {
        config[key] = value.clone();
    }
    config
}

fn model(changes: Value) -> Speech {
    *zoo::create::<Speech>(&config(changes), 3, &Device::flex()).unwrap()
}

fn rows(seed: u64, count: usize) -> Vec<f32> {
    let number = |i: usize| (i as f32 * 1.7 + (i * i % 101) as f32 + seed as f32).sin() * 1.5;
    (0..count * WIDTH).map(number).collect()
}

fn sounds<'a>(all: impl IntoIterator<Item = &'a Vec<f32>>) -> Sounds {
    let mut sounds = Sounds::new(WIDTH);
    all.into_iter().for_each(|rows| sounds.push(rows));
    sounds
}

fn numbers(x: Tensor<2>) -> Vec<f32> {
    x.to_data().try_to_vec::<f32>().unwrap()
}

fn close(case: &str, got: &[f32], want: &[f32], limit: f32) {
    assert_eq!(got.len(), want.len(), "{case}");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        assert!((got - want).abs() <= limit, "{case}: at {i} got {got}, want {want}");
    }
}

/// Every kind of window there is: front convolutions of odd and even widths, with and without a
/// stride, and frames without context before or after them.
fn kinds() -> Vec<Value> {
    vec![
        json!({}),
        json!({ "head": "ctc", "position_embedding_type": "alibi" }),
        json!({ "conv_kernel": [5, 4, 2], "conv_stride": [2, 1, 2], "right_context": 0 }),
        json!({ "conv_kernel": [1], "conv_stride": [1], "left_context": 0, "head": "ctc" }),
        json!({ "conv_kernel": [4], "conv_stride": [4], "left_context": 0, "right_context": 0 }),
        json!({ "conv_kernel": [3], "conv_stride": [3], "left_context": 90, "right_context": 60 }),
    ]
}

#[test]
fn pieces_are_the_whole() {
    for kind in kinds() {
        let model = model(kind.clone());
        for count in [1, 2, 23, 64] {
            let rows = rows(count as u64, count);
            let whole = model.encode(&sounds([&rows]), Mode::Eval).0;
            for pieces in [vec![1], vec![7], vec![3, 1, 11, 2], vec![64], vec![2, 31]] {
                let (mut hearing, mut heard, mut from) = (model.begin(), vec![], 0);
                for piece in pieces.iter().cycle() {
                    let to = (from + piece).min(count);
                    heard.extend(model.hear(&rows[from * WIDTH..to * WIDTH], &mut hearing, false));
                    from = to;
                    if from == count {
                        break;
                    }
                }
                heard.extend(model.hear(&[], &mut hearing, true));
                let case = format!("{kind} {count} rows in pieces of {pieces:?}");
                let heard = Tensor::cat(heard, 0);
                close(&case, &numbers(heard.clone()), &numbers(whole.clone()), 1e-5);
                let said = model.forward(&sounds([&rows]), Mode::Eval).logits;
                close(&case, &numbers(model.say(heard)), &numbers(said), 1e-5);
            }
        }
    }
}

#[test]
fn what_is_ready_does_not_wait() {
    let model = model(json!({ "conv_kernel": [3, 3], "conv_stride": [2, 2] }));
    let latency = model.settings().latency();
    let (rows, mut hearing) = (rows(1, 200), model.begin());
    let mut said = 0;
    for (i, row) in rows.chunks(WIDTH).enumerate() {
        said += model.hear(row, &mut hearing, false).map_or(0, |x| x.dims()[0]);
        let due = (i + 1).saturating_sub(latency).div_ceil(model.settings().reduction());
        assert!(said >= due, "after {} rows {said} were said, {due} were due", i + 1);
    }
}

#[test]
fn neighbours_change_nothing() {
    for kind in kinds() {
        let model = model(kind.clone());
        let all = [rows(1, 9), rows(2, 40), rows(3, 1), rows(4, 17)];
        let (together, lengths) = model.encode(&sounds(&all), Mode::Eval);
        let together = numbers(together);
        let mut first = 0;
        for (sound, length) in all.iter().zip(lengths.lengths()) {
            let alone = numbers(model.encode(&sounds([sound]), Mode::Eval).0);
            let width = alone.len() / length;
            let case = kind.to_string();
            close(&case, &alone, &together[first * width..][..length * width], 1e-5);
            first += length;
        }
    }
}

#[test]
fn saved_is_loaded() {
    for kind in kinds() {
        let model = model(kind);
        let again = zoo::load::<Speech>(&model.config(), model.weights(), &Device::flex()).unwrap();
        let sounds = sounds([&rows(1, 30)]);
        let said = |model: &Speech| numbers(model.forward(&sounds, Mode::Eval).logits);
        assert_eq!(said(&model), said(&again));
    }
    let mut weights = model(json!({})).weights();
    weights.remove("head.bias").unwrap();
    let error =
        zoo::load::<Speech>(&config(json!({ "hidden_size": 32 })), weights, &Device::flex());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("head.bias") && error.contains("convolutions.0.weight"), "{error}");
}

#[test]
fn what_cannot_be_is_turned_down() {
    let error = |changes: Value| {
        zoo::create::<Speech>(&config(changes), 0, &Device::flex()).unwrap_err().to_string()
    };
    for (changes, told) in [
        (json!({ "num_attention_heads": 3 }), "num_attention_heads: got 3, need a divisor"),
        (json!({ "conv_stride": [2] }), "got 2 and 1 values"),
        (json!({ "conv_kernel": [3], "conv_stride": [4] }), "got 3 and 4"),
        (json!({ "conv_kernel": [], "conv_stride": [] }), "got 0 and 0 values"),
        (json!({ "left_context": 1u64 << 30 }), "left_context"),
        (json!({ "dropout": 1.0 }), "dropout: got 1"),
        (json!({ "pooling_size": 1u64 << 40 }), "pooling_size"),
        (json!({ "feature_size": 1 << 24, "conv_kernel": [1024, 3] }), "conv_kernel · inputs"),
        (json!({ "num_labels": 1u64 << 40 }), "num_labels"),
        (json!({ "head": "ctc", "num_labels": 1 }), "id2label"),
        (json!({ "head": "word" }), "word"),
        (json!({ "hidden_act": "sine" }), "hidden_act"),
        (json!({ "model_type": "gpt2" }), "model_type: got \"gpt2\""),
    ] {
        let error = error(changes);
        assert!(error.contains(told), "{error}");
    }
}

/// Every parameter gets a gradient, and a few steps make the loss small: with labels, and with
/// characters whose order depends on time alone.
#[test]
fn it_learns() {
    let device = Device::flex().autodiff();
    let tone = |label: usize, count: usize| -> Vec<f32> {
        (0..count * WIDTH).map(|i| if i % WIDTH == label { 1.5 } else { -0.5 }).collect()
    };
    for head in ["labels", "ctc"] {
        let mut model =
            zoo::create::<Speech>(&config(json!({ "head": head })), 3, &device).unwrap();
        let mut adamw = AdamW::new(AdamWConfig::default());
        let texts = [vec![1, 2], vec![2, 1], vec![3, 1], vec![1, 3]];
        let all: Vec<Vec<f32>> = texts
            .iter()
            .map(|text| text.iter().flat_map(|label| tone(*label as usize, 12)).collect())
            .collect();
        let mut last = f32::INFINITY;
        for step in 0..60 {
            let said = model.forward(&sounds(&all), Mode::Train { seed: 1, step });
            let loss = match head {
                "labels" => {
                    let wanted = Tensor::<1, Int>::from_ints([0, 1, 2, 3], &device);
                    cross_entropy(said.logits, wanted, CrossEntropy::default())
                }
                _ => {
                    let mut wanted = CtcTargets::new();
                    said.lengths.iter().zip(&texts).for_each(|(n, text)| wanted.push(*n, text));
                    ctc_loss(said.logits, wanted, Ctc::default()).mean()
                }
            };
            last = loss.clone().into_scalar::<f32>();
            model.step(&mut adamw, 1e-2, loss.backward());
        }
        assert!(last < 0.1, "{head}: {last}");
    }
}
