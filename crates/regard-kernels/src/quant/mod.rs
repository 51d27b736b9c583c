//! Quantised weights: matrices of 8 or 4 bits, and products with them.
//!
//! ```text
//! y[r, o] = s_x[r] · s_w[o] · Σ_k x̂[r, k]·ŵ[o, k]                a scale for each output
//! y[r, o] = s_x[r] · Σ_g s_w[o, g] · Σ_{k ∈ g} x̂[r, k]·ŵ[o, k]   a scale for each 32 inputs
//! ```
//!
//! Weights of 8 bits have a scale for each output (`int8`) or for each 32 inputs of an output
//! (`int8-groups`), weights of 4 bits one for each 32 inputs (`int4`). The last two hold what GGUF's
//! Q8_0 and Q4_0 hold ([`QuantizedMatrix::from_blocks`]). Weights of 16 bits are `bfloat16` and need
//! no scale; activations are rounded to it too, so that each product is exact and sums are rounded in
//! a fixed order.
//!
//! Activations are quantised to 8 bits at run time, with one scale `s_x` for each row. Sums of
//! integers are exact and scales are applied in a fixed order without fused operations, so the same
//! input gives the same bits on every instruction set, for every batch and number of threads.
//!
//! # Layout
//! Sixteen outputs are a panel. Of each it holds four inputs side by side, 64 bytes in all, then
//! the next four inputs of the sixteen. A vector of four activations is broadcast to all outputs, so
//! that lanes are outputs and nothing is added across lanes. In 4 bits, a byte holds inputs `k` and
//! `k + 16` of a group of 32.

mod activations;
mod bf16;
mod blocks;
mod int4;
mod int8;
mod int8_groups;
mod parts;
mod product;

pub use activations::Activations;
pub use blocks::BlockRows;
pub use product::{product, product_on};

use crate::memory::filled;
use crate::pool::{Parts, parallel_ranges};
use crate::storage::{Bf16, F16};
use crate::view::{Error, bail};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Outputs of a panel.
pub(crate) const PANEL: usize = 16;

/// Inputs that share a scale, of weights whose scales belong to groups.
pub const GROUP: usize = 32;

/// Largest number of inputs: sums of 255·127 must fit in 31 bits.
pub const MOST_INPUTS: usize = 1 << 16;

/// Weights per task of [`QuantizedMatrix::rows`]: about 10 µs.
const ROWS_PIECE: usize = 16 * 1024;

/// Number of bits of a quantised weight, and what shares a scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bits {
    /// 16 bits, `bfloat16`, for the activations too.
    Bf16,
    /// 8 bits, symmetric, a single-precision scale for each output.
    Int8,
    /// 8 bits, a half-precision scale for each 32 inputs of each output.
    Int8Groups,
    /// 4 bits, a half-precision scale for each 32 inputs of each output.
    Int4,
}

impl Bits {
    /// All of them.
    pub const ALL: [Bits; 4] = [Bits::Bf16, Bits::Int8, Bits::Int8Groups, Bits::Int4];

    /// Returns the name: `bf16`, `int8`, `int8-groups` or `int4`.
    pub fn name(self) -> &'static str {
        match self {
            Bits::Bf16 => "bf16",
            Bits::Int8 => "int8",
            Bits::Int8Groups => "int8-groups",
            Bits::Int4 => "int4",
        }
    }

    /// Returns the number of bits of a weight.
    pub fn bits(self) -> u8 {
        match self {
            Bits::Bf16 => 16,
            Bits::Int8 | Bits::Int8Groups => 8,
            Bits::Int4 => 4,
        }
    }

    /// Returns the number of inputs that share a scale; `None` if all of an output do.
    pub fn group(self) -> Option<usize> {
        match self {
            Bits::Bf16 | Bits::Int8 => None,
            Bits::Int8Groups | Bits::Int4 => Some(GROUP),
        }
    }

    /// Inputs that are stored together; others are padded with zeros.
    fn unit(self) -> usize {
        match self {
            Bits::Bf16 => 2,
            Bits::Int8 => 4,
            Bits::Int8Groups | Bits::Int4 => GROUP,
        }
    }

    /// Lines of 64 bytes of a panel.
    fn lines(self, inputs: usize) -> usize {
        let padded = inputs.next_multiple_of(self.unit());
        match self {
            Bits::Bf16 => padded / 2,
            Bits::Int8 | Bits::Int8Groups => padded / 4,
            Bits::Int4 => padded / 8,
        }
    }

    /// Groups of inputs that have a scale of their own; 0 if the whole output has one.
    fn groups(self, inputs: usize) -> usize {
        self.group().map_or(0, |group| inputs.div_ceil(group))
    }

    /// The largest weight that can be quantised: scales in half precision are at most 65,504.
    fn largest(self) -> f32 {
        match self {
            Bits::Bf16 => bf16::LARGEST,
            Bits::Int8 => f32::MAX,
            Bits::Int8Groups => 127.0 * 65_504.0,
            Bits::Int4 => 8.0 * 65_504.0,
        }
    }
}

/// Quantised matrix of `outputs` rows of `inputs` weights each.
#[derive(Clone)]
pub struct QuantizedMatrix {
    bits: Bits,
    outputs: usize,
    inputs: usize,
    /// Panels in sequence.
    values: Vec<Line>,
    /// Scale of each output, of whole panels, if it has one.
    scales: Vec<f32>,
    /// Scales of groups, if they have them: panel, group, output.
    group_scales: Vec<F16>,
}

/// A cache line of values.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

impl std::fmt::Debug for QuantizedMatrix {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "QuantizedMatrix({}, [{}, {}])", self.bits.name(), self.outputs, self.inputs)
    }
}

/// Gives the floats of an output: its number, and where they go.
pub type Rows<'a> = &'a (dyn Fn(usize, &mut [f32]) + Sync);

impl QuantizedMatrix {
    /// Quantises a matrix `[outputs, inputs]`, of which `rows` gives each row.
    ///
    /// # Errors
    /// If there are too many inputs, or a weight is not finite or too large for a scale in half
    /// precision.
    pub fn new(bits: Bits, [outputs, inputs]: [usize; 2], rows: Rows) -> Result<Self, Error> {
        let mut matrix = QuantizedMatrix::blank(bits, [outputs, inputs])?;
        let bad = AtomicUsize::new(usize::MAX);
        matrix.fill(&|o, panel, row| {
            let mut floats = vec![0f32; inputs];
            rows(o, &mut floats);
            // False for NaN.
            if !floats.iter().all(|x| x.abs() <= bits.largest()) {
                bad.fetch_min(o, Ordering::Relaxed);
            } else {
                panel.quantize(row, &floats);
            }
        });
        match bad.into_inner() {
            usize::MAX => Ok(matrix),
            row => bail!(
                "row {row} of the weight has a value that is not finite, or is beyond {:e}, the \
                 largest of {}",
                bits.largest(),
                bits.name()
            ),
        }
    }

    fn blank(bits: Bits, [outputs, inputs]: [usize; 2]) -> Result<Self, Error> {
        if inputs == 0 || inputs > MOST_INPUTS {
            bail!("a quantised matrix has 1 to {MOST_INPUTS} inputs; got {inputs}");
        }
        let (panels, groups) = (outputs.div_ceil(PANEL), bits.groups(inputs));
        let zero = match bits {
            Bits::Bf16 => 0,
            Bits::Int8 | Bits::Int8Groups => 128,
            Bits::Int4 => 0x88,
        };
        let values = filled(Line([zero; 64]), &[panels, bits.lines(inputs)]);
        let scales = filled(0.0, &[if bits == Bits::Int8 { panels * PANEL } else { 0 }]);
        let group_scales = filled(F16::default(), &[panels, PANEL, groups]);
        Ok(QuantizedMatrix { bits, outputs, inputs, values, scales, group_scales })
    }

    /// Calls `set(output, panel, row in the panel)` for every output.
    fn fill(&mut self, set: &(dyn Fn(usize, &mut PanelMut, usize) + Sync)) {
        let (outputs, panels) = (self.outputs, self.outputs.div_ceil(PANEL));
        let (bits, inputs) = (self.bits, self.inputs);
        let [lines, scales, groups] =
            [self.values.len(), self.scales.len(), self.group_scales.len()]
                .map(|n| n / panels.max(1));
        let values = Parts::new(&mut self.values);
        let all_scales = Parts::new(&mut self.scales);
        let all_groups = Parts::new(&mut self.group_scales);
        parallel_ranges(panels, 1, &|from, to| {
            for panel in from..to {
                // SAFETY: each panel is one task's.
                let mut memory = unsafe {
                    PanelMut {
                        bits,
                        inputs,
                        values: values.part(panel * lines, lines),
                        scales: all_scales.part(panel * scales, scales),
                        group_scales: all_groups.part(panel * groups, groups),
                    }
                };
                for row in 0..PANEL.min(outputs - panel * PANEL) {
                    set(panel * PANEL + row, &mut memory, row);
                }
            }
        });
    }

    /// Returns the number of bits of a weight.
    pub fn bits(&self) -> Bits {
        self.bits
    }

    /// Returns the numbers of outputs and inputs.
    pub fn shape(&self) -> [usize; 2] {
        [self.outputs, self.inputs]
    }

    /// Returns the size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.values.len() * 64 + self.scales.len() * 4 + self.group_scales.len() * 2
    }

    /// Lines of 64 bytes of a panel.
    fn panel_lines(&self) -> usize {
        self.bits.lines(self.inputs)
    }

    /// The lines of the panel of an output.
    fn lines_of(&self, output: usize) -> &[Line] {
        let lines = self.panel_lines();
        &self.values[output / PANEL * lines..][..lines]
    }

    /// The bytes of all panels.
    fn start(&self) -> *const u8 {
        self.values.as_ptr().cast()
    }

    /// Returns the weights of an output in single precision.
    ///
    /// # Panics
    /// If there is no such output, or `to` does not have exactly its inputs.
    pub fn row(&self, output: usize, to: &mut [f32]) {
        assert!(output < self.outputs && to.len() == self.inputs, "row {output} of {self:?}");
        let (lines, row) = (self.lines_of(output), output % PANEL);
        match self.bits {
            Bits::Bf16 => {
                for (line, to) in lines.iter().zip(to.chunks_mut(2)) {
                    let pairs: &[[u8; 2]] = line.0[row * 4..row * 4 + 4].as_chunks().0;
                    for (x, pair) in to.iter_mut().zip(pairs) {
                        *x = Bf16(u16::from_le_bytes(*pair)).single();
                    }
                }
            }
            Bits::Int8 => {
                let scale = self.scales[output];
                for (line, to) in lines.iter().zip(to.chunks_mut(4)) {
                    for (x, byte) in to.iter_mut().zip(&line.0[row * 4..row * 4 + 4]) {
                        *x = (f32::from(*byte) - 128.0) * scale;
                    }
                }
            }
            Bits::Int8Groups => {
                for (group, to) in to.chunks_mut(GROUP).enumerate() {
                    let scale = self.group_scale(output, group).single();
                    for (line, to) in lines[group * 8..].iter().zip(to.chunks_mut(4)) {
                        for (x, byte) in to.iter_mut().zip(&line.0[row * 4..row * 4 + 4]) {
                            *x = (f32::from(*byte) - 128.0) * scale;
                        }
                    }
                }
            }
            Bits::Int4 => {
                for (k, x) in to.iter_mut().enumerate() {
                    let (group, within) = (k / GROUP, k % GROUP);
                    let scale = self.group_scale(output, group).single();
                    let byte = lines[group * 4 + within % 16 / 4].0[row * 4 + within % 4];
                    let nibble = if within < 16 { byte & 15 } else { byte >> 4 };
                    *x = (f32::from(nibble) - 8.0) * scale;
                }
            }
        }
    }

    /// Writes the weights of several outputs, one after another, as [`QuantizedMatrix::row`] does.
    ///
    /// # Panics
    /// If there is no such output, or `to` does not have exactly their inputs.
    pub fn rows(&self, outputs: &[usize], to: &mut [f32]) {
        assert_eq!(to.len(), outputs.len() * self.inputs, "{} rows of {self:?}", outputs.len());
        let each = self.inputs.max(1);
        let to = Parts::new(to);
        parallel_ranges(outputs.len(), ROWS_PIECE.div_ceil(each), &|from, end| {
            for (at, output) in (from..end).zip(&outputs[from..end]) {
                // SAFETY: every row is one task's.
                self.row(*output, unsafe { to.part(at * self.inputs, self.inputs) });
            }
        });
    }

    /// The scale of a group of an output.
    fn group_scale(&self, output: usize, group: usize) -> F16 {
        let groups = self.bits.groups(self.inputs);
        self.group_scales[(output / PANEL * groups + group) * PANEL + output % PANEL]
    }
}

/// A panel that is being filled.
struct PanelMut<'a> {
    bits: Bits,
    inputs: usize,
    values: &'a mut [Line],
    scales: &'a mut [f32],
    group_scales: &'a mut [F16],
}

impl PanelMut<'_> {
    /// Quantises a row.
    fn quantize(&mut self, row: usize, floats: &[f32]) {
        match self.bits {
            Bits::Bf16 => {
                for (k, x) in floats.iter().enumerate() {
                    let at = row * 4 + k % 2 * 2;
                    let bytes = bf16::round(*x).0.to_le_bytes();
                    self.values[k / 2].0[at..at + 2].copy_from_slice(&bytes);
                }
            }
            Bits::Int8 => {
                let (values, scale) = int8::quantize(floats);
                self.set_bytes(row, 0, &values);
                self.scales[row] = scale;
            }
            Bits::Int8Groups => {
                for (group, floats) in floats.chunks(GROUP).enumerate() {
                    let (values, scale) = int8_groups::quantize(floats);
                    self.set_bytes(row, group * GROUP, &values[..floats.len()]);
                    self.group_scales[group * PANEL + row] = scale;
                }
            }
            Bits::Int4 => {
                for (group, floats) in floats.chunks(GROUP).enumerate() {
                    let (values, scale) = int4::quantize(floats);
                    self.set_nibbles(row, group, &values);
                    self.group_scales[group * PANEL + row] = scale;
                }
            }
        }
    }

    /// Sets values of 8 bits, from an input on.
    fn set_bytes(&mut self, row: usize, from: usize, values: &[i8]) {
        debug_assert!(from + values.len() <= self.inputs);
        for (k, x) in (from..).zip(values) {
            self.values[k / 4].0[row * 4 + k % 4] = (i16::from(*x) + 128) as u8;
        }
    }

    /// Sets a group of 4 bits: bytes of inputs `i` and `i + 16`.
    fn set_nibbles(&mut self, row: usize, group: usize, values: &[u8]) {
        for (i, byte) in values.iter().enumerate() {
            self.values[group * 4 + i / 4].0[row * 4 + i % 4] = *byte;
        }
    }
}

#[cfg(test)]
mod tests;
