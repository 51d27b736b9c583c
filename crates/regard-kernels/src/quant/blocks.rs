//! Blocks of 32 weights as GGUF stores them: Q8_0 for groups of 8 bits, Q4_0 for 4 bits.
//!
//! ```text
//! Q8_0   34 bytes: f16 scale, 32 × i8                      w = scale · value
//! Q4_0   18 bytes: f16 scale, 16 × (w₀₊ᵢ, w₁₆₊ᵢ: 4 bits)    w = scale · (value − 8)
//! ```
//!
//! Both are little-endian. A row is a sequence of blocks, so its length is a multiple of 32.

use super::{Bits, GROUP, PANEL, QuantizedMatrix};
use crate::storage::F16;
use crate::view::{Error, bail};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of a scale.
const SCALE: usize = 2;

/// Gives the blocks of an output.
pub type BlockRows<'f, 'a> = &'f (dyn Fn(usize) -> &'a [u8] + Sync);

impl Bits {
    /// Returns the size in bytes of a block of 32 inputs: 34 (Q8_0) or 18 (Q4_0); `None` if scales
    /// belong to whole outputs.
    pub fn block_bytes(self) -> Option<usize> {
        match self {
            Bits::Bf16 | Bits::Int8 => None,
            Bits::Int8Groups => Some(SCALE + GROUP),
            Bits::Int4 => Some(SCALE + GROUP / 2),
        }
    }

    /// Bytes of the blocks of an output with so many inputs, if it can be written in blocks.
    fn row_block_bytes(self, inputs: usize) -> Option<usize> {
        let block = self.block_bytes().filter(|_| inputs.is_multiple_of(GROUP))?;
        (inputs / GROUP).checked_mul(block)
    }
}

impl QuantizedMatrix {
    /// Creates a matrix `[outputs, inputs]` from the blocks of each output, without loss.
    ///
    /// # Errors
    /// If weights of these bits have no blocks, inputs are not a multiple of 32, the blocks of an
    /// output have another length, or a scale is not finite.
    pub fn from_blocks(bits: Bits, shape: [usize; 2], rows: BlockRows) -> Result<Self, Error> {
        let ([outputs, inputs], name) = (shape, bits.name());
        let (Some(block), Some(row_bytes)) = (bits.block_bytes(), bits.row_block_bytes(inputs))
        else {
            bail!("[{outputs}, {inputs}] of {name} cannot be made of blocks of {GROUP} inputs");
        };
        // Before memory for the values is allocated.
        if let Some(o) = (0..outputs).find(|o| rows(*o).len() != row_bytes) {
            let got = rows(o).len();
            bail!("output {o} of {inputs} inputs has {got} bytes of {name}, need {row_bytes}");
        }
        let mut matrix = QuantizedMatrix::blank(bits, shape)?;
        let bad = AtomicUsize::new(usize::MAX);
        matrix.fill(&|o, panel, row| {
            for (group, bytes) in rows(o).chunks_exact(block).enumerate() {
                let scale = F16(u16::from_le_bytes([bytes[0], bytes[1]]));
                if !scale.single().is_finite() {
                    bad.fetch_min(o, Ordering::Relaxed);
                }
                panel.group_scales[group * PANEL + row] = scale;
                match bits {
                    Bits::Int4 => panel.set_nibbles(row, group, &bytes[SCALE..]),
                    _ => {
                        let values: [i8; GROUP] = std::array::from_fn(|i| bytes[SCALE + i] as i8);
                        panel.set_bytes(row, group * GROUP, &values);
                    }
                }
            }
        });
        match bad.into_inner() {
            usize::MAX => Ok(matrix),
            o => bail!("a scale of output {o} of {name} is not finite"),
        }
    }

    /// Returns the size in bytes of the blocks of an output; `None` if weights of these bits have
    /// no blocks, or inputs are not a multiple of 32.
    pub fn row_block_bytes(&self) -> Option<usize> {
        self.bits.row_block_bytes(self.inputs)
    }

    /// Writes the blocks of an output.
    ///
    /// # Panics
    /// If there is no such output, or `to` does not have exactly its
    /// [`QuantizedMatrix::row_block_bytes`].
    pub fn row_blocks(&self, output: usize, to: &mut [u8]) {
        let fits = self.row_block_bytes() == Some(to.len());
        assert!(output < self.outputs && fits, "blocks of row {output} of {self:?}");
        let mut values = vec![0i8; if self.bits == Bits::Int4 { 0 } else { self.inputs }];
        self.row_bytes(output, &mut values);
        let block = to.len() / (self.inputs / GROUP);
        for (group, to) in to.chunks_exact_mut(block).enumerate() {
            let (scale, rest) = to.split_at_mut(SCALE);
            scale.copy_from_slice(&self.group_scale(output, group).0.to_le_bytes());
            match self.bits {
                Bits::Int4 => rest.copy_from_slice(&self.group_nibbles(output, group)),
                _ => {
                    for (to, x) in rest.iter_mut().zip(&values[group * GROUP..]) {
                        *to = *x as u8;
                    }
                }
            }
        }
    }
}
