//! Models of one file: the goldens of `fixtures/texts` in GGUF (`fixtures/make/gguf_files.py`).

use crate::batch::largest_difference;
use crate::texts::{numbers, open};
use burn::tensor::Device;
use regard_attention::Mode;
use regard_models::gguf::{self, Gguf, Kind};
use regard_models::llama2c::Llama2c;
use regard_models::text::recorded::Recorded;
use regard_models::text::{self, Head, TextModel, Texts};
use regard_models::{ModelFiles, checkpoint};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

#[test]
fn every_architecture_says_what_transformers_says() {
    let device = Device::flex();
    for name in [
        "llama-ForCausalLM",
        "qwen3-ForCausalLM",
        "gemma3_text-ForCausalLM",
        "gpt2-LMHeadModel",
        "bert-Model",
    ] {
        let (file, folder) =
            (fixtures().join(format!("gguf/{name}.gguf")), fixtures().join("texts").join(name));
        let files = ModelFiles::from(&file);
        let (mut config, weights) = (files.config().unwrap(), files.weights().unwrap());
        let wanted = checkpoint::read_weights(&folder).unwrap();
        for (name, array) in &wanted {
            // Files of BERT have no pooler.
            let Some(got) = weights.get(name) else {
                assert!(name.starts_with("pooler."), "{name} of {}", folder.display());
                continue;
            };
            let (got, array) = (got.floats().unwrap(), array.floats().unwrap());
            let apart = std::iter::zip(&*got, &*array).map(|(a, b)| (a - b).abs());
            // Gemma's norms are 1 more in the file.
            assert!(apart.fold(0f32, f32::max) < 2e-7, "{name} of {}", folder.display());
        }
        assert!(weights.keys().all(|name| wanted.contains_key(name)));
        let theirs = checkpoint::read_config(&folder).unwrap();
        for key in ["bos_token_id", "eos_token_id"] {
            assert!(config[key] == theirs[key] || name == "bert-Model", "{name} {key}");
        }
        if name.starts_with("gemma3") {
            // GGUF has no key for it: it is the width of a head in all published models of this
            // size.
            assert_eq!(config["query_pre_attn_scalar"], 4);
            config["query_pre_attn_scalar"] = 10.into();
        }
        // Without the pooler, a model for embeddings is opened.
        let head = (name == "bert-Model").then_some(Head::Bare);
        let model =
            text::load(&config, weights, head, 0, &device).unwrap_or_else(|e| panic!("{e}"));
        let recorded = Recorded::read(&folder.join("said.safetensors")).unwrap();
        let found = recorded.compare(&*model).unwrap();
        assert!(found.len() > 5, "{name} says nothing");
        for each in &found {
            let pooled = name == "bert-Model" && each.what.contains("pool");
            assert!(pooled || each.relative() <= 1e-4, "{name} {each:?}");
        }
    }
}

#[test]
fn a_file_opens_like_a_folder() {
    let file = fixtures().join("gguf/llama-ForCausalLM.gguf");
    let model = open(&file, &Device::flex());
    assert_eq!(model.config()["model_type"], "llama");
    let files = ModelFiles::from(&file);
    assert!(files.folder().is_none() && files.has_weights() && !files.has("config.json"));
    assert_eq!(files.weights_size().unwrap(), std::fs::metadata(&file).unwrap().len());
    let error = files.vocabulary().unwrap_err().to_string();
    assert!(error.ends_with("gguf: has no tokenizer.ggml.tokens"), "{error}");
}

/// A Llama whose rows are whole blocks.
fn wide() -> Box<dyn TextModel> {
    let config = json!({
        "model_type": "llama", "vocab_size": 40, "hidden_size": 64, "intermediate_size": 96,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "max_position_embeddings": 48, "tie_word_embeddings": true,
        "rope_parameters": {
            "rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "original_max_position_embeddings": 64,
        },
    });
    text::create(&config, Head::Words, 3, &Device::flex()).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn what_is_written_is_read_again() {
    for name in ["llama-ForCausalLM", "qwen3-ForCausalLM", "gpt2-LMHeadModel", "bert-Model"] {
        let folder = fixtures().join("texts").join(name);
        let (config, weights) =
            (checkpoint::read_config(&folder).unwrap(), checkpoint::read_weights(&folder).unwrap());
        let made = gguf::write(&config, &weights, None, Kind::F32, &BTreeMap::new())
            .unwrap_or_else(|e| panic!("{e}"));
        let file = Gguf::parse(made.bytes.into()).unwrap_or_else(|e| panic!("{name}: {e}"));
        let (again, read) = (file.config().unwrap(), file.weights().unwrap());
        for (key, value) in again.as_object().unwrap() {
            let theirs = &config[key];
            let silent = ["architectures", "rope_parameters", "tie_word_embeddings", "head_dim"];
            assert!(
                theirs.is_null() || silent.contains(&&**key) || theirs == value,
                "{name} {key}"
            );
        }
        for (tensor, array) in &weights {
            let tied = tensor == "lm_head.weight" && config["tie_word_embeddings"] == true;
            if !tied && !tensor.starts_with("pooler.") {
                assert_eq!(&read[tensor], array, "{name} {tensor}");
            }
        }
    }
}

#[test]
fn quantised_files_say_nearly_the_same() {
    let model = wide();
    let (config, weights) = (model.config(), model.weights());
    let mut texts = Texts::new();
    texts.push(&[1, 7, 30, 2, 9, 11, 39, 0, 5]);
    let logits =
        |model: &dyn TextModel| numbers(&model.forward(&texts, None, Mode::Eval).logits.unwrap());
    let plain = logits(&*model);
    let most = plain.iter().fold(0f32, |most, x| most.max(x.abs()));
    for (kind, bound) in
        [(Kind::F32, 1e-6), (Kind::F16, 2e-3), (Kind::Q8_0, 2e-2), (Kind::Q4_0, 0.3)]
    {
        let made = gguf::write(&config, &weights, None, kind, &BTreeMap::new())
            .unwrap_or_else(|e| panic!("{e}"));
        assert!(
            made.halves.is_empty()
                && made.counts.contains(&(kind, if kind == Kind::F32 { 21 } else { 15 })),
            "{:?}",
            made.counts
        );
        let file = Gguf::parse(made.bytes.clone().into()).unwrap();
        let (read_config, read) = (file.config().unwrap(), file.weights().unwrap());
        let kept = read["model.layers.0.mlp.up_proj.weight"].is_quantized();
        assert!(kept == [Kind::Q4_0, Kind::Q8_0].contains(&kind), "{kind:?}");
        assert_eq!(read_config["rope_parameters"]["rope_type"], "llama3");
        // What was quantised is written as it is.
        let again = gguf::write(&read_config, &read, None, kind, &BTreeMap::new()).unwrap();
        assert!(again.bytes == made.bytes, "{kind:?}");
        let opened = text::load(&read_config, read, None, 0, &Device::flex()).unwrap();
        let apart = largest_difference(&logits(&*opened), &plain);
        assert!(apart <= bound * most, "{kind:?}: {apart:e} of {most}");
    }
    let odd = json!({"model_type": "gpt_neox"});
    let error =
        gguf::write(&odd, &weights, None, Kind::F32, &BTreeMap::new()).unwrap_err().to_string();
    assert!(error.contains("\"gpt_neox\"; a GGUF file can have llama"), "{error}");
}

/// 200 tokens of llama2.c's stories260K, as `fixtures/make/stories.py` has them of transformers.
#[test]
fn a_checkpoint_of_llama2c_says_what_transformers_says() {
    let data = std::env::var_os("REGARD_DATA").map(PathBuf::from);
    let file = data.map(|data| data.join("stories260k/stories260K.bin"));
    let Some(file) = file.filter(|file| file.exists()) else {
        regard_fuzz::skip("REGARD_DATA has no stories260k");
        return;
    };
    let wanted = std::fs::read(fixtures().join("gguf/stories260k.json")).unwrap();
    let wanted: Vec<u32> = serde_json::from_slice(&wanted).unwrap();
    let model = open(&file, &Device::flex());
    let mut rows = model.decode(&[&[]]).unwrap();
    let (mut ids, mut logits) = (vec![1u32], vec![]);
    while ids.len() < wanted.len() {
        rows.step_slices(&[*ids.last().unwrap()], &mut logits);
        let best = (0..logits.len()).max_by(|a, b| logits[*a].total_cmp(&logits[*b]));
        ids.push(best.unwrap() as u32);
    }
    assert_eq!(ids, wanted);
    let error = ModelFiles::from(&file).vocabulary().unwrap_err().to_string();
    assert!(error.contains("has no vocabulary: need tokenizer.bin beside it"), "{error}");
}

#[test]
fn other_files_are_not_checkpoints_of_llama2c() {
    let header = |numbers: [i32; 7]| {
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        Llama2c::parse(bytes.into()).unwrap_err()
    };
    for (numbers, part) in [
        ([8, 12, 2, 2, 1, 6, 4], "its header needs"),
        ([-8, 12, 2, 2, 1, 6, 4], "dim: got 0"),
        ([8, 12, 2, 3, 1, 6, 4], "need pairs for each head"),
        ([1 << 20, 1 << 20, 1 << 10, 2, 1, 1 << 20, 4], "its header needs"),
        ([0x616b3432, 1, 2, 3, 4, 5, 6], "is of version 1 of llama2.c's checkpoints"),
    ] {
        let error = header(numbers);
        assert!(error.contains(part), "{error} / {part}");
    }
}
