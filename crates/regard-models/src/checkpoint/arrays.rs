//! Named arrays of numbers, as they stand in a safetensors file.

use crate::{Error, Result};
use half::{bf16, f16};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// One array, in single precision whatever the file had.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Its sizes.
    pub shape: Vec<usize>,
    /// Row by row.
    pub data: Vec<f32>,
}

/// Arrays by name.
pub type Arrays = BTreeMap<String, Array>;

/// How numbers are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// Four bytes.
    #[default]
    Single,
    /// Two bytes, for models that ship.
    Half,
}

/// Reads a safetensors file.
pub fn read(path: &Path) -> Result<Arrays> {
    let bytes = super::read_file(path, u64::MAX)?;
    from_bytes(&bytes).map_err(|message| Error::file(path, message))
}

/// Reads what a safetensors file holds; integers, which no model here trains, are left out.
pub fn from_bytes(bytes: &[u8]) -> Result<Arrays, String> {
    let file = SafeTensors::deserialize(bytes)
        .map_err(|e| format!("not a whole safetensors file ({e}); it may be truncated"))?;
    let mut arrays = Arrays::new();
    for (name, view) in file.tensors() {
        let raw = view.data();
        let data: Vec<f32> = match view.dtype() {
            Dtype::F32 => raw.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
            Dtype::F64 => raw.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b) as f32).collect(),
            Dtype::F16 => {
                raw.as_chunks().0.iter().map(|b| f16::from_le_bytes(*b).to_f32()).collect()
            }
            Dtype::BF16 => {
                raw.as_chunks().0.iter().map(|b| bf16::from_le_bytes(*b).to_f32()).collect()
            }
            _ => continue,
        };
        arrays.insert(name, Array { shape: view.shape().to_vec(), data });
    }
    Ok(arrays)
}

/// As a safetensors file.
pub fn to_bytes(arrays: &Arrays, precision: Precision) -> Result<Vec<u8>, String> {
    let encoded: Vec<(&String, &Array, Vec<u8>)> = arrays
        .iter()
        .map(|(name, array)| {
            let bytes = match precision {
                Precision::Single => array.data.iter().flat_map(|x| x.to_le_bytes()).collect(),
                Precision::Half => {
                    array.data.iter().flat_map(|x| f16::from_f32(*x).to_le_bytes()).collect()
                }
            };
            (name, array, bytes)
        })
        .collect();
    let dtype = match precision {
        Precision::Single => Dtype::F32,
        Precision::Half => Dtype::F16,
    };
    let views: Result<Vec<_>, _> = encoded
        .iter()
        .map(|(name, array, bytes)| {
            TensorView::new(dtype, array.shape.clone(), bytes).map(|view| (name.as_str(), view))
        })
        .collect();
    // What transformers writes, and refuses to read a file without.
    let metadata = HashMap::from([("format".to_string(), "pt".to_string())]);
    views
        .and_then(|views| safetensors::serialize(views, Some(metadata)))
        .map_err(|e| format!("cannot be written: {e}"))
}
