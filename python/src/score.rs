//! Scores: how well a query and a key fit. By name, or an object where there is something to set.

use crate::array::{ints, type_error, type_name, value_error};
use crate::catalogue::names;
use crate::guard::entry;
use crate::mask::{Claim, csr};
use pyo3::prelude::*;
use regard_kernels::attention::Graph;
use regard_kernels::attention::score::{Edge, Gatv2, Relative, SLOPE, Score, VARIANTS, named};
use std::sync::Arc;

/// A score with its settings; its learned parameters go in `params`.
#[pyclass(frozen, module = "regard", name = "Score")]
#[derive(Clone)]
pub struct PyScore {
    /// Its name in the catalogue.
    pub name: &'static str,
    /// For the kernels.
    pub score: Arc<dyn Score>,
    /// Shapes to check.
    pub claims: Vec<Claim>,
}

#[pymethods]
impl PyScore {
    fn __repr__(&self) -> String {
        format!("<regard.Score {}>", self.name)
    }
}

impl PyScore {
    fn new(name: &'static str, score: impl Score + 'static) -> PyScore {
        PyScore { name, score: Arc::new(score), claims: vec![] }
    }

    /// From a name or an object.
    pub fn of(object: &Bound<PyAny>) -> PyResult<PyScore> {
        if let Ok(score) = object.cast::<PyScore>() {
            return Ok(score.get().clone());
        }
        let Ok(name) = object.extract::<String>() else {
            let got = type_name(object);
            return Err(type_error(format!("score is a {got}; pass a name or a regard.Score")));
        };
        if name == "score_mod" {
            let message = "score: 'score_mod' is a function of one's own in Rust; use a bias";
            return Err(value_error(message));
        }
        let known = VARIANTS.iter().find(|row| row.name == name);
        match known.and_then(|row| Some((row.name, named(row.name)?))) {
            Some((name, score)) => Ok(PyScore { name, score, claims: vec![] }),
            None => {
                let known = names("score");
                Err(value_error(format!("score: got {name:?}, need one of {known}")))
            }
        }
    }
}

fn slope(value: f32) -> PyResult<f32> {
    match value.is_finite() {
        true => Ok(value),
        false => Err(value_error(format!("slope: got {value}, need a finite number"))),
    }
}

/// Relative positions as in Transformer-XL and XLNet; with `segments`, int `[B, S]`, also a term
/// for whether query and key are of one segment, and the parameters `segment` and `x`.
#[pyfunction]
#[pyo3(signature = (segments = None))]
fn relative(segments: Option<&Bound<PyAny>>) -> PyResult<PyScore> {
    entry(|| {
        let Some(segments) = segments else {
            return Ok(PyScore::new("relative", Relative::default()));
        };
        let (values, got) = ints("segments", segments)?;
        let claims = vec![Claim { name: "segments", got, need: &["BS"] }];
        let score = Relative { segments: Some(values), last: None };
        Ok(PyScore { claims, ..PyScore::new("relative", score) })
    })
}

/// The graph whose edges have features: both arrays of its CSR form, or neither.
fn graph(
    indptr: Option<&Bound<PyAny>>,
    indices: Option<&Bound<PyAny>>,
) -> PyResult<Option<Arc<Graph>>> {
    match (indptr, indices) {
        (None, None) => Ok(None),
        (Some(indptr), Some(indices)) => {
            let (indptr, indices) = csr(indptr, indices)?;
            Ok(Some(Arc::new(Graph::new(&indptr, &indices))))
        }
        _ => Err(value_error("indptr, indices: got one of them, need both or none")),
    }
}

/// Graph attention, LeakyReLU(a_q·q + a_k·k), with the slope of the negative side. With a graph in
/// CSR form, int `[T + 1]` and `[nnz]`, LeakyReLU(a_q·q + a_k·k + edge): the parameter `edge`
/// `[H, nnz]` has a number for each edge and head; pairs that are no edge have 0.
#[pyfunction]
#[pyo3(signature = (slope = SLOPE, indptr = None, indices = None))]
fn edge(
    slope: f32,
    indptr: Option<&Bound<PyAny>>,
    indices: Option<&Bound<PyAny>>,
) -> PyResult<PyScore> {
    entry(|| {
        let graph = graph(indptr, indices)?;
        Ok(PyScore::new("edge", Edge { slope: self::slope(slope)?, graph }))
    })
}

/// GATv2, v·LeakyReLU(q + k), with the slope of the negative side. With a graph in CSR form, int
/// `[T + 1]` and `[nnz]`, v·LeakyReLU(q + k + edge): the parameter `edge` `[H, nnz, D]` has the
/// features of each edge; pairs that are no edge have zeros.
#[pyfunction]
#[pyo3(signature = (slope = SLOPE, indptr = None, indices = None))]
fn gatv2(
    slope: f32,
    indptr: Option<&Bound<PyAny>>,
    indices: Option<&Bound<PyAny>>,
) -> PyResult<PyScore> {
    entry(|| {
        let graph = graph(indptr, indices)?;
        Ok(PyScore::new("gatv2", Gatv2 { slope: self::slope(slope)?, graph }))
    })
}

pub fn register(module: &Bound<PyModule>) -> PyResult<()> {
    module.add_class::<PyScore>()?;
    module.add_function(wrap_pyfunction!(relative, module)?)?;
    module.add_function(wrap_pyfunction!(edge, module)?)?;
    module.add_function(wrap_pyfunction!(gatv2, module)?)
}
