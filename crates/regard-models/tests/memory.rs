//! Memory of models that are opened for inference, counted by the allocator: the size of their file
//! and a tenth, their KV cache, and no second copy of weights in another layout.

use burn::tensor::Device;
use regard_attention::quant::Bits;
use regard_fuzz::{Counting, held, peak_of};
use regard_models::checkpoint::{self, Precision};
use regard_models::text::{self, Head};
use serde_json::json;
use std::fs;

#[global_allocator]
static MEMORY: Counting = Counting;

/// Largest share of the file that an opened model takes, and that opening it takes meanwhile.
const OPENED: f64 = 1.10;
const OPENING: f64 = 1.15 * OPENED;

/// Bytes of the KV cache of a short text, whose keys and values are in one page a layer:
/// layers, keys and values, positions of a page, model width, bytes of a number.
const CACHE: isize = 6 * 2 * 64 * 384 * 4;

#[test]
fn a_model_takes_the_memory_of_its_file() {
    // The shape of GPT-2, in which a table of embeddings is a third of the weights.
    let config = json!({
        "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 12000,
        "n_embd": 384, "n_layer": 6, "n_head": 6, "n_positions": 256,
    });
    let folder = std::env::temp_dir().join(format!("regard-memory-test-{}", std::process::id()));
    let mut rows = vec![];
    for bits in [None, Some(Bits::Int8), Some(Bits::Int4)] {
        fs::create_dir_all(&folder).unwrap();
        let mut model = text::create(&config, Head::Words, 1, &Device::flex()).unwrap();
        if let Some(bits) = bits {
            model.quantize(&|_| Some(bits));
        }
        checkpoint::write(&folder, &model.config(), &model.weights(), Precision::Single).unwrap();
        drop(model);
        let size = fs::metadata(folder.join(checkpoint::WEIGHTS)).unwrap().len() as f64;
        let before = held();
        let open = || text::open(&folder, None, 0, &Device::flex()).unwrap();
        let (opened, peak) = peak_of(usize::MAX >> 1, open);
        let mut logits = vec![];
        let mut decoding = opened.decode(&[&[1, 2, 3]]).expect("a causal model");
        for token in 4..12 {
            decoding.step_slices(&[token], &mut logits);
        }
        // Nothing was arranged a second time to decode.
        let takes = (held() - before - CACHE) as f64 / size;
        let peak = peak as f64 / size;
        let name = bits.map_or("f32", Bits::name);
        rows.push(format!("{name}: file {size} bytes, in use {takes:.3} ×, opening {peak:.3} ×"));
        drop(decoding);
        drop(opened);
        fs::remove_dir_all(&folder).unwrap();
        println!("{}", rows.last().unwrap());
        assert!(takes <= OPENED && peak <= OPENING, "{}", rows.join("\n"));
    }
}
