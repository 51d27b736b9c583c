//! Models of one file: the goldens of `fixtures/texts` in GGUF (`fixtures/make/gguf_files.py`).

use crate::batch::largest_difference;
use crate::texts::{numbers, open};
use burn::tensor::Device;
use regard_attention::Mode;
use regard_models::checkpoint::Arrays;
use regard_models::gguf::{Content, Gguf, Kind, Output, Pooling};
use regard_models::llama2c::Llama2c;
use regard_models::text::recorded::Recorded;
use regard_models::text::{self, Head, TextModel, Texts};
use regard_models::vocabulary::{SpecialIds, TokenKind, Vocabulary};
use regard_models::{ModelFiles, checkpoint};
use serde_json::{Value, json};
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

/// Makes a file of a model, without a tokenizer.
fn made(config: &Value, weights: &Arrays, kind: Kind) -> regard_models::Result<Output> {
    let content = Content { config, weights, vocabulary: None, pooling: None };
    Output::new(content, kind, &BTreeMap::new())
}

fn bytes(output: &Output) -> Vec<u8> {
    let mut bytes = vec![];
    output.write(&mut bytes).unwrap();
    assert_eq!(bytes.len(), output.size());
    bytes
}

/// Configuration and weights of a golden, as GGUF can have it.
fn golden(name: &str) -> (Value, Arrays) {
    let folder = fixtures().join("texts").join(name);
    let mut config = checkpoint::read_config(&folder).unwrap();
    if name.starts_with("gemma3") {
        config["query_pre_attn_scalar"] = config["head_dim"].clone();
    }
    (config, checkpoint::read_weights(&folder).unwrap())
}

#[test]
fn what_is_written_is_read_again() {
    for name in [
        "llama-ForCausalLM",
        "qwen3-ForCausalLM",
        "gemma3_text-ForCausalLM",
        "gpt2-LMHeadModel",
        "bert-Model",
    ] {
        let (config, weights) = golden(name);
        let file = made(&config, &weights, Kind::F32).unwrap_or_else(|e| panic!("{name}: {e}"));
        let file = Gguf::parse(bytes(&file).into()).unwrap_or_else(|e| panic!("{name}: {e}"));
        let (again, read) = (file.config().unwrap(), file.weights().unwrap());
        for (key, value) in again.as_object().unwrap() {
            let theirs = &config[key];
            assert!(theirs.is_null() || theirs == value, "{name} {key}: {theirs} {value}");
        }
        for (tensor, array) in &weights {
            let tied = tensor == "lm_head.weight" && config["tie_word_embeddings"] == true;
            if tied || tensor.starts_with("pooler.") {
                continue;
            }
            let (got, wanted) = (read[tensor].floats().unwrap(), array.floats().unwrap());
            // Norms of Gemma are 1 more in the file.
            let apart = std::iter::zip(&*got, &*wanted).map(|(a, b)| (a - b).abs());
            assert!(apart.fold(0f32, f32::max) < 2e-7, "{name} {tensor}");
        }
        let head = (name == "bert-Model").then_some(Head::Bare);
        let [a, b] = [(&config, weights), (&again, read)].map(|(config, weights)| {
            let weights = weights.into_iter().filter(|(name, _)| !name.starts_with("pooler."));
            let mut config = config.clone();
            config["add_pooling_layer"] = json!(false);
            let model = text::load(&config, weights.collect(), head, 0, &Device::flex());
            let mut texts = Texts::new();
            texts.push(&[1, 7, 3, 2, 9, 11, 6, 0, 5]);
            numbers(&model.unwrap().forward(&texts, None, Mode::Eval).hidden)
        });
        assert!(largest_difference(&a, &b) < 1e-5, "{name}");
    }
}

/// Another program would compute something else.
#[test]
fn what_a_file_cannot_have_is_refused_by_its_key() {
    let rows = [
        ("llama-ForCausalLM", json!({"hidden_act": "gelu"}), "hidden_act: got \"gelu\""),
        ("gpt2-LMHeadModel", json!({"activation_function": "relu"}), "activation_function: got"),
        ("gpt2-LMHeadModel", json!({"scale_attn_weights": false}), "scale_attn_weights: got false"),
        (
            "gpt2-LMHeadModel",
            json!({"scale_attn_by_inverse_layer_idx": true}),
            "scale_attn_by_inverse_layer_idx: got true",
        ),
        (
            "bert-Model",
            json!({"hidden_act": "relu"}),
            "hidden_act: got \"relu\", read back as \"gelu\"",
        ),
        (
            "qwen3-ForCausalLM",
            json!({"layer_types": ["full_attention", "sliding_attention"], "use_sliding_window": true}),
            "layer_types: got",
        ),
        (
            "llama-ForCausalLM",
            json!({"rope_parameters": {"rope_theta": 10000.0, "partial_rotary_factor": 0.5}}),
            "rope_parameters: got",
        ),
        (
            "gemma3_text-ForCausalLM",
            json!({"layer_types": null, "sliding_window_pattern": 3}),
            "sliding_window_pattern: got 3, read back as no such key",
        ),
        (
            "gemma3_text-ForCausalLM",
            json!({"query_pre_attn_scalar": 10}),
            "query_pre_attn_scalar: got 10",
        ),
        (
            "gemma3_text-ForCausalLM",
            json!({"rope_parameters": {
                "full_attention": {"rope_type": "default", "rope_theta": 1e6},
                "sliding_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4},
            }}),
            "rope_parameters: got",
        ),
        (
            "mistral-ForCausalLM",
            json!({"sliding_window": 2}),
            "sliding_window: got 2, read back as null",
        ),
    ];
    for (name, changes, part) in rows {
        let (mut config, weights) = golden(name);
        for (key, value) in changes.as_object().unwrap() {
            match value.is_null() {
                true => _ = config.as_object_mut().unwrap().remove(key),
                false => config[key] = value.clone(),
            }
        }
        let error = made(&config, &weights, Kind::F32).unwrap_err().to_string();
        assert!(error.contains(part), "{name}: {error} / {part}");
    }
    // Without the key, it has a window.
    let (mut config, weights) = golden("mistral-ForCausalLM");
    config.as_object_mut().unwrap().remove("sliding_window");
    let error = made(&config, &weights, Kind::F32).unwrap_err().to_string();
    assert!(error.contains("sliding_window: got no such key, read back as null"), "{error}");
    config["sliding_window"] = Value::Null;
    made(&config, &weights, Kind::F32).unwrap_or_else(|e| panic!("{e}"));
}

/// llama.cpp takes the number of tokens for that of rows.
#[test]
fn every_row_of_the_embeddings_has_a_token() {
    let (config, weights) = golden("gpt2-LMHeadModel");
    let file = ModelFiles::from(&fixtures().join("gguf/tokenizer-gpt-2.gguf"));
    let mut vocabulary = file.vocabulary().unwrap().unwrap();
    let rows = weights["transformer.wte.weight"].shape[0];
    let made = |vocabulary: &Vocabulary| {
        let content = Content {
            config: &config,
            weights: &weights,
            vocabulary: Some(vocabulary),
            pooling: None,
        };
        Output::new(content, Kind::F32, &BTreeMap::new())
    };
    let count = vocabulary.tokens.len();
    assert!(count > rows);
    let error = made(&vocabulary).unwrap_err().to_string();
    assert!(
        error.contains(&format!("has {count} tokens, the model has rows for {rows}")),
        "{error}"
    );
    vocabulary.tokens.truncate(rows - 2);
    vocabulary.kinds.truncate(rows - 2);
    vocabulary.special = SpecialIds::default();
    let again = Gguf::parse(bytes(&made(&vocabulary).unwrap()).into()).unwrap();
    let again = again.vocabulary().unwrap().unwrap();
    assert_eq!(again.tokens[..rows - 2], vocabulary.tokens);
    assert_eq!(again.tokens[rows - 2..], [rows - 2, rows - 1].map(|id| format!("[PAD{id}]")));
    assert_eq!(again.kinds[rows - 2..], [TokenKind::Unused; 2]);
}

#[test]
fn pooling_is_read_and_written() {
    let (config, weights) = golden("bert-Model");
    let file = ModelFiles::from(&fixtures().join("gguf/bert-Model.gguf"));
    assert_eq!(file.pooling().unwrap(), Some(Pooling::Mean));
    for (pooling, wanted) in [(Some(Pooling::Cls), Pooling::Cls), (None, Pooling::Mean)] {
        let content = Content { config: &config, weights: &weights, vocabulary: None, pooling };
        let made = Output::new(content, Kind::F32, &BTreeMap::new()).unwrap();
        let mut bytes = bytes(&made);
        let read = |bytes: &[u8]| Gguf::parse(bytes.to_vec().into()).unwrap().pooling();
        assert_eq!(read(&bytes), Ok(Some(wanted)));
        let key = b"bert.pooling_type";
        let at = bytes.windows(key.len()).position(|part| part == key).unwrap() + key.len() + 4;
        bytes[at] = 3;
        assert!(
            read(&bytes).unwrap_err().contains("bert.pooling_type: got 3 (LAST), need 1 (MEAN)")
        );
        bytes[at] = 0;
        assert_eq!(read(&bytes), Ok(None));
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
        let file = made(&config, &weights, kind).unwrap_or_else(|e| panic!("{e}"));
        let written = bytes(&file);
        assert!(
            file.halves.is_empty()
                && file.counts.contains(&(kind, if kind == Kind::F32 { 21 } else { 15 })),
            "{:?}",
            file.counts
        );
        let file = Gguf::parse(written.clone().into()).unwrap();
        let (read_config, read) = (file.config().unwrap(), file.weights().unwrap());
        let kept = read["model.layers.0.mlp.up_proj.weight"].is_quantized();
        assert!(kept == [Kind::Q4_0, Kind::Q8_0].contains(&kind), "{kind:?}");
        assert_eq!(read_config["rope_parameters"]["rope_type"], "llama3");
        // What was quantised is written as it is.
        let again = made(&read_config, &read, kind).unwrap();
        assert!(bytes(&again) == written, "{kind:?}");
        let opened = text::load(&read_config, read, None, 0, &Device::flex()).unwrap();
        let apart = largest_difference(&logits(&*opened), &plain);
        assert!(apart <= bound * most, "{kind:?}: {apart:e} of {most}");
    }
    let odd = json!({"model_type": "gpt_neox"});
    let error = made(&odd, &weights, Kind::F32).unwrap_err().to_string();
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
