//! Decoders with rotary positions: what `fixtures/make/decoders.py` records beyond the goldens of
//! all text models (which `texts.rs` compares).

use crate::batch::largest_difference;
use crate::texts::{close, close_to, folders, largest, numbers, open};
use burn::tensor::{Device, Int, Tensor, TensorData};
use regard_attention::Mode;
use regard_attention::ops::{CrossEntropy, cross_entropy};
use regard_models::checkpoint;
use regard_models::text::recorded::Recorded;
use regard_models::text::{self, TextModel, Texts};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Folders with a continuation.
fn decoders() -> Vec<(PathBuf, Recorded)> {
    let read = |folder: PathBuf| {
        let recorded = Recorded::read(&folder.join("said.safetensors")).unwrap();
        (folder, recorded)
    };
    let continues =
        |(_, recorded): &(PathBuf, Recorded)| recorded.arrays().contains_key("greedy.tokens");
    let all: Vec<_> = folders().into_iter().map(read).filter(continues).collect();
    assert!(all.len() >= 12, "{} decoders", all.len());
    all
}

fn tokens(recorded: &Recorded, name: &str) -> Vec<u32> {
    let numbers = recorded.arrays()[name].bytes().as_chunks().0.iter();
    numbers.map(|bytes| i64::from_le_bytes(*bytes).try_into().unwrap()).collect()
}

fn text(ids: &[u32]) -> Texts {
    let mut texts = Texts::new();
    texts.push(ids);
    texts
}

/// Index and value of the two highest logits.
fn highest(logits: &[f32]) -> [(u32, f32); 2] {
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]));
    [order[0], order[1]].map(|i| (i as u32, logits[i]))
}

#[test]
fn a_short_text_has_the_recorded_hidden_states() {
    let device = Device::flex();
    for (folder, recorded) in decoders() {
        let (_, inside) = open(&folder, &device).forward_with_attention(&recorded.text(1));
        assert!(inside.hidden.len() >= 3, "{}", folder.display());
        for (i, layer) in inside.hidden.iter().enumerate() {
            let name = format!("second.layer.{i}");
            close(&folder, &name, &numbers(layer), &recorded.arrays()[&name]);
        }
    }
}

#[test]
fn the_causal_loss_and_its_gradients_are_the_recorded_ones() {
    let device = Device::flex().autodiff();
    for (folder, recorded) in decoders() {
        let (model, golden) = (open(&folder, &device), recorded.arrays());
        let texts = recorded.texts();
        // The token after the last of a text is not predicted.
        let mut targets: Vec<i64> = texts.ids()[1..].iter().map(|id| i64::from(*id)).collect();
        targets.push(-100);
        texts.lasts().into_iter().for_each(|last| targets[last] = -100);
        let shape = [targets.len()];
        let targets = Tensor::<1, Int>::from_data(TensorData::new(targets, shape), &device);
        let logits = model.forward(&texts, None, Mode::Eval).logits.unwrap();
        let options = CrossEntropy { ignore: Some(-100), ..CrossEntropy::default() };
        let loss = cross_entropy(logits, targets, options);
        close(&folder, "causal.loss", &numbers(&loss), &golden["causal.loss"]);
        let gradients = model.gradients(&mut loss.backward());
        let names = golden.keys().filter_map(|name| name.strip_prefix("gradient."));
        assert_eq!(names.clone().count(), gradients.len(), "{}", folder.display());
        let of = |name: &str| &golden[&format!("gradient.{name}")];
        let most = names.clone().map(|name| largest(of(name))).fold(0f32, f32::max);
        for name in names {
            let got = gradients[name].floats().unwrap();
            close_to(&folder, name, &got, of(name), 1e-2 * most);
        }
    }
}

#[test]
fn greedy_decoding_produces_the_recorded_tokens() {
    let device = Device::flex();
    for (folder, recorded) in decoders() {
        let model = open(&folder, &device);
        let (prompt, wanted) = (tokens(&recorded, "prompt"), tokens(&recorded, "greedy.tokens"));
        let pairs = recorded.arrays()["greedy.logits"].floats().unwrap();
        let check = |step: usize, how: &str, logits: &[f32]| {
            let [first, second] = highest(logits);
            let place = format!("{} {how} step {step}", folder.display());
            assert_eq!(first.0, wanted[step], "{place}");
            let error = largest_difference(&[first.1, second.1], &pairs[2 * step..2 * step + 2]);
            assert!(error <= 1e-4 * first.1.abs().max(1.0), "{place}: {error:e}");
        };
        // By the plan with a cache, the logits on slices and by the head on tensors: the whole
        // prompt first, or token by token. (The plan's oracle on tensors is private to the model,
        // whose unit tests compare the two.)
        let ids = [&prompt[..], &wanted[..]].concat();
        for read in [prompt.len() - 1, 0] {
            let mut slices = model.decode(&[&ids[..read]]).unwrap();
            let mut heads = model.decode(&[&ids[..read]]).unwrap();
            let mut logits = vec![];
            for (at, id) in ids[..ids.len() - 1].iter().enumerate().skip(read) {
                slices.step_slices(&[*id], &mut logits);
                let word = Tensor::from_ints([[i64::from(*id)]], &device);
                let next = numbers(&heads.step(word).logits);
                if at + 1 >= prompt.len() {
                    check(at + 1 - prompt.len(), "slices", &logits);
                    check(at + 1 - prompt.len(), "head on tensors", &next);
                }
            }
        }
        // Without a cache, all steps at once.
        let all = model.forward(&text(&ids[..ids.len() - 1]), None, Mode::Eval).logits.unwrap();
        let (wide, all) = (all.dims()[1], numbers(&all));
        for (step, logits) in all.chunks(wide).skip(prompt.len() - 1).enumerate() {
            check(step, "at once", logits);
        }
    }
}

/// Logits of a folder's texts under a changed configuration.
fn with(folder: &Path, recorded: &Recorded, change: impl FnOnce(&mut Value)) -> Vec<f32> {
    let mut config = checkpoint::read_config(folder).unwrap();
    change(&mut config);
    let weights = checkpoint::read_weights(folder).unwrap();
    let model: Box<dyn TextModel> =
        text::load(&config, weights, None, 0, &Device::flex()).unwrap_or_else(|e| panic!("{e}"));
    numbers(&model.forward(&recorded.texts(), None, Mode::Eval).logits.unwrap())
}

fn remove(config: &mut Value, keys: &[&str]) {
    for key in keys {
        config.as_object_mut().unwrap().remove(*key);
    }
}

/// A change that must not change the model, and one that must, for keys that older files lack.
#[test]
fn older_files_are_read_as_what_they_mean() {
    type Change = fn(&mut Value);
    let rows: [(&str, Change, Change); 6] = [
        (
            "llama-ForCausalLM",
            |c| {
                remove(c, &["rope_parameters", "attention_bias", "mlp_bias"]);
                c["rope_theta"] = 100.0.into();
                c["rope_scaling"] = Value::Null;
            },
            |c| c["rope_parameters"]["rope_theta"] = 1000.0.into(),
        ),
        (
            "llama-scaled-ForCausalLM",
            |c| {
                let mut scaling = c["rope_parameters"].clone();
                remove(&mut scaling, &["rope_theta"]);
                remove(c, &["rope_parameters"]);
                (c["rope_theta"], c["rope_scaling"]) = (30.0.into(), scaling);
            },
            |c| c["rope_parameters"]["original_max_position_embeddings"] = 16.into(),
        ),
        (
            "smollm3-ForCausalLM",
            |c| remove(c, &["no_rope_layers", "layer_types"]),
            |c| c["no_rope_layers"] = json!([1, 1, 1, 0]),
        ),
        (
            "qwen3-windows-ForCausalLM",
            |c| remove(c, &["layer_types"]),
            |c| c["sliding_window"] = 5.into(),
        ),
        (
            "gemma2-ForCausalLM",
            |c| {
                remove(c, &["layer_types", "rope_parameters"]);
                c["rope_theta"] = 80.0.into();
            },
            |c| c["attn_logit_softcapping"] = Value::Null,
        ),
        (
            "gemma3_text-ForCausalLM",
            |c| {
                remove(c, &["layer_types", "rope_parameters", "_sliding_window_pattern"]);
                (c["rope_theta"], c["rope_local_base_freq"]) = (900.0.into(), 20.0.into());
                c["sliding_window_pattern"] = 6.into();
            },
            |c| c["query_pre_attn_scalar"] = 11.into(),
        ),
    ];
    let all = decoders();
    for (name, same, other) in rows {
        let (folder, recorded) = all.iter().find(|(folder, _)| folder.ends_with(name)).unwrap();
        let plain = with(folder, recorded, |_| {});
        assert_eq!(with(folder, recorded, same), plain, "{name}");
        let apart = largest_difference(&with(folder, recorded, other), &plain);
        assert!(apart > 1e-2, "{name}: {apart:e}");
    }
}
