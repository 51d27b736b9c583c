//! Quantised matrices from their values and scales, and the way back.

use super::{Bits, GROUP, PANEL, QuantizedMatrix};
use crate::storage::F16;
use crate::view::{Error, bail};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

impl QuantizedMatrix {
    /// Creates a matrix of 8 bits from quantised values `[outputs, inputs]`, row-major, and the
    /// scale of each output.
    ///
    /// # Errors
    /// If sizes do not match, a value is −128, or a scale is negative or not finite.
    pub fn from_int8(shape: [usize; 2], values: &[i8], scales: &[f32]) -> Result<Self, Error> {
        let inputs = shape[1];
        check(Bits::Int8, shape, [values.len(), scales.len()], [Some(inputs), Some(1)])?;
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
                panel.set_bytes(row, 0, &values);
                panel.scales[row] = scales[o];
            }
        });
        if lowest.into_inner() {
            bail!("a value of int8 is -128; need -127 to 127");
        }
        Ok(matrix)
    }

    /// Creates a matrix of 8 bits in groups from quantised values `[outputs, inputs]`, row-major,
    /// −128 to 127, and the scales `[outputs, groups]`.
    ///
    /// # Errors
    /// If sizes do not match, or a scale is not finite.
    pub fn from_int8_groups(
        shape: [usize; 2],
        values: &[i8],
        scales: &[F16],
    ) -> Result<Self, Error> {
        let inputs = shape[1];
        check(
            Bits::Int8Groups,
            shape,
            [values.len(), scales.len()],
            [Some(inputs), Some(inputs.div_ceil(GROUP))],
        )?;
        QuantizedMatrix::from_int8_group_rows(shape, scales, &|o, to| {
            to.copy_from_slice(&values[o * inputs..(o + 1) * inputs]);
        })
    }

    /// Creates a matrix of 8 bits in groups, of which `rows` gives the quantised values of each
    /// output, and the scales `[outputs, groups]`. No second copy of the values is made.
    ///
    /// # Errors
    /// As [`QuantizedMatrix::from_int8_groups`].
    pub fn from_int8_group_rows(
        shape: [usize; 2],
        scales: &[F16],
        rows: &(dyn Fn(usize, &mut [i8]) + Sync),
    ) -> Result<Self, Error> {
        let [outputs, inputs] = shape;
        let mut matrix = QuantizedMatrix::blank(Bits::Int8Groups, shape)?;
        let groups = inputs.div_ceil(GROUP);
        if outputs.checked_mul(groups) != Some(scales.len()) {
            bail!("[{outputs}, {inputs}] of int8-groups has {} scales", scales.len());
        }
        finite(Bits::Int8Groups, scales)?;
        matrix.fill(&|o, panel, row| {
            let mut values = vec![0i8; inputs];
            rows(o, &mut values);
            panel.set_bytes(row, 0, &values);
            for (group, scale) in scales[o * groups..(o + 1) * groups].iter().enumerate() {
                panel.group_scales[group * PANEL + row] = *scale;
            }
        });
        Ok(matrix)
    }

    /// Creates a matrix of 4 bits from bytes of two values each, `[outputs, groups, 16]`, the lower
    /// four bits input `i` and the upper input `i + 16` of the group, each plus 8; and the scales
    /// `[outputs, groups]`.
    ///
    /// # Errors
    /// If sizes do not match, or a scale is not finite.
    pub fn from_int4(shape: [usize; 2], values: &[u8], scales: &[F16]) -> Result<Self, Error> {
        let groups = shape[1].div_ceil(GROUP);
        let each = [groups.checked_mul(GROUP / 2), Some(groups)];
        check(Bits::Int4, shape, [values.len(), scales.len()], each)?;
        finite(Bits::Int4, scales)?;
        let mut matrix = QuantizedMatrix::blank(Bits::Int4, shape)?;
        matrix.fill(&|o, panel, row| {
            for group in 0..groups {
                let at = o * groups + group;
                panel.set_nibbles(row, group, &values[at * 16..at * 16 + 16]);
                panel.group_scales[group * PANEL + row] = scales[at];
            }
        });
        Ok(matrix)
    }

    /// Returns some of the outputs as a matrix of their own.
    ///
    /// # Panics
    /// If there are no such outputs.
    pub fn part(&self, rows: Range<usize>) -> QuantizedMatrix {
        assert!(rows.end <= self.outputs, "rows {rows:?} of {self:?}");
        let shape = [rows.len(), self.inputs];
        self.gather(shape, &|o| (self, rows.start + o)).expect("it has as many inputs")
    }

    /// Joins matrices of the same kind and number of inputs: outputs of one follow those of the
    /// one before.
    ///
    /// # Errors
    /// If there are none, or they differ.
    pub fn concat(parts: &[&QuantizedMatrix]) -> Result<QuantizedMatrix, Error> {
        let Some(first) = parts.first() else { bail!("concat: got no quantised matrix") };
        let mut places = vec![];
        for part in parts {
            if (part.bits, part.inputs) != (first.bits, first.inputs) {
                bail!("concat: {part:?} does not follow {first:?}");
            }
            places.extend((0..part.outputs).map(|o| (*part, o)));
        }
        first.gather([places.len(), first.inputs], &|o| places[o])
    }

    /// A matrix of the same kind, with outputs from elsewhere.
    fn gather<'a>(
        &self,
        shape: [usize; 2],
        from: &(dyn Fn(usize) -> (&'a QuantizedMatrix, usize) + Sync),
    ) -> Result<QuantizedMatrix, Error> {
        let mut matrix = QuantizedMatrix::blank(self.bits, shape)?;
        matrix.fill(&|o, panel, row| {
            let (source, output) = from(o);
            let (lines, place) = (source.lines_of(output), output % PANEL * 4);
            for (to, line) in panel.values.iter_mut().zip(lines) {
                to.0[row * 4..row * 4 + 4].copy_from_slice(&line.0[place..place + 4]);
            }
            match &mut *panel.scales {
                [] => {
                    for group in 0..self.bits.groups(self.inputs) {
                        let scale = source.group_scale(output, group);
                        panel.group_scales[group * PANEL + row] = scale;
                    }
                }
                scales => scales[row] = source.scales[output],
            }
        });
        Ok(matrix)
    }

    /// Writes the quantised values of an output of 8 bits.
    pub(super) fn row_bytes(&self, output: usize, to: &mut [i8]) {
        let place = output % PANEL * 4;
        for (line, to) in self.lines_of(output).iter().zip(to.chunks_mut(4)) {
            for (x, byte) in to.iter_mut().zip(&line.0[place..place + 4]) {
                *x = (i16::from(*byte) - 128) as i8;
            }
        }
    }

    /// The bytes of a group of an output of 4 bits.
    pub(super) fn group_nibbles(&self, output: usize, group: usize) -> [u8; GROUP / 2] {
        let lines = &self.lines_of(output)[group * 4..];
        std::array::from_fn(|i| lines[i / 4].0[output % PANEL * 4 + i % 4])
    }

    /// Returns the quantised values of 8 bits, `[outputs, inputs]` row-major, and their scales;
    /// `None` unless each output has one scale.
    pub fn to_int8(&self) -> Option<(Vec<i8>, Vec<f32>)> {
        let values = self.all_bytes().filter(|_| self.bits == Bits::Int8)?;
        Some((values, self.scales[..self.outputs].to_vec()))
    }

    /// Returns the quantised values of 8 bits and their scales as
    /// [`QuantizedMatrix::from_int8_groups`] takes them; `None` for others.
    pub fn to_int8_groups(&self) -> Option<(Vec<i8>, Vec<F16>)> {
        let values = self.all_bytes().filter(|_| self.bits == Bits::Int8Groups)?;
        Some((values, self.all_group_scales()))
    }

    /// Returns the values of 4 bits and their scales as [`QuantizedMatrix::from_int4`] takes them;
    /// `None` for others.
    pub fn to_int4(&self) -> Option<(Vec<u8>, Vec<F16>)> {
        if self.bits != Bits::Int4 {
            return None;
        }
        let groups = self.bits.groups(self.inputs);
        let mut values = Vec::with_capacity(self.outputs * groups * GROUP / 2);
        for o in 0..self.outputs {
            (0..groups).for_each(|group| values.extend(self.group_nibbles(o, group)));
        }
        Some((values, self.all_group_scales()))
    }

    fn all_bytes(&self) -> Option<Vec<i8>> {
        if self.bits.bits() != 8 {
            return None;
        }
        let mut values = vec![0; self.outputs * self.inputs];
        for (o, to) in values.chunks_mut(self.inputs).enumerate() {
            self.row_bytes(o, to);
        }
        Some(values)
    }

    fn all_group_scales(&self) -> Vec<F16> {
        let groups = self.bits.groups(self.inputs);
        let count = self.outputs * groups;
        (0..count).map(|at| self.group_scale(at / groups, at % groups)).collect()
    }
}

/// Checks the numbers of values and scales, of which each output has `each`.
fn check(
    bits: Bits,
    [outputs, inputs]: [usize; 2],
    [values, scales]: [usize; 2],
    each: [Option<usize>; 2],
) -> Result<(), Error> {
    let [value_count, scale_count] = each.map(|n| n.and_then(|n| n.checked_mul(outputs)));
    if value_count != Some(values) || scale_count != Some(scales) {
        let (name, unit) = (bits.name(), if bits == Bits::Int4 { "bytes" } else { "values" });
        bail!("[{outputs}, {inputs}] of {name} cannot be made of {values} {unit}, {scales} scales");
    }
    Ok(())
}

fn finite(bits: Bits, scales: &[F16]) -> Result<(), Error> {
    match scales.iter().find(|scale| !scale.single().is_finite()) {
        Some(bad) => bail!("a scale of {} is {}; need a finite number", bits.name(), bad.single()),
        None => Ok(()),
    }
}
