//! The goldens of `fixtures/make/vit.py`: images against transformers, and models that
//! transformers does not have against themselves.

use crate::batch::{largest_difference, numbers};
use crate::texts::close;
use burn::tensor::{Device, Int, Tensor, TensorData};
use regard_attention::ops::{CrossEntropy, cross_entropy};
use regard_attention::{AdamW, AdamWConfig, Mode};
use regard_models::checkpoint::{self, Precision};
use regard_models::vit::Vit;
use regard_models::{Network, zoo};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn folders() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/vit");
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(all).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders
}

fn images(count: usize, [channels, rows, columns]: [usize; 3], device: &Device) -> Tensor<4> {
    let number = |i: usize| ((i * 37 + i * i % 101) % 64) as f32 / 32.0 - 1.0;
    let numbers = (0..count * channels * rows * columns).map(number).collect();
    Tensor::from_data(TensorData::new(numbers, [count, channels, rows, columns]), device)
}

/// A model with everything that Hugging Face's `vit` does not have.
fn extended() -> Value {
    json!({
        "model_type": "vision_transformer", "image_size": [9, 13], "patch_size": 1,
        "num_channels": 1, "stem_channels": [6, 10], "pooling": "mean",
        "positions": "sinusoidal", "hidden_size": 16, "num_hidden_layers": 2,
        "num_attention_heads": 2, "intermediate_size": 24, "num_labels": 4,
        "initializer_range": 0.2, "hidden_dropout_prob": 0.1,
    })
}

#[test]
fn images_are_read_as_transformers_reads_them() {
    let device = Device::flex();
    assert_eq!(folders().len(), 5);
    for folder in folders() {
        let model = zoo::open::<Vit>(&folder, &device).unwrap_or_else(|e| panic!("{e}"));
        let said = checkpoint::read_arrays(&folder.join("said.safetensors")).unwrap();
        let pixels = &said["pixels"];
        let shape: [usize; 4] = pixels.shape.clone().try_into().unwrap();
        let pixels = Tensor::<4>::from_data(
            TensorData::new(pixels.floats().unwrap().into_owned(), shape),
            &device,
        );
        let seen = model.forward(pixels.clone(), Mode::Eval);
        close(&folder, "hidden", &numbers(seen.hidden), &said["hidden"]);
        assert_eq!(seen.logits.is_some(), said.contains_key("logits"));
        assert_eq!(seen.pooled.is_some(), said.contains_key("pooled"));
        for (name, got) in [("logits", seen.logits), ("pooled", seen.pooled)] {
            got.into_iter().for_each(|got| close(&folder, name, &numbers(got), &said[name]));
        }
        let (_, looks) = model.forward_with_attention(pixels);
        assert_eq!(looks.len(), 2);
        for (i, weights) in looks.into_iter().enumerate() {
            let name = format!("attention.{i}");
            close(&folder, &name, &numbers(weights), &said[&name]);
        }
    }
}

#[test]
fn what_is_saved_is_what_was_read() {
    let device = Device::flex();
    for folder in folders() {
        let model = zoo::open::<Vit>(&folder, &device).unwrap();
        let (config, weights) = (model.config(), model.weights());
        assert_eq!(weights, checkpoint::read_weights(&folder).unwrap(), "{}", folder.display());
        let theirs = checkpoint::read_config(&folder).unwrap();
        for (key, value) in config.as_object().unwrap() {
            // transformers writes floats as doubles.
            let near = value.as_f64().zip(theirs[key].as_f64());
            let same = near.is_some_and(|(a, b)| (a - b).abs() <= 1e-6 * b.abs());
            assert!(same || *value == theirs[key], "{}: {key} is {value}", folder.display());
        }
    }
}

#[test]
fn what_hugging_face_cannot_say_is_saved_under_a_name_of_its_own() {
    let device = Device::flex();
    for change in [
        json!({ "stem_channels": [] }),
        json!({ "pooling": "cls" }),
        json!({ "positions": "learned" }),
        json!({ "stem_halving": "max" }),
        json!({}),
    ] {
        let mut asked = extended();
        asked.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let model = zoo::create::<Vit>(&asked, 3, &device).unwrap();
        let config = model.config();
        assert_eq!(config["model_type"], "vision_transformer");
        let again = zoo::load::<Vit>(&config, model.weights(), &device).unwrap();
        let pixels = images(2, [1, 9, 13], &device);
        let said = |model: &Vit| numbers(model.forward(pixels.clone(), Mode::Eval).logits.unwrap());
        assert_eq!(said(&model), said(&again));
        assert_eq!(again.config(), config);
    }
    let mut plain = extended();
    for (key, value) in [("stem_channels", json!([])), ("pooling", json!("cls"))] {
        plain[key] = value;
    }
    plain["positions"] = json!("learned");
    let config = zoo::create::<Vit>(&plain, 3, &device).unwrap().config();
    assert_eq!(config["model_type"], "vit");
    assert!(config.get("pooling").is_none() && config.get("stem_channels").is_none());
}

#[test]
fn an_image_alone_says_what_it_says_among_others() {
    let device = Device::flex();
    let model = zoo::create::<Vit>(&extended(), 3, &device).unwrap();
    let pixels = images(5, [1, 9, 13], &device);
    let all = numbers(model.forward(pixels.clone(), Mode::Eval).logits.unwrap());
    for i in 0..5 {
        let one = pixels.clone().slice([i..i + 1, 0..1, 0..9, 0..13]);
        let alone = numbers(model.forward(one, Mode::Eval).logits.unwrap());
        assert_eq!(alone, all[i * 4..(i + 1) * 4], "image {i}");
    }
}

#[test]
fn a_stem_may_keep_the_largest_of_each_square() {
    let device = Device::flex();
    let mut config = extended();
    (config["stem_halving"], config["stem_channels"]) = (json!("max"), json!([6]));
    config["pooling"] = json!("cls");
    let model = zoo::create::<Vit>(&config, 3, &device).unwrap();
    // An odd last row and column are dropped.
    assert_eq!(model.settings().grid(), [4, 6]);
    let (seen, looks) = model.forward_with_attention(images(1, [1, 9, 13], &device));
    assert_eq!((seen.hidden.dims(), looks[0].dims()), ([1, 25, 16], [1, 2, 25, 25]));
}

#[test]
fn every_part_learns() {
    for halving in ["stride", "max"] {
        let mut config = extended();
        config["stem_halving"] = json!(halving);
        learns(&config);
    }
}

fn learns(config: &Value) {
    let device = Device::flex().autodiff();
    let mut model = zoo::create::<Vit>(config, 3, &device).unwrap();
    let mut adamw = AdamW::new(AdamWConfig::default());
    let labels = Tensor::<1, Int>::from_ints([0, 1, 2, 3, 0, 1], &device);
    let mut losses = vec![];
    for step in 1..=120 {
        let pixels = images(6, [1, 9, 13], &device);
        let logits = model.forward(pixels, Mode::Train { seed: 1, step }).logits.unwrap();
        let loss = cross_entropy(logits, labels.clone(), CrossEntropy::default());
        losses.push(loss.clone().into_scalar::<f32>());
        model.step(&mut adamw, 3e-3, loss.backward());
        assert!(adamw.without_gradient().is_empty(), "{:?}", adamw.without_gradient());
    }
    assert!(losses[0] > 1.0 && losses[119] < 0.3, "{losses:?}");
}

#[test]
fn positions_of_sines_tell_rows_from_columns() {
    let device = Device::flex();
    let mut config = extended();
    // Without a stem and with one colour, patches differ by position only.
    config["stem_channels"] = json!([]);
    config["image_size"] = json!([2, 3]);
    let model = zoo::create::<Vit>(&config, 3, &device).unwrap();
    let hidden = model.forward(Tensor::ones([1, 1, 2, 3], &device), Mode::Eval).hidden;
    let rows: Vec<Vec<f32>> = numbers(hidden).chunks(16).map(<[f32]>::to_vec).collect();
    for (i, j) in (0..6).flat_map(|i| (0..i).map(move |j| (i, j))) {
        assert!(largest_difference(&rows[i], &rows[j]) > 1e-3, "places {i} and {j}");
    }
}

#[test]
fn sizes_that_cannot_be_are_told() {
    let device = Device::flex();
    let rows = [
        ("image_size", json!(0), "image_size: got 0"),
        ("image_size", json!([16777216, 16777216]), "more than"),
        ("patch_size", json!(4), "patch_size: got [4, 4], need at most [3, 4]"),
        ("num_attention_heads", json!(3), "need a divisor of hidden_size = 16"),
        ("hidden_size", json!(18), "need a multiple of 4"),
        ("stem_channels", json!([0]), "stem_channels: got 0"),
        ("hidden_act", json!("sine"), "hidden_act: got \"sine\""),
        ("pooling", json!("max"), "pooling: got \"max\", need one of cls, mean"),
        ("image_size", json!("abc"), "image_size: got \"abc\", need a whole number, or a list of"),
        ("model_type", json!("resnet"), "model_type: got \"resnet\""),
        ("architectures", json!(["ViTForMaskedImageModeling"]), "need ViTForImageClassification"),
        ("hidden_dropout_prob", json!(1.0), "hidden_dropout_prob: got 1"),
        ("num_labels", json!(0), "num_labels: got 0"),
    ];
    for (key, value, wanted) in rows {
        let mut config = extended();
        if key == "hidden_size" {
            config["num_attention_heads"] = json!(2);
        }
        config[key] = value;
        let error = zoo::create::<Vit>(&config, 0, &device).err().unwrap().to_string();
        assert!(error.contains(wanted), "{key}: {error}");
    }
}

#[test]
fn weights_that_do_not_fit_are_told_at_once() {
    let device = Device::flex();
    let model = zoo::create::<Vit>(&extended(), 3, &device).unwrap();
    let mut weights = model.weights();
    weights.remove("vit.embeddings.stem.1.bias").unwrap();
    let norm = weights.remove("vit.layernorm.weight").unwrap();
    weights.insert("vit.strange".into(), norm);
    let error = zoo::load::<Vit>(&model.config(), weights, &device).err().unwrap().to_string();
    for part in ["stem.1.bias [10] is missing", "layernorm.weight [16] is missing", "vit.strange"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn folders_are_written_and_opened() {
    let device = Device::flex();
    let folder = std::env::temp_dir().join(format!("regard-vit-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let model = zoo::create::<Vit>(&extended(), 3, &device).unwrap();
    checkpoint::write(&folder, &model.config(), &model.weights(), Precision::Single).unwrap();
    assert_eq!(zoo::open::<Vit>(&folder, &device).unwrap().weights(), model.weights());
    std::fs::remove_dir_all(folder).unwrap();
}

/// Three images that are equal but for the channel that is lit, with patches or a stem.
#[test]
fn every_channel_is_seen_and_learned_from() {
    let device = Device::flex().autodiff();
    let plane = |lit: bool| (0..6 * 6).map(move |i| if lit && i % 7 > 2 { 1.0f32 } else { -0.3 });
    let values: Vec<f32> =
        (0..3).flat_map(|image| (0..3).flat_map(move |c| plane(c == image))).collect();
    let pixels = Tensor::<4>::from_data(TensorData::new(values, [3, 3, 6, 6]), &device);
    let labels = Tensor::<1, Int>::from_ints([0, 1, 2], &device);
    let stems: [(&[usize], &str, usize); 4] =
        [(&[], "stride", 3), (&[], "stride", 1), (&[5], "stride", 1), (&[5], "max", 1)];
    for (stem, halving, patch) in stems {
        let mut config = extended();
        (config["image_size"], config["num_channels"]) = (json!(6), json!(3));
        (config["stem_channels"], config["stem_halving"]) = (json!(stem), json!(halving));
        (config["patch_size"], config["num_labels"]) = (json!(patch), json!(3));
        let mut model = zoo::create::<Vit>(&config, 3, &device).unwrap();
        let mut adamw = AdamW::new(AdamWConfig::default());
        for step in 1..=80 {
            let logits = model.forward(pixels.clone(), Mode::Train { seed: 1, step }).logits;
            let loss = cross_entropy(logits.unwrap(), labels.clone(), CrossEntropy::default());
            model.step(&mut adamw, 5e-3, loss.backward());
            assert!(adamw.without_gradient().is_empty(), "{:?}", adamw.without_gradient());
        }
        // Saved as Hugging Face's layout, `[O, C, rows, columns]`, and read again.
        let again = zoo::load::<Vit>(&model.config(), model.weights(), &Device::flex()).unwrap();
        let pixels = Tensor::<4>::from_data(pixels.to_data(), &Device::flex());
        let said = numbers(again.forward(pixels, Mode::Eval).logits.unwrap());
        for (image, scores) in said.chunks_exact(3).enumerate() {
            let best = (0..3).max_by(|a, b| scores[*a].total_cmp(&scores[*b])).unwrap();
            assert_eq!(best, image, "{config}: {said:?}");
        }
    }
}
