//! GGUF files of any model that llama.cpp has an architecture for.

use super::{Quality, Sample, dequantize, quantize};
use crate::decode::GenerationConfig;
use crate::text::Tokenizer;
use crate::train;
use regard_attention::quant::Bits;
use regard_models::checkpoint::Arrays;
use regard_models::gguf::{self, Kind, Written};
use regard_models::{ModelFiles, Result};
use std::collections::BTreeMap;

/// A GGUF file, and what its types lose.
pub struct GgufFile {
    /// The file.
    pub written: Written,
    /// Comparison with the original; `None` for types that are not quantised.
    pub quality: Option<Quality>,
    /// Names of matrices that keep a higher precision because they lose most.
    pub kept: Vec<String>,
    /// Size of the weights before, in bytes.
    pub bytes_before: usize,
}

/// Makes a GGUF file of a model, with its tokenizer and chat template. In Q8_0 and Q4_0 it is
/// measured and bounded as [`quantize`] does.
///
/// # Errors
/// If llama.cpp has no architecture or tokenizer for the model, or it loses too much.
pub fn to_gguf(
    files: impl Into<ModelFiles>,
    kind: Kind,
    sample: &Sample,
    max_loss: Option<f64>,
    progress: &dyn Fn(&str),
) -> Result<GgufFile> {
    let files = train::files(files)?;
    let config = files.config()?;
    // Before anything is measured.
    gguf::check(&config)?;
    let mut vocabulary = Tokenizer::of(&files)?.vocabulary()?;
    let ends = GenerationConfig::load(&files)?.eos.unwrap_or_default();
    vocabulary.special.turn = ends.into_iter().find(|id| Some(*id) != vocabulary.special.eos);
    let bits = match kind {
        Kind::Q8_0 => Some(Bits::Int8Groups),
        Kind::Q4_0 => Some(Bits::Int4),
        _ => None,
    };
    let original = files.weights()?;
    let bytes_before = original.values().map(regard_models::checkpoint::Array::size).sum();
    let Some(bits) = bits else {
        let (config, weights) = dequantize(config, original);
        let written = gguf::write(&config, &weights, Some(&vocabulary), kind, &BTreeMap::new())?;
        return Ok(GgufFile { written, quality: None, kept: vec![], bytes_before });
    };
    let made = quantize(files, bits, sample, max_loss, progress)?;
    let mut others = BTreeMap::new();
    let mut weights = Arrays::new();
    for (name, array) in made.weights {
        let of = match array.quantized_bits() {
            Some(of) if of == bits => kind,
            Some(_) => Kind::Q8_0,
            None => Kind::F16,
        };
        if of != kind {
            others.insert(name.clone(), of);
        }
        weights.insert(name, array);
    }
    let (config, _) = dequantize(config, Arrays::new());
    let written = gguf::write(&config, &weights, Some(&vocabulary), kind, &others)?;
    Ok(GgufFile { written, quality: Some(made.quality), kept: made.kept, bytes_before })
}
