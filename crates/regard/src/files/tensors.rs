//! `.safetensors`.

use super::raw::{Header, Kind, Stored};
use anyhow::{Context, Result};
use regard_models::checkpoint::read_file;
use safetensors::{Dtype, SafeTensors};
use std::path::Path;

/// A whole `.safetensors` file, whose header has been checked.
pub struct Tensors(Vec<u8>);

impl Tensors {
    pub fn open(path: &Path) -> Result<Tensors> {
        let bytes = read_file(path, u64::MAX)?;
        SafeTensors::deserialize(&bytes).context("not a whole safetensors file: cut off?")?;
        Ok(Tensors(bytes))
    }

    pub fn names(&self) -> Vec<String> {
        let tensors = SafeTensors::deserialize(&self.0);
        tensors.map_or(vec![], |tensors| tensors.names().into_iter().map(String::from).collect())
    }

    /// The header of an array.
    pub fn header(&self, name: &str) -> Result<Header> {
        self.numbers(name, |_, _| Ok(())).map(|(_, header)| header)
    }

    /// Reads the numbers of an array.
    pub fn numbers<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Header, Stored) -> Result<T>,
    ) -> Result<(T, Header)> {
        let tensors = SafeTensors::deserialize(&self.0)?;
        let tensor = tensors.tensor(name)?;
        let kind = match tensor.dtype() {
            Dtype::F16 => Kind::Float(16),
            Dtype::F32 => Kind::Float(32),
            Dtype::F64 => Kind::Float(64),
            Dtype::BF16 => Kind::Bfloat16,
            Dtype::I8 => Kind::Int(8),
            Dtype::I16 => Kind::Int(16),
            Dtype::I32 => Kind::Int(32),
            Dtype::I64 => Kind::Int(64),
            Dtype::U8 => Kind::Uint(8),
            Dtype::U16 => Kind::Uint(16),
            Dtype::U32 => Kind::Uint(32),
            Dtype::U64 => Kind::Uint(64),
            Dtype::BOOL => Kind::Bool,
            other => Kind::Other(format!("dtype {other:?}")),
        };
        let (shape, mut data) = (tensor.shape().to_vec(), tensor.data());
        let header = Header { kind, big_endian: false, fortran: false, shape };
        let stored = Stored { bytes: data.len() as u64, from: &mut data };
        Ok((read(&header, stored)?, header))
    }
}
