//! GGUF files of any model that llama.cpp has an architecture for.

use super::{Quality, Sample, dequantize, quantize};
use crate::decode::GenerationConfig;
use crate::embed::{SentencePooling, sentence};
use crate::text::{ChatTemplate, Tokenizer};
use crate::train;
use burn::tensor::Device;
use regard_models::checkpoint::{Array, Arrays};
use regard_models::gguf::{self, Content, Kind, Output, Pooling};
use regard_models::{Error, ModelFiles, Network, Result, zoo};
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
    let tokenizer = Tokenizer::of(&files)?;
    let mut vocabulary = tokenizer.vocabulary()?;
    vocabulary.chat_template = ChatTemplate::text_of(&files, &tokenizer)?;
    let ends = GenerationConfig::load(&files)?.end_tokens(&config);
    vocabulary.special.eos = vocabulary.special.eos.or(ends.first().copied());
    vocabulary.special.turn = ends.into_iter().find(|id| Some(*id) != vocabulary.special.eos);
    let (vocabulary, pooling) = (Some(&vocabulary), pooling(&files)?);
    let bytes_before = files.weights()?.values().map(Array::size).sum();
    // The opened model has all weights, by their newest names, and no buffers.
    let network = zoo::open::<dyn Network>(files.clone(), &Device::flex())?;
    let (config, original) = dequantize(config, network.weights())?;
    drop(network);
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
