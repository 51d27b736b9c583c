//! Writing of GGUF files: the names, layouts and keys that llama.cpp reads.

mod blocks;
mod keys;
mod read_back;
mod tensor;

use super::header::{ALIGNMENT, MAGIC};
use super::kinds::Kind;
use super::names::{self, Change};
use super::{ARCHITECTURES, Architecture, Gguf, Pooling};
use crate::checkpoint::{Array, Arrays};
use crate::vocabulary::Vocabulary;
use crate::{Error, Result};
use keys::Entry;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, Write};
use tensor::Tensor;

/// Version that is written.
const VERSION: u32 = 3;
/// Name of the divisors of rotary frequencies.
const DIVISORS: &str = "rope_freqs.weight";

/// A model that is to be written.
#[derive(Clone, Copy, Debug)]
pub struct Content<'a> {
    /// `config.json`.
    pub config: &'a Value,
    /// Weights by their names in the Hugging Face layout.
    pub weights: &'a Arrays,
    /// Vocabulary, if the file has one.
    pub vocabulary: Option<&'a Vocabulary>,
    /// Pooling of an encoder; [`Pooling::Mean`] if it has none.
    pub pooling: Option<Pooling>,
}

/// A file that is ready to be written.
#[derive(Clone, Debug)]
pub struct Output {
    /// Everything before the data of the tensors.
    header: Vec<u8>,
    tensors: Vec<Tensor>,
    /// Number of tensors of each type.
    pub counts: Vec<(Kind, usize)>,
    /// Names of matrices whose rows do not fit the blocks of the type: they are in half precision.
    pub halves: Vec<String>,
}

impl Output {
    /// Makes a file whose matrices are of a type, but for those with another one in `others`, by
    /// name. Norms, biases and tables of positions stay in single precision.
    ///
    /// # Errors
    /// If there is no architecture for the model, it cannot have what the configuration asks for,
    /// or a tensor has no name there.
    pub fn new(content: Content, kind: Kind, others: &BTreeMap<String, Kind>) -> Result<Output> {
        let Content { config, weights, vocabulary, .. } = content;
        let of = architecture(config)?;
        let tied = read_back::settings(of.name, config).map_err(Error::Invalid)?.1.tied;
        let mut tensors = vec![];
        if let Some(divisors) = keys::divisors(of.name, config).map_err(Error::Invalid)? {
            let array = Array::new(vec![divisors.len()], divisors);
            // Before the others: the header is read back with its values.
            let tensor = Tensor::new(DIVISORS.into(), &array, Change::None, Kind::F32, None);
            tensors.push(tensor.map_err(Error::Invalid)?);
        }
        let mut halves = vec![];
        for (name, array) in weights {
            // A tied output layer is written once, and the pooler of an encoder not at all.
            if name == "lm_head.weight" && tied || name.starts_with("pooler.") {
                continue;
            }
            let Some((theirs, change)) = names::theirs(of.names, name) else {
                let of = of.name;
                return Err(Error::invalid(format!(
                    "{name} has no name in GGUF's architecture {of}: nothing was written"
                )));
            };
            let heads = match change {
                Change::Queries => config["num_attention_heads"].as_u64(),
                Change::Keys => config["num_key_value_heads"]
                    .as_u64()
                    .or(config["num_attention_heads"].as_u64()),
                _ => None,
            };
            let asked = others.get(name).copied().unwrap_or(kind);
            let heads = heads.map(|heads| heads as usize);
            let tensor = Tensor::new(theirs, array, change, asked, heads)
                .map_err(|message| Error::invalid(format!("{name}: {message}")))?;
            if asked != tensor.kind && tensor.kind == Kind::F16 {
                halves.push(name.clone());
            }
            tensors.push(tensor);
        }
        let mut entries = keys::of_model(of, &content, kind).map_err(Error::Invalid)?;
        if let Some(vocabulary) = vocabulary {
            let entries_of =
                keys::words(of, weights).and_then(|words| keys::of_vocabulary(vocabulary, words));
            entries.extend(entries_of.map_err(Error::Invalid)?);
        }
        let mut counts: Vec<(Kind, usize)> = vec![];
        for tensor in &tensors {
            match counts.iter_mut().find(|(kind, _)| *kind == tensor.kind) {
                Some((_, count)) => *count += 1,
                None => counts.push((tensor.kind, 1)),
            }
        }
        let output = Output { header: header(&entries, &tensors), tensors, counts, halves };
        let checked = output.begin().and_then(|file| read_back::same(of.name, config, &file));
        checked.map(|()| output).map_err(Error::Invalid)
    }

    /// The file as it would be read, with no values but those that the configuration needs.
    fn begin(&self) -> Result<Gguf, String> {
        let mut bytes = self.header.clone();
        if let Some(first) = self.tensors.first().filter(|first| first.name == DIVISORS) {
            bytes.extend(first.bytes()?);
        }
        Gguf::parse_beginning(bytes.into(), self.size())
    }

    /// Size of the file in bytes.
    pub fn size(&self) -> usize {
        self.header.len() + self.tensors.iter().map(padded).sum::<usize>()
    }

    /// Writes the file, a tensor at a time.
    ///
    /// # Errors
    /// If a value cannot be written in its type, or those of the writer.
    pub fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        to.write_all(&self.header)?;
        for tensor in &self.tensors {
            let bytes = tensor.bytes();
            let mut bytes = bytes.map_err(|e| io::Error::other(format!("{}: {e}", tensor.name)))?;
            bytes.resize(padded(tensor), 0);
            to.write_all(&bytes)?;
        }
        Ok(())
    }
}

/// Size of a tensor with the bytes up to the next one.
fn padded(tensor: &Tensor) -> usize {
    tensor.size().next_multiple_of(ALIGNMENT)
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
        // With a window, it is refused by its key.
        "mistral" => "llama",
        kind => kind,
    };
    ARCHITECTURES.into_iter().find(|of| of.name == name).ok_or_else(|| {
        Error::invalid(format!(
            "model_type: got {kind:?}; a GGUF file can have llama, mistral without a window, qwen3, \
             gemma3_text, gpt2 or bert"
        ))
    })
}

fn text(to: &mut Vec<u8>, text: &str) {
    to.extend((text.len() as u64).to_le_bytes());
    to.extend(text.as_bytes());
}

/// Everything before the data of the tensors.
fn header(entries: &[(String, Entry)], tensors: &[Tensor]) -> Vec<u8> {
    let mut to = MAGIC.to_vec();
    to.extend(VERSION.to_le_bytes());
    to.extend((tensors.len() as u64).to_le_bytes());
    to.extend((entries.len() as u64).to_le_bytes());
    for (key, entry) in entries {
        text(&mut to, key);
        entry.write(&mut to);
    }
    let mut offset = 0;
    for tensor in tensors {
        text(&mut to, &tensor.name);
        to.extend((tensor.shape.len() as u32).to_le_bytes());
        tensor.shape.iter().rev().for_each(|side| to.extend((*side as u64).to_le_bytes()));
        to.extend(tensor.kind.number().to_le_bytes());
        to.extend((offset as u64).to_le_bytes());
        offset += padded(tensor);
    }
    to.resize(to.len().next_multiple_of(ALIGNMENT), 0);
    to
}
