//! Untrusted weight files: none makes a reader panic, hang or exhaust memory. The crate
//! `regard-fuzz` documents how to run these for longer.

use regard_fuzz::{Counting, Scratch, fuzz, parts};
use regard_models::adapter::{self, Adapter};
use regard_models::gguf::Gguf;
use regard_models::llama2c::Llama2c;
use regard_models::{ModelFiles, checkpoint};
use std::path::Path;

#[global_allocator]
static MEMORY: Counting = Counting;

#[test]
fn fuzz_safetensors() {
    fuzz!("safetensors", |bytes: &[u8]| {
        let arrays = checkpoint::weights_from_bytes(bytes.to_vec());
        arrays.is_ok_and(|arrays| {
            arrays.into_values().all(|array| array.is_float() == array.into_floats().is_some())
        })
    });
}

#[test]
fn fuzz_pickle() {
    let scratch = Scratch::default();
    fuzz!("pickle", |bytes: &[u8]| {
        checkpoint::read_arrays(&scratch.write("weights.bin", bytes)).is_ok()
    });
}

#[test]
fn fuzz_weights_index() {
    let scratch = Scratch::default();
    let shard = std::fs::read(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fuzz/safetensors/two.safetensors"
    ));
    for number in 1..=2 {
        let name = format!("model-0000{number}-of-00002.safetensors");
        scratch.write(&name, shard.as_ref().unwrap());
    }
    fuzz!("weights-index", |bytes: &[u8]| {
        scratch.write("model.safetensors.index.json", bytes);
        checkpoint::read_weights(scratch.folder()).is_ok()
    });
}

#[test]
fn fuzz_gguf() {
    fuzz!("gguf", |bytes: &[u8]| {
        let Ok(file) = Gguf::parse(bytes.to_vec().into()) else { return false };
        _ = file.vocabulary();
        _ = file.config();
        // Names that no architecture has are refused before they are converted.
        file.kinds().for_each(|(name, _)| _ = file.tensor(name));
        file.weights().is_ok()
    });
}

#[test]
fn fuzz_llama2c() {
    fuzz!("llama2c", |bytes: &[u8]| {
        let Ok(file) = Llama2c::parse(bytes.to_vec().into()) else { return false };
        _ = file.vocabulary();
        !file.weights().is_empty()
    });
}

/// `adapter_config.json` and the tensors of an adapter, which is added to each of a few models.
#[test]
fn fuzz_adapter() {
    let scratch = Scratch::default();
    let bases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/adapters");
    let bases: Vec<ModelFiles> = ["gpt2", "llama-patterns", "llama-expression"]
        .map(|name| ModelFiles::from(&bases.join(name).join("base")))
        .into();
    fuzz!("adapter", |bytes: &[u8]| {
        let [config, weights] = parts(bytes);
        scratch.write(adapter::CONFIG, config);
        scratch.write(adapter::WEIGHTS, weights);
        let Ok(adapter) = Adapter::open(scratch.folder()) else { return false };
        let fits = |base: &ModelFiles| base.clone().adapted(adapter.clone()).weights().is_ok();
        bases.iter().filter(|base| fits(base)).count() > 0
    });
}
