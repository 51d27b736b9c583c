//! Every parameter gets a gradient, and trained models can be saved and loaded.

use crate::batch::{numbers, rows, sentences, source, written};
use crate::zoo;
use burn::tensor::Device;
use regard_attention::{AdamW, AdamWConfig, Mode};
use regard_models::checkpoint::{Array, Arrays, Precision};
use regard_models::zoo::{create, load};
use regard_models::{Seq2Seq, Source, checkpoint};

const MODE: Mode = Mode::Train { seed: 1, step: 1 };

/// One optimiser step with an arbitrary loss.
fn learn(mut model: Box<dyn Seq2Seq>, read: &Source, name: &str) -> (Box<dyn Seq2Seq>, AdamW) {
    let device = Device::flex().autodiff();
    let scores = model.forward(read, rows(&written(3, 6), &device), MODE);
    let [b, t, _] = scores.logits.dims();
    let mut loss = scores.logits.powi_scalar(2).mean();
    assert_eq!(scores.log_prob.is_some(), name.contains("reinforce"), "{name}");
    if let Some(log_prob) = scores.log_prob {
        assert_eq!(log_prob.dims(), [b, t], "{name}");
        assert!(numbers(log_prob.clone()).iter().all(|x| *x <= 0.0 && x.is_finite()), "{name}");
        loss = loss + log_prob.mean();
    }
    let config = AdamWConfig { weight_decay: 0.0, ..AdamWConfig::default() };
    let mut adamw = AdamW::new(config);
    model.step(&mut adamw, 0.01, loss.backward());
    (model, adamw)
}

/// Names of arrays without any changed element.
fn unchanged(before: &Arrays, after: &Arrays) -> Vec<String> {
    let same = |(name, array): (&String, &Array)| (after[name] == *array).then(|| name.clone());
    before.iter().filter_map(same).collect()
}

#[test]
fn every_parameter_learns() {
    let device = Device::flex().autodiff();
    let read = source(&sentences(&[6, 2, 4]), 6, 0, &device);
    for (name, config) in zoo::all() {
        let model = create::<dyn Seq2Seq>(&config, 11, &device).unwrap();
        let (count, before) = (model.parameters(), model.weights());
        // A shared table is saved under all of its names where nothing is tied.
        let again = |name: &&String| {
            before.contains_key("model.shared.weight") && name.ends_with("embed_tokens.weight")
        };
        let numbers = before.iter().filter(|(name, _)| !again(name)).map(|(_, a)| a.count());
        assert_eq!(count, numbers.sum::<usize>(), "{name}");
        let (model, adamw) = learn(model, &read, &name);
        assert!(adamw.norm().is_finite(), "{name}");
        assert_eq!(adamw.without_gradient(), [""; 0], "{name}");
        let mut still = unchanged(&before, &model.weights());
        // A constant that is added to all scores of a query has no effect.
        still.retain(|name| !name.ends_with("k_proj.bias"));
        assert_eq!(still, [""; 0], "{name}: told how to learn, and did not");
    }
}

#[test]
fn what_is_saved_is_what_is_loaded() {
    let device = Device::flex();
    let read = source(&sentences(&[6, 2, 4]), 6, 0, &device);
    let folder = std::env::temp_dir().join(format!("regard-save-load-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (name, config) in zoo::all() {
        let model = create::<dyn Seq2Seq>(&config, 11, &device).unwrap();
        checkpoint::write(&folder, &model.config(), &model.weights(), Precision::Single).unwrap();
        let weights = checkpoint::read_weights(&folder).unwrap();
        assert_eq!(weights, model.weights(), "{name}");
        let config = checkpoint::read_config(&folder).unwrap();
        let again = load::<dyn Seq2Seq>(&config, weights, &device)
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(again.config(), model.config(), "{name}");
        let words = rows(&written(3, 6), &device);
        let logits = |model: &dyn Seq2Seq| {
            let logits = model.forward(&read, words.clone(), Mode::Eval).logits;
            numbers(logits).iter().map(|x| x.to_bits()).collect::<Vec<_>>()
        };
        assert_eq!(logits(&*again), logits(&*model), "{name}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A loaded model has the same dropout as the saved one: otherwise a resumed run would differ.
#[test]
fn what_is_loaded_trains_as_what_was_saved() {
    let device = Device::flex().autodiff();
    let read = source(&sentences(&[6, 2, 4]), 6, 0, &device);
    for (name, mut config) in zoo::all() {
        config["dropout"] = 0.3.into();
        if name.starts_with("transformer") {
            config["attention_dropout"] = 0.2.into();
            config["activation_dropout"] = 0.1.into();
        }
        let model = create::<dyn Seq2Seq>(&config, 11, &device).unwrap();
        let again = load::<dyn Seq2Seq>(&model.config(), model.weights(), &device).unwrap();
        let (model, _) = learn(model, &read, &name);
        let (again, _) = learn(again, &read, &name);
        assert!(model.weights() == again.weights(), "{name}");
    }
}
