//! Saves small models in the Hugging Face layout, each with its output for a batch, so that
//! `python fixtures/make/models.py --check FOLDER/*` can compare transformers' output. With more
//! folders, the golden models of texts or images in them are loaded and saved again,
//! for `python fixtures/make/texts.py --check FOLDER/*`, or `vit.py`.
//!
//!     cargo run -p regard-models --example save_for_transformers -- FOLDER
//!     cargo run -p regard-models --example save_for_transformers -- FOLDER fixtures/texts/*
//!     cargo run -p regard-models --example save_for_transformers -- FOLDER fixtures/vit/*

use burn::tensor::{Device, Int, Tensor};
use regard_attention::Mode;
use regard_models::checkpoint::{self, Precision};
use regard_models::vit::Vit;
use regard_models::{Network, Seq2Seq, Source, text, zoo};
use serde_json::json;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("need a folder to write to")?;
    let goldens: Vec<String> = std::env::args().skip(2).collect();
    if !goldens.is_empty() {
        return goldens.iter().try_for_each(|golden| again(Path::new(golden), Path::new(&folder)));
    }
    let rows = [
        ("shared", json!({ "activation_function": "swish" })),
        (
            "separate",
            json!({ "share_encoder_decoder_embeddings": false, "decoder_vocab_size": 13 }),
        ),
        ("untied", json!({ "tie_word_embeddings": false, "scale_embedding": false })),
        ("pre", json!({ "norms": "pre", "activation_function": "gelu" })),
        ("pre-untied", json!({ "norms": "pre", "tie_word_embeddings": false })),
    ];
    let device = Device::flex();
    for (name, more) in rows {
        let mut config = json!({
            "model_type": "transformer", "vocab_size": 17, "d_model": 16, "encoder_layers": 2,
            "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 4,
            "encoder_ffn_dim": 24, "decoder_ffn_dim": 20,
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            config[key] = value.clone();
        }
        let model = zoo::create::<dyn Seq2Seq>(&config, 7, &device)?;
        let (source, words) = ([[4, 5, 6, 7, 2], [8, 9, 2, 0, 0]], [[1, 4, 5, 6], [1, 7, 8, 9]]);
        let read = Source { ids: Tensor::from_ints(source, &device), lengths: vec![5, 3] };
        let given = Tensor::<2, Int>::from_ints(words, &device);
        let logits = model.forward(&read, given, Mode::Eval).logits;
        let said = json!({
            "source": source, "words": words, "lengths": read.lengths,
            "shape": logits.dims(), "logits": logits.into_data().try_to_vec::<f32>()?,
        });
        let folder = Path::new(&folder).join(name);
        std::fs::create_dir_all(&folder)?;
        checkpoint::write(&folder, &model.config(), &model.weights(), Precision::Single)?;
        checkpoint::write_file(&folder.join("said.json"), said.to_string().as_bytes())?;
    }
    Ok(())
}

/// Reads a golden model and saves it again, with its expected output.
fn again(golden: &Path, folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::flex();
    let (config, weights) = match zoo::is::<Vit>(&checkpoint::read_config(golden)?) {
        true => {
            let model = zoo::open::<Vit>(golden, &device)?;
            (model.config(), model.weights())
        }
        false => {
            let model = text::open(golden, None, 0, &device)?;
            (model.config(), model.weights())
        }
    };
    let folder = folder.join(golden.file_name().ok_or("need the folder of a model")?);
    std::fs::create_dir_all(&folder)?;
    checkpoint::write(&folder, &config, &weights, Precision::Single)?;
    std::fs::copy(golden.join("said.safetensors"), folder.join("said.safetensors"))?;
    Ok(())
}
