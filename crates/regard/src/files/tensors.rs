//! The `.safetensors` format.

use super::raw::{DType, Header, RawData};
use anyhow::{Context, Result, anyhow};
use regard_models::Error;
use regard_models::checkpoint::{Array, Arrays, Dtype, read_arrays};
use std::path::Path;

/// Arrays of a `.safetensors` file.
pub struct Tensors(Arrays);

impl Tensors {
    pub fn open(path: &Path) -> Result<Tensors> {
        // The caller adds the name of the file.
        Ok(Tensors(read_arrays(path).map_err(|error| match error {
            Error::File { message, .. } => anyhow!(message),
            other => other.into(),
        })?))
    }

    pub fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    fn array(&self, name: &str) -> Result<&Array> {
        self.0.get(name).context("no such array")
    }

    /// Header of an array.
    pub fn header(&self, name: &str) -> Result<Header> {
        self.array(name).map(header)
    }

    /// Reads the values of an array.
    pub fn numbers<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Header, RawData) -> Result<T>,
    ) -> Result<(T, Header)> {
        let array = self.array(name)?;
        let (header, mut data) = (header(array), &array.bytes()[..]);
        let stored = RawData { bytes: data.len() as u64, from: &mut data };
        Ok((read(&header, stored)?, header))
    }
}

fn header(array: &Array) -> Header {
    let kind = match array.dtype() {
        Dtype::F16 => DType::Float(16),
        Dtype::F32 => DType::Float(32),
        Dtype::F64 => DType::Float(64),
        Dtype::BF16 => DType::Bfloat16,
        Dtype::I8 => DType::Int(8),
        Dtype::I16 => DType::Int(16),
        Dtype::I32 => DType::Int(32),
        Dtype::I64 => DType::Int(64),
        Dtype::U8 => DType::Uint(8),
        Dtype::U16 => DType::Uint(16),
        Dtype::U32 => DType::Uint(32),
        Dtype::U64 => DType::Uint(64),
        Dtype::BOOL => DType::Bool,
        other => DType::Other(format!("dtype {other:?}")),
    };
    Header { kind, big_endian: false, fortran: false, shape: array.shape.clone() }
}
