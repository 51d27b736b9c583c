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
mod pooling;
mod refused;
#[cfg(test)]
mod tests;
mod values;
mod vocabulary;
mod write;

pub use header::MAGIC;
pub use kinds::Kind;
pub(crate) use names::joined_halves;
pub use pooling::Pooling;
pub use write::{Content, Output, check};

use crate::checkpoint::{self, Array, Arrays, Dtype};
use crate::vocabulary::Vocabulary;
use crate::{Error, Result, sizes};
use burn::tensor::{Device, Tensor, TensorData};
use header::{Header, Place};
use names::{Change, Names};
use regard_attention::ops::QuantizedWeight;
use regard_attention::quant::{Bits, QuantizedMatrix};
use regard_attention::storage::Bytes;
use serde_json::Value;
use std::cell::LazyCell;
use std::path::Path;

/// Rows of a panel of the quantised kernels.
const PANEL: usize = 16;

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
        let size = bytes.len();
        Gguf::parse_beginning(bytes, size)
    }

    /// Reads the header of the first bytes of a file of `size` bytes. Tensors beyond them have no
    /// values.
    fn parse_beginning(bytes: Bytes, size: usize) -> Result<Gguf, String> {
        let header = Header::parse(&bytes, size)?;
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
    /// If a weight cannot be what its name says, or the architecture has no tensor of a name.
    pub fn weights(&self) -> Result<Arrays, String> {
        self.weights_in(None)
    }

    /// Returns the weights as [`Gguf::weights`] does. Matrices of layers whose type the kernels do
    /// not have are quantised one after the other, if they are to be stored so: all of them in
    /// single precision would take eight times the file.
    ///
    /// # Errors
    /// As [`Gguf::weights`].
    pub(crate) fn weights_in(&self, storage: Option<Bits>) -> Result<Arrays, String> {
        let architecture = self.architecture()?;
        // Asked for once: files may have a number for each layer.
        let heads = LazyCell::new(|| self.heads(architecture.name));
        let mut arrays = Arrays::new();
        for (theirs, place) in &self.header.tensors {
            let shown = sizes::short(theirs, 80);
            let Some((name, change)) = names::ours(architecture.names, theirs) else {
                let of = architecture.name;
                return Err(format!("unexpected tensor {shown}: the architecture {of} has none"));
            };
            let heads = match change {
                Change::InConfig => continue,
                Change::Queries => Some((*heads).clone()?[0]),
                Change::Keys => Some((*heads).clone()?[1]),
                Change::None | Change::PlusOne | Change::Transposed => None,
            };
            let array = self.array(place, change, heads).map_err(|e| format!("{shown}: {e}"))?;
            let converted = place.kind.is_quantized() && place.kind.bits().is_none();
            let array = match storage.filter(|_| converted && theirs.starts_with("blk.")) {
                Some(bits) => quantized(array, bits),
                None => array,
            };
            arrays.insert(name, array);
        }
        Ok(arrays)
    }

    /// Numbers of query heads and of key heads.
    fn heads(&self, of: &str) -> Result<[usize; 2], String> {
        let layers = self.need(&format!("{of}.block_count"))?;
        let key = format!("{of}.attention.head_count");
        let queries = self.same_size(&key, layers)?.ok_or_else(|| format!("has no {key}"))?;
        let keys = self.same_size(&format!("{key}_kv"), layers)?;
        Ok([queries, keys.unwrap_or(queries)])
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

    /// Makes an array of a tensor; `heads` is the number of heads whose halves alternate, if they do.
    fn array(&self, place: &Place, change: Change, heads: Option<usize>) -> Result<Array, String> {
        let mut shape: Vec<usize> = place.axes.iter().rev().copied().collect();
        let bytes = self.bytes.part(place.range.clone());
        let bytes = match heads {
            // Rows of the file are whole blocks, so that they move without being converted.
            Some(heads) if place.kind.block().0 == 1 || shape.len() == 2 => {
                names::joined_halves(&bytes, shape[0], heads)?.into()
            }
            Some(_) => return Err(format!("is {}, need F32 or F16 of a bias", place.kind.name())),
            None => bytes,
        };
        let array = match place.kind {
            Kind::F32 => stored(&shape, Dtype::F32, bytes),
            Kind::F16 => stored(&shape, Dtype::F16, bytes),
            Kind::Bf16 => stored(&shape, Dtype::BF16, bytes),
            kind => match (kind.bits(), &shape[..]) {
                // Fewer rows than a panel would take more memory than floats.
                (Some(bits), &[outputs, inputs]) if outputs >= PANEL => {
                    blocks(bits, &bytes, [outputs, inputs])?
                }
                _ => Array::new(shape.clone(), floats(kind, &bytes)),
            },
        };
        match change {
            Change::PlusOne => {
                let floats = array.into_floats().expect("every type is of floats");
                Ok(Array::new(shape, floats.into_iter().map(|x| x - 1.0).collect()))
            }
            Change::Transposed if shape.len() == 2 => {
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

/// Quantises a matrix, by its rows, if it is large enough for it and its values are finite.
fn quantized(array: Array, bits: Bits) -> Array {
    let &[rows, width] = &array.shape[..] else { return array };
    if rows.min(width) < checkpoint::LEAST_SIDE {
        return array;
    }
    let shape = array.shape.clone();
    let floats = array.floats().expect("every type is of floats").into_owned();
    let values = Tensor::<2>::from_data(TensorData::new(floats, [rows, width]), &Device::flex());
    match QuantizedWeight::of_rows(bits, values) {
        Ok(weight) => Array::of_quantized(shape, weight),
        Err(_) => array,
    }
}

/// Keeps the blocks of a type that our own bits have.
fn blocks(bits: Bits, bytes: &[u8], shape: [usize; 2]) -> Result<Array, String> {
    let size = bytes.len() / shape[0];
    let rows = |row: usize| &bytes[row * size..(row + 1) * size];
    let matrix = QuantizedMatrix::from_blocks(bits, shape, &rows).map_err(|e| e.to_string())?;
    Ok(Array::of_quantized(shape.to_vec(), QuantizedWeight::from(matrix)))
}
