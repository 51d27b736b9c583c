//! Plans of recurrent decoders against their steps with tensors.

use super::super::Stepwise;
use super::super::writer::walk;
use super::*;
use crate::bahdanau::Bahdanau;
use crate::luong::Luong;
use crate::network::{Definition, Network};
use crate::rnn::Rnn;
use crate::seq2seq::Source;
use burn::tensor::Device;
use regard_attention::quant::Bits;
use regard_attention::{Init, Mode};
use serde_json::{Value, json};

/// Size of the target vocabulary.
const V: usize = 41;

/// A configuration of odd sizes, with some keys of its own.
fn config(own: Value) -> Value {
    let mut json = json!({
        "vocab_size": 43, "decoder_vocab_size": V, "embedding_size": 37, "hidden_size": 35,
    });
    for (key, value) in own.as_object().unwrap() {
        json[key] = value.clone();
    }
    json
}

fn make<M: Definition>(json: &Value) -> M {
    M::make(json, None, &mut Init::new(3, &Device::flex())).unwrap()
}

fn source(rows: &[&[i64]]) -> Source {
    let wide = rows.iter().map(|row| row.len()).max().unwrap();
    let padded = |row: &&[i64]| [row, &vec![0; wide - row.len()][..]].concat();
    let ids: Vec<i64> = rows.iter().flat_map(padded).collect();
    let ids = Tensor::from_data(TensorData::new(ids, [rows.len(), wide]), &Device::flex());
    Source { ids, lengths: rows.iter().map(|row| row.len()).collect() }
}

const SENTENCES: [&[i64]; 3] = [&[3, 8, 13, 18, 23, 28, 33], &[38, 6, 11, 16], &[21]];

fn planned<M: Stepwise>(model: &M, source: &Source) -> Planned {
    let start = model.begin(model.body().encoder.read(source, Mode::Eval));
    Planned::new(model.body(), model.plan().expect("it can be planned"), &start)
}

/// Compares logits over steps with beams, reordering, sentences that end, and different numbers of
/// rows of a sentence. Returns the squared distance as a share of the squared size, and the largest
/// difference.
fn compare<M: Stepwise>(model: &M) -> (f64, f32) {
    let source = source(&SENTENCES);
    let mut plan = planned(model, &source);
    let mut walk = walk(model, model.body().encoder.read(&source, Mode::Eval));
    let orders: [&[usize]; 7] = [
        &[0, 0, 1, 1, 2, 2],
        &[1, 0, 2, 2, 5, 4],
        &[0, 1, 2, 3, 4, 5],
        &[1, 1, 4, 5],
        &[1, 0, 2],
        &[2, 1],
        &[0, 1],
    ];
    let (mut rows, mut got, mut want) = (3, vec![], vec![]);
    let (mut apart, mut size, mut most) = (0.0, 0.0, 0f32);
    for (step, parents) in orders.iter().enumerate() {
        let words: Vec<u32> = (0..rows).map(|r| ((r * 7 + step * 11) % V) as u32).collect();
        assert!(plan.step_slices(&words, &mut got).is_none());
        walk.step_slices(&words, &mut want);
        assert_eq!((got.len(), want.len()), (rows * V, rows * V));
        for (got, want) in got.iter().zip(&want) {
            apart += f64::from(got - want).powi(2);
            size += f64::from(*want).powi(2);
            most = most.max((got - want).abs());
        }
        plan.reorder(parents);
        walk.reorder(parents);
        rows = parents.len();
    }
    (apart / size, most)
}

fn agree<M: Stepwise>(own: Value) {
    let (_, most) = compare(&make::<M>(&config(own.clone())));
    assert!(most < 2e-5, "{own}: {most}");
}

#[test]
fn a_plan_gives_the_logits_of_the_tensors() {
    for cell in ["rnn", "gru", "lstm"] {
        let deep = json!({ "cell": cell, "bidirectional": true, "readout": "deep" });
        let tied = json!({ "cell": cell, "num_layers": 2, "tie_word_embeddings": true });
        for own in [deep, tied] {
            agree::<Rnn>(own.clone());
            agree::<Bahdanau>(own.clone());
            agree::<Luong>(own);
        }
    }
    agree::<Bahdanau>(json!({ "start": "learned", "attention_size": 51 }));
}

#[test]
fn luong_is_planned_with_every_score_and_place() {
    for score in ["dot", "general", "concat"] {
        for locality in [
            json!({ "kind": "global" }),
            json!({ "kind": "local-m", "width": 1 }),
            json!({ "kind": "local-p", "width": 2 }),
        ] {
            for feeding in [true, false] {
                let bidirectional = score != "dot";
                agree::<Luong>(json!({
                    "score": score, "locality": locality, "input_feeding": feeding,
                    "bidirectional": bidirectional,
                }));
            }
        }
    }
}

#[test]
fn what_plans_do_not_have_is_left_to_the_tensors() {
    let json = config(json!({ "attention": { "kind": "sparsemax" } }));
    assert!(make::<Bahdanau>(&json).plan().is_none());
    assert!(make::<Luong>(&json).plan().is_none());
    assert!(make::<Luong>(&config(json!({}))).plan().is_some());
}

/// Quantised weights: rounding of the attention may move an activation to the next of 255 values,
/// so that logits agree less closely.
#[test]
fn a_quantised_plan_is_near_the_tensors() {
    fn near<M: Stepwise>(own: &Value) {
        for bits in Bits::ALL {
            let mut model: M = make(&config(own.clone()));
            Network::quantize(&mut model, &|_| Some(bits));
            let decoder = &model.body().decoder.layers[0].directions[0];
            assert!(decoder.weight_hh.as_quantized().is_some_and(|w| w.bits() == bits));
            let (apart, _) = compare(&model);
            assert!(apart < 1e-4, "{own} {}: {apart}", bits.name());
        }
    }
    let own = json!({ "cell": "lstm", "bidirectional": true, "readout": "deep" });
    near::<Rnn>(&own);
    near::<Bahdanau>(&own);
    near::<Luong>(&own);
}

/// A sentence gives the same bits alone and in a batch.
#[test]
fn a_planned_row_does_not_depend_on_its_neighbours() {
    fn check<M: Stepwise>(own: Value) {
        let model: M = make(&config(own));
        let run = |rows: &[&[i64]], row: usize| {
            let mut plan = planned(&model, &source(rows));
            let mut all = vec![];
            for step in 0..4u32 {
                let mut logits = vec![];
                plan.step_slices(&vec![1 + step; rows.len()], &mut logits);
                all.extend(logits[row * V..(row + 1) * V].iter().map(|x| x.to_bits()));
            }
            all
        };
        for (row, alone) in SENTENCES.iter().enumerate() {
            assert_eq!(run(&SENTENCES, row), run(&[alone], 0), "sentence {row}");
        }
    }
    check::<Rnn>(json!({ "cell": "gru" }));
    check::<Bahdanau>(json!({ "cell": "lstm", "bidirectional": true, "readout": "deep" }));
    check::<Luong>(json!({ "num_layers": 2, "locality": { "kind": "local-p", "width": 2 } }));
}
