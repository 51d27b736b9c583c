//! Models of llama.cpp: configuration, weights and vocabulary in one file, GGUF.
//!
//! A file becomes what a folder of Hugging Face's layout has: the keys of `config.json` and weights
//! by the names of the same family, so that no model knows where it came from. Weights keep their
//! type where the kernels have it, and are converted to single precision otherwise.

mod bert;
mod gpt2;
mod header;
mod kinds;
mod llama;
mod names;
#[cfg(test)]
mod tests;
mod values;
mod vocabulary;
mod write;

pub use header::MAGIC;
pub use kinds::Kind;
pub(crate) use names::joined_halves;
pub use write::{Written, check, write};

use crate::checkpoint::{self, Array, Arrays, Dtype};
use crate::vocabulary::Vocabulary;
use crate::{Error, Result, sizes};
use header::{Header, Place};
use names::{Change, Names};
use regard_attention::ops::QuantizedWeight;
use regard_attention::quant::{Bits, QuantizedMatrix};
use regard_attention::storage::Bytes;
use serde_json::Value;
use std::path::Path;

/// A GGUF file.
#[derive(Clone, Debug)]
pub struct Gguf {
    bytes: Bytes,
    header: Header,
}

/// A family of models: its name in files, and how it is read.
struct Architecture {
    name: &'static str,
    /// Makes `config.json`.
    config: fn(&Gguf) -> Result<Value, String>,
    /// Names of tensors.
    names: &'static [Names],
}

/// All architectures that are read.
const ARCHITECTURES: [&Architecture; 5] =
    [&llama::LLAMA, &llama::QWEN3, &llama::GEMMA3, &gpt2::GPT2, &bert::BERT];

impl Gguf {
    /// Opens a file: maps it, and reads its header.
    ///
    /// # Errors
    /// If it is not a complete GGUF file, or has tensors of a type that is not read.
    pub fn open(path: &Path) -> Result<Gguf> {
        Gguf::parse(checkpoint::map_file(path)?).map_err(|message| Error::file(path, message))
    }

    /// Reads the header of a file that is in memory.
    ///
    /// # Errors
    /// As [`Gguf::open`].
    pub fn parse(bytes: Bytes) -> Result<Gguf, String> {
        let header = Header::parse(&bytes)?;
        Ok(Gguf { bytes, header })
    }

    fn architecture(&self) -> Result<&'static Architecture, String> {
        let names = ARCHITECTURES.map(|of| of.name);
        let key = "general.architecture";
        let name = self.only(key, &names)?.ok_or_else(|| format!("has no {key}"))?;
        Ok(ARCHITECTURES.into_iter().find(|of| of.name == name).expect("it is one of them"))
    }

    /// Returns the configuration, with the keys of `config.json`.
    ///
    /// # Errors
    /// If the architecture, or something that the file asks of it, is not supported.
    pub fn config(&self) -> Result<Value, String> {
        let mut config = (self.architecture()?.config)(self)?;
        let vocabulary = self.special_ids()?;
        for (key, ids) in vocabulary {
            config[key] = ids;
        }
        Ok(config)
    }

    /// Returns the weights by their names in the Hugging Face layout.
    ///
    /// # Errors
    /// If a weight cannot be what its name says.
    pub fn weights(&self) -> Result<Arrays, String> {
        let architecture = self.architecture()?;
        let mut arrays = Arrays::new();
        for (name, place) in &self.header.tensors {
            let (name, change) = match names::ours(architecture.names, name) {
                Some((_, Change::Left)) => continue,
                Some(found) => found,
                // The model reports it as unexpected.
                None => (name.clone(), Change::None),
            };
            let array = self.array(place, change);
            let array = array.map_err(|e| format!("{}: {e}", sizes::short(&name, 80)))?;
            arrays.insert(name, array);
        }
        Ok(arrays)
    }

    /// Returns the vocabulary; `None` if the file has none.
    ///
    /// # Errors
    /// If it is of a kind that is not supported, or its parts do not fit.
    pub fn vocabulary(&self) -> Result<Option<Vocabulary>, String> {
        vocabulary::read(self)
    }

    /// Names and element types of all tensors.
    pub fn kinds(&self) -> impl Iterator<Item = (&str, Kind)> {
        self.header.tensors.iter().map(|(name, place)| (&**name, place.kind))
    }

    /// Sizes of a tensor, outermost first; `None` if there is none of this name.
    fn shape(&self, name: &str) -> Option<Vec<usize>> {
        self.header.tensors.get(name).map(|place| place.axes.iter().rev().copied().collect())
    }

    /// Returns a tensor in single precision, as the file has it; `None` if there is none.
    pub fn tensor(&self, name: &str) -> Option<Array> {
        let place = self.header.tensors.get(name)?;
        let shape = place.axes.iter().rev().copied().collect();
        Some(Array::new(shape, floats(place.kind, &self.bytes[place.range.clone()])))
    }

    fn array(&self, place: &Place, change: Change) -> Result<Array, String> {
        let mut shape: Vec<usize> = place.axes.iter().rev().copied().collect();
        let bytes = self.bytes.part(place.range.clone());
        let bytes = match change.heads(self)? {
            // Rows of the file are whole blocks, so that they move without being converted.
            Some(heads) if place.kind.block().0 == 1 || shape.len() == 2 => {
                names::joined_halves(&bytes, shape[0], heads)?.into()
            }
            Some(_) => return Err(format!("is {}, need F32 or F16 of a bias", place.kind.name())),
            None => bytes,
        };
        let array = match (place.kind, &shape[..]) {
            (Kind::F32, _) => stored(&shape, Dtype::F32, bytes),
            (Kind::F16, _) => stored(&shape, Dtype::F16, bytes),
            (Kind::Bf16, _) => stored(&shape, Dtype::BF16, bytes),
            (Kind::Q4_0, [outputs, inputs]) => blocks(Bits::Int4, &bytes, [*outputs, *inputs])?,
            (Kind::Q8_0, [outputs, inputs]) => {
                blocks(Bits::Int8Groups, &bytes, [*outputs, *inputs])?
            }
            (kind, _) => Array::new(shape.clone(), floats(kind, &bytes)),
        };
        match change {
            Change::LessOne => {
                let floats = array.into_floats().expect("every type is of floats");
                Ok(Array::new(shape, floats.into_iter().map(|x| x - 1.0).collect()))
            }
            Change::Turned if shape.len() == 2 => {
                shape.reverse();
                if let Some(weight) = array.as_quantized() {
                    return Ok(Array::of_quantized(shape, weight.transpose()));
                }
                let floats = array.into_floats().expect("every type is of floats");
                let [inputs, outputs] = [shape[0], shape[1]];
                let turned = (0..inputs * outputs)
                    .map(|at| floats[at % outputs * inputs + at / outputs])
                    .collect();
                Ok(Array::new(shape, turned))
            }
            _ => Ok(array),
        }
    }
}

fn stored(shape: &[usize], dtype: Dtype, bytes: Bytes) -> Array {
    Array::in_file(shape.to_vec(), dtype, bytes).expect("the header has compared the sizes")
}

fn floats(kind: Kind, bytes: &[u8]) -> Vec<f32> {
    let (block, size) = kind.block();
    let mut floats = vec![0.0; bytes.len() / size * block];
    kind.floats(bytes, &mut floats);
    floats
}

/// Keeps the blocks of a type that our own bits have.
fn blocks(bits: Bits, bytes: &[u8], shape: [usize; 2]) -> Result<Array, String> {
    let size = bytes.len() / shape[0];
    let rows = |row: usize| &bytes[row * size..(row + 1) * size];
    let matrix = QuantizedMatrix::from_blocks(bits, shape, &rows).map_err(|e| e.to_string())?;
    Ok(Array::of_quantized(shape.to_vec(), QuantizedWeight::from(matrix)))
}
