//! Images, sounds, and preprocessor configurations.

use regard_fuzz::{Scratch, fuzz};
use regard_models::vit;
use regard_tasks::audio::{FrontEnd, Preprocessor, Sound, wav};
use regard_tasks::classify_image::Processor;
use regard_tasks::data::{Image, idx};

/// A PNG of a few bytes may be an image of millions of pixels, which is valid: the size must be
/// known before memory is allocated. Four bytes a pixel for 16 million.
const PICTURES: regard_fuzz::Limits =
    regard_fuzz::Limits { growth: 64, memory: 1 << 30, time: std::time::Duration::from_secs(20) };

#[test]
fn fuzz_image() {
    let scratch = Scratch::default();
    fuzz!("image", PICTURES, |bytes: &[u8]| Image::read(scratch.write("x.png", bytes)).is_ok());
}

#[test]
fn fuzz_idx() {
    let scratch = Scratch::default();
    // Deflated data may grow a thousandfold; it is read as a stream.
    let limits = regard_fuzz::Limits { growth: 2100, ..regard_fuzz::Limits::default() };
    fuzz!("idx", limits, |bytes: &[u8]| idx::read(scratch.write("x", bytes)).is_ok());
}

#[test]
fn fuzz_idx_labels() {
    let scratch = Scratch::default();
    // As above, and each byte becomes a number of eight.
    let limits = regard_fuzz::Limits { growth: 12_000, ..regard_fuzz::Limits::default() };
    fuzz!("idx-labels", limits, |bytes: &[u8]| {
        idx::read_labels(scratch.write("x", bytes)).is_ok()
    });
}

#[test]
fn fuzz_wav() {
    // At the lowest rate a second has a thousand samples, sixteen times as many after resampling.
    fuzz!("wav", |bytes: &[u8]| wav::parse(bytes).map(|sound| sound.at(16_000)).is_ok());
}

#[test]
fn fuzz_preprocessor() {
    let config = serde_json::json!({
        "model_type": "vit", "image_size": 12, "patch_size": 4, "num_channels": 1,
        "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 32, "num_labels": 5,
    });
    let config: vit::Config = serde_json::from_value(config).unwrap();
    let picture = Image { size: [3, 4], channels: 1, pixels: vec![7; 12] };
    let sound = Sound { samples: vec![0.1; 4000], rate: 8000 };
    fuzz!("preprocessor", |bytes: &[u8]| {
        let images = Processor::from_bytes(bytes, &config);
        let images = images.is_ok_and(|images| images.prepare(&picture, &config).is_ok());
        let sounds = Preprocessor::parse(bytes).and_then(FrontEnd::new);
        images || sounds.is_ok_and(|sounds| !sounds.rows(&sound).is_empty())
    });
}
