//! Quantised weights: near the floats, saved and loaded without change, the same in every batch.

use burn::tensor::{Device, Int, Tensor};
use regard_attention::Mode;
use regard_attention::quant::Bits;
use regard_models::checkpoint::{self, Precision};
use regard_models::text::{self, Head, Texts};
use regard_models::{ModelFiles, Network, Seq2Seq, Source, zoo};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

fn configs() -> Vec<Value> {
    let seq2seq = json!({
        "vocab_size": 70, "decoder_vocab_size": 70, "d_model": 48, "encoder_layers": 1,
        "decoder_layers": 1, "encoder_attention_heads": 3, "decoder_attention_heads": 3,
        "encoder_ffn_dim": 80, "decoder_ffn_dim": 80, "hidden_size": 48, "embedding_size": 48,
    });
    let text = json!({
        "vocab_size": 70, "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 3,
        "intermediate_size": 80, "max_position_embeddings": 64, "n_embd": 48, "n_layer": 2,
        "n_head": 3, "n_positions": 64, "d_model": 48, "d_inner": 80, "num_labels": 2,
        "architectures": ["BertForMaskedLM"],
    });
    let named = |config: &Value, name: &str, architecture: Option<&str>| {
        let mut config = config.clone();
        config["model_type"] = json!(name);
        match architecture {
            Some(architecture) => config["architectures"] = json!([architecture]),
            None => drop(config.as_object_mut().unwrap().remove("architectures")),
        }
        config
    };
    vec![
        named(&text, "bert", Some("BertForMaskedLM")),
        named(&text, "gpt2", Some("GPT2LMHeadModel")),
        named(&text, "xlnet", Some("XLNetLMHeadModel")),
        named(&text, "modernbert", Some("ModernBertForMaskedLM")),
        named(&seq2seq, "marian", None),
        named(&seq2seq, "bahdanau", None),
    ]
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("regard-quant-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// `|a − b| / |a|` over all elements.
fn distance(a: &[f32], b: &[f32]) -> f64 {
    let square = |x: f64| x * x;
    let error: f64 = a.iter().zip(b).map(|(a, b)| square(f64::from(a - b))).sum();
    let size: f64 = a.iter().map(|a| square(f64::from(*a))).sum();
    (error / size.max(1e-30)).sqrt()
}

#[test]
fn every_family_is_quantised_and_comes_back_from_its_file() {
    for config in configs() {
        for (bits, bound) in [(Bits::Int8, 0.01), (Bits::Int8Groups, 0.008), (Bits::Int4, 0.12)] {
            let case = format!("{} {}", config["model_type"], bits.name());
            let mut model = zoo::create::<dyn Network>(&config, 1, &Device::flex()).unwrap();
            let (before, parameters) = (model.weights(), model.parameters());
            model.quantize(&|_| Some(bits));
            let after = model.weights();
            assert_eq!(model.parameters(), parameters, "{case}");
            let mut quantised = 0;
            for (name, array) in &before {
                let (a, b) = (array.floats().unwrap(), after[name].floats().unwrap());
                assert_eq!(after[name].shape, array.shape, "{case} {name}");
                quantised += usize::from(a != b);
                assert!(distance(&a, &b) < bound, "{case} {name}: {}", distance(&a, &b));
            }
            assert!(quantised >= 2, "{case}: {quantised} of {}", before.len());
            let folder = Folder::new(&case.replace(['"', ' '], ""));
            let saved = model.config();
            checkpoint::write(&folder.0, &saved, &after, Precision::Single).unwrap();
            let again = zoo::open::<dyn Network>(&folder.0, &Device::flex()).unwrap();
            let reread = again.weights();
            assert_eq!(reread, after, "{case}");
            for (name, array) in &reread {
                assert_eq!(array.quantized_bits(), after[name].quantized_bits(), "{case} {name}");
            }
            // On a device that trains, the values are floats.
            let trained = zoo::open::<dyn Network>(&folder.0, &Device::flex().autodiff()).unwrap();
            assert_eq!(trained.weights(), after, "{case}");
        }
    }
}

fn numbers<const D: usize>(x: Tensor<D>) -> Vec<f32> {
    x.into_data().try_into_vec().unwrap()
}

#[test]
fn hidden_states_are_near_and_do_not_depend_on_the_batch() {
    for config in configs().into_iter().take(4) {
        let bounds = [0.02, 0.05, 0.05, 0.4];
        for (bits, bound) in Bits::ALL.into_iter().zip(bounds) {
            let case = format!("{} {}", config["model_type"], bits.name());
            let folder = Folder::new(&format!("h{}", case.replace(['"', ' '], "")));
            let model = zoo::create::<dyn Network>(&config, 1, &Device::flex()).unwrap();
            checkpoint::write(&folder.0, &model.config(), &model.weights(), Precision::Single)
                .unwrap();
            let open = |storage| {
                let files = ModelFiles::from(&folder.0).stored_in(storage);
                text::open(files, Some(Head::Words), 0, &Device::flex()).unwrap()
            };
            let (plain, quantised) = (open(None), open(Some(bits)));
            let (first, second): (Vec<u32>, Vec<u32>) = ((5..27).collect(), (30..35).collect());
            let both = {
                let mut texts = Texts::new();
                texts.push(&first);
                texts.push(&second);
                texts
            };
            let mut alone = Texts::new();
            alone.push(&first);
            let hidden = |model: &dyn text::TextModel, texts: &Texts| {
                numbers(model.forward(texts, None, Mode::Eval).hidden)
            };
            let (want, got) = (hidden(&*plain, &both), hidden(&*quantised, &both));
            let error = distance(&want, &got);
            assert!(error > 0.0 && error < bound, "{case}: {error}");
            let single = hidden(&*quantised, &alone);
            assert_eq!(single, got[..single.len()], "{case}");
        }
    }
}

#[test]
fn a_quantised_translator_decodes_step_by_step() {
    let config = &configs()[4];
    let device = Device::flex();
    let mut model = zoo::create::<dyn Seq2Seq>(config, 1, &device).unwrap();
    let source = Source {
        ids: Tensor::<2, Int>::from_ints([[3, 4, 5, 2], [4, 3, 2, 0]], &device),
        lengths: vec![4, 3],
    };
    let words = Tensor::<2, Int>::from_ints([[1, 3, 4], [1, 4, 3]], &device);
    let logits =
        |model: &dyn Seq2Seq| numbers(model.forward(&source, words.clone(), Mode::Eval).logits);
    let want = logits(&*model);
    model.quantize(&|_| Some(Bits::Int8));
    let error = distance(&want, &logits(&*model));
    assert!(error > 0.0 && error < 0.05, "{error}");
}

/// Scales of groups that are not numbers, or too few, are an error that names the tensor.
#[test]
fn broken_scales_of_groups_are_refused() {
    let mut model = zoo::create::<dyn Network>(&configs()[0], 1, &Device::flex()).unwrap();
    model.quantize(&|_| Some(Bits::Int8Groups));
    let folder = Folder::new("broken-groups");
    checkpoint::write(&folder.0, &model.config(), &model.weights(), Precision::Single).unwrap();
    let path = folder.0.join(checkpoint::WEIGHTS);
    let bytes = fs::read(&path).unwrap();
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize + 8;
    let entries: Value = serde_json::from_slice(&bytes[8..header]).unwrap();
    let name = "bert.encoder.layer.0.output.dense.weight";
    let scale = format!("{name}_scale");
    // [48, 80] has three groups.
    assert_eq!(entries[&scale]["shape"], json!([48, 3]));
    assert_eq!(entries[&scale]["dtype"], json!("F16"));
    let refused = |bytes: &[u8], what: &str| {
        fs::write(&path, bytes).unwrap();
        let Err(error) = zoo::open::<dyn Network>(&folder.0, &Device::flex()) else {
            panic!("{what}: it was loaded")
        };
        let error = error.to_string();
        assert!(error.contains(name) && error.contains(what), "{what}: {error}");
    };
    let place = header + entries[&scale]["data_offsets"][0].as_u64().unwrap() as usize;
    let mut infinite = bytes.clone();
    infinite[place..place + 2].copy_from_slice(&0x7c00u16.to_le_bytes());
    refused(&infinite, "a scale of int8-groups is inf");
    // Another shape of as many scales; the header keeps its length.
    let text = String::from_utf8(bytes[8..header].to_vec()).unwrap();
    let at = text.find(&scale).unwrap();
    let shape = at + text[at..].find("[48,3]").unwrap();
    let mut turned = bytes.clone();
    turned[8 + shape..8 + shape + 6].copy_from_slice(b"[3,48]");
    refused(&turned, "does not fit values of shape [48, 80] in groups of 32");
}

/// What does not fit is an error that names the tensor and what is wrong with it.
#[test]
fn a_broken_file_is_refused() {
    let mut model = zoo::create::<dyn Network>(&configs()[0], 1, &Device::flex()).unwrap();
    model.quantize(&|_| Some(Bits::Int8));
    let folder = Folder::new("broken");
    checkpoint::write(&folder.0, &model.config(), &model.weights(), Precision::Single).unwrap();
    let path = folder.0.join(checkpoint::WEIGHTS);
    let bytes = fs::read(&path).unwrap();
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize + 8;
    let entries: Value = serde_json::from_slice(&bytes[8..header]).unwrap();
    let name = "bert.encoder.layer.0.output.dense.weight";
    let place = |tensor: &str| {
        let at = |i: usize| entries[tensor]["data_offsets"][i].as_u64().unwrap() as usize;
        header + at(0)..header + at(1)
    };
    let scale = format!("{name}_scale");
    for (tensor, value, what) in [
        (name, &[0x80u8][..], "-128"),
        (&scale, &f32::NAN.to_le_bytes(), "a scale of int8 is NaN"),
        (&scale, &(-1f32).to_le_bytes(), "a scale of int8 is -1"),
    ] {
        let mut broken = bytes.clone();
        broken[place(tensor)][..value.len()].copy_from_slice(value);
        fs::write(&path, &broken).unwrap();
        let Err(error) = zoo::open::<dyn Network>(&folder.0, &Device::flex()) else {
            panic!("{what}: it was loaded")
        };
        let error = error.to_string();
        assert!(error.contains(name) && error.contains(what), "{what}: {error}");
    }
}
