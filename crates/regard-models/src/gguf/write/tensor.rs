//! Tensors of a file that is written.

use super::super::kinds::Kind;
use super::super::names::{self, Change};
use super::blocks;
use crate::checkpoint::Array;

/// A tensor: its values are made when it is written.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// Name in the file.
    pub name: String,
    /// Outermost first.
    pub shape: Vec<usize>,
    /// Type of the elements.
    pub kind: Kind,
    array: Array,
    change: Change,
    /// Number of heads whose halves alternate, if they do.
    heads: Option<usize>,
}

impl Tensor {
    /// Describes a tensor of a type; one whose rows are no whole blocks of it is in half precision.
    /// Biases, norms, positions and types of tokens are in single precision.
    pub fn new(
        name: String,
        array: &Array,
        change: Change,
        kind: Kind,
        heads: Option<usize>,
    ) -> Result<Tensor, String> {
        if !array.is_float() {
            return Err(format!("is {}, need floating point", array.dtype()));
        }
        let mut shape = array.shape.clone();
        if change == Change::Transposed && shape.len() == 2 {
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
        Ok(Tensor { name, shape, kind, array: array.clone(), change, heads })
    }

    /// Size in bytes.
    pub fn size(&self) -> usize {
        let (block, size) = self.kind.block();
        self.array.count() / block * size
    }

    /// Returns the bytes.
    ///
    /// # Errors
    /// If a value cannot be written in the type.
    pub fn bytes(&self) -> Result<Vec<u8>, String> {
        let turned = self.change == Change::Transposed && self.shape.len() == 2;
        let bytes = match blocks::as_they_are(&self.array, turned, self.kind) {
            Some(bytes) => bytes,
            None => {
                let mut floats = self.array.floats().ok_or("is not of floats")?;
                if turned {
                    let [rows, width] = [self.shape[0], self.shape[1]];
                    let at = |at: usize| floats[at % width * rows + at / width];
                    floats = (0..rows * width).map(at).collect();
                }
                if self.change == Change::PlusOne {
                    floats.to_mut().iter_mut().for_each(|x| *x += 1.0);
                }
                blocks::quantize(&floats, self.kind)?
            }
        };
        match self.heads {
            Some(heads) => names::alternating_halves(&bytes, self.shape[0], heads),
            None => Ok(bytes),
        }
    }
}
