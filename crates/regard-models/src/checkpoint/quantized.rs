//! Quantised weights in a checkpoint.
//!
//! A matrix of 16 bits is the tensor `NAME` (bfloat16), as any other of that type: what is read
//! from a file is multiplied in single precision unless `bf16` is asked for.
//!
//! The others are several tensors each:
//!
//! - `int8`: `NAME` (int8, the shape of the weight, values −127 to 127) and `NAME_scale` (float32),
//!   `[O, 1]` if the outputs are the rows of the weight, `[1, O]` if they are its columns, as in the
//!   layers of GPT-2.
//! - `int8-groups`, with a scale for each 32 inputs: `NAME` (int8, values −128 to 127) and
//!   `NAME_scale` (float16, `[O, groups]` or `[groups, O]`).
//! - `int4`: `NAME_packed` (uint8, `[O, groups · 16]`), or `NAME_packed_columns` if the outputs are
//!   the columns of the weight; `NAME_scale` (float16, `[O, groups]`) and `NAME_shape`. A byte holds
//!   inputs `i` and `i + 16` of a group of 32, each plus 8.

use super::arrays::{Array, Arrays};
use regard_attention::ops::QuantizedWeight;
use regard_attention::quant::{Bits, GROUP, QuantizedMatrix};
use regard_attention::storage::{Bytes, F16};
use safetensors::Dtype;

const SCALE: &str = "_scale";
const PACKED: &str = "_packed";
const PACKED_COLUMNS: &str = "_packed_columns";
const SHAPE: &str = "_shape";

/// Replaces the tensors of quantised matrices by the weights that they stand for.
///
/// # Errors
/// If shapes, types or values of such tensors do not match.
pub(super) fn join(arrays: &mut Arrays) -> Result<(), String> {
    let scaled: Vec<String> =
        arrays.keys().filter_map(|name| name.strip_suffix(SCALE)).map(String::from).collect();
    for name in scaled {
        let is = |name: &str, dtype| arrays.get(name).is_some_and(|a| a.dtype() == dtype);
        let joined = if is(&name, Dtype::I8) {
            match is(&format!("{name}{SCALE}"), Dtype::F16) {
                true => join_int8_groups(&name, arrays),
                false => join_int8(&name, arrays),
            }
        } else if is(&format!("{name}{PACKED}"), Dtype::U8) {
            join_int4(&name, PACKED, arrays)
        } else if is(&format!("{name}{PACKED_COLUMNS}"), Dtype::U8) {
            join_int4(&name, PACKED_COLUMNS, arrays)
        } else {
            // A parameter of a model that happens to be called so.
            continue;
        };
        let array = joined.map_err(|message| format!("{name}: {message}"))?;
        arrays.insert(name, array);
    }
    Ok(())
}

fn join_int8(name: &str, arrays: &mut Arrays) -> Result<Array, String> {
    let (values, scales) = (take(arrays, name, "")?, take(arrays, name, SCALE)?);
    let outputs = scales.count();
    let turned = match scales.shape[..] {
        [_] | [_, 1] => false,
        [1, _] => true,
        _ => {
            return Err(format!("{SCALE} has the shape {:?}, need [O, 1] or [1, O]", scales.shape));
        }
    };
    let inputs = values.count().checked_div(outputs).filter(|i| i * outputs == values.count());
    let fits = match values.shape.first() {
        Some(rows) if !turned => *rows == outputs,
        Some(rows) => inputs == Some(*rows),
        None => false,
    };
    let Some(inputs) = inputs.filter(|_| fits) else {
        let (of, by) = (&values.shape, &scales.shape);
        return Err(format!("{SCALE} of shape {by:?} does not fit values of shape {of:?}"));
    };
    let floats = scales.floats().filter(|_| scales.dtype() == Dtype::F32);
    let floats = floats.ok_or_else(|| format!("{SCALE} is {}, need F32", scales.dtype()))?;
    let bytes = values.bytes();
    let row = |output: usize, to: &mut [i8]| {
        for (k, x) in to.iter_mut().enumerate() {
            let at = if turned { k * outputs + output } else { output * inputs + k };
            *x = bytes[at] as i8;
        }
    };
    let matrix = QuantizedMatrix::from_int8_rows([outputs, inputs], &floats, &row);
    Ok(Array::of_quantized(values.shape, weight(matrix.map_err(|e| e.to_string())?, turned)))
}

fn join_int8_groups(name: &str, arrays: &mut Arrays) -> Result<Array, String> {
    let (values, scales) = (take(arrays, name, "")?, take(arrays, name, SCALE)?);
    let misfit = || {
        let (of, by) = (&values.shape, &scales.shape);
        format!("{SCALE} of shape {by:?} does not fit values of shape {of:?} in groups of {GROUP}")
    };
    let ([first, ..], [a, b]) = (&values.shape[..], &scales.shape[..]) else {
        return Err(misfit());
    };
    let rest = values.count().checked_div(*first).unwrap_or(0);
    let fits =
        |outputs: usize, inputs: usize, groups| inputs.div_ceil(GROUP) == groups && outputs > 0;
    let (turned, outputs, inputs) = if first == a && fits(*first, rest, *b) {
        (false, *first, rest)
    } else if rest == *b && fits(rest, *first, *a) {
        (true, rest, *first)
    } else {
        return Err(misfit());
    };
    let groups = inputs.div_ceil(GROUP);
    let stored: &[[u8; 2]] = scales.bytes().as_chunks().0;
    let scale = |at: usize| {
        let (output, group) = (at / groups, at % groups);
        F16(u16::from_le_bytes(stored[if turned { group * outputs + output } else { at }]))
    };
    let halves: Vec<F16> = (0..outputs * groups).map(scale).collect();
    let bytes = values.bytes();
    let row = |output: usize, to: &mut [i8]| {
        for (k, x) in to.iter_mut().enumerate() {
            let at = if turned { k * outputs + output } else { output * inputs + k };
            *x = bytes[at] as i8;
        }
    };
    let matrix = QuantizedMatrix::from_int8_group_rows([outputs, inputs], &halves, &row);
    Ok(Array::of_quantized(values.shape, weight(matrix.map_err(|e| e.to_string())?, turned)))
}

fn join_int4(name: &str, kind: &str, arrays: &mut Arrays) -> Result<Array, String> {
    let (packed, scales) = (take(arrays, name, kind)?, take(arrays, name, SCALE)?);
    let shape = take(arrays, name, SHAPE)?;
    if shape.dtype() != Dtype::I64 || scales.dtype() != Dtype::F16 {
        return Err(format!("need {SHAPE} of I64 and {SCALE} of F16"));
    }
    let side = |b: &[u8; 8]| usize::try_from(i64::from_le_bytes(*b)).ok();
    let shape: Option<Vec<usize>> = shape.bytes().as_chunks().0.iter().map(side).collect();
    let shape = shape.ok_or_else(|| format!("{SHAPE} has a negative size"))?;
    let [outputs, groups] = scales.shape[..] else {
        return Err(format!("{SCALE} has the shape {:?}, need [O, groups]", scales.shape));
    };
    let count = shape.iter().try_fold(1usize, |n, side| n.checked_mul(*side));
    let inputs = count.and_then(|n| n.checked_div(outputs)).filter(|i| Some(i * outputs) == count);
    let Some(inputs) = inputs.filter(|inputs| inputs.div_ceil(GROUP) == groups) else {
        let got = &scales.shape;
        return Err(format!("{SCALE} of shape {got:?} does not fit a weight of shape {shape:?}"));
    };
    let halves: Vec<F16> =
        scales.bytes().as_chunks().0.iter().map(|b| F16(u16::from_le_bytes(*b))).collect();
    let matrix = QuantizedMatrix::from_int4([outputs, inputs], packed.bytes(), &halves);
    let matrix = matrix.map_err(|e| e.to_string())?;
    Ok(Array::of_quantized(shape, weight(matrix, kind == PACKED_COLUMNS)))
}

fn weight(matrix: QuantizedMatrix, turned: bool) -> QuantizedWeight {
    let weight = QuantizedWeight::from(matrix);
    if turned { weight.transpose() } else { weight }
}

fn take(arrays: &mut Arrays, name: &str, end: &str) -> Result<Array, String> {
    let name = format!("{name}{end}");
    arrays.remove(&name).ok_or_else(|| format!("there is no tensor {name}"))
}

/// Returns the tensors that stand for a quantised weight of this name and shape.
pub(super) fn split(name: &str, shape: &[usize], weight: &QuantizedWeight) -> Vec<(String, Array)> {
    let (matrix, turned) = weight.matrix();
    let [outputs, inputs] = matrix.shape();
    let array = |shape: Vec<usize>, dtype, bytes: Vec<u8>| {
        Array::in_file(shape, dtype, Bytes::from(bytes)).expect("sizes follow from the matrix")
    };
    let named = |end: &str, array| (format!("{name}{end}"), array);
    if matrix.bits() == Bits::Bf16 {
        // Exactly: these floats are `bfloat16`.
        let upper = |x: f32| ((x.to_bits() >> 16) as u16).to_le_bytes();
        let bytes = weight.floats().into_iter().flat_map(upper).collect();
        return vec![named("", array(shape.to_vec(), Dtype::BF16, bytes))];
    }
    let groups = inputs.div_ceil(GROUP);
    // Values of 8 bits have the shape of the weight.
    let whole = |values: Vec<i8>| {
        let bytes = by_rows(values, [outputs, inputs], turned).into_iter().map(|x| x as u8);
        named("", array(shape.to_vec(), Dtype::I8, bytes.collect()))
    };
    let halves = |scales: Vec<F16>| scales.iter().flat_map(|x| x.0.to_le_bytes()).collect();
    if let Some((values, scales)) = matrix.to_int8() {
        let scale_shape = if turned { vec![1, outputs] } else { vec![outputs, 1] };
        return vec![whole(values), named(SCALE, Array::new(scale_shape, scales))];
    }
    if let Some((values, scales)) = matrix.to_int8_groups() {
        let scale_shape = if turned { vec![groups, outputs] } else { vec![outputs, groups] };
        let scales = halves(by_rows(scales, [outputs, groups], turned));
        return vec![whole(values), named(SCALE, array(scale_shape, Dtype::F16, scales))];
    }
    let (values, scales) = matrix.to_int4().expect("a matrix has 8 or 4 bits");
    let sides = shape.iter().flat_map(|side| (*side as i64).to_le_bytes()).collect();
    let packed = array(vec![outputs, groups * GROUP / 2], Dtype::U8, values);
    vec![
        named(if turned { PACKED_COLUMNS } else { PACKED }, packed),
        named(SCALE, array(vec![outputs, groups], Dtype::F16, halves(scales))),
        named(SHAPE, array(vec![shape.len()], Dtype::I64, sides)),
    ]
}

/// The rows of a matrix `[outputs, width]`, or of its transpose.
fn by_rows<T: Copy>(values: Vec<T>, [outputs, width]: [usize; 2], turned: bool) -> Vec<T> {
    match turned {
        false => values,
        true => (0..values.len()).map(|at| values[at % outputs * width + at / outputs]).collect(),
    }
}

/// Joins quantised weights of the same bits whose outputs follow each other: queries, keys, values.
pub(super) fn stacked(parts: &[&QuantizedWeight]) -> Option<QuantizedWeight> {
    if parts.iter().any(|part| part.matrix().1) {
        return None;
    }
    if let [one] = parts {
        return Some((*one).clone());
    }
    let matrices: Vec<_> = parts.iter().map(|part| part.matrix().0).collect();
    QuantizedMatrix::concat(&matrices).ok().map(QuantizedWeight::from)
}
