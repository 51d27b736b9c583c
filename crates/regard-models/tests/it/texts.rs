//! The goldens of `fixtures/make/texts.py` and `decoders.py`: every family and head against transformers.

use crate::batch::largest_difference;
use burn::tensor::{Device, Tensor, TensorData};
use regard_attention::Mode;
use regard_models::checkpoint::{self, Array, Arrays};
use regard_models::text::recorded::{Recorded, named};
use regard_models::text::{self, Head, TextModel, Texts};
use std::path::{Path, PathBuf};

pub fn folders() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/texts");
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(all).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders
}

pub fn open(folder: &Path, device: &Device) -> Box<dyn TextModel> {
    text::open(folder, None, 0, device).unwrap_or_else(|e| panic!("{e}"))
}

pub fn numbers<const D: usize>(x: &Tensor<D>) -> Vec<f32> {
    x.clone().into_data().try_into_vec().unwrap()
}

pub fn close(folder: &Path, what: &str, got: &[f32], wanted: &Array) {
    close_to(folder, what, got, wanted, 0.0);
}

/// Largest absolute value of an array.
pub fn largest(array: &Array) -> f32 {
    array.floats().unwrap().iter().fold(0f32, |max, x| max.max(x.abs()))
}

/// Within 1e-4 of the largest absolute value, or of `least` if that is larger.
pub fn close_to(folder: &Path, what: &str, got: &[f32], wanted: &Array, least: f32) {
    let wanted = wanted.floats().unwrap();
    assert_eq!(got.len(), wanted.len(), "{} {what}", folder.display());
    let scale = wanted.iter().fold(least, |max, x| max.max(x.abs()));
    let error = largest_difference(got, &wanted);
    assert!(error <= 1e-4 * scale, "{} {what}: {error:e} of {scale}", folder.display());
}

fn recorded(folder: &Path) -> Recorded {
    Recorded::read(&folder.join("said.safetensors")).unwrap()
}

#[test]
fn every_layer_and_head_says_what_transformers_says() {
    let device = Device::flex();
    for folder in folders() {
        let (model, recorded) = (open(&folder, &device), recorded(&folder));
        let found = recorded.compare(&*model).unwrap();
        for each in &found {
            assert!(each.relative() <= 1e-4, "{} {each:?}", folder.display());
        }
        let count = |begin: &str| found.iter().filter(|d| d.what.starts_with(begin)).count();
        let config = model.config();
        let layers = ["num_hidden_layers", "n_layer", "n_layers"];
        let layers = layers.iter().find_map(|key| config[*key].as_u64()).unwrap() as usize;
        let all = (count("layer."), count("attention."));
        assert!(layers >= 2 && all == (layers + 1, layers), "{}: {all:?}", folder.display());
        assert!(found.len() > 5, "{} says nothing", folder.display());
    }
}

#[test]
fn a_text_alone_says_what_it_says_among_others() {
    let device = Device::flex();
    for folder in folders() {
        let (model, recorded) = (open(&folder, &device), recorded(&folder));
        let said = model.forward(&recorded.texts(), None, Mode::Eval);
        let per_text = model.head() == Head::Sequence;
        let mut first = 0;
        for i in 0..recorded.count() {
            let text = recorded.text(i);
            let alone = model.forward(&text, None, Mode::Eval);
            let (from, n) = if per_text { (i, 1) } else { (first, text.tokens()) };
            if let (Some(alone), Some(all)) = (&alone.logits, &said.logits) {
                let [_, wide] = alone.dims();
                let among = all.clone().slice([from..from + n, 0..wide]);
                let error = largest_difference(&numbers(alone), &numbers(&among));
                assert!(error <= 1e-5, "{} text {i}: {error:e}", folder.display());
            }
            first += text.tokens();
        }
    }
}

#[test]
fn a_recording_that_does_not_fit_is_told() {
    let device = Device::flex();
    let folder = |name: &str| folders().into_iter().find(|f| f.ends_with(name)).unwrap();
    let model = open(&folder("bert-relu-Model"), &device);
    let other = recorded(&folder("gpt2-ForSequenceClassification"));
    // Another model's outputs differ greatly, which is a result, not an error.
    assert!(other.compare(&*model).unwrap().iter().any(|d| d.relative() > 1e-2));
    let weights = folder("bert-relu-Model").join("model.safetensors");
    let error = Recorded::read(&weights).err().unwrap().to_string();
    assert!(error.contains("ids"), "{error}");
}

#[test]
fn gradients_are_those_of_transformers() {
    let device = Device::flex().autodiff();
    for folder in folders() {
        let model = open(&folder, &device);
        let recorded = recorded(&folder);
        let golden = recorded.arrays();
        let said = model.forward(&recorded.texts(), None, Mode::Eval);
        let mut loss = Tensor::<1>::zeros([1], &device);
        for (name, x) in named(&said) {
            if let Some(array) = golden.get(&format!("coefficients.{name}")) {
                let shape = [array.shape[0], array.shape[1]];
                let data = TensorData::new(array.floats().unwrap().into_owned(), shape);
                loss = loss + (x * Tensor::<2>::from_data(data, &device)).sum();
            }
        }
        close(&folder, "loss", &numbers(&loss), &golden["loss"]);
        let gradients = model.gradients(&mut loss.backward());
        // Some are 0 except for rounding, on the scale of the terms that cancel.
        let all = golden.iter().filter(|(name, _)| name.starts_with("gradient."));
        let most = all.fold(0f32, |max, (_, x)| max.max(largest(x)));
        let mut compared = 0;
        for (name, wanted) in golden {
            let Some(name) = name.strip_prefix("gradient.") else { continue };
            // transformers has a second name for a bias, and one for a tied table that is omitted.
            let Some(got) = gradients.get(name) else { continue };
            close_to(&folder, name, &got.floats().unwrap(), wanted, 1e-2 * most);
            compared += 1;
        }
        assert_eq!(compared, gradients.len(), "{}", folder.display());
    }
}

#[test]
fn what_is_saved_is_what_was_read() {
    let device = Device::flex();
    for folder in folders() {
        let model = open(&folder, &device);
        let weights = checkpoint::read_weights(&folder).unwrap();
        let saved = model.weights();
        assert!(saved.iter().all(|(name, array)| weights[name] == *array), "{}", folder.display());
        let again = text::load(&model.config(), saved, None, 0, &device).unwrap();
        let texts = recorded(&folder).texts();
        let [one, other] =
            [model, again].map(|m| numbers(&m.forward(&texts, None, Mode::Eval).hidden));
        assert_eq!(one, other);
    }
}

#[test]
fn a_text_that_goes_on_is_what_it_would_have_been() {
    let (device, mut compared) = (Device::flex(), 0);
    for folder in folders() {
        let model = open(&folder, &device);
        if model.decode(&[]).is_none() {
            continue;
        }
        compared += 1;
        let ids = [5u32, 9, 4, 20, 7, 3];
        let mut whole = Texts::new();
        whole.push(&ids);
        let all = model.forward(&whole, None, Mode::Eval).logits.unwrap();
        for read in [0, 1, 4] {
            let mut decoding = model.decode(&[&ids[..read]]).unwrap();
            for (at, id) in ids.iter().enumerate().skip(read) {
                let word = Tensor::from_ints([[i64::from(*id)]], &device);
                let next = decoding.step(word).logits;
                let wanted = all.clone().slice([at..at + 1, 0..next.dims()[1]]);
                let error = largest_difference(&numbers(&next), &numbers(&wanted));
                assert!(error <= 1e-4, "{} at {at}: {error:e}", folder.display());
            }
        }
    }
    assert!(compared >= 2, "GPT-2 with a head for words continues texts");
}

fn golden(name: &str) -> (PathBuf, serde_json::Value, Arrays) {
    let folder = folders().into_iter().find(|folder| folder.ends_with(name)).unwrap();
    let config = checkpoint::read_config(&folder).unwrap();
    let weights = checkpoint::read_weights(&folder).unwrap();
    (folder, config, weights)
}

#[test]
fn another_head_begins_anew_on_the_same_body() {
    let device = Device::flex();
    for (name, head) in [
        ("bert-ForMaskedLM", Head::Sequence),
        ("bert-Model", Head::Tokens),
        ("gpt2-Model", Head::Words),
    ] {
        let (_, config, weights) = golden(name);
        let make = |seed| text::load(&config, weights.clone(), Some(head), seed, &device).unwrap();
        let (one, same, other) = (make(1), make(1), make(2));
        assert_eq!(one.weights(), same.weights());
        assert_eq!(one.head(), head);
        let class = one.config()["architectures"][0].as_str().unwrap().to_string();
        assert!(class.contains("For") || class.contains("LMHead"), "{class}");
        let changed = |model: &dyn TextModel| {
            let there = model.weights();
            there.into_iter().filter(|(k, v)| one.weights()[k] != *v).map(|(k, _)| k).collect()
        };
        let changed: Vec<String> = changed(&*other);
        let inside = |name: &String| name.starts_with("bert.") && !name.contains("pooler");
        assert!(!changed.iter().any(inside), "{changed:?}");
        assert_eq!(changed.is_empty(), head == Head::Words, "GPT-2's head is its table");
    }
}

#[test]
fn every_kind_of_misfit_is_told_at_once() {
    let device = Device::flex();
    let (_, mut config, mut weights) = golden("bert-ForSequenceClassification");
    config["num_hidden_layers"] = 1.into();
    config["intermediate_size"] = 13.into();
    weights.remove("classifier.bias");
    let error = text::load(&config, weights, None, 0, &device).err().unwrap().to_string();
    for part in [
        "classifier.bias [3] is missing",
        "bert.encoder.layer.0.intermediate.dense.weight is [12, 8], the configuration says [13, 8]",
        "unexpected tensor bert.encoder.layer.1.attention.output.LayerNorm.bias",
    ] {
        assert!(error.contains(part), "{error}");
    }
    // All problems are counted, and the message stays short.
    assert!(error.contains(" more") && error.len() < 1000, "{error}");
}

#[test]
fn configurations_that_cannot_be() {
    let (_, config, _) = golden("bert-Model");
    let error = |key: &str, value: serde_json::Value| {
        let mut config = config.clone();
        config[key] = value;
        text::create(&config, Head::Bare, 0, &Device::flex()).err().unwrap().to_string()
    };
    assert!(error("model_type", "mamba".into()).contains("bert, roberta, distilbert, gpt2"));
    assert!(error("num_attention_heads", 3.into()).contains("a divisor of hidden_size = 8"));
    assert!(error("hidden_size", (1u64 << 40).into()).contains("hidden_size"));
    assert!(error("hidden_act", "mish".into()).contains("need gelu"));
    let many = error("vocab_size", "many".into());
    assert!(many.contains("vocab_size: got \"many\", need a whole number, 0 or more"), "{many}");
    assert!(error("position_embedding_type", "relative_key".into()).contains("absolute"));
    let mut config = config.clone();
    config["architectures"] = serde_json::json!(["BertForNextSentencePrediction"]);
    let error = text::head_of(&config).err().unwrap().to_string();
    assert!(error.contains("BertForMaskedLM"), "{error}");
}
