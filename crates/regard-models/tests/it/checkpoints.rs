//! Invalid checkpoints: a clear error, never a panic.

use crate::goldens::golden;
use crate::zoo;
use burn::tensor::Device;
use regard_models::Seq2Seq;
use regard_models::checkpoint::{self, Array, Arrays, Precision};
use regard_models::zoo::{create, load, open};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// A copy of a golden that is removed with the test.
struct Folder(PathBuf);

impl Folder {
    fn of(name: &str, test: &str) -> Folder {
        let folder = format!("regard-bad-{test}-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        fs::create_dir_all(&folder).unwrap();
        for file in ["config.json", "model.safetensors"] {
            fs::copy(golden(name).join(file), folder.join(file)).unwrap();
        }
        Folder(folder)
    }

    fn weights(&self) -> PathBuf {
        self.0.join("model.safetensors")
    }

    fn change(&self, change: impl FnOnce(&mut Arrays)) {
        let mut arrays = checkpoint::read_weights(&self.0).unwrap();
        change(&mut arrays);
        checkpoint::write_arrays(&self.weights(), &arrays, Precision::Single).unwrap();
    }

    fn configure(&self, key: &str, value: Value) {
        let path = self.0.join("config.json");
        let mut config = checkpoint::read_config(&self.0).unwrap();
        config[key] = value;
        fs::write(path, config.to_string()).unwrap();
    }

    /// Asserts that the error contains all of these.
    fn fails_with(&self, parts: &[&str]) {
        let error = match open::<dyn Seq2Seq>(&self.0, &Device::flex()) {
            Ok(_) => panic!("loaded, where {parts:?} was expected"),
            Err(error) => error.to_string(),
        };
        for part in parts {
            assert!(error.contains(part), "no {part:?} in: {error}");
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn tensors_that_are_missing_or_of_another_shape() {
    let folder = Folder::of("marian-shared", "tensors");
    let (gone, other) = ("model.encoder.layers.1.fc1.bias", "model.decoder.layers.0.fc2.weight");
    folder.change(|arrays| {
        arrays.remove(gone);
        arrays.insert(other.into(), Array::new(vec![24, 1], vec![0.0; 24]));
    });
    // All problems at once, and the file.
    let parts = ["model.safetensors", gone, "missing", other, "[24, 1]", "[24, 40]"];
    folder.fails_with(&parts);
}

#[test]
fn files_that_are_cut_short() {
    let folder = Folder::of("luong-6", "short");
    let bytes = fs::read(folder.weights()).unwrap();
    for end in (0..bytes.len()).step_by(131).chain([7, 8, bytes.len() - 1]) {
        fs::write(folder.weights(), &bytes[..end]).unwrap();
        folder.fails_with(&["model.safetensors", "truncated"]);
    }
    fs::remove_file(folder.weights()).unwrap();
    folder.fails_with(&["model.safetensors"]);
}

#[test]
fn headers_with_a_flipped_bit() {
    let folder = Folder::of("luong-6", "header");
    let bytes = fs::read(folder.weights()).unwrap();
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut refused = 0;
    for at in 0..header {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        fs::write(folder.weights(), flipped).unwrap();
        // Some bits change a space or another tensor's name; then the model loads as before.
        if let Err(error) = open::<dyn Seq2Seq>(&folder.0, &Device::flex()) {
            assert!(error.to_string().contains("model.safetensors"), "byte {at}: {error}");
            refused += 1;
        }
    }
    assert!(refused * 10 > header * 8, "only {refused} of {header} were seen");
}

#[test]
fn configurations_that_cannot_be() {
    let rows = [
        ("luong-6", "model_type", json!("bert"), vec!["model_type", "bert", "bahdanau"]),
        ("luong-6", "model_type", json!(null), vec!["model_type", "marian"]),
        ("luong-6", "hidden_size", json!(0), vec!["hidden_size", "got 0"]),
        ("luong-6", "hidden_size", json!(16_000_000), vec!["hidden_size", "matrix"]),
        ("luong-6", "num_layers", json!(5_000_000), vec!["num_layers"]),
        ("luong-6", "hidden_size", json!(9), vec!["decoder.rnn.weight_hh_l0", "[32, 8]"]),
        ("luong-6", "hidden_size", json!("8"), vec!["hidden_size: got \"8\", need a whole number"]),
        ("marian-shared", "d_model", json!("x"), vec!["d_model: got \"x\", need a whole number"]),
        ("luong-6", "bidirectional", json!(true), vec!["score", "dot", "general"]),
        ("luong-8", "locality", json!({ "kind": "local-p", "width": 0 }), vec!["local-p", "width"]),
        ("luong-6", "pad_token_id", json!(15), vec!["pad_token_id", "13 tokens"]),
        ("luong-6", "attention", json!({ "kind": "windw" }), vec!["windw"]),
        ("luong-6", "attention", json!({ "kind": "window", "lft": 1 }), vec!["lft"]),
        ("luong-6", "attention", json!({ "kind": "global", "left": 1 }), vec!["left"]),
        ("rnn-0", "start", json!("learned"), vec!["start", "learned", "encoder"]),
        ("marian-shared", "encoder_attention_heads", json!(5), vec!["encoder_attention_heads"]),
        ("marian-shared", "d_model", json!(0), vec!["d_model"]),
        ("marian-shared", "activation_function", json!("sine"), vec!["sine", "swish"]),
        ("marian-shared", "vocab_size", json!(1u64 << 40), vec!["vocab_size"]),
        ("marian-shared", "decoder_vocab_size", json!(38), vec!["vocab_size 37", "38"]),
        ("marian-shared", "eos_token_id", json!(37), vec!["eos_token_id"]),
        ("marian-shared", "dropout", json!(1.0), vec!["dropout"]),
        ("pegasus", "alignment_layer", json!(2), vec!["alignment_layer"]),
        ("pegasus", "encoder_attention", json!({ "kind": "sparsemax" }), vec!["encoder_attention"]),
    ];
    for (at, (name, key, value, mut parts)) in rows.into_iter().enumerate() {
        let folder = Folder::of(name, &format!("config-{at}"));
        folder.configure(key, value);
        let file = if parts[0].contains('.') { "model.safetensors" } else { "config.json" };
        parts.push(file);
        folder.fails_with(&parts);
    }
    let folder = Folder::of("pegasus", "json");
    fs::write(folder.0.join("config.json"), "{\"model_type\": ").unwrap();
    folder.fails_with(&["config.json", "not JSON"]);
}

/// Splits a golden into shards as transformers does.
fn shard(folder: &Folder) -> (Value, PathBuf) {
    let all = checkpoint::read_weights(&folder.0).unwrap();
    let (mut parts, mut map) = ([Arrays::new(), Arrays::new()], json!({}));
    let name = |part: usize| format!("model-{:05}-of-00002.safetensors", part + 1);
    for (i, (key, array)) in all.into_iter().enumerate() {
        map[&key] = name(i % 2).into();
        parts[i % 2].insert(key, array);
    }
    for (i, arrays) in parts.iter().enumerate() {
        checkpoint::write_arrays(&folder.0.join(name(i)), arrays, Precision::Single).unwrap();
    }
    fs::remove_file(folder.weights()).unwrap();
    let index = folder.0.join("model.safetensors.index.json");
    fs::write(&index, json!({ "metadata": {}, "weight_map": map }).to_string()).unwrap();
    (map, index)
}

#[test]
fn shards() {
    let folder = Folder::of("bahdanau-2", "shards");
    let whole = open::<dyn Seq2Seq>(&folder.0, &Device::flex()).unwrap().weights();
    let (map, index) = shard(&folder);
    assert!(open::<dyn Seq2Seq>(&folder.0, &Device::flex()).unwrap().weights() == whole);
    // A tensor that the index promises and no shard has.
    let mut more = map.clone();
    more["decoder.ghost"] = "model-00001-of-00002.safetensors".into();
    fs::write(&index, json!({ "weight_map": more }).to_string()).unwrap();
    folder.fails_with(&["model.safetensors.index.json", "decoder.ghost"]);
    for outside in ["../model.safetensors", "/etc/passwd", ".."] {
        let mut more = map.clone();
        more["decoder.ghost"] = outside.into();
        fs::write(&index, json!({ "weight_map": more }).to_string()).unwrap();
        folder.fails_with(&["model.safetensors.index.json", outside]);
    }
    fs::write(&index, "{}").unwrap();
    folder.fails_with(&["model.safetensors.index.json", "weight_map"]);
    fs::write(&index, json!({ "weight_map": map }).to_string()).unwrap();
    fs::remove_file(folder.0.join("model-00002-of-00002.safetensors")).unwrap();
    folder.fails_with(&["model-00002-of-00002.safetensors"]);
}

#[test]
fn what_cannot_be_written_leaves_what_was_there() {
    let device = Device::flex();
    let model = create::<dyn Seq2Seq>(&zoo::recurrent("rnn", &[]), 1, &device).unwrap();
    let nowhere = Path::new("/dev/null/model");
    let error = checkpoint::write(nowhere, &model.config(), &model.weights(), Precision::Single);
    assert!(error.unwrap_err().to_string().contains("/dev/null/model"));
    let folder = Folder::of("rnn-0", "unwritten");
    let before = fs::read(folder.weights()).unwrap();
    // A folder where the temporary file would be: it cannot be written.
    let beside = format!(".model.safetensors.{}.tmp", std::process::id());
    fs::create_dir_all(folder.0.join(beside)).unwrap();
    let error = checkpoint::write(&folder.0, &model.config(), &model.weights(), Precision::Single);
    assert!(error.unwrap_err().to_string().contains("model.safetensors"));
    assert_eq!(fs::read(folder.weights()).unwrap(), before);
}

/// Quantised weights are reported by name and type; buffers of integers are ignored.
#[test]
fn integers_are_told() {
    use safetensors::{Dtype, tensor::TensorView};
    let folder = Folder::of("marian-separate", "integers");
    let whole = fs::read(folder.weights()).unwrap();
    let with = |extra: &[(&str, Dtype)], without: &str| {
        let file = safetensors::SafeTensors::deserialize(&whole).unwrap();
        let mut views = file.tensors();
        views.retain(|(name, _)| name != without);
        let numbers = [0u8; 64];
        for (name, dtype) in extra {
            let bytes = &numbers[..4 * dtype.bitsize() / 8];
            views.push((name.to_string(), TensorView::new(*dtype, vec![2, 2], bytes).unwrap()));
        }
        safetensors::serialize_to_file(views, None, &folder.weights()).unwrap();
        let opened = open::<dyn Seq2Seq>(&folder.0, &Device::flex());
        opened.err().map(|e| e.to_string()).unwrap_or_default()
    };
    let layer = "model.encoder.layers.0.fc1";
    let [quantised, weight] = ["qweight", "weight"].map(|end| format!("{layer}.{end}"));
    let error = with(&[(&quantised, Dtype::I32)], &weight);
    let wanted =
        [format!("unexpected tensor {quantised} (I32)"), format!("{weight} "), "is missing".into()];
    assert!(wanted.iter().all(|part| error.contains(part)), "{error}");
    // An integer where a weight belongs, of the right shape or not.
    let bias = "model.encoder.layers.0.fc1.bias";
    let error = with(&[(bias, Dtype::I8)], bias);
    assert!(error.contains(bias) && error.contains("[2, 2]"), "{error}");
    assert_eq!(with(&[], ""), "");
}

/// An open model is unaffected when its files are replaced, and truncated files are refused before
/// use.
#[test]
fn files_in_place_may_be_replaced() {
    let folder = Folder::of("marian-separate", "replaced");
    let before = checkpoint::map_weights(&folder.0).unwrap();
    assert!(before.values().all(|array| array.bytes().is_mapped()));
    let wanted = checkpoint::read_weights(&folder.0).unwrap();
    assert!(wanted.values().all(|array| !array.bytes().is_mapped()));
    folder.change(|arrays| arrays.values_mut().for_each(|array| array.change(|x| x.fill(7.0))));
    assert_eq!(before, wanted);
    let whole = fs::read(folder.weights()).unwrap();
    for length in [0, 7, 8, whole.len() / 2, whole.len() - 1] {
        fs::write(folder.weights(), &whole[..length]).unwrap();
        let error = checkpoint::map_weights(&folder.0).unwrap_err().to_string();
        assert!(error.contains("not a complete safetensors file"), "{length}: {error}");
    }
}

#[test]
fn halves_are_near_enough() {
    let folder = Folder::of("marian-separate", "halves");
    let all = checkpoint::read_weights(&folder.0).unwrap();
    checkpoint::write_arrays(&folder.weights(), &all, Precision::Half).unwrap();
    let size = fs::metadata(folder.weights()).unwrap().len() as usize;
    assert!(size < 3 * all.values().map(|a| a.count()).sum::<usize>(), "{size}");
    let halves = open::<dyn Seq2Seq>(&folder.0, &Device::flex()).unwrap().weights();
    for (name, array) in halves {
        let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-3 * b.abs() + 1e-7;
        let (array, all) = (array.floats().unwrap(), all[&name].floats().unwrap());
        assert!(array.iter().zip(&all[..]).all(near), "{name}");
    }
}

/// An unexpected tensor means that the configuration is of another model, e.g. with fewer layers.
#[test]
fn tensors_without_a_place_are_told() {
    let device = Device::flex();
    for (name, config) in zoo::all() {
        let model = create::<dyn Seq2Seq>(&config, 1, &device).unwrap();
        for stray in ["ghost.weight", "ghost.embed_tokens.weight"] {
            let mut weights = model.weights();
            let array = weights.values().next().unwrap().clone();
            weights.insert(stray.into(), array);
            let error = load::<dyn Seq2Seq>(&model.config(), weights, &device).err();
            let error = error.unwrap_or_else(|| panic!("{name}: {stray}")).to_string();
            assert!(error.contains(&format!("unexpected tensor {stray}")), "{name}: {error}");
        }
    }
}
