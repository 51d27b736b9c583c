//! Functions that compute. The GIL is released while kernels run.

use crate::array::{Input, Output, array, empty, floats, indices, natural, tuple, value_error};
use crate::call::{Call, Spec, complaint};
use crate::guard::{compute, entry};
use numpy::{PyArray4, PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use regard_kernels::attention::{Dims, InputGradients, SavedAttention, Selection, Upstream};
use regard_kernels::view::View;

type Array<'py> = Bound<'py, PyArray4<f32>>;
type Rows<'py, T> = Bound<'py, PyArrayDyn<T>>;

/// Runs the forward.
fn forward<'py>(py: Python<'py>, call: &Call) -> PyResult<(Output<'py>, SavedAttention)> {
    let Dims { b, h, t, e, .. } = call.dims;
    let (attention, inputs) = (&call.attention, call.inputs());
    let mut out = Output::like(py, [b, h, t, e], &inputs.q)?;
    let room = out.room();
    let saved = compute(py, || attention.forward(&inputs, &room))?.map_err(complaint)?;
    Ok((out, saved))
}

#[pyfunction]
fn attend<'py>(
    q: &Bound<'py, PyAny>,
    k: &Bound<'py, PyAny>,
    v: &Bound<'py, PyAny>,
    spec: Spec<'py>,
) -> PyResult<Array<'py>> {
    entry(|| {
        let call = Call::new(q, k, Some(v), spec)?;
        forward(q.py(), &call)?.0.array()
    })
}

/// Reads an upstream gradient of this shape.
fn gradient<'py>(
    name: &str,
    letters: &str,
    need: [usize; 4],
    object: &Bound<'py, PyAny>,
) -> PyResult<Input<'py>> {
    let input = Input::new(name, letters, object)?;
    if input.shape != need {
        let (got, need) = (tuple(&input.shape), tuple(&need));
        return Err(value_error(format!("{name}: got shape {got}, need {letters} = {need}")));
    }
    Ok(input)
}

#[pyfunction]
fn attend_vjp<'py>(
    q: &Bound<'py, PyAny>,
    k: &Bound<'py, PyAny>,
    v: &Bound<'py, PyAny>,
    upstream: [Option<Bound<'py, PyAny>>; 3],
    spec: Spec<'py>,
) -> PyResult<(Array<'py>, Bound<'py, PyDict>)> {
    entry(|| {
        let py = q.py();
        let call = Call::new(q, k, Some(v), spec)?;
        let Dims { b, h, t, s, e, .. } = call.dims;
        let [dout, dweights, dlog_prob] = upstream;
        let dout = dout.map(|x| gradient("dout", "[B,H,T,E]", [b, h, t, e], &x)).transpose()?;
        let dweights =
            dweights.map(|x| gradient("dweights", "[B,H,T,S]", [b, h, t, s], &x)).transpose()?;
        let dlog_prob = match dlog_prob {
            None => None,
            Some(given) => {
                if !call.attention.normalizer.chooses() {
                    let message = "dlog_prob: only a choice (reinforce) has a log-probability";
                    return Err(value_error(message));
                }
                let given = floats("dlog_prob", &given)?;
                if given.shape() != [b, h, t] {
                    let (got, need) = (tuple(given.shape()), tuple(&[b, h, t]));
                    let message = format!("dlog_prob: got shape {got}, need [B,H,T] = {need}");
                    return Err(value_error(message));
                }
                Some(given.readonly().as_array().iter().copied().collect::<Vec<f32>>())
            }
        };
        let (attention, inputs) = (&call.attention, call.inputs());
        // All outputs are allocated first, so that memory errors are raised before anything is
        // computed.
        let like = |view: &View| Output::like(py, view.shape, view);
        let (mut dq, mut dk, mut dv) = (like(&inputs.q)?, like(&inputs.k)?, like(&inputs.v)?);
        let room = dweights.as_ref().map(|_| Output::new(py, [b, h, t, s])).transpose()?;
        let (out, saved) = forward(py, &call)?;
        let weights = match room {
            Some(room) => Some(weights_of(py, &call, &saved, Selection::default(), room)?),
            None => None,
        };
        let grads = {
            let upstream = Upstream {
                out: dout.as_ref().map(|dout| (out.view(), dout.view())),
                weights: weights
                    .as_ref()
                    .zip(dweights.as_ref())
                    .map(|(w, dw)| (w.view(), dw.view())),
                log_prob: dlog_prob.as_deref(),
            };
            let to = InputGradients { dq: dq.room(), dk: dk.room(), dv: dv.room() };
            compute(py, || attention.backward(&inputs, &saved, &upstream, &to))?
                .map_err(complaint)?
        };
        let dict = PyDict::new(py);
        for (name, grad) in [("q", dq), ("k", dk), ("v", dv)] {
            dict.set_item(name, grad.array()?)?;
        }
        for ((name, shape), grad) in call.names.iter().zip(call.param_shapes()).zip(grads.params) {
            dict.set_item(name, array(py, &shape, grad))?;
        }
        Ok((out.array()?, dict))
    })
}

/// Runs the forward of hard attention, and returns the choice as well.
#[pyfunction]
fn choose<'py>(
    q: &Bound<'py, PyAny>,
    k: &Bound<'py, PyAny>,
    v: &Bound<'py, PyAny>,
    spec: Spec<'py>,
) -> PyResult<(Array<'py>, Rows<'py, i32>, Rows<'py, f32>)> {
    entry(|| {
        let py = q.py();
        let call = Call::new(q, k, Some(v), spec)?;
        if !call.attention.normalizer.chooses() {
            return Err(value_error("normalize: only hard, gumbel and reinforce choose one key"));
        }
        let (out, saved) = forward(py, &call)?;
        let Dims { b, h, t, .. } = call.dims;
        let rows = [b, h, t];
        Ok((out.array()?, array(py, &rows, saved.pick), array(py, &rows, saved.log_prob)))
    })
}

fn weights_of<'py>(
    py: Python<'py>,
    call: &Call,
    saved: &SavedAttention,
    asked: Selection,
    mut out: Output<'py>,
) -> PyResult<Output<'py>> {
    let (attention, inputs, room) = (&call.attention, call.inputs(), out.room());
    compute(py, || attention.weights(&inputs, saved, asked, &room))?.map_err(complaint)?;
    Ok(out)
}

#[pyfunction]
fn weights<'py>(
    q: &Bound<'py, PyAny>,
    k: &Bound<'py, PyAny>,
    v: Option<&Bound<'py, PyAny>>,
    asked: [Option<Bound<'py, PyAny>>; 2],
    spec: Spec<'py>,
) -> PyResult<Array<'py>> {
    entry(|| {
        let py = q.py();
        let call = Call::new(q, k, v, spec)?;
        let Dims { b, h, t, s, .. } = call.dims;
        let [heads, rows] = asked;
        let read = |name: &str, given: Option<Bound<PyAny>>, below: usize| match given {
            None => Ok(None),
            Some(given) => {
                let given = indices(name, &given)?;
                match given.iter().find(|x| **x >= below) {
                    Some(bad) => Err(value_error(format!("{name}: got {bad}, need below {below}"))),
                    None => Ok(Some(given)),
                }
            }
        };
        let (heads, rows) = (read("heads", heads, h)?, read("rows", rows, t)?);
        let shape = [b, heads.as_ref().map_or(h, Vec::len), rows.as_ref().map_or(t, Vec::len), s];
        let room = Output::new(py, shape)?;
        let (_, saved) = forward(py, &call)?;
        let asked = Selection { heads: heads.as_deref(), rows: rows.as_deref() };
        weights_of(py, &call, &saved, asked, room)?.array()
    })
}

#[pyfunction]
fn summarize<'py>(
    q: &Bound<'py, PyAny>,
    k: &Bound<'py, PyAny>,
    v: Option<&Bound<'py, PyAny>>,
    top: i64,
    spec: Spec<'py>,
) -> PyResult<Bound<'py, PyDict>> {
    entry(|| {
        let py = q.py();
        let call = Call::new(q, k, v, spec)?;
        let Dims { b, h, t, s, .. } = call.dims;
        let top = natural("top", top)?;
        if top > s {
            return Err(value_error(format!("top: got {top}, need at most S = {s}")));
        }
        // Memory errors are raised before anything is computed.
        empty(py, [b, h, t, top])?;
        empty(py, [b, h, s])?;
        let (_, saved) = forward(py, &call)?;
        let (attention, inputs) = (&call.attention, call.inputs());
        let found =
            compute(py, || attention.summarize(&inputs, &saved, top))?.map_err(complaint)?;
        let dict = PyDict::new(py);
        dict.set_item("top_keys", array(py, &[b, h, t, top], found.top_keys))?;
        dict.set_item("top_weights", array(py, &[b, h, t, top], found.top_weights))?;
        dict.set_item("entropy", array(py, &[b, h, t], found.entropy))?;
        dict.set_item("column_mass", array(py, &[b, h, s], found.column_mass))?;
        Ok(dict)
    })
}

pub fn register(module: &Bound<PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(attend, module)?)?;
    module.add_function(wrap_pyfunction!(attend_vjp, module)?)?;
    module.add_function(wrap_pyfunction!(choose, module)?)?;
    module.add_function(wrap_pyfunction!(weights, module)?)?;
    module.add_function(wrap_pyfunction!(summarize, module)?)
}
