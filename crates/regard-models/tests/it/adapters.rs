//! The goldens of `fixtures/make/adapters.py`: adapters against PEFT.

use crate::batch::largest_difference;
use crate::texts::numbers;
use burn::tensor::{Device, Int, Tensor, TensorData};
use regard_attention::ops::{CrossEntropy, cross_entropy};
use regard_attention::{AdamW, AdamWConfig, Mode};
use regard_models::adapter::{Adapter, AdapterConfig, Targets};
use regard_models::checkpoint::{self, Array, Arrays, Precision};
use regard_models::text::{self, TextModel, Texts};
use regard_models::{ModelFiles, Network};
use serde_json::json;
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/adapters").join(name)
}

const ALL: [&str; 4] = ["bert", "gpt2", "llama-expression", "llama-patterns"];

fn said(name: &str) -> Arrays {
    checkpoint::read_arrays(&folder(name).join("said.safetensors")).unwrap()
}

fn texts(said: &Arrays) -> Texts {
    let whole = |name: &str| -> Vec<u32> {
        let numbers = said[name].bytes().as_chunks().0.iter();
        numbers.map(|bytes| i64::from_le_bytes(*bytes).try_into().unwrap()).collect()
    };
    let (ids, mut at, mut texts) = (whole("ids"), 0, Texts::new());
    for length in whole("lengths") {
        texts.push(&ids[at..at + length as usize]);
        at += length as usize;
    }
    texts
}

fn files(name: &str) -> ModelFiles {
    ModelFiles::from(&folder(name).join("base"))
}

/// Logits, or hidden states of a model without a head.
fn output(model: &dyn TextModel, texts: &Texts) -> Vec<f32> {
    let said = model.forward(texts, None, Mode::Eval);
    numbers(&said.logits.unwrap_or(said.hidden))
}

fn wanted(said: &Arrays, what: &str) -> Vec<f32> {
    let part = |i: usize| said[&format!("{what}.{i}")].floats().unwrap().into_owned();
    [part(0), part(1)].concat()
}

fn close(got: &[f32], wanted: &[f32], what: &str) {
    assert_eq!(got.len(), wanted.len(), "{what}");
    let error = largest_difference(got, wanted);
    assert!(error <= 1e-4, "{what}: {error:e}");
}

/// A model in training with the adapter of a golden.
fn in_training(name: &str) -> Box<dyn TextModel> {
    let device = Device::flex().autodiff();
    let mut model = text::open(files(name), None, 0, &device).unwrap();
    let adapter = Adapter::open(&folder(name).join("adapter")).unwrap();
    assert!(model.adapt(adapter.config(), 3).unwrap() > 0);
    let weights = folder(name).join("adapter/adapter_model.safetensors");
    model.restore_adapter(checkpoint::read_arrays(&weights).unwrap()).unwrap();
    model
}

#[test]
fn a_model_opened_with_an_adapter_computes_what_peft_does() {
    let device = Device::flex();
    for name in ALL {
        let said = said(name);
        let texts = texts(&said);
        let plain = text::open(files(name), None, 0, &device).unwrap();
        close(&output(&*plain, &texts), &wanted(&said, "plain"), name);
        let adapter = Adapter::open(&folder(name).join("adapter")).unwrap();
        let open = || text::open(files(name).adapted(adapter.clone()), None, 0, &device).unwrap();
        // In single precision, and with the storage and layout of the file.
        for model in [open(), checkpoint::with_least_stored(0, open)] {
            close(&output(&*model, &texts), &wanted(&said, "adapted"), name);
            close(&output(&*model, &texts), &wanted(&said, "merged"), name);
        }
    }
}

#[test]
fn updates_beside_the_weights_compute_what_peft_does() {
    for name in ["gpt2", "llama-expression", "llama-patterns"] {
        let said = said(name);
        let (texts, model) = (texts(&said), in_training(name));
        close(&output(&*model, &texts), &wanted(&said, "adapted"), name);
        let copy = text_of(model.inference());
        close(&output(&*copy, &texts), &wanted(&said, "merged"), name);
        assert!(copy.adapter().0.is_empty());
    }
}

fn text_of(network: Box<dyn Network>) -> Box<dyn TextModel> {
    network.into_text().unwrap()
}

/// Mean cross-entropy of all next tokens.
fn loss(model: &dyn TextModel, texts: &Texts) -> Tensor<1> {
    let mut targets: Vec<i64> = texts.ids()[1..].iter().map(|id| i64::from(*id)).collect();
    targets.push(-100);
    texts.lasts().into_iter().for_each(|last| targets[last] = -100);
    let shape = [targets.len()];
    let device = Device::flex().autodiff();
    let targets = Tensor::<1, Int>::from_data(TensorData::new(targets, shape), &device);
    let logits = model.forward(texts, None, Mode::Eval).logits.unwrap();
    cross_entropy(logits, targets, CrossEntropy { ignore: Some(-100), ..CrossEntropy::default() })
}

#[test]
fn gradients_of_updates_are_those_of_peft() {
    for name in ["gpt2", "llama-expression", "llama-patterns"] {
        let said = said(name);
        let (texts, model) = (texts(&said), in_training(name));
        let loss = loss(&*model, &texts);
        close(&numbers(&loss), &said["loss"].floats().unwrap(), name);
        let gradients = model.gradients(&mut loss.backward());
        let golden: Vec<&String> = said.keys().filter(|key| key.starts_with("gradient.")).collect();
        assert!(golden.len() >= 8, "{name}");
        for key in golden {
            let of = key.strip_prefix("gradient.").unwrap();
            close(&gradients[of].floats().unwrap(), &said[key].floats().unwrap(), key);
        }
        // The base has none.
        let zero = |(key, array): (&String, &Array)| {
            key.contains("lora_") || array.floats().unwrap().iter().all(|x| *x == 0.0)
        };
        assert!(gradients.iter().all(zero), "{name}");
    }
}

#[test]
fn a_step_trains_the_updates_alone_and_they_are_saved_as_they_were_read() {
    let (name, device) = ("gpt2", Device::flex().autodiff());
    let read = checkpoint::read_arrays(&folder(name).join("adapter/adapter_model.safetensors"));
    let (read, texts) = (read.unwrap(), texts(&said(name)));
    let mut model = in_training(name);
    let (saved, by_inputs) = model.adapter();
    assert!(saved == read && by_inputs);
    let (base, before) = (model.weights(), numbers(&loss(&*model, &texts))[0]);
    let mut adamw = AdamW::new(AdamWConfig::default());
    for _ in 0..3 {
        let grads = loss(&*model, &texts).backward();
        model.step(&mut adamw, 0.01, grads);
    }
    assert!(numbers(&loss(&*model, &texts))[0] < before - 0.01);
    assert_eq!(model.weights(), base);
    let (trained, _) = model.adapter();
    assert!(trained.keys().eq(read.keys()) && trained.iter().all(|(key, x)| *x != read[key]));
    // Two moments for each tensor of the adapter, and for nothing else.
    assert_eq!(adamw.state().moments.len(), read.len());
    assert!(adamw.without_gradient().is_empty());
    // New updates change nothing; all of the body is updated, and the head is not.
    let mut new = text::open(files("llama-patterns"), None, 0, &device).unwrap();
    let plain = output(&*new, &texts);
    let all = AdapterConfig::new(2, 4.0, Targets::All).unwrap();
    assert_eq!(new.adapt(&all, 1).unwrap(), 2 * 2 * (28 + 2 * 20 + 28 + 3 * 26));
    assert_eq!(output(&*new, &texts), plain);
    assert!(new.adapter().0.keys().all(|name| !name.contains("lm_head")));
}

/// A misspelt name would train less than was asked for, and the head would be named but not trained.
#[test]
fn every_name_of_the_targets_is_that_of_a_layer() {
    let mut model =
        text::open(files("llama-patterns"), None, 0, &Device::flex().autodiff()).unwrap();
    let mut adapt = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        model.adapt(&AdapterConfig::new(2, 4.0, Targets::named(&names)).unwrap(), 1)
    };
    for (names, wanted) in [
        (&["q_proj", "v_prj"][..], "has the name v_prj; they end in down_proj, gate_proj"),
        (&["q_proj", "lm_head"], "has the name lm_head; they end in"),
        (&["proj"], "has the name proj;"),
    ] {
        let error = adapt(names).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
    assert!(adapt(&["q_proj", "model.layers.1.mlp.up_proj"]).unwrap() > 0);
}

/// A copy of a golden's adapter with changes.
struct Changed(PathBuf);

impl Drop for Changed {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn changed(name: &str, config: serde_json::Value, change: impl FnOnce(&mut Arrays)) -> Changed {
    let place = folder(name).join("adapter");
    let number = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let out = format!("regard-adapter-{}-{}", std::process::id(), number.as_nanos());
    let out = Changed(std::env::temp_dir().join(out));
    std::fs::create_dir_all(&out.0).unwrap();
    let text = std::fs::read(place.join("adapter_config.json")).unwrap();
    let mut json: serde_json::Value = serde_json::from_slice(&text).unwrap();
    for (key, value) in config.as_object().unwrap() {
        json[key] = value.clone();
    }
    std::fs::write(out.0.join("adapter_config.json"), json.to_string()).unwrap();
    let mut arrays = checkpoint::read_arrays(&place.join("adapter_model.safetensors")).unwrap();
    change(&mut arrays);
    let file = out.0.join("adapter_model.safetensors");
    checkpoint::write_arrays(&file, &arrays, Precision::Single).unwrap();
    out
}

#[test]
fn an_adapter_that_does_not_fit_is_told() {
    const Q: &str = "base_model.model.model.layers.0.self_attn.q_proj";
    type Change = fn(&mut Arrays);
    let rows: [(serde_json::Value, Change, &str); 11] = [
        (json!({ "use_dora": true }), |_| {}, "use_dora: got true: DoRA is not supported"),
        (json!({ "peft_type": "IA3" }), |_| {}, "adapter_config.json: peft_type: got \"IA3\""),
        (json!({ "r": 4 }), |_| {}, "has rank 3, adapter_config.json says 4"),
        (json!({ "target_modules": ["v_proj"] }), |_| {}, "which target_modules leaves out"),
        (json!({}), |a| a.clear(), "has no tensors"),
        (
            json!({}),
            |a| {
                a.remove(&format!("{Q}.lora_B.weight"));
            },
            "self_attn.q_proj.lora_B.weight is missing",
        ),
        (
            json!({}),
            |a| a.retain(|name, _| !name.starts_with(Q)),
            "has no update of 1 layers that adapter_config.json names (target_modules), such as \
             model.layers.0.self_attn.q_proj",
        ),
        (
            json!({}),
            |a| {
                a.insert(
                    "base_model.model.x.lora_magnitude_vector".into(),
                    Array::new(vec![1], vec![0.0]),
                );
            },
            "unexpected tensor base_model.model.x.lora_magnitude_vector: DoRA",
        ),
        (
            json!({}),
            |a| {
                a.insert(format!("{Q}.lora_A.weight"), Array::new(vec![3, 11], vec![0.0; 33]));
            },
            "is [3, 11], need [3, 12]: the layer of the model has 12 inputs and 16 outputs",
        ),
        (
            json!({}),
            |a| {
                a.insert(format!("{Q}.lora_B.weight"), Array::new(vec![16, 2], vec![0.0; 32]));
            },
            "lora_A is [3, 12] and lora_B [16, 2], need one rank",
        ),
        (
            json!({}),
            |a| a.get_mut(&format!("{Q}.lora_A.weight")).unwrap().change(|x| x[1] = f32::NAN),
            "element 1 is NaN, need finite numbers",
        ),
    ];
    let told = |folder: &Path, base: &str| {
        let adapter = Adapter::open(folder);
        let opened =
            adapter.and_then(|a| text::open(files(base).adapted(a), None, 0, &Device::flex()));
        opened.err().expect("it does not fit").to_string()
    };
    for (config, change, wanted) in rows {
        let folder = changed("llama-patterns", config, change);
        let error = told(&folder.0, "llama-patterns");
        assert!(error.contains(wanted), "{error}");
    }
    let error = told(&folder("gpt2/adapter"), "llama-patterns");
    assert!(error.contains("the adapter is for another model"), "{error}");
    let error = told(&folder("gpt2/base"), "gpt2");
    assert!(error.contains("holds no adapter: need one with adapter_config.json"), "{error}");
}
