//! Quantised weights: matrices of 8 or 4 bits, and products with them.
//!
//! ```text
//! y[r, o] = s_x[r] · s_w[o] · Σ_k x̂[r, k]·ŵ[o, k]            8 bits: a scale for each output
//! y[r, o] = s_x[r] · Σ_g s_w[o, g] · Σ_{k ∈ g} x̂[r, k]·ŵ[o, k]   4 bits: one for each 32 inputs
//! ```
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
mod int4;
mod int8;
mod product;

pub use activations::Activations;
pub use product::{product, product_on};

use crate::memory::filled;
use crate::pool::{Parts, parallel_ranges};
use crate::storage::F16;
use crate::view::{Error, bail};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Outputs of a panel.
pub(crate) const PANEL: usize = 16;

/// Inputs that share a scale in 4 bits.
pub const GROUP: usize = 32;

/// Largest number of inputs: sums of 255·127 must fit in 31 bits.
pub const MOST_INPUTS: usize = 1 << 16;

/// Weights per task of [`QuantizedMatrix::rows`]: about 10 µs.
const ROWS_PIECE: usize = 16 * 1024;

/// Number of bits of a quantised weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bits {
    /// 8 bits, symmetric, a single-precision scale for each output.
    Int8,
    /// 4 bits, a half-precision scale for each 32 inputs of each output.
    Int4,
}

impl Bits {
    /// All numbers of bits.
    pub const ALL: [Bits; 2] = [Bits::Int8, Bits::Int4];

    /// Returns the name: `int8` or `int4`.
    pub fn name(self) -> &'static str {
        match self {
            Bits::Int8 => "int8",
            Bits::Int4 => "int4",
        }
    }

    /// Returns the number of bits of a weight.
    pub fn bits(self) -> u8 {
        match self {
            Bits::Int8 => 8,
            Bits::Int4 => 4,
        }
    }

    /// Inputs that are stored together; others are padded with zeros.
    fn unit(self) -> usize {
        match self {
            Bits::Int8 => 4,
            Bits::Int4 => GROUP,
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
    /// Scale of each output in 8 bits, of whole panels.
    scales: Vec<f32>,
    /// Scales of groups in 4 bits: panel, group, output.
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
    /// If there are too many inputs, or a weight is not finite.
    pub fn new(bits: Bits, [outputs, inputs]: [usize; 2], rows: Rows) -> Result<Self, Error> {
        let mut matrix = QuantizedMatrix::blank(bits, [outputs, inputs])?;
        let bad = std::sync::atomic::AtomicUsize::new(usize::MAX);
        matrix.fill(&|o, panel, row| {
            let mut floats = vec![0f32; inputs];
            rows(o, &mut floats);
            if !floats.iter().all(|x| x.is_finite()) {
                bad.fetch_min(o, std::sync::atomic::Ordering::Relaxed);
            } else {
                panel.quantize(row, &floats);
            }
        });
        match bad.into_inner() {
            usize::MAX => Ok(matrix),
            row => bail!("row {row} of the weight has a value that is not finite"),
        }
    }

    /// Creates a matrix of 8 bits from quantised values `[outputs, inputs]`, row-major, and the
    /// scale of each output.
    ///
    /// # Errors
    /// If sizes do not match, a value is −128, or a scale is negative or not finite.
    pub fn from_int8(shape: [usize; 2], values: &[i8], scales: &[f32]) -> Result<Self, Error> {
        let [outputs, inputs] = shape;
        if outputs.checked_mul(inputs) != Some(values.len()) || scales.len() != outputs {
            let got = (values.len(), scales.len());
            bail!(
                "[{outputs}, {inputs}] of int8 cannot be made of {} values, {} scales",
                got.0,
                got.1
            );
        }
        QuantizedMatrix::from_int8_rows(shape, scales, &|o, to| {
            to.copy_from_slice(&values[o * inputs..(o + 1) * inputs]);
        })
    }

    /// Creates a matrix of 8 bits, of which `rows` gives the quantised values of each output, and
    /// the scale of each output. No second copy of the values is made.
    ///
    /// # Errors
    /// As [`QuantizedMatrix::from_int8`].
    pub fn from_int8_rows(
        shape: [usize; 2],
        scales: &[f32],
        rows: &(dyn Fn(usize, &mut [i8]) + Sync),
    ) -> Result<Self, Error> {
        let [outputs, inputs] = shape;
        let mut matrix = QuantizedMatrix::blank(Bits::Int8, shape)?;
        if scales.len() != outputs {
            bail!("[{outputs}, {inputs}] of int8 has {} scales", scales.len());
        }
        if let Some(bad) = scales.iter().find(|scale| !(scale.is_finite() && **scale >= 0.0)) {
            bail!("a scale of int8 is {bad}; need a finite number of at least 0");
        }
        let lowest = AtomicBool::new(false);
        matrix.fill(&|o, panel, row| {
            let mut values = vec![0i8; inputs];
            rows(o, &mut values);
            if values.contains(&-128) {
                lowest.store(true, Ordering::Relaxed);
            } else {
                panel.set_int8(row, &values, scales[o]);
            }
        });
        if lowest.into_inner() {
            bail!("a value of int8 is -128; need -127 to 127");
        }
        Ok(matrix)
    }

    /// Creates a matrix of 4 bits from bytes of two values each, `[outputs, groups, 16]`, the lower
    /// four bits input `i` and the upper input `i + 16` of the group, each plus 8; and the scales
    /// `[outputs, groups]`.
    ///
    /// # Errors
    /// If sizes do not match, or a scale is not finite.
    pub fn from_int4(shape: [usize; 2], values: &[u8], scales: &[F16]) -> Result<Self, Error> {
        let [outputs, inputs] = shape;
        let mut matrix = QuantizedMatrix::blank(Bits::Int4, shape)?;
        let groups = inputs.div_ceil(GROUP);
        let count = outputs.checked_mul(groups);
        if count.and_then(|n| n.checked_mul(GROUP / 2)) != Some(values.len())
            || count != Some(scales.len())
        {
            let got = (values.len(), scales.len());
            bail!(
                "[{outputs}, {inputs}] of int4 cannot be made of {} bytes, {} scales",
                got.0,
                got.1
            );
        }
        if scales.iter().any(|scale| !scale.single().is_finite()) {
            bail!("a scale of int4 is not finite");
        }
        matrix.fill(&|o, panel, row| {
            for group in 0..groups {
                let at = o * groups + group;
                panel.set_group(row, group, &values[at * 16..at * 16 + 16], scales[at]);
            }
        });
        Ok(matrix)
    }

    fn blank(bits: Bits, [outputs, inputs]: [usize; 2]) -> Result<Self, Error> {
        if inputs == 0 || inputs > MOST_INPUTS {
            bail!("a quantised matrix has 1 to {MOST_INPUTS} inputs; got {inputs}");
        }
        let (panels, padded) = (outputs.div_ceil(PANEL), inputs.next_multiple_of(bits.unit()));
        let (lines, zero) = match bits {
            Bits::Int8 => (padded / 4, 128),
            Bits::Int4 => (padded / GROUP * 4, 0x88),
        };
        let values = filled(Line([zero; 64]), &[panels, lines]);
        let (scales, group_scales) = match bits {
            Bits::Int8 => (vec![0.0; panels * PANEL], vec![]),
            Bits::Int4 => (vec![], vec![F16::default(); panels * PANEL * (padded / GROUP)]),
        };
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
        match self.bits {
            Bits::Int8 => self.inputs.div_ceil(4),
            Bits::Int4 => self.inputs.div_ceil(GROUP) * 4,
        }
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
        let (panel, row) = (output / PANEL, output % PANEL);
        let lines = &self.values[panel * self.panel_lines()..];
        match self.bits {
            Bits::Int8 => {
                let scale = self.scales[output];
                for (line, to) in lines.iter().zip(to.chunks_mut(4)) {
                    for (x, byte) in to.iter_mut().zip(&line.0[row * 4..row * 4 + 4]) {
                        *x = (f32::from(*byte) - 128.0) * scale;
                    }
                }
            }
            Bits::Int4 => {
                let groups = self.inputs.div_ceil(GROUP);
                for (k, x) in to.iter_mut().enumerate() {
                    let (group, within) = (k / GROUP, k % GROUP);
                    let scale = self.group_scales[(panel * groups + group) * PANEL + row].single();
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

    /// Returns some of the outputs as a matrix of their own.
    ///
    /// # Panics
    /// If there are no such outputs.
    pub fn part(&self, rows: Range<usize>) -> QuantizedMatrix {
        assert!(rows.end <= self.outputs, "rows {rows:?} of {self:?}");
        let shape = [rows.len(), self.inputs];
        let part = match (self.to_int8(), self.to_int4()) {
            (Some((values, scales)), _) => {
                let values = &values[rows.start * self.inputs..rows.end * self.inputs];
                QuantizedMatrix::from_int8(shape, values, &scales[rows])
            }
            (_, Some((values, scales))) => {
                let groups = self.inputs.div_ceil(GROUP);
                let part = rows.start * groups..rows.end * groups;
                let bytes = part.start * GROUP / 2..part.end * GROUP / 2;
                QuantizedMatrix::from_int4(shape, &values[bytes], &scales[part])
            }
            _ => unreachable!("a matrix has 8 or 4 bits"),
        };
        part.expect("parts of a matrix are valid")
    }

    /// Returns the quantised values of 8 bits, `[outputs, inputs]` row-major, and their scales;
    /// `None` for 4 bits.
    pub fn to_int8(&self) -> Option<(Vec<i8>, Vec<f32>)> {
        if self.bits != Bits::Int8 {
            return None;
        }
        let mut values = Vec::with_capacity(self.outputs * self.inputs);
        for o in 0..self.outputs {
            let lines = &self.values[o / PANEL * self.panel_lines()..];
            let at = |k: usize| lines[k / 4].0[o % PANEL * 4 + k % 4];
            values.extend((0..self.inputs).map(|k| (i16::from(at(k)) - 128) as i8));
        }
        Some((values, self.scales[..self.outputs].to_vec()))
    }

    /// Returns the values of 4 bits and their scales as [`QuantizedMatrix::from_int4`] takes them;
    /// `None` for 8 bits.
    pub fn to_int4(&self) -> Option<(Vec<u8>, Vec<F16>)> {
        if self.bits != Bits::Int4 {
            return None;
        }
        let groups = self.inputs.div_ceil(GROUP);
        let (mut values, mut scales) = (vec![], vec![]);
        for o in 0..self.outputs {
            let (panel, row) = (o / PANEL, o % PANEL);
            let lines = &self.values[panel * self.panel_lines()..];
            for group in 0..groups {
                values.extend((0..16).map(|i| lines[group * 4 + i / 4].0[row * 4 + i % 4]));
                scales.push(self.group_scales[(panel * groups + group) * PANEL + row]);
            }
        }
        Some((values, scales))
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
            Bits::Int8 => {
                let (values, scale) = int8::quantize(floats);
                self.set_int8(row, &values, scale);
            }
            Bits::Int4 => {
                for (group, floats) in floats.chunks(GROUP).enumerate() {
                    let (values, scale) = int4::quantize(floats);
                    self.set_group(row, group, &values, scale);
                }
            }
        }
    }

    fn set_int8(&mut self, row: usize, values: &[i8], scale: f32) {
        debug_assert_eq!(values.len(), self.inputs);
        for (k, x) in values.iter().enumerate() {
            self.values[k / 4].0[row * 4 + k % 4] = (i16::from(*x) + 128) as u8;
        }
        self.scales[row] = scale;
    }

    fn set_group(&mut self, row: usize, group: usize, values: &[u8], scale: F16) {
        for (i, byte) in values.iter().enumerate() {
            self.values[group * 4 + i / 4].0[row * 4 + i % 4] = *byte;
        }
        self.group_scales[group * PANEL + row] = scale;
    }
}

#[cfg(test)]
mod tests;
