//! The goldens of `fixtures/make/models.py`.

use crate::batch::{largest_difference, numbers, rows};
use burn::tensor::Device;
use regard_attention::Mode;
use regard_models::zoo::load;
use regard_models::{Seq2Seq, Source, checkpoint};
use serde::Deserialize;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
struct Said {
    source: Vec<Vec<i64>>,
    lengths: Vec<usize>,
    words: Vec<Vec<i64>>,
    shape: Vec<usize>,
    logits: Vec<f32>,
}

/// Path of a golden.
pub fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/models").join(name)
}

/// The logits are the golden ones, within rounding.
fn check(name: &str) {
    let (folder, device) = (golden(name), Device::flex());
    let config = checkpoint::read_config(&folder).unwrap();
    let weights = checkpoint::read_weights(&folder).unwrap();
    let model =
        load::<dyn Seq2Seq>(&config, weights, &device).unwrap_or_else(|e| panic!("{name}: {e}"));
    let text = std::fs::read_to_string(folder.join("said.json")).unwrap();
    let said: Said = serde_json::from_str(&text).unwrap();
    let source = Source { ids: rows(&said.source, &device), lengths: said.lengths };
    let logits = model.forward(&source, rows(&said.words, &device), Mode::Eval).logits;
    assert_eq!(logits.dims().to_vec(), said.shape, "{name}");
    let scale = said.logits.iter().fold(1f32, |max, x| max.max(x.abs()));
    let error = largest_difference(&numbers(logits), &said.logits);
    assert!(error <= 1e-5 * scale, "{name}: differs by {error:e} where logits reach {scale}");
}

#[test]
fn marian_and_pegasus_say_what_transformers_says() {
    for name in ["marian-shared", "marian-separate", "marian-untied", "pegasus", "pegasus-unscaled"]
    {
        check(name);
    }
}

#[test]
fn recurrent_models_follow_their_papers() {
    for name in [
        "rnn-0",
        "rnn-1",
        "bahdanau-2",
        "bahdanau-3",
        "bahdanau-4",
        "luong-5",
        "luong-6",
        "luong-7",
        "luong-8",
        "luong-9",
    ] {
        check(name);
    }
}
