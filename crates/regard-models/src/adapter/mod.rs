//! Adapters of low rank (LoRA, Hu et al. 2021) in the files of PEFT: `adapter_config.json` and
//! `adapter_model.safetensors`.
//!
//! An adapter updates linear layers of a model: `y = x·W + s·(x·A)·B`. When a model is opened with
//! one ([`ModelFiles::adapted`](crate::ModelFiles::adapted)), the updates are added to the weights,
//! so that it computes as fast as without. In training they stay beside frozen weights
//! ([`Network::adapt`](crate::Network::adapt)).

mod config;
mod merge;
mod pattern;
mod train;

pub use config::{AdapterConfig, CONFIG};
pub use pattern::{Expression, Targets};
pub(crate) use train::{adapt, restore, trained};

use crate::checkpoint::{self, Array, Arrays, LinearPart, Precision};
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// File name of an adapter's weights.
pub const WEIGHTS: &str = "adapter_model.safetensors";
/// File names under which weights are looked for, in order of preference.
const PLACES: [&str; 2] = [WEIGHTS, "adapter_model.bin"];
/// Beginning of the names of all tensors.
const BEGIN: &str = "base_model.model.";
/// Ends of the names of an update's tensors.
const ENDS: [&str; 2] = [".lora_A.weight", ".lora_B.weight"];

/// A linear layer of a model, as its weight is in a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinearLayer {
    /// Name, without `.weight`.
    pub name: String,
    /// Number of inputs.
    pub inputs: usize,
    /// Number of outputs.
    pub outputs: usize,
    /// Whether the checkpoint has the weight as `[I, O]`, not as `[O, I]`.
    pub by_inputs: bool,
    /// Whether it belongs to the model's head, which `all-linear` leaves out.
    pub of_head: bool,
}

impl LinearLayer {
    pub(crate) fn of(part: &LinearPart, of_head: bool) -> LinearLayer {
        LinearLayer {
            name: part.name.clone(),
            inputs: part.weight.dims()[0],
            outputs: part.columns.len(),
            by_inputs: part.by_inputs,
            of_head,
        }
    }
}

/// An adapter of a folder.
#[derive(Clone, Debug)]
pub struct Adapter {
    config: AdapterConfig,
    /// Updates by the names of layers.
    updates: BTreeMap<String, Update>,
    weights: PathBuf,
}

/// Tensors of an update.
#[derive(Clone, Debug)]
pub(crate) struct Update {
    /// `A`, `[r, I]`.
    pub a: Array,
    /// `B`, `[O, r]`.
    pub b: Array,
}

/// Whether a folder holds an adapter.
pub fn is_adapter(folder: &Path) -> bool {
    folder.join(CONFIG).is_file()
}

/// Path of an adapter's weights.
pub fn weights_file(folder: &Path) -> PathBuf {
    let found = PLACES.iter().map(|name| folder.join(name)).find(|path| path.exists());
    found.unwrap_or_else(|| folder.join(WEIGHTS))
}

/// Reads the configuration of an adapter.
pub fn read_config(folder: &Path) -> Result<AdapterConfig> {
    let path = folder.join(CONFIG);
    let text = checkpoint::read_text(&path)?;
    let json = serde_json::from_str(&text).map_err(|e| format!("not JSON: {e}"));
    let config = json.and_then(|json| AdapterConfig::read(&json));
    config.map_err(|message| Error::file(&path, message))
}

/// Writes an adapter into a folder that exists. `by_inputs` says whether the weights that it updates
/// are `[I, O]`, as in GPT-2.
pub fn write(
    folder: &Path,
    config: &AdapterConfig,
    updates: &Arrays,
    by_inputs: bool,
) -> Result<()> {
    checkpoint::write_arrays(&folder.join(WEIGHTS), updates, Precision::Single)?;
    let json = config.to_json(by_inputs);
    let text = serde_json::to_string_pretty(&json).expect("JSON values can be written") + "\n";
    checkpoint::write_file(&folder.join(CONFIG), text.as_bytes())
}

impl Adapter {
    /// Reads an adapter.
    ///
    /// # Errors
    /// If a file is missing or damaged, or asks for what is not supported.
    pub fn open(folder: &Path) -> Result<Adapter> {
        if !is_adapter(folder) {
            let what = if folder.is_dir() { "holds no adapter" } else { "is not a folder" };
            let message = format!("{what}: need one with {CONFIG} and {WEIGHTS}, as PEFT writes");
            return Err(Error::file(folder, message));
        }
        let (config, weights) = (read_config(folder)?, weights_file(folder));
        let arrays = checkpoint::read_arrays(&weights)?;
        let updates = paired(arrays).map_err(|message| Error::file(&weights, message))?;
        let adapter = Adapter { config, updates, weights };
        adapter.check().map_err(|message| Error::file(&adapter.weights, message))?;
        Ok(adapter)
    }

    /// Returns the configuration.
    pub fn config(&self) -> &AdapterConfig {
        &self.config
    }

    /// Path of its weights.
    pub fn weights(&self) -> &Path {
        &self.weights
    }

    /// Number of layers that are updated.
    pub fn layers(&self) -> usize {
        self.updates.len()
    }

    /// Compares the tensors with the configuration.
    fn check(&self) -> Result<(), String> {
        if self.updates.is_empty() {
            return Err("has no tensors: need those of an adapter".into());
        }
        for (name, Update { a, .. }) in &self.updates {
            let short = crate::sizes::short(name, 100);
            if !self.config.updates(name) {
                return Err(format!("has an update of {short}, which target_modules leaves out"));
            }
            let (got, wanted) = (a.shape[0], self.config.rank_of(name));
            if got != wanted {
                return Err(format!(
                    "{short}{}: has rank {got}, {CONFIG} says {wanted} (r or rank_pattern)",
                    ENDS[0]
                ));
            }
        }
        Ok(())
    }
}

/// Pairs the tensors of a file by the names of layers.
fn paired(mut arrays: Arrays) -> Result<BTreeMap<String, Update>, String> {
    let mut updates = BTreeMap::new();
    let names: Vec<String> = arrays.keys().cloned().collect();
    for name in &names {
        let layer = name.strip_prefix(BEGIN);
        let Some(layer) = layer.and_then(|layer| ENDS.iter().find_map(|e| layer.strip_suffix(e)))
        else {
            return Err(unexpected(name));
        };
        if updates.contains_key(layer) {
            continue;
        }
        let mut take = |end: &str| {
            let name = format!("{BEGIN}{layer}{end}");
            let short = crate::sizes::short(&name, 120);
            let array = arrays.remove(&name).ok_or_else(|| format!("{short} is missing"))?;
            let shape = &array.shape;
            if shape.len() != 2 || shape.contains(&0) {
                return Err(format!("{short} is {shape:?}, need a matrix"));
            }
            if !array.is_float() {
                return Err(format!("{short} is {}, need floating point", array.dtype()));
            }
            match array.not_finite() {
                None => Ok(array),
                Some((at, x)) => {
                    Err(format!("{short}: element {at} is {x}, {}", checkpoint::NOT_FINITE))
                }
            }
        };
        let (a, b) = (take(ENDS[0])?, take(ENDS[1])?);
        if a.shape[0] != b.shape[1] {
            let (short, a, b) = (crate::sizes::short(layer, 100), &a.shape, &b.shape);
            return Err(format!("{short}: lora_A is {a:?} and lora_B {b:?}, need one rank"));
        }
        updates.insert(layer.to_string(), Update { a, b });
    }
    Ok(updates)
}

/// Message about a tensor that belongs to no update.
fn unexpected(name: &str) -> String {
    let short = crate::sizes::short(name, 120);
    let what = [
        ("lora_magnitude_vector", "DoRA is not supported"),
        ("lora_embedding_", "updates of embeddings are not supported"),
        ("lora_", "need names that end in .lora_A.weight and .lora_B.weight"),
    ];
    let what = what.iter().find(|(part, _)| name.contains(part)).map(|(_, what)| *what);
    let what = what.unwrap_or("only updates of linear layers are supported (lora_A, lora_B)");
    format!("unexpected tensor {short}: {what}")
}
