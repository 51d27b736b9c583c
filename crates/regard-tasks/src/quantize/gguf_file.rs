//! GGUF files of any model that llama.cpp has an architecture for.

use super::{Quality, Sample, dequantize, quantize};
use crate::decode::GenerationConfig;
use crate::embed::{SentencePooling, sentence};
use crate::text::Tokenizer;
use crate::train;
use regard_models::checkpoint::Arrays;
use regard_models::gguf::{self, Content, Kind, Output, Pooling};
use regard_models::{Error, ModelFiles, Result};
use std::collections::BTreeMap;

/// A GGUF file, and what its types lose.
pub struct GgufFile {
    /// The file, which is made as it is written.
    pub output: Output,
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
    let (vocabulary, pooling) = (Some(&vocabulary), pooling(&files)?);
    let original = files.weights()?;
    let bytes_before = original.values().map(regard_models::checkpoint::Array::size).sum();
    let (config, original) = dequantize(config, original);
    let content = Content { config: &config, weights: &original, vocabulary, pooling };
    // What the file cannot have is told before anything is measured.
    let output = Output::new(content, kind, &BTreeMap::new())?;
    let Some(bits) = kind.bits() else {
        return Ok(GgufFile { output, quality: None, kept: vec![], bytes_before });
    };
    drop(output);
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
    let output = Output::new(Content { weights: &weights, ..content }, kind, &others)?;
    Ok(GgufFile { output, quality: Some(made.quality), kept: made.kept, bytes_before })
}

/// The pooling of a model for embeddings.
fn pooling(files: &ModelFiles) -> Result<Option<Pooling>> {
    let Some(settings) = sentence::read(files)? else { return Ok(None) };
    match settings.pooling {
        SentencePooling::Mean => Ok(Some(Pooling::Mean)),
        SentencePooling::Cls => Ok(Some(Pooling::Cls)),
        SentencePooling::Max => Err(Error::file(
            files.path(sentence::MODULES),
            "pools by the maximum, which a GGUF file cannot have: need the mean or the first token",
        )),
    }
}
