//! Writing of GGUF files: the names, layouts and keys that llama.cpp reads.

mod blocks;
mod keys;

use super::header::{ALIGNMENT, MAGIC};
use super::kinds::Kind;
use super::names::{self, Change};
use super::{ARCHITECTURES, Architecture};
use crate::checkpoint::{Array, Arrays};
use crate::vocabulary::Vocabulary;
use crate::{Error, Result};
use keys::Entry;
use serde_json::Value;
use std::collections::BTreeMap;

/// Version that is written.
const VERSION: u32 = 3;

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The file.
    pub bytes: Vec<u8>,
    /// Number of tensors of each type.
    pub counts: Vec<(Kind, usize)>,
    /// Names of matrices whose rows do not fit the blocks of the type: they are in half precision.
    pub halves: Vec<String>,
}

/// Serialises a model as a GGUF file whose matrices are of a type, but for those with another one in
/// `others`, by name. Norms, biases and tables of positions stay in single precision.
///
/// # Errors
/// If there is no architecture for the model, a value cannot be written in this type, or a tensor
/// has no name there.
pub fn write(
    config: &Value,
    weights: &Arrays,
    vocabulary: Option<&Vocabulary>,
    kind: Kind,
    others: &BTreeMap<String, Kind>,
) -> Result<Written> {
    let of = architecture(config)?;
    let mut entries = keys::of_model(of.name, config, weights, kind).map_err(Error::Invalid)?;
    if let Some(vocabulary) = vocabulary {
        entries.extend(keys::of_vocabulary(of.name, vocabulary));
    }
    let tied = config["tie_word_embeddings"].as_bool();
    let mut tensors = vec![];
    let mut halves = vec![];
    for (name, array) in weights {
        // A tied output layer is written once, and the pooler of an encoder not at all.
        if name == "lm_head.weight" && tied == Some(true) || name.starts_with("pooler.") {
            continue;
        }
        let Some((theirs, change)) = names::theirs(of.names, name) else {
            let of = of.name;
            return Err(Error::invalid(format!(
                "{name} has no name in GGUF's architecture {of}: nothing was written"
            )));
        };
        let wrong = |message: String| Error::invalid(format!("{name}: {message}"));
        let of = others.get(name).copied().unwrap_or(kind);
        let tensor = tensor(array, change, &theirs, config, of).map_err(wrong)?;
        if of != tensor.kind && tensor.kind == Kind::F16 {
            halves.push(name.clone());
        }
        tensors.push((theirs, tensor));
    }
    if let Some(divisors) = keys::divisors(of.name, config).map_err(Error::Invalid)? {
        let (shape, kind) = (vec![divisors.len()], Kind::F32);
        let bytes = divisors.iter().flat_map(|x| x.to_le_bytes()).collect();
        tensors.push(("rope_freqs.weight".into(), Tensor { shape, kind, bytes }));
    }
    let mut counts: Vec<(Kind, usize)> = vec![];
    for (_, tensor) in &tensors {
        match counts.iter_mut().find(|(kind, _)| *kind == tensor.kind) {
            Some((_, count)) => *count += 1,
            None => counts.push((tensor.kind, 1)),
        }
    }
    Ok(Written { bytes: serialize(&entries, &tensors), counts, halves })
}

/// Checks that there is an architecture for a model.
///
/// # Errors
/// If there is none, with those that there are.
pub fn check(config: &Value) -> Result<()> {
    architecture(config).map(|_| ())
}

/// The architecture of a configuration.
fn architecture(config: &Value) -> Result<&'static Architecture> {
    let kind = config["model_type"].as_str().unwrap_or("");
    let name = match kind {
        "gemma3_text" => "gemma3",
        // Mistral with a window is not what llama.cpp takes for a Llama.
        "mistral" if config["sliding_window"].is_null() => "llama",
        kind => kind,
    };
    ARCHITECTURES.into_iter().find(|of| of.name == name).ok_or_else(|| {
        Error::invalid(format!(
            "model_type: got {kind:?}; a GGUF file can have llama, mistral without a window, qwen3, \
             gemma3_text, gpt2 or bert"
        ))
    })
}

/// A tensor as it is written.
struct Tensor {
    /// Outermost first.
    shape: Vec<usize>,
    kind: Kind,
    bytes: Vec<u8>,
}

fn tensor(
    array: &Array,
    change: Change,
    name: &str,
    config: &Value,
    kind: Kind,
) -> Result<Tensor, String> {
    let turned = change == Change::Turned && array.shape.len() == 2;
    let mut shape = array.shape.clone();
    if turned {
        shape.reverse();
    }
    let plain =
        shape.len() < 2 || name.starts_with("position_embd") || name.starts_with("token_types");
    let fits = shape.last().is_some_and(|row| row.is_multiple_of(kind.block().0));
    let kind = match plain {
        true => Kind::F32,
        false if fits => kind,
        false => Kind::F16,
    };
    let bytes = match blocks::as_they_are(array, turned, kind) {
        Some(bytes) => bytes,
        None => {
            let mut floats = array.floats().ok_or("is not of floats")?.into_owned();
            if turned {
                let [rows, width] = [shape[0], shape[1]];
                floats =
                    (0..rows * width).map(|at| floats[at % width * rows + at / width]).collect();
            }
            if change == Change::LessOne {
                floats.iter_mut().for_each(|x| *x += 1.0);
            }
            blocks::quantize(&floats, kind)?
        }
    };
    let heads = match change {
        Change::Queries => config["num_attention_heads"].as_u64(),
        Change::Keys => {
            config["num_key_value_heads"].as_u64().or(config["num_attention_heads"].as_u64())
        }
        _ => None,
    };
    let bytes = match heads {
        Some(heads) => names::alternating_halves(&bytes, shape[0], heads as usize)?,
        None => bytes,
    };
    Ok(Tensor { shape, kind, bytes })
}

fn text(to: &mut Vec<u8>, text: &str) {
    to.extend((text.len() as u64).to_le_bytes());
    to.extend(text.as_bytes());
}

fn pad(to: &mut Vec<u8>) {
    to.resize(to.len().next_multiple_of(ALIGNMENT), 0);
}

fn serialize(entries: &[(String, Entry)], tensors: &[(String, Tensor)]) -> Vec<u8> {
    let mut to = MAGIC.to_vec();
    to.extend(VERSION.to_le_bytes());
    to.extend((tensors.len() as u64).to_le_bytes());
    to.extend((entries.len() as u64).to_le_bytes());
    for (key, entry) in entries {
        text(&mut to, key);
        entry.write(&mut to);
    }
    let mut offset = 0;
    for (name, tensor) in tensors {
        text(&mut to, name);
        to.extend((tensor.shape.len() as u32).to_le_bytes());
        tensor.shape.iter().rev().for_each(|side| to.extend((*side as u64).to_le_bytes()));
        to.extend(tensor.kind.number().to_le_bytes());
        to.extend((offset as u64).to_le_bytes());
        offset += tensor.bytes.len().next_multiple_of(ALIGNMENT);
    }
    pad(&mut to);
    for (_, tensor) in tensors {
        to.extend(&tensor.bytes);
        pad(&mut to);
    }
    to
}
