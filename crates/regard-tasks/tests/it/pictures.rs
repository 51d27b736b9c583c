//! The goldens of `fixtures/make/pictures.py`: images as Pillow reads and resizes them, and the
//! preprocessing that a model's folder configures.

use regard_models::vit::{Config, Sides};
use regard_tasks::classify_image::{FILE, Processor, resize};
use regard_tasks::data::Image;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
struct Expected {
    size: [usize; 2],
    rgb: Vec<u8>,
    grey: Vec<u8>,
    #[serde(default)]
    resized: Vec<Resized>,
}

#[derive(Deserialize)]
struct Resized {
    size: [usize; 2],
    rgb: Vec<u8>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/pictures")
}

fn expected() -> BTreeMap<String, Expected> {
    serde_json::from_slice(&std::fs::read(folder().join("expected.json")).unwrap()).unwrap()
}

/// Largest and mean difference.
fn apart(a: &[u8], b: &[u8]) -> (u8, f64) {
    assert_eq!(a.len(), b.len());
    let each: Vec<u8> = a.iter().zip(b).map(|(a, b)| a.abs_diff(*b)).collect();
    let sum: f64 = each.iter().map(|x| f64::from(*x)).sum();
    (each.iter().copied().max().unwrap(), sum / each.len() as f64)
}

#[test]
fn pictures_are_read_as_pillow_reads_them() {
    let all = expected();
    assert_eq!(all.len(), 8);
    for (name, wanted) in all {
        let got = Image::read(folder().join(&name)).unwrap();
        assert_eq!(got.size, wanted.size, "{name}");
        let rgb = got.with_channels(3).unwrap().pixels;
        // A JPEG leaves its decoder some freedom; a PNG does not.
        let (most, mean) = if name.ends_with(".jpg") { (12, 1.5) } else { (0, 0.0) };
        let (largest, usual) = apart(&rgb, &wanted.rgb);
        assert!(largest <= most && usual <= mean, "{name}: {largest} at most, {usual} usually");
        let grey = got.with_channels(1).unwrap().pixels;
        let (largest, usual) = apart(&grey, &wanted.grey);
        assert!(largest <= most && usual <= mean, "{name}, grey: {largest}, {usual}");
    }
}

#[test]
fn pictures_are_resized_as_pillow_resizes_them() {
    let wanted = &expected()["colours.png"];
    let picture = Image::read(folder().join("colours.png")).unwrap();
    assert_eq!(wanted.resized.len(), 3);
    for Resized { size, rgb } in &wanted.resized {
        let got = resize(&picture, *size);
        assert_eq!((got.size, got.pixels == *rgb), (*size, true), "{size:?}");
    }
}

fn config(channels: usize, size: [usize; 2]) -> Config {
    Config { num_channels: channels, image_size: Sides::Each(size), ..Config::default() }
}

#[test]
fn a_processor_does_what_its_file_says() {
    let picture = Image { size: [1, 2], channels: 3, pixels: vec![0, 51, 255, 102, 204, 153] };
    let said = json!({
        "size": { "height": 1, "width": 2 }, "resample": 2, "image_mean": [0.0, 0.2, 0.5],
        "image_std": [1.0, 0.5, 0.25], "rescale_factor": 1.0 / 255.0,
        "do_convert_rgb": null, "image_processor_type": "ViTFeatureExtractor",
    });
    let read =
        |said: &Value, config: &Config| Processor::from_bytes(said.to_string().as_bytes(), config);
    let model = config(3, [1, 2]);
    let processor = read(&said, &model).unwrap();
    let numbers = processor.prepare(&picture, &model).unwrap();
    let wanted = [0.0, 0.4, 0.0, 1.2, 2.0, 0.4];
    assert!(numbers.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-6), "{numbers:?}");
    // Written and read again it does the same.
    let folder = std::env::temp_dir().join(format!("regard-processor-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    processor.save(&folder).unwrap();
    assert!(folder.join(FILE).is_file());
    assert_eq!(Processor::load(&(&folder).into(), &model).unwrap(), processor);
    std::fs::remove_dir_all(folder).unwrap();
    // Without steps, bytes remain as they are.
    let mut plain = said.clone();
    plain["do_rescale"] = json!(false);
    plain["do_normalize"] = json!(false);
    plain["size"] = json!(2);
    let square = config(3, [2, 2]);
    let numbers = read(&plain, &square).unwrap().prepare(&picture, &square).unwrap();
    assert_eq!(numbers[..4], [0.0, 102.0, 0.0, 102.0]);
    let rows = [
        ("size", json!({ "shortest_edge": 2 }), "size: got {\"shortest_edge\":2}"),
        ("size", json!(7), "size: got [7, 7], the model takes images of [1, 2]"),
        ("resample", json!(3), "resample: got 3"),
        ("image_mean", json!([0.5]), "image_mean: got [0.5], need 3 numbers"),
        ("image_std", json!([0.5, 0.0, 1.0]), "image_std: got [0.5, 0.0, 1.0]"),
        ("rescale_factor", json!("much"), "invalid type"),
    ];
    for (key, value, wanted) in rows {
        let mut said = said.clone();
        said[key] = value;
        let error = read(&said, &model).unwrap_err();
        assert!(error.contains(wanted), "{key}: {error}");
    }
    let mut fixed = said;
    fixed["do_resize"] = json!(false);
    let other = Image { size: [2, 2], channels: 1, pixels: vec![0; 4] };
    let error = read(&fixed, &model).unwrap().prepare(&other, &model).unwrap_err().to_string();
    assert!(error.contains("do_resize is false"), "{error}");
}
