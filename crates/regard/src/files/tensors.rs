//! `.safetensors`.

use super::raw::{Kind, Raw};
use anyhow::{Context, Result, bail};
use safetensors::{Dtype, SafeTensors};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A whole `.safetensors` file, whose header has been checked.
pub struct Tensors(Vec<u8>);

impl Tensors {
    pub fn open(path: &Path) -> Result<Tensors> {
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        let mut bytes = vec![];
        if usize::try_from(size).map_or(true, |size| bytes.try_reserve_exact(size).is_err()) {
            bail!("{size} bytes do not fit into memory");
        }
        file.read_to_end(&mut bytes)?;
        SafeTensors::deserialize(&bytes).context("not a whole safetensors file: cut off?")?;
        Ok(Tensors(bytes))
    }

    pub fn names(&self) -> Vec<String> {
        let tensors = SafeTensors::deserialize(&self.0);
        tensors.map_or(vec![], |tensors| tensors.names().into_iter().map(String::from).collect())
    }

    pub fn get(&self, name: &str) -> Result<Raw> {
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
        let (shape, bytes) = (tensor.shape().to_vec(), tensor.data().to_vec());
        Ok(Raw { kind, big_endian: false, fortran: false, shape, bytes })
    }
}
