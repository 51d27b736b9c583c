//! The pointer-generator.

use crate::batch::largest_difference;
use burn::module::Module;
use burn::tensor::Device;
use regard_attention::{AdamW, AdamWConfig, Mode};
use regard_models::checkpoint::Arrays;
use regard_models::copying::{CopyBatch, Cost, PointerGenerator};
use regard_models::{Network, zoo};
use serde_json::{Value, json};

const WORDS: usize = 9;

fn config(copy: bool, coverage: bool) -> Value {
    json!({ "model_type": "pointer-generator", "vocab_size": WORDS, "embedding_size": 6,
        "hidden_size": 5, "copy": copy, "coverage": coverage, "tie_word_embeddings": true })
}

/// Ids from 9 on are words outside the vocabulary.
fn texts() -> CopyBatch {
    CopyBatch::new(vec![vec![4, 9, 5, 10, 9], vec![6, 9, 7]])
}

/// Target words: one that is copied, one in text and vocabulary, and one in neither.
fn wanted() -> Vec<Vec<u32>> {
    vec![vec![9, 4, 10, 2], vec![3, 2]]
}

fn cost(model: &PointerGenerator, wanted: &[Vec<u32>]) -> (f64, Option<f64>) {
    let Cost { likelihood, coverage } = model.cost(&texts(), wanted, Mode::Eval);
    let number = |x: burn::tensor::Tensor<1>| f64::from(x.into_scalar::<f32>());
    (number(likelihood), coverage.map(number))
}

#[test]
fn what_is_taught_is_what_is_written() {
    for (copy, coverage) in [(true, true), (true, false), (false, true), (false, false)] {
        let model =
            zoo::create::<PointerGenerator>(&config(copy, coverage), 3, &Device::flex()).unwrap();
        let (texts, wanted) = (texts(), wanted());
        let mut walk = model.walk(&texts);
        let wide = walk.width();
        assert_eq!((wide, walk.places()), (11, 5));
        let (mut sum, mut count, mut words) = (0.0, 0, vec![1, 1]);
        for step in 0..4 {
            let mixed = walk.step(&words);
            for (row, told) in wanted.iter().enumerate() {
                let p = &mixed.words[row * wide..][..wide];
                assert!((p.iter().sum::<f32>() - 1.0).abs() < 1e-5, "step {step}: {p:?}");
                // The second text has no word with id 10.
                let only_first = row == 0 && copy;
                assert_eq!(p[10] > 0.0, only_first, "copy {copy}: {p:?}");
                if let Some(word) = told.get(step) {
                    let word = if copy || (*word as usize) < WORDS { *word } else { 3 };
                    sum -= f64::from(p[word as usize]).ln();
                    count += 1;
                }
            }
            words = wanted.iter().map(|told| told.get(step).copied().unwrap_or(0)).collect();
        }
        let (got, before) = cost(&model, &wanted);
        assert!((got - sum / f64::from(count)).abs() < 1e-5, "copy {copy}: {got}, {sum}");
        assert_eq!(before.is_some(), coverage);
        assert!(before.is_none_or(|before| before > 0.0));
    }
}

#[test]
fn gradients_are_those_of_small_differences() {
    let json = config(true, true);
    let mut model = zoo::create::<PointerGenerator>(&json, 3, &Device::flex().autodiff()).unwrap();
    let weights = model.weights();
    let whole = |weights: Arrays| {
        let model = zoo::load::<PointerGenerator>(&json, weights, &Device::flex()).unwrap();
        let (likelihood, coverage) = cost(&model, &wanted());
        likelihood + coverage.unwrap()
    };
    let Cost { likelihood, coverage } = model.cost(&texts(), &wanted(), Mode::Eval);
    let grads = (likelihood + coverage.unwrap()).backward();
    // After one step, the first moment is a fraction of the gradient.
    let options = AdamWConfig { max_norm: None, ..AdamWConfig::default() };
    let share = f64::from(1.0 - options.beta1);
    let mut adamw = AdamW::new(options);
    model.step(&mut adamw, 1e-3, grads);
    for (name, path) in [
        ("decoder.gate.weight", "gate.weight"),
        ("decoder.attention.coverage", "covered"),
        ("decoder.attention.v", "score.v"),
        ("decoder.out.bias", "readout.bias"),
        ("encoder.embed_tokens.weight", "reader.words.table"),
    ] {
        let moments = &adamw.state().moments;
        let moments = moments.get(path).unwrap_or_else(|| panic!("{path}: {:?}", moments.keys()));
        for (i, first) in moments.first.iter().enumerate() {
            let nudged = |by: f32| {
                let mut weights = weights.clone();
                weights.get_mut(name).unwrap().change(|all| all[i] += by);
                whole(weights)
            };
            let (slope, got) = ((nudged(1e-2) - nudged(-1e-2)) / 2e-2, f64::from(*first) / share);
            assert!((slope - got).abs() < 2e-3, "{name} {i}: {slope} and {got}");
        }
    }
}

#[test]
fn words_that_no_vocabulary_has_are_copied() {
    let device = Device::flex().autodiff();
    let json = json!({ "model_type": "pointer-generator", "vocab_size": WORDS,
        "embedding_size": 12, "hidden_size": 12, "coverage": false });
    let mut model = zoo::create::<PointerGenerator>(&json, 1, &device).unwrap();
    let mut adamw = AdamW::new(AdamWConfig::default());
    // The word after 5 is the answer, and it is never in the vocabulary.
    let text = |i: usize| {
        let (at, new) = (i % 3, 9 + (i % 2) as u32);
        let mut text = vec![6, 4, 7, 8];
        text.splice(at..at, [5, new]);
        text.push(9 + ((i + 1) % 2) as u32);
        (text, vec![new, 2])
    };
    for step in 1..=250 {
        let (texts, wanted): (_, Vec<_>) = (0..6).map(|i| text(i + step as usize)).unzip();
        let cost = model.cost(&CopyBatch::new(texts), &wanted, Mode::Train { seed: 1, step });
        assert!(cost.coverage.is_none());
        model.step(&mut adamw, 1e-2, cost.likelihood.backward());
        if step == 1 {
            assert!(adamw.without_gradient().is_empty(), "{:?}", adamw.without_gradient());
        }
    }
    let model = model.valid();
    for i in 0..6 {
        let (text, wanted) = text(i);
        let batch = CopyBatch::new(vec![text]);
        let mixed = model.walk(&batch).step(&[1]);
        let best =
            (0..mixed.words.len()).max_by(|a, b| mixed.words[*a].total_cmp(&mixed.words[*b]));
        assert_eq!(best, Some(wanted[0] as usize), "{:?}", mixed.words);
        assert!(mixed.share[0] < 0.5, "it was copied: {}", mixed.share[0]);
    }
}

#[test]
fn saved_is_loaded_and_what_cannot_be_is_turned_down() {
    let model = zoo::create::<PointerGenerator>(&config(true, true), 3, &Device::flex()).unwrap();
    let again =
        zoo::load::<PointerGenerator>(&model.config(), model.weights(), &Device::flex()).unwrap();
    assert_eq!(cost(&model, &wanted()), cost(&again, &wanted()));
    let alone = CopyBatch::new(vec![texts().text(1).to_vec()]);
    let (texts, mut together) = (texts(), vec![]);
    together.extend_from_slice(&model.walk(&texts).step(&[1, 1]).words[11..21]);
    let difference = largest_difference(&model.walk(&alone).step(&[1]).words, &together);
    assert!(difference < 1e-6, "padding changes nothing: {difference}");
    let rows = [
        (json!({ "unk_token_id": 99 }), "unk_token_id: got 99"),
        (json!({ "decoder_vocab_size": 5 }), "decoder_vocab_size"),
        (json!({ "coverage_loss": -1.0 }), "coverage_loss: got -1"),
        (json!({ "hidden_size": 0 }), "hidden_size: got 0"),
        (json!({ "model_type": "rnn" }), "pointer-generator"),
    ];
    for (more, says) in rows {
        let mut config = config(true, true);
        more.as_object().unwrap().iter().for_each(|(key, value)| config[key] = value.clone());
        let error = zoo::create::<PointerGenerator>(&config, 0, &Device::flex()).err().unwrap();
        assert!(error.to_string().contains(says), "{more}: {error}");
    }
}
