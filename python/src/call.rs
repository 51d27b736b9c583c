//! One call: score, mask, bias and normaliser, the arrays, and all checks of them.

use crate::array::{Input, floats, ints, tuple, type_error, type_name, value_error};
use crate::bias::PyBias;
use crate::catalogue::shape;
use crate::mask::{Claim, PyMask};
use crate::normalize::PyNormalizer;
use crate::score::PyScore;
use numpy::{PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use regard_kernels::attention::{
    Attention, AttentionDropout, AttentionInputs, Dims, Param, Positions, Values, mask,
};
use regard_kernels::rng::Stream;
use regard_kernels::view::{Error, View};

/// Arguments from `engine.py`: score, mask, bias, normalize, scale, params, dropout, seed,
/// positions.
#[derive(FromPyObject)]
pub struct Spec<'py>(
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Option<f32>,
    Option<Bound<'py, PyDict>>,
    f32,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
);

/// Placeholder for the values when only weights are computed.
static NOTHING: [f32; 1] = [0.0];

/// A checked call.
pub struct Call<'py> {
    /// The kernels' attention.
    pub attention: Attention,
    /// Sizes of queries, keys and values.
    pub dims: Dims,
    q: Input<'py>,
    k: Input<'py>,
    v: Option<Input<'py>>,
    params: Vec<Input<'py>>,
    /// Names of the parameters' gradients.
    pub names: Vec<String>,
}

/// Converts a kernel's error to a `ValueError`.
pub fn complaint(error: Error) -> PyErr {
    value_error(error.0)
}

impl<'py> Call<'py> {
    pub fn new(
        q: &Bound<'py, PyAny>,
        k: &Bound<'py, PyAny>,
        v: Option<&Bound<'py, PyAny>>,
        spec: Spec<'py>,
    ) -> PyResult<Call<'py>> {
        let Spec(score, mask, bias, normalize, scale, params, dropout, seed, positions) = spec;
        let seed = seed_of(&seed)?;
        let q = Input::new("q", "[B,H,T,D]", q)?;
        let k = Input::new("k", "[B,Hk,S,D]", k)?;
        let v = v.map(|v| Input::new("v", "[B,Hk,S,E]", v)).transpose()?;
        let [b, hk, s, _] = k.shape;
        let v_shape = v.as_ref().map_or([b, hk, s, 1], |v| v.shape);
        let dims = Attention::dims(q.shape, k.shape, v_shape).map_err(complaint)?;
        let score = PyScore::of(&score)?;
        if v.is_none() && score.score.needs_values() {
            let name = score.name;
            let message = format!("v: got None, need [B,Hk,S,E]: {name} scores against values");
            return Err(value_error(message));
        }
        let (mask, mut claims) = mask_of(&mask)?;
        claims.extend(score.claims);
        claims.iter().try_for_each(|claim| claim.check(&dims))?;
        let biases = PyBias::all(&bias)?;
        let attention = Attention {
            score: score.score,
            biases: biases.iter().map(|bias| bias.get().bias.clone()).collect(),
            mask,
            normalizer: PyNormalizer::of(&normalize, seed)?.normalizer,
            scale,
            positions: positions_of(&positions, &dims)?,
            // Kept if it is not a probability, so that the kernels' check rejects it.
            dropout: (dropout != 0.0)
                .then(|| AttentionDropout { p: dropout, noise: Stream::new(seed, 0, 0) }),
        };
        let mut call = Call { attention, dims, q, k, v, params: vec![], names: vec![] };
        call.score_params(score.name, params)?;
        for bias in &biases {
            call.bias_params(bias)?;
        }
        call.attention.check(&call.inputs()).map_err(complaint)?;
        Ok(call)
    }

    /// Inputs of the kernels.
    pub fn inputs(&self) -> AttentionInputs<'_> {
        let Dims { b, hk, s, .. } = self.dims;
        let nothing = || View::strided(&NOTHING, [b, hk, s, 1], [0; 4], 0).expect("one float");
        AttentionInputs {
            q: self.q.view(),
            k: self.k.view(),
            v: self.v.as_ref().map_or_else(nothing, Input::view),
            params: self.params.iter().map(Input::view).collect(),
        }
    }

    /// Shapes of the parameters in Python.
    pub fn param_shapes(&self) -> Vec<Vec<usize>> {
        self.params.iter().map(Input::python_shape).collect()
    }

    fn score_params(&mut self, score: &str, given: Option<Bound<'py, PyDict>>) -> PyResult<()> {
        let wanted = self.attention.score.params(&self.dims);
        let known: Vec<_> = wanted.iter().map(|param| param.name).collect();
        if let Some(given) = &given {
            for name in given.keys() {
                let name = name.to_string();
                if !known.contains(&name.as_str()) {
                    let has = if known.is_empty() { "none".into() } else { known.join(", ") };
                    return Err(value_error(format!(
                        "params: got {name:?}, but the parameters of {score:?} are: {has}"
                    )));
                }
            }
        }
        for param in wanted {
            let letters = shape("score", score, param.name);
            let given = given.as_ref().map(|given| given.get_item(param.name)).transpose()?;
            let Some(object) = given.flatten() else {
                let name = param.name;
                return Err(value_error(format!(
                    "params: {score:?} needs {name:?}, {letters}: params={{{name:?}: …}}"
                )));
            };
            self.add(&param, &format!("params[{:?}]", param.name), letters, &object)?;
        }
        Ok(())
    }

    fn bias_params(&mut self, bias: &Bound<'py, PyBias>) -> PyResult<()> {
        let (py, bias) = (bias.py(), bias.get());
        for (param, object) in bias.bias.params(&self.dims).into_iter().zip(&bias.params) {
            let letters = shape("bias", bias.bias.name(), param.name);
            self.add(&param, param.name, letters, object.bind(py))?;
        }
        Ok(())
    }

    /// Reads a parameter, and finds an unused name for its gradient.
    fn add(
        &mut self,
        param: &Param,
        label: &str,
        letters: &str,
        object: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        let input = parameter(param, label, letters, object)?;
        let taken =
            |name: &String| ["q", "k", "v"].contains(&name.as_str()) || self.names.contains(name);
        let mut name = param.name.to_string();
        for suffix in 1.. {
            if !taken(&name) {
                break;
            }
            name = format!("{}_{suffix}", param.name);
        }
        self.names.push(name);
        self.params.push(input);
        Ok(())
    }
}

/// Reads a seed, any integer from 0 to 2⁶⁴ − 1.
pub fn seed_of(object: &Bound<PyAny>) -> PyResult<u64> {
    object.extract().map_err(|_| {
        let text = object.repr().map_or_else(|_| type_name(object), |text| text.to_string());
        value_error(format!("seed: got {text}, need an integer from 0 to 2⁶⁴ − 1"))
    })
}

fn mask_of(object: &Bound<PyAny>) -> PyResult<(mask::Mask, Vec<Claim>)> {
    if object.is_none() {
        return Ok((mask::full(), vec![]));
    }
    let Ok(mask) = object.cast::<PyMask>() else {
        let got = type_name(object);
        let hint = if got == "ndarray" { "; write mask=regard.dense(mask)" } else { "" };
        return Err(type_error(format!("mask is a {got}, need a regard.Mask{hint}")));
    };
    Ok((mask.get().mask.clone(), mask.get().claims.clone()))
}

/// Integers are offsets `[B]`, floats are centres `[B, T]`.
fn positions_of(object: &Bound<PyAny>, dims: &Dims) -> PyResult<Positions> {
    if object.is_none() {
        return Ok(Positions::End);
    }
    let float = object.cast::<PyUntypedArray>().is_ok_and(|array| {
        use numpy::PyArrayDescrMethods;
        array.dtype().kind() == b'f'
    });
    if float {
        let array = floats("positions", object)?;
        let got = array.shape().to_vec();
        Claim { name: "positions", got, need: &["BT"] }.check(dims)?;
        return Ok(Positions::Centres(array.readonly().as_array().iter().copied().collect()));
    }
    let (offsets, got) = ints("positions", object)?;
    Claim { name: "positions", got, need: &["B"] }.check(dims)?;
    // Positions are floats in the kernels, exact up to 2²⁴.
    if let Some(bad) = offsets.iter().find(|x| x.unsigned_abs() >= 1 << 24) {
        return Err(value_error(format!("positions: got {bad}, need between −2²⁴ and 2²⁴")));
    }
    Ok(Positions::Offsets(offsets))
}

/// The axes of a parameter's four that its Python array has; a scalar has none.
fn axes(param: &Param) -> Vec<usize> {
    let named = param.axes.bytes().enumerate().filter(|(_, letter)| *letter != b'1');
    named.map(|(axis, _)| axis).collect()
}

/// Reads an array of the parameter's shape; a number is accepted for a scalar.
fn parameter<'py>(
    param: &Param,
    label: &str,
    letters: &str,
    object: &Bound<'py, PyAny>,
) -> PyResult<Input<'py>> {
    let mut axes = axes(param);
    let is_array = object.is_instance_of::<PyUntypedArray>();
    let input = if axes.is_empty() && !is_array {
        let Ok(number) = object.extract::<f32>() else {
            let got = type_name(object);
            return Err(type_error(format!("{label} is a {got}; pass a number")));
        };
        Input::number(number)
    } else {
        let array = floats(label, object)?;
        // A dense bias may be the same for all batch rows and heads.
        if param.axes == "BHTS" && array.ndim() == 2 {
            axes = vec![2, 3];
        }
        let need: Vec<_> = axes.iter().map(|axis| param.shape[*axis]).collect();
        let scalar = axes.is_empty() && array.len() == 1;
        if array.shape() != need && !scalar {
            let (got, need) = (tuple(array.shape()), tuple(&need));
            return Err(value_error(format!("{label}: got shape {got}, need {letters} = {need}")));
        }
        Input::of(array, &axes)
    };
    if param.values == Values::Width {
        let sigma = input.view().get(0, 0, 0, 0);
        if !(sigma.is_finite() && sigma > 0.0) {
            return Err(value_error(format!("{label}: got {sigma}, need a finite number above 0")));
        }
    }
    Ok(input)
}
